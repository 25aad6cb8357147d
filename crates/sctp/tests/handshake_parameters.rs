//! Optional parameters of the handshake: Adaptation Layer Indication and Set Primary (RFC 5061
//! §4.2.4, §4.2.6), and addresses of an endpoint that change between two associations.

use crate::common;

use anabranch_sctp::{Config, Event};
use anabranch_transport::time::SECOND;
use anabranch_wire::cause::code;
use bytes::Bytes;
use common::pair::{old, settings};
use common::*;

fn indications(world: &World, host: usize) -> Vec<u32> {
    let told = world.told(host).into_iter();
    told.filter_map(|it| match it {
        Event::AdaptationIndication { indication } => Some(indication),
        _ => None,
    })
    .collect()
}

/// The event with the adaptation layer indication of the other end should follow the event that the
/// association is established. If the other end sends no indication, there is no such event.
#[test]
fn each_end_reports_the_adaptation_indication_of_the_other() {
    let says = |number| Config::default().with(|it| it.adaptation_layer = number);
    for (a, z) in [
        (Some(0), Some(u32::MAX)),
        (Some(7), None),
        (None, Some(7)),
        (None, None),
    ] {
        let mut world = World::with_configs(says(a), says(z));
        let id = world.connect();
        world.run_for(SECOND);
        let other = world.only_association(Z);
        for (host, id, peers) in [(A, id, z), (Z, other, a)] {
            assert_eq!(indications(&world, host), Vec::from_iter(peers));
            let association = world.endpoints[host].association(id).expect("up");
            assert_eq!(association.status().peer_adaptation_layer, peers);
            let up = |it: &Event| matches!(it, Event::Established { .. });
            let told = world.told(host);
            let said = told
                .iter()
                .position(|it| matches!(it, Event::AdaptationIndication { .. }));
            assert!(said.is_none_or(|it| told[..it].iter().any(up)), "{told:?}");
        }
    }
}

/// The encoding is that of RFC 5061 §4.2.6, and no end reports the parameter as unknown.
#[test]
fn the_indication_is_four_bytes_and_known_to_all() {
    let says = Config::default().with(|it| it.adaptation_layer = Some(0x0102_0304));
    let mut world = World::with_configs(says, Config::default());
    world.connect();
    world.run_for(SECOND);
    let init = world.shot(A, "INIT");
    let parameter = [0xC0, 6, 0, 8, 1, 2, 3, 4];
    assert!(init.windows(8).any(|it| it == parameter), "{init:?}");
    let ack = world.shot(Z, "INIT ACK");
    assert!(!ack.windows(4).any(|it| *it == parameter[..4]), "{ack:?}");
}

/// A restarted peer sends its adaptation layer indication again, and Z reports the new value.
#[test]
fn a_restart_reports_again() {
    let says = Config::default().with(|it| it.adaptation_layer = Some(7));
    let mut world = World::with_configs(says.clone(), Config::default());
    world.established();
    let secret = [77; 32];
    let says = says.with(|it| {
        it.adaptation_layer = Some(8);
        it.addresses = world.endpoints[A].config().addresses.clone();
    });
    world.endpoints[A] = anabranch_sctp::Endpoint::new(says, PORT_A, secret).expect("as before");
    world.connect();
    world.run_for(SECOND);
    assert_eq!(indications(&world, Z), [8]);
}

fn second(host: usize) -> std::net::IpAddr {
    address(host, 1)
}

/// Settings of a host with two addresses that requests its second address as the primary path.
fn prefers_second(host: usize) -> Config {
    settings().with(|it| {
        it.addresses = vec![address(host, 0), second(host)];
        it.preferred_address = Some(second(host));
    })
}

/// Set Primary in INIT: the responder sends its data to this address once it is verified. Set
/// Primary in INIT ACK has the same effect on data of the initiator.
#[test]
fn data_goes_first_to_the_address_that_the_handshake_asks_for() {
    let mut world = World::with_configs(prefers_second(A), prefers_second(Z));
    let (a, z) = world.established();
    world.run_for(2 * SECOND);
    world.forget();
    world.send(A, a, 0, "up");
    world.send(Z, z, 0, "down");
    world.run_for(SECOND);
    for (from, to) in [(A, Z), (Z, A)] {
        let data = world
            .shots
            .iter()
            .filter(|it| it.from == from && it.chunks.contains("DATA"));
        let remotes: Vec<_> = data.map(|it| it.path.remote).collect();
        assert_eq!(remotes, [second(to)], "{}", name(from));
    }
    assert_eq!(world.receive_all(Z, z).len(), 1);
    assert_eq!(world.receive_all(A, a).len(), 1);
}

/// While the requested address does not answer, data uses the previous path, because no data is
/// sent to an unverified address (RFC 9260 §5.4).
#[test]
fn an_address_that_is_asked_for_and_does_not_answer_gets_no_data() {
    let mut world = World::with_configs(prefers_second(A), settings());
    world.fate = Box::new(|shot| match shot.path.remote == second(A) {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let (a, z) = world.established();
    world.send(Z, z, 0, "down");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    let to_second = |it: &&Shot| it.from == Z && it.path.remote == second(A);
    let sent: Vec<_> = world.shots.iter().filter(to_second).collect();
    assert!(
        sent.iter().all(|it| !it.chunks.contains("DATA")),
        "{sent:#?}"
    );
}

/// Without permission for address changes, or without the extension, the request has no effect.
#[test]
fn a_request_for_an_address_is_refused_where_changes_are() {
    let refuses = settings().with(|it| it.accept_address_changes = false);
    for (z, reported) in [(refuses, false), (Config::default(), true)] {
        let mut world = World::with_configs(prefers_second(A), z);
        world.connect();
        world.run_for(3 * SECOND);
        let z = world.only_association(Z);
        let association = world.endpoints[Z].association(z).expect("up");
        let primary = association.paths().primary();
        assert_eq!(association.paths().get(primary).path().remote, old());
        // Without ASCONF, Set Primary is an unknown parameter of a class that is reported (RFC 9260
        // §3.2.1).
        let ack = world.shot(Z, "INIT ACK");
        let whole = [0, 8, 0, 20, 0xC0, 4, 0, 16];
        assert_eq!(ack.windows(8).any(|it| it == whole), reported, "{ack:?}");
    }
}

/// Delivers a hand-made INIT with these parameters to Z. Returns the chunk type and error cause of
/// Z's answer.
fn answer_to(parameters: &[u8]) -> (u8, Option<u16>) {
    let mut world = World::with_configs(settings(), settings());
    let mut init = vec![1, 0];
    init.extend((20 + parameters.len() as u16).to_be_bytes());
    init.extend([0, 0, 0, 7, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 9]);
    init.extend_from_slice(parameters);
    world.inject(Z, raw_packet(A, 0, &init));
    let shot: Bytes = world.shots.last().expect("answered").bytes.clone();
    let cause =
        (shot[12] == 6 && shot.len() > 20).then(|| u16::from_be_bytes([shot[16], shot[17]]));
    (shot[12], cause)
}

#[test]
fn parameters_that_contradict_their_length_refuse_the_init() {
    let refused = (6, Some(code::PROTOCOL_VIOLATION));
    // Adaptation layer indications of three and of five bytes.
    assert_eq!(answer_to(&[0xC0, 6, 0, 7, 1, 2, 3, 0]), refused);
    assert_eq!(answer_to(&[0xC0, 6, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0]), refused);
    // Set Primary without an address, and with trailing data.
    assert_eq!(answer_to(&[0xC0, 4, 0, 6, 0, 0, 0, 0]), refused);
    let more = [
        0xC0, 4, 0, 20, 0, 0, 0, 1, 0, 5, 0, 8, 10, 0, 0, 1, 0, 0, 0, 0,
    ];
    assert_eq!(answer_to(&more), refused);
    // An address that is not the peer's, or of an unsupported family, has no effect.
    let strange = [0xC0, 4, 0, 16, 0, 0, 0, 1, 0, 5, 0, 8, 192, 0, 2, 1];
    assert_eq!(answer_to(&strange).0, 2);
    let family = [0xC0, 4, 0, 16, 0, 0, 0, 1, 0, 11, 0, 8, b'a', b'.', b'b', 0];
    assert_eq!(answer_to(&family).0, 2);
}

/// An association that starts after an address change announces the current addresses, from either
/// side.
#[test]
fn new_associations_announce_the_current_addresses() {
    let mut world = World::with_configs(settings(), settings());
    let third: std::net::IpAddr = [10, 0, 9, 1].into();
    let now_has = vec![third, address(A, 0)];
    world.endpoints[A]
        .set_addresses(now_has.clone())
        .expect("unicast, each once");
    let (_, z) = world.established();
    let known = world.endpoints[Z]
        .association(z)
        .expect("up")
        .paths()
        .addresses();
    let mut known: Vec<_> = known.collect();
    known.sort();
    assert_eq!(known, [address(A, 0), third]);
    for wrong in [vec![third; 2], vec![[224, 0, 0, 1].into()]] {
        assert!(world.endpoints[A].set_addresses(wrong).is_err());
        assert_eq!(world.endpoints[A].config().addresses, now_has);
    }
}
