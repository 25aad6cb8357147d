//! Packets that were received and wait for the protocol, in fair turns.
//!
//! One task handles the packets of all peers. Taken in the order of their arrival, a peer that sends more than this end can
//! handle would fill the system's buffers and leave the others nothing. So what is received is sorted by its sender (IP
//! address and UDP port), each sender has its turn, and where too much waits it is the sender with the most waiting that
//! loses packets, as a full socket would lose them; but only its own.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use anabranch_transport::Ecn;
use bytes::Bytes;

use crate::inbox::Arrival;

/// Packets of one sender that are handled before the next sender has its turn.
const TURN_PACKETS: usize = 32;
/// Bytes after which a turn ends, also before it has had its packets: 32 packets of 1,500 bytes fit.
const TURN_BYTES: usize = 48 * 1024;
/// Packets, and bytes, that are handled in one round: then answers are sent and more is received.
const ROUND_PACKETS: usize = 128;
const ROUND_BYTES: usize = 192 * 1024;
/// Bytes that may wait. A well-behaved sender has at most a receive window in flight, 1 MiB by default.
const MAX_WAITING: usize = 4 << 20;
/// Senders that may wait before no more is received: the sockets keep the rest.
const MAX_SENDERS: usize = 256;
/// Bytes that an arrival counts beside its own.
const OVERHEAD: usize = 128;
/// Empty queues kept for the next senders.
const MAX_SPARE: usize = 64;

/// What may yet be handled in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    packets: usize,
    bytes: usize,
}

impl Budget {
    /// That of a round.
    pub fn of_a_round() -> Self {
        Self {
            packets: ROUND_PACKETS,
            bytes: ROUND_BYTES,
        }
    }

    /// Whether the round has to end.
    pub fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }

    /// A packet of that size was handled.
    pub fn spend(&mut self, bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A packet whose turn it is.
#[derive(Debug)]
pub(crate) struct Turn {
    /// Our address.
    pub local: IpAddr,
    /// The sender's, and its UDP port (0 for raw IP).
    pub from: SocketAddr,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// Common header and chunks.
    pub packet: Bytes,
}

/// What waits of one sender, oldest first.
#[derive(Debug)]
struct Sender {
    from: SocketAddr,
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

/// What waits of all senders.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Each with something waiting. The first has its turn.
    senders: VecDeque<Sender>,
    /// What the first has had of its turn.
    packets: usize,
    handled: usize,
    bytes: usize,
    dropped: u64,
    spare: Vec<VecDeque<Arrival>>,
}

impl Turns {
    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    /// Whether more should be received. Also where much waits: what is left in the system's buffers has no turns there, and
    /// the others' packets would be lost behind those of one that sends too much.
    pub fn has_room(&self) -> bool {
        self.senders.len() < MAX_SENDERS
    }

    /// Packets dropped so far since too much waited.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Takes what one call received, and gives its bytes; beyond the bound, the sender with the most waiting loses its newest.
    pub fn push_all(&mut self, arrivals: &mut VecDeque<Arrival>) -> usize {
        let mut bytes = 0;
        for arrival in arrivals.drain(..) {
            bytes += arrival.packets.len();
            self.push(arrival);
        }
        while self.bytes > MAX_WAITING {
            self.drop_of_the_longest();
        }
        bytes
    }

    fn push(&mut self, arrival: Arrival) {
        let cost = cost(&arrival);
        self.bytes += cost;
        // What comes by one call is mostly of few senders, and in rows.
        let mut newest_first = self.senders.iter_mut().rev();
        if let Some(sender) = newest_first.find(|it| it.from == arrival.from) {
            sender.bytes += cost;
            sender.arrivals.push_back(arrival);
            return;
        }
        let mut queue = self.spare.pop().unwrap_or_default();
        let from = arrival.from;
        queue.push_back(arrival);
        self.senders.push_back(Sender {
            from,
            arrivals: queue,
            bytes: cost,
        });
    }

    fn drop_of_the_longest(&mut self) {
        let longest = (0..self.senders.len()).max_by_key(|&index| self.senders[index].bytes);
        let Some(index) = longest else { return };
        let sender = &mut self.senders[index];
        if let Some(arrival) = sender.arrivals.pop_back() {
            let cost = cost(&arrival);
            sender.bytes -= cost;
            self.bytes -= cost;
            self.dropped += packets_of(&arrival);
        }
        self.forget_if_empty(index);
    }

    fn forget_if_empty(&mut self, index: usize) {
        if !self.senders[index].arrivals.is_empty() {
            return;
        }
        if index == 0 {
            (self.packets, self.handled) = (0, 0);
        }
        if let Some(sender) = self.senders.remove(index)
            && self.spare.len() < MAX_SPARE
        {
            self.spare.push(sender.arrivals);
        }
    }

    /// The packet that [`Turns::pop`] gives next.
    pub fn peek(&self) -> Option<&[u8]> {
        let arrival = self.senders.front()?.arrivals.front()?;
        Some(&arrival.packets[..first_of(arrival)])
    }

    /// The packet whose turn it is.
    pub fn pop(&mut self) -> Option<Turn> {
        let sender = self.senders.front_mut()?;
        let arrival = sender.arrivals.front_mut()?;
        let before = cost(arrival);
        let packet = arrival.packets.split_to(first_of(arrival));
        let turn = Turn {
            local: arrival.local,
            from: arrival.from,
            ecn: arrival.ecn,
            packet,
        };
        let after = if arrival.packets.is_empty() {
            sender.arrivals.pop_front();
            0
        } else {
            cost(arrival)
        };
        sender.bytes -= before - after;
        self.bytes -= before - after;
        self.packets += 1;
        self.handled += turn.packet.len();
        if sender.arrivals.is_empty() {
            self.forget_if_empty(0);
        } else if self.packets >= TURN_PACKETS || self.handled >= TURN_BYTES {
            self.senders.rotate_left(1);
            (self.packets, self.handled) = (0, 0);
        }
        Some(turn)
    }

    /// Forgets everything: nobody is there to take it.
    pub fn clear(&mut self) {
        while !self.senders.is_empty() {
            self.senders[0].arrivals.clear();
            self.forget_if_empty(0);
        }
        self.bytes = 0;
    }
}

/// Bytes that an arrival counts.
fn cost(arrival: &Arrival) -> usize {
    arrival.packets.len() + OVERHEAD
}

/// Bytes of its first packet.
fn first_of(arrival: &Arrival) -> usize {
    arrival.stride.min(arrival.packets.len())
}

fn packets_of(arrival: &Arrival) -> u64 {
    arrival.packets.len().div_ceil(arrival.stride.max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u16) -> SocketAddr {
        SocketAddr::new([192, 0, 2, 1].into(), number)
    }

    /// `count` packets of `size` bytes by one call, numbered from `first` on.
    fn arrival(from: u16, first: u32, count: u32, size: usize) -> Arrival {
        let packet = |number: u32| {
            let mut packet = vec![0; size];
            packet[..4].copy_from_slice(&number.to_be_bytes());
            packet
        };
        Arrival {
            local: [192, 0, 2, 9].into(),
            from: peer(from),
            ecn: Ecn::NotEct,
            packets: (first..first + count).flat_map(packet).collect(),
            stride: size,
        }
    }

    fn push(turns: &mut Turns, arrivals: impl IntoIterator<Item = Arrival>) {
        turns.push_all(&mut arrivals.into_iter().collect());
    }

    fn number(turn: &Turn) -> u32 {
        u32::from_be_bytes(*turn.packet.first_chunk().expect("four bytes"))
    }

    /// Whoever floods has one turn before a packet of somebody else's, however much was there first.
    #[test]
    fn a_flood_of_one_peer_delays_another_by_a_turn_at_most() {
        for size in [16, 1_500, 60_000] {
            let mut turns = Turns::default();
            push(
                &mut turns,
                (0..60).map(|_| arrival(1, 0, 1 + 65_000 / size as u32, size)),
            );
            push(&mut turns, [arrival(2, 7, 1, 100)]);
            let before = std::iter::from_fn(|| turns.pop()).position(|it| it.from == peer(2));
            let before = before.expect("it comes");
            assert!(before <= TURN_PACKETS, "{before} packets of {size} bytes");
            assert!(
                before.saturating_sub(1) * size <= TURN_BYTES,
                "{before} packets of {size}"
            );
        }
    }

    #[test]
    fn packets_of_one_peer_keep_their_order_and_none_is_lost_within_the_bound() {
        let mut turns = Turns::default();
        for call in 0..10 {
            push(
                &mut turns,
                (1..=3).map(|from| arrival(from, call * 40, 40, 200)),
            );
        }
        let mut next = [0; 4];
        while let Some(turn) = turns.pop() {
            let from = usize::from(turn.from.port());
            assert_eq!(number(&turn), next[from]);
            next[from] += 1;
        }
        assert_eq!((next, turns.dropped()), ([0, 400, 400, 400], 0));
        assert_eq!(turns.bytes, 0);
    }

    /// What waits is bounded, and it is the flood that pays.
    #[test]
    fn beyond_the_bound_only_the_sender_with_the_most_waiting_loses() {
        let mut turns = Turns::default();
        let mut quiet = 0;
        for call in 0..1_000 {
            push(&mut turns, [arrival(1, call * 40, 40, 1_500)]);
            if call % 10 == 0 {
                push(&mut turns, [arrival(2, quiet, 1, 1_000)]);
                quiet += 1;
            }
            assert!(turns.bytes <= MAX_WAITING, "{} bytes", turns.bytes);
        }
        assert!(turns.dropped() > 30_000, "{}", turns.dropped());
        let mut came = [0u64; 3];
        let mut heard = Vec::new();
        while let Some(turn) = turns.pop() {
            came[usize::from(turn.from.port())] += 1;
            if turn.from == peer(2) {
                heard.push(number(&turn));
            }
        }
        assert_eq!(
            heard,
            (0..quiet).collect::<Vec<_>>(),
            "the other lost nothing"
        );
        assert_eq!(came[1] + turns.dropped(), 40_000);
        assert_eq!(turns.bytes, 0);
    }

    /// Packets of 16 bytes cost as much work as large ones.
    #[test]
    fn a_round_ends_after_so_many_packets_or_bytes() {
        for (size, most) in [(16, ROUND_PACKETS), (65_536, 3)] {
            let mut budget = Budget::of_a_round();
            let mut handled = 0;
            while !budget.is_spent() {
                budget.spend(size);
                handled += 1;
            }
            assert_eq!(handled, most, "{size} bytes");
        }
    }

    /// The sockets keep what comes of yet more senders: to look for one among those that wait stays cheap.
    #[test]
    fn so_many_senders_wait_and_no_more_are_received() {
        let mut turns = Turns::default();
        let mut calls = 0;
        while turns.has_room() {
            push(
                &mut turns,
                (0..32).map(|it| arrival(calls * 32 + it, 0, 1, 16)),
            );
            calls += 1;
        }
        assert_eq!((turns.senders.len(), turns.dropped()), (MAX_SENDERS, 0));
        turns.pop();
        assert!(turns.has_room());
    }

    #[test]
    fn what_is_forgotten_does_not_count() {
        let mut turns = Turns::default();
        push(&mut turns, [arrival(1, 0, 40, 1_500), arrival(2, 0, 1, 16)]);
        turns.pop();
        turns.clear();
        assert!(turns.is_empty() && turns.pop().is_none() && turns.peek().is_none());
        assert_eq!(turns.bytes, 0);
    }
}
