//! Reductions that answered no loss, and what undoes them: F-RTO (RFC 5682), Eifel (RFC 3522), D-SACK (RFC 2883, RFC 3708). On lines
//! of 50 ms each way without a rate.

use crate::common;

use anabranch_tcp::{Config, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::{Fate, World};

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
