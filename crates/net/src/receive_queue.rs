//! Fair queue of received packets that wait to be handled by the protocol.
//!
//! One task handles the packets of all peers. If packets were handled in order of arrival, a peer
//! that sends faster than this host can handle would fill the system's buffers and starve other
//! peers. Therefore received packets are queued by sender (IP address and UDP port), senders are
//! served round robin, and if the queues exceed their limit, only the sender with the most queued
//! data loses packets, as with a full socket buffer.
//!
//! Senders from which no association has accepted a packet are unknown sources. By forging
//! addresses, an attacker can appear as any number of unknown sources. Therefore unknown sources
//! share one queue, in order of arrival, together with all INITs (verification tag 0, RFC 9260
//! §8.5.1 A), and one of their packets is handled after each turn of a peer. If no packet of a peer
//! waits, only packets of unknown sources are handled.

mod known_peers;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use anabranch_transport::Ecn;
use bytes::Bytes;

use crate::receive_buffers::Arrival;
use known_peers::KnownPeers;
pub(crate) use known_peers::SharedKnownPeers;

/// Maximum number of packets of one sender that are handled in one turn.
const TURN_PACKETS: usize = 32;
/// Size after which a turn ends before `TURN_PACKETS`, bytes: 32 packets of 1,500 bytes fit.
const TURN_BYTES: usize = 48 * 1024;
/// Limits of a round, in packets and bytes. After a round, replies are sent and more packets are
/// received.
const ROUND_PACKETS: usize = 128;
const ROUND_BYTES: usize = 192 * 1024;
/// Maximum size of all waiting packets, bytes. A well-behaved sender has at most a receive window
/// in flight, 1 MiB by default.
const MAX_WAITING: usize = 4 << 20;
/// Number of senders with waiting packets from which on nothing more is received; further packets
/// stay in the socket buffers.
const MAX_SENDERS: usize = 256;
/// Overhead per arrival that is added to its size, bytes.
const OVERHEAD: usize = 128;
/// Maximum number of empty queues that are kept for reuse.
const MAX_SPARE: usize = 64;
/// Maximum size of the waiting packets of unknown sources, bytes: about 2,000 INITs. Packets beyond
/// it are dropped.
const MAX_UNKNOWN_BYTES: usize = 512 * 1024;
/// Maximum number of packets of unknown sources per round, because peers may have sent more packets
/// meanwhile.
const ROUND_UNKNOWN: usize = 32;
/// Position of the verification tag in the common header (RFC 9260 §3.1).
const TAG: std::ops::Range<usize> = 4..8;

/// The remaining budget of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    packets: usize,
    bytes: usize,
}

impl Budget {
    /// The full budget of a round.
    pub(crate) fn of_a_round() -> Self {
        Self {
            packets: ROUND_PACKETS,
            bytes: ROUND_BYTES,
        }
    }

    /// An empty budget.
    pub(crate) fn nothing() -> Self {
        Self {
            packets: 0,
            bytes: 0,
        }
    }

    /// Returns true if the budget is exhausted, and the round has to end.
    pub(crate) fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }

    /// Deducts one packet of `bytes` bytes from the budget.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A packet that was removed from the queue to be handled.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    /// The local address.
    pub local: IpAddr,
    /// The sender's IP address, and its UDP port (0 for raw IP).
    pub from: SocketAddr,
    /// ECN field of the IP header.
    pub ecn: Ecn,
    /// Range of the common header and chunks in [`FairReceiveQueue::block`].
    pub packet: Range<usize>,
    /// The packet was queued as a packet of an unknown source. If an association accepts it, its
    /// sender becomes known: [`FairReceiveQueue::add_known`].
    pub unknown: bool,
    /// Number of packets from the same receive call that follow, if the turn does not end before.
    pub behind: usize,
}

/// Waiting packets of one sender, in order of arrival.
#[derive(Debug)]
struct Sender {
    from: SocketAddr,
    arrivals: VecDeque<Arrival>,
    bytes: usize,
}

/// Waiting packets of all senders.
#[derive(Debug, Default)]
pub(crate) struct FairReceiveQueue {
    /// Senders with queued packets; the first one has its turn.
    senders: VecDeque<Sender>,
    /// Buffer of the packet that was returned last.
    block: Bytes,
    /// Packets and bytes that were handled in the current turn.
    packets: usize,
    handled: usize,
    bytes: usize,
    dropped: u64,
    spare: Vec<VecDeque<Arrival>>,
    known: KnownPeers,
    /// Copy of `known` for other shards; `None` without shards.
    shown: Option<SharedKnownPeers>,
    unknown: VecDeque<Arrival>,
    /// Size of the waiting datagrams of unknown sources including overhead, bytes; not part of
    /// `bytes`.
    unknown_bytes: usize,
    /// True if a peer's turn has ended and no packet of an unknown source was handled since.
    unknown_is_next: bool,
    /// State of the round: number of handled packets of unknown sources, and whether a peer had a
    /// turn.
    unknown_handled: usize,
    had_peers: bool,
}

impl FairReceiveQueue {
    /// Creates an empty queue, which publishes its known peers in `shown`.
    pub(crate) fn sharing_known(shown: Option<SharedKnownPeers>) -> Self {
        Self {
            shown,
            ..Self::default()
        }
    }

    /// Returns true if no packet is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.senders.is_empty() && self.unknown.is_empty()
    }

    /// Starts a round.
    pub(crate) fn begin_round(&mut self) {
        (self.unknown_handled, self.had_peers) = (0, false);
    }

    /// Adds this sender to the known peers, because an association has accepted a packet from it.
    pub(crate) fn add_known(&mut self, from: SocketAddr) {
        self.known.insert(from);
        if let Some(shown) = &self.shown {
            shown.insert(from);
        }
    }

    /// Removes this sender for one association that has ended.
    pub(crate) fn remove_known(&mut self, from: &SocketAddr) {
        self.known.remove(from);
        if let Some(shown) = &self.shown {
            shown.remove(from);
        }
    }

    /// Returns true if more packets should be received. This is true even if many packets are
    /// queued, because the system's buffers are not fair: a flood would displace the packets of
    /// other senders there.
    pub(crate) fn has_room(&self) -> bool {
        self.senders.len() < MAX_SENDERS
    }

    /// Number of packets that were dropped so far because too many were waiting.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Called after each receive call: drops the newest packets of the senders with the most
    /// waiting bytes until the limit is met.
    pub(crate) fn drop_excess(&mut self) {
        while self.bytes > MAX_WAITING {
            self.drop_of_the_longest();
        }
    }

    /// Adds an arrival. After the last packet of a receive call, [`FairReceiveQueue::drop_excess`]
    /// must follow.
    pub(crate) fn push(&mut self, arrival: Arrival) {
        self.push_as(arrival, None);
    }

    /// Like [`FairReceiveQueue::push`], for a sender that another shard has classified as peer or
    /// unknown source.
    pub(crate) fn push_of(&mut self, arrival: Arrival, is_peer: bool) {
        self.push_as(arrival, Some(is_peer));
    }

    #[inline(always)]
    fn push_as(&mut self, arrival: Arrival, is_peer: Option<bool>) {
        if is_init(&arrival.packets) {
            return self.push_unknown(arrival);
        }
        let cost = cost(&arrival);
        // Searched from the newest sender, because the packets of one receive call are usually from
        // few senders and consecutive.
        let mut newest_first = self.senders.iter_mut().rev();
        if let Some(sender) = newest_first.find(|it| it.from == arrival.from) {
            self.bytes += cost;
            sender.bytes += cost;
            sender.arrivals.push_back(arrival);
            return;
        }
        if !is_peer.unwrap_or_else(|| self.known.contains(&arrival.from)) {
            return self.push_unknown(arrival);
        }
        self.bytes += cost;
        let mut queue = self.spare.pop().unwrap_or_default();
        let from = arrival.from;
        queue.push_back(arrival);
        self.senders.push_back(Sender {
            from,
            arrivals: queue,
            bytes: cost,
        });
    }

    fn push_unknown(&mut self, arrival: Arrival) {
        let cost = cost(&arrival);
        if self.unknown_bytes + cost > MAX_UNKNOWN_BYTES {
            self.dropped += packets_of(&arrival);
            return;
        }
        self.unknown_bytes += cost;
        self.unknown.push_back(arrival);
    }

    /// Moves waiting packets to another queue until that is full. The other queue decides again
    /// which senders are known.
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        while other.has_room()
            && let Some(mut sender) = self.senders.pop_front()
        {
            self.bytes -= sender.bytes;
            sender.arrivals.drain(..).for_each(|it| other.push(it));
            other.drop_excess();
            if self.spare.len() < MAX_SPARE {
                self.spare.push(sender.arrivals);
            }
        }
        self.unknown.drain(..).for_each(|it| other.push(it));
        self.unknown_bytes = 0;
        other.drop_excess();
    }

    /// Number of packets that were dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Returns true if the next packet is from an unknown source, false if it is from a peer, and
    /// `None` if no packet remains for this round.
    fn next_is_unknown(&self) -> Option<bool> {
        let may = !self.unknown.is_empty() && self.unknown_handled < ROUND_UNKNOWN;
        if self.senders.is_empty() {
            // If a peer had a turn in this round, the round ends here, because peers may have sent
            // more by now.
            (may && (self.unknown_is_next || !self.had_peers)).then_some(true)
        } else {
            Some(may && self.unknown_is_next)
        }
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
            self.end_turn();
        }
        if let Some(sender) = self.senders.remove(index)
            && self.spare.len() < MAX_SPARE
        {
            self.spare.push(sender.arrivals);
        }
    }

    /// Ends the turn of a sender. Before the next turn, one packet of an unknown source is handled.
    fn end_turn(&mut self) {
        (self.packets, self.handled) = (0, 0);
        self.unknown_is_next = true;
    }

    /// The packet that [`FairReceiveQueue::pop`] returns next, and its local destination address.
    pub(crate) fn peek(&self) -> Option<(IpAddr, &[u8])> {
        let arrival = match self.next_is_unknown()? {
            true => self.unknown.front(),
            false => self.senders.front()?.arrivals.front(),
        }?;
        Some((arrival.local, &arrival.left()[..first_of(arrival)]))
    }

    /// The buffer of the packet that [`FairReceiveQueue::pop`] returned last.
    pub(crate) fn block(&self) -> &Bytes {
        &self.block
    }

    /// Releases the buffer of the packet that was returned last.
    pub(crate) fn release_block(&mut self) {
        self.block = Bytes::new();
    }

    /// The next packet; `None` if no packet waits, or if the waiting packets belong to the next
    /// round.
    pub(crate) fn pop(&mut self) -> Option<QueuedPacket> {
        if self.next_is_unknown()? {
            return self.pop_unknown();
        }
        self.had_peers = true;
        let sender = self.senders.front_mut()?;
        let arrival = sender.arrivals.front_mut()?;
        let before = cost(arrival);
        let mut turn = take_first(arrival, &mut self.block, false);
        let after = if arrival.left().is_empty() {
            sender.arrivals.pop_front();
            0
        } else {
            turn.behind = packets_of(arrival) as usize;
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
            self.end_turn();
            turn.behind = 0;
        }
        Some(turn)
    }

    fn pop_unknown(&mut self) -> Option<QueuedPacket> {
        self.unknown_is_next = false;
        self.unknown_handled += 1;
        let arrival = self.unknown.front_mut()?;
        let before = cost(arrival);
        let turn = take_first(arrival, &mut self.block, true);
        let after = if arrival.left().is_empty() {
            self.unknown.pop_front();
            0
        } else {
            cost(arrival)
        };
        self.unknown_bytes -= before - after;
        Some(turn)
    }

    /// Removes all packets, because no endpoint remains to handle them.
    pub(crate) fn clear(&mut self) {
        while !self.senders.is_empty() {
            self.senders[0].arrivals.clear();
            self.forget_if_empty(0);
        }
        self.unknown.clear();
        (self.bytes, self.unknown_bytes) = (0, 0);
    }
}

/// Returns true if the first of these packets has the verification tag 0, which is allowed only for
/// INIT.
fn is_init(packets: &[u8]) -> bool {
    packets.get(TAG).is_some_and(|tag| tag == [0; 4])
}

/// Removes the first packet from an arrival, and stores a reference to its buffer in `block`. All
/// packets of a receive call share one such reference.
fn take_first(arrival: &mut Arrival, block: &mut Bytes, unknown: bool) -> QueuedPacket {
    let packet = arrival.taken..arrival.taken + first_of(arrival);
    if packet.end == arrival.packets.len() {
        arrival.taken = 0;
        *block = std::mem::take(&mut arrival.packets);
    } else {
        arrival.taken = packet.end;
        if (block.as_ptr(), block.len()) != (arrival.packets.as_ptr(), arrival.packets.len()) {
            *block = arrival.packets.clone();
        }
    }
    QueuedPacket {
        local: arrival.local,
        from: arrival.from,
        ecn: arrival.ecn,
        packet,
        unknown,
        behind: 0,
    }
}

/// Size of an arrival for the limits: its bytes and a fixed overhead.
fn cost(arrival: &Arrival) -> usize {
    arrival.left().len() + OVERHEAD
}

/// Size of the first packet of an arrival, bytes.
fn first_of(arrival: &Arrival) -> usize {
    arrival.stride.min(arrival.left().len())
}

fn packets_of(arrival: &Arrival) -> u64 {
    arrival.left().len().div_ceil(arrival.stride.max(1)) as u64
}

#[cfg(test)]
mod tests;
