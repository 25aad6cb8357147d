//! Tests of classifications computed by hand. At 100,000 bytes/s and a minimum round-trip time of
//! 100 ms, 10,000 bytes are in flight. With the weights 1.4 and 1.6 a loss is therefore congestion
//! at a cwnd above 14,000 bytes with one stream, and above 16,000 bytes with several. With the
//! smoothed round-trip time of 200 ms, these limits are twice as high.

use anabranch_settings::{Datum, SettingValue};
use anabranch_transport::ProbeSet;
use anabranch_transport::time::{MILLISECOND, SECOND};

use super::*;

fn loss(now: Nanos, cwnd: u64) -> LossEvent {
    LossEvent {
        now,
        cause: LossCause::FastRetransmit,
        cwnd,
        rate: Some(100_000.0),
        rtt_min: Some(100 * MILLISECOND),
        srtt: Some(200 * MILLISECOND),
    }
}

fn adaptive() -> Adaptive {
    Adaptive::new(4, LossClassifier::default())
}

fn step() -> AdaptiveStep {
    AdaptiveStep::new(LossClassifier::default())
}

#[test]
fn the_weights_differ_before_and_after_several_are_in_use() {
    let mut adaptive = adaptive();
    let mut step = step();
    let wanted: Vec<(u16, u16)> = [14_001, 14_000, 14_001, 16_000, 16_001, 14_001]
        .map(|cwnd| {
            adaptive.on_loss(&loss(0, cwnd));
            step.on_loss(&loss(0, cwnd));
            (adaptive.wanted(), step.wanted())
        })
        .to_vec();
    assert_eq!(wanted, [(1, 1), (4, 2), (4, 3), (4, 4), (1, 3), (1, 4)]);
}

#[test]
fn the_round_trip_is_a_choice_and_no_estimate_speaks_for_congestion() {
    let judgement = LossClassifier {
        round_trip: RoundTrip::Smoothed,
        ..LossClassifier::default()
    };
    assert!(!judgement.is_congestion(&loss(0, 28_000), false));
    assert!(judgement.is_congestion(&loss(0, 28_001), false));
    for unknown in [
        LossEvent {
            rate: None,
            ..loss(0, 1)
        },
        LossEvent {
            srtt: None,
            ..loss(0, 1)
        },
    ] {
        assert!(judgement.is_congestion(&unknown, false), "{unknown:?}");
    }
}

#[test]
fn with_a_second_for_the_round_trip_bytes_are_compared_with_bytes_per_second() {
    let judgement = LossClassifier {
        round_trip: RoundTrip::Given(SECOND),
        ..LossClassifier::default()
    };
    let unmeasured = |cwnd| LossEvent {
        rtt_min: None,
        srtt: None,
        ..loss(0, cwnd)
    };
    assert!(!judgement.is_congestion(&unmeasured(140_000), false));
    assert!(judgement.is_congestion(&unmeasured(140_001), false));
}

/// Several streams are used from 1 s on, so the checks are at 6, 11, 16, ... s. A check finds a
/// quiet period if the last retransmission is at least 5 s old: a retransmission at 1 s is old
/// enough at 6 s, and one at 7 s only at 16 s.
#[test]
fn five_seconds_without_a_retransmission_return_to_one_stream() {
    for (retransmissions, quiet_at) in [
        (vec![1], 6),
        (vec![1, 2], 11),
        (vec![1, 5, 7], 16),
        (vec![], 6),
    ] {
        let mut allocations: [Box<dyn StreamAllocation>; 2] =
            [Box::new(adaptive()), Box::new(step())];
        for allocation in &mut allocations {
            let name = allocation.name();
            assert_eq!(
                allocation.deadline(),
                None,
                "{name}: one stream, no question"
            );
            allocation.on_loss(&loss(SECOND, 1000));
            let mut pending = retransmissions.clone().into_iter().peekable();
            loop {
                let deadline = allocation
                    .deadline()
                    .expect("asked while several are in use");
                while let Some(at) = pending.next_if(|at| at * SECOND <= deadline) {
                    allocation.on_retransmission(at * SECOND);
                }
                allocation.handle_timeout(deadline - 1);
                assert!(allocation.wanted() > 1, "{name}: too early");
                allocation.handle_timeout(deadline);
                if allocation.wanted() == 1 {
                    assert_eq!(deadline, quiet_at * SECOND, "{name} {retransmissions:?}");
                    assert_eq!(allocation.deadline(), None, "{name}");
                    break;
                }
            }
        }
    }
}

#[test]
fn it_is_never_asked_where_the_question_is_off() {
    let judgement = LossClassifier {
        quiet: None,
        ..LossClassifier::default()
    };
    let mut step = AdaptiveStep::new(judgement);
    step.on_loss(&loss(0, 1));
    assert_eq!((step.wanted(), step.deadline()), (2, None));
    step.handle_timeout(Nanos::MAX);
    assert_eq!(step.wanted(), 2);
}

fn in_use(kind: AllocationKind, negotiated: u16) -> StreamsInUse {
    let mut streams = StreamsInUse::new(&kind);
    streams.negotiated(negotiated);
    streams
}

#[test]
fn turns_go_round_the_streams_in_use() {
    let turns = |streams: &mut StreamsInUse| [(); 7].map(|()| streams.take_turn());
    let mut three = in_use(AllocationKind::Fixed(3), 10);
    assert_eq!(turns(&mut three), [0, 1, 2, 0, 1, 2, 0]);
    let mut few = in_use(AllocationKind::Fixed(3), 2);
    assert_eq!(turns(&mut few), [0, 1, 0, 1, 0, 1, 0]);
    assert_eq!((few.take_limit_met(), few.refused), (Some(2), 1));
    assert_eq!(few.take_limit_met(), None);
    let mut all = in_use(AllocationKind::Negotiated, u16::MAX);
    assert_eq!((0..65_536u32).map(|_| all.take_turn()).last(), Some(0));
    assert_eq!((all.take_limit_met(), all.in_use()), (None, u16::MAX));
}

/// Four streams are negotiated. Three wireless losses reach this number; two further requests are
/// refused and reported once. After a congestion loss the limit is reported again.
#[test]
fn growth_stops_at_what_was_negotiated_and_is_reported() {
    let judgement = LossClassifier::default();
    let mut streams = in_use(AllocationKind::AdaptiveStep { judgement }, 4);
    let mut trace = Trace::new(ProbeSet::ALL);
    streams.record(0, &mut trace);
    let mut story = Vec::new();
    for (at, cwnd) in [1, 1, 1, 1, 1, 99_999, 1, 1].into_iter().enumerate() {
        streams.on_loss(&loss(at as Nanos + 1, cwnd), &mut trace);
        story.push((streams.in_use(), streams.take_limit_met()));
    }
    let met = Some(4);
    assert_eq!(
        story,
        [
            (2, None),
            (3, None),
            (4, None),
            (4, met),
            (4, None),
            (3, None),
            (4, None),
            (4, met)
        ]
    );
    assert_eq!((streams.refused, streams.changes), (3, 5));
    let recorded: Vec<(Nanos, f64)> = trace
        .drain()
        .map(|sample| (sample.at, sample.value))
        .collect();
    assert_eq!(
        recorded,
        [(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0), (6, 3.0), (7, 4.0)]
    );
}

#[test]
fn names_make_what_they_say() {
    for variant in VARIANTS {
        let parameters = vec![("streams".to_owned(), Datum::Whole(1))];
        let datum = Datum::Variant {
            kind: variant.name.to_owned(),
            parameters,
        };
        let kind = AllocationKind::from_datum(&datum).expect("a known name");
        assert_eq!(kind.build().name(), variant.name);
        let adaptive = variant.name.starts_with("adaptive");
        assert_eq!(kind.needs_rate(), adaptive, "{}", variant.name);
    }
}

/// After any losses, retransmissions and timeouts, the number of streams is between 1 and the
/// negotiated number, and every selected stream is in use.
#[test]
fn never_less_than_one_nor_more_than_negotiated() {
    let judgement = LossClassifier::default();
    for seed in 1..=200u64 {
        let mut state = seed;
        let mut draw = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let kind = match draw(4) {
            0 => AllocationKind::Adaptive {
                streams: draw(70_000) as u16,
                judgement,
            },
            1 => AllocationKind::Fixed(draw(9) as u16),
            _ => AllocationKind::AdaptiveStep { judgement },
        };
        let negotiated = 1 + draw(12) as u16;
        let mut streams = in_use(kind, negotiated);
        let mut trace = Trace::default();
        let mut now = 0;
        for step in 0..300 {
            now += draw(2 * SECOND);
            match draw(4) {
                0 => streams.on_retransmission(now),
                1 => streams.handle_timeout(now, &mut trace),
                _ => streams.on_loss(&loss(now, 2 * draw(15_000)), &mut trace),
            }
            let place = format!("seed {seed}, step {step}, {kind:?} of {negotiated}");
            assert!((1..=negotiated).contains(&streams.in_use()), "{place}");
            assert!(streams.take_turn() < streams.in_use(), "{place}");
            assert!(
                streams.in_use() > 1 || streams.deadline().is_none() || negotiated == 1,
                "{place}: one stream needs no timer"
            );
        }
    }
}
