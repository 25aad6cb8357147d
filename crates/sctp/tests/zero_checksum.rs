//! Tests of packets without a checksum (RFC 9653): who may send them, which packets must have a
//! checksum nevertheless, and who accepts packets without one.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, Config, DiscardReason, Profile, ZeroChecksum,
};
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::{Chunk, CookieEcho, Init};
use anabranch_wire::extension::InitParameter;
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::{UnknownAction, checksum};
use bytes::Bytes;
use common::*;

const ANNOUNCED: &[u8] = &[0x80, 0x01, 0, 8, 0, 0, 0, 1];

fn config(zero_checksum: ZeroChecksum) -> Config {
    Config::new(Profile::rfc9260()).with(|it| it.zero_checksum = zero_checksum)
}

fn on() -> Config {
    config(ZeroChecksum::Dtls)
}

fn off() -> Config {
    config(ZeroChecksum::Off)
}

fn is_zero(bytes: &Bytes) -> bool {
    checksum::is_zero(bytes)
}

/// Copies the packet and sets its checksum to zero.
fn without(bytes: &Bytes) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[8..12].fill(0);
    bytes.into()
}

fn parameters_of(bytes: &Bytes) -> Vec<Bytes> {
    let parameters = match chunks_of(bytes).remove(0) {
        Chunk::Init(init) => init.parameters,
        Chunk::InitAck(ack) => ack.0.parameters,
        other => panic!("{other:?}"),
    };
    let whole = |it: Parameter| match it {
        Parameter::Unknown(tlv) => Some(tlv.whole().clone()),
        _ => None,
    };
    let known = parameters.into_iter().map(|it| it.expect("sound"));
    known.filter_map(whole).collect()
}

/// Establishes an association and transfers data. The log of packets is kept.
fn talked(a: Config, z: Config) -> (World, AssociationId, AssociationId) {
    let mut world = World::with_configs(a, z);
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    for (host, id) in [(A, a), (Z, z)] {
        assert_eq!(world.state(host, id), AssociationState::Established);
        world.send(host, id, 0, vec![7; 3_000]);
    }
    world.run_for(SECOND);
    for (host, id) in [(Z, z), (A, a)] {
        assert_eq!(world.receive_all(host, id).len(), 1);
    }
    world.shutdown(A, a);
    world.run_for(SECOND);
    (world, a, z)
}

fn zero_sent(world: &World, host: usize) -> Vec<String> {
    let of_it = world.shots.iter().filter(|it| it.from == host);
    let zero = of_it.filter(|it| is_zero(&it.bytes));
    zero.map(|it| it.chunks.clone()).collect()
}

fn discards(world: &World, host: usize) -> [u64; 2] {
    let discards = world.endpoints[host].discards();
    [DiscardReason::ZeroChecksum, DiscardReason::Checksum].map(|it| discards.of(it))
}

/// §4, §5.1: INIT and INIT ACK should have the parameter with the identifier of DTLS. §5.2: all
/// packets except INIT, INIT ACK and COOKIE ECHO should have no checksum.
#[test]
fn both_agree_and_save_the_checksum() {
    let (world, ..) = talked(on(), on());
    for chunks in [(A, "INIT"), (Z, "INIT ACK")] {
        let announced = parameters_of(&world.shot(chunks.0, chunks.1));
        assert_eq!(announced, [Bytes::from_static(ANNOUNCED)]);
    }
    for shot in &world.shots {
        // An INIT ACK is sent without an association, and therefore has a checksum as well.
        let vital = shot.chunks.starts_with("INIT") || shot.chunks.contains("COOKIE ECHO");
        assert_eq!(is_zero(&shot.bytes), !vital, "{}", shot.chunks);
        assert!(is_zero(&shot.bytes) || checksum::verify(&shot.bytes));
    }
    for chunks in ["DATA", "SACK", "COOKIE ACK", "SHUTDOWN", "SHUTDOWN ACK"] {
        let sent = [zero_sent(&world, A), zero_sent(&world, Z)].concat();
        assert!(sent.iter().any(|it| it == chunks), "{chunks}: {sent:?}");
    }
    assert_eq!([discards(&world, A), discards(&world, Z)], [[0; 2]; 2]);
}

/// §5.2: a COOKIE ECHO should have a checksum even if DATA is bundled with it.
#[test]
fn data_with_a_cookie_echo_is_summed() {
    let mut config = on();
    config.data_with_cookie_echo = true;
    let mut world = World::new(config);
    let a = world.connect();
    world.send(A, a, 0, "with it");
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO, DATA");
    assert!(!is_zero(&echo) && checksum::verify(&echo));
    let association = world.endpoints[A].association(a).expect("known");
    assert!(association.negotiated().zero_checksum);
}

/// §5.2: if the peer has not sent the parameter, every packet should have a checksum. An INIT ACK
/// should have the parameter only if the INIT had it.
#[test]
fn one_end_alone_sends_none_without() {
    for (a, z) in [(on(), off()), (off(), on()), (off(), off())] {
        let announces = a.zero_checksum == ZeroChecksum::Dtls;
        let (world, ..) = talked(a, z);
        assert_eq!(zero_sent(&world, A), [""; 0]);
        assert_eq!(zero_sent(&world, Z), [""; 0]);
        let announced = parameters_of(&world.shot(A, "INIT"));
        assert_eq!(announced.is_empty(), !announces);
        assert!(parameters_of(&world.shot(Z, "INIT ACK")).is_empty());
    }
    // The two high bits of the type mean that an end that does not know the parameter skips it
    // without a report (§4).
    assert_eq!(
        UnknownAction::of_parameter(0x8001),
        UnknownAction {
            stop: false,
            report: false
        }
    );
}

/// An INIT without parameters does not announce that packets without a checksum are accepted. The
/// peer should send checksums, and packets without one should be discarded.
#[test]
fn a_bare_init_announces_nothing() {
    let mut bare = on();
    bare.minimal_init = true;
    let mut world = World::with_configs(bare, on());
    let (a, z) = world.established();
    world.send(Z, z, 0, "x");
    let sent = world.shot(Z, "DATA");
    assert!(!is_zero(&sent));
    let before = discards(&world, A);
    world.inject(A, without(&sent));
    assert_eq!(discards(&world, A), [before[0] + 1, before[1]]);
    assert!(world.receive_all(A, a).is_empty());
}

/// §5.2, §8: an unknown method should be handled like no parameter. A parameter of another length
/// should be skipped like an unknown one.
#[test]
fn another_method_is_not_ours() {
    let parameter = |edmid| {
        let offered = InitParameter::ZeroChecksumAcceptable { edmid };
        offered.to_parameter().expect("short")
    };
    let mut long = ANNOUNCED.to_vec();
    long[3] = 12;
    long.extend([0; 4]);
    let cases = [
        (Parameters::of(&[parameter(0)]), false),
        (Parameters::of(&[parameter(2)]), false),
        (Parameters::from_bytes(long.into()), false),
        (Parameters::of(&[parameter(2), parameter(1)]), true),
    ];
    for (parameters, agrees) in cases {
        let mut world = World::new(on());
        let init = Init {
            initiate_tag: 77,
            a_rwnd: 10_000,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: anabranch_wire::Tsn(5),
            parameters,
        };
        world.inject(Z, packet(A, 0, &[&Chunk::Init(init)]));
        let ack = world.shot(Z, "INIT ACK");
        assert_eq!(!parameters_of(&ack).is_empty(), agrees);
    }
}

/// §5.3: an end that announced the parameter should accept packets with a correct checksum and
/// packets without a checksum. A packet with a wrong checksum that is not zero should be discarded.
#[test]
fn a_receiver_that_announced_it_takes_both_kinds() {
    let mut world = World::new(on());
    let (a, z) = world.established();
    world.fate = Box::new(|_| Fate::Drop);
    for payload in ["one", "two", "three"] {
        world.send(A, a, 0, payload);
    }
    let shots: Vec<_> = world.shots.iter().map(|it| it.bytes.clone()).collect();
    assert!(shots.len() == 3 && shots.iter().all(is_zero));
    let summed = retag(&shots[0], header_of(&shots[0]).verification_tag);
    assert!(checksum::verify(&summed) && !is_zero(&summed));
    world.inject(Z, summed);
    world.inject(Z, shots[1].clone());
    assert_eq!(world.receive_all(Z, z).len(), 2);
    let mut wrong = shots[2].to_vec();
    wrong[8] = 1;
    world.inject(Z, wrong.into());
    assert_eq!(discards(&world, Z), [0, 1]);
    assert!(world.receive_all(Z, z).is_empty());
}

/// §5.3: an initiator that announced the parameter in its INIT should accept packets without a
/// checksum, even if the peer does not announce it.
#[test]
fn an_initiator_takes_them_whatever_the_peer_announced() {
    let mut world = World::with_configs(on(), off());
    let (a, z) = world.established();
    world.send(Z, z, 0, "x");
    world.inject(A, without(&world.shot(Z, "DATA")));
    assert_eq!(world.receive_all(A, a).len(), 1);
    // An end that did not announce the parameter should accept no packet without a checksum.
    world.fate = Box::new(|_| Fate::Drop);
    world.send(A, a, 0, "y");
    let sent = world.shot(A, "DATA");
    world.inject(Z, without(&sent));
    assert_eq!(discards(&world, Z), [0, 1], "zero is a wrong checksum");
    assert!(world.receive_all(Z, z).is_empty());
    assert_eq!(world.endpoints[A].discards().of(DiscardReason::Checksum), 0);
}

/// §5.2, §5.3: INIT, COOKIE ECHO and packets without an association must have a checksum. Packets
/// that violate this should be counted and not answered.
#[test]
fn packets_that_require_a_checksum_are_dropped_without_one() {
    let mut world = World::new(on());
    let (a, _) = {
        let mut before = World::new(on());
        before.connect();
        before.run_for(SECOND);
        (before.shot(A, "INIT"), before)
    };
    world.inject(Z, without(&a));
    assert_eq!(discards(&world, Z), [1, 0]);
    let echo = Chunk::CookieEcho(CookieEcho {
        cookie: Bytes::from_static(b"cookie"),
    });
    world.inject(Z, without(&packet(A, 9, &[&echo])));
    assert_eq!(discards(&world, Z), [2, 0]);
    world.inject(Z, without(&packet(A, 9, &[&Chunk::ShutdownAck])));
    assert_eq!(discards(&world, Z), [3, 0], "out of the blue");
    world.endpoints[Z].answer_unknown_ports(true);
    let mut elsewhere = packet(A, 9, &[&Chunk::ShutdownAck]).to_vec();
    elsewhere[2..4].copy_from_slice(&99_u16.to_be_bytes());
    world.inject(Z, without(&elsewhere.into()));
    assert_eq!(discards(&world, Z), [4, 0], "for another port");
    assert!(world.story.iter().all(|it| !it.starts_with("Z ->")));
    // With a checksum, the INIT and the SHUTDOWN ACK should be answered, and the answers should
    // have a checksum.
    world.inject(Z, a);
    world.inject(Z, packet(A, 9, &[&Chunk::ShutdownAck]));
    let answers: Vec<_> = world.shots.iter().filter(|it| it.from == Z).collect();
    assert_eq!(answers.len(), 2);
    for shot in answers {
        assert!(checksum::verify(&shot.bytes), "{}", shot.chunks);
    }
    assert_eq!(discards(&world, Z)[0], 4);
}

/// A peer restarts without the parameter. From then on both ends should send checksums.
#[test]
fn a_restart_settles_it_again() {
    let mut world = World::new(on());
    let (_, z) = world.established();
    let plain = anabranch_sctp::Endpoint::new(
        off().with(|it| it.addresses = vec![address(A, 0)]),
        PORT_A,
        [9; 32],
    );
    world.endpoints[A] = plain.expect("settings");
    let a = world.connect();
    world.run_for(SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    world.send(Z, z, 0, "x");
    let sent = world.shot(Z, "DATA");
    assert!(checksum::verify(&sent) && !is_zero(&sent));
    world.forget();
    world.send(A, a, 0, "y");
    world.run_for(SECOND);
    let sent = world.shot(A, "DATA");
    let before = discards(&world, Z);
    world.inject(Z, without(&sent));
    assert_eq!(discards(&world, Z), [before[0] + 1, before[1]]);
}
