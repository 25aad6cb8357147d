//! Behavior of the engine with the input that this crate filters out, which shows why the filter is
//! needed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

fn identity(number: u8) -> Identity {
    Identity::new([number; 32]).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "an origin and nothing more")]
fn server() -> Dtls {
    let at = (Instant::now(), 0);
    let expected = identity(2).fingerprint();
    Dtls::new(at, &identity(1), DtlsRole::Server, expected, 7).unwrap()
}

/// An engine of `dimpl` alone, without the checks of `Dtls` before it.
fn engine() -> dimpl::Dtls {
    let dtls = server();
    let mut engine = dtls.engines.plain(0);
    engine.handle_timeout(dtls.engines.instant(0)).unwrap();
    engine
}

fn protected(count: u64) -> Vec<u8> {
    let mut record = record::encode_record(record::kind::HANDSHAKE, &[7; 40], count);
    record[4] = 1;
    record
}

/// Thirty records that the engine cannot use yet fill its buffer; later records cause an error.
#[test]
fn the_engine_alone_is_ended_by_forty_records() {
    let mut engine = engine();
    let change = |count| record::encode_record(record::kind::CHANGE_CIPHER_SPEC, &[1], count);
    let given = (0..40).map(|count| engine.handle_packet(&change(count)));
    let refused = given.filter(Result::is_err).count();
    assert_eq!(refused, 10);

    let mut discards = DiscardCounts::default();
    let mut dtls = server();
    for count in 0..10_000 {
        let datagram = [change(count), protected(count), protected(0)].concat();
        let moved = dtls.handle_datagram(0, &datagram, &mut discards);
        assert_eq!(moved, Ok(false));
    }
    assert_eq!(dtls.handshake.stage, Stage::Hello);
    let kept = discards.of(crate::DiscardReason::DtlsEarly);
    assert_eq!(kept, 20_000 - 8);
}

/// Two encrypted records with the same number cause a panic if they arrive before keys are
/// available.
#[test]
fn the_engine_alone_panics_at_two_records() {
    let mut engine = engine();
    engine.handle_packet(&protected(5)).unwrap();
    let second = AssertUnwindSafe(|| engine.handle_packet(&protected(5)));
    assert!(catch_unwind(second).is_err());
}

/// A message should be reassembled from fragments in any order and of any size, even with other
/// data between them.
#[test]
fn pieces_are_put_together() {
    use flight::{Flight, message, put};
    let body: Vec<u8> = (0..1_000_u32).map(|it| (it * 7) as u8).collect();
    let piece = |from: usize, to: usize| record::HandshakeFragment {
        kind: message::CLIENT_HELLO,
        number: 0,
        length: body.len(),
        offset: from,
        bytes: &body[from..to],
    };
    let mut state = 1_u64;
    let mut draw = move |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 40) as usize % most
    };
    for _ in 0..200 {
        let mut place = None;
        // Contradicting earlier data is replaced.
        put(
            &mut place,
            &record::HandshakeFragment {
                length: 5,
                bytes: &[9; 5],
                ..piece(0, 1)
            },
        );
        let mut whole = false;
        let mut covered = vec![false; body.len()];
        for _ in 0..10_000 {
            let from = draw(body.len());
            let to = from + 1 + draw((body.len() - from).min(300));
            covered[from..to].fill(true);
            whole = put(&mut place, &piece(from, to));
            if whole {
                break;
            }
        }
        assert!(whole && covered.iter().all(|&it| it));
        assert_eq!(place.unwrap().body, body);
    }
    // Messages in the wrong slot or of another type should not be accepted.
    let mut flight = Flight::new(true, 1);
    for number in [0, 1, 6, 7, u16::MAX] {
        let piece = record::HandshakeFragment {
            number,
            ..piece(0, 1_000)
        };
        assert!(flight.take(&piece, |_| true).is_err(), "{number}");
    }
}
