//! Transfers over a pipe that loses, duplicates, reorders and corrupts packets. Every message must
//! arrive once and in the order of its stream, or the association must report a failure. Each case
//! prints its seed; `CASE=seed` runs it alone.

use crate::common;

use std::collections::BTreeMap;

use anabranch_sctp::{CloseReason, Config, Event, Profile, SendError, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

struct Offered {
    stream: u16,
    unordered: bool,
    payload: Bytes,
}

fn below(random: &mut Pcg64Mcg, limit: u64) -> u64 {
    random.next_u64() % limit
}

/// Random messages that start with their number.
fn offers(random: &mut Pcg64Mcg, count: u32, largest: u64) -> Vec<Offered> {
    (0..count)
        .map(|number| {
            let most = if below(random, 4) == 0 { largest } else { 600 };
            let len = below(random, most);
            let mut payload = BytesMut::new();
            payload.put_u32(number);
            payload.resize(4 + len as usize, number as u8);
            Offered {
                stream: below(random, 4) as u16,
                unordered: below(random, 8) == 0,
                payload: payload.freeze(),
            }
        })
        .collect()
}

fn number_of(payload: &Bytes) -> u32 {
    u32::from_be_bytes([payload[0], payload[1], payload[2], payload[3]])
}

/// Runs one case, in which all messages of A must arrive at Z.
fn case(seed: u64, profile: &Profile, loss_per_mille: u64) {
    let name = profile.name;
    println!("CASE={seed} profile {name}, loss {loss_per_mille}/1000");
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let config = Config::new(profile.clone()).with(|it| {
        it.delayed_sack = below(&mut random, 2) == 0;
        it.send_buffer = 20_000;
        it.receive_buffer = 8_000 + below(&mut random, 60_000) as u32;
        it.mtu = 600 + below(&mut random, 900) as usize;
        // Even if nearly half of all packets are lost, 60 consecutive losses occur once in a
        // hundred million cases, so a failure would indicate an error in counting.
        it.association_max_retrans = 60;
        it.max_init_retransmits = 60;
        it.rack = seed % 2 == 1;
    });
    let largest = 3_000.min(u64::from(config.receive_buffer) / 3);
    let mut world = World::new(config);
    world.narrate = false;
    let mut trouble = Pcg64Mcg::seed_from_u64(seed ^ 0xFA7E);
    world.fate = Box::new(move |_| match below(&mut trouble, 1_000) {
        roll if roll < loss_per_mille => Fate::Drop,
        roll if roll < loss_per_mille + 20 => Fate::Duplicate,
        roll if roll < loss_per_mille + 60 => Fate::Late(below(&mut trouble, 40) * MILLISECOND),
        roll if roll < loss_per_mille + 70 => Fate::Corrupt,
        _ => Fate::Deliver,
    });
    let offered = offers(&mut random, 150, largest);
    let a = world.connect();
    let mut next = 0;
    let mut got = Vec::new();
    let mut z = None;
    for _ in 0..40_000 {
        next = offer_from(&mut world, a, &offered, next);
        if next == offered.len() && !world.endpoints[A].association(a).unwrap().is_closed() {
            let now = world.now;
            world.endpoints[A]
                .association_mut(a)
                .unwrap()
                .shutdown(now, None)
                .unwrap();
            world.drain(A);
        }
        let until = world.now + 500 * MILLISECOND;
        world.run_until(until);
        z = z.or_else(|| world.endpoints[Z].associations().next());
        if let Some(z) = z {
            got.extend(world.receive_all(Z, z));
        }
        let closed = |host: usize, id| {
            world.endpoints[host]
                .association(id)
                .is_some_and(|it| it.is_closed())
        };
        if closed(A, a) && z.is_none_or(|z| closed(Z, z)) {
            break;
        }
    }
    let got: Vec<_> = got
        .into_iter()
        .map(|message| {
            (
                message.stream,
                message.unordered,
                message.payload.into_bytes(),
            )
        })
        .collect();
    check(&offered[..next], &got);
    let reason = world
        .close_reason(A, a)
        .unwrap_or_else(|| panic!("CASE={seed}: A did not end"));
    assert_eq!(
        world.told(A).last(),
        Some(&Event::Closed(reason.clone())),
        "CASE={seed}: and says so"
    );
    assert_eq!(
        got.len(),
        offered.len(),
        "CASE={seed}: all of it arrived before {reason:?}"
    );
    // T5-shutdown-guard permits 5 x RTO.Max, about eleven transmissions of SHUTDOWN. With this
    // loss, two in a hundred shutdowns fail.
    let in_time = reason == CloseReason::Shutdown;
    let t5 = reason == CloseReason::ShutdownTimeout && loss_per_mille > 200;
    assert!(in_time || t5, "CASE={seed}: {reason:?}");
    if t5 {
        println!("  T5 ended it");
    }
}

fn offer_from(
    world: &mut World,
    a: anabranch_sctp::AssociationId,
    offered: &[Offered],
    mut next: usize,
) -> usize {
    while let Some(Offered {
        stream,
        unordered,
        payload,
    }) = offered.get(next)
    {
        let message = payload.clone();
        let association = world.endpoints[A].association_mut(a).expect("known");
        match association.send(
            world.now,
            message,
            &SendOptions::on(*stream)
                .with_ppid(9)
                .with_unordered(*unordered),
        ) {
            Ok(()) => next += 1,
            Err(SendError::BufferFull | SendError::Closing) => break,
            Err(other) => panic!("{other}"),
        }
    }
    world.drain(A);
    next
}

/// Checks that each message was received at most once, unaltered, and in the order of its stream.
fn check(offered: &[Offered], got: &[(u16, bool, Bytes)]) {
    let mut seen = vec![false; offered.len()];
    let mut last = BTreeMap::new();
    for (stream, unordered, payload) in got {
        let number = number_of(payload);
        let sent = &offered[number as usize];
        assert!(
            !std::mem::replace(&mut seen[number as usize], true),
            "message {number} came twice"
        );
        assert_eq!((sent.stream, sent.unordered), (*stream, *unordered));
        assert_eq!(&sent.payload, payload, "message {number} altered");
        if !unordered && let Some(before) = last.insert(*stream, number) {
            assert!(before < number, "stream {stream}: {number} after {before}");
        }
    }
}

fn cases(loss_per_mille: u64, seeds: std::ops::Range<u64>) {
    let seeds = match seeds::number("CASE") {
        Some(seed) => seed..seed + 1,
        None => seeds,
    };
    for seed in seeds {
        for name in Profile::NAMES {
            case(seed, &Profile::by_name(name).unwrap(), loss_per_mille);
        }
    }
}

#[test]
fn no_loss_but_disorder() {
    cases(0, 0..10);
}

#[test]
fn one_packet_in_fifty_lost() {
    cases(20, 100..110);
}

#[test]
fn one_packet_in_ten_lost() {
    cases(100, 200..210);
}

#[test]
fn nearly_half_of_all_packets_lost() {
    cases(450, 300..312);
}

#[test]
fn a_pipe_that_dies_is_noticed_by_both() {
    let mut world = World::new(Config::default());
    let (a, z) = world.established();
    world.send(A, a, 0, vec![1; 5_000]);
    world.send(Z, z, 0, vec![1; 5_000]);
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(2_000 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
    assert_eq!(world.close_reason(Z, z), Some(CloseReason::PeerUnreachable));
}
