//! Tests of stations that hear only some of the others: collisions, hidden stations, capture, lost
//! responses.

use super::*;
use FrameKind::{Ack, Cts, Data, Rts};

const SECOND: Nanos = 1_000_000_000;

/// With the radio of `ieee80211b`, frames are decoded at 300 m, only detected at 420 m, and not
/// detected at 600 m.
#[test]
fn three_distances() {
    let radio = WifiParameters::ieee80211b().radio;
    assert!(radio.received_power(300.0) >= radio.receive_threshold);
    let noticed = radio.received_power(420.0);
    assert!(noticed < radio.receive_threshold && noticed >= radio.carrier_sense_threshold);
    assert!(radio.received_power(600.0) < radio.carrier_sense_threshold);
}

/// A -> DATA and C -> DATA start at the same time, equally far from B: B decodes neither, and both
/// are sent again.
#[test]
fn equal_signals_destroy_each_other() {
    let (mut medium, stations) = medium(
        WifiParameters::ieee80211b(),
        &[(-30.0, 0.0), (0.0, 0.0), (30.0, 0.0)],
    );
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 1)
        .unwrap();
    medium
        .enqueue(SECOND, stations[2], stations[1], 1500, 2)
        .unwrap();
    medium.advance(SECOND + 1400 * US);
    assert_eq!(
        told(&mut medium),
        [(SECOND, Data, 0, 1), (SECOND, Data, 2, 1)],
        "no ACK"
    );
    assert_eq!(medium.stats(stations[1]).collisions, 1);
    assert_eq!(medium.stats(stations[1]).spoiled, 1);
    let outcomes = finish(&mut medium);
    let mut payloads: Vec<u32> = delivered(&outcomes)
        .into_iter()
        .map(|(_, payload)| payload)
        .collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 2]);
    assert!(
        medium.stats(stations[0]).ack_missing >= 1 && medium.stats(stations[2]).ack_missing >= 1
    );
}

/// A and C send at the same time, and A's signal at B is 16 times stronger than C's, so A's frame
/// is captured. If C's weaker signal arrives first, both frames are lost.
#[test]
fn the_stronger_frame_is_captured_if_it_came_first() {
    // Distances of 10 m and 40 m result in a power ratio of 16 : 1, and in delays of 33 ns and 133
    // ns.
    for (lead, captured) in [(0, true), (120, false)] {
        let (mut medium, stations) = medium(
            WifiParameters::ieee80211b(),
            &[(10.0, 0.0), (0.0, 0.0), (-40.0, 0.0)],
        );
        medium
            .enqueue(SECOND, stations[2], stations[1], 1500, 2)
            .unwrap();
        medium
            .enqueue(SECOND + lead, stations[0], stations[1], 1500, 1)
            .unwrap();
        medium.advance(SECOND + 1400 * US);
        let acked = told(&mut medium)
            .iter()
            .any(|&(_, kind, _, to)| kind == Ack && to == 0);
        assert_eq!(acked, captured, "lead {lead} ns");
        assert_eq!(medium.stats(stations[1]).captures, u64::from(captured));
        assert_eq!(delivered(&finish(&mut medium)).len(), 2);
    }
}

/// Below the power ratio of 10 no frame is captured: the ratio is 9.6 : 1 at 10 m and 31 m, and
/// 10.2 : 1 at 10 m and 32 m.
#[test]
fn capture_begins_at_ten_decibels() {
    for (place, captures) in [(-31.0, 0), (-32.0, 1)] {
        let (mut medium, stations) = medium(
            WifiParameters::ieee80211b(),
            &[(10.0, 0.0), (0.0, 0.0), (place, 0.0)],
        );
        medium
            .enqueue(SECOND, stations[0], stations[1], 1500, 1)
            .unwrap();
        medium
            .enqueue(SECOND, stations[2], stations[1], 1500, 2)
            .unwrap();
        medium.advance(SECOND + 1400 * US);
        assert_eq!(medium.stats(stations[1]).captures, captures, "{place} m");
    }
}

/// A and C, 600 m apart, cannot hear each other; B between them hears both. C begins in the middle
/// of A's frame.
#[test]
fn hidden_stations_collide() {
    let (mut medium, stations) = medium(
        WifiParameters::ieee80211b(),
        &[(-300.0, 0.0), (0.0, 0.0), (300.0, 0.0)],
    );
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 1)
        .unwrap();
    medium
        .enqueue(SECOND + 500 * US, stations[2], stations[1], 1500, 2)
        .unwrap();
    medium.advance(SECOND + 2000 * US);
    let told = told(&mut medium);
    assert_eq!(
        told[..2],
        [(SECOND, Data, 0, 1), (SECOND + 500 * US, Data, 2, 1)]
    );
    assert!(
        told.iter().all(|&(_, kind, ..)| kind == Data),
        "nothing to acknowledge: {told:?}"
    );
}

/// The hidden stations A and C use RTS: C receives B's CTS and stays silent until the end of the
/// ACK, so no data frame is lost.
#[test]
fn rts_and_cts_silence_the_hidden_station() {
    let parameters = WifiParameters {
        rts_threshold: 0,
        ..WifiParameters::ieee80211b()
    };
    let (mut medium, stations) = medium(parameters, &[(-300.0, 0.0), (0.0, 0.0), (300.0, 0.0)]);
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 1)
        .unwrap();
    medium
        .enqueue(SECOND + 700 * US, stations[2], stations[1], 1500, 2)
        .unwrap();
    assert_eq!(delivered(&finish(&mut medium)).len(), 2);
    let told = told(&mut medium);
    let kinds: Vec<FrameKind> = told.iter().map(|&(_, kind, ..)| kind).collect();
    assert_eq!(kinds, [Rts, Cts, Data, Ack, Rts, Cts, Data, Ack]);
    // Propagation over 300 m takes 1000 ns. RTS, CTS, DATA and ACK take 352, 304, 1310 and 304 us,
    // with SIFS and 1 us of propagation between them; the ACK then propagates to C.
    let ack_end = SECOND + (352 + 304 + 1310 + 304 + 3 * 10) * US + 4 * 1000;
    let waited = told[4].0 - ack_end;
    assert!(
        (50 * US..=(50 + 31 * 20) * US + 1000).contains(&waited),
        "{waited}"
    );
}

/// A -> DATA -> B -> ACK, but the ACK collides with C's longer frame at A. A sends the frame again,
/// and B delivers the packet only once.
#[test]
fn a_repeated_frame_is_acknowledged_and_not_delivered_again() {
    let places = [(0.0, 0.0), (300.0, 0.0), (-300.0, 0.0), (-550.0, 0.0)];
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &places);
    medium
        .enqueue(SECOND, stations[0], stations[1], 100, 1)
        .unwrap();
    medium
        .enqueue(SECOND, stations[2], stations[3], 1500, 2)
        .unwrap();
    let outcomes = finish(&mut medium);
    let mut payloads: Vec<u32> = delivered(&outcomes)
        .into_iter()
        .map(|(_, payload)| payload)
        .collect();
    payloads.sort_unstable();
    assert_eq!(payloads, [1, 2]);
    assert_eq!(medium.stats(stations[1]).duplicates, 1);
    assert_eq!(medium.stats(stations[1]).acks_sent, 2);
    assert_eq!(medium.stats(stations[0]).retries, 1);
    assert!(medium.counts().is_balanced());
}

/// Without a response, a station makes seven attempts, each after a longer mean backoff, and then
/// drops the packet.
#[test]
fn the_short_retry_limit_ends_it() {
    for (threshold, kind) in [(2347, Data), (0, Rts)] {
        let parameters = WifiParameters {
            rts_threshold: threshold,
            ..WifiParameters::ieee80211b()
        };
        let (mut medium, stations) = medium(parameters, &[(0.0, 0.0), (1000.0, 0.0)]);
        medium
            .enqueue(SECOND, stations[0], stations[1], 1000, 9)
            .unwrap();
        let outcomes = finish(&mut medium);
        let [TransmissionOutcome::Dropped(dropped)] = &outcomes[..] else {
            panic!("{outcomes:?}");
        };
        assert_eq!(
            (dropped.reason, dropped.payload),
            (WifiDropReason::ShortRetryLimit, 9)
        );
        let told = told(&mut medium);
        assert_eq!(told.len(), 7);
        let air_time = if kind == Rts { 352 } else { 192 + 754 };
        let mut window = 63;
        for pair in told.windows(2) {
            assert_eq!(pair[1].1, kind);
            let waited = pair[1].0 - pair[0].0 - (air_time + 222 + 50) * US;
            assert_eq!(waited % (20 * US), 0);
            assert!(
                waited <= window * 20 * US,
                "{waited} in a window of {window}"
            );
            window = (2 * window + 1).min(1023);
        }
        assert_eq!(
            medium.counts().dropped_for(WifiDropReason::ShortRetryLimit),
            1
        );
        assert!(medium.counts().is_balanced());
    }
}

/// A station defers to a signal whose power is between the carrier sense and the receive threshold,
/// but cannot decode it.
#[test]
fn a_weak_signal_is_heard_and_not_understood() {
    let places = [(0.0, 0.0), (30.0, 0.0), (420.0, 0.0), (450.0, 0.0)];
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &places);
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 1)
        .unwrap();
    medium
        .enqueue(SECOND + 100 * US, stations[2], stations[3], 1500, 2)
        .unwrap();
    assert_eq!(delivered(&finish(&mut medium)).len(), 2);
    let told = told(&mut medium);
    // C waits for the end of A's frame and then for EIFS. During EIFS the ACK arrives, which is
    // also too weak, so C waits for EIFS again.
    let ack_end = SECOND + (1310 + 10 + 304) * US;
    assert_eq!(told[1].1, Ack);
    assert!(told[2].0 >= ack_end + 364 * US, "{told:?}");
    assert_eq!(medium.stats(stations[2]).weak, 2);
}

/// Hidden stations that always have packets: with RTS/CTS the throughput is higher, and hardly any
/// data frame is lost.
#[test]
fn announcing_helps_hidden_stations() {
    let run = |threshold| {
        let parameters = WifiParameters {
            rts_threshold: threshold,
            ..WifiParameters::ieee80211b()
        };
        let (mut medium, stations) = medium(parameters, &[(0.0, 0.0), (-300.0, 0.0), (300.0, 0.0)]);
        medium.observe(false);
        for &sender in &stations[1..] {
            for number in 0..2 {
                medium
                    .enqueue(0, sender, stations[0], 1500, number)
                    .unwrap();
            }
        }
        while let Some(at) = medium.next_event().filter(|&at| at < 20 * SECOND) {
            medium.advance(at);
            while let Some(outcome) = medium.poll_outcome() {
                let from = match outcome {
                    TransmissionOutcome::Delivered(delivery) => delivery.from,
                    TransmissionOutcome::Dropped(dropped) => dropped.from,
                };
                medium.enqueue(at, from, stations[0], 1500, 0).unwrap();
            }
        }
        assert!(medium.counts().is_balanced());
        let (a, b) = (medium.stats(stations[1]), medium.stats(stations[2]));
        (
            medium.counts().delivered,
            (a.ack_missing + b.ack_missing) as f64 / (a.data_sent + b.data_sent) as f64,
        )
    };
    let (plain, plain_missing) = run(2347);
    let (announced, announced_missing) = run(0);
    assert!(plain_missing > 0.3, "{plain_missing}");
    assert!(announced_missing < 0.02, "{announced_missing}");
    assert!(
        announced as f64 > 1.05 * plain as f64,
        "{announced} against {plain}"
    );
}
