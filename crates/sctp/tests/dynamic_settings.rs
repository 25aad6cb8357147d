//! Tests of settings that can be changed at run time: they should take effect, survive a restart,
//! and be refused if they are out of range.

use crate::common;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::path::PathEntry;
use anabranch_sctp::{
    AssociationId, AssociationSettings, CloseReason, Config, DynamicSettingError, Endpoint, Event,
    PathId, PathSettings, PathState, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, Data};
use bytes::Bytes;
use common::*;

/// Creates two hosts with two addresses each. Both paths are confirmed.
fn two_homes(config: &Config) -> (World, AssociationId, AssociationId) {
    let homes = |host: usize| {
        config
            .clone()
            .with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
    };
    let mut world = World::with_configs(homes(A), homes(Z));
    let (a, z) = world.established();
    world.run_for(5 * SECOND);
    world.forget();
    (world, a, z)
}

fn set(world: &mut World, host: usize, id: AssociationId, change: fn(&mut AssociationSettings)) {
    let association = world.endpoints[host].association_mut(id).expect("known");
    let mut settings = association.settings();
    change(&mut settings);
    association.set_settings(settings).expect("in range");
}

fn set_path(
    world: &mut World,
    id: AssociationId,
    network: Option<u8>,
    change: fn(&mut PathSettings),
) {
    let now = world.now;
    let association = world.endpoints[A].association_mut(id).expect("known");
    let known = address(Z, network.unwrap_or(0));
    let mut settings = association
        .paths()
        .to(known)
        .map(PathEntry::settings)
        .expect("a path");
    change(&mut settings);
    let address = network.map(|it| address(Z, it));
    let done = association.set_path_settings(now, address, settings);
    done.expect("in range");
    world.drain(A);
}

/// Number of packets with these chunks that host `from` has sent over network number `network`.
fn count(world: &World, from: usize, chunks: &str, network: u8) -> usize {
    let sent = world
        .shots
        .iter()
        .filter(|it| it.from == from && it.path.remote == address(1 - from, network));
    sent.filter(|it| it.chunks == chunks).count()
}

fn data_of(world: &World) -> Vec<Data> {
    let chunks = world.shots.iter().flat_map(|it| chunks_of(&it.bytes));
    let data = chunks.filter_map(|it| match it {
        Chunk::Data(data) => Some(data),
        _ => None,
    });
    data.collect()
}

#[test]
fn values_out_of_range_are_reported_and_change_nothing() {
    let (mut world, a, _) = two_homes(&Config::default());
    let association = world.endpoints[A].association_mut(a).expect("known");
    let (settings, path) = (
        association.settings(),
        association
            .paths()
            .to(address(Z, 0))
            .map(PathEntry::settings)
            .expect("a path"),
    );
    type Bad = fn(&mut AssociationSettings);
    let bad: [(&str, Bad); 4] = [
        ("sack_delay: found 501 ms; allowed: 0 s to 500 ms", |it| {
            it.sack_delay = 501 * MILLISECOND;
        }),
        ("sack_frequency: found 0; allowed: 1 to 100", |it| {
            it.sack_frequency = 0;
        }),
        ("sack_frequency: found 101; allowed: 1 to 100", |it| {
            it.sack_frequency = 101;
        }),
        ("max_burst: found 0; allowed: 1 to 1000000", |it| {
            it.max_burst = 0;
        }),
    ];
    for (told, change) in bad {
        let mut changed = settings;
        change(&mut changed);
        let error = association.set_settings(changed).expect_err(told);
        assert_eq!(error.to_string(), told);
    }
    type BadPath = fn(&mut PathSettings);
    let bad: [(&str, BadPath); 3] = [
        ("rto_min: found 61 s; allowed: 1 ms to 60 s", |it| {
            it.rto_min = 61 * SECOND;
        }),
        ("rto_max: found 0 s; allowed: 1 ms to 86400 s", |it| {
            it.rto_max = 0;
        }),
        (
            "heartbeat_interval: found 0 s; allowed: \"off\", or 1 ms to 86400 s",
            |it| it.heartbeat_interval = Some(0),
        ),
    ];
    for (told, change) in bad {
        let mut changed = path;
        change(&mut changed);
        for to in [None, Some(address(Z, 1))] {
            let error = association.set_path_settings(0, to, changed);
            assert_eq!(error.expect_err(told).to_string(), told);
        }
    }
    let stranger = address(Z, 9);
    let error = association.set_path_settings(0, Some(stranger), path);
    assert_eq!(error, Err(DynamicSettingError::NoSuchPath(stranger)));
    let defaults = SendOptions::on(10);
    let error = association.set_settings(
        association
            .settings()
            .with(|it| it.send_defaults = defaults),
    );
    let error = error.expect_err("ten streams").to_string();
    assert_eq!(error, "stream: found 10; allowed: 0 to 9");
    assert_eq!(association.settings(), settings);
    assert_eq!(
        association
            .paths()
            .to(address(Z, 1))
            .map(PathEntry::settings),
        Some(path)
    );
    assert_eq!(association.settings().send_defaults, SendOptions::new());
}

#[test]
fn heartbeats_of_a_path_stop_and_begin_by_themselves() {
    let (mut world, a, _) = two_homes(&Config::default());
    set_path(&mut world, a, Some(0), |it| it.heartbeat_interval = None);
    set_path(&mut world, a, Some(1), |it| {
        it.heartbeat_interval = Some(SECOND);
    });
    world.run_for(60 * SECOND);
    let sent = |world: &World, network| count(world, A, "HEARTBEAT", network);
    assert_eq!(sent(&world, 0), 0);
    // The time between two HEARTBEATs is one interval and one RTO of 1 s, with a jitter of half an
    // RTO.
    assert!((24..=40).contains(&sent(&world, 1)), "{}", sent(&world, 1));
    world.forget();
    set_path(&mut world, a, None, |it| {
        it.heartbeat_interval = Some(9 * SECOND);
    });
    world.run_for(60 * SECOND);
    for network in [0, 1] {
        let sent = sent(&world, network);
        assert!((5..=7).contains(&sent), "{sent} on {network}");
    }
}

#[test]
fn the_timeout_of_one_path_has_bounds_of_its_own() {
    let (mut world, a, _) = two_homes(&Config::default());
    set_path(&mut world, a, Some(0), |it| {
        (it.rto_min, it.rto_max) = (5 * SECOND, 7 * SECOND);
    });
    world.fate = Box::new(|_| Fate::Drop);
    let began = world.now;
    world.send(A, a, 0, "lost");
    let path = |world: &World, network| {
        let paths = world.endpoints[A].association(a).expect("known").paths();
        paths.get(PathId(network)).rto().rto()
    };
    assert_eq!((path(&world, 0), path(&world, 1)), (5 * SECOND, SECOND));
    world.run_for(5 * SECOND - MILLISECOND);
    assert_eq!(data_of(&world).len(), 1, "not before its time");
    world.run_for(2 * MILLISECOND);
    assert_eq!(data_of(&world).len(), 2);
    assert_eq!(world.now - began, 5 * SECOND + MILLISECOND);
    assert_eq!(path(&world, 0), 7 * SECOND, "doubled, to its bound");
}

#[test]
fn errors_that_a_path_and_the_association_stand_are_set() {
    let (mut world, a, _) = two_homes(&Config::default());
    set_path(&mut world, a, Some(0), |it| it.path_max_retrans = 0);
    set(&mut world, A, a, |it| it.association_max_retrans = 2);
    world.fate = Box::new(|_| Fate::Drop);
    world.send(A, a, 0, "lost");
    world.run_for(1_100 * MILLISECOND);
    let states = |world: &World| {
        let association = world.endpoints[A].association(a).expect("known");
        let paths = association.paths();
        [0, 1].map(|it| paths.get(PathId(it)).state())
    };
    assert_eq!(states(&world), [PathState::Inactive, PathState::Active]);
    // A second and a third timeout follow after one and two seconds on the other path.
    world.run_for(3 * SECOND);
    let reason = world.close_reason(A, a);
    assert_eq!(reason, Some(CloseReason::PeerUnreachable));
    let association = world.endpoints[A].association_mut(a).expect("known");
    let settings = association.settings();
    let error = association.set_settings(settings);
    assert_eq!(error, Err(DynamicSettingError::Closed));
}

#[test]
fn the_receiver_acknowledges_as_often_as_configured() {
    let config = Config::default().with(|it| it.receive_buffer = 1 << 20);
    let mut world = World::new(config);
    let (a, z) = world.established();
    let mut sacks = |change: fn(&mut AssociationSettings), packets: usize| {
        set(&mut world, Z, z, change);
        world.forget();
        for _ in 0..packets {
            world.send(A, a, 0, vec![1; 1_400]);
        }
        world.run_for(150 * MILLISECOND);
        let sacks = count(&world, Z, "SACK", 0);
        world.run_for(SECOND);
        let all = count(&world, Z, "SACK", 0);
        world.receive_all(Z, z);
        (sacks, all)
    };
    sacks(|_| {}, 3); // the first packet is acknowledged at once

    // A SACK for the first packet should be sent after the delay if no second packet follows.
    assert_eq!(sacks(|it| it.sack_frequency = 2, 3), (1, 2));
    assert_eq!(sacks(|it| it.sack_frequency = 3, 3), (1, 1));
    assert_eq!(sacks(|it| it.sack_frequency = 4, 3), (0, 1));
    assert_eq!(sacks(|it| it.sack_delay = 100 * MILLISECOND, 3), (1, 1));
    assert_eq!(sacks(|it| it.delayed_sack = false, 3), (3, 3));
}

#[test]
fn a_burst_is_as_large_as_is_allowed() {
    let mut world = World::new(Config::default());
    let (a, _) = world.established();
    let mut first_flight = |burst| {
        let association = world.endpoints[A].association_mut(a).expect("known");
        let settings = association.settings().with(|it| it.max_burst = burst);
        association.set_settings(settings).expect("in range");
        world.run_for(10 * SECOND);
        world.forget();
        let association = world.endpoints[A].association_mut(a).expect("known");
        for _ in 0..3 {
            let message = Bytes::from(vec![1; 1_400]);
            association
                .send(world.now, message, &SendOptions::new())
                .expect("room");
        }
        world.drain(A);
        count(&world, A, "DATA", 0)
    };
    assert_eq!([1, 2, 3].map(&mut first_flight), [1, 2, 3]);
}

#[test]
fn messages_go_as_the_defaults_say() {
    let config = Config::default().with(|it| {
        it.partial_reliability = true;
        it.lifetime = Some(9 * SECOND);
    });
    let mut world = World::new(config);
    let (a, _) = world.established();
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let defaults = association.settings().send_defaults;
    assert_eq!(defaults.lifetime(), Some(9 * SECOND));
    let defaults = defaults
        .with_stream(Some(7))
        .with_ppid(51)
        .with_unordered(true)
        .with_lifetime(Some(SECOND / 2));
    association
        .set_settings(
            association
                .settings()
                .with(|it| it.send_defaults = defaults),
        )
        .expect("in range");
    let options = association.settings().send_defaults;
    let sent = association.send(now, "as ever".into(), &options);
    sent.expect("room");
    world.fate = Box::new(|_| Fate::Drop);
    world.drain(A);
    let data = data_of(&world).remove(0);
    assert_eq!((data.stream_id, data.ppid, data.unordered), (7, 51, true));
    world.run_for(2 * SECOND);
    let gone = world.told(A);
    assert!(
        gone.iter()
            .any(|it| matches!(it, Event::MessageAbandoned(_))),
        "after half a second: {gone:?}"
    );
}

/// A restart should reset everything except the settings that the user has changed.
#[test]
fn settings_survive_a_restart_of_the_peer() {
    let config = Config::default().with(|it| it.scheduler = SchedulerKind::Priority);
    let (mut world, a, z) = two_homes(&config);
    let now = world.now;
    let association = world.endpoints[Z].association_mut(z).expect("known");
    let settings = association
        .settings()
        .with(|it| (it.max_burst, it.sack_frequency) = (3, 5));
    association.set_settings(settings).expect("in range");
    let path = association
        .paths()
        .to(address(A, 1))
        .map(PathEntry::settings)
        .expect("a second path")
        .with(|it| (it.rto_min, it.path_max_retrans) = (2 * SECOND, 1));
    let done = association.set_path_settings(now, Some(address(A, 1)), path);
    done.expect("in range");
    association.set_stream_value(1, 7);
    let defaults = association.settings().send_defaults.with(|it| it.ppid = 3);
    association
        .set_settings(
            association
                .settings()
                .with(|it| it.send_defaults = defaults),
        )
        .expect("in range");
    // A loses its state and connects again.
    world.endpoints[A] = Endpoint::new(
        config.with(|it| it.addresses = vec![address(A, 0), address(A, 1)]),
        PORT_A,
        [9; 32],
    )
    .expect("settings");
    let _ = a;
    world.connect();
    world.run_for(5 * SECOND);
    let restarted = |it: &Event| matches!(it, Event::Restarted { .. });
    assert!(world.told(Z).iter().any(restarted), "{:?}", world.told(Z));
    world.forget();
    let association = world.endpoints[Z].association_mut(z).expect("known");
    let expected = settings.with(|it| it.send_defaults = defaults);
    assert_eq!(association.settings(), expected);
    assert_eq!(
        association
            .paths()
            .to(address(A, 1))
            .map(PathEntry::settings),
        Some(path)
    );
    for stream in [1, 1, 2, 2] {
        let message = Bytes::from(vec![1; 600]);
        association
            .send(now, message, &SendOptions::on(stream))
            .expect("room");
    }
    world.drain(Z);
    world.run_for(SECOND);
    let streams: Vec<u16> = data_of(&world).iter().map(|it| it.stream_id).collect();
    assert_eq!(
        streams,
        [2, 2, 1, 1],
        "stream 1 has the lower priority still"
    );
}
