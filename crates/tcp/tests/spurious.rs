//! Reductions that answered no loss, and what undoes them: F-RTO (RFC 5682), Eifel (RFC 3522), D-SACK (RFC 2883, RFC 3708). On lines
//! of 50 ms each way without a rate.

use crate::common;

use anabranch_tcp::{Config, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::Checksum;
use anabranch_wire::tcp::Segment;
use common::{Fate, World, path_of};

const MSS: u64 = 1460;

fn config(switches: &[&str]) -> Config {
    let mut profile = Profile::rfc6675();
    profile.delayed_ack = false;
    for switch in switches {
        let (name, value) = switch.split_once('=').unwrap_or((switch, "true"));
        profile.set(name, value).expect("a switch");
    }
    Config::new(profile)
}

fn transfer(config: &Config, segments: u64) -> World {
    let mut world = World::new(config.clone(), config.clone());
    world.ends[0].write_zeros(segments * MSS).expect("open");
    world.ends[1].set_discard(true);
    world
}

/// From 0.9 s on everything that the client sends takes 1.5 s more, as over another path: its timer of a second expires, and nothing
/// was lost or came out of order.
fn slower(config: &Config) -> World {
    let mut world = transfer(config, 4000);
    world.run_until(900 * MILLISECOND);
    world.fate = Box::new(|end, _, _| match end {
        0 => Fate::Late(1500 * MILLISECOND),
        _ => Fate::Pass,
    });
    world.run_until(200 * SECOND);
    assert_eq!(world.ends[1].stats().bytes_delivered, 4000 * MSS);
    world
}

/// Without a remedy all of a window goes again. With one the first segment does, and the window is as before.
#[test]
fn a_spurious_timeout_is_found_by_timestamps_or_by_new_data() {
    let plain = *slower(&config(&[])).ends[0].stats();
    assert!(plain.timeouts >= 1 && plain.reductions_undone == 0);
    let again = plain.segments_retransmitted;
    assert!(again > 30, "{again}");
    for switches in [
        &["frto"] as &[&str],
        &["eifel", "timestamps"],
        &["frto", "eifel", "timestamps", "dsack"],
    ] {
        let stats = *slower(&config(switches)).ends[0].stats();
        assert_eq!(stats.reductions_undone, 1, "{switches:?}");
        assert_eq!(stats.spurious_timeouts, 1, "{switches:?}");
        let fewer = stats.segments_retransmitted;
        assert!(fewer <= 4, "{switches:?}: {fewer} instead of {again}");
    }
}

/// After a spurious timeout, and before all that was outstanding at it is acknowledged, acknowledgements come late again: the second
/// timeout is found to be spurious, too (RFC 5682 §2.1, step 3 b: `recover` becomes SND.UNA).
#[test]
fn a_second_spurious_timeout_is_found_in_the_flight_of_the_first() {
    let mut world = transfer(&config(&["frto"]), 4000);
    // A millisecond and a half for a segment, so that acknowledgements are apart.
    world.lines = [
        vec![common::Line::new(8_000_000, 50 * MILLISECOND)],
        vec![common::Line::new(0, 50 * MILLISECOND)],
    ];
    world.run_until(900 * MILLISECOND);
    world.fate = Box::new(|end, _, _| match end {
        0 => Fate::Late(1500 * MILLISECOND),
        _ => Fate::Pass,
    });
    let mut now = 900;
    while world.ends[0].stats().spurious_timeouts == 0 {
        now += 1;
        assert!(now < 5_000, "the first timeout is not found");
        world.run_until(now * MILLISECOND);
    }
    assert!(world.ends[0].flightsize() > 10 * MSS);
    world.fate = Box::new(|end, _, _| match end {
        0 => Fate::Pass,
        _ => Fate::Late(3 * SECOND),
    });
    let first = world.ends[0].stats().timeouts;
    while world.ends[0].stats().timeouts == first {
        now += 1;
        assert!(now < 20_000, "no second timeout");
        world.run_until(now * MILLISECOND);
    }
    world.run_until((now + 10_000) * MILLISECOND);
    assert_eq!(world.ends[0].stats().spurious_timeouts, 2);
}

/// The same timeout, but what was sent is lost: nothing may be undone.
#[test]
fn a_timeout_for_a_loss_stays_one() {
    for switches in [
        &["frto"] as &[&str],
        &["eifel", "timestamps"],
        &["dsack"],
        &["frto", "eifel", "timestamps", "dsack"],
    ] {
        let mut world = transfer(&config(switches), 4000);
        world.run_until(900 * MILLISECOND);
        world.fate = Box::new(|end, _, _| match end {
            0 => Fate::Drop,
            _ => Fate::Pass,
        });
        // The line behind the access drops.
        world.lines[0].push(common::Line::new(0, 0));
        world.run_until(1100 * MILLISECOND);
        world.fate = Box::new(|_, _, _| Fate::Pass);
        world.run_until(90 * SECOND);
        assert_eq!(
            world.ends[1].stats().bytes_delivered,
            4000 * MSS,
            "{switches:?}"
        );
        let stats = world.ends[0].stats();
        assert!(stats.timeouts >= 1, "{switches:?}");
        assert_eq!(stats.reductions_undone, 0, "{switches:?}");
    }
}

/// One segment is late by half a round trip: three duplicates have it sent again, and the window is halved. Timestamps or a D-SACK tell
/// that it had arrived.
#[test]
fn reordering_is_found_by_timestamps_and_by_duplicates() {
    for (switches, undone) in [
        (&[] as &[&str], 0),
        (&["eifel", "timestamps"], 1),
        (&["dsack"], 1),
        (&["frto"], 0),
    ] {
        let mut world = transfer(&config(switches), 2000);
        world.fate = Box::new(|end, number, _| match (end, number) {
            (0, 30) => Fate::Late(60 * MILLISECOND),
            _ => Fate::Pass,
        });
        world.run_until(60 * SECOND);
        let stats = world.ends[0].stats();
        assert_eq!(stats.fast_retransmits, 1, "{switches:?}");
        assert_eq!(stats.reductions_undone, undone, "{switches:?}");
        assert_eq!(stats.timeouts, 0);
        assert_eq!(world.ends[1].stats().bytes_delivered, 2000 * MSS);
    }
}

/// Loss by time keeps its own list of what is lost: it is put right, too.
#[test]
fn losses_by_time_go_on_after_a_spurious_timeout() {
    for switches in [
        &["frto"] as &[&str],
        &["eifel", "timestamps"],
        &["frto", "eifel", "timestamps", "dsack"],
    ] {
        let mut config = config(switches);
        config.set("rack", "true").expect("a setting");
        config.set("tail_loss_probe", "false").expect("a setting");
        for control in ["newreno", "bbr"] {
            config.set("congestion", control).expect("a control");
            let stats = *slower(&config).ends[0].stats();
            assert_eq!(stats.spurious_timeouts, 1, "{switches:?} {control}");
            let again = stats.segments_retransmitted;
            assert!(again <= 4, "{switches:?} {control}: {again}");
        }
    }
}

/// Two ends at 1 s; what the client sends from then on fares so.
fn opened(switches: &[&str], fate: common::Weather) -> World {
    let mut config = config(switches);
    config.profile.nagle = false;
    let mut world = World::new(config.clone(), config);
    world.ends[1].set_discard(true);
    world.run_until(SECOND);
    world.fate = fate;
    world
}

/// Every packet of the client is late by so many ms.
fn late(by: u64) -> common::Weather {
    Box::new(move |end, _, _| match end {
        0 => Fate::Late(by * MILLISECOND),
        _ => Fate::Pass,
    })
}

/// The packets of an end with these numbers, counted from 1, fare so, and its others so.
fn some(end: usize, numbers: &'static [u64], fate: Fate, others: Fate) -> common::Weather {
    let mut sent = 0;
    Box::new(move |from, _, _| {
        sent += u64::from(from == end);
        match from == end {
            true if numbers.contains(&sent) => fate,
            true => others,
            false => Fate::Pass,
        }
    })
}

/// The client writes texts of these sizes, one by one.
fn write(world: &mut World, texts: &[u64]) {
    for text in texts {
        world.ends[0].write_zeros(*text).expect("open");
        world.drain(0);
    }
}

/// What the client sends at `at` ms: where it begins in what was written, and how long it is.
fn sent_at(world: &World, at: u64) -> Vec<(u64, usize)> {
    let segment = |packet: &bytes::Bytes| {
        let addresses = (path_of(0).local, path_of(0).remote);
        let segment = Segment::parse(packet, addresses, Checksum::Verify).expect("a good segment");
        (segment.header.sequence_number.0, segment.payload.len())
    };
    let first = segment(&world.sent[0][0].1).0.wrapping_add(1);
    let then = world.sent[0]
        .iter()
        .filter(|(when, _)| when / MILLISECOND == at);
    let texts = then.map(|(_, packet)| segment(packet));
    let texts = texts.filter(|(_, len)| *len > 0);
    texts
        .map(|(number, len)| (u64::from(number.wrapping_sub(first)), len))
        .collect()
}

/// Segments that begin at these numbers of whole ones.
fn whole(numbers: &[u64]) -> Vec<(u64, usize)> {
    numbers
        .iter()
        .map(|number| (number * MSS, MSS as usize))
        .collect()
}

/// By hand, RFC 5682 §2.1. Segments 0, 1, 2 are the initial window. The timer sends 0 again at 2 s. At 2.6 s the originals are acknowledged one by
/// one: the first lets two new segments go (2 b), the second shows that the timeout was spurious (3 b), and the window is three segments
/// again, which is in flight. The third lets it grow to four, and two go.
#[test]
fn forward_recovery_by_hand() {
    let mut world = opened(&["frto"], late(1500));
    write(&mut world, &[20 * MSS]);
    world.run_until(3 * SECOND);
    assert_eq!(sent_at(&world, 1000), whole(&[0, 1, 2]));
    assert_eq!(sent_at(&world, 2000), whole(&[0]));
    assert_eq!(sent_at(&world, 2600), whole(&[3, 4, 5, 6]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (1, 1));
}

/// The same with the first segment's text in four quarters, which went one by one, and go again as one segment. The first acknowledgement covers a
/// quarter, not all that went again: conventional recovery goes on (2 a, 2 b), though more quarters are acknowledged. With 2190 and 2920
/// bytes of window at the second and fourth quarter segments 1 and 2 go again; ssthresh is 2920, so the next grows nothing and lets 3 go,
/// and the last one makes it three segments: 4 and 5.
#[test]
fn an_acknowledgement_of_a_part_of_what_went_again_ends_forward_recovery() {
    let quarter = MSS / 4;
    let mut world = opened(&["frto"], late(1500));
    write(&mut world, &[quarter, quarter, quarter, quarter, 20 * MSS]);
    world.run_until(3 * SECOND);
    let quarters = (0..4).map(|number| (number * quarter, quarter as usize));
    let first: Vec<_> = quarters.chain(whole(&[1, 2])).collect();
    assert_eq!(sent_at(&world, 1000), first);
    assert_eq!(sent_at(&world, 2000), whole(&[0]));
    assert_eq!(sent_at(&world, 2600), whole(&[1, 2, 3, 4, 5]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (1, 0));
}

/// Segments 0, 1, 2 arrive and their acknowledgements are lost. That of the retransmission at 2 s covers all that is outstanding: it tells
/// nothing, and the timeout is one as any (2 a).
#[test]
fn an_acknowledgement_of_all_ends_forward_recovery() {
    let drops = some(1, &[1, 2, 3], Fate::Drop, Fate::Pass);
    let mut world = opened(&["frto"], drops);
    write(&mut world, &[20 * MSS]);
    world.run_until(4 * SECOND);
    assert_eq!(sent_at(&world, 2000), whole(&[0]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (1, 0));
    assert_eq!(world.ends[1].stats().bytes_delivered, 20 * MSS);
}

/// Of ten segments 0 to 7 are lost, and 10 and 11, which two duplicates bring. The timer sends 0 again at 2 s; 12 and 13 go, and their duplicates
/// end F-RTO. What goes again is lost until the timer expires once more: 1 is not above `recover`, so that F-RTO does not begin (step 1),
/// and its acknowledgement lets 2 and 3 go.
#[test]
fn no_forward_recovery_begins_within_the_recovery_of_another_timeout() {
    let drops = some(0, &[1, 2, 3, 4, 5, 6, 7, 8, 11, 12], Fate::Drop, Fate::Pass);
    let mut world = opened(&["frto", "initial_window=10 segments"], drops);
    write(&mut world, &[40 * MSS]);
    world.run_until(2199 * MILLISECOND);
    assert_eq!(sent_at(&world, 1100), whole(&[10, 11]));
    assert_eq!(sent_at(&world, 2000), whole(&[0]));
    assert_eq!(sent_at(&world, 2100), whole(&[12, 13]));
    world.fate = Box::new(|_, _, _| Fate::Drop);
    let mut now = 2199;
    while world.ends[0].stats().timeouts == 1 {
        now += 1;
        assert!(now < 10_000, "no second timeout");
        if now == 4_000 {
            world.fate = Box::new(|_, _, _| Fate::Pass);
        }
        world.run_until(now * MILLISECOND);
    }
    assert_eq!(sent_at(&world, now), whole(&[1]));
    world.run_until((now + 150) * MILLISECOND);
    assert_eq!(sent_at(&world, now + 100), whole(&[2, 3]));
    assert_eq!(world.ends[0].stats().spurious_timeouts, 0);
}

/// What the client sends passes, but for the first segments that begin at these numbers of whole ones.
fn all_but(world: &World, numbers: &[u64]) -> common::Weather {
    let number = |packet: &[u8]| u32::from_be_bytes([packet[4], packet[5], packet[6], packet[7]]);
    let first = number(&world.sent[0][0].1).wrapping_add(1);
    let mut left = numbers.to_vec();
    Box::new(move |end, _, packet| {
        let begin = u64::from(number(packet).wrapping_sub(first));
        match left.iter().position(|it| end == 0 && it * MSS == begin) {
            Some(place) => {
                left.remove(place);
                Fate::Drop
            }
            None => Fate::Pass,
        }
    })
}

/// The same losses, and 12. The second timeout, within the recovery of the first, makes `recover` what has been sent by then (step 1): 14 segments. What
/// goes from 4 s on arrives but for 12 and 15, once each, so the timer expires a third time, for 12: it is below `recover`, and F-RTO does not begin. When 12
/// is acknowledged, 15 goes again before anything new.
#[test]
fn a_timeout_within_the_recovery_of_another_moves_recover() {
    let drops = some(
        0,
        &[1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14],
        Fate::Drop,
        Fate::Pass,
    );
    let mut world = opened(&["frto", "initial_window=10 segments"], drops);
    write(&mut world, &[40 * MSS]);
    world.run_until(2199 * MILLISECOND);
    assert_eq!(sent_at(&world, 2100), whole(&[12, 13]));
    world.fate = Box::new(|_, _, _| Fate::Drop);
    let mut now = 2199;
    while world.ends[0].stats().timeouts < 3 {
        now += 1;
        assert!(now < 30_000, "no third timeout");
        if now == 4_000 {
            world.fate = all_but(&world, &[12, 15]);
        }
        world.run_until(now * MILLISECOND);
    }
    assert_eq!(sent_at(&world, now), whole(&[12]));
    write(&mut world, &[8 * MSS]); // so that there is something new
    world.run_until((now + 150) * MILLISECOND);
    let then = sent_at(&world, now + 100);
    assert_eq!(then.first(), Some(&(15 * MSS, MSS as usize)), "{then:?}");
    assert_eq!(world.ends[0].stats().spurious_timeouts, 0);
}

/// Text of the peer arrives between the timeout and its first acknowledgement: neither new nor a duplicate, it is no step (RFC 5682 §2.1).
#[test]
fn forward_recovery_waits_for_what_is_new_or_a_duplicate() {
    let mut world = opened(&["frto"], late(1500));
    write(&mut world, &[20 * MSS]);
    world.ends[0].set_discard(true);
    world.run_until(2300 * MILLISECOND);
    world.ends[1].write_zeros(100).expect("open");
    world.run_until(3 * SECOND);
    assert_eq!(world.ends[0].stats().bytes_delivered, 100);
    assert_eq!(sent_at(&world, 2600), whole(&[3, 4, 5, 6]));
    assert_eq!(world.ends[0].stats().spurious_timeouts, 1);
}

/// All is late by 4 s: the timer expires at 2 s, and backed off at 4 s, for the same segment. F-RTO began anew (RFC 5682 §2.2).
#[test]
fn forward_recovery_begins_anew_where_the_same_segment_times_out_again() {
    let mut world = opened(&["frto"], late(4000));
    write(&mut world, &[20 * MSS]);
    world.run_until(5500 * MILLISECOND);
    assert_eq!(sent_at(&world, 4000), whole(&[0]));
    assert_eq!(sent_at(&world, 5100), whole(&[3, 4, 5, 6]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (2, 1));
}

/// Ten segments go, and 0 is lost. At 1.1 s nine duplicates bring 10, 11, the retransmission of 0, which is lost, 12 and 13, which are late. The timer
/// sends 0 again at 2.1 s, and at 2.2 s all ten are acknowledged. At 2.7 s segments are acknowledged that did not go again, but there was a
/// loss: within a fast recovery F-RTO does not begin (RFC 5682 §2.1).
#[test]
fn no_forward_recovery_begins_within_a_fast_recovery() {
    let drops = some(0, &[1], Fate::Drop, Fate::Pass);
    let mut world = opened(&["frto", "initial_window=10 segments"], drops);
    write(&mut world, &[40 * MSS]);
    world.run_until(1099 * MILLISECOND);
    let late = Fate::Late(1500 * MILLISECOND);
    world.fate = some(0, &[3], Fate::Drop, late);
    world.run_until(2099 * MILLISECOND);
    assert_eq!(sent_at(&world, 1100), whole(&[10, 11, 0, 12, 13]));
    world.fate = some(0, &[1], Fate::Pass, late);
    world.run_until(3 * SECOND);
    assert_eq!(sent_at(&world, 2100), whole(&[0]));
    assert_eq!(sent_at(&world, 2200), whole(&[10, 11]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (1, 0));
}

/// The 30th of 44 segments that are late, and whose timeout is found to be spurious, is lost: three duplicates have it sent again. They do not wait for
/// the end of what was outstanding at the timeout (RFC 4015 §4, RFC 5682 §2.2 and §3.1).
#[test]
fn a_loss_behind_a_spurious_timeout_is_found_by_duplicates() {
    for switches in [&["frto"] as &[&str], &["eifel", "timestamps"]] {
        for profile in [Profile::rfc6675(), Profile::newreno(), Profile::sack1()] {
            let mut config = config(switches);
            (config.profile.recovery, config.profile.sack) = (profile.recovery, profile.sack);
            let mut world = transfer(&config, 4000);
            world.run_until(900 * MILLISECOND);
            let late = Fate::Late(1500 * MILLISECOND);
            world.fate = some(0, &[30], Fate::Drop, late);
            world.run_until(200 * SECOND);
            assert_eq!(world.ends[1].stats().bytes_delivered, 4000 * MSS);
            let stats = world.ends[0].stats();
            let told = (
                stats.timeouts,
                stats.spurious_timeouts,
                stats.fast_retransmits,
            );
            assert_eq!(told, (1, 1, 1), "{switches:?} {}", profile.name);
        }
    }
}

/// Segment 0 arrives and its acknowledgement is lost, segments 1 and 2 are lost. The acknowledgement of the retransmission at 2 s says that 0 came
/// twice: the window is restored, but nothing shows that 1 and 2 are on their way (RFC 4015 §3.3, `LATE_SPUR_TO`), and they go at once.
#[test]
fn what_came_twice_restores_the_window_and_lets_the_rest_go_again() {
    let mut number = 0;
    let drops = move |end, _, _: &[u8]| {
        number += 1;
        match (end, number) {
            (0, 2 | 3) | (1, 4) => Fate::Drop,
            _ => Fate::Pass,
        }
    };
    let mut world = opened(&["dsack"], Box::new(drops));
    write(&mut world, &[20 * MSS]);
    world.run_until(3 * SECOND);
    assert_eq!(sent_at(&world, 2000), whole(&[0]));
    assert_eq!(sent_at(&world, 2100), whole(&[1, 2, 3]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.reductions_undone), (1, 1));
}

/// The acknowledgements that show it tell of marks: new data goes on, and the window stays as the timeout left it (RFC 4015 §3.4): one segment, which
/// an acknowledgement with ECN-Echo does not let grow either (RFC 3168 §6.1.2).
#[test]
fn a_mark_keeps_the_window_of_a_spurious_timeout_reduced() {
    let marks = |end, _, _: &[u8]| match end {
        0 => Fate::LateMarked(1500 * MILLISECOND),
        _ => Fate::Pass,
    };
    let mut world = opened(&["frto", "ecn"], Box::new(marks));
    write(&mut world, &[20 * MSS]);
    world.run_until(2700 * MILLISECOND);
    assert_eq!(sent_at(&world, 2600), whole(&[3, 4]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.spurious_timeouts, stats.reductions_undone), (1, 0));
}
