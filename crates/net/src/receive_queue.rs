//! Packets that were received and wait for the protocol, in fair turns.
//!
//! One task handles the packets of all peers. Taken in the order of their arrival, a peer that sends more than this end can
//! handle would fill the system's buffers and leave the others nothing. So what is received is sorted by its sender (IP
//! address and UDP port), each sender has its turn, and where too much waits it is the sender with the most waiting that
//! loses packets, as a full socket would lose them; but only its own.
//!
//! Senders of whom no association has taken a packet are strangers. Anybody can be many of them, by addresses that are not
//! its own. So they wait in one queue together, in the order of their arrival, as do all INITs (verification tag 0, RFC 9260
//! §8.5.1 A), and one of their packets is handled after each turn of a peer. While no peer has anything waiting, all that is
//! handled is theirs.

mod known_peers;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use anabranch_transport::Ecn;
use bytes::Bytes;

use crate::receive_buffers::Arrival;
use known_peers::KnownPeers;
pub(crate) use known_peers::SharedKnownPeers;

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
/// Bytes of strangers that may wait: some 2,000 INITs. What comes beyond is dropped.
const MAX_STRANGERS: usize = 512 * 1024;
/// Packets of strangers that are handled in one round: more may have come of peers meanwhile.
const ROUND_STRANGERS: usize = 32;
/// Where the verification tag stands in the common header (RFC 9260 §3.1).
const TAG: std::ops::Range<usize> = 4..8;

/// What may yet be handled in a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    packets: usize,
    bytes: usize,
}

impl Budget {
    /// That of a round.
    pub(crate) fn of_a_round() -> Self {
        Self {
            packets: ROUND_PACKETS,
            bytes: ROUND_BYTES,
        }
    }

    /// Nothing is handled.
    pub(crate) fn nothing() -> Self {
        Self {
            packets: 0,
            bytes: 0,
        }
    }

    /// Whether the round has to end.
    pub(crate) fn is_spent(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }

    /// A packet of that size was handled.
    pub(crate) fn spend(&mut self, bytes: usize) {
        self.packets = self.packets.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// A packet whose turn it is.
#[derive(Debug)]
pub(crate) struct QueuedPacket {
    /// Our address.
    pub local: IpAddr,
    /// The sender's, and its UDP port (0 for raw IP).
    pub from: SocketAddr,
    /// ECN field of its IP header.
    pub ecn: Ecn,
    /// Where common header and chunks lie in [`FairReceiveQueue::block`].
    pub packet: Range<usize>,
    /// It waited among the strangers' packets. If an association takes it, its sender is none: [`FairReceiveQueue::learn`].
    pub stranger: bool,
    /// Packets that came by the same call and are next, if nothing ends the turn before.
    pub behind: usize,
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
pub(crate) struct FairReceiveQueue {
    /// Each with something waiting. The first has its turn.
    senders: VecDeque<Sender>,
    /// What the last packet came with, or nothing.
    block: Bytes,
    /// What the first has had of its turn.
    packets: usize,
    handled: usize,
    bytes: usize,
    dropped: u64,
    spare: Vec<VecDeque<Arrival>>,
    known: KnownPeers,
    /// Who sees `known` beside this; mostly nobody.
    shown: Option<SharedKnownPeers>,
    strangers: VecDeque<Arrival>,
    /// What they count, beside `bytes`.
    stranger_bytes: usize,
    /// A peer's turn is over, and a stranger has had none since.
    stranger_is_next: bool,
    /// In this round: packets of strangers, and whether a peer had a turn.
    strangers_handled: usize,
    had_peers: bool,
}

impl FairReceiveQueue {
    /// Such that show whom they know.
    pub(crate) fn that_show(shown: Option<SharedKnownPeers>) -> Self {
        Self {
            shown,
            ..Self::default()
        }
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.senders.is_empty() && self.strangers.is_empty()
    }

    /// A round begins.
    pub(crate) fn begin_round(&mut self) {
        (self.strangers_handled, self.had_peers) = (0, false);
    }

    /// An association took a packet of this sender's, which is no stranger until that is [forgotten](Self::forget).
    pub(crate) fn learn(&mut self, from: SocketAddr) {
        self.known.insert(from);
        if let Some(shown) = &self.shown {
            shown.insert(from);
        }
    }

    /// An association that had learned of this sender is gone.
    pub(crate) fn forget(&mut self, from: &SocketAddr) {
        self.known.remove(from);
        if let Some(shown) = &self.shown {
            shown.remove(from);
        }
    }

    /// Whether more should be received. Also where much waits: what is left in the system's buffers has no turns there, and
    /// the others' packets would be lost behind those of one that sends too much.
    pub(crate) fn has_room(&self) -> bool {
        self.senders.len() < MAX_SENDERS
    }

    /// Packets dropped so far since too much waited.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// After what one call received: beyond the bound, the sender with the most waiting loses its newest.
    pub(crate) fn drop_too_many(&mut self) {
        while self.bytes > MAX_WAITING {
            self.drop_of_the_longest();
        }
    }

    /// Takes what was received. After what came by one call follows [`FairReceiveQueue::drop_too_many`].
    pub(crate) fn push(&mut self, arrival: Arrival) {
        self.push_as(arrival, None);
    }

    /// The same, of a sender of whom it is known otherwise whether it is a peer's or a stranger's.
    pub(crate) fn push_of(&mut self, arrival: Arrival, is_peer: bool) {
        self.push_as(arrival, Some(is_peer));
    }

    #[inline(always)]
    fn push_as(&mut self, arrival: Arrival, is_peer: Option<bool>) {
        if is_init(&arrival.packets) {
            return self.push_stranger(arrival);
        }
        let cost = cost(&arrival);
        // What comes by one call is mostly of few senders, and in rows.
        let mut newest_first = self.senders.iter_mut().rev();
        if let Some(sender) = newest_first.find(|it| it.from == arrival.from) {
            self.bytes += cost;
            sender.bytes += cost;
            sender.arrivals.push_back(arrival);
            return;
        }
        if !is_peer.unwrap_or_else(|| self.known.contains(&arrival.from)) {
            return self.push_stranger(arrival);
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

    fn push_stranger(&mut self, arrival: Arrival) {
        let cost = cost(&arrival);
        if self.stranger_bytes + cost > MAX_STRANGERS {
            self.dropped += packets_of(&arrival);
            return;
        }
        self.stranger_bytes += cost;
        self.strangers.push_back(arrival);
    }

    /// Moves what waits here to where it waits on, as far as that has room. What the senders are is found out there.
    pub(crate) fn move_to(&mut self, other: &mut Self) {
        while other.has_room()
            && let Some(mut sender) = self.senders.pop_front()
        {
            self.bytes -= sender.bytes;
            sender.arrivals.drain(..).for_each(|it| other.push(it));
            other.drop_too_many();
            if self.spare.len() < MAX_SPARE {
                self.spare.push(sender.arrivals);
            }
        }
        self.strangers.drain(..).for_each(|it| other.push(it));
        self.stranger_bytes = 0;
        other.drop_too_many();
    }

    /// Packets dropped since this was last asked.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    /// Whether the next packet is a stranger's; `None`: there is no next packet in this round.
    fn next_is_a_strangers(&self) -> Option<bool> {
        let may = !self.strangers.is_empty() && self.strangers_handled < ROUND_STRANGERS;
        if self.senders.is_empty() {
            // Those who had a turn have sent more by now, perhaps.
            (may && (self.stranger_is_next || !self.had_peers)).then_some(true)
        } else {
            Some(may && self.stranger_is_next)
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

    /// The next sender's turn comes, and before it a stranger's packet.
    fn end_turn(&mut self) {
        (self.packets, self.handled) = (0, 0);
        self.stranger_is_next = true;
    }

    /// The packet that [`FairReceiveQueue::pop`] gives next, and our address that it came to.
    pub(crate) fn peek(&self) -> Option<(IpAddr, &[u8])> {
        let arrival = match self.next_is_a_strangers()? {
            true => self.strangers.front(),
            false => self.senders.front()?.arrivals.front(),
        }?;
        Some((arrival.local, &arrival.left()[..first_of(arrival)]))
    }

    /// What holds the packet that [`FairReceiveQueue::pop`] gave last.
    pub(crate) fn block(&self) -> &Bytes {
        &self.block
    }

    /// No packet that was given is looked at any more.
    pub(crate) fn release_block(&mut self) {
        self.block = Bytes::new();
    }

    /// The packet whose turn it is; `None` also where what waits is for the next round.
    pub(crate) fn pop(&mut self) -> Option<QueuedPacket> {
        if self.next_is_a_strangers()? {
            return self.pop_stranger();
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

    fn pop_stranger(&mut self) -> Option<QueuedPacket> {
        self.stranger_is_next = false;
        self.strangers_handled += 1;
        let arrival = self.strangers.front_mut()?;
        let before = cost(arrival);
        let turn = take_first(arrival, &mut self.block, true);
        let after = if arrival.left().is_empty() {
            self.strangers.pop_front();
            0
        } else {
            cost(arrival)
        };
        self.stranger_bytes -= before - after;
        Some(turn)
    }

    /// Forgets everything: nobody is there to take it.
    pub(crate) fn clear(&mut self) {
        while !self.senders.is_empty() {
            self.senders[0].arrivals.clear();
            self.forget_if_empty(0);
        }
        self.strangers.clear();
        (self.bytes, self.stranger_bytes) = (0, 0);
    }
}

/// Whether the first packet of these has the verification tag 0, which only INIT may have.
fn is_init(packets: &[u8]) -> bool {
    packets.get(TAG).is_some_and(|tag| tag == [0; 4])
}

/// Takes the first packet out of an arrival. `block` becomes what it lies in: all packets of a call share one reference to that.
fn take_first(arrival: &mut Arrival, block: &mut Bytes, stranger: bool) -> QueuedPacket {
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
        stranger,
        behind: 0,
    }
}

/// Bytes that an arrival counts.
fn cost(arrival: &Arrival) -> usize {
    arrival.left().len() + OVERHEAD
}

/// Bytes of its first packet.
fn first_of(arrival: &Arrival) -> usize {
    arrival.stride.min(arrival.left().len())
}

fn packets_of(arrival: &Arrival) -> u64 {
    arrival.left().len().div_ceil(arrival.stride.max(1)) as u64
}

#[cfg(test)]
mod tests;
