use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Wake;

use anabranch_transport::Ecn;
use bytes::Bytes;

use super::*;

const SIZE: usize = 100;

fn packet(tag: u32, number: u8) -> Vec<u8> {
    let mut packet = vec![number; SIZE];
    packet[..4].copy_from_slice(&[0, 5, 0, 7]);
    packet[TAG].copy_from_slice(&tag.to_be_bytes());
    packet
}

/// Packets with these tags, received by one call; each is filled with its index.
fn arrival(from: u8, tags: &[u32]) -> Arrival {
    let packets = (0..)
        .zip(tags)
        .flat_map(|(number, &tag)| packet(tag, number));
    Arrival {
        local: [10, 0, 0, 1].into(),
        from: SocketAddr::from(([10, 0, 0, from], 9_899)),
        ecn: Ecn::Ect0,
        packets: packets.collect::<Bytes>(),
        stride: SIZE,
        taken: 0,
    }
}

/// Tag and first payload byte of all waiting packets, in order.
fn all_of(receive_queue: &mut FairReceiveQueue) -> Vec<(u32, u8)> {
    let mut all = Vec::new();
    loop {
        receive_queue.begin_round();
        let before = all.len();
        while let Some(turn) = receive_queue.pop() {
            assert_eq!(turn.ecn, Ecn::Ect0);
            let packet = &receive_queue.block()[turn.packet];
            assert_eq!(packet.len(), SIZE);
            all.push((number(&packet[TAG]), packet[SIZE - 1]));
        }
        if all.len() == before {
            assert!(receive_queue.is_empty());
            return all;
        }
    }
}

#[derive(Default)]
struct Counted(AtomicU32);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn packets_of_one_call_are_sorted_by_their_owners_and_keep_their_order() {
    let seats = ShardHandle::all(3);
    let wakes: Vec<Arc<Counted>> = (0..3).map(|_| Arc::default()).collect();
    for (shard_handle, counted) in seats.iter().zip(&wakes) {
        assert!(shard_handle.set_waker(Arc::clone(counted).into()).is_none());
    }
    let woken = || [0, 1, 2].map(|at: usize| wakes[at].0.load(Ordering::Relaxed));
    let mut own = FairReceiveQueue::default();
    // The second shard has received the packets. INITs, with tag 0, stay with the shard that
    // receives them.
    let tags = [1, 4, 3, 2, 0, 7, 5, 5, 6, 1];
    assert!(seats[1].sort_by_owner(arrival(9, &tags), &mut own));
    assert_eq!(all_of(&mut own), [(1, 0), (4, 1), (0, 4), (7, 5), (1, 9)]);
    assert_eq!(woken(), [0; 3], "not while anything is locked");
    seats[1].wake_others();
    seats[1].wake_others();
    assert_eq!(woken(), [1, 0, 1]);
    for (shard_handle, expected) in [
        (0, [(3, 2), (6, 8)].as_slice()),
        (2, &[(2, 3), (5, 6), (5, 7)]),
    ] {
        let (mut taken, mut receive_queue) = (ReceivedMail::default(), FairReceiveQueue::default());
        assert!(
            !seats[shard_handle].take(&mut taken, &mut receive_queue),
            "nothing is left"
        );
        assert_eq!(all_of(&mut receive_queue), expected);
        assert_eq!((taken.came, taken.dropped), (expected.len() as u64, 0));
    }
    assert!(!seats[1].sort_by_owner(arrival(9, &[1, 4, 7]), &mut own));
    assert!(!seats[1].sort_by_owner(arrival(9, &[0]), &mut own));
    let short = Arrival {
        packets: Bytes::from_static(&[1; 7]),
        ..arrival(9, &[])
    };
    assert!(
        !seats[1].sort_by_owner(short, &mut own),
        "no packet of anybody's"
    );
}

/// Packets of unknown sources have a limit in addition to that of the mailbox, and a peer that
/// exceeds its share loses only its own packets.
#[test]
fn the_mail_is_bounded_and_a_flood_costs_others_nothing() {
    let seats = ShardHandle::all(2);
    let mut receive_queue = FairReceiveQueue::default();
    // Client 8 is a known peer of the first shard.
    let mut own = FairReceiveQueue::sharing_known(Some(seats[0].known_peers()));
    own.add_known(arrival(8, &[]).from);
    for _ in 0..200 {
        // Unknown sources from many addresses, and the known peer among them.
        for unknown in 100..200 {
            let even = [2; 20];
            assert!(seats[1].sort_by_owner(arrival(unknown, &even), &mut receive_queue));
        }
        // Packets from other UDP ports of the peer's address are not the peer's: another host may
        // be behind the same NAT.
        for port in 1_000..1_400 {
            let mut other = arrival(8, &[6]);
            other.from.set_port(port);
            assert!(seats[1].sort_by_owner(other, &mut receive_queue));
        }
        assert!(seats[1].sort_by_owner(arrival(8, &[4]), &mut receive_queue));
    }
    assert!(receive_queue.is_empty());
    let (mut taken, mut receive_queue) = (ReceivedMail::default(), FairReceiveQueue::default());
    seats[0].take(&mut taken, &mut receive_queue);
    let all = 200 * (100 * 20 + 400 + 1);
    assert_eq!(taken.came, all);
    assert!(taken.dropped > all / 2, "{}", taken.dropped);
    let came = all_of(&mut receive_queue);
    assert_eq!(
        came.len() as u64 + taken.dropped + receive_queue.dropped(),
        all
    );
    let of_peer = came.iter().filter(|it| it.0 == 4).count();
    assert_eq!(of_peer, 200, "none of the peer's is lost");
    // After its associations have ended, the peer is an unknown source, whose packets find no
    // space.
    own.remove_known(&arrival(8, &[]).from);
    for _ in 0..300 {
        assert!(seats[1].sort_by_owner(arrival(9, &[2; 20]), &mut own));
    }
    assert!(seats[1].sort_by_owner(arrival(8, &[4; 20]), &mut own));
    seats[0].take(&mut taken, &mut receive_queue);
    assert!(all_of(&mut receive_queue).iter().all(|it| it.0 == 2));
}

#[test]
fn datagrams_for_a_closed_shard_stay_at_the_receiving_shard() {
    let mut seats = ShardHandle::all(2);
    let mut receive_queue = FairReceiveQueue::default();
    assert!(seats[1].sort_by_owner(arrival(9, &[2]), &mut receive_queue));
    drop(seats.remove(0));
    assert!(!seats[0].sort_by_owner(arrival(9, &[2, 3, 4]), &mut receive_queue));
    assert_eq!(all_of(&mut receive_queue), [(2, 0), (3, 1), (4, 2)]);
    assert!(seats[0].hand_over(0, arrival(9, &[2])).is_err());
    assert!(seats[0].hand_over(2, arrival(9, &[2])).is_err(), "nobody");
}
