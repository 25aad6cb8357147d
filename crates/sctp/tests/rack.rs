//! Tests of RACK-TLP between two endpoints: time that a lost tail and a lost retransmission cost.
//! The pipe has a delay of 50 ms in each direction.

use crate::common;

use anabranch_sctp::{Config, Profile};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::Chunk;
use common::*;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Configuration without delayed SACKs, because the delay would be added to the recovery of a lost
/// tail of one packet.
fn config(rack: bool) -> Config {
    Config::new(Profile::default()).with(|it| {
        it.rack = rack;
        it.delayed_sack = false;
    })
}

/// Offsets of the DATA chunks in a packet from the first TSN. `first` is set to the first TSN when
/// it is seen.
fn places(shot: &Shot, first: &mut Option<u32>) -> Vec<u32> {
    let tsns = chunks_of(&shot.bytes)
        .into_iter()
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.0),
            _ => None,
        });
    tsns.map(|tsn| tsn.wrapping_sub(*first.get_or_insert(tsn)))
        .collect()
}

/// Duration of a transfer of 30 messages of 1400 bytes, and the number of timeouts of the sender.
/// The message number `lost` is lost `times` times.
fn transfer(rack: bool, lost: u32, times: u32) -> (Nanos, u64) {
    let mut world = World::new(config(rack));
    world.delay = 50 * MILLISECOND;
    let (a, z) = world.established();
    // Sends data so that the round-trip time is measured and cwnd becomes large.
    (0..30).for_each(|_| world.send(A, a, 0, vec![0; 1400]));
    world.run_for(5 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 30);
    let (mut first, mut left) = (None, times);
    world.fate = Box::new(move |shot| {
        let hit = shot.from == A && places(shot, &mut first).contains(&lost) && left > 0;
        left -= u32::from(hit);
        if hit { Fate::Drop } else { Fate::Deliver }
    });
    let began = world.now;
    (0..30).for_each(|_| world.send(A, a, 0, vec![0; 1400]));
    let mut got = 0;
    while got < 30 {
        assert!(world.step(began + 60 * SECOND), "{got} arrived");
        got += world.receive_all(Z, z).len();
    }
    let took = world.now - began;
    world.run_for(5 * SECOND);
    let counters = world.endpoints[A].association(a).expect("known").stats();
    (took, counters.sender.timeouts)
}

/// Without loss the transfer takes only a few round trips of 100 ms. Without a probe, the lost tail
/// would be detected by T3-rtx one second after the last acknowledgment. With a probe, recovery
/// should take about two round trips.
#[test]
fn a_lost_tail_costs_about_two_round_trips_and_not_a_timeout() {
    let whole = transfer(true, 99, 1).0;
    assert!(whole < 800 * MILLISECOND, "{whole}");
    let (slow, timeouts) = transfer(false, 29, 1);
    assert!(timeouts == 1 && slow > whole + 900 * MILLISECOND, "{slow}");
    let (fast, timeouts) = transfer(true, 29, 1);
    let cost = fast - whole;
    assert!(timeouts == 0, "{timeouts}");
    assert!(
        (150 * MILLISECOND..=410 * MILLISECOND).contains(&cost),
        "{cost}"
    );
}

/// A lost retransmission should cost one additional round trip and no timeout.
#[test]
fn a_lost_retransmission_costs_a_round_trip_and_not_a_timeout() {
    let once = transfer(true, 5, 1).0;
    let (slow, timeouts) = transfer(false, 5, 2);
    assert!(timeouts >= 1 && slow > SECOND, "{slow}");
    let (fast, timeouts) = transfer(true, 5, 2);
    assert_eq!(timeouts, 0);
    assert!(fast - once <= 250 * MILLISECOND, "{}", fast - once);
}

/// With random loss in both directions all messages should arrive in order, and timeouts should be
/// rare.
#[test]
fn random_losses_cost_few_timeouts() {
    let seed = std::env::var("CASE").map_or(8985, |seed| seed.parse().expect("a number"));
    println!("CASE={seed}");
    let run = |rack: bool| {
        let mut world = World::new(config(rack).with(|it| {
            it.receive_buffer = 1 << 20;
            it.send_buffer = 1 << 20;
        }));
        world.narrate = false;
        world.delay = 50 * MILLISECOND;
        let (a, z) = world.established();
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        world.fate = Box::new(move |_| {
            let lost = random.next_u64() % 100 < 10;
            if lost { Fate::Drop } else { Fate::Deliver }
        });
        let began = world.now;
        let (mut sent, mut got) = (0_u32, 0);
        while got < 2_000 {
            while sent < got + 200 && sent < 2_000 {
                let mut payload = vec![0; 1400];
                payload[..4].copy_from_slice(&sent.to_be_bytes());
                world.send(A, a, 0, payload);
                sent += 1;
            }
            assert!(world.step(began + 3_600 * SECOND), "{got} arrived");
            for message in world.receive_all(Z, z) {
                assert_eq!(message.payload.into_bytes()[..4], got.to_be_bytes());
                got += 1;
            }
        }
        let counters = world.endpoints[A].association(a).expect("known").stats();
        (world.now - began, counters.sender.timeouts)
    };
    let (with, without) = (run(true), run(false));
    println!("with RACK-TLP {with:?}, without {without:?}");
    assert!(
        with.0 < without.0 && with.1 * 3 < without.1,
        "{with:?}, {without:?}"
    );
}
