//! Scripts for repeated or unexpected setup chunks (RFC 9260 §5.2): the test purposes DM.

use super::*;
use anabranch_sctp::Event;

/// DM-O-4-1, RFC 9260 §5.2.1: an INIT in COOKIE-WAIT or COOKIE-ECHOED should be answered with the
/// parameters of the endpoint's own INIT.
#[test]
fn an_init_in_the_cookie_states_is_answered_with_the_same_tag() {
    for echoed in [false, true] {
        let start = if echoed {
            Script::cookie_echoed
        } else {
            Script::calling
        };
        let mut script = start(quick());
        let (tag, first) = (script.tag, script.first);
        let state = script.state();
        let ack = script.ask(Init {
            initiate_tag: TESTERS_TAG,
            ..init()
        });
        assert_eq!((ack.initiate_tag, ack.initial_tsn), (tag, first));
        assert_eq!(script.state(), state);
        let again = if echoed { "COOKIE ECHO" } else { "INIT" };
        script.expect_after(100 * MILLISECOND, again);
    }
}

/// DM-O-4-3: a second INIT ACK should be ignored.
#[test]
fn a_second_init_ack_is_ignored() {
    let mut script = Script::cookie_echoed(quick());
    script.wait(50 * MILLISECOND);
    script.say(&[&init_ack_with(&[cookie()])]);
    script.expect_nothing();
    script.expect_after(50 * MILLISECOND, "COOKIE ECHO");
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.state(), AssociationState::Established);
}

/// DM-O-4-4: a second COOKIE ACK should be ignored.
#[test]
fn a_second_cookie_ack_is_ignored() {
    let mut script = Script::called(quick());
    script.say(&[&Chunk::CookieAck]);
    script.expect_nothing();
    script.send(1_000);
    script.expect("DATA");
    script.sack(1, 1_500, &[]);
    script.close();
    script.expect("SHUTDOWN");
}

/// DM-O-4-8: an invalid cookie should be ignored.
#[test]
fn an_invalid_cookie_in_established_is_ignored() {
    let mut script = Script::called(quick());
    let cookie = Bytes::from_static(&[1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    script.say(&[&Chunk::CookieEcho(CookieEcho { cookie })]);
    script.expect_nothing();
    script.say(&[&heartbeat(b"1234567890")]);
    script.expect("HEARTBEAT ACK");
}

/// Sends a COOKIE ECHO with this cookie, and returns whether the endpoint answers.
fn answered(script: &mut Script, tag: u32, cookie: Bytes) -> bool {
    script.say_under(tag, &[&Chunk::CookieEcho(CookieEcho { cookie })]);
    let more: Vec<_> = script.world.shots[script.seen..].iter().collect();
    let answered = more
        .iter()
        .any(|shot| shot.chunks.starts_with("COOKIE ACK"));
    assert_eq!(more.len(), usize::from(answered), "{more:?}");
    script.seen = script.world.shots.len();
    answered
}

fn restarts(script: &Script) -> usize {
    let is_restart = |it: &Event| matches!(it, Event::Restarted { .. });
    script
        .world
        .told(Z)
        .iter()
        .filter(|it| is_restart(it))
        .count()
}

/// RFC 9260 §5.2.4, A: neither tag matches, but the Tie-Tags do. The peer has restarted.
#[test]
fn action_a() {
    let mut script = Script::accepted(quick());
    let own = script.tag;
    script.ask(Init {
        initiate_tag: 5,
        initial_tsn: Tsn(5),
        ..init()
    });
    assert_ne!(script.tag, own, "a new tag");
    let (tag, cookie) = (script.tag, script.cookie.clone());
    assert!(answered(&mut script, tag, cookie));
    assert_eq!(restarts(&script), 1);
    let last = script.world.shots.last().expect("answered");
    assert_eq!(header_of(&last.bytes).verification_tag, 5);
    assert_eq!(script.state(), AssociationState::Established);
}

/// RFC 9260 §5.2.4, A in SHUTDOWN-ACK-SENT: no new association should be set up. The endpoint
/// should send the SHUTDOWN ACK and an ERROR.
#[test]
fn action_a_in_shutdown_ack_sent() {
    let mut script = Script::accepted(quick());
    let own = script.tag;
    script.ask(Init {
        initiate_tag: 5,
        ..init()
    });
    let (tag, none) = (script.tag, script.first.prev());
    script.say_under(own, &[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    let echo = script.cookie_echo();
    script.say_under(tag, &[&echo]);
    let answer = script.expect("ERROR, SHUTDOWN ACK");
    let Chunk::Error(error) = &answer[0] else {
        panic!()
    };
    let cause = error.causes.iter().flatten().next();
    assert_eq!(cause, Some(Cause::CookieReceivedWhileShuttingDown));
}

/// RFC 9260 §5.2.4, B: only the endpoint's tag matches, or the tag of the peer is not known yet.
/// The COOKIE ECHO should be accepted.
#[test]
fn action_b() {
    for echoed in [false, true] {
        let mut script = Script::calling(quick());
        let own = script.tag;
        if echoed {
            script.say(&[&init_ack_with(&[cookie()])]);
            script.expect("COOKIE ECHO");
            // Waits, because a cookie that is created at the time of the INIT ACK counts as older
            // than it.
            script.wait(MILLISECOND);
        }
        script.ask(Init {
            initiate_tag: 5,
            initial_tsn: Tsn(5),
            ..init()
        });
        let cookie = script.cookie.clone();
        assert!(answered(&mut script, own, cookie));
        assert_eq!(script.state(), AssociationState::Established);
        let last = script.world.shots.last().expect("answered");
        assert_eq!(
            header_of(&last.bytes).verification_tag,
            5,
            "the peer's new tag"
        );
        assert_eq!(script.association().cumulative_tsn(), 4);
        script.wait(SECOND);
        script.expect_nothing();
    }
}

/// RFC 9260 §5.2.4, B: the cookie should be accepted also if it is older than the INIT ACK that
/// announced the tag of the peer. If the profile discards late cookies, such a cookie should be
/// accepted only after the endpoint has repeated its own COOKIE ECHO without an answer.
#[test]
fn action_b_of_an_older_cookie() {
    for discards in [false, true] {
        let config = quick().with(|it| it.profile.late_cookies_discarded = discards);
        let mut script = Script::calling(config);
        let own = script.tag;
        script.ask(Init {
            initiate_tag: 5,
            ..init()
        });
        script.wait(MILLISECOND);
        script.say(&[&init_ack_with(&[cookie()])]);
        script.expect("COOKIE ECHO");
        let older = script.cookie.clone();
        assert_eq!(answered(&mut script, own, older.clone()), !discards);
        if discards {
            assert_eq!(script.state(), AssociationState::CookieEchoed);
            script.expect_within(SECOND, "COOKIE ECHO");
            assert!(answered(&mut script, own, older));
        }
        assert_eq!(script.state(), AssociationState::Established);
        let last = script.world.shots.last().expect("answered");
        assert_eq!(header_of(&last.bytes).verification_tag, 5);
    }
}

/// RFC 9260 §5.2.4, C: only the peer's tag matches, and there are no Tie-Tags. The COOKIE ECHO
/// should be ignored.
#[test]
fn action_c() {
    let mut script = Script::listening(quick());
    script.ask(init());
    let (late, tag) = (script.cookie.clone(), script.tag);
    let now = script.world.now;
    let called = script.world.endpoints[Z].connect(now, &[address(A, 0)], PORT_A);
    called.expect("nobody is known");
    script.world.drain(Z);
    let Chunk::Init(sent) = script.expect("INIT").remove(0) else {
        panic!()
    };
    script.tag = sent.initiate_tag;
    script.say(&[&init_ack_with(&[cookie()])]);
    script.expect("COOKIE ECHO");
    assert!(!answered(&mut script, tag, late));
    assert_eq!(script.state(), AssociationState::CookieEchoed);
    script.expect_after(100 * MILLISECOND, "COOKIE ECHO");
    script.say(&[&Chunk::CookieAck]);
    assert_eq!(script.state(), AssociationState::Established);
}

/// RFC 9260 §5.2.4, D: if both tags match, the COOKIE ECHO should be answered by a COOKIE ACK, even
/// if its cookie has expired.
#[test]
fn action_d() {
    let mut script = Script::accepted(quick());
    let (tag, cookie) = (script.tag, script.cookie.clone());
    assert!(answered(&mut script, tag, cookie.clone()));
    script.wait(100 * SECOND);
    assert!(answered(&mut script, tag, cookie));
    assert_eq!(restarts(&script), 0);
    script.tear_down(0);
}

/// RFC 9260 §5.2.4: COOKIE ECHOs with other combinations of tags should be discarded. If the tags
/// do not match, an expired cookie should be reported.
#[test]
fn no_row_of_the_table() {
    let mut script = Script::accepted(quick());
    let own = script.tag;
    // The cookie has the tag of the peer, another tag of the endpoint, and Tie-Tags.
    script.ask(init());
    let (tag, cookie) = (script.tag, script.cookie.clone());
    assert!(!answered(&mut script, tag, cookie.clone()));
    script.wait(61 * SECOND);
    script.say_under(tag, &[&Chunk::CookieEcho(CookieEcho { cookie })]);
    script.expect("ERROR");
    script.tag = own;
    script.say(&[&heartbeat(b"1")]);
    script.expect("HEARTBEAT ACK");
}
