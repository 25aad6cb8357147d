//! Tests of undisturbed exchanges, with times computed by hand.

use super::*;
use FrameKind::{Ack, Cts, Data, Rts};

const SECOND: Nanos = 1_000_000_000;

#[test]
fn air_times_of_802_11b() {
    let parameters = WifiParameters::ieee80211b();
    let timing = PhyTiming::new(&parameters);
    assert_eq!(timing.difs, 50 * US);
    assert_eq!(timing.plcp, 192 * US);
    assert_eq!(
        (timing.rts, timing.cts, timing.ack),
        (352 * US, 304 * US, 304 * US)
    );
    assert_eq!(timing.eifs, 364 * US);
    assert_eq!(
        (timing.cts_timeout, timing.ack_timeout),
        (222 * US, 222 * US)
    );
    // A data frame of 1536 bytes has 12288 bits, which take 1117.09 us at 11 Mb/s.
    assert_eq!(timing.data(&parameters, 1500), (192 + 1118) * US);
}

#[test]
fn air_times_of_the_listing() {
    let parameters = WifiParameters::rafiq2007();
    let timing = PhyTiming::new(&parameters);
    // A data frame of 1534 bytes has 12272 bits, which take 1115.6364 us and are not rounded to a
    // microsecond.
    assert_eq!(timing.data(&parameters, 1500), 192 * US + 1_115_637);
    assert_eq!(
        (timing.cts_timeout, timing.ack_timeout),
        (318 * US, 318 * US)
    );
    assert_eq!(
        (timing.difs, timing.eifs, timing.rts),
        (50 * US, 364 * US, 352 * US)
    );
}

/// A -> DATA -> B -> ACK -> A, sent immediately because the medium is idle. The delay over 30 m is
/// 100 ns.
#[test]
fn a_packet_on_an_idle_medium_goes_at_once() {
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &[(0.0, 0.0), (30.0, 0.0)]);
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 7)
        .unwrap();
    assert_eq!(medium.next_event(), Some(SECOND));
    let outcomes = finish(&mut medium);
    let arrival = SECOND + 1310 * US + 100;
    let delivery = DeliveredPacket {
        at: arrival,
        from: stations[0],
        to: stations[1],
        bytes: 1500,
        payload: 7,
    };
    assert_eq!(outcomes, [TransmissionOutcome::Delivered(delivery)]);
    assert_eq!(
        told(&mut medium),
        [(SECOND, Data, 0, 1), (arrival + 10 * US, Ack, 1, 0)]
    );
    assert_eq!(
        medium.counts(),
        MediumCounts {
            offered: 1,
            delivered: 1,
            ..MediumCounts::default()
        }
    );
    assert_eq!(medium.stats(stations[0]).confirmed, 1);
}

/// If no other station interferes, the outcome of a packet is known before its RTS begins, and its
/// ACK needs no event. The exchange RTS -> CTS -> DATA takes 352, 304 and 1307.637 us, two SIFS,
/// and 100 ns of propagation for each frame.
#[test]
fn an_exchange_is_known_before_it_begins() {
    let (mut medium, stations) = medium(WifiParameters::rafiq2007(), &[(0.0, 0.0), (30.0, 0.0)]);
    medium.observe(false);
    for round in 1..50_u32 {
        let now = Nanos::from(round) * SECOND / 10;
        medium.catch_up(now);
        medium
            .enqueue(now, stations[0], stations[1], 1500, round)
            .unwrap();
        let begin = medium.next_event().unwrap();
        let arrival = begin + (352 + 10 + 304 + 10) * US + 1_307_637 + 300;
        let told = medium.next_outcome();
        assert_eq!(told, arrival + 25 * US, "after the layer above");
        medium.catch_up(told);
        let outcomes: Vec<_> = std::iter::from_fn(|| medium.poll_outcome()).collect();
        assert_eq!(delivered(&outcomes), [(arrival, round)]);
        assert_eq!(medium.next_outcome(), Nanos::MAX, "the ACK is held");
    }
}

/// At the start of a run the medium has not yet been idle for DIFS, so A waits for DIFS.
#[test]
fn the_first_packet_waits_for_difs() {
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &[(0.0, 0.0), (30.0, 0.0)]);
    medium
        .enqueue(20 * US, stations[0], stations[1], 100, 0)
        .unwrap();
    finish(&mut medium);
    assert_eq!(told(&mut medium)[0], (50 * US, Data, 0, 1));
}

/// A -> DATA -> ACK -> DIFS, backoff -> DATA: a station that has sent a packet draws a backoff
/// before the next one.
#[test]
fn a_second_packet_backs_off_for_whole_slots() {
    let mut seen = std::collections::BTreeSet::new();
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &[(0.0, 0.0), (30.0, 0.0)]);
    let mut now = SECOND;
    for round in 0..400 {
        // The second packet is enqueued with the first, or after the ACK of the first, during the
        // backoff that follows.
        medium
            .enqueue(now, stations[0], stations[1], 1500, 0)
            .unwrap();
        let ack_end = now + (1310 + 10 + 304) * US + 200;
        let second = if round % 2 == 0 {
            now
        } else {
            ack_end + 3 * US
        };
        medium
            .enqueue(second, stations[0], stations[1], 1500, 1)
            .unwrap();
        finish(&mut medium);
        let told = told(&mut medium);
        assert_eq!(told.len(), 4, "{told:?}");
        let waited = told[2].0 - ack_end - 50 * US;
        assert_eq!(waited % (20 * US), 0);
        seen.insert(waited / (20 * US));
        now += SECOND / 10;
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        (0..=31).collect::<Vec<_>>()
    );
}

/// With the parameters of Rafiq's listing, stations draw a backoff for every packet, from 0 to 30
/// slots, after DIFS from its arrival.
#[test]
fn the_listing_backs_off_on_an_idle_medium_too() {
    let mut seen = std::collections::BTreeSet::new();
    let (mut medium, stations) = medium(WifiParameters::rafiq2007(), &[(0.0, 0.0), (30.0, 0.0)]);
    for round in 1..500 {
        let now = round * SECOND / 10;
        medium
            .enqueue(now, stations[0], stations[1], 1500, 0)
            .unwrap();
        finish(&mut medium);
        let waited = told(&mut medium)[0].0 - now - 50 * US;
        assert_eq!(waited % (20 * US), 0);
        seen.insert(waited / (20 * US));
    }
    assert_eq!(
        seen.into_iter().collect::<Vec<_>>(),
        (0..=30).collect::<Vec<_>>()
    );
}

/// A -> RTS -> B -> CTS -> A -> DATA -> B -> ACK -> A, with SIFS between the frames; also checks
/// the Duration fields.
#[test]
fn long_packets_are_announced() {
    let parameters = WifiParameters {
        rts_threshold: 1000,
        ..WifiParameters::ieee80211b()
    };
    let (mut medium, stations) = medium(parameters, &[(0.0, 0.0), (30.0, 0.0)]);
    medium
        .enqueue(SECOND, stations[0], stations[1], 965, 1)
        .unwrap(); // 1001 bytes with its overhead
    while let Some(at) = medium.next_event() {
        medium.advance(at);
    }
    let frames: Vec<FrameTrace> = medium.drain_frame_traces().collect();
    let told: Vec<SentFrame> = frames
        .iter()
        .map(|s| (s.at, s.frame.kind, s.frame.from.0, s.frame.to.0))
        .collect();
    let data = 192 + 728; // 8008 bits at 11 Mb/s
    let cts = SECOND + (352 + 10) * US + 100;
    let body = cts + (304 + 10) * US + 100;
    let ack = body + (data + 10) * US + 100;
    assert_eq!(
        told,
        [
            (SECOND, Rts, 0, 1),
            (cts, Cts, 1, 0),
            (body, Data, 0, 1),
            (ack, Ack, 1, 0)
        ]
    );
    let durations: Vec<Nanos> = frames.iter().map(|s| s.frame.duration / US).collect();
    assert_eq!(
        durations,
        [3 * 10 + 304 + data + 304, 2 * 10 + data + 304, 10 + 304, 0]
    );

    medium
        .enqueue(2 * SECOND, stations[0], stations[1], 964, 2)
        .unwrap();
    finish(&mut medium);
    assert_eq!(
        super::told(&mut medium)[0].1,
        Data,
        "1000 bytes are not longer than the threshold"
    );
}

/// Without slack and with a distance of 0, the ACK ends exactly at the timeout, and counts as in
/// time.
#[test]
fn a_response_at_the_timeout_is_in_time() {
    let parameters = WifiParameters {
        response_timeout: ResponseTimeout::WholeFrame(0),
        rts_threshold: 0,
        ..WifiParameters::ieee80211b()
    };
    let (mut medium, stations) = medium(parameters, &[(5.0, 5.0), (5.0, 5.0)]);
    medium
        .enqueue(SECOND, stations[0], stations[1], 1500, 1)
        .unwrap();
    finish(&mut medium);
    let stats = medium.stats(stations[0]);
    assert_eq!(
        (stats.confirmed, stats.cts_missing, stats.ack_missing),
        (1, 0, 0)
    );
}

#[test]
fn a_queue_holds_its_limit_and_no_more() {
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &[(0.0, 0.0), (30.0, 0.0)]);
    for number in 0..50 {
        medium
            .enqueue(0, stations[0], stations[1], 500, number)
            .unwrap();
    }
    let refused = medium
        .enqueue(0, stations[0], stations[1], 500, 50)
        .unwrap_err();
    assert_eq!(
        (refused.reason, refused.payload),
        (WifiDropReason::QueueFull, 50)
    );
    let refused = medium
        .enqueue(0, stations[1], stations[0], 2297, 51)
        .unwrap_err();
    assert_eq!(
        (refused.reason, refused.payload),
        (WifiDropReason::TooLong, 51)
    );
    assert_eq!(medium.queue_length(stations[0]), 50);
    let outcomes = finish(&mut medium);
    assert_eq!(
        delivered(&outcomes)
            .into_iter()
            .map(|(_, n)| n)
            .collect::<Vec<_>>(),
        (0..50).collect::<Vec<_>>()
    );
    let counts = medium.counts();
    assert_eq!(
        (
            counts.offered,
            counts.delivered,
            counts.dropped,
            counts.waiting
        ),
        (52, 50, [1, 1, 0, 0], 0)
    );
}

#[test]
fn stations_stand_somewhere_and_come_first() {
    let (mut medium, stations) = medium(WifiParameters::ieee80211b(), &[(0.0, 0.0), (30.0, 0.0)]);
    let nowhere = medium.add_station(AntennaPosition::new(f64::NAN, 0.0), MacAddress::default());
    assert_eq!(nowhere, Err(ParameterError::Position));
    medium.enqueue(0, stations[0], stations[1], 1, 0).unwrap();
    let late = medium.add_station(AntennaPosition::default(), MacAddress::default());
    assert_eq!(late, Err(ParameterError::Late));
    assert_eq!(
        medium.station(stations[1]),
        (
            MacAddress([2, 0, 0, 0, 0, 1]),
            AntennaPosition::new(30.0, 0.0)
        )
    );
}
