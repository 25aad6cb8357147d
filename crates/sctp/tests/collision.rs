//! INIT and COOKIE ECHO for an existing association: all rows of the table of RFC 9260 §5.2.4.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, DiscardReason, Endpoint, Event,
};
use anabranch_transport::Path;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::{Chunk, Init};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

const RESTARTED_TAG: u32 = 0xBEEF;

/// INIT of A after it has lost its state.
fn fresh_init(parameters: Parameters) -> Bytes {
    let init = Init {
        initiate_tag: RESTARTED_TAG,
        a_rwnd: 65_536,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(1_000),
        parameters,
    };
    packet(A, 0, &[&Chunk::Init(init)])
}

/// COOKIE ECHO with the cookie of an INIT ACK of Z.
fn echo_of(init_ack: &Bytes) -> Bytes {
    let Chunk::InitAck(ack) = chunks_of(init_ack).remove(0) else {
        panic!("no INIT ACK")
    };
    let cookie = ack
        .parameters
        .iter()
        .flatten()
        .find_map(|parameter| match parameter {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
    let cookie = cookie.expect("an INIT ACK has a cookie");
    packet(
        A,
        ack.initiate_tag,
        &[&Chunk::CookieEcho(anabranch_wire::chunk::CookieEcho {
            cookie,
        })],
    )
}

fn discarded(world: &World, host: usize, reason: DiscardReason) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// Replaces A's endpoint by a new one that connects to Z again.
fn restart_a(world: &mut World, addresses: Vec<std::net::IpAddr>) -> AssociationId {
    world.endpoints[A] = Endpoint::new(
        Config::default().with(|it| it.addresses = addresses),
        PORT_A,
        [9; 32],
    )
    .expect("settings");
    world.connect()
}

#[test]
fn both_begin_at_the_same_time_action_d() {
    let mut world = World::new(Config::default());
    world.endpoints[A].listen(true);
    let a = world.connect();
    let now = world.now;
    let z = world.endpoints[Z]
        .connect(now, &[address(A, 0)], PORT_A)
        .unwrap();
    world.drain(Z);
    world.run_for(SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
    assert_eq!(world.state(Z, z), AssociationState::Established);
    assert_eq!(world.only_association(A), a, "one association, not two");
    assert_eq!(world.only_association(Z), z);
    world.send(A, a, 0, "over");
    world.send(Z, z, 0, "back");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

#[test]
fn init_in_cookie_wait_and_cookie_echoed_is_answered_with_the_same_tag() {
    for (lost, state) in [
        ("INIT", AssociationState::CookieWait),
        ("COOKIE ECHO", AssociationState::CookieEchoed),
    ] {
        let mut world = World::new(Config::default());
        world.fate = lose(lost, 100);
        let a = world.connect();
        let Chunk::Init(own) = chunks_of(&world.shot(A, "INIT")).remove(0) else {
            panic!()
        };
        world.run_for(50 * MILLISECOND);
        assert_eq!(world.state(A, a), state);
        let init = Chunk::Init(Init {
            initiate_tag: 77,
            parameters: Parameters::empty(),
            ..own.clone()
        });
        world.inject(A, packet(Z, 0, &[&init]));
        let answer = world.shot(A, "INIT ACK");
        assert_eq!(header_of(&answer).verification_tag, 77);
        let Chunk::InitAck(ack) = chunks_of(&answer).remove(0) else {
            panic!()
        };
        assert_eq!(
            (ack.initiate_tag, ack.initial_tsn),
            (own.initiate_tag, own.initial_tsn)
        );
        assert_eq!(world.state(A, a), state, "the INIT changes nothing");
    }
}

#[test]
fn action_a_restart_of_the_peer() {
    let mut world = World::new(Config::default());
    let (_, z) = world.established();
    world.send(Z, z, 0, vec![1; 3_000]);
    world.run_for(SECOND);
    world.forget();
    let a = restart_a(&mut world, vec![address(A, 0)]);
    world.run_for(SECOND);
    let expected = [
        "A -> INIT -> Z",
        "Z -> INIT ACK -> A",
        "A -> COOKIE ECHO -> Z",
        "Z -> COOKIE ACK -> A",
    ];
    assert_eq!(world.story, expected);
    assert_eq!(world.only_association(Z), z, "the user's hold on it stays");
    assert_eq!(world.told(Z), [Event::Restarted { data_lost: false }]);
    world.send(A, a, 0, "anew");
    world.send(Z, z, 0, "anew");
    world.run_for(SECOND);
    let at_z = world.receive_all(Z, z);
    assert_eq!((at_z.len(), at_z[0].ssn.0), (1, 0), "streams begin again");
    assert_eq!(world.receive_all(A, a).len(), 1);
}

#[test]
fn action_a_reports_lost_data_and_keeps_received_data() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.send(A, a, 0, "read me later");
    world.run_for(SECOND);
    world.fate = Box::new(|shot| {
        if shot.chunks.contains("DATA") {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    world.send(Z, z, 0, "lost");
    world.forget();
    restart_a(&mut world, vec![address(A, 0)]);
    world.run_for(SECOND / 2);
    assert!(
        world
            .told(Z)
            .contains(&Event::Restarted { data_lost: true }),
        "{:?}",
        world.told(Z)
    );
    let kept = world.receive_all(Z, z);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].payload.parts()[0], "read me later");
}

#[test]
fn a_restart_with_a_new_address_is_refused() {
    let mut world = World::new(Config::default());
    let (_, z) = world.established();
    let a = restart_a(&mut world, vec![address(A, 0), address(A, 5)]);
    world.run_for(SECOND);
    assert_eq!(world.story, ["A -> INIT -> Z", "Z -> ABORT -> A"]);
    let Chunk::Abort(abort) = chunks_of(&world.shot(Z, "ABORT")).remove(0) else {
        panic!()
    };
    assert_eq!(
        abort.causes.iter().next().unwrap().unwrap().code(),
        code::RESTART_WITH_NEW_ADDRESSES
    );
    assert_eq!(
        world.state(Z, z),
        AssociationState::Established,
        "untouched"
    );
    assert_eq!(discarded(&world, Z, DiscardReason::RestartNewAddress), 1);
    assert!(world.endpoints[A].association(a).unwrap().is_closed());
}

#[test]
fn an_init_from_elsewhere_that_lists_our_peer_is_refused() {
    let mut world = World::new(Config::default());
    let (_, z) = world.established();
    let stranger = Path::new(address(Z, 0), [10, 9, 9, 9].into());
    let listed = match address(A, 0) {
        std::net::IpAddr::V4(address) => Parameter::Ipv4Address(address),
        std::net::IpAddr::V6(_) => unreachable!(),
    };
    world.inject_from(Z, stranger, fresh_init(Parameters::of(&[listed])));
    assert_eq!(discarded(&world, Z, DiscardReason::RestartNewAddress), 1);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    assert_eq!(
        world.shots.last().unwrap().path,
        stranger,
        "the answer goes where the question came from"
    );
}

#[test]
fn action_a_without_the_right_tie_tags_is_no_restart() {
    let mut world = World::new(Config::default());
    // A cookie created without an association has no Tie-Tags.
    world.inject(Z, fresh_init(Parameters::empty()));
    let echo = echo_of(&world.shot(Z, "INIT ACK"));
    world.forget();
    let (a, z) = world.established();
    world.inject(Z, echo);
    assert_eq!(discarded(&world, Z, DiscardReason::LateCookie), 1);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    world.send(A, a, 0, "still here");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

#[test]
fn tie_tags_of_a_former_life_do_not_restart_the_next() {
    let mut world = World::new(Config::default());
    let (_, z) = world.established();
    world.inject(Z, fresh_init(Parameters::empty()));
    let echo = echo_of(&world.shot(Z, "INIT ACK"));
    world.inject(Z, echo.clone());
    assert_eq!(world.told(Z), [Event::Restarted { data_lost: false }]);
    world.inject(Z, fresh_init(Parameters::empty()));
    world.inject(Z, echo);
    assert_eq!(
        world.told(Z).len(),
        1,
        "its own cookie: answered, no restart"
    );
    assert_eq!(world.state(Z, z), AssociationState::Established);
}

#[test]
fn action_b_the_peer_restarted_meanwhile() {
    let mut world = World::new(Config::default());
    world.endpoints[A].listen(true);
    // Z answers A's INIT, then loses its state and connects to A, with another tag.
    world.fate = lose("COOKIE ECHO", 1);
    let a = world.connect();
    world.run_for(25 * MILLISECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    let config = Config::default().with(|it| it.addresses = vec![address(Z, 0)]);
    world.endpoints[Z] = Endpoint::new(config, PORT_Z, [8; 32]).expect("settings");
    world.endpoints[Z].listen(true);
    let now = world.now;
    let z = world.endpoints[Z]
        .connect(now, &[address(A, 0)], PORT_A)
        .unwrap();
    world.drain(Z);
    world.run_for(5 * SECOND);
    assert_eq!(
        world.state(A, a),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
    assert_eq!(
        world.state(Z, z),
        AssociationState::Established,
        "{:#?}",
        world.story
    );
    world.send(A, a, 0, "over");
    world.send(Z, z, 0, "back");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1, "{:#?}", world.story);
    assert_eq!(world.receive_all(A, a).len(), 1);
}

#[test]
fn action_b_in_cookie_wait_where_the_peers_tag_is_unknown() {
    let mut world = World::new(Config::default());
    world.endpoints[A].listen(true);
    world.fate = Box::new(|shot| match (shot.from, shot.chunks.as_str()) {
        (A, "INIT") => Fate::Drop,
        _ => Fate::Deliver,
    });
    let a = world.connect();
    let now = world.now;
    let z = world.endpoints[Z]
        .connect(now, &[address(A, 0)], PORT_A)
        .unwrap();
    world.drain(Z);
    world.run_for(100 * MILLISECOND);
    let expected = [
        "A -> INIT -> Z (lost)",
        "Z -> INIT -> A",
        "A -> INIT ACK -> Z",
        "Z -> COOKIE ECHO -> A",
        "A -> COOKIE ACK -> Z",
    ];
    assert_eq!(world.story, expected);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(world.state(Z, z), AssociationState::Established);
}

#[test]
fn action_c_a_cookie_that_arrives_late_is_dropped() {
    let mut world = World::new(Config::default());
    // Two INITs of one attempt yield two cookies with different tags. The cookie of the second INIT
    // is returned first.
    world.inject(Z, fresh_init(Parameters::empty()));
    let first = echo_of(&world.shot(Z, "INIT ACK"));
    world.forget();
    world.inject(Z, fresh_init(Parameters::empty()));
    let second = echo_of(&world.shot(Z, "INIT ACK"));
    assert_ne!(
        header_of(&first).verification_tag,
        header_of(&second).verification_tag
    );
    world.inject(Z, second);
    let z = world.only_association(Z);
    world.forget();
    world.inject(Z, first);
    assert_eq!(
        world.story,
        ["? -> COOKIE ECHO -> Z"],
        "X M 0 0: in silence"
    );
    assert_eq!(discarded(&world, Z, DiscardReason::LateCookie), 1);
    assert_eq!(world.only_association(Z), z);
}

#[test]
fn action_d_a_duplicate_cookie_echo_is_acknowledged_and_nothing_else() {
    let mut world = World::new(Config::default());
    world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    let z = world.only_association(Z);
    world.forget();
    for _ in 0..100 {
        world.inject(Z, echo.clone());
    }
    assert_eq!(world.only_association(Z), z);
    assert_eq!(world.told(Z), []);
    assert_eq!(
        world
            .story
            .iter()
            .filter(|line| *line == "Z -> COOKIE ACK -> A")
            .count(),
        100
    );
}

#[test]
fn the_associations_own_cookie_never_grows_stale() {
    let mut world = World::new(Config::default());
    world.connect();
    world.run_for(SECOND);
    let echo = world.shot(A, "COOKIE ECHO");
    world.run_for(100 * SECOND);
    world.forget();
    world.inject(Z, echo);
    assert_eq!(world.story.last().unwrap(), "Z -> COOKIE ACK -> A");
}

#[test]
fn restart_in_shutdown_ack_sent_is_put_off() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.inject(Z, fresh_init(Parameters::empty()));
    let echo = echo_of(&world.shot(Z, "INIT ACK"));
    world.fate = lose("SHUTDOWN COMPLETE", 100);
    world.shutdown(A, a);
    world.run_for(50 * MILLISECOND);
    assert_eq!(world.state(Z, z), AssociationState::ShutdownAckSent);
    world.forget();
    world.inject(Z, echo);
    let line = world
        .story
        .iter()
        .find(|line| line.starts_with("Z -> "))
        .unwrap();
    assert_eq!(line, "Z -> ERROR, SHUTDOWN ACK -> A");
    assert_eq!(world.state(Z, z), AssociationState::ShutdownAckSent);
    // An INIT is answered by the SHUTDOWN ACK only (RFC 9260 §9.2).
    world.forget();
    world.inject(Z, fresh_init(Parameters::empty()));
    assert_eq!(world.story.last().unwrap(), "Z -> SHUTDOWN ACK -> A");
}

#[test]
fn unexpected_init_ack_and_cookie_ack() {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let (init_ack, cookie_ack) = (world.shot(Z, "INIT ACK"), world.shot(Z, "COOKIE ACK"));
    world.forget();
    world.inject(A, init_ack);
    world.inject(A, cookie_ack);
    assert_eq!(discarded(&world, A, DiscardReason::WrongState), 2);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    assert!(
        !world.story.iter().any(|line| line.starts_with("A -> ")),
        "no answer"
    );
}

#[test]
fn a_restart_does_not_undo_the_users_close() {
    let mut world = World::new(Config::default());
    let (_, z) = world.established();
    world.fate = lose("SHUTDOWN", 1);
    world.shutdown(Z, z);
    assert_eq!(world.state(Z, z), AssociationState::ShutdownSent);
    restart_a(&mut world, vec![address(A, 0)]);
    world.run_for(5 * SECOND);
    assert!(
        world
            .told(Z)
            .iter()
            .any(|event| matches!(event, Event::Restarted { .. }))
    );
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::Shutdown));
}

#[test]
fn a_peer_that_restarts_again_and_again_does_not_fill_the_memory() {
    let mut world = World::new(Config::default().with(|it| it.receive_buffer = 8_000));
    world.narrate = false;
    let (_, z) = world.established();
    for life in 0..20 {
        let config = Config::default().with(|it| it.addresses = vec![address(A, 0)]);
        world.endpoints[A] = Endpoint::new(config, PORT_A, [100 + life; 32]).expect("settings");
        let a = world.connect();
        world.run_for(SECOND);
        for _ in 0..5 {
            world.send(A, a, 0, vec![1; 1_000]);
        }
        world.run_for(SECOND);
    }
    let unread = world.receive_all(Z, z);
    let bytes: usize = unread.iter().map(|message| message.payload.len()).sum();
    assert!((5_000..=16_000).contains(&bytes), "{bytes}");
}

/// An attacker lists the address of the peer to which A is connecting. It neither learns A's tag
/// nor can complete A's attempt, because the answer is sent to the peer (RFC 9260 §5.2.1).
#[test]
fn a_stranger_cannot_take_over_an_attempt_by_listing_the_peers_address() {
    let mut world = World::new(Config::default());
    world.endpoints[A].listen(true);
    world.fate = Box::new(|_| Fate::Drop);
    let a = world.connect();
    let Chunk::Init(ours) = chunks_of(&world.shot(A, "INIT")).remove(0) else {
        panic!()
    };
    let stranger = Path::new(address(A, 0), [10, 0, 66, 6].into());
    let Parameter::Ipv4Address(peer) = Parameter::address(address(Z, 0)) else {
        panic!()
    };
    let theirs = Init {
        initiate_tag: 0x666,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters: Parameters::of(&[Parameter::Ipv4Address(peer)]),
    };
    world.inject_from(A, stranger, packet(Z, 0, &[&Chunk::Init(theirs)]));
    let answer = world.shot(A, "INIT ACK");
    let Chunk::InitAck(ack) = chunks_of(&answer).remove(0) else {
        panic!()
    };
    assert_eq!(ack.initiate_tag, ours.initiate_tag);
    let answers = world.shots.iter().filter(|shot| shot.from == A);
    assert!(
        answers
            .map(|shot| shot.path.remote)
            .all(|to| to == address(Z, 0)),
        "nothing goes to the stranger"
    );
    assert_eq!(world.state(A, a), AssociationState::CookieWait);
    // The peer to which A connects answers, and the association has no addresses of the attacker.
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(10 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let remote: Vec<_> = world.endpoints[A]
        .association(a)
        .unwrap()
        .paths()
        .addresses()
        .collect();
    assert_eq!(remote, [address(Z, 0)]);
}
