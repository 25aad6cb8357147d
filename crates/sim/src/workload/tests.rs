//! Tests of the offers of each workload, with times computed by hand.

use super::*;
use crate::rng::Seed;

const SECOND: Nanos = 1_000_000_000;

/// Polls the workload at the times that it returns. Records the size of each message and the time
/// at which it was offered.
fn offers(workload: &mut dyn Workload, begin: Nanos, end: Nanos) -> Vec<(Nanos, usize)> {
    let (mut now, mut offers) = (begin, Vec::new());
    loop {
        match workload.next(now) {
            NextMessage::Now(message) => offers.push((now, message.size)),
            NextMessage::At(next) if next <= end => {
                assert!(next > now);
                now = next;
            }
            NextMessage::At(_) | NextMessage::Waiting | NextMessage::Done => return offers,
        }
    }
}

#[test]
fn bulk_ends_with_its_last_byte() {
    let mut bulk = Bulk::of(2500, 1000);
    assert_eq!(offers(&mut bulk, 5, 5), [(5, 1000), (5, 1000), (5, 500)]);
    assert_eq!(bulk.next(9), NextMessage::Done);
    let mut endless = Bulk::endless(7);
    for _ in 0..1000 {
        assert!(matches!(
            endless.next(1),
            NextMessage::Now(Message { size: 7, .. })
        ));
    }
}

#[test]
fn cbr_keeps_its_rate_without_drift() {
    // The interval of 3 messages of 125 bytes per second is not a whole number of nanoseconds.
    let mut cbr = Cbr::new(3000, 125).unwrap();
    let times: Vec<Nanos> = offers(&mut cbr, 10, 10 + 2 * SECOND)
        .iter()
        .map(|o| o.0)
        .collect();
    let expected = [
        0,
        333_333_333,
        666_666_666,
        1_000_000_000,
        1_333_333_333,
        1_666_666_666,
        2_000_000_000,
    ];
    assert_eq!(times, expected.map(|t| t + 10));
}

#[test]
fn cbr_offers_late_messages_that_were_not_polled_in_time() {
    let mut cbr = Cbr::new(8000, 100).unwrap().limited_to(4);
    assert_eq!(offers(&mut cbr, 0, 0), [(0, 100)]);
    assert_eq!(offers(&mut cbr, SECOND, SECOND), [(SECOND, 100); 3]);
    assert_eq!(cbr.next(SECOND), NextMessage::Done);
    assert!(Cbr::new(0, 100).is_err());
    assert!(Cbr::new(1, 0).is_err());
}

#[test]
fn on_off_with_fixed_spans_repeats() {
    let (on, off) = (PeriodLength::Fixed(250), PeriodLength::Fixed(1000));
    // Messages of 100 bytes are 100 ns apart, so each burst has three, at 0, 100 and 200.
    let rng = Seed::default().stream("on-off");
    let mut source = OnOff::new(8_000_000_000, 100, on, off, rng).unwrap();
    let times: Vec<Nanos> = offers(&mut source, 0, 2600).iter().map(|o| o.0).collect();
    assert_eq!(times, [0, 100, 200, 1250, 1350, 1450, 2500, 2600]);
}

#[test]
fn on_off_with_exponential_spans_has_its_mean_rate() {
    let (on, off) = (
        PeriodLength::Exponential(500_000_000),
        PeriodLength::Exponential(1_500_000_000),
    );
    let rng = Seed::new(3, 0).stream("on-off");
    let mut source = OnOff::new(80_000, 100, on, off, rng).unwrap();
    let sent = offers(&mut source, 0, 20_000 * SECOND).len() as f64;
    // The source is on for a quarter of the time, at 100 messages per second. Each burst begins
    // with a message, which adds half a message per burst: 10,000 bursts of 50.5 messages on
    // average.
    let expected = 10_000.0 * (50.0 + 0.5);
    assert!((sent / expected - 1.0).abs() < 0.04, "{sent}");
    let rng = Seed::default().stream("x");
    assert!(OnOff::new(1, 1, PeriodLength::Fixed(0), off, rng).is_err());
}

#[test]
fn a_trace_is_offered_as_written() {
    let entry = |at, size, stream| TraceEntry { at, size, stream };
    let entries = vec![entry(0, 5, 2), entry(7, 6, 0), entry(7, 8, 0)];
    let mut trace = MessageTrace::new(entries).unwrap();
    assert_eq!(
        trace.next(100),
        NextMessage::Now(Message {
            stream: Some(2),
            ..Message::new(5).due(100)
        })
    );
    assert_eq!(trace.next(100), NextMessage::At(107));
    assert_eq!(offers(&mut trace, 107, 107), [(107, 6), (107, 8)]);
    assert_eq!(trace.next(108), NextMessage::Done);
    assert!(MessageTrace::new(vec![entry(2, 1, 0), entry(1, 1, 0)]).is_err());
    assert!(MessageTrace::new(vec![entry(2, 0, 0)]).is_err());
}

#[test]
fn fixed_arrivals_keep_their_gap() {
    let arrivals = Arrivals {
        gaps: PeriodLength::Fixed(SECOND),
        count: Some(3),
    };
    let rng = Seed::default().stream("transfers");
    let sizes = Box::new(size::ConstantSize(5000));
    let mut transfers = OpenLoop::new(arrivals, sizes, 1452, rng).unwrap();
    assert_eq!(transfers.facts().pieces(), [1452, 1452]);
    let expected = [1, 2, 3].map(|n| (7 + n * SECOND, 5000));
    assert_eq!(offers(&mut transfers, 7, 10 * SECOND), expected);
    assert_eq!(transfers.next(10 * SECOND), NextMessage::Done);
}

#[test]
fn a_transfer_taken_late_was_due_in_time() {
    let arrivals = Arrivals {
        gaps: PeriodLength::Fixed(SECOND),
        count: None,
    };
    let rng = Seed::default().stream("transfers");
    let mut transfers = OpenLoop::new(arrivals, Box::new(size::ConstantSize(5)), 10, rng).unwrap();
    assert_eq!(transfers.next(0), NextMessage::At(SECOND));
    let due = |offer| match offer {
        NextMessage::Now(message) => message.due,
        _ => None,
    };
    let taken = [0; 2].map(|_| due(transfers.next(5 * SECOND)));
    assert_eq!(taken, [Some(SECOND), Some(2 * SECOND)]);
}

#[test]
fn poisson_arrivals_come_at_their_mean_rate_and_in_bursts() {
    let arrivals = Arrivals {
        gaps: PeriodLength::Exponential(SECOND),
        count: None,
    };
    let rng = Seed::new(9, 0).stream("transfers");
    let mut transfers = OpenLoop::new(arrivals, Box::new(size::ConstantSize(5)), 10, rng).unwrap();
    let times: Vec<Nanos> = offers(&mut transfers, 0, 20_000 * SECOND)
        .iter()
        .map(|offer| offer.0)
        .collect();
    // 20,000 messages are expected; three standard deviations are 424.
    assert!((19_576..20_424).contains(&times.len()), "{}", times.len());
    // A gap is below the mean with a probability of 1 - 1/e = 0.632.
    let short = times.windows(2).filter(|pair| pair[1] - pair[0] < SECOND);
    let share = short.count() as f64 / times.len() as f64;
    assert!((share - 0.632).abs() < 0.011, "{share}");
}

#[test]
fn a_request_waits_for_the_answer_to_the_one_before() {
    let sizes: [Box<dyn size::Sizes>; 2] = [
        Box::new(size::ConstantSize(200)),
        Box::new(size::ConstantSize(9000)),
    ];
    let rng = Seed::default().stream("requests");
    let mut client = RequestResponse::new(sizes, PeriodLength::Fixed(30), 1452, rng)
        .unwrap()
        .limited_to(2);
    let asked = |due| {
        NextMessage::Now(Message {
            piece: Some(1452),
            answer: Some(9000),
            ..Message::new(200).due(due)
        })
    };
    assert_eq!(client.next(5), asked(5));
    assert_eq!([client.next(5), client.next(90)], [NextMessage::Waiting; 2]);
    client.answered(100);
    assert_eq!(client.next(100), NextMessage::At(130));
    // An answer without a pending request has no effect.
    client.answered(110);
    assert_eq!(client.next(140), asked(130));
    assert_eq!(
        client.next(150),
        NextMessage::Waiting,
        "the last answer is still to come"
    );
    client.answered(160);
    assert_eq!(client.next(160), NextMessage::Done);
}
