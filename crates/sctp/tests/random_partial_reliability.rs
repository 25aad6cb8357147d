//! Messages with policies over a pipe that loses, duplicates and reorders packets: each message
//! should be delivered once in the order of its stream, or its user should be notified that it was
//! abandoned. Each case prints its seed; `CASE=seed` runs only that case.
//!
//! A message can be both delivered and reported as abandoned only if it was completely sent and not
//! yet acknowledged when it was abandoned (RFC 3758 §3.5 A3, RFC 6458 §6.1.11: sent data may have
//! arrived). If acknowledgments are neither lost nor late, this happens only after an expiry of
//! T3-rtx. It expires for an earlier chunk and marks all data in flight, including recent data (RFC
//! 9260 §6.3.3 E3). Data that is then retransmitted may be considered lost because of reports sent
//! before its arrival (§7.2.4).

use crate::common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use anabranch_sctp::config::{SchedulerKind, StreamValues};
use anabranch_sctp::{CloseReason, Config, Event, Profile, SendOptions};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::Tsn;
use anabranch_wire::chunk::{Chunk, kind};
use anabranch_wire::extension::{Extension, FragmentPosition};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn below(random: &mut Pcg64Mcg, limit: u64) -> u64 {
    random.next_u64() % limit
}

fn number_of(payload: &Bytes) -> u32 {
    u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]])
}

struct Offered {
    stream: u16,
    unordered: bool,
    options: SendOptions,
    payload: Bytes,
}

fn offers(random: &mut Pcg64Mcg, count: u32) -> Vec<Offered> {
    let offer = |number| {
        let most = if below(random, 4) == 0 { 6_000 } else { 500 };
        let mut payload = BytesMut::new();
        payload.put_u32(number);
        payload.resize(4 + below(random, most) as usize, number as u8);
        let options = SendOptions::default();
        let options = match below(random, 5) {
            0 => options,
            1 => options.with_lifetime(Some((1 + below(random, 600)) * MILLISECOND)),
            2 => options.with_max_retransmits(Some(below(random, 3) as u32)),
            3 => options.with_priority(Some(below(random, 4) as u32)),
            _ => options
                .with_lifetime(Some(below(random, 3_000) * MILLISECOND))
                .with_max_retransmits(Some(below(random, 2) as u32)),
        };
        Offered {
            stream: below(random, 4) as u16,
            unordered: below(random, 4) == 0,
            options,
            payload: payload.freeze(),
        }
    };
    (0..count).map(offer).collect()
}

/// Outcome of a message.
#[derive(Default)]
struct Became {
    delivered: u32,
    /// For each notification that the message was abandoned: whether the message had been sent, and
    /// the time.
    given_up: Vec<(bool, Nanos)>,
}

/// First and last TSN of each Gap Ack Block.
type Runs = Vec<(Tsn, Tsn)>;

/// Packets observed in the pipe.
#[derive(Default)]
struct Seen {
    /// TSNs of each message so far, time of its first transmission, and whether all of its chunks
    /// were sent.
    messages: BTreeMap<u32, (Vec<Tsn>, Nanos, bool)>,
    /// Message of each TSN.
    sent: BTreeMap<u32, u32>,
    /// Number of each message, by its stream, unordered flag and message identifier.
    named: BTreeMap<(u16, bool, u32), u32>,
    /// Arrival times and contents of SACKs.
    sacks: Vec<(Nanos, Tsn, Runs)>,
    /// Times at which T3-rtx expired.
    timeouts: Vec<Nanos>,
}

impl Seen {
    fn note(&mut self, shot: &Shot, arrives: Option<Nanos>) {
        for chunk in chunks_of(&shot.bytes) {
            match chunk {
                Chunk::Data(data) => {
                    let number = match self.sent.get(&data.tsn.prev().0) {
                        _ if data.beginning => number_of(&data.user_data),
                        Some(number) => *number,
                        None => continue,
                    };
                    self.note_piece(shot.at, data.tsn, number, data.ending);
                }
                Chunk::Unknown(raw) => {
                    if let Ok(Extension::IData(data)) = Extension::decode(raw) {
                        let name = (data.stream_id, data.unordered, data.mid.0);
                        if let FragmentPosition::First { .. } = data.position {
                            self.named.insert(name, number_of(&data.user_data));
                        }
                        self.note_piece(shot.at, data.tsn, self.named[&name], data.ending);
                    }
                }
                Chunk::Sack(sack) => {
                    let Some(at) = arrives else { continue };
                    let point = sack.cumulative_tsn_ack;
                    let run =
                        |start: u16, end: u16| (point.add(start.into()), point.add(end.into()));
                    let runs = sack.gap_blocks().map(|it| run(it.start, it.end));
                    self.sacks.push((at, point, runs.collect()));
                }
                _ => {}
            }
        }
    }

    fn note_piece(&mut self, at: Nanos, tsn: Tsn, number: u32, ending: bool) {
        if self.sent.insert(tsn.0, number).is_none() {
            let message = self.messages.entry(number);
            let (tsns, _, whole) = message.or_insert((Vec::new(), at, false));
            tsns.push(tsn);
            *whole |= ending;
        }
    }

    /// Whether the last SACK that arrived before `time` acknowledges all of message `number`.
    fn acknowledged(&self, number: u32, time: Nanos) -> bool {
        let before = self.sacks.iter().filter(|(at, ..)| *at < time);
        let (Some((_, point, runs)), Some((tsns, _, true))) = (
            before.max_by_key(|(at, ..)| *at),
            self.messages.get(&number),
        ) else {
            return false;
        };
        let within = |tsn: &Tsn| runs.iter().any(|(from, to)| tsn.ge(*from) && tsn.le(*to));
        tsns.iter().all(|tsn| tsn.le(*point) || within(tsn))
    }

    /// Whether T3-rtx expired between the first transmission of message `number` and `time`.
    fn timed_out(&self, number: u32, time: Nanos) -> bool {
        let sent = self.messages.get(&number).map(|(_, at, _)| *at);
        let expired = |at: &Nanos| sent.is_some_and(|sent| *at >= sent) && *at <= time;
        self.timeouts.iter().any(expired)
    }
}

/// Reads the events about messages that were abandoned at this time. Returns the number of events
/// that were dropped because too many were queued ([`Event::Missed`]).
fn note_given_up(world: &mut World, offered: &[Offered], became: &mut [Became]) -> u64 {
    let now = world.now;
    let mut missed = 0;
    world.events[A].retain(|(_, event)| match event {
        Event::Missed { events } => {
            missed += events;
            false
        }
        Event::MessageAbandoned(message) => {
            let number = number_of(&message.payload) as usize;
            assert_eq!(message.payload, offered[number].payload);
            became[number].given_up.push((message.sent, now));
            false
        }
        _ => true,
    });
    missed
}

/// Runs the case of `seed`. If `deaf` is true, acknowledgments are lost as well. Every second seed
/// enables interleaving, and selects one of all schedulers.
fn case(seed: u64, loss_per_mille: u64, deaf: bool) -> [u64; 2] {
    println!("CASE={seed} loss {loss_per_mille}/1000, acknowledgements lost: {deaf}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let interleaving = seed % 2 == 1;
    let config = Config::new(Profile::rfc9260()).with(|it| {
        it.interleaving = interleaving;
        it.scheduler = if interleaving {
            SchedulerKind::ALL[seed as usize / 2 % SchedulerKind::ALL.len()]
        } else {
            SchedulerKind::RoundRobin
        };
        it.stream_values = Some(StreamValues(vec![1, 2, 3, 3]));
        it.partial_reliability = true;
        it.delayed_sack = below(&mut random, 2) == 0;
        it.send_buffer = 20_000;
        it.receive_buffer = 8_000 + below(&mut random, 60_000) as u32;
        it.mtu = 600 + below(&mut random, 900) as usize;
        it.partial_delivery_point = [None, Some(2_000)][below(&mut random, 2) as usize];
        it.association_max_retrans = 60;
        it.max_init_retransmits = 60;
        it.path_max_retrans = 60;
        it.rto_max = 5 * SECOND;
    });
    let mut world = World::new(config);
    world.narrate = false;
    let mut trouble = Pcg64Mcg::seed_from_u64(seed ^ 0xFA7E);
    let mut up = 0;
    let seen = Rc::new(RefCell::new(Seen::default()));
    let pipe = Rc::clone(&seen);
    let delay = world.delay;
    world.fate = Box::new(move |shot| {
        up += 1;
        // The shutdown may fail after six losses (RFC 9260 §9.2, T5). It is not tested here, so its
        // packets are not dropped.
        let ends = matches!(
            shot.bytes[12],
            kind::SHUTDOWN | kind::SHUTDOWN_ACK | kind::SHUTDOWN_COMPLETE
        );
        let spared = up < 10 || ends || (shot.from == Z && !deaf);
        let fate = match below(&mut trouble, 1_000) {
            _ if spared => Fate::Deliver,
            roll if roll < loss_per_mille => Fate::Drop,
            roll if roll < loss_per_mille + 20 => Fate::Duplicate,
            // The packet is delayed so that less than three packets overtake it. Otherwise the
            // sender would consider it lost.
            roll if deaf && roll < loss_per_mille + 60 => {
                Fate::Late(below(&mut trouble, 40) * MILLISECOND)
            }
            _ => Fate::Deliver,
        };
        let late = match fate {
            Fate::Drop => None,
            Fate::Late(late) => Some(late),
            _ => Some(0),
        };
        pipe.borrow_mut()
            .note(shot, late.map(|late| shot.at + delay + late));
        fate
    });
    let offered = offers(&mut random, 150);
    let (a, z) = world.established();
    let association = world.endpoints[A].association(a).expect("known");
    assert_eq!(association.negotiated().interleaving, interleaving);
    let mut became: Vec<Became> = offered.iter().map(|_| Became::default()).collect();
    let mut order: BTreeMap<u16, u32> = BTreeMap::new();
    let (mut next, mut missed) = (0, 0);
    for _ in 0..40_000 {
        let now = world.now;
        while let Some(offer) = offered.get(next) {
            let association = world.endpoints[A].association_mut(a).expect("known");
            let options = offer.options.with_ppid(1).with_unordered(offer.unordered);
            let sent = association.send(
                now,
                offer.payload.clone(),
                &options.with_stream(Some(offer.stream)),
            );
            world.hear(A);
            if sent.is_err() {
                break;
            }
            next += 1;
        }
        let association = world.endpoints[A].association_mut(a).expect("known");
        if next == offered.len() && !association.is_closed() {
            association.shutdown(now, None).expect("open");
        }
        world.drain(A);
        missed += note_given_up(&mut world, &offered, &mut became);
        let until = world.now + 20 * MILLISECOND;
        let timeouts = |world: &World| {
            let association = world.endpoints[A].association(a).expect("known");
            association.stats().sender.timeouts
        };
        let mut before = timeouts(&world);
        while world.step(until) {
            missed += note_given_up(&mut world, &offered, &mut became);
            if timeouts(&world) > before {
                before = timeouts(&world);
                seen.borrow_mut().timeouts.push(world.now);
            }
        }
        world.run_until(until);
        for message in world.receive_all(Z, z) {
            let (stream, unordered) = (message.stream, message.unordered);
            let payload = message.payload.into_bytes();
            let number = number_of(&payload);
            let offer = &offered[number as usize];
            assert_eq!((stream, unordered), (offer.stream, offer.unordered));
            assert!(
                payload == offer.payload,
                "CASE={seed}: message {number} is whole"
            );
            became[number as usize].delivered += 1;
            if !unordered {
                let last = order.insert(stream, number);
                assert!(last.is_none_or(|last| last < number), "CASE={seed}: order");
            }
        }
        let closed = |host: usize, id| {
            world.endpoints[host]
                .association(id)
                .is_some_and(|it| it.is_closed())
        };
        if closed(A, a) && closed(Z, z) {
            break;
        }
    }
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::Shutdown),
        "CASE={seed}"
    );
    let seen = seen.borrow();
    let mut silent = 0;
    for (number, became) in became.iter().enumerate() {
        let told = became.given_up.len() as u32;
        assert!(became.delivered <= 1 && told <= 1, "CASE={seed}: {number}");
        silent += u64::from(became.delivered + told == 0);
        assert!(silent <= missed, "CASE={seed}: {number} is gone in silence");
        let reliable = offered[number].options == SendOptions::default();
        assert!(!reliable || became.delivered == 1, "CASE={seed}: {number}");
        let Some((sent, at)) = became.given_up.first().copied() else {
            continue;
        };
        let acknowledged = seen.acknowledged(number as u32, at);
        assert!(!acknowledged, "CASE={seed}: {number} had been acknowledged");
        if became.delivered == 1 {
            assert!(sent, "CASE={seed}: {number} was delivered, not sent");
            let explained = deaf || seen.timed_out(number as u32, at);
            assert!(explained, "CASE={seed}: {number} is both, without T3-rtx");
        }
    }
    let association = world.endpoints[A].association(a).expect("known");
    let told = |sent| {
        let given_up = became.iter().flat_map(|it| &it.given_up);
        given_up.filter(|(it, _)| *it == sent).count() as u64
    };
    let told = [told(false), told(true)];
    let counted = association.stats().sender;
    let counted = [counted.abandoned_unsent, counted.abandoned_sent];
    assert_eq!(counted[0] + counted[1], told[0] + told[1] + missed);
    assert!(missed > 0 || counted == told, "{counted:?} {told:?}");
    told
}

#[test]
fn every_message_is_delivered_once_or_abandoned() {
    for deaf in [false, true] {
        let loss = |seed: u64| [20, 100, 250][seed as usize % 3];
        let each = seeds::each(120, |seed| case(seed, loss(seed), deaf));
        let told = [0, 1].map(|sent| each.iter().map(|it| it[sent]).sum::<u64>());
        assert!(
            each.len() < 100 || told.iter().all(|it| *it > 100),
            "scenarios in which nothing is given up say nothing: {told:?}"
        );
    }
}
