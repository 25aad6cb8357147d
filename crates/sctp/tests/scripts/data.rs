//! Scripts for DATA and SACK (RFC 9260 §6): the test purposes D, A and RT.

use super::*;

/// D-V-8-1, D-V-8-2: one message fills a packet exactly, and another does not fit into a packet.
#[test]
fn messages_are_fragmented_where_they_do_not_fit() {
    let mut script = Script::called(quick());
    script.send(1_452);
    let sent = script.expect("DATA");
    assert_eq!(data_of(&script, &sent), [(0, "BE".into(), 1_452)]);
    script.sack(1, 100_000, &[]);
    script.send(2_000);
    let first = script.expect_one("DATA");
    assert_eq!(data_of(&script, &first), [(1, "B".into(), 1_452)]);
    let second = script.expect_one("DATA");
    assert_eq!(data_of(&script, &second), [(2, "E".into(), 548)]);
}

/// D-V-8-3: fragments should be reassembled.
#[test]
fn fragments_are_put_together() {
    let mut script = Script::called(quick());
    script.say(&[&data_on(0, 0, 0, "B", 100)]);
    script.expect("SACK");
    script.say(&[&data_on(0, 1, 0, "", 100)]);
    script.say(&[&data_on(0, 2, 0, "E", 100)]);
    let sack = script.expect("SACK");
    assert_eq!(sack_of(&sack).0, 3);
    assert_eq!(script.read(), [300]);
}

/// D-I-8-5, D-V-8-4, RT-I-11-1, RT-I-11-2: lost data should be retransmitted, and the timeout
/// should double each time.
#[test]
fn data_is_sent_again_and_the_timeout_doubles() {
    let mut script = Script::called(quick());
    script.send(1_000);
    let sent = script.expect("DATA");
    for span in [100, 200, 400, 800, 800] {
        let again = script.expect_after(span * MILLISECOND, "DATA");
        assert_eq!(again, sent);
    }
    // A new measurement should reset the timeout to RTO.Min.
    let mut script = Script::called(quick());
    script.send(1_000);
    script.expect("DATA");
    script.sack(1, 100_000, &[]);
    script.send(1_000);
    script.expect("DATA");
    script.expect_after(100 * MILLISECOND, "DATA");
}

/// D-O-8-6: duplicates should be acknowledged at once and reported.
#[test]
fn duplicates_are_reported() {
    let mut script = Script::called(quick());
    script.say(&[&data(0, "BE", 100)]);
    script.expect("SACK");
    script.say(&[&data(1, "BE", 100)]);
    script.expect_nothing();
    script.say(&[&data(1, "BE", 100)]);
    let sack = script.expect("SACK");
    let (point, _, _, duplicates) = sack_of(&sack);
    assert_eq!((point, duplicates), (2, vec![1]));
    script.wait(100 * MILLISECOND);
    script.say(&[&data(2, "BE", 100)]);
    let sack = script.expect_after(200 * MILLISECOND, "SACK");
    assert_eq!(sack_of(&sack).3, [] as [u32; 0]);
    // Each TSN should be reported as often as a duplicate of it arrived.
    for offset in [0, 2, 2] {
        let packet = packet(
            A,
            script.tag,
            &[&data(offset, "BE", 100), &data(offset, "BE", 100)],
        );
        script.world.inject(Z, packet);
        let sack = script.expect("SACK");
        assert_eq!(sack_of(&sack).3, [offset, offset]);
    }
}

/// D-O-8-7, D-O-8-8, RFC 9260 §6.1 A: a closed window should be probed with one chunk, after one
/// RTO and then at intervals that double.
#[test]
fn a_closed_window_is_probed() {
    let mut script = Script::called(quick());
    script.send(1_452);
    script.expect("DATA");
    script.sack(1, 0, &[]);
    script.send(1_452);
    script.send(1_452);
    for span in [100, 100, 200, 400] {
        let probe = script.expect_after(span * MILLISECOND, "DATA");
        assert_eq!(data_of(&script, &probe)[0].0, 1);
        script.sack(1, 0, &[]);
        script.expect_nothing();
    }
    script.sack(2, 1_500, &[]);
    let sent = script.expect("DATA");
    assert_eq!(data_of(&script, &sent)[0].0, 2);
    script.sack(3, 1_500, &[]);
    script.expect_nothing();
}

/// D-V-8-9: data that is marked for retransmission should be sent before new data.
#[test]
fn retransmissions_go_first() {
    let mut script = Script::called(quick());
    for _ in 0..8 {
        script.send(1_452);
    }
    while script.world.shots.len() > script.seen {
        script.expect_one("DATA");
    }
    let again = script.expect_after(100 * MILLISECOND, "DATA");
    assert_eq!(data_of(&script, &again)[0].0, 0);
    script.sack(1, 100_000, &[]);
    let next = script.expect_one("DATA");
    assert_eq!(data_of(&script, &next)[0].0, 1);
}

/// D-V-8-10: a SACK should be processed whatever its source address.
#[test]
fn a_sack_from_another_address_counts() {
    let homes = quick().with(|it| it.addresses = vec![address(Z, 0), address(Z, 1)]);
    let mut script = Script::calling_at(homes, &[address(A, 0), address(A, 1)]);
    let listed = [
        cookie(),
        Parameter::address(address(A, 0)),
        Parameter::address(address(A, 1)),
    ];
    script.say(&[&init_ack_with(&listed)]);
    script.expect("COOKIE ECHO");
    script.say(&[&Chunk::CookieAck]);
    script.send(100);
    script.expect("DATA");
    let sack = sack_bytes(script.first, 1_500, &[], &[]);
    let path = Path::new(address(Z, 1), address(A, 1));
    let bytes = raw_packet(A, script.tag, &sack);
    script.world.inject_from(Z, path, bytes);
    script.wait(SECOND);
    script.expect_nothing();
    assert_eq!(script.association().status().outstanding_chunks, 0);
}

/// D-I-8-11: DATA without user data should be answered by an ABORT.
#[test]
fn no_user_data() {
    let mut script = Script::called(quick());
    script.say(&[&data(0, "BE", 0)]);
    let Chunk::Abort(abort) = script.expect("ABORT").remove(0) else {
        panic!()
    };
    let tsn = Tsn(TESTERS_TSN);
    assert_eq!(
        abort.causes.iter().flatten().next(),
        Some(Cause::NoUserData { tsn })
    );
}

/// D-O-8-12: an old SACK should be ignored.
#[test]
fn an_old_sack_is_dropped() {
    let mut script = Script::called(quick());
    script.send(1_000);
    script.expect("DATA");
    script.sack(1, 1_500, &[]);
    script.send(1_000);
    script.expect("DATA");
    script.sack(0, 1_500, &[(2, 2)]);
    script.expect_after(100 * MILLISECOND, "DATA");
    script.sack(2, 1_500, &[]);
    assert_eq!(script.association().status().outstanding_chunks, 0);
}

/// A-V-9-1, A-V-9-2, A-O-9-3: the first DATA, several DATA chunks in one packet, and gaps should be
/// acknowledged.
#[test]
fn acknowledgements() {
    let mut script = Script::accepted(quick());
    script.say(&[
        &data(0, "BE", 100),
        &data(1, "BE", 100),
        &data(2, "BE", 100),
    ]);
    let sack = script.expect("SACK");
    assert_eq!(sack_of(&sack).0, 3);
    assert_eq!(script.read(), [100, 100, 100]);
    let mut script = Script::accepted(quick());
    script.say(&[&data(0, "BE", 100)]);
    script.expect("SACK");
    script.say(&[&data(2, "BE", 100)]);
    let sack = script.expect("SACK");
    let (point, _, gaps, _) = sack_of(&sack);
    assert_eq!((point, gaps), (1, vec![(2, 2)]));
    script.say(&[&data(1, "BE", 100)]);
    let sack = script.expect_within(200 * MILLISECOND, "SACK");
    let (point, _, gaps, _) = sack_of(&sack);
    assert_eq!((point, gaps), (3, vec![]));
    assert_eq!(script.read(), [100, 100, 100]);
}

/// E-I-6-3: DATA of a nonexistent stream should be reported.
#[test]
fn a_stream_that_does_not_exist() {
    let mut script = Script::called(quick().with(|it| it.inbound_streams = 1));
    script.say(&[&data_on(1, 0, 0, "BE", 1_000)]);
    let answer = script.expect("ERROR, SACK");
    let Chunk::Error(error) = &answer[0] else {
        panic!()
    };
    let cause = error.causes.iter().flatten().next();
    assert_eq!(cause, Some(Cause::InvalidStreamIdentifier { stream_id: 1 }));
    assert_eq!(sack_of(&answer).0, 1);
    assert!(script.read().is_empty());
}
