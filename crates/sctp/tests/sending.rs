//! Tests that `Endpoint::send` causes the same packets as `Association::send`, although the
//! endpoint does not poll the association if the message cannot change its output.

use crate::common;

use anabranch_sctp::{AssociationId, Config, Profile, SendOptions};
use anabranch_transport::Transport;
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::*;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// More messages are sent if fewer than this number of bytes are queued.
const AHEAD: usize = 6_000;

const MESSAGE: Bytes = Bytes::from_static(&[7; 900]);

/// Sends messages while few bytes are queued. Returns the number of messages that did not change
/// the output.
fn top_up(world: &mut World, id: AssociationId, by_endpoint: bool) -> u32 {
    let mut left_alone = 0;
    while world.endpoints[A]
        .association(id)
        .is_some_and(|it| it.send_buffer().unsent() < AHEAD)
    {
        let endpoint = &mut world.endpoints[A];
        if by_endpoint {
            endpoint
                .send(world.now, id, MESSAGE, &SendOptions::new())
                .expect("known")
                .expect("room");
            left_alone += u32::from(endpoint.poll_ready().is_none());
        } else {
            let association = endpoint.association_mut(id).expect("known");
            let sent = association.send(world.now, MESSAGE, &SendOptions::new());
            sent.expect("room");
        }
    }
    world.drain(A);
    left_alone
}

/// Reads all messages.
fn read(world: &mut World, id: AssociationId) -> usize {
    let Some(association) = world.endpoints[Z].association_mut(id) else {
        return 0;
    };
    let mut bytes = 0;
    while let Some(part) = association.poll_part() {
        bytes += part.payload.len();
    }
    world.drain(Z);
    bytes
}

#[test]
fn packets_do_not_depend_on_how_the_output_is_polled() {
    let mut left_alone = 0;
    for seed in 0..40_u64 {
        let profiles = Profile::NAMES;
        let profile = Profile::by_name(profiles[seed as usize % profiles.len()]).expect("named");
        let name = profile.name;
        let config = Config::new(profile).with(|it| {
            it.receive_buffer = [8_000, 60_000][seed as usize % 2];
        });
        let mut worlds = [0; 2].map(|_| {
            let mut world = World::new(config.clone());
            let mut trouble = Pcg64Mcg::seed_from_u64(seed);
            let (a, z) = world.established();
            world.fate = Box::new(move |_| match trouble.next_u32() % 100 {
                0..5 => Fate::Drop,
                5..8 => Fate::Late(30 * MILLISECOND),
                _ => Fate::Deliver,
            });
            (world, a, z)
        });
        let until = worlds[0].0.now + 20 * SECOND;
        for step in 0..1_500 {
            let mut read_bytes = [0; 2];
            for (at, (world, a, z)) in worlds.iter_mut().enumerate() {
                left_alone += top_up(world, *a, at == 0);
                world.step(until);
                read_bytes[at] = read(world, *z);
            }
            assert_eq!(
                read_bytes[0], read_bytes[1],
                "seed {seed}, step {step}, {name}"
            );
            let stand = worlds.each_ref().map(|(world, ..)| {
                let endpoints = &world.endpoints;
                (world.now, [A, Z].map(|host| endpoints[host].poll_timeout()))
            });
            assert_eq!(stand[0], stand[1], "seed {seed}, step {step}, {name}");
        }
        let packets = worlds.each_ref().map(|(world, ..)| {
            let of = |it: &Shot| (it.at, it.from, it.bytes.clone());
            world.shots.iter().map(of).collect::<Vec<_>>()
        });
        assert!(packets[0].len() > 500, "seed {seed}, {name}");
        assert!(packets[0] == packets[1], "seed {seed}, {name}");
        assert_eq!(
            worlds[0].0.told(A),
            worlds[1].0.told(A),
            "seed {seed}, {name}"
        );
    }
    assert!(left_alone > 1_000, "{left_alone}");
}
