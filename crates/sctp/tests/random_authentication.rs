//! Random scenarios in which all chunks are authenticated: packets are lost, duplicated, reordered
//! and corrupted, and the keys change. Every message should arrive once and in order.

use crate::common;

use anabranch_sctp::{Authentication, ChunkTypes, CloseReason, Config, SharedKeys};
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::*;
use rand_core::{RngCore, SeedableRng};

fn secret(key: u16) -> Vec<u8> {
    vec![b'k'; usize::from(key)]
}

fn scenario(seed: u64) {
    let mut random = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut keys = SharedKeys::only(0, secret(0));
    for key in 1..4 {
        keys.set(key, secret(key)).expect("room");
    }
    let mut config = || {
        Config::default().with(|it| {
            it.auth_keys = keys.clone();
            it.authentication = Authentication::On;
            it.authenticated_chunks = (random.next_u32() % 4 != 0).then(|| {
                let every = random.next_u32() % 3 + 1;
                let types = (0..=255).filter(|kind| u32::from(*kind) % every == 0);
                ChunkTypes::of(&types.collect::<Vec<u8>>())
            });
            it.interleaving = random.next_u32() % 2 == 0;
            it.path_mtu_discovery = random.next_u32() % 2 == 0;
            it.data_with_cookie_echo = random.next_u32() % 2 == 0;
            it.pack_messages = random.next_u32() % 2 == 0;
            it.mtu = 600 + random.next_u32() as usize % 1_000;
        })
    };
    let (a, z) = (config(), config());
    let mut world = World::with_configs(a, z);
    world.narrate = false;
    let mut dice = rand_pcg::Pcg64Mcg::seed_from_u64(seed ^ 0xA07);
    world.fate = Box::new(move |_| match dice.next_u32() % 100 {
        0..8 => Fate::Drop,
        8..12 => Fate::Duplicate,
        12..16 => Fate::Late(u64::from(dice.next_u32() % 40) * MILLISECOND),
        16..18 => Fate::Corrupt,
        _ => Fate::Deliver,
    });
    let a = world.connect();
    let mut sent = [0_u32; 2];
    let mut heard = [0_u32; 2];
    for turn in 0..60_u16 {
        let ids = [Some(a), world.endpoints[Z].associations().next()];
        for host in [A, Z] {
            let Some(id) = ids[host] else { continue };
            let length = 4 + random.next_u32() as usize % 3_000;
            let mut text = vec![turn as u8; length];
            text[..4].copy_from_slice(&sent[host].to_be_bytes());
            if random.next_u32() % 2 == 0 {
                world.send(host, id, 3, text);
                sent[host] += 1;
            }
            // Both ends have all keys, and each end may use any of them.
            let association = world.endpoints[host].association_mut(id).expect("known");
            let key = random.next_u32() as u16 % 4;
            let _ = association.change_auth_keys(|keys| keys.activate(key));
        }
        world.run_for(u64::from(random.next_u32() % 400) * MILLISECOND);
        hear(&mut world, &mut heard, seed);
    }
    for _ in 0..200 {
        world.run_for(10 * SECOND);
        hear(&mut world, &mut heard, seed);
        if heard == [sent[Z], sent[A]] {
            break;
        }
    }
    assert_eq!(heard, [sent[Z], sent[A]], "seed {seed}");
    world.fate = Box::new(|_| Fate::Deliver);
    world.shutdown(A, a);
    world.run_for(200 * SECOND);
    assert_eq!(
        world.close_reason(A, a),
        Some(CloseReason::Shutdown),
        "seed {seed}"
    );
}

/// Reads all messages and checks their order.
fn hear(world: &mut World, heard: &mut [u32; 2], seed: u64) {
    for host in [A, Z] {
        let ids: Vec<_> = world.endpoints[host].associations().collect();
        for id in ids {
            for message in world.receive_all(host, id) {
                let number = message.payload.into_bytes();
                let number = u32::from_be_bytes(number[..4].try_into().expect("four"));
                assert_eq!(number, heard[host], "seed {seed}, at {}", name(host));
                heard[host] += 1;
            }
        }
    }
}

#[test]
fn messages_arrive_once_whatever_is_authenticated() {
    seeds::each(60, scenario);
}
