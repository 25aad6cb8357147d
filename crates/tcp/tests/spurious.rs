//! Spurious window reductions and their undo by F-RTO (RFC 5682), Eifel (RFC 3522) and D-SACK (RFC
//! 2883, RFC 3708), for links with 50 ms delay each way and unlimited rate.

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

/// From 0.9 s on, all packets of the client take 1.5 s longer, as if the path had changed. The
/// timer of one second expires, although no packet is lost or reordered.
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

/// Without the three methods, a whole window is retransmitted. With any of them, only the first
/// segment is retransmitted, and the window is restored.
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

/// After a spurious timeout, acknowledgements are late again before all data outstanding at that
/// time is acknowledged. The second timeout must also be recognized as spurious (RFC 5682 §2.1,
/// step 3 b: `recover` becomes SND.UNA).
#[test]
fn a_second_spurious_timeout_is_found_in_the_flight_of_the_first() {
    let mut world = transfer(&config(&["frto"]), 4000);
    // A segment takes 1.5 ms, so that acknowledgements have different times.
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

/// The retransmission timer expires as in the tests above, but the data is really lost. No window
/// reduction may be undone.
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
        // The network drops packets on the link after the access link.
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

/// One segment is late by half a round trip. Three duplicates trigger its retransmission, and the
/// window is halved. Timestamps or a D-SACK show that the original had arrived.
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

/// RACK keeps a separate list of lost segments, which must be corrected after a spurious timeout as
/// well.
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

/// Opens a connection; `fate` applies to all packets from 1 s on.
fn opened(switches: &[&str], fate: common::Weather) -> World {
    let mut config = config(switches);
    config.profile.nagle = false;
    let mut world = World::new(config.clone(), config);
    world.ends[1].set_discard(true);
    world.run_until(SECOND);
    world.fate = fate;
    world
}

/// Delays every packet of the client by this many ms.
fn late(by: u64) -> common::Weather {
    Box::new(move |end, _, _| match end {
        0 => Fate::Late(by * MILLISECOND),
        _ => Fate::Pass,
    })
}

/// Function that applies `fate` to those packets of `end` that have these numbers, counted from 1,
/// and `others` to the other packets of `end`.
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

/// Writes data of these sizes at the client, one after the other.
fn write(world: &mut World, texts: &[u64]) {
    for text in texts {
        world.ends[0].write_zeros(*text).expect("open");
        world.drain(0);
    }
}

/// Segments that the client sent at `at` ms: offset in the written data, and length.
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

/// Offset and length of the full segments with these numbers.
fn whole(numbers: &[u64]) -> Vec<(u64, usize)> {
    numbers
        .iter()
        .map(|number| (number * MSS, MSS as usize))
        .collect()
}

/// Computed by hand according to RFC 5682 §2.1. The initial window is segments 0, 1 and 2. The
/// timer expires at 2 s, and 0 is retransmitted. At 2.6 s the acknowledgements of the originals
/// arrive one by one: the first allows two new segments (2 b), and the second shows that the
/// timeout was spurious (3 b). The window is restored to three segments, all of which are in
/// flight. The third acknowledgement increases the window to four, and two segments are sent.
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

/// Like the previous test, but the first segment consists of four quarters, which were sent one by
/// one and are retransmitted as one segment. The first acknowledgement covers a quarter, and not
/// all retransmitted data. Conventional recovery therefore continues (2 a, 2 b), although more
/// quarters are acknowledged. At the second and the fourth quarter the window is 2190 and 2920
/// bytes, and segments 1 and 2 are retransmitted. ssthresh is 2920. The next acknowledgement
/// therefore does not increase the window and allows segment 3; the last one increases it to three
/// segments and allows 4 and 5.
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

/// Segments 0, 1, 2 arrive, but their acknowledgements are lost. The acknowledgement of the
/// retransmission at 2 s covers all outstanding data, so it does not show whether the original had
/// arrived. The timeout counts as genuine (2 a).
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

/// Of ten segments, 0 to 7 are lost. Two duplicates trigger 10 and 11, which are lost too. The
/// timer expires at 2 s, and 0 is retransmitted; then 12 and 13 are sent, and their duplicates end
/// F-RTO. Retransmissions are lost until the timer expires again. Segment 1 is not above `recover`,
/// so F-RTO does not start (step 1), and the acknowledgement of 1 allows 2 and 3.
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

/// Drops the first transmission of each full segment with one of these numbers, and passes all
/// other packets.
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

/// The losses are those of the previous test, and in addition segment 12 is lost. The second
/// timeout, during the recovery from the first, sets `recover` to the end of the data sent by then
/// (step 1), 14 segments. From 4 s on everything arrives except 12 and 15, which are lost once
/// each, so the timer expires a third time, for 12. Segment 12 is below `recover`, so F-RTO does
/// not start. When 12 is acknowledged, 15 is retransmitted before new data.
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
    write(&mut world, &[8 * MSS]); // so that there is new data
    world.run_until((now + 150) * MILLISECOND);
    let then = sent_at(&world, now + 100);
    assert_eq!(then.first(), Some(&(15 * MSS, MSS as usize)), "{then:?}");
    assert_eq!(world.ends[0].stats().spurious_timeouts, 0);
}

/// Data of the peer arrives between the timeout and the first acknowledgement after it. The
/// acknowledgement in this data is neither new nor a duplicate, so it must not count as a step (RFC
/// 5682 §2.1).
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

/// All packets are late by 4 s. The timer of one segment expires at 2 s and, after backoff, at 4 s.
/// The second timeout must restart F-RTO (RFC 5682 §2.2).
#[test]
fn forward_recovery_restarts_where_the_same_segment_times_out_again() {
    let mut world = opened(&["frto"], late(4000));
    write(&mut world, &[20 * MSS]);
    world.run_until(5500 * MILLISECOND);
    assert_eq!(sent_at(&world, 4000), whole(&[0]));
    assert_eq!(sent_at(&world, 5100), whole(&[3, 4, 5, 6]));
    let stats = world.ends[0].stats();
    assert_eq!((stats.timeouts, stats.spurious_timeouts), (2, 1));
}

/// Of ten segments, segment 0 is lost. At 1.1 s, nine duplicates trigger 10, 11, the retransmission
/// of 0, which is lost, and 12 and 13, which are late. The timer expires at 2.1 s and 0 is
/// retransmitted; at 2.2 s all ten segments are acknowledged. At 2.7 s, segments that were not
/// retransmitted are acknowledged, but this does not show a spurious timeout, because 0 was lost.
/// F-RTO must therefore not start during fast recovery (RFC 5682 §2.1).
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

/// Of 44 segments, the 30th is lost and the others are late. Their timeout is recognized as
/// spurious, and three duplicates trigger the retransmission of the 30th. The fast retransmit need
/// not wait for the data outstanding at the timeout (RFC 4015 §4, RFC 5682 §2.2 and §3.1).
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

/// Segment 0 arrives, but its acknowledgement is lost; segments 1 and 2 are lost. The
/// acknowledgement of the retransmission at 2 s reports that 0 arrived twice, so the window is
/// restored. It does not show that 1 and 2 are still in flight (RFC 4015 §3.3, `LATE_SPUR_TO`), so
/// they are retransmitted at once.
#[test]
fn a_dsack_restores_the_window_and_the_rest_is_retransmitted() {
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

/// The acknowledgements that reveal the spurious timeout also report marks. New data is sent, but
/// the window is not restored (RFC 4015 §3.4). The timeout has left a window of one segment, which
/// an acknowledgement with ECN-Echo does not increase (RFC 3168 §6.1.2).
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
