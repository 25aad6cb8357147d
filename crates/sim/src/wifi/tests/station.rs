//! Tests of the state machine of a single station, in situations that are rare on a medium.

use super::super::backoff::{Backoff, Interrupted};
use super::super::dcf::{Dcf, Expired, Finished, NO_DEADLINE, Rules};
use super::*;
use rand_pcg::Pcg32;

fn rules(parameters: WifiParameters) -> Rules {
    Rules {
        parameters,
        timing: PhyTiming::new(&parameters),
    }
}

fn frame(kind: FrameKind, from: u16, to: u16, duration: Nanos) -> Frame {
    Frame {
        kind,
        from: StationId(from),
        to: StationId(to),
        air_time: 304 * US,
        duration,
        sequence: 0,
        retry: false,
    }
}

/// A station that detected a busy medium until `now` and has a packet of 500 bytes for station 1,
/// together with its drawn backoff.
fn contender(rules: &Rules, now: Nanos) -> Dcf {
    let mut dcf = Dcf::new(StationId(0), rules, Pcg32::new(3, 4));
    dcf.carrier_begins(now - 1000 * US, rules);
    dcf.offer(now - 500 * US, StationId(1), 500, rules);
    dcf.carrier_ends(now);
    dcf
}

/// Only whole slots during which the medium is idle are counted; the remaining slots are kept.
#[test]
fn a_backoff_stands_still_while_the_medium_is_busy() {
    let parameters = WifiParameters {
        cca_time: 0,
        ..WifiParameters::ieee80211b()
    };
    let mut backoff = Backoff::new(&parameters, Pcg32::new(5, 6));
    backoff.draw(&parameters);
    let whole = backoff.count_from(0, &parameters) / (20 * US);
    assert!(whole > 4, "this seed draws {whole} slots");
    // In the first call 3 slots and a fraction have passed, in the second DIFS has not passed, and
    // in the third exactly one slot has passed.
    assert_eq!(
        backoff.interrupt(79 * US, true, &parameters),
        Interrupted::Frozen
    );
    assert_eq!(
        backoff.count_from(1000 * US, &parameters),
        1000 * US + (whole - 3) * 20 * US
    );
    assert_eq!(
        backoff.interrupt(990 * US, true, &parameters),
        Interrupted::Frozen
    );
    assert_eq!(
        backoff.count_from(2000 * US, &parameters),
        2000 * US + (whole - 3) * 20 * US
    );
    assert_eq!(
        backoff.interrupt(2020 * US, true, &parameters),
        Interrupted::Frozen
    );
    let end = backoff.count_from(3000 * US, &parameters);
    assert_eq!(end, 3000 * US + (whole - 4) * 20 * US);
    // A carrier at the end of the last slot is too late to stop a station with a packet. For a
    // station without a packet the count has ended.
    assert_eq!(
        backoff.interrupt(end, true, &parameters),
        Interrupted::TooLate
    );
    assert_eq!(
        backoff.interrupt(end, false, &parameters),
        Interrupted::Frozen
    );
    assert!(!backoff.is_drawn());
    assert_eq!(backoff.interrupt(end, true, &parameters), Interrupted::Idle);
}

/// A station detects a carrier only 15 us after its start; if its backoff ends before that, it
/// transmits.
#[test]
fn a_carrier_is_not_noticed_at_once() {
    let parameters = WifiParameters::ieee80211b();
    let mut backoff = Backoff::new(&parameters, Pcg32::new(5, 6));
    backoff.draw(&parameters);
    let end = backoff.count_from(0, &parameters);
    assert_eq!(
        backoff.interrupt(end - 15 * US, true, &parameters),
        Interrupted::TooLate
    );
    assert_eq!(
        backoff.interrupt(end - 16 * US, true, &parameters),
        Interrupted::Frozen
    );
    assert_eq!(
        backoff.count_from(end, &parameters),
        end + 20 * US,
        "one slot is left"
    );
}

/// Draws are uniform in windows of 31, 63, ... 1023 slots; with Rafiq's listing the range has one
/// value less.
#[test]
fn windows_double_up_to_the_largest() {
    for (parameters, excluded) in [
        (WifiParameters::ieee80211b(), 0),
        (WifiParameters::rafiq2007(), 1),
    ] {
        let mut backoff = Backoff::new(&parameters, Pcg32::new(7, 8));
        for window in [31_u64, 63, 127, 255, 511, 1023, 1023] {
            let mut sum = 0;
            let mut most = 0;
            for _ in 0..20_000 {
                backoff.draw(&parameters);
                let slots = backoff.count_from(0, &parameters) / (20 * US);
                sum += slots;
                most = most.max(slots);
            }
            assert!(most <= window - excluded, "{most} of {window}");
            let mean = sum as f64 / 20_000.0;
            let expected = (window - excluded) as f64 / 2.0;
            // Standard deviation of the mean: window / sqrt(12 * 20000) = window / 490.
            assert!(
                (mean - expected).abs() < window as f64 / 100.0,
                "{mean} instead of {expected}"
            );
            backoff.widen(&parameters);
        }
        backoff.reset(&parameters);
        backoff.draw(&parameters);
        assert!(backoff.count_from(0, &parameters) <= 31 * 20 * US);
    }
}

/// After an undecodable frame a station waits for EIFS and not for DIFS; with Rafiq's listing it
/// waits for EIFS and then for DIFS.
#[test]
fn errors_cost_eifs() {
    let t = 10_000 * US;
    let deadline = |parameters: WifiParameters, spoiled: bool| {
        let rules = rules(parameters);
        let mut dcf = contender(&rules, t);
        if spoiled {
            dcf.spoiled(t, &rules);
        }
        dcf.arm(t, &rules);
        dcf.deadline()
    };
    let standard = WifiParameters::ieee80211b();
    assert_eq!(
        deadline(standard, true) - deadline(standard, false),
        (364 - 50) * US
    );
    let listing = WifiParameters::rafiq2007();
    assert_eq!(deadline(listing, true) - deadline(listing, false), 364 * US);
}

/// A frame that is decoded during EIFS ends EIFS.
#[test]
fn a_decoded_frame_forgives_the_error() {
    let rules = rules(WifiParameters::ieee80211b());
    let t = 10_000 * US;
    let mut dcf = contender(&rules, t);
    dcf.spoiled(t, &rules);
    dcf.arm(t, &rules);
    let after_error = dcf.deadline() - t - 364 * US;
    dcf.carrier_begins(t + 20 * US, &rules);
    let u = t + 324 * US;
    dcf.carrier_ends(u);
    dcf.decoded(u, &frame(FrameKind::Ack, 5, 6, 0), &rules);
    dcf.arm(u, &rules);
    assert_eq!(dcf.deadline(), u + 50 * US + after_error);
}

/// If the medium becomes busy during EIFS, EIFS ends. A frame that arrives while the station itself
/// transmits is not a new error.
#[test]
fn eifs_follows_its_own_error_only() {
    let rules = rules(WifiParameters::ieee80211b());
    let t = 10_000 * US;
    let mut dcf = contender(&rules, t);
    dcf.spoiled(t, &rules);
    dcf.arm(t, &rules);
    let backoff = dcf.deadline() - t - 364 * US;
    let u = t + 400 * US;
    dcf.carrier_begins(t + 20 * US, &rules);
    dcf.carrier_ends(u);
    dcf.arm(u, &rules);
    assert_eq!(dcf.deadline(), u + 50 * US + backoff);
}

/// A duplicate is recognised by its sequence number and its retry flag together, because sequence
/// numbers wrap.
#[test]
fn equal_numbers_alone_are_no_repetition() {
    let rules = rules(WifiParameters::ieee80211b());
    let mut dcf = Dcf::new(StationId(0), &rules, Pcg32::new(3, 4));
    let mut fresh = Vec::new();
    let data = frame(FrameKind::Data, 1, 0, 314 * US);
    for (round, frame) in [
        data,
        data,
        Frame {
            retry: true,
            ..data
        },
        Frame {
            from: StationId(2),
            retry: true,
            ..data
        },
    ]
    .iter()
    .enumerate()
    {
        let now = (round as u64 + 1) * 10_000 * US;
        fresh.push(dcf.decoded(now, frame, &rules).fresh);
        assert!(
            matches!(
                dcf.expire(dcf.deadline(), false, &rules),
                Expired::Transmit(_)
            ),
            "each has its ACK"
        );
    }
    assert_eq!(fresh, [true, true, false, true]);
    assert_eq!(dcf.stats.duplicates, 1);
}

/// A station defers to a frame for another station for its Duration, and then for DIFS.
#[test]
fn the_nav_counts_as_a_carrier() {
    let rules = rules(WifiParameters::ieee80211b());
    let t = 10_000 * US;
    let mut plain = contender(&rules, t);
    plain.arm(t, &rules);
    let mut dcf = contender(&rules, t);
    dcf.decoded(t, &frame(FrameKind::Rts, 5, 6, 2_000 * US), &rules);
    dcf.arm(t, &rules);
    assert_eq!(dcf.deadline(), plain.deadline() + 2_000 * US);
    // A frame for this station does not set the NAV, and a frame with a shorter Duration does not
    // shorten it.
    let mut mine = contender(&rules, t);
    mine.decoded(t, &frame(FrameKind::Cts, 5, 0, 2_000 * US), &rules);
    mine.arm(t, &rules);
    assert_eq!(mine.deadline(), plain.deadline());
}

/// A station responds to an RTS, unless its NAV shows that another station has reserved the medium.
#[test]
fn no_cts_while_the_nav_runs() {
    let rules = rules(WifiParameters {
        rts_threshold: 0,
        ..WifiParameters::ieee80211b()
    });
    let t = 10_000 * US;
    let mut dcf = Dcf::new(StationId(0), &rules, Pcg32::new(3, 4));
    dcf.decoded(t, &frame(FrameKind::Rts, 5, 6, 2_000 * US), &rules);
    dcf.decoded(
        t + 1_999 * US,
        &frame(FrameKind::Rts, 7, 0, 3_000 * US),
        &rules,
    );
    dcf.arm(t + 1_999 * US, &rules);
    assert_eq!(dcf.deadline(), NO_DEADLINE);
    dcf.decoded(
        t + 2_000 * US,
        &frame(FrameKind::Rts, 7, 0, 3_000 * US),
        &rules,
    );
    dcf.arm(t + 2_000 * US, &rules);
    assert_eq!(dcf.deadline(), t + 2_010 * US);
    let Expired::Transmit(cts) = dcf.expire(t + 2_010 * US, false, &rules) else {
        panic!("it answers");
    };
    assert_eq!(
        (cts.kind, cts.to, cts.duration),
        (FrameKind::Cts, StationId(7), (3_000 - 10 - 304) * US)
    );
}

/// RTS -> CTS -> DATA -> no ACK, four times, reaches the long retry limit. Every CTS resets the
/// count of failed RTS frames.
#[test]
fn the_long_retry_limit_counts_data_alone() {
    let rules = rules(WifiParameters {
        rts_threshold: 0,
        ..WifiParameters::ieee80211b()
    });
    let mut dcf = contender(&rules, 10_000 * US);
    dcf.arm(10_000 * US, &rules);
    let mut sent = Vec::new();
    let mut step = |dcf: &mut Dcf, cts: bool| {
        let now = dcf.deadline();
        let expired = dcf.expire(now, false, &rules);
        if let Expired::Transmit(frame) = expired {
            sent.push((frame.kind, frame.retry, frame.sequence));
            let end = now + frame.air_time;
            if frame.kind == FrameKind::Rts && cts {
                dcf.carrier_begins(end + 10 * US, &rules);
                dcf.carrier_ends(end + 314 * US);
                dcf.decoded(
                    end + 314 * US,
                    &super::station::frame(FrameKind::Cts, 1, 0, 0),
                    &rules,
                );
            }
        }
        dcf.arm(now, &rules);
        expired
    };
    for attempt in 1..=4 {
        // Six RTS frames without a response, which is below the limit of seven, and one with a
        // response.
        for _ in 0..6 {
            assert!(matches!(step(&mut dcf, false), Expired::Transmit(_)));
            assert_eq!(step(&mut dcf, false), Expired::Failed(None));
        }
        assert!(matches!(step(&mut dcf, true), Expired::Transmit(_)));
        assert!(matches!(step(&mut dcf, true), Expired::Transmit(_)));
        let given_up = Finished::GivenUp(WifiDropReason::LongRetryLimit);
        let expected = Expired::Failed((attempt == 4).then_some(given_up));
        assert_eq!(step(&mut dcf, false), expected, "attempt {attempt}");
    }
    let data: Vec<_> = sent
        .into_iter()
        .filter(|sent| sent.0 == FrameKind::Data)
        .collect();
    assert_eq!(
        data.iter().map(|sent| sent.1).collect::<Vec<_>>(),
        [false, true, true, true]
    );
    assert!(
        data.iter().all(|sent| sent.2 == data[0].2),
        "one packet, one sequence number"
    );
    assert_eq!((dcf.stats.cts_missing, dcf.stats.ack_missing), (24, 4));
}

/// If a response is being received at the timeout, the station waits until its end.
#[test]
fn a_timeout_waits_for_the_frame_being_received() {
    let rules = rules(WifiParameters::ieee80211b());
    let mut dcf = contender(&rules, 10_000 * US);
    dcf.arm(10_000 * US, &rules);
    let Expired::Transmit(data) = dcf.expire(dcf.deadline(), false, &rules) else {
        panic!("it transmits");
    };
    let timeout = dcf.deadline();
    assert_eq!(dcf.expire(timeout, true, &rules), Expired::Waiting);
    let decoded = dcf.decoded(timeout + 100 * US, &frame(FrameKind::Ack, 1, 0, 0), &rules);
    assert_eq!(decoded.finished, Some(Finished::Confirmed));
    assert_eq!(data.kind, FrameKind::Data);
    assert_eq!(dcf.stats.confirmed, 1);
}

/// If another frame than the ACK is decoded, the attempt has failed.
#[test]
fn another_frame_in_place_of_the_ack_is_a_failure() {
    let rules = rules(WifiParameters::ieee80211b());
    let mut dcf = contender(&rules, 10_000 * US);
    dcf.arm(10_000 * US, &rules);
    let now = dcf.deadline();
    assert!(matches!(
        dcf.expire(now, false, &rules),
        Expired::Transmit(_)
    ));
    let decoded = dcf.decoded(
        now + 2_000 * US,
        &frame(FrameKind::Data, 2, 0, 314 * US),
        &rules,
    );
    assert!(decoded.fresh && decoded.finished.is_none());
    assert_eq!(dcf.stats.ack_missing, 1);
    // The other frame is addressed to this station, which acknowledges it after SIFS.
    let Expired::Transmit(answer) = dcf.expire(dcf.deadline(), false, &rules) else {
        panic!("it answers");
    };
    assert_eq!((answer.kind, answer.to), (FrameKind::Ack, StationId(2)));
}
