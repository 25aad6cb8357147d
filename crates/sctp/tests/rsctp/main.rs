//! Tests of RSCTP between two hosts with two addresses each: negotiation, measurement, validation
//! of reports, and changes of the primary path.

#[path = "../common/mod.rs"]
mod common;
mod hostile;

use anabranch_congestion::estimator::PathEstimator;
use anabranch_congestion::{Protocol, registry};
use anabranch_sctp::{
    Association, AssociationId, AssociationState, Config, DiscardReason, Event, PathId, PathState,
    Profile, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Path, Probe, ProbeSet, Sample, Trace};
use anabranch_wire::chunk::{Chunk, HeartbeatAck};
use anabranch_wire::parameter::Parameter;
use anabranch_wire::rsctp::{HeartbeatAckFields, HeartbeatFields, NO_LOSS_RATE, WHOLE};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use std::net::IpAddr;

fn config(change: impl Fn(&mut Profile)) -> Config {
    let mut config = Config::new(Profile::rfc9260());
    config.profile.rsctp = true;
    config.congestion = registry::by_name(Protocol::Sctp, "rsctp").expect("a listed algorithm");
    change(&mut config.profile);
    config
}

fn homes(host: usize, config: Config) -> Config {
    config.with(|it| it.addresses = vec![address(host, 0), address(host, 1)])
}

fn world(config: Config) -> World {
    World::with_configs(homes(A, config.clone()), homes(Z, config))
}

fn plain() -> Config {
    Config::default()
}

fn of(world: &World, host: usize, id: AssociationId) -> &Association {
    world.endpoints[host].association(id).expect("known")
}

fn network(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 1,
    }
}

/// Simulates two links with queues, one per network. `rates` are their rates in bytes per second in
/// each direction. A packet with DATA on network 0 is dropped if `lost` returns true for its
/// number.
fn links(
    rates: [u64; 2],
    mut lost: impl FnMut(u64, &Shot) -> bool + 'static,
) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut free_at = [[0; 2]; 2];
    let mut data: u64 = 0;
    Box::new(move |shot| {
        let on = usize::from(network(shot.path.remote));
        let wire = (shot.bytes.len() as u64 + 20) * SECOND / rates[on];
        let free = &mut free_at[shot.from][on];
        let start = shot.at.max(*free);
        if start - shot.at > 400 * MILLISECOND {
            return Fate::Drop;
        }
        *free = start + wire;
        if on == 0 && shot.chunks.contains("DATA") {
            data += 1;
            if lost(data, shot) {
                return Fate::Drop;
            }
        }
        Fate::Late(start + wire - shot.at)
    })
}

/// Sends numbered messages from A to Z as fast as possible until the time `until`.
fn pump(world: &mut World, a: AssociationId, next: &mut u32, until: Nanos) {
    while world.now < until {
        let association = world.endpoints[A].association_mut(a).expect("known");
        loop {
            let mut payload = BytesMut::new();
            payload.put_u32(*next);
            payload.resize(1_400, 1);
            let message = payload.freeze();
            if association
                .send(world.now, message, &SendOptions::new())
                .is_err()
            {
                break;
            }
            *next += 1;
        }
        world.drain(A);
        world.run_for(20 * MILLISECOND);
    }
}

/// Waits until all data has arrived. Then asserts that Z has read each of the messages `0..count`
/// once and in order.
fn all_arrived(world: &mut World, z: AssociationId, got: &mut Vec<u32>, count: u32) {
    for _ in 0..3_000 {
        take(world, z, got);
        if got.len() >= count as usize {
            break;
        }
        world.run_for(100 * MILLISECOND);
    }
    assert_eq!(*got, (0..count).collect::<Vec<_>>(), "each once, in order");
}

fn take(world: &mut World, z: AssociationId, got: &mut Vec<u32>) {
    got.extend(world.receive_all(Z, z).into_iter().map(|message| {
        let bytes: Bytes = message.payload.into_bytes();
        u32::from_be_bytes(bytes[..4].try_into().expect("numbered"))
    }));
}

/// Transfers data for this number of seconds, and reads the messages at Z.
fn transfer(
    world: &mut World,
    (a, z): (AssociationId, AssociationId),
    next: &mut u32,
    got: &mut Vec<u32>,
    seconds: u64,
) {
    let until = world.now + seconds * SECOND;
    while world.now < until {
        let soon = until.min(world.now + 200 * MILLISECOND);
        pump(world, a, next, soon);
        take(world, z, got);
    }
}

fn record(world: &mut World, a: AssociationId, probes: &[Probe]) {
    let set = probes
        .iter()
        .fold(ProbeSet::NONE, |set, &probe| set.with(probe));
    let association = world.endpoints[A].association_mut(a).expect("known");
    *association.trace_mut() = Trace::new(set);
}

fn recorded(world: &mut World, a: AssociationId, probe: Probe) -> Vec<Sample> {
    let association = world.endpoints[A].association_mut(a).expect("known");
    association
        .trace_mut()
        .drain()
        .filter(|sample| sample.probe == probe)
        .collect()
}

fn heartbeats_of(world: &World, from: usize, on: u8) -> Vec<(Nanos, Bytes)> {
    world
        .shots
        .iter()
        .filter(|shot| shot.from == from && network(shot.path.remote) == on)
        .filter_map(|shot| match chunks_of(&shot.bytes).remove(0) {
            Chunk::Heartbeat(heartbeat) => Some((shot.at, heartbeat.info)),
            _ => None,
        })
        .collect()
}

#[test]
fn it_takes_two_and_falls_back_in_silence() {
    let offers = |bytes: &Bytes| match chunks_of(bytes).remove(0) {
        Chunk::Init(init) => init,
        Chunk::InitAck(ack) => ack.0,
        other => panic!("{other:?}"),
    };
    let has = |init: &anabranch_wire::chunk::Init, wanted: fn(&Parameter) -> bool| {
        init.parameters
            .iter()
            .any(|parameter| wanted(&parameter.expect("sound")))
    };
    let rsctp = |parameter: &Parameter| matches!(parameter, Parameter::Rsctp);
    let report = |parameter: &Parameter| matches!(parameter, Parameter::UnrecognizedParameter(_));
    for (caller, called) in [(true, true), (true, false), (false, true), (false, false)] {
        let make = |speaks: bool| if speaks { config(|_| {}) } else { plain() };
        let mut world = World::with_configs(homes(A, make(caller)), homes(Z, make(called)));
        let a = world.connect();
        world.run_for(SECOND);
        let z = world.only_association(Z);
        let both = caller && called;
        assert_eq!(of(&world, A, a).negotiated().rsctp, both);
        assert_eq!(of(&world, Z, z).negotiated().rsctp, both);
        let (init, ack) = (
            offers(&world.shot(A, "INIT")),
            offers(&world.shot(Z, "INIT ACK")),
        );
        assert_eq!((has(&init, rsctp), has(&ack, rsctp)), (caller, both));
        assert!(!has(&ack, report));
        // Data should be transferred, and HEARTBEATs should have the format of the RFC unless both
        // ends support RSCTP.
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 3);
        all_arrived(&mut world, z, &mut got, next);
        let measured = heartbeats_of(&world, A, 0);
        assert_eq!(measured.is_empty(), !both, "an idle path alone is probed");
        for host in [A, Z] {
            assert!(!world.shots.iter().any(|shot| shot.chunks == "ERROR"));
            for reason in [
                DiscardReason::HeartbeatNonce,
                DiscardReason::HeartbeatReport,
                DiscardReason::BadInit,
                DiscardReason::WrongState,
            ] {
                assert_eq!(world.endpoints[host].discards().of(reason), 0, "{reason:?}");
            }
        }
    }
}

/// Checks the fields of Figs. 3-4 and 3-5 on the wire.
#[test]
fn heartbeats_carry_time_and_count_and_answers_carry_the_estimate() {
    let mut world = world(config(|_| {}));
    let ids = world.established();
    world.fate = links([125_000, 125_000], |_, _| false);
    let began = world.now;
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, ids, &mut next, &mut got, 10);
    let primary = heartbeats_of(&world, A, 0);
    assert_eq!(primary.len(), 11, "one a second");
    for (index, (at, info)) in primary.iter().enumerate() {
        assert_eq!(*at, began + index as u64 * SECOND);
        let fields = HeartbeatFields::decode(info.clone()).expect("both fields");
        assert_eq!(u64::from(fields.current_time), at / 1_000);
        let sent = world
            .shots
            .iter()
            .filter(|shot| shot.from == A && shot.at <= *at && shot.path.remote == address(Z, 0))
            .take_while(|shot| chunks_of(&shot.bytes)[0] != heartbeat(info))
            .flat_map(|shot| chunks_of(&shot.bytes))
            .filter(|chunk| matches!(chunk, Chunk::Data(_)))
            .count();
        assert_eq!(fields.chunk_count as usize, sent);
        assert_eq!(fields.own.len(), 9, "path and nonce");
    }
    let secondary = heartbeats_of(&world, A, 1);
    let times: Vec<_> = secondary.iter().map(|(at, _)| at - began).collect();
    assert_eq!(
        times,
        [0, 0, 4 * SECOND, 4 * SECOND, 8 * SECOND, 8 * SECOND],
        "pairs"
    );
    // Each HEARTBEAT ACK should contain the info of the HEARTBEAT that it answers.
    let answers: Vec<_> = world
        .shots
        .iter()
        .filter(|shot| shot.from == Z)
        .flat_map(|shot| chunks_of(&shot.bytes))
        .filter_map(|chunk| match chunk {
            Chunk::HeartbeatAck(ack) => HeartbeatAckFields::decode(ack.info),
            _ => None,
        })
        .collect();
    assert!(answers.len() >= 15);
    for answer in &answers {
        let asked = primary.iter().chain(&secondary);
        assert!(asked.into_iter().any(|(_, info)| *info == answer.echoed));
    }
    assert_eq!(answers[0].available_bandwidth, 0, "nothing to measure from");
    assert_eq!(answers[0].chunk_loss_rate, NO_LOSS_RATE);
    // An end that sends no data should not measure.
    assert!(heartbeats_of(&world, Z, 0).is_empty());
}

fn heartbeat(info: &Bytes) -> Chunk {
    Chunk::Heartbeat(anabranch_wire::chunk::Heartbeat { info: info.clone() })
}

/// Data uses the full rate of a link of 125,000 bytes per second. The estimate should be this rate
/// without packet headers, and the loss rate should be the configured one.
#[test]
fn the_estimate_of_a_full_path_is_its_rate() {
    let mut world = world(config(|profile| profile.rsctp_path_switch = false));
    let (a, z) = world.established();
    record(
        &mut world,
        a,
        &[Probe::AvailableBandwidth, Probe::ChunkLossRate],
    );
    world.narrate = true;
    world.fate = links([125_000, 50_000], |_, _| false);
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, (a, z), &mut next, &mut got, 12);
    let samples = recorded(&mut world, a, Probe::AvailableBandwidth);
    let primary: Vec<_> = samples.iter().filter(|s| s.index == 0).collect();
    assert!(primary.len() >= 10);
    // A packet has 1416 bytes of DATA chunk and 32 bytes of headers. DATA chunks are therefore 97.8
    // % of the bytes.
    for sample in &primary[3..] {
        let share = sample.value / (8.0 * 125_000.0);
        assert!((0.95..0.985).contains(&share), "{share} at {}", sample.at);
    }
    let secondary: Vec<_> = samples.iter().filter(|s| s.index == 1).collect();
    assert_eq!(secondary.len(), 3);
    for sample in secondary {
        let share = sample.value / (8.0 * 50_000.0);
        assert!((0.999..1.001).contains(&share), "{share}");
    }
    // The cwnd of the secondary path should be the estimate multiplied by the RTT, if that exceeds
    // the initial cwnd.
    let paths = of(&world, A, a).paths();
    let entry = paths.get(PathId(1));
    let srtt = entry.rto().srtt().expect("measured") as f64 / SECOND as f64;
    let reported = entry.receiver().expect("reported");
    let expected = (reported.rate().expect("measured") * srtt).max(4_404.0);
    assert_eq!(entry.cwnd(), expected as u64);
    all_arrived(&mut world, z, &mut got, next);
}

#[test]
fn the_chunk_loss_rate_is_what_was_lost() {
    let mut world = world(config(|profile| profile.rsctp_path_switch = false));
    let (a, z) = world.established();
    record(&mut world, a, &[Probe::ChunkLossRate]);
    // One of 25 packets is lost. Each packet has one chunk.
    world.fate = links([125_000, 125_000], |number, _| number % 25 == 0);
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, (a, z), &mut next, &mut got, 30);
    let samples = recorded(&mut world, a, Probe::ChunkLossRate);
    assert!(samples.len() >= 20);
    let mean = samples.iter().map(|s| s.value).sum::<f64>() / samples.len() as f64;
    assert!((0.03..0.05).contains(&mean), "{mean}");
    all_arrived(&mut world, z, &mut got, next);
}

/// If the loss rate exceeds MPLR, the primary path should change at the next loss. New data should
/// use the other path within one round trip, and every message should arrive once.
#[test]
fn the_primary_changes_once_it_loses_too_much() {
    for policy in ["same_path", "alternate_path", "alternate_after_timeout"] {
        let mut world = world(config(|profile| {
            profile
                .set("retransmission_path", policy)
                .expect("a policy");
        }));
        let (a, z) = world.established();
        record(
            &mut world,
            a,
            &[Probe::ChunkLossRate, Probe::ActivePath, Probe::Sent],
        );
        let bad_from = world.now + 8 * SECOND;
        world.fate = links([125_000, 125_000], move |number, shot| {
            shot.at > bad_from && number % 9 == 0
        });
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 20);
        let association = world.endpoints[A].association_mut(a).expect("known");
        let samples: Vec<_> = association.trace_mut().drain().collect();
        let of_probe = |probe| samples.iter().filter(move |s| s.probe == probe);
        let changes: Vec<_> = of_probe(Probe::ActivePath).collect();
        assert_eq!(changes.len(), 1, "{policy}: once, and for good");
        assert_eq!(changes[0].value, 1.0);
        let at = changes[0].at;
        // The path should change after a report of the loss rate, and at the first loss after that
        // report.
        let told = of_probe(Probe::ChunkLossRate)
            .find(|sample| sample.value > 0.05)
            .expect("reported");
        assert!(told.at >= bad_from && told.at <= at, "{policy}");
        assert!(at - told.at < SECOND, "{policy}: {} ns later", at - told.at);
        // New data should use the other path.
        let first_new = of_probe(Probe::Sent).find(|s| s.at >= at).expect("goes on");
        let srtt = association
            .paths()
            .get(PathId(0))
            .rto()
            .srtt()
            .expect("measured");
        assert_eq!(first_new.index, 1, "{policy}");
        assert!(first_new.at - at <= srtt, "{policy}");
        let told = world.told(A);
        let changed = Event::PrimaryChanged {
            path: PathId(1),
            address: address(Z, 1),
        };
        assert!(told.contains(&changed), "{told:?}");
        assert_eq!(of(&world, A, a).stats().control.primary_changes, 1);
        all_arrived(&mut world, z, &mut got, next);
        let duplicates = of(&world, Z, z).stats().receiver;
        assert_eq!(duplicates.messages, u64::from(next), "{policy}");
    }
}

/// The primary path should not change if the switch is off, or if the loss rate is below MPLR.
#[test]
fn the_primary_stays_where_it_should() {
    for (every, switch) in [(30, true), (9, false)] {
        let mut world = world(config(|profile| profile.rsctp_path_switch = switch));
        let (a, z) = world.established();
        world.fate = links([125_000, 125_000], move |number, _| number % every == 0);
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 15);
        assert_eq!(of(&world, A, a).paths().primary(), PathId(0));
        all_arrived(&mut world, z, &mut got, next);
    }
}

/// HEARTBEATs that only measure should not count as errors of a path that carries data, because
/// T3-rtx monitors such a path.
#[test]
fn lost_heartbeats_of_a_busy_path_are_no_failure() {
    for loss in ["ignored", "judged"] {
        let mut world = world(config(|profile| {
            profile.set("rsctp_heartbeat_loss", loss).expect("a value");
        }));
        let (a, z) = world.established();
        let mut link = links([125_000, 125_000], |_, _| false);
        let from = world.now + 4 * SECOND;
        world.fate = Box::new(move |shot| {
            if shot.at > from && shot.chunks == "HEARTBEAT" {
                return Fate::Drop;
            }
            link(shot)
        });
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 20);
        let entry = of(&world, A, a).paths().get(PathId(0));
        assert_eq!(entry.error_count(), 0);
        assert_eq!(entry.state(), PathState::Active);
        assert_eq!(world.state(A, a), AssociationState::Established);
        all_arrived(&mut world, z, &mut got, next);
    }
}

/// RSCTP should be negotiated again after a restart. It should not be used if the restarted peer
/// does not support it.
#[test]
fn a_restarted_peer_is_asked_again() {
    for speaks in [true, false] {
        let mut world = world(config(|_| {}));
        let (a, z) = world.established();
        world.fate = links([125_000, 125_000], |_, _| false);
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 3);
        // A restarts without its earlier state.
        let again = homes(A, if speaks { config(|_| {}) } else { plain() });
        world.endpoints[A] =
            anabranch_sctp::Endpoint::new(again, PORT_A, [9; 32]).expect("settings");
        let a = world.connect();
        world.run_for(2 * SECOND);
        assert_eq!(world.state(A, a), AssociationState::Established);
        assert_eq!(of(&world, A, a).negotiated().rsctp, speaks);
        assert_eq!(of(&world, Z, z).negotiated().rsctp, speaks);
        let restarted = |event: &Event| matches!(event, Event::Restarted { .. });
        assert!(world.told(Z).iter().any(restarted));
        world.receive_all(Z, z);
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 5);
        all_arrived(&mut world, z, &mut got, next);
    }
}

/// Both ends connect at the same time. There should be one association, and both ends should use
/// RSCTP.
#[test]
fn a_collision_agrees_on_it() {
    let mut world = world(config(|_| {}));
    world.endpoints[A].listen(true);
    let a = world.connect();
    let z = world.endpoints[Z]
        .connect(world.now, &[address(A, 0)], PORT_A)
        .expect("no association yet");
    world.drain(Z);
    world.run_for(2 * SECOND);
    for (host, id) in [(A, a), (Z, z)] {
        assert_eq!(world.state(host, id), AssociationState::Established);
        assert!(of(&world, host, id).negotiated().rsctp);
        assert!(of(&world, host, id).negotiated().names().contains(&"rsctp"));
    }
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, (a, z), &mut next, &mut got, 3);
    all_arrived(&mut world, z, &mut got, next);
}

/// Before a loss changes cwnd, the sender should report the cause of the loss. cwnd should then
/// decrease accordingly: by half after congestion, and by an amount that depends on its square root
/// after a wireless loss.
#[test]
fn every_loss_reports_its_verdict_before_the_window_moves() {
    let mut seen = [0; 3];
    // A second loss follows soon after the first one, while A sends less than was measured before.
    for (rate, next_loss) in [(125_000, 40), (1_250_000, 60)] {
        let mut world = world(config(|profile| profile.rsctp_path_switch = false));
        let (a, z) = world.established();
        let probes = [
            Probe::LossVerdict,
            Probe::Cwnd,
            Probe::FastRetransmit,
            Probe::Timeout,
        ];
        record(&mut world, a, &probes);
        world.fate = links([rate, rate], move |number, _| {
            number % 300 == 0 || number % 300 == next_loss
        });
        let (mut next, mut got) = (0, Vec::new());
        transfer(&mut world, (a, z), &mut next, &mut got, 20);
        let association = world.endpoints[A].association_mut(a).expect("known");
        let samples: Vec<Sample> = association.trace_mut().drain().collect();
        let mut cwnd = 4_404.0;
        for (at, sample) in samples.iter().enumerate() {
            match sample.probe {
                Probe::Cwnd => cwnd = sample.value,
                Probe::LossVerdict => {
                    seen[sample.value as usize] += 1;
                    let moved = samples[at + 1..]
                        .first()
                        .filter(|it| it.probe == Probe::Cwnd);
                    let after = moved.map_or(cwnd, |it| it.value);
                    let by_root = (cwnd / 1_468.0).sqrt() * 0.2 * 1_468.0;
                    let fell = cwnd - after;
                    match sample.value as u8 {
                        2 => assert!(fell <= by_root + 1.0, "{cwnd} to {after}"),
                        _ => assert!(
                            after <= (cwnd / 2.0).max(4.0 * 1_468.0),
                            "{cwnd} to {after}"
                        ),
                    }
                }
                _ => {}
            }
        }
        let losses = |probe| samples.iter().filter(|it| it.probe == probe).count();
        let verdicts = losses(Probe::LossVerdict);
        assert!(verdicts > 3);
        assert!(verdicts <= losses(Probe::FastRetransmit) + losses(Probe::Timeout));
        all_arrived(&mut world, z, &mut got, next);
    }
    assert!(seen[1] > 0 && seen[2] > 0, "{seen:?}");
}

/// Plain SCTP should not classify losses.
#[test]
fn without_rsctp_no_loss_has_a_verdict() {
    let mut world = world(Config::default());
    let (a, z) = world.established();
    record(&mut world, a, &[Probe::LossVerdict]);
    world.fate = links([125_000, 125_000], |number, _| number % 25 == 0);
    let (mut next, mut got) = (0, Vec::new());
    transfer(&mut world, (a, z), &mut next, &mut got, 5);
    assert_eq!(recorded(&mut world, a, Probe::LossVerdict).len(), 0);
    all_arrived(&mut world, z, &mut got, next);
}
