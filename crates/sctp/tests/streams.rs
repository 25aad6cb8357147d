//! Tests of automatic stream allocation in complete associations.

use crate::common;

use std::collections::BTreeMap;

use anabranch_sctp::stream_allocation::{AllocationKind, LossClassifier};
use anabranch_sctp::{AssociationId, Config, Event, Profile, SendError, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Probe, ProbeSet, Trace};
use bytes::Bytes;

use common::{A, Fate, World, Z};

const ANY: SendOptions = SendOptions::new().with_stream(None);

fn message(number: u32, length: usize) -> Bytes {
    let mut payload = vec![0; length];
    payload[..4].copy_from_slice(&number.to_be_bytes());
    Bytes::from(payload)
}

/// Reads all messages and adds their numbers to those of their stream.
fn received(world: &mut World, z: AssociationId, by_stream: &mut BTreeMap<u16, Vec<u32>>) {
    for message in world.receive_all(Z, z) {
        let bytes = message.payload.into_bytes();
        let number = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
        by_stream.entry(message.stream).or_default().push(number);
    }
}

/// A transfer of numbered messages: A sends whenever there is space in its buffer, and Z reads the
/// messages.
struct Bulk {
    world: World,
    a: AssociationId,
    z: AssociationId,
    next: u32,
    by_stream: BTreeMap<u16, Vec<u32>>,
    in_use: Vec<(Nanos, f64)>,
    estimates: usize,
}

impl Bulk {
    fn new(allocation: AllocationKind, profile: Profile, wanted: u16, allowed: u16) -> Self {
        let config = Config::new(profile).with(|it| {
            it.stream_allocation = allocation;
            it.outbound_streams = wanted;
            it.receive_buffer = 10 * 1024;
            it.delayed_sack = false;
        });
        let peer = config.clone().with(|it| it.inbound_streams = allowed);
        let mut world = World::with_configs(config, peer);
        world.narrate = false;
        world.delay = 50 * MILLISECOND;
        let (a, z) = world.established();
        let association = world.endpoints[A].association_mut(a).expect("known");
        *association.trace_mut() = Trace::new(
            ProbeSet::NONE
                .with(Probe::StreamsInUse)
                .with(Probe::RateEstimate),
        );
        Self {
            world,
            a,
            z,
            next: 0,
            by_stream: BTreeMap::new(),
            in_use: Vec::new(),
            estimates: 0,
        }
    }

    fn offer(&mut self, buffered: usize) {
        let association = self.world.endpoints[A]
            .association_mut(self.a)
            .expect("known");
        while association.send_buffer().unsent() < buffered {
            association
                .send(self.world.now, message(self.next, 1400), &ANY)
                .expect("open, with room");
            self.next += 1;
        }
        self.world.drain(A);
    }

    fn tick(&mut self) {
        self.world.run_for(5 * MILLISECOND);
        received(&mut self.world, self.z, &mut self.by_stream);
        let association = self.world.endpoints[A]
            .association_mut(self.a)
            .expect("known");
        for sample in association.trace_mut().drain() {
            match sample.probe {
                Probe::StreamsInUse => self.in_use.push((sample.at, sample.value)),
                _ => self.estimates += 1,
            }
        }
    }

    fn run(&mut self, span: Nanos) {
        let until = self.world.now + span;
        while self.world.now < until {
            self.offer(14_000);
            self.tick();
        }
    }

    fn streams_in_use(&self) -> u16 {
        let association = self.world.endpoints[A].association(self.a).expect("known");
        association.status().streams_in_use
    }

    /// Drops this percentage of the packets of A from now on.
    fn lose(&mut self, percent: u64, seed: u64) {
        let mut state = seed;
        self.world.fate = Box::new(move |shot| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            if shot.from == A && (state >> 33) % 100 < percent {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
    }

    /// Waits for the remaining messages. Asserts that every message arrived once and in the order
    /// of its stream.
    fn check_delivery(&mut self, place: &str) {
        self.lose(0, 1);
        for _ in 0..24_000 {
            if self.by_stream.values().map(Vec::len).sum::<usize>() == self.next as usize {
                break;
            }
            self.tick();
        }
        let mut all: Vec<u32> = Vec::new();
        for (stream, numbers) in &self.by_stream {
            assert!(numbers.is_sorted(), "{place}: order of stream {stream}");
            all.extend(numbers);
        }
        all.sort_unstable();
        assert_eq!(all, (0..self.next).collect::<Vec<_>>(), "{place}");
    }
}

/// A requests six streams, and Z allows four. While the link is bad for twenty seconds, the sender
/// should use up to four streams and report that this is the limit. After five seconds without loss
/// it should use one again. The weights of the classification are large, because this test is about
/// the effects of a classification and not about its accuracy. A window of six segments, in which
/// gaps stop the flow, carries too little data for normal weights.
#[test]
fn a_bad_link_opens_streams_up_to_those_negotiated_and_quiet_closes_them() {
    for (name, profile) in [("rfc9260", Profile::rfc9260()), ("ns2", Profile::ns2())] {
        let judgement = LossClassifier {
            weight_single: 5.0,
            weight_multiple: 5.0,
            ..LossClassifier::default()
        };
        let kind = AllocationKind::AdaptiveStep { judgement };
        let mut bulk = Bulk::new(kind, profile, 6, 4);
        bulk.run(2 * SECOND);
        assert_eq!(bulk.streams_in_use(), 1, "{name}");
        bulk.lose(4, 3);
        bulk.run(20 * SECOND);
        let limit = Event::StreamLimitMet {
            outbound_streams: 4,
        };
        assert!(bulk.world.told(A).contains(&limit), "{name}");
        bulk.lose(0, 1);
        bulk.run(10 * SECOND);
        assert_eq!(bulk.streams_in_use(), 1, "{name}");
        let numbers: Vec<f64> = bulk.in_use.iter().map(|sample| sample.1).collect();
        assert_eq!(numbers.first(), Some(&1.0), "{name}");
        assert_eq!(numbers.last(), Some(&1.0), "{name}");
        assert!(
            numbers.windows(2).all(|pair| pair[0] != pair[1]),
            "{name}: {numbers:?}"
        );
        assert!(numbers.contains(&4.0), "{name}: {numbers:?}");
        assert!(bulk.estimates > 100, "{name}: {}", bulk.estimates);
        assert!(bulk.by_stream.keys().eq(&[0, 1, 2, 3]), "{name}");
        bulk.check_delivery(name);
    }
}

/// For any allocation and any loss rate the sender should use at least one stream and at most the
/// negotiated number, and each stream should keep its order.
#[test]
fn streams_stay_within_bounds_and_in_order() {
    for seed in 1..=12u64 {
        let judgement = LossClassifier::default();
        let kind = match seed % 3 {
            0 => AllocationKind::Fixed(3),
            1 => AllocationKind::Adaptive {
                streams: 4,
                judgement,
            },
            _ => AllocationKind::AdaptiveStep { judgement },
        };
        let allowed = 1 + (seed % 5) as u16;
        let place = format!("seed {seed}, {kind:?}, {allowed} allowed");
        let mut bulk = Bulk::new(kind, Profile::rfc4960(), 8, allowed);
        bulk.lose(2 + seed, seed);
        for _ in 0..400 {
            bulk.offer(14_000);
            bulk.tick();
            assert!((1..=allowed).contains(&bulk.streams_in_use()), "{place}");
        }
        for (_, number) in &bulk.in_use {
            assert!((1.0..=f64::from(allowed)).contains(number), "{place}");
        }
        bulk.check_delivery(&place);
        assert!(
            bulk.by_stream.keys().all(|stream| *stream < allowed),
            "{place}"
        );
    }
}

/// A message without a given stream should get one when its transmission begins. A given stream
/// should not be changed.
#[test]
fn spread_and_chosen_streams_go_together() {
    let mut world = World::with_configs(
        Config::default().with(|it| it.stream_allocation = AllocationKind::Fixed(3)),
        Config::default(),
    );
    let a = world.connect();
    let association = world.endpoints[A].association_mut(a).expect("known");
    assert_eq!(
        association.send(world.now, Bytes::new(), &ANY),
        Err(SendError::Empty)
    );
    for number in 0..7 {
        let sent = association.send(world.now, message(number, 4), &ANY);
        sent.expect("room");
    }
    let sent = association.send(world.now, message(7, 4), &SendOptions::on(9));
    sent.expect("room");
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let mut by_stream = BTreeMap::new();
    received(&mut world, z, &mut by_stream);
    let expected = [
        (0, vec![0, 3, 6]),
        (1, vec![1, 4]),
        (2, vec![2, 5]),
        (9, vec![7]),
    ];
    assert_eq!(by_stream, BTreeMap::from(expected));
}
