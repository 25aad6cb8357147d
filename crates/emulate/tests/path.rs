//! Packets cross an emulated path as the simulator says.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_emulate::{Config, Emulator, Framing, Path};
use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    BuildError, DirectionConfig, DropReason, DropTail, Limit, LinkConfig, PlacedLoss, Seed,
    Topology, World,
};

const MILLISECOND: u64 = 1_000_000;

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(any()).expect("loopback");
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    socket
}

fn path(forward: DirectionConfig, backward: DirectionConfig) -> Result<Path, BuildError> {
    let mut topology = Topology::new();
    let near = topology.add_node("near")?;
    let far = topology.add_node("far")?;
    topology.add_link(LinkConfig {
        name: "link".to_owned(),
        between: [near, far],
        forward,
        backward,
    })?;
    let world = World::new(topology, Seed::new(1, 0))?;
    Ok(Path { world, near, far })
}

#[test]
fn packets_go_there_and_back_unchanged_and_in_order() {
    for framing in [Framing::Udp, Framing::Sctp] {
        let (client, server) = (socket(), socket());
        let config = Config {
            listen: any(),
            to: server.local_addr().expect("bound"),
            framing,
        };
        let link = || DirectionConfig::instant(5 * MILLISECOND);
        let emulator = Emulator::start(config, move || path(link(), link())).expect("loopback");
        let mut buffer = [0; 2_000];
        for number in 0..50u8 {
            client
                .send_to(&[number; 100], emulator.address())
                .expect("sent");
        }
        for number in 0..50u8 {
            let (len, from) = server.recv_from(&mut buffer).expect("it crosses");
            assert_eq!(buffer[..len], [number; 100], "{framing:?}");
            server.send_to(&[number, 7], from).expect("sent");
        }
        for number in 0..50u8 {
            let (len, from) = client.recv_from(&mut buffer).expect("it crosses back");
            assert_eq!(
                (&buffer[..len], from),
                (&[number, 7][..], emulator.address())
            );
        }
        let report = emulator.stop();
        assert_eq!((report.received, report.sent), ([50, 50], [50, 50]));
        assert_eq!((report.dropped.total(), report.overrun), (0, 0));
        assert_eq!(report.timing.count(), 100);
    }
}

/// No packet is early: what crossed a link of 40 ms and 8 kbit/s took at least that and its serialisation.
#[test]
fn nothing_is_early() {
    let (client, server) = (socket(), socket());
    let config = Config {
        listen: any(),
        to: server.local_addr().expect("bound"),
        framing: Framing::Udp,
    };
    // 72 bytes and 28 of headers: 100 bytes, 10 ms each at 80 kbit/s.
    let forward = || DirectionConfig::new(80_000, 40 * MILLISECOND);
    let emulator = Emulator::start(config, move || path(forward(), forward())).expect("loopback");
    #[allow(clippy::disallowed_methods, reason = "it is real time that is tested")]
    let begin = std::time::Instant::now();
    for _ in 0..5 {
        client.send_to(&[1; 72], emulator.address()).expect("sent");
    }
    for number in 1..=5 {
        server.recv_from(&mut [0; 100]).expect("it crosses");
        let least = Duration::from_millis(40 + 10 * number);
        assert!(
            begin.elapsed() >= least,
            "packet {number}: {:?}",
            begin.elapsed()
        );
    }
}

#[test]
fn losses_and_full_queues_are_the_simulators() {
    let (client, server) = (socket(), socket());
    let config = Config {
        listen: any(),
        to: server.local_addr().expect("bound"),
        framing: Framing::Udp,
    };
    let build = || {
        let half = PlacedLoss::before_queue(Bernoulli::new(0.5)?);
        // 1 Mbit/s for ever: what is not lost waits, and few may wait.
        let forward = DirectionConfig::new(1_000_000, 0)
            .with_loss(half)
            .with_queue(DropTail::new(Limit::Packets(10))?);
        path(forward, DirectionConfig::instant(0))
    };
    let emulator = Emulator::start(config, build).expect("loopback");
    for _ in 0..200 {
        client
            .send_to(&[1; 1_000], emulator.address())
            .expect("sent");
    }
    let mut crossed = 0;
    server
        .set_read_timeout(Some(Duration::from_secs(1)))
        .expect("a timeout");
    while server.recv_from(&mut [0; 2_000]).is_ok() {
        crossed += 1;
    }
    let report = emulator.stop();
    let (lost, full) = (
        report.dropped.count(DropReason::Loss),
        report.dropped.count(DropReason::QueueFull),
    );
    assert_eq!(crossed + lost + full, 200, "{report:?}");
    assert!((60..140).contains(&lost), "{lost} of 200 lost at one half");
    assert!(full > 20, "a burst overflows ten places");
}
