//! Messages with policies over a pipe that loses, duplicates and reorders: each is delivered once, in the order of its stream, or
//! its user is told that it was given up; never neither. Both only where all of it was sent, and it was given up before its
//! acknowledgement came: rarely, where acknowledgements are not lost. Each case prints its seed; `CASE=seed` runs it alone.

mod common;

use std::collections::BTreeMap;

use anabranch_sctp::{CloseReason, Config, Event, Message, Profile, SendOptions};
use anabranch_transport::time::MILLISECOND;
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
        let mut options = SendOptions::default();
        match below(random, 5) {
            0 => {}
            1 => options.lifetime = Some((1 + below(random, 600)) * MILLISECOND),
            2 => options.max_retransmits = Some(below(random, 3) as u32),
            3 => options.priority = Some(below(random, 4) as u32),
            _ => {
                options.lifetime = Some(below(random, 3_000) * MILLISECOND);
                options.max_retransmits = Some(below(random, 2) as u32);
            }
        }
        Offered {
            stream: below(random, 4) as u16,
            unordered: below(random, 4) == 0,
            options,
            payload: payload.freeze(),
        }
    };
    (0..count).map(offer).collect()
}

/// What became of a message.
#[derive(Default)]
struct Became {
    delivered: u32,
    /// How often its user was told, and whether it had been sent.
    given_up: Vec<bool>,
}

/// `deaf`: acknowledgements are lost, too.
fn case(seed: u64, loss_per_mille: u64, deaf: bool) -> [u64; 2] {
    println!("CASE={seed} loss {loss_per_mille}/1000, acknowledgements lost: {deaf}");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let config = Config {
        partial_reliability: true,
        delayed_sack: below(&mut random, 2) == 0,
        send_buffer: 20_000,
        receive_buffer: 8_000 + below(&mut random, 60_000) as u32,
        mtu: 600 + below(&mut random, 900) as usize,
        partial_delivery_point: [None, Some(2_000)][below(&mut random, 2) as usize],
        association_max_retrans: 60,
        max_init_retransmits: 60,
        path_max_retrans: 60,
        ..Config::new(Profile::rfc9260())
    };
    let mut world = World::new(config);
    world.narrate = false;
    let mut trouble = Pcg64Mcg::seed_from_u64(seed ^ 0xFA7E);
    let mut up = 0;
    world.fate = Box::new(move |shot| {
        up += 1;
        let spared = up < 10 || (shot.from == Z && !deaf);
        match below(&mut trouble, 1_000) {
            _ if spared => Fate::Deliver,
            roll if roll < loss_per_mille => Fate::Drop,
            roll if roll < loss_per_mille + 20 => Fate::Duplicate,
            // Reordered by less than three packets, lest it is taken for lost.
            roll if deaf && roll < loss_per_mille + 60 => {
                Fate::Late(below(&mut trouble, 40) * MILLISECOND)
            }
            _ => Fate::Deliver,
        }
    });
    let offered = offers(&mut random, 150);
    let (a, z) = world.established();
    let mut became: Vec<Became> = offered.iter().map(|_| Became::default()).collect();
    let mut order: BTreeMap<u16, u32> = BTreeMap::new();
    let mut next = 0;
    for _ in 0..40_000 {
        let now = world.now;
        let association = world.endpoints[A].association_mut(a).expect("known");
        while let Some(offer) = offered.get(next) {
            let message = Message {
                ppid: 1,
                unordered: offer.unordered,
                payload: offer.payload.clone(),
            };
            if association
                .send_with(now, Some(offer.stream), message, &offer.options)
                .is_err()
            {
                break;
            }
            next += 1;
        }
        if next == offered.len() && !association.is_closed() {
            association.shutdown(now).expect("open");
        }
        world.drain(A);
        let until = world.now + 20 * MILLISECOND;
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
    for (_, event) in &world.events[A] {
        if let Event::MessageAbandoned(message) = event {
            let number = number_of(&message.payload);
            assert_eq!(message.payload, offered[number as usize].payload);
            became[number as usize].given_up.push(message.sent);
        }
    }
    for (number, became) in became.iter().enumerate() {
        let told = became.given_up.len() as u32;
        assert!(became.delivered <= 1 && told <= 1, "CASE={seed}: {number}");
        assert!(
            became.delivered + told >= 1,
            "CASE={seed}: {number} is gone in silence"
        );
        let reliable = offered[number].options == SendOptions::default();
        assert!(!reliable || became.delivered == 1, "CASE={seed}: {number}");
        // What was in flight when it was given up may have arrived.
        let may_be_both = became.given_up == [true];
        assert!(
            may_be_both || became.delivered + told == 1,
            "CASE={seed}: {number} is both"
        );
    }
    let association = world.endpoints[A].association(a).expect("known");
    let both = became
        .iter()
        .filter(|it| it.delivered + it.given_up.len() as u32 == 2);
    assert!(
        deaf || both.count() <= 1,
        "CASE={seed}: T3-rtx alone errs so"
    );
    let told = |sent| became.iter().filter(|it| it.given_up == [sent]).count() as u64;
    let told = [told(false), told(true)];
    let counted = association.stats().sender;
    assert_eq!([counted.abandoned_unsent, counted.abandoned_sent], told);
    told
}

#[test]
fn every_message_is_delivered_once_or_given_up() {
    if let Ok(seed) = std::env::var("CASE") {
        let seed = seed.parse().expect("a number");
        for deaf in [false, true] {
            case(seed, 100, deaf);
        }
        return;
    }
    for deaf in [false, true] {
        let mut all = [0, 0];
        for seed in 0..120 {
            let [unsent, sent] = case(seed, [20, 100, 250][seed as usize % 3], deaf);
            all = [all[0] + unsent, all[1] + sent];
        }
        assert!(
            all[0] > 100 && all[1] > 100,
            "a play in which nothing is given up says nothing: {all:?}"
        );
    }
}
