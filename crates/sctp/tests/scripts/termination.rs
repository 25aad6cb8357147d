//! Scripts for the end of an association (RFC 9260 §8.4, §8.5.1, §9): the test purposes AT, and
//! related ones of IMH, DM and FH.

use super::*;
use anabranch_sctp::{CloseReason, Event};

fn reason(script: &Script) -> Option<CloseReason> {
    script.world.close_reason(Z, script.id())
}

fn closing(config: Config) -> Script {
    let mut script = Script::called(config);
    script.close();
    script.expect("SHUTDOWN");
    script
}

/// AT-V-2-2: an ABORT should end the association.
#[test]
fn an_abort_ends_it() {
    let mut script = Script::called(quick());
    script.say(&[&abort(false)]);
    script.expect_nothing();
    assert_eq!(
        reason(&script),
        Some(CloseReason::AbortedByPeer { cause: None })
    );
    script.is_gone();
}

/// AT-I-2-3, AT-I-2-7-3: in SHUTDOWN-PENDING queued data should be transferred, and no new data
/// should be accepted. Then the SHUTDOWN should be sent.
#[test]
fn data_is_acknowledged_before_the_shutdown() {
    let mut script = Script::called(quick());
    script.send(1_000);
    script.expect("DATA");
    script.close();
    script.expect_nothing();
    assert!(!script.association().send_buffer().accepts(Some(0), 1));
    script.wait(50 * MILLISECOND);
    script.sack(1, 1_500, &[]);
    script.expect("SHUTDOWN");
    script.say(&[&Chunk::ShutdownAck]);
    script.expect("SHUTDOWN COMPLETE");
    script.is_gone();
}

/// AT-I-2-4, AT-I-2-7-1: a SHUTDOWN should be retransmitted, and no new data should be accepted.
#[test]
fn a_shutdown_is_sent_again() {
    let mut script = closing(quick());
    assert!(!script.association().send_buffer().accepts(Some(0), 1));
    script.expect_after(100 * MILLISECOND, "SHUTDOWN");
    script.say(&[&Chunk::ShutdownAck]);
    script.expect("SHUTDOWN COMPLETE");
}

/// AT-I-2-5: T5-shutdown-guard should end the shutdown after five times RTO.Max, regardless of the
/// number of retransmissions.
#[test]
fn t5_ends_a_shutdown_that_is_never_answered() {
    let slow = |it: &mut Config| {
        it.profile.rto_initial = PositiveTime(500 * MILLISECOND);
        (it.rto_min, it.rto_max) = (500 * MILLISECOND, SECOND);
    };
    for most in [10, 100] {
        let mut script = closing(
            quick()
                .with(slow)
                .with(|it| it.association_max_retrans = most),
        );
        for span in [500, 1_000, 1_000, 1_000, 1_000] {
            script.expect_after(span * MILLISECOND, "SHUTDOWN");
        }
        script.expect_after(500 * MILLISECOND, "ABORT");
        assert_eq!(reason(&script), Some(CloseReason::ShutdownTimeout));
        script.is_gone();
    }
    // If the limit on retransmissions is reached before T5-shutdown-guard expires, it should end
    // the shutdown.
    let mut script = closing(quick().with(slow).with(|it| it.association_max_retrans = 2));
    script.wait(4 * SECOND);
    assert_eq!(reason(&script), Some(CloseReason::PeerUnreachable));
}

/// AT-V-2-6, AT-I-2-13, RFC 9260 §8.4: after a graceful shutdown packets of the association should
/// be handled as out of the blue, no matter how late they arrive. If the profile switch
/// `late_data_unanswered` is on, DATA and SACKs should not be answered for four RTOs.
#[test]
fn after_a_graceful_end_all_is_out_of_the_blue() {
    for (closes, waited, spares) in [
        (true, 0, true),
        (true, 400, true),
        (true, 401, true),
        (true, 0, false),
        (false, 0, true),
        (false, 1_000, true),
        (true, 200_000, true),
    ] {
        let config = quick().with(|it| it.profile.late_data_unanswered = spares);
        let mut script = Script::called(config);
        if closes {
            script.close();
            script.expect("SHUTDOWN");
            script.say(&[&Chunk::ShutdownAck]);
            script.expect("SHUTDOWN COMPLETE");
        } else {
            script.tear_down(0);
        }
        let closed = Event::Closed(CloseReason::Shutdown);
        assert!(script.world.told(Z).contains(&closed));
        script.wait(waited * MILLISECOND);
        script.is_gone();
        let acknowledged = script.first.prev();
        for chunk in [
            shutdown(acknowledged),
            heartbeat(b"12345678"),
            error(Cause::OutOfResource),
            init_ack_with(&[cookie()]),
        ] {
            script.say(&[&chunk]);
            script.expect("ABORT");
            script.say(&[&chunk, &data(0, "BE", 10)]);
            if !matches!(chunk, Chunk::InitAck(_)) {
                script.expect("ABORT");
            }
        }
        let unanswered = spares && waited <= 400;
        script.say(&[&data(0, "BE", 10)]);
        if !unanswered {
            script.expect("ABORT");
        }
        script.sack(0, 1_500, &[]);
        if !unanswered {
            script.expect("ABORT");
        }
        script.expect_nothing();
        script.say(&[&Chunk::ShutdownAck]);
        script.expect("SHUTDOWN COMPLETE");
        let stale = error(Cause::StaleCookie {
            measure_of_staleness: 5,
        });
        for chunk in [
            abort(false),
            abort(true),
            shutdown_complete(false),
            Chunk::CookieAck,
            stale,
        ] {
            script.say(&[&chunk]);
            script.expect_nothing();
        }
    }
}

/// AT-I-2-7-2, AT-I-2-9, AT-I-2-10, AT-V-2-14: in SHUTDOWN-RECEIVED queued data should be
/// transferred, and no new data should be accepted.
#[test]
fn in_shutdown_received_data_is_finished_and_none_is_taken() {
    let mut script = Script::called(quick());
    script.send(1_000);
    script.expect("DATA");
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect_nothing();
    assert_eq!(script.state(), AssociationState::ShutdownReceived);
    assert!(!script.association().send_buffer().accepts(Some(0), 1));
    // DATA should be discarded (§6).
    script.say(&[&data(0, "BE", 1_000)]);
    script.expect_nothing();
    assert_eq!(script.discarded(DiscardReason::WrongState), 1);
    script.expect_after(100 * MILLISECOND, "DATA");
    script.say(&[&shutdown(none)]);
    script.expect_nothing();
    script.sack(1, 1_500, &[]);
    script.expect("SHUTDOWN ACK");
    script.say(&[&shutdown_complete(false)]);
    assert!(script.read().is_empty());
    script.is_gone();
    // The SHUTDOWN itself should acknowledge data.
    let mut script = Script::called(quick());
    script.send(1_000);
    script.expect("DATA");
    script.tear_down(1);
}

/// AT-I-2-7-4, AT-I-2-11, AT-I-2-12: a SHUTDOWN ACK should be retransmitted until the limit is
/// reached.
#[test]
fn a_shutdown_ack_is_sent_again_and_abandoned() {
    let mut script = Script::called(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    assert!(!script.association().send_buffer().accepts(Some(0), 1));
    for span in [100, 200, 400, 800, 800, 800, 800, 800, 800, 800] {
        script.expect_after(span * MILLISECOND, "SHUTDOWN ACK");
    }
    script.expect_after(800 * MILLISECOND, "ABORT");
    assert_eq!(reason(&script), Some(CloseReason::PeerUnreachable));
    script.is_gone();
}

/// AT-I-2-8, RFC 9260 §9.2: in SHUTDOWN-SENT each packet with DATA should be answered by a
/// SHUTDOWN, together with a SACK if there are gaps or duplicates. T2-shutdown should restart.
#[test]
fn data_in_shutdown_sent_is_answered_at_once() {
    let mut script = closing(quick());
    let told = |script: &mut Script, chunks: &str| {
        let answer = script.expect(chunks);
        let Some(Chunk::Shutdown(shutdown)) = answer.last() else {
            panic!("{answer:?}")
        };
        let next = shutdown.cumulative_tsn_ack.next().0 - TESTERS_TSN;
        let sack = answer.len() == 2;
        (next, sack.then(|| sack_of(&answer)))
    };
    script.wait(60 * MILLISECOND);
    script.say(&[&data(0, "BE", 1_000)]);
    assert_eq!(script.read(), [1_000]);
    // The answer may also report the window that results.
    let answer = script.world.shots[script.seen].chunks.clone();
    assert_eq!(told(&mut script, &answer).0, 1);
    script.wait(60 * MILLISECOND);
    // A gap.
    script.say(&[&data(2, "BE", 1_000)]);
    let (next, sack) = told(&mut script, "SACK, SHUTDOWN");
    let (point, _, gaps, duplicates) = sack.expect("a SACK");
    assert_eq!(
        (next, point, gaps, duplicates),
        (1, 1, vec![(2, 2)], vec![])
    );
    script.wait(60 * MILLISECOND);
    // One duplicate is after the gap, and one is before it.
    for offset in [2, 0] {
        script.say(&[&data(offset, "BE", 1_000)]);
        let (next, sack) = told(&mut script, "SACK, SHUTDOWN");
        let (point, _, gaps, duplicates) = sack.expect("a SACK");
        assert_eq!(
            (next, point, gaps, duplicates),
            (1, 1, vec![(2, 2)], vec![offset])
        );
        script.wait(60 * MILLISECOND);
    }
    // The gap is filled.
    script.say(&[&data(1, "BE", 1_000)]);
    let answer = script.world.shots[script.seen].chunks.clone();
    assert_eq!(told(&mut script, &answer).0, 3);
    assert_eq!(script.read(), [1_000, 1_000]);
    // A duplicate without a gap.
    script.say(&[&data(2, "BE", 1_000)]);
    let (next, sack) = told(&mut script, "SACK, SHUTDOWN");
    assert_eq!((next, sack.expect("a SACK").3), (3, vec![2]));
    script.expect_after(100 * MILLISECOND, "SHUTDOWN");
    script.say(&[&Chunk::ShutdownAck]);
    script.expect("SHUTDOWN COMPLETE");
}

/// RFC 9260 §9.2, §6.2: in SHUTDOWN-SENT a gap should also be reported at once if it is left by the
/// first DATA of the association, by DATA on a nonexistent stream, or by DATA that is bundled with
/// other chunks.
#[test]
fn a_gap_in_shutdown_sent_is_reported_whichever_data_leaves_it() {
    for case in 0..4 {
        let mut script = closing(quick().with(|it| it.inbound_streams = 1));
        match case {
            0 => script.say(&[&data(1, "BE", 1_000)]),
            1 => script.say(&[&data(1, "B", 1_000), &data_on(0, 2, 1, "E", 1_000)]),
            2 => script.say(&[&data_on(7, 1, 0, "BE", 1_000)]),
            _ => script.say(&[&heartbeat(b"1"), &data(1, "BEU", 1_000)]),
        }
        let shot = script.world.shots[script.seen].clone();
        script.seen += 1;
        script.expect_nothing();
        assert!(
            shot.chunks.ends_with("SACK, SHUTDOWN"),
            "{case}: {}",
            shot.chunks
        );
        let (point, _, gaps, _) = sack_of(&chunks_of(&shot.bytes));
        let last = if case == 1 { 3 } else { 2 };
        assert_eq!((point, gaps), (0, vec![(2, last)]));
        script.expect_after(100 * MILLISECOND, "SHUTDOWN");
    }
}

/// RFC 9260 §9.2: in SHUTDOWN-SENT any packet of the peer should restart T2-shutdown and its count.
/// If the profile switch `t2_restarts_with_data_only` is on, only DATA should restart T2-shutdown.
#[test]
fn any_packet_restarts_t2_shutdown() {
    for only_data in [false, true] {
        let config = quick().with(|it| it.profile.t2_restarts_with_data_only = only_data);
        let mut script = closing(config);
        script.wait(70 * MILLISECOND);
        script.say(&[&heartbeat(b"12345")]);
        script.expect("HEARTBEAT ACK");
        let left = if only_data { 30 } else { 100 };
        script.expect_after(left * MILLISECOND, "SHUTDOWN");
    }
}

/// DM-O-4-5, DM-O-4-6-3, DM-O-4-7-3: both ends close the association.
#[test]
fn both_ends_close() {
    let mut script = closing(quick());
    script.wait(50 * MILLISECOND);
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.expect_after(100 * MILLISECOND, "SHUTDOWN ACK");
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.say(&[&Chunk::ShutdownAck]);
    script.expect("SHUTDOWN COMPLETE");
    script.is_gone();
}

/// DM-O-4-6-1: SHUTDOWN should be ignored in COOKIE-WAIT and COOKIE-ECHOED.
#[test]
fn a_shutdown_in_the_cookie_states_is_ignored() {
    for echoed in [false, true] {
        let mut script = if echoed {
            Script::cookie_echoed(quick())
        } else {
            Script::calling(quick())
        };
        let none = script.first.prev();
        script.say(&[&shutdown(none)]);
        script.expect_nothing();
        let again = if echoed { "COOKIE ECHO" } else { "INIT" };
        script.expect_after(100 * MILLISECOND, again);
    }
}

/// DM-O-4-7-1, DM-O-4-9: in COOKIE-WAIT and COOKIE-ECHOED a SHUTDOWN ACK should be handled as out
/// of the blue, and a SHUTDOWN COMPLETE should be ignored.
#[test]
fn the_end_of_another_association_in_the_cookie_states() {
    for echoed in [false, true] {
        let start = if echoed {
            Script::cookie_echoed
        } else {
            Script::calling
        };
        let mut script = start(quick());
        for tag in [script.tag, 0x0B5E] {
            script.say_under(tag, &[&Chunk::ShutdownAck]);
            let shot = script.world.shots[script.seen].clone();
            script.seen += 1;
            assert_eq!(shot.chunks, "SHUTDOWN COMPLETE");
            assert_eq!(header_of(&shot.bytes).verification_tag, tag);
            assert_eq!(shot.bytes[13], 1, "the T bit");
        }
        script.say(&[&shutdown_complete(false)]);
        script.expect_nothing();
        let again = if echoed { "COOKIE ECHO" } else { "INIT" };
        script.expect_after(100 * MILLISECOND, again);
    }
}

/// DM-O-4-7-2: SHUTDOWN ACK and SHUTDOWN COMPLETE should be ignored in ESTABLISHED.
#[test]
fn a_shutdown_ack_in_established_is_ignored() {
    let mut script = Script::called(quick());
    for chunk in [Chunk::ShutdownAck, shutdown_complete(false)] {
        script.say(&[&chunk]);
        script.expect_nothing();
    }
    assert_eq!(script.state(), AssociationState::Established);
    script.say(&[&heartbeat(b"1234567890")]);
    script.expect("HEARTBEAT ACK");
}

/// DM-O-4-2-2, DM-O-4-10: in SHUTDOWN-ACK-SENT an INIT should be answered by a SHUTDOWN ACK, and
/// DATA should be ignored.
#[test]
fn init_and_data_in_shutdown_ack_sent() {
    let mut script = Script::accepted(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.say_under(
        0,
        &[&Chunk::Init(Init {
            initiate_tag: 2,
            ..init()
        })],
    );
    script.expect("SHUTDOWN ACK");
    script.say(&[&data(0, "BE", 1_000)]);
    script.expect_nothing();
    script.expect_after(100 * MILLISECOND, "SHUTDOWN ACK");
    script.say(&[&shutdown_complete(false)]);
    assert_eq!(reason(&script), Some(CloseReason::Shutdown));
}

/// IMH-I-3-7, IMH-I-3-9, IMH-I-3-10: chunks that end an association should be ignored if their
/// packet has a wrong tag.
#[test]
fn ends_under_a_wrong_tag_do_nothing() {
    let mut script = Script::accepted(quick());
    let wrong = script.tag ^ 1;
    script.say_under(wrong, &[&abort(false)]);
    script.say_under(TESTERS_TAG, &[&abort(false)]);
    let own = script.tag;
    script.say_under(own, &[&abort(true)]);
    script.expect_nothing();
    assert_eq!(script.state(), AssociationState::Established);
    let mut script = closing(quick());
    let wrong = script.tag ^ 1;
    script.say_under(wrong, &[&Chunk::ShutdownAck]);
    script.expect_after(100 * MILLISECOND, "SHUTDOWN");
    let mut script = Script::accepted(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    let wrong = script.tag ^ 1;
    script.say_under(wrong, &[&shutdown_complete(false)]);
    script.expect_after(100 * MILLISECOND, "SHUTDOWN ACK");
    script.say(&[&shutdown_complete(false)]);
    assert_eq!(script.state(), AssociationState::Closed);
}

/// FH-O-5-3-1 to FH-O-5-3-4, DM-O-4-6-2, RFC 9260 §8.4: the rules for out of the blue packets
/// should be applied in their order.
#[test]
fn packets_out_of_the_blue() {
    let stale = || {
        error(Cause::StaleCookie {
            measure_of_staleness: 1,
        })
    };
    let none: Option<&str> = None;
    let (abort_t, complete_t) = (Some("ABORT"), Some("SHUTDOWN COMPLETE"));
    let cases: Vec<(Vec<Chunk>, Option<&str>)> = vec![
        (vec![data(0, "BE", 1_000)], abort_t),
        (vec![shutdown(Tsn(0))], abort_t),
        (vec![heartbeat(b"123")], abort_t),
        (vec![init_ack_with(&[cookie()])], abort_t),
        (vec![error(Cause::OutOfResource)], abort_t),
        // Rule 3 applies to tag 0.
        (vec![Chunk::Init(init())], abort_t),
        // Rule 2 precedes all others.
        (vec![abort(false)], none),
        (vec![abort(true)], none),
        (vec![data(0, "BE", 10), abort(false)], none),
        (vec![Chunk::ShutdownAck, abort(false)], none),
        // Rule 5 precedes rules 6 and 7.
        (vec![Chunk::ShutdownAck], complete_t),
        (vec![Chunk::CookieAck, Chunk::ShutdownAck], complete_t),
        (vec![Chunk::ShutdownAck, stale()], complete_t),
        (vec![shutdown_complete(false)], none),
        (vec![Chunk::CookieAck], none),
        (vec![Chunk::CookieAck, data(0, "BE", 10)], none),
        (vec![stale()], none),
        (vec![heartbeat(b"1"), stale()], none),
    ];
    for (chunks, answer) in cases {
        let mut script = Script::listening(quick());
        script.tag = 0x00B5;
        script.say(&chunks.iter().collect::<Vec<_>>());
        match answer {
            None => script.expect_nothing(),
            Some(answer) => {
                script.expect(answer);
                let shot = script.world.shots[0].clone();
                assert_eq!(
                    header_of(&shot.bytes).verification_tag,
                    0x00B5,
                    "{chunks:?}"
                );
                assert_eq!(shot.bytes[13], 1, "the T bit");
            }
        }
        assert_eq!(script.associations(), 0);
    }
    // Two unknown chunks, and a SHUTDOWN that is followed by a partial chunk.
    for chunk in [
        raw(0xEF, 0, &[1]),
        raw(0x2F, 0, &[]),
        [raw(7, 0, &[0; 4]), vec![4, 0, 0, 99]].concat(),
    ] {
        let mut script = Script::listening(quick());
        script.tag = 0x00B5;
        script.say_raw(&chunk);
        script.expect("ABORT");
    }
}

/// RFC 9260 §8.5.1 B: the peer has already closed the association and answers late packets with an
/// ABORT. All data of this endpoint was acknowledged. The association should therefore end as after
/// a graceful shutdown.
#[test]
fn a_peer_that_has_ended_already_ends_it_in_good_order() {
    let mut script = Script::called(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.say_under(TESTERS_TAG, &[&abort(true)]);
    assert_eq!(reason(&script), Some(CloseReason::Shutdown));
    // If the ABORT has the endpoint's own tag, the peer has decided to abort.
    let mut script = Script::called(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.say(&[&abort(false)]);
    assert_eq!(
        reason(&script),
        Some(CloseReason::AbortedByPeer { cause: None })
    );
}

/// FH-I-5-1-1, FH-I-5-1-2: the association should fail after Association.Max.Retrans errors since
/// the last acknowledgment.
#[test]
fn a_peer_that_acknowledges_nothing_is_abandoned() {
    let config = || {
        quick().with(|it| {
            it.rto_max = 200 * MILLISECOND;
            it.path_max_retrans = 10;
        })
    };
    for answered in [0, 3] {
        let mut script = Script::accepted(config());
        script.send(1_000);
        script.expect("DATA");
        for _ in 0..answered {
            script.expect_within(SECOND, "DATA");
        }
        let mut acknowledged = 0;
        if answered > 0 {
            acknowledged = 1;
            script.sack(1, 1_500, &[]);
            script.expect_nothing();
            script.send(1_000);
            script.expect("DATA");
        }
        for _ in 0..10 {
            let again = script.expect_within(SECOND, "DATA");
            assert_eq!(data_of(&script, &again)[0].0, acknowledged);
        }
        script.expect_within(SECOND, "ABORT");
        assert_eq!(reason(&script), Some(CloseReason::PeerUnreachable));
        script.is_gone();
    }
}
