//! Tests of path MTU discovery (RFC 9260 §7.3, RFC 8899): the path MTU should be found, black holes
//! should be detected, and chunks that were fragmented for larger packets should still arrive.

use crate::common;
use crate::icmp::quoted;

use std::cell::Cell;
use std::rc::Rc;

use anabranch_sctp::path::PathId;
use anabranch_sctp::{
    AssociationId, AssociationState, Authentication, ChunkTypes, Config, Icmp, Profile,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::kind;
use bytes::Bytes;
use common::random::Random;
use common::{A, Fate, Shot, World, Z, address};

/// Length of the IPv4 header of an SCTP packet.
const IP: usize = 20;

/// MTU of the pipe, and the packets that were larger.
#[derive(Clone, Default)]
struct Pipe {
    mtu: Rc<Cell<usize>>,
    swallowed: Rc<Cell<usize>>,
    fragmented: Rc<Cell<usize>>,
}

fn discovering() -> Config {
    Config::default().with(|it| it.path_mtu_discovery = true)
}

fn world(config: Config, mtu: usize) -> (World, [AssociationId; 2], Pipe) {
    let mut world = World::new(config);
    let pipe = Pipe::default();
    pipe.mtu.set(mtu);
    let narrow = pipe.clone();
    world.fate = Box::new(move |shot| {
        if shot.bytes.len() + IP <= narrow.mtu.get() {
            Fate::Deliver
        } else if shot.may_fragment {
            narrow.fragmented.set(narrow.fragmented.get() + 1);
            Fate::Deliver
        } else {
            narrow.swallowed.set(narrow.swallowed.get() + 1);
            Fate::Drop
        }
    });
    let (a, z) = world.established();
    (world, [a, z], pipe)
}

fn packet_of(world: &World, host: usize, id: AssociationId) -> usize {
    let association = world.endpoints[host].association(id).expect("known");
    association.paths().get(PathId(0)).max_packet()
}

/// Size of the largest packet that `A` has sent so far, including its IP header.
fn largest(world: &World) -> usize {
    let mine = world.shots.iter().filter(|shot| shot.from == A);
    mine.map(|shot| shot.bytes.len() + IP).max().unwrap_or(0)
}

fn probes(world: &World, from: usize) -> Vec<(Nanos, usize)> {
    let is_probe = |shot: &&Shot| shot.from == from && shot.chunks == "HEARTBEAT, PAD";
    let probes = world.shots.iter().filter(is_probe);
    probes.map(|it| (it.at, it.bytes.len() + IP)).collect()
}

#[test]
fn the_interfaces_mtu_is_found_in_one_round_trip_and_nothing_is_probed_when_off() {
    let mut config = discovering();
    let mut world = World::new(config.clone());
    let a = world.connect();
    let up = world.now + 40 * MILLISECOND;
    world.run_until(up);
    assert_eq!(packet_of(&world, A, a), 1200 - IP);
    world.run_until(up + 20 * MILLISECOND);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
    let sizes: Vec<usize> = probes(&world, A).iter().map(|it| it.1).collect();
    assert_eq!(sizes, [1500]);
    let association = world.endpoints[A].association(a).expect("known");
    assert_eq!(association.stats().control.pmtu_probes, 1);
    assert_eq!(association.status().fragmentation_point, 1500 - IP - 28);
    config.path_mtu_discovery = false;
    let (world, [a, _], _) = self::world(config, 1500);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
    assert_eq!(probes(&world, A), []);
}

/// The path MTU is 1,400 bytes. The search should send three probes of 1,500 bytes, one per second,
/// and then continue with a binary search. Meanwhile data should be transferred without loss.
#[test]
fn a_smaller_mtu_is_found_with_the_data() {
    let (mut world, [a, z], pipe) = world(discovering(), 1400);
    let mut received = 0;
    for _ in 0..150 {
        world.send(A, a, 0, vec![7; 20_000]);
        world.run_for(SECOND / 10);
        received += world.receive_all(Z, z).len();
    }
    assert_eq!(packet_of(&world, A, a), 1400 - IP);
    assert_eq!((received, pipe.fragmented.get()), (150, 0));
    let lost: Vec<usize> = probes(&world, A)
        .iter()
        .map(|it| it.1)
        .filter(|size| *size > 1400)
        .collect();
    // Two of the three probes of 1,500 bytes were sent before the log was cleared.
    assert_eq!(lost, [1500, 1500, 1424, 1424, 1424, 1404, 1404, 1404]);
    assert_eq!(
        pipe.swallowed.get(),
        2 * 9,
        "and as many from the other side"
    );
    let association = world.endpoints[A].association(a).expect("known");
    let sent = association.stats().sender;
    assert_eq!((sent.timeouts, sent.chunks_retransmitted), (0, 0));
    assert_eq!(association.paths().get(PathId(0)).error_count(), 0);
}

/// The path MTU falls from 1,500 to 1,300 bytes without an ICMP message. After a timeout the sender
/// should compare small packets with large ones, and should use small packets before three RTOs
/// have passed. Data that is already in chunks for larger packets should be fragmented by IP.
/// Afterwards the search should restart.
#[test]
fn a_black_hole_is_left_and_all_arrives() {
    let (mut world, [a, z], pipe) = world(discovering(), 1500);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
    pipe.mtu.set(1300);
    world.send(A, a, 0, vec![1; 50_000]);
    world.run_for(2 * SECOND);
    assert_eq!(packet_of(&world, A, a), 1500 - IP, "one timeout");
    let alone = world
        .shots
        .iter()
        .filter(|it| it.from == A && it.chunks == "HEARTBEAT");
    assert_eq!((probes(&world, A).len(), alone.count()), (3, 3), "pairs");
    world.run_for(SECOND);
    assert_eq!(packet_of(&world, A, a), 1200 - IP, "3 RTO");
    world.run_for(57 * SECOND);
    let sizes: Vec<usize> = world
        .receive_all(Z, z)
        .iter()
        .map(|it| it.payload.len())
        .collect();
    assert_eq!(sizes, [50_000]);
    assert!(pipe.fragmented.get() > 0, "chunks of 1,452 bytes");
    assert_eq!(packet_of(&world, A, a), 1300 - IP);
    let fragmented = pipe.fragmented.get();
    world.send(A, a, 0, vec![1; 50_000]);
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    assert_eq!(
        pipe.fragmented.get(),
        fragmented,
        "new messages are cut smaller"
    );
    assert_eq!(world.state(A, a), AssociationState::Established);
    // After ten minutes the path MTU is 1,500 bytes again.
    pipe.mtu.set(1500);
    world.run_for(610 * SECOND);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
}

/// The network reports its MTU by ICMP. New packets should have this size at once, and data in
/// flight should be retransmitted at once.
#[test]
fn packet_too_big_is_taken_at_its_word() {
    for config in [discovering(), Config::default()] {
        let (mut world, [a, z], pipe) = world(config, 1500);
        pipe.mtu.set(1300);
        world.send(A, a, 0, vec![1; 5_000]);
        world.run_for(5 * MILLISECOND);
        assert_eq!(pipe.swallowed.get(), 3);
        let now = world.now;
        let cwnd_of = |world: &World| {
            let association = world.endpoints[A].association(a).expect("known");
            association.paths().get(PathId(0)).cwnd()
        };
        let (cwnd, before) = (cwnd_of(&world), packet_of(&world, A, a));
        let packet = world.shot(A, "DATA");
        let mut lower = |host, mtu| {
            let quoted = quoted(address(host, 0), 132, &packet);
            let icmp = Icmp {
                v6: false,
                kind: 3,
                code: 4,
                mtu,
                quoted: &quoted,
            };
            world.endpoints[A].handle_icmp(now, &icmp);
            packet_of(&world, A, a)
        };
        assert_eq!(lower(A, 1300), before, "nobody at this address");
        assert_eq!(lower(Z, 68), before, "nobody's MTU");
        assert_eq!(lower(Z, 1300), 1300 - IP);
        assert_eq!(lower(Z, 1300), 1300 - IP, "known");
        assert_eq!(lower(Z, 1400), 1300 - IP, "larger than known");
        assert_eq!(cwnd_of(&world), cwnd);
        world.drain(A);
        world.run_for(200 * MILLISECOND);
        assert_eq!(world.receive_all(Z, z).len(), 1, "without a timeout");
        let association = world.endpoints[A].association(a).expect("known");
        assert_eq!(association.stats().sender.timeouts, 0);
        assert!(pipe.fragmented.get() > 0);
        world.forget();
        world.send(A, a, 0, vec![1; 5_000]);
        world.run_for(SECOND);
        assert_eq!(largest(&world), 1300);
        assert_eq!(world.receive_all(Z, z).len(), 1);
    }
}

/// A temporary outage should not reduce the packet size, neither at once nor later.
#[test]
fn an_outage_does_not_end_the_search() {
    let (mut world, [a, _], pipe) = world(discovering(), 1500);
    pipe.mtu.set(0);
    world.send(A, a, 0, vec![1; 5_000]);
    world.run_for(20 * SECOND);
    assert_eq!(
        packet_of(&world, A, a),
        1500 - IP,
        "small ones are lost, too"
    );
    pipe.mtu.set(1500);
    world.run_for(60 * SECOND);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
}

/// Goodput in kB within 75 s, and the number of times that the packet size was reduced. The pipe
/// has this loss rate in both directions.
fn lossy(seed: u64, permille: u64, discovery: bool) -> (f64, u32) {
    let config = Config::default().with(|it| {
        it.path_mtu_discovery = discovery;
        (it.receive_buffer, it.send_buffer) = (1_000_000, 1_000_000);
        (it.path_max_retrans, it.association_max_retrans) = (100, 100);
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    world.narrate = false;
    let mut random = Random::of(seed << 16 | permille);
    world.fate = Box::new(move |_| match random.below(1_000) < permille {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let (mut bytes, mut falls, mut size) = (0, 0, 0);
    for _ in 0..1_500 {
        while world.endpoints[A]
            .association(a)
            .expect("up")
            .send_buffer()
            .unsent()
            < 200_000
        {
            world.send(A, a, 0, vec![0; 10_000]);
        }
        world.run_for(50 * MILLISECOND);
        let read = world.receive_all(Z, z);
        bytes += read.iter().map(|it| it.payload.len()).sum::<usize>();
        let before = std::mem::replace(&mut size, packet_of(&world, A, a));
        falls += u32::from(size < before);
    }
    (bytes as f64 / 1e3, falls)
}

/// Losses that do not depend on the packet size should not be mistaken for a black hole. The
/// goodput with and without discovery, averaged over several seeds, should differ by less than
/// twice the standard error of the difference.
#[test]
fn loss_of_packets_whatever_their_size_is_no_black_hole() {
    const SEEDS: u64 = 12;
    for permille in [10, 70, 130] {
        let runs = (0..SEEDS).map(|seed| [true, false].map(|it| lossy(seed, permille, it)));
        let runs: Vec<_> = runs.collect();
        let falls: u32 = runs.iter().map(|it| it[0].1).sum();
        let differences: Vec<f64> = runs.iter().map(|it| it[0].0 - it[1].0).collect();
        let count = SEEDS as f64;
        let mean = differences.iter().sum::<f64>() / count;
        let square = differences
            .iter()
            .map(|it| (it - mean).powi(2))
            .sum::<f64>();
        let error = (square / (count - 1.0) / count).sqrt();
        println!(
            "{permille} of 1000, seeds 0 to {SEEDS}: {mean:.0} ± {error:.0} kB, {falls} falls"
        );
        assert!(mean.abs() <= 2.2 * error, "{permille}: {differences:?}");
        assert!(falls <= 2, "{permille}: {falls}");
    }
}

/// Small messages arrive and large ones are lost. T3-rtx therefore never expires twice in
/// succession. The black hole should be detected nevertheless, and as soon as in other cases.
#[test]
fn a_black_hole_is_found_while_small_messages_pass() {
    for rack in [false, true] {
        let (mut world, [a, z], pipe) = world(discovering().with(|it| it.rack = rack), 1500);
        pipe.mtu.set(1300);
        world.send(A, a, 1, vec![1; 1_400]);
        for _ in 0..32 {
            world.send(A, a, 0, vec![2; 50]);
            world.run_for(100 * MILLISECOND);
        }
        assert_eq!(
            packet_of(&world, A, a),
            1200 - IP,
            "rack {rack}: 3 RTO and more"
        );
        world.run_for(SECOND);
        assert_eq!(world.receive_all(Z, z).len(), 33, "rack {rack}");
    }
}

/// A path MTU below the base size should be found by a search upwards from the minimum.
#[test]
fn a_path_below_the_base_size_works() {
    let (mut world, [a, z], pipe) = world(discovering(), 1000);
    world.send(A, a, 0, vec![1; 30_000]);
    world.run_for(120 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    assert_eq!(packet_of(&world, A, a), 1000 - IP);
    assert!(pipe.fragmented.get() > 0);
}

/// A packet with COOKIE ECHO and DATA is too large for the path. After a timeout the COOKIE ECHO
/// should be sent without DATA (RFC 9260 §5.1 C).
#[test]
fn a_cookie_echo_arrives_where_its_data_is_too_large() {
    let config = discovering().with(|it| it.data_with_cookie_echo = true);
    let mut world = World::new(config);
    world.fate = Box::new(|shot| {
        if shot.bytes.len() + IP <= 800 || shot.may_fragment {
            Fate::Deliver
        } else {
            Fate::Drop
        }
    });
    let a = world.connect();
    world.send(A, a, 0, vec![1; 700]);
    world.send(A, a, 0, vec![2; 700]);
    world.run_for(120 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let z = world.only_association(Z);
    assert_eq!(world.receive_all(Z, z).len(), 2);
}

/// Probes may be lost because of their size, so unanswered probes should not count as errors of the
/// path. An answer should count only once.
#[test]
fn an_old_answer_to_a_probe_means_nothing() {
    let mut world = World::new(discovering());
    world.fate = Box::new(|shot| match (shot.from, &shot.chunks[..]) {
        (A, "HEARTBEAT, PAD") => Fate::Late(3 * SECOND),
        _ => Fate::Deliver,
    });
    let a = world.connect();
    world.run_for(60 * SECOND);
    assert_eq!(packet_of(&world, A, a), 1200 - IP, "no answer came in time");
    let discards = world.endpoints[A].discards();
    assert!(discards.of(anabranch_sctp::DiscardReason::HeartbeatNonce) > 2);
    let association = world.endpoints[A].association(a).expect("known");
    assert_eq!(association.paths().get(PathId(0)).error_count(), 0);
}

/// Two paths have different MTUs. With every profile except that of RSCTP, messages should be
/// fragmented for the smaller MTU.
#[test]
fn the_smallest_of_several_paths_rules_and_rsctp_does_not_probe() {
    let homes = |host| vec![address(host, 0), address(host, 1)];
    let config = |host| discovering().with(|it| it.addresses = homes(host));
    let mut world = World::with_configs(config(A), config(Z));
    world.fate = Box::new(|shot| {
        let second = shot.path.remote == address(1 - shot.from, 1);
        let mtu = if second { 1300 } else { 1500 };
        match shot.bytes.len() + IP > mtu && !shot.may_fragment {
            true => Fate::Drop,
            false => Fate::Deliver,
        }
    });
    let (a, _) = world.established();
    world.run_for(60 * SECOND);
    let association = world.endpoints[A].association(a).expect("known");
    let sizes: Vec<usize> = association
        .paths()
        .iter()
        .map(|it| it.1.max_packet() + IP)
        .collect();
    assert_eq!(sizes, [1500, 1300]);
    assert_eq!(association.status().fragmentation_point, 1300 - IP - 28);
    let mut profile = Profile::rfc9260();
    profile.set("rsctp", "true").expect("a switch");
    let config = discovering().with(|it| it.profile = profile);
    let (world, [a, _], _) = self::world(config, 1500);
    assert_eq!(packet_of(&world, A, a), 1500 - IP);
    assert_eq!(probes(&world, A), []);
}

/// Tests the base size over IPv6 with UDP encapsulation, and a large message in packets of a jumbo
/// interface.
#[test]
fn a_jumbo_interface_is_used_where_the_path_is_jumbo() {
    let config = discovering().with(|it| {
        it.mtu = 9000;
        it.receive_buffer = 200_000;
    });
    let (mut world, [a, z], _) = world(config, 9000);
    assert_eq!(packet_of(&world, A, a), 9000 - IP);
    world.forget();
    world.send(A, a, 0, Bytes::from(vec![3; 100_000]));
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
    assert_eq!(largest(&world), 9000);
}

/// The peer accepts only authenticated HEARTBEATs. A probe should have its intended size including
/// the AUTH chunk.
#[test]
fn a_probe_behind_an_auth_has_its_size() {
    let config = discovering().with(|it| {
        it.authentication = Authentication::On;
        it.authenticated_chunks = Some(ChunkTypes::of(&[kind::HEARTBEAT]));
    });
    let (mut world, [a, _], _) = world(config, 1_400);
    world.run_for(30 * SECOND);
    assert_eq!(packet_of(&world, A, a), 1_400 - IP);
    let is_probe = |shot: &&Shot| shot.from == A && shot.chunks.ends_with("HEARTBEAT, PAD");
    let probes = world.shots.iter().filter(is_probe);
    let sizes: Vec<usize> = probes.clone().map(|it| it.bytes.len() + IP).collect();
    assert!(
        sizes.contains(&1_500) && sizes.contains(&1_400),
        "{sizes:?}"
    );
    for probe in probes {
        assert_eq!(probe.bytes[12], kind::AUTH, "{}", probe.chunks);
    }
}
