//! F-RTO between two endpoints: cost of a delay that is longer than the RTO, over a pipe of 50 ms
//! in each direction.

use crate::common;

use anabranch_sctp::stats::SenderStatistics;
use anabranch_sctp::{Config, Profile};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND};
use common::{seeds, *};
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

fn config(frto: bool, rack: bool) -> Config {
    Config::new(Profile::default()).with(|it| {
        (it.frto, it.rack) = (frto, rack);
        it.receive_buffer = 1 << 20;
        it.send_buffer = 1 << 20;
    })
}

/// Sends messages of 1400 bytes, whose packets have the fate `fate`. They must arrive once and in
/// order. Returns the sender's counters and the duration.
fn transfer(
    config: Config,
    count: u32,
    fate: Box<dyn FnMut(&Shot) -> Fate>,
) -> (SenderStatistics, Nanos) {
    let mut world = World::new(config);
    world.narrate = false;
    world.delay = 50 * MILLISECOND;
    let (a, z) = world.established();
    let began = world.now;
    world.fate = fate;
    let (mut sent, mut got) = (0_u32, 0);
    while got < count {
        while sent < got + 200 && sent < count {
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
    let took = world.now - began;
    world.run_for(5 * SECOND);
    let association = world.endpoints[A].association(a).expect("known");
    (association.stats().sender, took)
}

/// Delays packets as a radio handover does: packets sent between 0.5 and 2.5 s after the first one
/// are held until 2.5 s, and are then delivered in order.
fn held_up() -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut began = None;
    Box::new(move |shot| {
        let sent = shot.at - 50 * MILLISECOND;
        let since = sent - *began.get_or_insert(sent);
        match (500 * MILLISECOND..2_500 * MILLISECOND).contains(&since) {
            true => Fate::Late(2_500 * MILLISECOND - since),
            false => Fate::Deliver,
        }
    })
}

/// Without F-RTO, data marked by the timeout is retransmitted in slow start while the originals
/// arrive. With F-RTO, only one packet is retransmitted.
#[test]
fn a_delay_costs_one_packet_and_not_a_window() {
    for rack in [false, true] {
        let (plain, slow) = transfer(config(false, rack), 400, held_up());
        assert_eq!((plain.timeouts, plain.spurious_timeouts), (1, 0), "{rack}");
        let (counted, fast) = transfer(config(true, rack), 400, held_up());
        assert_eq!(counted.timeouts, 1, "{rack}");
        assert_eq!(counted.spurious_timeouts, 1, "{rack}");
        assert_eq!(counted.chunks_retransmitted, 1, "{rack}");
        assert!(rack || plain.chunks_retransmitted >= 10, "{plain:?}");
        assert!(fast < slow, "{fast} {slow}");
    }
}

/// With random loss, duplication and delay, all messages arrive once and in order, with and without
/// RACK-TLP. The number of timeouts considered spurious is at most the number that were spurious.
#[test]
fn whatever_is_lost_or_late_all_arrives() {
    let spurious = seeds::each(12, |seed| {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let fate = Box::new(move |_: &Shot| match random.next_u64() % 100 {
            0..=4 => Fate::Drop,
            5..=6 => Fate::Duplicate,
            7 => Fate::Late(random.next_u64() % (3 * SECOND)),
            _ => Fate::Deliver,
        });
        let (counted, _) = transfer(config(true, seed % 2 == 0), 300, fate);
        assert!(counted.spurious_timeouts <= counted.timeouts, "{counted:?}");
        assert!(counted.spurious_timeouts <= counted.reductions_undone);
        counted.timeouts
    });
    assert!(spurious.iter().sum::<u64>() > 0, "no timeout was seen");
}
