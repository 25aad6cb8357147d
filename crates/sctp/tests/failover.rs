//! Effects of the multihoming switches: destination of retransmissions, failure of paths, selection
//! of the primary path, and packets to unverified addresses.

use crate::common;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, Event, PathId, PathState, Profile,
    SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Path, Probe, ProbeSet, Sample, Trace};
use anabranch_wire::chunk::Chunk;
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use std::net::IpAddr;

fn profile(name: &str, switches: &[(&str, &str)]) -> Profile {
    let mut profile = Profile::by_name(name).expect("a listed profile");
    for (switch, value) in switches {
        profile.set(switch, value).expect("a listed switch");
    }
    profile
}

fn with_homes(host: usize, networks: u8, config: &Config) -> Config {
    config
        .clone()
        .with(|it| it.addresses = (0..networks).map(|on| address(host, on)).collect())
}

fn two_homes(config: &Config) -> World {
    World::with_configs(with_homes(A, 2, config), with_homes(Z, 2, config))
}

/// A connects to both addresses of Z, so that both addresses are confirmed from the start. Returns
/// when both ends are established and have been idle for some time.
fn established(world: &mut World) -> (AssociationId, AssociationId) {
    let remote = [address(Z, 0), address(Z, 1)];
    let a = world.endpoints[A]
        .connect(world.now, &remote, PORT_Z)
        .expect("no association yet");
    world.drain(A);
    world.run_for(4 * SECOND);
    let z = world.only_association(Z);
    assert_eq!(world.state(A, a), AssociationState::Established);
    world.forget();
    (a, z)
}

fn network(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 1,
    }
}

fn dies(dead: u8, from: Nanos) -> Box<dyn FnMut(&Shot) -> Fate> {
    Box::new(move |shot| {
        if shot.at >= from && network(shot.path.remote) == dead {
            Fate::Drop
        } else {
            Fate::Deliver
        }
    })
}

fn numbered(number: u32) -> Bytes {
    let mut payload = BytesMut::new();
    payload.put_u32(number);
    payload.resize(1_000, 1);
    payload.freeze()
}

/// Sends `count` messages from A to Z, each of which must arrive once and in order.
fn transfer(world: &mut World, a: AssociationId, z: AssociationId, count: u32) {
    let (mut got, mut sent) = (Vec::new(), 0);
    for _ in 0..8_000 {
        let association = world.endpoints[A].association_mut(a).expect("known");
        let options = SendOptions::new();
        while sent < count
            && association
                .send(world.now, numbered(sent), &options)
                .is_ok()
        {
            sent += 1;
        }
        world.drain(A);
        world.run_for(50 * MILLISECOND);
        got.extend(world.receive_all(Z, z).into_iter().map(|message| {
            let bytes: Bytes = message.payload.into_bytes();
            u32::from_be_bytes(bytes[..4].try_into().expect("numbered"))
        }));
        if got.len() >= count as usize {
            break;
        }
    }
    assert_eq!(got, (0..count).collect::<Vec<_>>(), "each once, in order");
}

fn record(world: &mut World, a: AssociationId, probe: Probe) {
    let association = world.endpoints[A].association_mut(a).expect("known");
    *association.trace_mut() = Trace::new(ProbeSet::NONE.with(probe));
}

fn recorded(world: &mut World, a: AssociationId) -> Vec<Sample> {
    let association = world.endpoints[A].association_mut(a).expect("known");
    association.trace_mut().drain().collect()
}

fn path_events(world: &World, host: usize) -> Vec<(u8, PathState)> {
    world
        .told(host)
        .into_iter()
        .filter_map(|event| match event {
            Event::PathChanged { path, state, .. } => Some((path.0, state)),
            _ => None,
        })
        .collect()
}

/// Times of the HEARTBEATs that `from` has sent over a network, in milliseconds after `since`.
fn heartbeats(world: &World, from: usize, on: u8, since: Nanos) -> Vec<u64> {
    world
        .shots
        .iter()
        .filter(|shot| shot.from == from && network(shot.path.remote) == on)
        .filter(|shot| shot.chunks.contains("HEARTBEAT") && !shot.chunks.contains("ACK"))
        .map(|shot| (shot.at - since) / MILLISECOND)
        .collect()
}

#[test]
fn the_policy_says_where_a_retransmission_goes() {
    for (policy, after_reports, after_timeout) in [
        ("same_path", 0, 0),
        ("alternate_path", 1, 1),
        ("alternate_after_timeout", 0, 1),
    ] {
        for (messages, expected) in [(10, after_reports), (1, after_timeout)] {
            let config = Config::default()
                .with(|it| it.profile = profile("rfc9260", &[("retransmission_path", policy)]));
            let mut world = two_homes(&config);
            let (a, z) = established(&mut world);
            world.fate = lose("DATA", 1);
            transfer(&mut world, a, z, messages);
            let tsns: Vec<_> = world
                .shots
                .iter()
                .filter(|shot| shot.from == A)
                .flat_map(|shot| {
                    let on = network(shot.path.remote);
                    chunks_of(&shot.bytes)
                        .into_iter()
                        .map(move |chunk| (on, chunk))
                })
                .filter_map(|(on, chunk)| match chunk {
                    Chunk::Data(data) => Some((on, data.tsn)),
                    _ => None,
                })
                .collect();
            let again: Vec<_> = tsns.iter().filter(|(_, tsn)| *tsn == tsns[0].1).collect();
            assert_eq!(again.len(), 2, "{policy}: sent and sent again");
            assert_eq!(again[1].0, expected, "{policy} after {messages} messages");
        }
    }
}

/// The primary path fails during a transfer. New data is sent on the other path after
/// Path.Max.Retrans + 1 timeouts, each twice as long as the previous one. If the path becomes
/// potentially failed, this happens after the first timeout. All data arrives once.
#[test]
fn new_data_moves_after_as_many_timeouts_as_the_rules_say() {
    for name in Profile::NAMES {
        for (potentially_failed, path_max_retrans, least, most) in [
            // Timeouts: 1 s; 1 + 2 + 4 s; 1 + 2 + 4 + 8 s; each plus up to one RTT and one delayed
            // SACK.
            ("true", 2, 900, 1_500),
            ("true", 5, 900, 1_500),
            ("false", 0, 900, 1_500),
            ("false", 2, 6_900, 8_500),
            ("false", 3, 14_900, 17_000),
        ] {
            let config = Config::default().with(|it| {
                it.path_max_retrans = path_max_retrans;
                it.profile = profile(name, &[("potentially_failed", potentially_failed)]);
            });
            let mut world = two_homes(&config);
            let (a, z) = established(&mut world);
            record(&mut world, a, Probe::Sent);
            let outage = world.now + 150 * MILLISECOND;
            world.fate = dies(0, outage);
            transfer(&mut world, a, z, 1_500);
            let resumed = recorded(&mut world, a)
                .into_iter()
                .find(|sample| sample.index == 1)
                .expect("goes on")
                .at;
            let after = (resumed - outage) / MILLISECOND;
            assert!(
                (least..=most).contains(&after),
                "{name}, PF {potentially_failed}, PMR {path_max_retrans}: {after} ms"
            );
        }
    }
}

/// RFC 7829 §3: a potentially failed path is probed immediately and then once per RTO, which
/// doubles each time. It is active again after the first answer, and inactive after
/// Path.Max.Retrans errors.
#[test]
fn a_potentially_failed_path_is_probed_until_it_answers_or_is_inactive() {
    let config = Config::default().with(|it| {
        it.profile = profile("rfc9260", &[("potentially_failed", "true")]);
        it.path_max_retrans = 3;
    });
    for answers in [true, false] {
        let mut world = two_homes(&config);
        let (a, z) = established(&mut world);
        world.fate = lose("DATA", 1);
        let sent = world.now;
        world.send(A, a, 0, "lost");
        let back = sent + 2_500 * MILLISECOND;
        world.fate = Box::new(move |shot| {
            let dead = !answers || shot.at < back;
            if dead && network(shot.path.remote) == 0 {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
        // This message was sent before the network failed.
        world.run_for(SECOND + 500 * MILLISECOND);
        world.send(A, a, 0, "over the other");
        world.run_for(30 * SECOND);
        assert!(world.receive_all(Z, z).len() >= 2, "nothing waits");
        let times = heartbeats(&world, A, 0, sent);
        let failed = (0, PathState::PotentiallyFailed);
        if answers {
            // T3-rtx expires after 1 s, and the first HEARTBEAT times out 2 s later; the next
            // HEARTBEAT is answered.
            assert_eq!(times, [1_000, 3_000]);
            assert_eq!(path_events(&world, A), [failed, (0, PathState::Active)]);
        } else {
            // Errors: T3-rtx at 1 s, HEARTBEATs at 3, 7 and 15 s.
            assert_eq!(times, [1_000, 3_000, 7_000]);
            assert_eq!(path_events(&world, A), [failed, (0, PathState::Inactive)]);
        }
    }
}

/// If every path is potentially failed, data uses the path with the fewest errors, and the
/// association survives.
#[test]
fn the_least_failed_path_carries_data_when_none_is_active() {
    let config = Config::default()
        .with(|it| it.profile = profile("rfc9260", &[("potentially_failed", "true")]));
    let mut world = two_homes(&config);
    let (a, z) = established(&mut world);
    world.fate = Box::new(|_| Fate::Drop);
    world.send(A, a, 0, "into the dark");
    world.run_for(3_300 * MILLISECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let paths = world.endpoints[A].association(a).expect("known").paths();
    let errors: Vec<_> = paths.iter().map(|(_, entry)| entry.error_count()).collect();
    assert!(
        paths
            .iter()
            .all(|(_, it)| it.state() == PathState::PotentiallyFailed)
    );
    assert_ne!(errors[0], errors[1]);
    let least = usize::from(errors[1] < errors[0]);
    assert_eq!(
        usize::from(paths.choose_for_new_data().0),
        least,
        "{errors:?}"
    );
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(60 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 1, "once");
}

/// RFC 7829 §5: after PSMR errors the other path becomes the primary permanently. Without PSMR,
/// data returns to the first path.
#[test]
fn the_primary_gives_its_office_away_or_gets_its_data_back() {
    for (psmr, afterwards) in [(Some(1), 1), (None, 0)] {
        let config = Config::default().with(|it| {
            it.profile = profile("rfc9260", &[("potentially_failed", "true")]);
            it.primary_switchover_max_retrans = psmr;
            it.heartbeat_interval = Some(2 * SECOND);
        });
        let mut world = two_homes(&config);
        let (a, z) = established(&mut world);
        world.fate = dies(0, world.now + 100 * MILLISECOND);
        transfer(&mut world, a, z, 300);
        world.run_for(10 * SECOND);
        world.fate = Box::new(|_| Fate::Deliver);
        world.run_for(120 * SECOND);
        let paths = world.endpoints[A].association(a).expect("known").paths();
        assert_eq!(paths.primary(), PathId(afterwards));
        assert!(paths.iter().all(|(_, it)| it.state() == PathState::Active));
        let changed = |event: &Event| matches!(event, Event::PrimaryChanged { .. });
        let told = world.told(A).iter().filter(|event| changed(event)).count();
        assert_eq!(told, usize::from(afterwards));
        world.forget();
        transfer(&mut world, a, z, 20);
        let on: Vec<_> = world
            .shots
            .iter()
            .filter(|shot| shot.from == A && shot.chunks == "DATA")
            .map(|shot| network(shot.path.remote))
            .collect();
        assert!(on.iter().all(|&on| on == afterwards), "{psmr:?}: {on:?}");
    }
}

/// The user can select the primary path and request a HEARTBEAT (RFC 9260 §11.1.5, §11.1.8).
#[test]
fn the_user_names_the_primary_and_asks_for_a_heartbeat() {
    let mut world = two_homes(&Config::default());
    let (a, z) = established(&mut world);
    let now = world.now;
    let association = world.endpoints[A].association_mut(a).expect("known");
    let second = association.paths().get(PathId(1)).path();
    assert!(
        !association.set_primary(now, second.local),
        "not the peer's"
    );
    assert!(association.set_primary(now, second.remote));
    association.request_heartbeat(PathId(0));
    association.request_heartbeat(PathId(9));
    world.drain(A);
    transfer(&mut world, a, z, 20);
    let of_a = |shot: &&Shot| shot.from == A;
    for shot in world.shots.iter().filter(of_a) {
        let expected = if shot.chunks == "HEARTBEAT" { 0 } else { 1 };
        assert_eq!(network(shot.path.remote), expected, "{}", shot.chunks);
    }
    assert_eq!(heartbeats(&world, A, 0, now), [0]);
    let changed = |event: &&Event| matches!(event, Event::PrimaryChanged { .. });
    assert_eq!(world.told(A).iter().filter(changed).count(), 1);
}

/// A path that does not answer is probed after HB.interval + RTO with a jitter of half an RTO in
/// the RFCs, and once per RTO in ns-2.35.
#[test]
fn an_inactive_path_is_probed_as_the_profile_says() {
    let run = |name: &str| {
        let config = Config::new(profile(name, &[])).with(|it| {
            it.heartbeat_interval = Some(10 * SECOND);
            it.rto_max = 8 * SECOND;
            it.path_max_retrans = 1;
        });
        let mut world = two_homes(&config);
        established(&mut world);
        let since = world.now;
        world.fate = dies(1, since);
        world.run_for(100 * SECOND);
        heartbeats(&world, A, 1, since)
    };
    let gaps =
        |times: &[u64]| -> Vec<u64> { times.windows(2).map(|two| two[1] - two[0]).collect() };
    let at_interval = gaps(&run("rfc9260"));
    assert!((4..=8).contains(&at_interval.len()), "{at_interval:?}");
    assert!(
        at_interval
            .iter()
            .all(|gap| (10_500..=22_000).contains(gap)),
        "{at_interval:?}"
    );
    assert!(
        at_interval.last() > at_interval.first(),
        "the RTO backs off"
    );
    assert_eq!(gaps(&run("ns2"))[..5], [1_000, 2_000, 4_000, 8_000, 8_000]);
}

/// Association.Max.Retrans of an idle association whose paths all fail. In the RFCs only HEARTBEATs
/// of one path count, so Path.Max.Retrans errors are not enough. In ns-2.35, HEARTBEATs of all
/// active paths count.
#[test]
fn the_profile_selects_which_errors_count_for_the_association() {
    for (errors, closes) in [("path_in_use", false), ("active_paths", true)] {
        let config = Config::default().with(|it| {
            it.profile = profile(
                "rfc9260",
                &[
                    ("association_errors", errors),
                    ("failed_path_probing", "at_once"),
                ],
            );
            it.heartbeat_interval = Some(2 * SECOND);
            it.rto_max = 2 * SECOND;
            it.path_max_retrans = 100;
            it.association_max_retrans = 5;
        });
        let mut world = two_homes(&config);
        let (a, _) = established(&mut world);
        // Path 0 answers sometimes, path 1 never.
        let mut asked = 0;
        world.fate = Box::new(move |shot| {
            asked += u32::from(shot.from == A && network(shot.path.remote) == 0);
            if network(shot.path.remote) == 0 && asked % 4 == 0 {
                Fate::Deliver
            } else {
                Fate::Drop
            }
        });
        world.run_for(60 * SECOND);
        let reason = world.close_reason(A, a);
        assert_eq!(
            reason == Some(CloseReason::PeerUnreachable),
            closes,
            "{errors}"
        );
    }
}

/// HB.Max.Burst (RFC 9260 §5.4): at most this number of addresses is probed per RTO, until all are
/// verified.
#[test]
fn addresses_are_verified_a_few_at_a_time() {
    for (most, expected) in [("1", vec![0, 1_000, 2_000]), ("2", vec![0, 0, 1_000])] {
        let config = Config::default().with(|it| {
            it.profile = profile("rfc9260", &[("hb_max_burst", most)]);
            it.heartbeat_interval = None;
        });
        let mut world = World::with_configs(with_homes(A, 1, &config), with_homes(Z, 4, &config));
        let a = world.connect();
        let up = world.now + 40 * MILLISECOND;
        world.run_for(10 * SECOND);
        let mut times: Vec<u64> = (1..4)
            .flat_map(|on| heartbeats(&world, A, on, up))
            .collect();
        times.sort_unstable();
        assert_eq!(times, expected, "at most {most}");
        let paths = world.endpoints[A].association(a).expect("known").paths();
        assert!(paths.iter().all(|(_, it)| it.state() == PathState::Active));
    }
}

/// An address that does not answer is probed with a longer timeout each time. It must not delay
/// other addresses: the address that was probed longest ago is next, and waits no longer than its
/// own timeout.
#[test]
fn addresses_that_do_not_answer_keep_no_other_from_being_verified() {
    let config = Config::default().with(|it| it.heartbeat_interval = None);
    let mut world = World::with_configs(with_homes(A, 1, &config), with_homes(Z, 4, &config));
    let dead = |shot: &Shot| shot.path.remote == address(Z, 1) || shot.path.remote == address(Z, 2);
    world.fate = Box::new(move |shot| match dead(shot) {
        true => Fate::Drop,
        false => Fate::Deliver,
    });
    let a = world.connect();
    let up = world.now + 40 * MILLISECOND;
    world.run_for(5 * SECOND);
    assert_eq!(heartbeats(&world, A, 3, up), [2_000]);
    let paths = world.endpoints[A].association(a).expect("known").paths();
    assert_eq!(paths.get(PathId(3)).state(), PathState::Active);
    assert_eq!(paths.get(PathId(1)).state(), PathState::Unconfirmed);
}

/// Only HEARTBEAT and HEARTBEAT ACK are sent to an unverified address (RFC 9260 §5.4). The SACK for
/// data from such an address uses another path.
#[test]
fn an_unverified_address_gets_no_sack_and_no_error() {
    let mut world = two_homes(&Config::default());
    // No packet from A's second address reaches Z, and no packet from Z's second address reaches A.
    world.fate = dies(1, 0);
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let state = world.endpoints[Z]
        .association(z)
        .expect("known")
        .paths()
        .get(PathId(1))
        .state();
    assert_eq!(state, PathState::Unconfirmed);
    world.send(A, a, 0, "hello");
    let data = world.shot(A, "DATA");
    world.run_for(SECOND);
    let tag = header_of(&data).verification_tag;
    let Chunk::Data(mut data) = chunks_of(&data).remove(0) else {
        panic!("DATA")
    };
    data.tsn = data.tsn.next();
    data.ssn.0 += 1;
    let unknown = [0xC3, 0, 0, 4];
    world.forget();
    let path = Path::new(address(Z, 1), address(A, 1));
    world.inject_from(Z, path, packet(A, tag, &[&Chunk::Data(data)]));
    world.inject_from(Z, path, raw_packet(A, tag, &unknown));
    world.run_for(400 * MILLISECOND);
    let answers: Vec<_> = world
        .shots
        .iter()
        .filter(|shot| shot.from == Z && !shot.chunks.contains("HEARTBEAT"))
        .map(|shot| (shot.chunks.as_str(), network(shot.path.remote)))
        .collect();
    assert!(
        answers.iter().any(|(chunks, _)| chunks.contains("SACK")),
        "{answers:?}"
    );
    assert!(
        answers.iter().any(|(chunks, _)| chunks.contains("ERROR")),
        "{answers:?}"
    );
    assert!(answers.iter().all(|(_, on)| *on == 0), "{answers:?}");
}

/// The COOKIE ECHO comes from another address than the INIT. The COOKIE ACK is sent there together
/// with a HEARTBEAT, whose HEARTBEAT ACK verifies the address (RFC 9260 §5.4).
#[test]
fn a_cookie_ack_to_an_unverified_address_shares_its_packet_with_a_heartbeat() {
    let mut world = two_homes(&Config::default());
    let remote = [address(Z, 0), address(Z, 1)];
    let a = world.endpoints[A]
        .connect(world.now, &remote, PORT_Z)
        .expect("no association yet");
    world.fate = dies(0, world.now + 15 * MILLISECOND);
    world.drain(A);
    world.run_for(5 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let acks: Vec<_> = world
        .shots
        .iter()
        .filter(|shot| shot.from == Z && shot.chunks.contains("COOKIE ACK"))
        .map(|shot| (shot.chunks.as_str(), network(shot.path.remote)))
        .collect();
    assert_eq!(acks, [("COOKIE ACK, HEARTBEAT", 1)]);
    let z = world.only_association(Z);
    let state = world.endpoints[Z]
        .association(z)
        .expect("known")
        .paths()
        .get(PathId(1))
        .state();
    assert_eq!(state, PathState::Active);
}
