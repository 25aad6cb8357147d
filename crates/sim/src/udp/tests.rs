//! Tests of the UDP header against a known datagram, and of the agents over a link that corrupts
//! packets.

use anabranch_transport::{Ecn, Path};
use bytes::{Bytes, BytesMut};

use super::*;
use crate::agent::{Agent, Attachment};
use crate::ids::AddressFamily;
use crate::ip::UDP;
use crate::link::{DirectionConfig, Impairments, LinkConfig};
use crate::rng::{Probability, Seed};
use crate::topology::Topology;
use crate::workload::Cbr;
use crate::world::World;

fn path(local: &str, remote: &str) -> Path {
    Path::new(local.parse().unwrap(), remote.parse().unwrap())
}

#[test]
fn the_checksum_of_a_datagram_worked_out_by_hand() {
    // Pseudo header 10.0.0.1, 10.0.0.2, 17, 24: 0a00+0001+0a00+0002+0011+0018 = 142c. The words of
    // the header are 1234, 5678, 0018 and 0, with the sum 68c4. The stamp in the payload, sequence
    // number 1 and time 2, adds 0003. The sum is 7cf3, and its complement 830c.
    let mut out = BytesMut::new();
    header::write(
        &mut out,
        path("10.0.0.1", "10.0.0.2"),
        [0x1234, 0x5678],
        [1, 2],
        16,
    );
    assert_eq!(out[..8], [0x12, 0x34, 0x56, 0x78, 0, 24, 0x83, 0x0c]);
    assert_eq!(out.len(), 24);
    let back = path("10.0.0.2", "10.0.0.1");
    assert!(header::verify(back, &out));
    assert!(!header::verify(back, &out[..23]));
    assert!(!header::verify(path("10.0.0.2", "10.0.0.3"), &out));
}

#[test]
fn payloads_of_every_small_size_verify_over_both_families() {
    for payload in 0..40 {
        for (there, back) in [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")] {
            let mut out = BytesMut::new();
            let ports = [u16::MAX, 40_000];
            header::write(&mut out, path(there, back), ports, [u64::MAX, 77], payload);
            assert_eq!(out.len(), 8 + payload);
            assert!(
                header::verify(path(back, there), &out),
                "{payload} bytes to {back}"
            );
        }
    }
}

#[test]
fn a_missing_checksum_is_right_over_ipv4_only() {
    let datagram = [0, 1, 0, 2, 0, 8, 0, 0];
    assert!(header::verify(path("10.0.0.1", "10.0.0.2"), &datagram));
    assert!(!header::verify(path("fd00::1", "fd00::2"), &datagram));
}

#[test]
fn a_sink_survives_anything() {
    let mut sink = UdpSink::new();
    let here = path("10.0.0.1", "10.0.0.2");
    for len in 0..30 {
        sink.handle_datagram(5, here, Ecn::NotEct, Bytes::from(vec![0xff; len]));
    }
    assert_eq!((sink.stats().received, sink.stats().corrupted), (0, 30));
    assert_eq!(sink.stats().mean_one_way_delay(), None);
}

#[test]
fn every_flipped_bit_is_noticed_and_delays_are_measured() {
    let mut topology = Topology::new();
    let a = topology.add_node("a").unwrap();
    let b = topology.add_node("b").unwrap();
    let corruption = Probability::new(0.5).unwrap();
    let impairments = Impairments {
        corruption,
        ..Impairments::default()
    };
    // A datagram has 128 bytes on the wire, which take 1.024 ms.
    let forward = DirectionConfig::new(1_000_000, 4_000_000).with_impairments(impairments);
    let config = LinkConfig {
        name: "link".into(),
        between: [a, b],
        forward,
        backward: DirectionConfig::instant(0),
    };
    topology.add_link(config).unwrap();
    let address = |node| topology.addresses(node, AddressFamily::V4).next().unwrap();
    let config = UdpSourceConfig {
        path: Path::new(address(a), address(b)),
        source_port: 1,
        destination_port: 2,
    };
    let mut world = World::new(topology, Seed::new(2, 0)).unwrap();
    // The sink receives on every port of b, so only the checksum can detect a flipped bit in a
    // port.
    let everything = crate::Binding {
        address: None,
        port: None,
        remote_port: None,
    };
    let at = Attachment {
        bindings: vec![everything],
        ..Attachment::new(b, UDP, 2)
    };
    let sink = world.attach(at, UdpSink::new()).unwrap();
    let workload = Cbr::new(80_000, 100).unwrap();
    let at = Attachment::new(a, UDP, 1)
        .starting(7)
        .stopping(10_000_000_000);
    let source = world.attach(at, UdpSource::new(config, workload)).unwrap();
    world.run_until(20_000_000_000).unwrap();
    let sent = world.agent::<UdpSource>(source).unwrap().sent();
    assert_eq!(sent, 1000);
    let stats = *world.agent::<UdpSink>(sink).unwrap().stats();
    let link = world.topology().link("link").unwrap();
    let on_link = world
        .link_stats(link, crate::LinkDirection::Forward)
        .unwrap();
    assert_eq!(stats.corrupted, on_link.corrupted);
    assert!((420..580).contains(&stats.corrupted), "{}", stats.corrupted);
    assert_eq!(stats.received + stats.corrupted, 1000);
    assert_eq!((stats.delay_min, stats.delay_max), (5_024_000, 5_024_000));
    assert_eq!(stats.mean_one_way_delay(), Some(5_024_000.0));
    assert_eq!(stats.bytes, stats.received * 100);
    assert_eq!(stats.late, 0);
}
