//! Transfers with faults that a correct network or a malicious peer can cause. The data should
//! arrive in the end, or the association should fail in time.

use crate::common;

use anabranch_sctp::{AssociationState, CloseReason, Config, DiscardReason, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::{Chunk, GapAckBlock, OutgoingSack};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;
use common::*;

/// A message larger than the whole receive buffer of the peer waits at the sender while the user of
/// the peer does not read. Afterwards it should be delivered completely (RFC 9260 §6.9).
#[test]
fn a_message_larger_than_the_receive_buffer_waits_for_its_reader() {
    let mut world = World::new(Config::default());
    world.narrate = false;
    let (a, z) = world.established();
    world.send(A, a, 0, vec![7; 200_000]);
    world.run_for(600 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let mut messages = Vec::new();
    while messages.is_empty() {
        messages = world.receive_all(Z, z);
        world.run_for(SECOND);
    }
    assert_eq!(messages[0].payload.len(), 200_000);
}

/// A peer reads nothing for a day, but answers each probe of its closed window. The association
/// should not fail (RFC 9260 §6.1 A).
#[test]
fn a_closed_window_is_probed_for_ever() {
    let mut world = World::new(Config::default().with(|it| it.receive_buffer = 4_000));
    world.narrate = false;
    let (a, z) = world.established();
    for _ in 0..10 {
        world.send(A, a, 0, vec![1; 1_000]);
    }
    world.run_for(86_400 * SECOND);
    assert_eq!(world.state(A, a), AssociationState::Established);
    let probes = world.endpoints[A]
        .association(a)
        .unwrap()
        .stats()
        .sender
        .window_probes;
    assert!(probes >= 1);
    let mut got = world.receive_all(Z, z).len();
    for _ in 0..100 {
        world.run_for(SECOND);
        got += world.receive_all(Z, z).len();
    }
    assert_eq!(got, 10);
}

/// A peer with a closed window stops answering. The association should fail as it would with an
/// open window.
#[test]
fn a_closed_window_whose_probes_go_unanswered_is_a_failure() {
    let mut world = World::new(Config::default().with(|it| it.receive_buffer = 4_000));
    world.narrate = false;
    let (a, _) = world.established();
    for _ in 0..10 {
        world.send(A, a, 0, vec![1; 1_000]);
    }
    world.run_for(100 * SECOND);
    world.fate = Box::new(|_| Fate::Drop);
    world.run_for(3_600 * SECOND);
    assert_eq!(world.close_reason(A, a), Some(CloseReason::PeerUnreachable));
}

/// One message is lost repeatedly. Meanwhile 70,000 messages of one byte are sent on its stream,
/// which are more than 16-bit sequence numbers can distinguish. All messages should arrive in
/// order.
#[test]
fn a_stream_never_runs_further_ahead_than_its_numbers_reach() {
    let config = Config::default().with(|it| {
        it.receive_buffer = 4_000_000;
        it.send_buffer = 4_000_000;
    });
    let mut world = World::new(config);
    world.narrate = false;
    let (a, z) = world.established();
    // The transfer makes cwnd so large that 70,000 chunks of one byte could be in flight.
    for _ in 0..30 {
        world.send(A, a, 1, vec![1; 100_000]);
    }
    let mut bulk = 0;
    while bulk < 30 {
        world.run_for(SECOND);
        bulk += world.receive_all(Z, z).len();
    }
    let paths = world.endpoints[A].association(a).unwrap().paths();
    let cwnd = paths.get(anabranch_sctp::PathId(0)).cwnd();
    assert!(cwnd > 70_000, "{cwnd}");
    let until = world.now + 20 * SECOND;
    world.fate = Box::new(move |shot| {
        let lost = shot.at < until
            && chunks_of(&shot.bytes).iter().any(
                |chunk| matches!(chunk, Chunk::Data(data) if data.stream_id == 0 && data.ssn.0 == 0),
            );
        if lost { Fate::Drop } else { Fate::Deliver }
    });
    for number in 0..70_000_u32 {
        let message = Bytes::from_static(b"x");
        let association = world.endpoints[A].association_mut(a).unwrap();
        association
            .send(world.now, message, &SendOptions::new().with_ppid(number))
            .unwrap();
    }
    world.drain(A);
    let mut got = Vec::new();
    for _ in 0..200 {
        world.run_for(SECOND);
        got.extend(world.receive_all(Z, z));
        if got.len() == 70_000 {
            break;
        }
    }
    assert_eq!(
        world.close_reason(A, a),
        None,
        "{:?} {}",
        world.close_reason(Z, z),
        got.len()
    );
    assert_eq!(got.len(), 70_000);
    let in_order = got.iter().enumerate().all(|(at, it)| it.ppid == at as u32);
    assert!(in_order);
}

/// The peer sends contradictory SACKs. The sender should remain consistent, and all messages should
/// arrive.
#[test]
fn sacks_that_go_backwards_or_make_no_sense_do_no_harm() {
    use anabranch_wire::chunk::Sack;
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let to_a = world.tag_sent_by(Z);
    world.forget();
    world.send(A, a, 0, vec![1; 20_000]);
    world.run_for(300 * MILLISECOND);
    let highest = world
        .shots
        .iter()
        .flat_map(|shot| chunks_of(&shot.bytes))
        .filter_map(|chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn),
            _ => None,
        })
        .last()
        .expect("DATA");
    // The gap blocks are missing, reversed or overlapping, begin at offset 0 or 1, or cover
    // everything. All cumulative TSNs are lower than the highest TSN that was sent.
    let gaps: [&[(u16, u16)]; 5] = [
        &[],
        &[(5, 2)],
        &[(2, 4), (3, 9)],
        &[(0, 0), (1, 1)],
        &[(1, 65_535)],
    ];
    for back in [1, 2, 100, 0x7FFF_FFFF] {
        for blocks in gaps {
            for a_rwnd in [0, 1, u32::MAX] {
                let mut value = Vec::new();
                value.extend_from_slice(&highest.0.wrapping_sub(back).to_be_bytes());
                value.extend_from_slice(&a_rwnd.to_be_bytes());
                value.extend_from_slice(&(blocks.len() as u16).to_be_bytes());
                value.extend_from_slice(&[0, 0]);
                for &(start, end) in blocks {
                    value.extend_from_slice(&start.to_be_bytes());
                    value.extend_from_slice(&end.to_be_bytes());
                }
                let mut chunk = vec![3, 0];
                chunk.extend_from_slice(&(4 + value.len() as u16).to_be_bytes());
                chunk.extend_from_slice(&value);
                let bytes = raw_packet(Z, to_a, &chunk);
                assert!(matches!(chunks_of(&bytes)[0], Chunk::Sack(Sack { .. })));
                world.inject(A, bytes);
            }
        }
    }
    world.send(A, a, 0, vec![2; 20_000]);
    world.run_for(60 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), 2);
    assert_eq!(world.state(A, a), AssociationState::Established);
}

/// A SACK with at most one gap block.
fn sack(cumulative_tsn_ack: Tsn, block: Option<(u16, u16)>) -> Chunk {
    let block = block.map(|(start, end)| GapAckBlock { start, end });
    let sack = OutgoingSack {
        cumulative_tsn_ack,
        a_rwnd: 65_536,
        gap_blocks: block.into_iter(),
        duplicates: &[],
    };
    Chunk::Sack(sack.to_sack())
}

/// A has sent ten messages that are not acknowledged. Returns the world, the tag of packets to A,
/// and the TSN before the first message.
fn unanswered() -> (World, u32, Tsn) {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let Chunk::Init(init) = chunks_of(&world.shot(A, "INIT")).remove(0) else {
        panic!()
    };
    world.fate = Box::new(|_| Fate::Drop);
    for number in 0..10_u8 {
        world.send(A, a, 0, vec![number; 1_000]);
    }
    world.run_for(MILLISECOND);
    (world, init.initiate_tag, init.initial_tsn.prev())
}

/// RFC 9260 §6.2.1 D iii: the receiver withdraws the acknowledgment of data by gap blocks. All of
/// this data should be delivered in the end.
#[test]
fn reneged_data_is_delivered_in_the_end() {
    let (mut world, tag, before) = unanswered();
    let a = world.endpoints[A].associations().next().unwrap();
    let sent = world.endpoints[A]
        .association(a)
        .unwrap()
        .status()
        .outstanding_chunks as u16;
    assert!(sent >= 3, "{sent} in flight");
    for block in [Some((2, sent)), None, Some((2, sent)), None] {
        world.inject(A, packet(Z, tag, &[&sack(before, block)]));
    }
    world.fate = Box::new(|_| Fate::Deliver);
    world.run_for(60 * SECOND);
    let z = world.only_association(Z);
    let got = world.receive_all(Z, z).into_iter();
    let numbers: Vec<u8> = got.map(|it| it.payload.into_bytes()[0]).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<u8>>(), "{:#?}", world.story);
}

/// RFC 9260 §6.2: a receiver sends at most one SACK per packet. If a packet contains several, only
/// the first one should be processed.
#[test]
fn one_sack_of_a_packet_is_taken() {
    let (mut world, tag, before) = unanswered();
    let a = world.endpoints[A].associations().next().unwrap();
    let count = |world: &World| {
        let association = world.endpoints[A].association(a).unwrap();
        (
            association.status().outstanding_chunks,
            association.stats().sender.sacks,
        )
    };
    let (sent, sacks) = count(&world);
    let [first, second] = [1, 2].map(|acked| sack(before.add(acked), None));
    world.inject(A, packet(Z, tag, &[&first, &second, &second]));
    assert_eq!(
        world.endpoints[A].discards().of(DiscardReason::SecondSack),
        2
    );
    assert_eq!(count(&world).1, sacks + 1);
    assert!(count(&world).0 >= sent - 1);
    world.inject(A, packet(Z, tag, &[&second]));
    assert_eq!(
        count(&world).1,
        sacks + 2,
        "in a packet of its own it counts"
    );
}
