//! Concurrent multipath transfer (the setting `cmt`) on real sockets, with two loopback addresses
//! at each end.

use crate::common;

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Config, Endpoint, PathStatus, Peer, SendOptions};
use anabranch_sctp::PathState;
use common::{bounded, pattern};

const ADDRESSES: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)),
];
const MESSAGES: u32 = 2_000;
const BYTES: usize = 4_000;
/// Message size in bytes, larger than the initial windows of both paths.
const LARGE: usize = 200_000;

fn config() -> Config {
    Config::default().with(|it| {
        it.sctp.cmt = true;
        it.sctp.receive_buffer = 256 << 10;
        it.addresses = ADDRESSES.to_vec();
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.accept = true;
    })
}

/// Waits until both addresses of the peer are confirmed.
async fn confirmed(association: &Association) {
    loop {
        let status = association.status().expect("up");
        let active = |path: &&PathStatus| path.state == PathState::Active;
        if status.paths.iter().filter(active).count() == ADDRESSES.len() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn both_paths_carry_data_and_everything_comes_once() {
    bounded(async {
        let server = Endpoint::bind(config()).expect("127.0.0.1 and 127.0.0.2");
        let client = Endpoint::bind(config()).expect("127.0.0.1 and 127.0.0.2");
        let peer = Peer::new(ADDRESSES, server.port()).over_udp(server.udp_port());
        let association = client.connect(peer).await.expect("it listens");
        let accepted = server.accept().await.expect("it came");
        confirmed(&association).await;
        // Data beyond the window of the first path is sent over the second, regardless of the speed
        // of the loopback interface.
        let large = pattern(MESSAGES, LARGE);
        let sent = association.send(large.clone(), SendOptions::default());
        sent.await.expect("up");
        let message = accepted.recv().await.expect("up").expect("open");
        assert_eq!(message.bytes, large);
        let reader = async {
            let mut next = [0_u32; 5];
            for _ in 0..MESSAGES {
                let message = accepted.recv().await.expect("up").expect("open");
                let stream = message.stream;
                let number = next[usize::from(stream)] * 5 + u32::from(stream);
                assert_eq!(message.ppid, number, "once, and in the order of its stream");
                assert_eq!(message.bytes, pattern(number, BYTES));
                next[usize::from(stream)] += 1;
            }
            assert!(next.iter().all(|it| *it == MESSAGES / 5), "{next:?}");
        };
        let writer = async {
            for number in 0..MESSAGES {
                let options = SendOptions::default().with_ppid(number);
                let payload = pattern(number, BYTES);
                let sent =
                    association.send(payload, options.with_stream(Some((number % 5) as u16)));
                sent.await.expect("up");
            }
        };
        tokio::join!(writer, reader);
        let status = association.status().expect("up");
        let carried: Vec<u64> = status.paths.iter().map(|it| it.bytes_sent).collect();
        let all = u64::from(MESSAGES) * BYTES as u64 + LARGE as u64;
        assert!(carried.iter().sum::<u64>() >= all, "{carried:?}");
        assert!(carried.iter().all(|it| *it > 0), "{carried:?}");
        association.shutdown().await.expect("graceful");
        assert_eq!(accepted.recv().await.expect("graceful"), None);
    });
}
