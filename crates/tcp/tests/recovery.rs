//! Loss recovery, with traces computed by hand.

use crate::common;

use anabranch_tcp::profile::{InitialWindow, Pause, PositiveTime};
use anabranch_tcp::{Config, Profile};
use anabranch_transport::time::{MILLISECOND as MS, SECOND, seconds};
use anabranch_transport::{Nanos, Probe};
use common::{Fate, Line, World, geo};

/// Transmissions and retransmissions: time, ms, and segment number, counted from 1.
fn sends(world: &World) -> Vec<(Nanos, u64)> {
    world.samples[0]
        .iter()
        .filter(|sample| matches!(sample.probe, Probe::Sent | Probe::Retransmitted))
        .map(|sample| (sample.at / MS, sample.value as u64 + 1))
        .collect()
}

fn numbers(world: &World) -> Vec<u64> {
    sends(world).into_iter().map(|(_, number)| number).collect()
}

/// A sender of `segments` segments of 1000 bytes over links with 50 ms delay each way, which lose
/// the packets in `drops` (the SYN is 0).
fn lossy(profile: Profile, segments: u64, drops: &'static [u64]) -> World {
    let config = Config::new(profile).with(|it| it.mss = 1000);
    let mut world = World::new(config.clone(), config);
    // A full segment takes a millisecond, so that acknowledgements have different times.
    world.lines = [
        vec![Line::new(0, 0), Line::new(8_320_000, 50 * MS)],
        vec![Line::new(0, 50 * MS)],
    ];
    world.fate = Box::new(|end, number, _| {
        if end == 0 && drops.contains(&number) {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.ends[1].set_discard(true);
    world.run_until(150 * MS);
    world.ends[0].write_zeros(segments * 1000).unwrap();
    world
}

fn profile(name: &str, window: u32) -> Profile {
    let mut profile = Profile::by_name(name).unwrap();
    profile.initial_window = InitialWindow::Segments(window);
    profile.delayed_ack = false;
    profile
}

/// Loss of segment 8 in sections V-B and V-C.1 of Alamgir, Atiquzzaman and Ivancic (2002).
#[test]
fn the_papers_loss_of_segment_8() {
    let mut world = geo(Profile::sack1(), 0);
    world.lines[0][0] = Line::new(2_000_000, 2 * MS);
    world.lines[1][1] = Line::new(2_000_000, 2 * MS);
    world.fate = Box::new(|end, number, _| {
        if end == 0 && number == 8 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.run_until(4 * SECOND);
    let windows: Vec<(Nanos, f64)> = world
        .probe(0, Probe::Cwnd)
        .into_iter()
        .map(|(at, value)| (at, value / 1448.0))
        .collect();
    let cut = windows
        .iter()
        .position(|(_, value)| *value == 4.0 && windows[0].1 == 2.0)
        .unwrap();
    let cut = windows
        .iter()
        .skip(cut)
        .position(|(_, value)| *value == 9.0)
        .unwrap()
        + cut
        + 1;
    assert_eq!(windows[cut - 1].1, 9.0);
    // The paper prints the times 2.880, 3.413, 3.897, 3.909, 3.921 and 3.927 with these windows.
    // Only the differences between the times can be compared.
    let printed = [
        (2.880, 4.0),
        (3.413, 4.25),
        (3.897, 4.485),
        (3.909, 4.708),
        (3.921, 4.921),
        (3.927, 5.124),
    ];
    for (step, (at, value)) in printed.into_iter().enumerate() {
        let (our_at, our_value) = windows[cut + step];
        assert!(
            (our_value - value).abs() < 0.0005,
            "{our_value} is not {value}"
        );
        let (span, printed_span) = (seconds(our_at - windows[cut].0), at - 2.880);
        assert!(
            (span - printed_span).abs() < 0.015,
            "{value} after {span} s, printed {printed_span}"
        );
    }
    // The acknowledgement of 7 triggers 15 and 16. The third duplicate triggers the retransmission
    // of 8, the next two trigger nothing, and then 17 is sent.
    let order = numbers(&world);
    let again = order.iter().rposition(|number| *number == 8).unwrap();
    assert_eq!(order[again - 2..again + 2], [15, 16, 8, 17]);
    assert_eq!(world.probe(0, Probe::DuplicateAck).len(), 8);
    let (first, seventeenth) = (sends(&world)[again].0, sends(&world)[again + 1].0);
    assert!(
        (16..=20).contains(&(seventeenth - first)),
        "2.898 - 2.880, printed"
    );
}

/// RFC 6675: ten segments are sent, 1 and 4 are lost. The duplicates of 2, 3 and 5 detect the loss
/// of 1; the window is halved to five segments. Segments 6 to 10, 1 and 4 are then in flight, so
/// later duplicates allow new segments only when the pipe is below five.
#[test]
fn rfc6675_fills_both_holes_within_one_round_trip() {
    let mut profile = profile("rfc6675", 10);
    profile.limited_transmit = false;
    let mut world = lossy(profile, 30, &[2, 5]);
    world.run_until(10 * SECOND);
    let order = numbers(&world);
    assert_eq!(order[..10], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    // The duplicates of 2, 3 and 5: at the third one the pipe is 10 - 3 sacked - 1 lost = 6, and
    // with the retransmission of 1 it is 7. After the duplicate of 6 the pipe is still at least 5.
    // The duplicate of 7 also detects the loss of 4 (three segments above it were reported): the
    // pipe is 10 - 5 - 2 + 1 = 4 < 5, so 4 is sent.
    assert_eq!(order[10..12], [1, 4]);
    let again = world.probe(0, Probe::Retransmitted);
    assert_eq!(again.len(), 2);
    assert!(again[1].0 - again[0].0 <= 3 * MS);
    // The duplicates of 8, 9 and 10 trigger 11, 12 and 13.
    assert_eq!(order[12..15], [11, 12, 13]);
    let stats = world.ends[0].stats();
    assert_eq!(
        (
            stats.fast_retransmits,
            stats.timeouts,
            stats.bytes_acknowledged
        ),
        (1, 0, 30_000)
    );
    let windows: Vec<f64> = world
        .probe(0, Probe::Cwnd)
        .iter()
        .map(|(_, value)| value / 1000.0)
        .collect();
    assert_eq!(windows[..2], [10.0, 5.0]);
    assert_eq!(*order.iter().max().unwrap(), 30);
}

/// Limited transmit (RFC 3042): the first segment of a window of three is lost. The two duplicates
/// trigger segments 4 and 5, whose acknowledgements are further duplicates, so the loss is detected
/// without a timeout.
#[test]
fn limited_transmit_saves_a_small_window_from_its_timeout() {
    for name in ["rfc6675", "linux", "newreno", "sack1"] {
        let mut with = profile(name, 3);
        with.limited_transmit = true;
        let mut world = lossy(with, 20, &[2]);
        world.run_until(20 * SECOND);
        assert_eq!(numbers(&world)[..6], [1, 2, 3, 4, 5, 1], "{name}");
        assert_eq!(world.ends[0].stats().timeouts, 0, "{name}");
        let mut without = profile(name, 3);
        without.limited_transmit = false;
        let mut world = lossy(without, 20, &[2]);
        world.run_until(20 * SECOND);
        assert_eq!(numbers(&world)[..4], [1, 2, 3, 1], "{name}");
        assert_eq!(world.ends[0].stats().timeouts, 1, "{name}");
        assert_eq!(world.ends[0].unacknowledged(), 0, "{name}");
    }
}

/// RFC 6675 §4 rule 4: the last segment and an earlier one are lost. The recovery of the earlier
/// one also retransmits the last one, without a timeout.
#[test]
fn rfc6675_rescues_the_tail() {
    let mut world = lossy(profile("rfc6675", 10), 10, &[3, 11]);
    world.run_until(20 * SECOND);
    let order = numbers(&world);
    assert_eq!(order[10..], [2, 10]);
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.bytes_acknowledged), (0, 10_000));
}

/// After a timeout the scoreboard is cleared (RFC 2018 §8) and filled by new acknowledgements. Data
/// that they report by SACK is not retransmitted (RFC 6675 §5.1).
#[test]
fn rfc6675_sends_only_the_holes_after_a_timeout() {
    // Segment 1, its retransmission, and segment 5 are lost.
    let mut profile = profile("rfc6675", 10);
    profile.limited_transmit = false;
    let mut world = lossy(profile, 12, &[2, 6, 12]);
    world.run_until(30 * SECOND);
    let stats = *world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.bytes_acknowledged), (1, 12_000));
    let again = numbers(&world).into_iter().collect::<Vec<_>>();
    let repeated = |number| again.iter().filter(|sent| **sent == number).count();
    assert!(repeated(1) >= 3);
    assert!(
        [2, 3, 4].iter().all(|number| repeated(*number) == 1),
        "{again:?}"
    );
}

/// Of ten segments, segment 1 is lost, and its retransmission as well. Duplicates allow new
/// segments until the timer expires, so more than forty are then outstanding, most of which have
/// arrived. ssthresh must not exceed half of the outstanding data (RFC 5681 §3.1); here it is never
/// more than the five segments of the recovery.
#[test]
fn a_timeout_in_a_recovery_does_not_raise_ssthresh() {
    for name in ["rfc6675", "newreno"] {
        let mut profile = profile(name, 10);
        profile.limited_transmit = false;
        // The SYN is packet 0, its acknowledgement 1, the ten segments 2 to 11, and the
        // retransmission 12.
        let mut world = lossy(profile, 400, &[2, 12]);
        world.run_until(30 * SECOND);
        let stats = world.ends[0].stats();
        assert_eq!(
            (stats.timeouts, stats.bytes_acknowledged),
            (1, 400_000),
            "{name}"
        );
        let outstanding = world.probe(0, Probe::FlightSize);
        let most = outstanding.iter().map(|(_, value)| value / 1000.0);
        assert!(most.fold(0.0, f64::max) > 40.0, "{name}");
        let thresholds: Vec<f64> = world
            .probe(0, Probe::Ssthresh)
            .iter()
            .map(|(_, value)| value / 1000.0)
            .collect();
        assert_eq!(thresholds.first(), Some(&5.0), "{name}");
        assert!(
            thresholds.iter().all(|threshold| *threshold <= 5.0),
            "{name}: {thresholds:?}"
        );
    }
}

/// RFC 6582: without SACK, two losses in one window take two round trips, because the partial
/// acknowledgement triggers the second retransmission.
#[test]
fn newreno_repairs_one_hole_a_round_trip() {
    let mut profile = profile("newreno", 10);
    profile.limited_transmit = false;
    let mut world = lossy(profile, 40, &[2, 5]);
    world.run_until(20 * SECOND);
    let again = world.probe(0, Probe::Retransmitted);
    assert_eq!(
        again
            .iter()
            .map(|(_, value)| *value as u64 + 1)
            .collect::<Vec<_>>(),
        [1, 4]
    );
    let span = (again[1].0 - again[0].0) / MS;
    assert!((100..=110).contains(&span), "{span} ms");
    let stats = world.ends[0].stats();
    assert_eq!(
        (
            stats.fast_retransmits,
            stats.timeouts,
            stats.bytes_acknowledged
        ),
        (1, 0, 40_000)
    );
    // The window is halved once, from 10 to 5.
    let windows: Vec<f64> = world
        .probe(0, Probe::Cwnd)
        .iter()
        .map(|(_, value)| value / 1000.0)
        .collect();
    assert_eq!(windows[..2], [10.0, 5.0]);
}

/// The timeout doubles each time. The acknowledgement of a retransmitted segment gives no
/// measurement (Karn's rule, RFC 6298 §5).
#[test]
fn timeouts_back_off() {
    let mut world = lossy(profile("rfc6675", 1), 3, &[2, 3, 4]);
    world.run_until(20 * SECOND);
    let times: Vec<Nanos> = sends(&world)
        .iter()
        .take(4)
        .map(|(at, _)| at - 150)
        .collect();
    assert_eq!(times, [0, 1_000, 3_000, 7_000]);
    assert_eq!(world.ends[0].stats().timeouts, 3);
    assert_eq!(
        world.probe(0, Probe::Ssthresh).len(),
        1,
        "ssthresh falls once (RFC 5681 §3.1)"
    );
    assert_eq!(world.ends[0].unacknowledged(), 0);
}

/// RFC 5681 §4.1: the window restarts after an idle time longer than the RTO.
#[test]
fn an_idle_window_restarts() {
    let mut world = lossy(profile("rfc6675", 2), 20, &[]);
    world.run_until(5 * SECOND);
    assert!(world.ends[0].cwnd() >= 20_000.0);
    world.ends[0].write_zeros(20_000).unwrap();
    world.drain(0);
    assert_eq!(world.ends[0].flightsize(), 2_000);
}

/// RFC 6582 §3.2, step 3, and §4, impatient variant: only the first partial acknowledgement
/// restarts the timer. One of fifteen gaps is filled every 100 ms, until the timer of one second
/// expires.
#[test]
fn newreno_does_not_fill_many_holes_one_by_one() {
    let mut profile = profile("newreno", 30);
    profile.limited_transmit = false;
    profile.rto_min = PositiveTime(SECOND);
    profile.rtt_granularity = Pause(0);
    const DROPS: &[u64] = &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let mut world = lossy(profile, 60, DROPS);
    world.run_until(20 * SECOND);
    let entered = world.probe(0, Probe::FastRetransmit)[0].0;
    let acks = world.probe(0, Probe::CumulativeAck);
    let partial = acks.iter().find(|(at, _)| *at > entered).unwrap().0;
    let timeout = world.probe(0, Probe::Timeout)[0].0;
    assert_eq!(timeout - partial, SECOND);
    assert_eq!(world.ends[0].stats().bytes_acknowledged, 60_000);
}

/// RFC 6582 §3.2, step 1: spurious retransmissions may cause duplicates of an acknowledgement that
/// covers only data sent before the timeout. Four segments are lost, and then the fifth; its
/// duplicates must not start a recovery.
#[test]
fn newreno_takes_no_duplicates_for_a_loss_right_behind_a_timeout() {
    let mut world = lossy(profile("newreno", 4), 12, &[2, 3, 4, 5, 10]);
    world.run_until(20 * SECOND);
    let order = numbers(&world);
    assert_eq!(order[..9], [1, 2, 3, 4, 1, 2, 3, 4, 5]);
    let duplicates = world.probe(0, Probe::DuplicateAck);
    assert!(duplicates.len() >= 3, "{duplicates:?}");
    assert!(duplicates.iter().all(|(_, number)| *number == 4.0));
    let stats = world.ends[0].stats();
    assert_eq!((stats.fast_retransmits, stats.timeouts), (0, 2));
    assert_eq!(stats.bytes_acknowledged, 12_000);
}
