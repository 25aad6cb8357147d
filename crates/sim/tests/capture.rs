//! Tests of captures, which are read by the crate pcap-file, and by tshark if it is installed.

use crate::common;

use std::cell::RefCell;
use std::io::{self, Write};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use anabranch_sim::loss::Ordinals;
use anabranch_sim::udp::{UdpSink, UdpSource, UdpSourceConfig};
use anabranch_sim::workload::Cbr;
use anabranch_sim::{
    AddressFamily, Attachment, CaptureError, DirectionConfig, DropTail, PlacedLoss, QueueLimit,
    Seed, World, ip,
};
use anabranch_transport::Path;
use common::{Line, MS, SECOND, burst, chain, every};
use pcap_file::pcapng::{Block, PcapNgReader};

/// A file in memory that the test can read while the world writes it.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Time, interface and bytes of each packet of a capture.
fn packets(file: &Shared) -> Vec<(Duration, u32, Vec<u8>)> {
    let bytes = file.0.borrow();
    let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
    let mut packets = Vec::new();
    while let Some(block) = reader.next_block() {
        if let Block::EnhancedPacket(packet) = block.unwrap() {
            assert_eq!(packet.original_len as usize, packet.data.len());
            packets.push((packet.timestamp, packet.interface_id, packet.data.to_vec()));
        }
    }
    packets
}

#[test]
fn a_capture_shows_what_passes_each_interface_in_the_order_of_time() {
    // 1500 bytes take 6 ms at 2 Mbit/s. Five packets arrive at 0: two are lost before the queue or
    // dropped at it, and one is lost in the channel.
    let direction = DirectionConfig::new(2_000_000, 3 * MS)
        .with_queue(DropTail::new(QueueLimit::Packets(3)).unwrap())
        .with_loss(PlacedLoss::before_queue(Ordinals::new([1])))
        .with_loss(PlacedLoss::after_queue(Ordinals::new([1])));
    let mut line = Line::new(1, vec![direction], burst(0, 5, 1480));
    let file = Shared::default();
    let link = line.links[0];
    let interfaces = [(line.nodes[0], link), (line.nodes[1], link)];
    line.world
        .capture(Box::new(file.clone()), &interfaces)
        .unwrap();
    let mut line = line.run(10 * MS);
    line.world.finish().unwrap();
    let mut line = line.run(SECOND);
    line.world.finish().unwrap();
    let ms = Duration::from_millis;
    let captured: Vec<_> = packets(&file)
        .iter()
        .map(|(at, tap, _)| (*at, *tap))
        .collect();
    // Packets are sent at 0, 6 and 12 ms, and the second is lost in the channel; the others are
    // received at 9 and 21 ms.
    let expected = [(ms(0), 0), (ms(6), 0), (ms(9), 1), (ms(12), 0), (ms(21), 1)];
    assert_eq!(captured, expected);
    let (_, _, first) = &packets(&file)[0];
    assert_eq!(first.len(), 1500);
    assert_eq!(first[..4], [0x45, 0, 0x05, 0xdc]);
    assert_eq!(first[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
}

#[test]
fn a_capture_of_one_way_traffic_holds_nothing_back_but_the_queue() {
    // One packet is sent per millisecond, over a link on which each takes 80 microseconds.
    let direction = DirectionConfig::new(10_000_000, MS);
    let mut line = Line::new(1, vec![direction], every(MS, 1000, 80));
    let file = Shared::default();
    let interfaces = [(line.nodes[0], line.links[0])];
    line.world
        .capture(Box::new(file.clone()), &interfaces)
        .unwrap();
    let mut line = line.run(2 * SECOND);
    assert_eq!(packets(&file).len(), 999);
    line.world.finish().unwrap();
    assert_eq!(packets(&file).len(), 1000);
}

/// A world with UDP over both address families, and its capture at the sink's interface.
fn udp_capture() -> (World, Shared) {
    let directions = vec![
        DirectionConfig::instant(MS),
        DirectionConfig::new(1_000_000, MS),
    ];
    let (topology, nodes, links) = chain(directions);
    let (source, destination) = (nodes[0], nodes[2]);
    let paths = [AddressFamily::V4, AddressFamily::V6].map(|family| {
        let address = |node| topology.addresses(node, family).next().unwrap();
        Path::new(address(source), address(destination))
    });
    let mut world = World::new(topology, Seed::default()).unwrap();
    for (path, port) in paths.into_iter().zip([4000, 6000]) {
        let config = UdpSourceConfig {
            path,
            source_port: port,
            destination_port: port + 1,
        };
        let workload = Cbr::new(80_000, 101).unwrap().limited_to(10);
        let at = Attachment::new(source, ip::UDP, port);
        world.attach(at, UdpSource::new(config, workload)).unwrap();
        let at = Attachment::new(destination, ip::UDP, port + 1);
        world.attach(at, UdpSink::new()).unwrap();
    }
    let file = Shared::default();
    let interfaces = [(destination, links[1])];
    world.capture(Box::new(file.clone()), &interfaces).unwrap();
    world.run_until(SECOND).unwrap();
    world.finish().unwrap();
    (world, file)
}

#[test]
fn tshark_finds_nothing_wrong() {
    let (_world, file) = udp_capture();
    assert_eq!(packets(&file).len(), 20);
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("tshark is not installed; the capture was only read back by pcap-file");
        return;
    }
    let path = std::env::temp_dir().join(format!("anabranch-sim-{}.pcapng", std::process::id()));
    std::fs::write(&path, &*file.0.borrow()).unwrap();
    let output = Command::new("tshark")
        .args([
            "-o",
            "ip.check_checksum:TRUE",
            "-o",
            "udp.check_checksum:TRUE",
            "-r",
        ])
        .arg(&path)
        .args(["-T", "fields", "-E", "separator=,"])
        .args([
            "-e",
            "ip.checksum.status",
            "-e",
            "udp.checksum.status",
            "-e",
            "udp.length",
        ])
        .args([
            "-e",
            "_ws.expert.message",
            "-e",
            "_ws.malformed",
            "-e",
            "frame.time_relative",
        ])
        .output()
        .unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), 20);
    let good = |line: &&&str| line.starts_with("1,1,109,,,") || line.starts_with(",1,109,,,");
    let wrong: Vec<_> = lines.iter().filter(|line| !good(line)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    // The packets of the two families are sent 1 ms apart. They have 129 and 149 bytes at 1 Mbit/s,
    // so they arrive 1,192 microseconds apart.
    assert!(lines[1].ends_with(",0.001192000"), "{}", lines[1]);
}

#[test]
fn a_writer_that_fails_is_reported_at_the_end_and_stops_nothing() {
    /// A writer that accepts a limited number of bytes.
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut line = Line::new(1, vec![DirectionConfig::instant(0)], burst(0, 5, 1480));
    let interface = [(line.nodes[1], line.links[0])];
    let good = Shared::default();
    line.world
        .capture(Box::new(Full(2000)), &interface)
        .unwrap();
    line.world
        .capture(Box::new(good.clone()), &interface)
        .unwrap();
    let mut line = line.run(SECOND);
    let error = line.world.finish().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(line.arrivals().len(), 5);
    assert_eq!(packets(&good).len(), 5);
    let refused = line.world.capture(Box::new(Full(3)), &interface);
    assert!(matches!(refused, Err(CaptureError::Io(_))));
    let nowhere = [
        (line.nodes[0], line.links[0]),
        (line.nodes[1], line.links[0]),
    ];
    line.world.capture(Box::new(io::sink()), &nowhere).unwrap();
}
