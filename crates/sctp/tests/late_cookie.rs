//! COOKIE ECHOs of calls that were given up and come late (RFC 9260 §5.2.4, actions B and C).

use crate::common;

use anabranch_sctp::{AssociationId, Config, Discard, StateName};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::wrong::discarded;
use common::*;

/// An INIT of A's that Z answered, and the COOKIE ECHO of a call of Z's that Z has given up: the one that comes late. Z gave
/// its call up before it answered A's.
fn abandoned_call_of_z(world: &mut World) -> (AssociationId, Bytes) {
    world.endpoints[A].listen(true);
    // Z's COOKIE ECHO is held back, and the first INIT of A's is lost.
    world.fate = Box::new(|shot| match (shot.from, shot.chunks.as_str()) {
        (A, "INIT") if shot.at < 2 * SECOND => Fate::Drop,
        (Z, "COOKIE ECHO") => Fate::Drop,
        _ => Fate::Deliver,
    });
    let a = world.connect();
    let now = world.now;
    let z = world.endpoints[Z]
        .connect(now, &[address(A, 0)], PORT_A)
        .unwrap();
    world.drain(Z);
    world.run_for(100 * MILLISECOND);
    assert_eq!(world.state(Z, z), StateName::CookieEchoed);
    let late = world.shot(Z, "COOKIE ECHO");
    world.fate = Box::new(|shot| {
        if shot.chunks == "ABORT" {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    });
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).unwrap();
    association.abort(now, Bytes::new()).unwrap();
    world.drain(Z);
    assert!(world.endpoints[Z].release(z));
    (a, late)
}

/// A cookie that is older than what is known of the peer is of a life that the peer has given up.
#[test]
fn a_cookie_of_a_call_that_the_peer_gave_up_does_not_restart_the_association() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    world.run_for(5 * SECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), StateName::Established);
    assert_eq!(world.state(Z, z), StateName::Established);
    world.forget();
    world.inject(A, late);
    assert_eq!(world.story, ["? -> COOKIE ECHO -> A"], "in silence");
    assert_eq!(world.told(A), []);
    assert_eq!(discarded(&world, A, Discard::LateCookie), 1);
    world.send(A, a, 0, "over");
    world.send(Z, z, 0, "back");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

/// The same while A waits for the COOKIE ACK: first its own COOKIE ECHO gets the time to be answered.
#[test]
fn in_cookie_echoed_an_older_cookie_waits_for_the_answer_to_ours() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    let begun = world.now;
    while world.state(A, a) == StateName::CookieWait {
        assert!(world.step(begun + 5 * SECOND), "{:#?}", world.story);
    }
    assert_eq!(world.state(A, a), StateName::CookieEchoed);
    world.inject(A, late.clone());
    assert_eq!(world.state(A, a), StateName::CookieEchoed);
    world.run_for(100 * MILLISECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), StateName::Established);
    world.send(A, a, 0, "over");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

/// Where ours is not answered the older cookie counts: the order in which Z's INIT and its INIT ACK came may not be that in
/// which they were sent (RFC 9260 §5.2.4, action B).
#[test]
fn in_cookie_echoed_an_older_cookie_counts_once_ours_was_repeated() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    world.fate = lose("COOKIE ECHO", 99);
    world.run_for(5 * SECOND);
    assert_eq!(world.state(A, a), StateName::CookieEchoed);
    world.inject(A, late);
    assert_eq!(world.state(A, a), StateName::Established);
}
