//! Shard groups: drivers that appear to peers as one endpoint. Each driver has its own sockets, at
//! the same addresses and UDP port, and its own associations.
//!
//! The system delivers each packet to one of the sockets. If the verification tag belongs to
//! another driver, the packet is put into that driver's mailbox. The mailbox is bounded and fair
//! like a [`FairReceiveQueue`], because any host may fill it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::receive_buffers::Arrival;
use crate::receive_queue::{FairReceiveQueue, SharedKnownPeers};
use crate::shard_peers::SharedPeers;

/// Position of the verification tag in the common header (RFC 9260 §3.1).
const TAG: std::ops::Range<usize> = 4..8;

/// All shards of a group.
#[derive(Debug)]
struct ShardGroup {
    peers: SharedPeers,
    boxes: Vec<Mailbox>,
}

/// Packets that other drivers have received for one driver.
#[derive(Debug, Default)]
struct Mailbox {
    mail: Mutex<MailboxState>,
    /// The known peers of the driver that owns the mailbox.
    known: SharedKnownPeers,
    /// True if the mailbox is not empty. Changed under the lock.
    has_some: AtomicBool,
    /// True if the driver should be woken. The next task that holds no lock wakes it, because a
    /// waker may run any code.
    to_wake: AtomicBool,
    waker: Mutex<Option<Arc<Waker>>>,
}

#[derive(Debug, Default)]
struct MailboxState {
    receive_queue: FairReceiveQueue,
    /// Number of packets that arrived so far, and that were dropped because the mailbox was full.
    came: u64,
    dropped: u64,
    /// True after the driver has ended.
    closed: bool,
}

/// A driver's membership in its group, which ends when the handle is dropped.
#[derive(Debug)]
pub(crate) struct ShardHandle {
    group: Arc<ShardGroup>,
    number: u32,
}

/// The packets that a driver has taken from its mailbox.
#[derive(Debug, Default)]
pub(crate) struct ReceivedMail {
    receive_queue: FairReceiveQueue,
    pub came: u64,
    pub dropped: u64,
}

impl ShardHandle {
    /// Creates a group; returns the handles of its `count` members.
    pub(crate) fn all(count: u32) -> Vec<Self> {
        let peers = SharedPeers::new(count);
        let boxes = (0..count).map(|_| Mailbox::default()).collect();
        let group = Arc::new(ShardGroup { peers, boxes });
        let shard_handle = |number| Self {
            group: Arc::clone(&group),
            number,
        };
        (0..count).map(shard_handle).collect()
    }

    /// Number of the shard, counted from 0.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The list of peers that all endpoints of the group share.
    pub(crate) fn peers(&self) -> &SharedPeers {
        &self.group.peers
    }

    /// The known peers of this driver, as other shards see them.
    pub(crate) fn known_peers(&self) -> SharedKnownPeers {
        self.own().known.clone()
    }

    fn own(&self) -> &Mailbox {
        &self.group.boxes[self.number as usize]
    }

    /// Sets the waker of the driver. Returns the previous waker, which should be dropped without
    /// locks.
    pub(crate) fn set_waker(&self, waker: Waker) -> Option<Arc<Waker>> {
        self.own().waker().replace(Arc::new(waker))
    }

    /// Sorts the packets of a receive call by the shard that owns their tags: own packets are
    /// queued, and all others are put into the mailboxes of their owners. Returns true if packets
    /// were put into mailboxes.
    pub(crate) fn sort_by_owner(
        &self,
        mut arrival: Arrival,
        receive_queue: &mut FairReceiveQueue,
    ) -> bool {
        let mut handed = false;
        while let Some(end) = self.end_of_first(&arrival) {
            let first = Arrival {
                packets: arrival.packets.split_to(end),
                ..arrival
            };
            handed |= self.deliver(first, receive_queue);
        }
        handed | self.deliver(arrival, receive_queue)
    }

    /// Length of the packets at the start that have the same owner, bytes; `None` if all have one
    /// owner.
    fn end_of_first(&self, arrival: &Arrival) -> Option<usize> {
        debug_assert_eq!(arrival.taken, 0, "it has just come");
        let mut packets = arrival.packets.chunks(arrival.stride.max(1));
        let first = self.owner(packets.next()?);
        let same = packets.take_while(|it| self.owner(it) == first).count() + 1;
        let end = same * arrival.stride.max(1);
        (end < arrival.packets.len()).then_some(end)
    }

    /// The shard that owns a packet. A packet without a tag, or with tag 0, is owned by the shard
    /// that has received it.
    fn owner(&self, packet: &[u8]) -> u32 {
        match packet.get(TAG).map(number) {
            None | Some(0) => self.number,
            Some(tag) => self.group.peers.of_tag(tag),
        }
    }

    /// Delivers packets of one owner. Returns true if the owner is another shard.
    fn deliver(&self, arrival: Arrival, receive_queue: &mut FairReceiveQueue) -> bool {
        let owner = self.owner(arrival.left());
        if owner == self.number {
            receive_queue.push(arrival);
            return false;
        }
        match self.hand_over(owner, arrival) {
            Ok(()) => true,
            // The other driver has ended, and its associations with it: this driver answers the
            // packets as out of the blue.
            Err(arrival) => {
                receive_queue.push(arrival);
                false
            }
        }
    }

    /// Puts packets into the mailbox of another driver; returns the packets if that driver has
    /// ended. The caller must call [`ShardHandle::wake_others`] afterwards, without locks.
    pub(crate) fn hand_over(&self, to: u32, arrival: Arrival) -> Result<(), Arrival> {
        let Some(to_box) = self.group.boxes.get(to as usize) else {
            return Err(arrival);
        };
        let is_peer = to_box.known.contains(&arrival.from);
        let count = arrival.left().len().div_ceil(arrival.stride.max(1)) as u64;
        let mut mail = to_box.lock();
        if mail.closed {
            return Err(arrival);
        }
        mail.came += count;
        if mail.receive_queue.has_room() {
            mail.receive_queue.push_of(arrival, is_peer);
            mail.receive_queue.drop_excess();
        } else {
            mail.dropped += count;
        }
        if !to_box.has_some.swap(true, Ordering::Relaxed) {
            to_box.to_wake.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Wakes the drivers whose mailboxes have received packets. Call this only without locks.
    pub(crate) fn wake_others(&self) {
        for to_box in &self.group.boxes {
            if to_box.to_wake.load(Ordering::Relaxed)
                && to_box.to_wake.swap(false, Ordering::Acquire)
            {
                let waker = to_box.waker().clone();
                if let Some(waker) = waker {
                    waker.wake_by_ref();
                }
            }
        }
    }

    /// Moves packets from the mailbox to `receive_queue` until that is full. Returns true if
    /// packets are left in the mailbox.
    pub(crate) fn take(
        &self,
        taken: &mut ReceivedMail,
        receive_queue: &mut FairReceiveQueue,
    ) -> bool {
        let own = self.own();
        if taken.receive_queue.is_empty() && own.has_some.load(Ordering::Relaxed) {
            let mut mail = own.lock();
            own.has_some.store(false, Ordering::Relaxed);
            std::mem::swap(&mut mail.receive_queue, &mut taken.receive_queue);
            taken.came = mail.came;
            mail.dropped += taken.receive_queue.take_dropped();
            taken.dropped = mail.dropped;
        }
        if !taken.receive_queue.is_empty() {
            taken.receive_queue.move_to(receive_queue);
        }
        !taken.receive_queue.is_empty() || own.has_some.load(Ordering::Relaxed)
    }

    /// Called when the driver ends: packets for it are dropped from now on.
    pub(crate) fn close(&self) {
        let mut mail = self.own().lock();
        mail.closed = true;
        mail.receive_queue = FairReceiveQueue::default();
        drop(mail);
        let waker = self.own().waker().take();
        drop(waker);
    }
}

impl Drop for ShardHandle {
    fn drop(&mut self) {
        self.close();
    }
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waker(&self) -> MutexGuard<'_, Option<Arc<Waker>>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads a number in network byte order.
fn number(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(0, |number, &byte| number << 8 | u32::from(byte))
}

#[cfg(test)]
mod tests;
