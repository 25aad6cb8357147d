//! Late COOKIE ECHOs of aborted connection attempts (RFC 9260 §5.2.4, actions B and C).

use crate::common;

use anabranch_sctp::{AssociationId, AssociationState, Config, DiscardReason, Endpoint};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use bytes::{Bytes, BytesMut};
use common::wrong::discarded;
use common::*;

/// Lets A and Z connect to each other, and lets Z abort its attempt before an INIT of A arrives.
/// Returns the association of A, and the COOKIE ECHO of Z's attempt, which is still in transit.
fn abandoned_call_of_z(world: &mut World) -> (AssociationId, Bytes) {
    world.endpoints[A].listen(true);
    // Z's COOKIE ECHO is delayed, and A's first INIT is lost.
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
    assert_eq!(world.state(Z, z), AssociationState::CookieEchoed);
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

/// A cookie that is older than the stored parameters of the peer belongs to an attempt that the
/// peer has aborted.
#[test]
fn a_cookie_of_a_call_that_the_peer_gave_up_does_not_restart_the_association() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    world.run_for(5 * SECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), AssociationState::Established);
    assert_eq!(world.state(Z, z), AssociationState::Established);
    world.forget();
    world.inject(A, late);
    assert_eq!(world.story, ["? -> COOKIE ECHO -> A"], "in silence");
    assert_eq!(world.told(A), []);
    assert_eq!(discarded(&world, A, DiscardReason::LateCookie), 1);
    world.send(A, a, 0, "over");
    world.send(Z, z, 0, "back");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(A, a).len(), 1);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

/// In COOKIE-ECHOED, too, A discards an older cookie, because Z may still answer A's own COOKIE
/// ECHO. Only after T1-cookie has expired once does A accept the older cookie.
#[test]
fn in_cookie_echoed_an_older_cookie_waits_for_the_answer_to_ours() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    let begun = world.now;
    while world.state(A, a) == AssociationState::CookieWait {
        assert!(world.step(begun + 5 * SECOND), "{:#?}", world.story);
    }
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    world.inject(A, late.clone());
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    world.run_for(100 * MILLISECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), AssociationState::Established);
    world.send(A, a, 0, "over");
    world.run_for(SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1);
}

/// If A's own COOKIE ECHO is not answered, the older cookie is accepted, because Z's INIT and INIT
/// ACK may have been reordered (RFC 9260 §5.2.4, action B).
#[test]
fn in_cookie_echoed_an_older_cookie_counts_once_ours_was_repeated() {
    let mut world = World::new(Config::default());
    let (a, late) = abandoned_call_of_z(&mut world);
    world.fate = lose("COOKIE ECHO", 99);
    world.run_for(5 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::CookieEchoed);
    world.inject(A, late);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

/// Server with a sequence of clients.
struct Door {
    server: Endpoint,
    now: Nanos,
}

impl Door {
    fn path() -> Path {
        Path::new(address(Z, 0), address(A, 0))
    }

    fn hear(&mut self, datagram: Bytes) {
        self.server
            .handle_datagram(self.now, Self::path(), Ecn::NotEct, datagram);
    }

    /// Next packet of `end`.
    fn of(end: &mut Endpoint, now: Nanos) -> Option<Bytes> {
        let mut out = BytesMut::new();
        end.poll_transmit(now, &mut out)?;
        Some(out.freeze())
    }

    /// Next packet of the server.
    fn said(&mut self) -> Option<Bytes> {
        Self::of(&mut self.server, self.now)
    }

    /// Lets a client at this port connect and abort; returns its COOKIE ECHO.
    fn visit(&mut self, port: u16) -> Bytes {
        self.now += MILLISECOND;
        let now = self.now;
        let mut caller = Endpoint::new(Config::default(), port, [port as u8; 32]).unwrap();
        let id = caller
            .connect(now, &[address(Z, 0)], PORT_Z)
            .expect("it has an address");
        let init = Self::of(&mut caller, now).expect("an INIT");
        self.hear(init);
        let init_ack = self.said().expect("an INIT ACK");
        caller.handle_datagram(now, Self::path().reversed(), Ecn::NotEct, init_ack);
        let echo = Self::of(&mut caller, now).expect("a COOKIE ECHO");
        let association = caller.association_mut(id).unwrap();
        association.abort(now, Bytes::new()).unwrap();
        let abort = Self::of(&mut caller, now).expect("an ABORT");
        self.hear(echo.clone());
        let newest = self.server.associations().next().expect("one has begun");
        self.hear(abort);
        assert!(self.server.release(newest), "it has ended");
        while self.said().is_some() {}
        echo
    }
}

/// A captured COOKIE ECHO cannot restore a closed association, however many other associations have
/// closed since.
#[test]
fn an_old_cookie_is_not_taken_after_more_others_have_ended_than_are_remembered() {
    let mut server = Endpoint::new(Config::default(), PORT_Z, [1; 32]).unwrap();
    server.listen(true);
    let mut door = Door { server, now: 0 };
    let seen = door.visit(1);
    for others in [1, 20_000] {
        for _ in 0..others {
            door.visit(2);
        }
        door.hear(seen.clone());
        assert_eq!(door.server.associations().count(), 0, "after {others}");
    }
    // After 20,000 other associations, the tag of the closed one is no longer stored. Its cookie
    // then counts as stale, and a new peer with such a cookie would have to start again.
    assert_eq!(door.server.discards().of(DiscardReason::LateCookie), 1);
    assert_eq!(door.server.discards().of(DiscardReason::StaleCookie), 1);
    let said = door.said().expect("an ERROR");
    assert!(describe(&said).contains("ERROR"), "{}", describe(&said));
}
