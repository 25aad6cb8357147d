//! Saved congestion control parameters (Careful Resume, RFC 9959) over the loopback interface.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use anabranch_net::{
    Association, Carrier, Config, Endpoint, PathState, Peer, ResumeCache, ResumePhase, SavedPath,
    SendOptions,
};

use super::common::{LOOPBACK, bounded, pattern};
use super::examples::failover::{CLIENT, SERVER, sockets, two_homes, wait_for};

/// A cache with a set for each pair of addresses.
fn cache_for(local: &[IpAddr], remote: &[IpAddr]) -> ResumeCache {
    let cache = ResumeCache::default();
    let pairs = local
        .iter()
        .flat_map(|&local| remote.iter().map(move |&remote| (local, remote)));
    for (local, remote) in pairs {
        assert!(cache.insert(SavedPath {
            local,
            remote,
            cwnd: 1 << 20,
            rtt: Duration::from_millis(1),
            expires: UNIX_EPOCH + Duration::from_secs(10_000_000_000),
        }));
    }
    cache
}

fn phase(association: &Association) -> Option<ResumePhase> {
    association.status().expect("it is open").in_use.resume
}

fn loopback() -> Config {
    Config::default().with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
    })
}

#[test]
fn one_association_at_a_time_uses_a_saved_set() {
    bounded(async {
        let server = Endpoint::bind(loopback().with(|it| it.accept = true)).expect("loopback");
        let peer = Peer::from((LOOPBACK, server.port())).over_udp(server.udp_port());
        let cache = cache_for(&[LOOPBACK], &[LOOPBACK]);
        let resuming = loopback().with(|it| it.resume_cache = Some(cache));
        // Both endpoints use the same cache.
        let connect = async || {
            let endpoint = Endpoint::bind(resuming.clone()).expect("loopback");
            endpoint.connect(peer.clone()).await.expect("it listens")
        };
        let first = connect().await;
        assert_eq!(phase(&first), Some(ResumePhase::Reconnaissance));
        let second = connect().await;
        assert_eq!(phase(&second), Some(ResumePhase::Normal));
        first.shutdown().await.expect("graceful");
        let third = connect().await;
        assert_eq!(phase(&third), Some(ResumePhase::Reconnaissance));
        third.abort("");
        third.closed().await;
        let fourth = connect().await;
        assert_eq!(phase(&fourth), Some(ResumePhase::Reconnaissance));

        let plain = Endpoint::bind(loopback()).expect("loopback");
        let without = plain.connect(peer.clone()).await.expect("it listens");
        assert_eq!(phase(&without), None);
    });
}

/// The second path starts from its own saved set when data is first sent on it after a failover.
#[test]
fn a_path_resumes_after_a_failover() {
    bounded(async {
        let first_is_cut = Arc::new(AtomicBool::new(false));
        let sockets = sockets(&first_is_cut).await.expect("loopback");
        let listening = two_homes(SERVER).with(|it| it.accept = true);
        let server = Endpoint::bind_with(listening, &sockets).expect("loopback");
        let [local, remote] = [CLIENT, SERVER].map(|all| all.map(IpAddr::from));
        let cache = cache_for(&local, &remote);
        let config = two_homes(CLIENT).with(|it| it.resume_cache = Some(cache.clone()));
        let client = Endpoint::bind(config).expect("loopback");
        let peer = Peer::new(remote, server.port()).over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        let receiver = server.accept().await.expect("it came");
        let receiving = tokio::spawn(async move { while receiver.recv().await.is_ok() {} });
        wait_for(&association, remote[1], PathState::Active)
            .await
            .expect("it is confirmed");
        let phases = |association: &Association| {
            let paths = association.status().expect("it is open").paths;
            paths.iter().map(|it| it.resume).collect::<Vec<_>>()
        };
        let unused = Some(ResumePhase::Reconnaissance);
        assert_eq!(phases(&association), [unused, unused]);
        first_is_cut.store(true, Ordering::Relaxed);
        // The phase ends when data is acknowledged that was sent while the window was full.
        while phases(&association)[1] == unused {
            let message = pattern(1, 60_000);
            let sent = association.send(message, SendOptions::default()).await;
            sent.expect("the second path works");
        }
        association.abort("");
        association.closed().await;
        receiving.abort();
    });
}

#[test]
fn careful_resume_needs_a_cache() {
    bounded(async {
        let config = loopback().with(|it| it.sctp.careful_resume = Some(Default::default()));
        let error = Endpoint::bind(config.clone()).expect_err("no cache");
        assert!(error.to_string().contains("resume_cache"), "{error}");
        let config = config.with(|it| it.resume_cache = Some(ResumeCache::default()));
        Endpoint::bind(config).expect("loopback");
    });
}
