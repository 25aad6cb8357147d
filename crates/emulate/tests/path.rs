//! Packets over an emulated path behave as the simulator computes.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_emulate::{Config, EmulationReport, Emulator, Framing, Path};
use anabranch_sim::loss::Bernoulli;
use anabranch_sim::{
    BuildError, DirectionConfig, DropReason, DropTail, LinkConfig, PlacedLoss, QueueLimit, Seed,
    Topology, World,
};

const MILLISECOND: u64 = 1_000_000;

fn any() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// A socket with a timeout for reads.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind(any()).expect("loopback");
    socket
        .set_read_timeout(Some(Duration::from_secs(120)))
        .expect("a timeout");
    socket
}

fn between(server: &UdpSocket, framing: Framing) -> Config {
    Config::new(any(), server.local_addr().expect("bound")).with(|it| it.framing = framing)
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
        let config = between(&server, framing);
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

/// No packet is early: on a link with a delay of 40 ms it takes at least this time plus its
/// transmission time.
#[test]
fn nothing_is_early() {
    let (client, server) = (socket(), socket());
    let config = between(&server, Framing::Udp);
    // 72 bytes and 28 bytes of headers are 100 bytes, which take 10 ms at 80 kbit/s.
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

/// Waits until this many packets have arrived at the near side.
fn await_received(emulator: &Emulator, count: u64) -> EmulationReport {
    for _ in 0..12_000 {
        let report = emulator.report();
        if report.received[0] >= count {
            return report;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?} of {count} came", emulator.report());
}

#[test]
fn losses_and_full_queues_are_the_simulators() {
    let (client, server) = (socket(), socket());
    let config = between(&server, Framing::Udp);
    let build = || {
        let half = PlacedLoss::before_queue(Bernoulli::new(0.5)?);
        // The transmission of a packet takes about three hours, so packets that are not lost stay
        // queued, up to ten of them.
        let forward = DirectionConfig::new(1, 0)
            .with_loss(half)
            .with_queue(DropTail::new(QueueLimit::Packets(10))?);
        path(forward, DirectionConfig::instant(0))
    };
    let emulator = Emulator::start(config, build).expect("loopback");
    // Sent in small groups, so that no packet is lost in the socket.
    for burst in 1..=20 {
        for _ in 0..10 {
            client
                .send_to(&[1; 1_000], emulator.address())
                .expect("sent");
        }
        await_received(&emulator, burst * 10);
    }
    let report = emulator.stop();
    let (lost, full) = (
        report.dropped.count(DropReason::Loss),
        report.dropped.count(DropReason::QueueFull),
    );
    assert_eq!((report.sent, report.overrun), ([0, 0], 0));
    // Which packets are lost depends only on the seed, and not on their times.
    assert!((60..140).contains(&lost), "{lost} of 200 lost at one half");
    assert_eq!(
        lost + full + 10,
        200,
        "ten have a place, the one that is sent among them: {report:?}"
    );
}
