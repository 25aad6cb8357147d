//! Scripts for bundled chunks, unknown chunks and reserved fields (RFC 9260 §3.2, §6.10): the test
//! purposes BDC, M and FH-V-5-2.

use super::*;

/// BDC-I-7-1, BDC-I-7-2: INIT and INIT ACK should be ignored if they are bundled with other chunks.
#[test]
fn setup_chunks_that_are_not_alone_do_nothing() {
    let mut script = Script::listening(quick());
    script.say_under(0, &[&Chunk::Init(init()), &data(0, "BE", 100)]);
    script.expect_nothing();
    script.wait(SECOND);
    script.ask(init());
    let mut script = Script::calling(quick());
    script.say(&[&init_ack_with(&[cookie()]), &data(0, "BE", 100)]);
    script.expect_nothing();
    script.expect_after(100 * MILLISECOND, "INIT");
}

/// BDC-I-7-3: SHUTDOWN COMPLETE should be ignored if it is bundled with another chunk.
#[test]
fn a_shutdown_complete_that_is_not_alone_does_nothing() {
    let mut script = Script::accepted(quick());
    let none = script.first.prev();
    script.say(&[&shutdown(none)]);
    script.expect("SHUTDOWN ACK");
    script.say(&[&shutdown_complete(false), &data(0, "BE", 100)]);
    script.expect_after(100 * MILLISECOND, "SHUTDOWN ACK");
    script.say(&[&shutdown_complete(false)]);
    assert_eq!(script.state(), AssociationState::Closed);
}

/// BDC-V-7-4, BDC-V-7-5: DATA should be accepted together with COOKIE ECHO and with COOKIE ACK.
#[test]
fn data_with_setup_chunks() {
    let mut script = Script::listening(quick());
    script.ask(init());
    let echo = script.cookie_echo();
    script.say(&[&echo, &data(0, "BE", 100)]);
    script.expect("COOKIE ACK, SACK");
    assert_eq!(script.read(), [100]);
    script.tear_down(0);
    let mut script = Script::cookie_echoed(quick());
    script.say(&[&Chunk::CookieAck, &data(0, "BE", 100)]);
    script.expect("SACK");
    assert_eq!(script.read(), [100]);
    script.tear_down(0);
}

/// BDC-V-7-6, BDC-V-7-7, BDC-V-7-8: SACK and DATA should be accepted together with shutdown chunks.
#[test]
fn a_sack_with_other_chunks() {
    let mut script = Script::accepted(quick());
    let none = script.first.prev();
    let mut chunks = [7, 0, 0, 8].to_vec();
    chunks.extend_from_slice(&none.0.to_be_bytes());
    chunks.extend(sack_bytes(none, 1_500, &[], &[]));
    script.say_raw(&chunks);
    script.expect("SHUTDOWN ACK");
    let mut script = Script::accepted(quick());
    let none = script.first.prev();
    let mut chunks = sack_bytes(none, 1_500, &[], &[]);
    chunks.extend_from_slice(&packet(A, 0, &[&data(0, "BE", 100)])[12..]);
    script.say_raw(&chunks);
    assert_eq!(script.read(), [100]);
    script.expect("SACK");
    let mut script = Script::called(quick());
    script.close();
    script.expect("SHUTDOWN");
    script.say(&[&Chunk::ShutdownAck, &data(0, "BE", 100)]);
    script.expect("SHUTDOWN COMPLETE");
    assert!(script.read().is_empty());
}

/// M-I-10-1 to M-I-10-4: the two high bits of an unknown chunk should decide how it is handled.
#[test]
fn unknown_chunks() {
    for (kind, answer, goes_on) in [
        (0xEF, "ERROR, SACK", true),
        (0x2F, "", false),
        (0x6F, "ERROR", false),
        (0xAF, "SACK", true),
    ] {
        let mut script = Script::called(quick());
        let mut chunks = raw(kind, 0, &[1]);
        chunks.extend_from_slice(&packet(A, 0, &[&data(0, "BE", 1_000)])[12..]);
        script.say_raw(&chunks);
        if answer.is_empty() {
            script.expect_nothing();
        } else {
            let told = script.expect(answer);
            if let Chunk::Error(error) = &told[0] {
                let chunk = match error.causes.iter().flatten().next() {
                    Some(Cause::UnrecognizedChunkType { chunk }) => chunk,
                    other => panic!("{other:?}"),
                };
                assert_eq!(chunk[..5], [kind, 0, 0, 5, 1]);
            }
        }
        assert_eq!(script.read().len(), usize::from(goes_on), "{kind:#x}");
        script.close();
        script.expect("SHUTDOWN");
    }
}

/// FH-V-5-2, RFC 9260 §8.3: a HEARTBEAT should be returned unchanged, with all its parameters.
#[test]
fn a_heartbeat_comes_back_unchanged() {
    for value in [
        &[0, 1, 0, 8, 1, 2, 3, 4][..],
        &[0, 1, 0, 5, 9],
        &[0, 1, 0, 4],
        // Additional parameters follow, none of which is defined.
        &[0, 1, 0, 6, 1, 2, 0, 0, 0x80, 9, 0, 8, 5, 5, 5, 5],
        &[0x80, 9, 0, 8, 5, 5, 5, 5, 0, 1, 0, 6, 1, 2],
    ] {
        let mut script = Script::accepted(quick());
        script.say_raw(&raw(4, 0, value));
        script.expect("HEARTBEAT ACK");
        let ack = script
            .world
            .shots
            .last()
            .expect("answered")
            .bytes
            .slice(12..);
        assert_eq!(ack, raw(5, 0, value), "{value:?}");
    }
    for value in [
        &[][..],
        &[0, 1, 0, 3],
        &[0, 1, 0, 99, 1, 2, 3, 4],
        &[0x80, 9, 0, 4],
    ] {
        let mut script = Script::accepted(quick());
        script.say_raw(&raw(4, 0, value));
        script.expect_nothing();
        assert_eq!(script.discarded(DiscardReason::ChunkFields), 1);
    }
}

/// RFC 9260 §3.2: reserved flags should be ignored, in each chunk and in each state in which the
/// chunk has an effect. The flags that are defined for the chunk keep their values in this test.
#[test]
fn reserved_flags_are_ignored() {
    let flagged = |chunk: &Chunk, used: u8| {
        let mut bytes = packet(A, 0, &[chunk])[12..].to_vec();
        bytes[1] |= !used;
        bytes
    };
    // INIT.
    let mut script = Script::listening(quick());
    script
        .world
        .inject(Z, raw_packet(A, 0, &flagged(&Chunk::Init(init()), 0)));
    script.expect("INIT ACK");
    // INIT ACK and COOKIE ACK with reserved flags.
    let mut script = Script::calling(quick());
    script.say_raw(&flagged(&init_ack_with(&[cookie()]), 0));
    script.expect("COOKIE ECHO");
    script.say_raw(&flagged(&Chunk::CookieAck, 0));
    assert_eq!(script.state(), AssociationState::Established);
    // ERROR.
    let mut script = Script::cookie_echoed(quick());
    script.say_raw(&flagged(
        &error(Cause::StaleCookie {
            measure_of_staleness: 0,
        }),
        0,
    ));
    script.expect("INIT");
    // COOKIE ECHO, HEARTBEAT, DATA, SACK, SHUTDOWN and SHUTDOWN COMPLETE.
    let mut script = Script::listening(quick());
    script.ask(init());
    let echo = flagged(&script.cookie_echo(), 0);
    script.say_raw(&echo);
    script.expect("COOKIE ACK");
    script.say_raw(&flagged(&heartbeat(b"12345"), 0));
    script.expect("HEARTBEAT ACK");
    script.say_raw(&flagged(&data(0, "BE", 10), 0x0F));
    script.expect("SACK");
    // Both packets should be acknowledged together, because none of the reserved flags is the I
    // bit.
    script.say_raw(&flagged(&data(1, "BE", 10), 0x0F));
    script.expect_nothing();
    script.say_raw(&flagged(&data(2, "B", 10), 0x0F));
    script.expect("SACK");
    script.say_raw(&flagged(&data_on(0, 3, 2, "E", 10), 0x0F));
    assert_eq!(script.read(), [10, 10, 20]);
    script.expect_within(SECOND, "SACK");
    script.send(100);
    script.expect("DATA");
    let mut sack = sack_bytes(script.first, 1_500, &[], &[]);
    sack[1] = 0xFF;
    script.say_raw(&sack);
    assert_eq!(script.association().status().outstanding_chunks, 0);
    let point = script.first;
    script.say_raw(&flagged(&shutdown(point), 0));
    script.expect("SHUTDOWN ACK");
    script.say_raw(&flagged(&shutdown_complete(false), 1));
    assert_eq!(script.state(), AssociationState::Closed);
    // SHUTDOWN ACK.
    let mut script = Script::called(quick());
    script.close();
    script.expect("SHUTDOWN");
    script.say_raw(&flagged(&Chunk::ShutdownAck, 0));
    script.expect("SHUTDOWN COMPLETE");
    // ABORT with reserved flags, once with the tag of each end (T bit).
    for reflected in [false, true] {
        let mut script = Script::called(quick());
        let tag = if reflected { TESTERS_TAG } else { script.tag };
        let abort = flagged(&abort(reflected), 1);
        script.world.inject(Z, raw_packet(A, tag, &abort));
        assert_eq!(script.state(), AssociationState::Closed);
    }
    // HEARTBEAT ACK.
    let mut script = Script::called(quick());
    script
        .association()
        .request_heartbeat(anabranch_sctp::PathId(0));
    script.world.drain(Z);
    let Chunk::Heartbeat(probe) = script.expect("HEARTBEAT").remove(0) else {
        panic!()
    };
    script.wait(10 * MILLISECOND);
    let ack = Chunk::HeartbeatAck(anabranch_wire::chunk::HeartbeatAck { info: probe.info });
    script.say_raw(&flagged(&ack, 0));
    assert_eq!(script.discarded(DiscardReason::WrongState), 0);
    // Out of the blue packets.
    let mut script = Script::listening(quick());
    script.tag = 5;
    script.say_raw(&flagged(&abort(false), 1));
    script.say_raw(&flagged(&Chunk::CookieAck, 0));
    script.expect_nothing();
    script.say_raw(&flagged(&Chunk::ShutdownAck, 0));
    script.expect("SHUTDOWN COMPLETE");
}
