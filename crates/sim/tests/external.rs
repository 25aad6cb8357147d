//! Tests of external packets: whole IP datagrams of real programs cross the world unchanged.

use crate::common;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_sim::loss::Ordinals;
use anabranch_sim::queue::{Red, RedConfig};
use anabranch_sim::{
    AddressFamily, DirectionConfig, DropReason, EgressDatagram, LinkConfig, NodeId, PlacedLoss,
    RejectedDatagram, Seed, Topology, World,
};
use anabranch_transport::Nanos;
use bytes::Bytes;
use common::{MS, SECOND};

const UDP: u8 = 17;
const ECT0: u8 = 0b10;
const CE: u8 = 0b11;

/// host --first-- router --second-- server; each link has 1 Mbit/s and 10 ms.
struct Chain {
    world: World,
    host: NodeId,
    server: NodeId,
}

impl Chain {
    fn new(change: impl FnOnce(&mut DirectionConfig)) -> Self {
        let mut topology = Topology::new();
        let [host, router, server] =
            ["host", "router", "server"].map(|name| topology.add_node(name).unwrap());
        let link = || DirectionConfig::new(1_000_000, 10 * MS);
        let mut second = link();
        change(&mut second);
        for (name, between, forward) in [
            ("first", [host, router], link()),
            ("second", [router, server], second),
        ] {
            let backward = link();
            let name = name.to_owned();
            let link = LinkConfig {
                name,
                between,
                forward,
                backward,
            };
            topology.add_link(link).unwrap();
        }
        let mut world = World::new(topology, Seed::new(1, 0)).unwrap();
        world.open(host).unwrap();
        world.open(server).unwrap();
        Self {
            world,
            host,
            server,
        }
    }

    fn address(&self, node: NodeId, family: AddressFamily) -> IpAddr {
        let mut all = self.world.topology().addresses(node, family);
        all.next().unwrap()
    }

    /// A datagram from the host to the server.
    fn datagram(&self, family: AddressFamily, shape: Shape) -> Bytes {
        let ends = [self.host, self.server].map(|node| self.address(node, family));
        datagram(ends, shape)
    }

    fn all(&mut self, until: Nanos) -> Vec<EgressDatagram> {
        self.world.run_until(until).unwrap();
        self.world.packet_counts().check().unwrap();
        std::iter::from_fn(|| self.world.poll_egress()).collect()
    }
}

#[derive(Clone, Copy)]
struct Shape {
    payload: usize,
    hops: u8,
    class: u8,
    may_fragment: bool,
    fragment_offset: u16,
}

const SHAPE: Shape = Shape {
    payload: 500,
    hops: 64,
    class: 0,
    may_fragment: false,
    fragment_offset: 0,
};

/// The Internet checksum, implemented independently of the simulator.
fn checksum(bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    let mut sum: u32 = bytes.chunks(2).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn datagram([from, to]: [IpAddr; 2], shape: Shape) -> Bytes {
    let mut out = Vec::new();
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let flags = if shape.may_fragment { 0 } else { 0x4000 } | shape.fragment_offset;
            out.extend_from_slice(&[0x45, shape.class]);
            out.extend_from_slice(&((20 + shape.payload) as u16).to_be_bytes());
            out.extend_from_slice(&[0xab, 0xcd]);
            out.extend_from_slice(&flags.to_be_bytes());
            out.extend_from_slice(&[shape.hops, UDP, 0, 0]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
            let sum = checksum(&out).to_be_bytes();
            out[10..12].copy_from_slice(&sum);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            out.extend_from_slice(&[0x60 | shape.class >> 4, shape.class << 4 | 3, 0, 7]);
            out.extend_from_slice(&(shape.payload as u16).to_be_bytes());
            out.extend_from_slice(&[UDP, shape.hops]);
            out.extend_from_slice(&from.octets());
            out.extend_from_slice(&to.octets());
        }
        _ => panic!("one family"),
    }
    let payload = (0..shape.payload).map(|number| number as u8);
    out.extend(payload);
    out.into()
}

#[test]
fn a_datagram_takes_its_size_on_the_wire_and_comes_out_as_a_router_leaves_it() {
    for (family, header) in [(AddressFamily::V4, 20), (AddressFamily::V6, 40)] {
        let mut chain = Chain::new(|_| {});
        let sent = chain.datagram(family, SHAPE);
        chain.world.enter(chain.host, sent.clone()).unwrap();
        let left = chain.all(SECOND);
        let [one] = &left[..] else {
            panic!("{left:?}");
        };
        assert_eq!(one.node, chain.server);
        // Each of the two links takes 8 us per byte, and 10 ms.
        let bytes = (header + SHAPE.payload) as Nanos;
        assert_eq!(one.at, 2 * (bytes * 8_000 + 10 * MS));
        // One router on the path has decremented the hop limit.
        let expected = chain.datagram(family, Shape { hops: 63, ..SHAPE });
        assert_eq!(one.datagram, expected);
    }
}

#[test]
fn a_list_takes_the_packets_that_it_names_and_fragments_pass() {
    let list = || Ordinals::new([1]);
    let mut chain = Chain::new(|second| second.losses.push(PlacedLoss::before_queue(list())));
    // Three fragments of one datagram from a host.
    for offset in [0x2000, 0x2000 | 60, 120] {
        let shape = Shape {
            may_fragment: true,
            fragment_offset: offset,
            ..SHAPE
        };
        let part = chain.datagram(AddressFamily::V4, shape);
        chain.world.enter(chain.host, part).unwrap();
    }
    let left = chain.all(SECOND);
    let offsets: Vec<u16> = left
        .iter()
        .map(|it| u16::from_be_bytes([it.datagram[6], it.datagram[7]]))
        .collect();
    assert_eq!(offsets, [0x2000, 120]);
    assert_eq!(
        chain.world.packet_counts().dropped.count(DropReason::Loss),
        1
    );
}

#[test]
fn a_queue_marks_real_packets_and_their_checksum_stays_right() {
    for family in [AddressFamily::V4, AddressFamily::V6] {
        let mut chain = Chain::new(|second| {
            let red = RedConfig {
                min_th: 1,
                max_th: 2,
                max_p: 1.0,
                w_q: 1.0,
                gentle: true,
                ecn: true,
                ..RedConfig::default()
            };
            *second = DirectionConfig::new(100_000, 10 * MS).with_queue(Red::new(red).unwrap());
        });
        let class = 0xb8 | ECT0;
        for _ in 0..4 {
            let sent = chain.datagram(family, Shape { class, ..SHAPE });
            chain.world.enter(chain.host, sent).unwrap();
        }
        let left = chain.all(10 * SECOND);
        assert_eq!(left.len(), 4, "marked and not dropped");
        let class_of = |it: &EgressDatagram| match family {
            AddressFamily::V4 => it.datagram[1],
            AddressFamily::V6 => it.datagram[0] << 4 | it.datagram[1] >> 4,
        };
        let classes: Vec<u8> = left.iter().map(class_of).collect();
        assert!(
            classes.iter().all(|it| it >> 2 == class >> 2),
            "{classes:?}"
        );
        assert_eq!(classes[0] & CE, ECT0, "the first finds the queue empty");
        assert_eq!(classes[3] & CE, CE, "the last finds three before it");
        if family == AddressFamily::V4 {
            let headers = left.iter().map(|it| checksum(&it.datagram[..20]));
            assert!(headers.into_iter().all(|sum| sum == 0));
        }
    }
}

/// Fields of an ICMP error: type, code, second word, and quoted datagram.
fn error(left: &EgressDatagram, family: AddressFamily) -> (u8, u8, u32, Bytes) {
    let header = match family {
        AddressFamily::V4 => 20,
        AddressFamily::V6 => 40,
    };
    let message = left.datagram.slice(header..);
    match family {
        AddressFamily::V4 => {
            assert_eq!(left.datagram[9], 1);
            assert_eq!(checksum(&left.datagram[..20]), 0);
            assert_eq!(checksum(&message), 0);
        }
        AddressFamily::V6 => {
            assert_eq!(left.datagram[6], 58);
            let mut pseudo = left.datagram[8..40].to_vec();
            pseudo.extend_from_slice(&(message.len() as u32).to_be_bytes());
            pseudo.extend_from_slice(&[0, 0, 0, 58]);
            pseudo.extend_from_slice(&message);
            assert_eq!(checksum(&pseudo), 0);
        }
    }
    let word = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
    (message[0], message[1], word, message.slice(8..))
}

#[test]
fn routers_answer_with_the_errors_of_icmp() {
    for (family, too_big, no_route, too_far) in [
        (AddressFamily::V4, (3, 4), (3, 0), (11, 0)),
        (AddressFamily::V6, (2, 0), (1, 0), (3, 0)),
    ] {
        // The datagram is too big for the second link.
        let mut chain = Chain::new(|second| second.mtu = Some(1_300));
        let large = Shape {
            payload: 1_400,
            ..SHAPE
        };
        let sent = chain.datagram(family, large);
        chain.world.enter(chain.host, sent).unwrap();
        let left = chain.all(SECOND);
        let [one] = &left[..] else {
            panic!("{left:?}");
        };
        assert_eq!(one.node, chain.host);
        let (kind, code, mtu, quoted) = error(one, family);
        assert_eq!(((kind, code), mtu), (too_big, 1_300));
        // The error quotes the datagram as the router received it.
        let as_there = chain.datagram(family, Shape { hops: 63, ..large });
        assert_eq!(quoted, as_there[..quoted.len()]);
        let largest = if family == AddressFamily::V4 {
            576
        } else {
            1_280
        };
        assert_eq!(one.datagram.len(), largest);
        assert_eq!(
            chain
                .world
                .packet_counts()
                .dropped
                .count(DropReason::TooBig),
            1
        );

        // A datagram of the same size passes if it may be fragmented.
        if family == AddressFamily::V4 {
            let shape = Shape {
                may_fragment: true,
                ..large
            };
            let sent = chain.datagram(family, shape);
            chain.world.enter(chain.host, sent).unwrap();
            assert_eq!(chain.all(2 * SECOND)[0].node, chain.server);
        }

        // The hop limit is one too small, so the error comes from the router's address at the first
        // link.
        let sent = chain.datagram(family, Shape { hops: 1, ..SHAPE });
        chain.world.enter(chain.host, sent).unwrap();
        let left = chain.all(3 * SECOND);
        assert_eq!(left.len(), 1);
        let (kind, code, ..) = error(&left[0], family);
        assert_eq!((kind, code), too_far);
        let router = chain.world.topology().node("router").unwrap();
        let expected = chain.address(router, family);
        let source: IpAddr = match family {
            AddressFamily::V4 => {
                Ipv4Addr::from(*left[0].datagram[12..16].first_chunk::<4>().unwrap()).into()
            }
            AddressFamily::V6 => {
                Ipv6Addr::from(*left[0].datagram[8..24].first_chunk::<16>().unwrap()).into()
            }
        };
        assert_eq!(source, expected);

        // No host has the destination address, so the first node sends the error immediately.
        let nobody = match family {
            AddressFamily::V4 => "10.9.9.9".parse().unwrap(),
            AddressFamily::V6 => "fd09::9".parse().unwrap(),
        };
        let host = chain.address(chain.host, family);
        let sent = datagram([host, nobody], SHAPE);
        chain.world.enter(chain.host, sent).unwrap();
        let left = chain.all(3 * SECOND);
        let (kind, code, ..) = error(&left[0], family);
        assert_eq!((kind, code), no_route);
        // No error is sent about another error, nor about a later fragment.
        let answer = left[0].datagram.clone();
        let mut about = answer.to_vec();
        let mut far = about.clone();
        if family == AddressFamily::V4 {
            about[12..16].copy_from_slice(&answer[16..20]);
            about[16..20].copy_from_slice(&[10, 9, 9, 9]);
            far.clone_from(&sent_fragment(host));
        } else {
            let (source, destination) = (8..24, 24..40);
            about[source].copy_from_slice(&answer[24..40]);
            about[destination].copy_from_slice(&"fd09::9".parse::<Ipv6Addr>().unwrap().octets());
            far.clone_from(&about);
        }
        for silent in [about, far] {
            chain.world.enter(chain.host, silent.into()).unwrap();
            assert!(chain.all(4 * SECOND).is_empty());
        }
    }
}

/// The second fragment of a datagram to an address without a host.
fn sent_fragment(from: IpAddr) -> Vec<u8> {
    let shape = Shape {
        fragment_offset: 60,
        ..SHAPE
    };
    datagram([from, "10.9.9.9".parse().unwrap()], shape).to_vec()
}

#[test]
fn datagrams_that_no_router_forwards_are_rejected() {
    let mut chain = Chain::new(|_| {});
    let host = chain.address(chain.host, AddressFamily::V4);
    for (to, stray) in [
        ("224.0.0.251", RejectedDatagram::Local),
        ("255.255.255.255", RejectedDatagram::Local),
    ] {
        let sent = datagram([host, to.parse().unwrap()], SHAPE);
        assert_eq!(chain.world.enter(chain.host, sent), Err(stray));
    }
    let v6 = chain.address(chain.host, AddressFamily::V6);
    let sent = datagram([v6, "ff02::16".parse().unwrap()], SHAPE);
    assert_eq!(
        chain.world.enter(chain.host, sent),
        Err(RejectedDatagram::Local)
    );
    for wrong in [&b""[..], b"E", b"no datagram of any version of IP"] {
        let sent = chain.world.enter(chain.host, Bytes::from_static(wrong));
        assert_eq!(sent, Err(RejectedDatagram::Malformed));
    }
    assert_eq!(chain.world.packet_counts().sent, 0);
}

#[test]
fn unclaimed_packets_at_a_closed_node_are_dropped() {
    let mut chain = Chain::new(|_| {});
    let router = chain.world.topology().node("router").unwrap();
    let ends = [chain.host, router].map(|node| chain.address(node, AddressFamily::V4));
    chain
        .world
        .enter(chain.host, datagram(ends, SHAPE))
        .unwrap();
    assert!(chain.all(SECOND).is_empty());
    assert_eq!(
        chain
            .world
            .packet_counts()
            .dropped
            .count(DropReason::NoAgent),
        1
    );
}
