//! What the tests of this crate share.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod lane;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Config, Endpoint, Peer};
use bytes::Bytes;

/// 127.0.0.1.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// After that a test is taken to hang. However busy the machine is, no test needs so long.
pub const HANGS: Duration = Duration::from_secs(600);

/// Runs a test on a runtime of its own; one that hangs fails.
pub fn bounded<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        tokio::time::timeout(HANGS, test)
            .await
            .expect("the test comes to its end");
    });
}

/// Timers that no test lives to see: what happens, happens without them, however slow the machine is.
pub fn without_timers(mut config: Config) -> Config {
    const HOUR: u64 = 3_600_000_000_000;
    config.sctp.profile.rto_initial.0 = HOUR;
    (config.sctp.rto_min, config.sctp.rto_max) = (HOUR, HOUR);
    config.sctp.hb_interval = None;
    config.sctp.delayed_sack = false;
    config
}

/// Two endpoints with an association, client and server, inside UDP on the loopback interface.
pub async fn pair(config: Config) -> (Association, Association) {
    let config = config.with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    });
    let server = Endpoint::bind(config.clone().with(|it| it.accept = true)).expect("loopback");
    let client = Endpoint::bind(config).expect("loopback");
    let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
    let association = client.connect(peer).await.expect("it listens");
    (association, server.accept().await.expect("it came"))
}

/// `size` bytes that tell `seed` and their places.
pub fn pattern(seed: u32, size: usize) -> Bytes {
    (0..size)
        .map(|at| (at as u32).wrapping_mul(31).wrapping_add(seed) as u8)
        .collect()
}
