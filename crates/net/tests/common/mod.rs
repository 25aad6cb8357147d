//! Common parts of the tests of this crate.
#![allow(dead_code, reason = "no test uses all of it")]

pub mod certificates;
pub mod lane;
pub mod switch;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Config, Endpoint, Peer};
use bytes::Bytes;

/// 127.0.0.1.
pub const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Time limit after which a test counts as hanging. No test needs that long, even on a busy
/// machine.
pub const HANGS: Duration = Duration::from_secs(600);

/// Runs a test on a new runtime; fails if the test hangs.
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

/// Timers that never expire during a test, so that its outcome does not depend on the speed of the
/// machine.
pub fn without_timers(mut config: Config) -> Config {
    const HOUR: u64 = 3_600_000_000_000;
    config.sctp.profile.rto_initial.0 = HOUR;
    (config.sctp.rto_min, config.sctp.rto_max) = (HOUR, HOUR);
    config.sctp.heartbeat_interval = None;
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

/// `size` bytes that depend on `seed` and the position.
pub fn pattern(seed: u32, size: usize) -> Bytes {
    (0..size)
        .map(|at| (at as u32).wrapping_mul(31).wrapping_add(seed) as u8)
        .collect()
}

/// Random number generator (SplitMix64): the same sequence for the same seed.
pub struct Draws(u64);

impl Draws {
    pub fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// A random number below `end`.
    pub fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let half = (mixed ^ (mixed >> 31)) >> 32;
        ((half * u64::from(end)) >> 32) as u32
    }
}
