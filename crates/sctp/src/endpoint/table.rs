//! The associations of an endpoint, found by the peer's address and port.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use crate::association::Association;

/// Names an association of an endpoint. It is not reused after the association was released.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssociationId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// A place for an association.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    association: Option<Box<Association>>,
    /// What finds it in `by_peer`.
    keys: Vec<(u16, IpAddr)>,
    waits_to_transmit: bool,
    waits_to_tell: bool,
}

/// All associations, and the queues of those that have something to send or to tell.
#[derive(Debug, Default)]
pub(super) struct Table {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_peer: BTreeMap<(u16, IpAddr), u32>,
    /// The peer that was looked for and found last: packets come in rows.
    last: Option<((u16, IpAddr), u32)>,
    /// Associations whose INIT is unanswered, by their tag: the INIT ACK may come from an address not known yet
    /// (RFC 9260 §5.1.2 B).
    by_tag: BTreeMap<u32, u32>,
    to_transmit: VecDeque<u32>,
    to_tell: VecDeque<u32>,
}

impl Table {
    /// Takes in an association and makes it findable.
    pub(super) fn insert(&mut self, association: Box<Association>) -> AssociationId {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() as u32 - 1
        });
        let entry = &mut self.slots[slot as usize];
        entry.association = Some(association);
        let id = AssociationId {
            slot,
            generation: entry.generation,
        };
        self.index(slot);
        id
    }

    /// Makes the association findable by all its addresses. An address that another association of the same port holds
    /// already stays with that one: nobody takes over a peer by listing its address (RFC 5062 §2.2).
    pub(super) fn index(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else {
            return;
        };
        let Some(association) = entry.association.as_mut() else {
            return;
        };
        association.addresses_changed = false;
        for address in association.remote_addresses() {
            let key = (association.remote_port(), address);
            if !entry.keys.contains(&key)
                && let std::collections::btree_map::Entry::Vacant(vacant) = self.by_peer.entry(key)
            {
                vacant.insert(slot);
                entry.keys.push(key);
            }
        }
    }

    /// Remembers the tag under which an INIT ACK will come.
    pub(super) fn await_init_ack(&mut self, id: AssociationId, tag: u32) {
        self.by_tag.insert(tag, id.slot);
    }

    pub(super) fn tag_in_use(&self, tag: u32) -> bool {
        self.by_tag.contains_key(&tag)
    }

    /// The association with the peer at `address` and `port`.
    pub(super) fn find(&mut self, port: u16, address: IpAddr) -> Option<u32> {
        let key = (port, address);
        if let Some((last, slot)) = self.last
            && last == key
        {
            return Some(slot);
        }
        let slot = self.by_peer.get(&key).copied()?;
        self.last = Some((key, slot));
        Some(slot)
    }

    /// The association whose INIT carried `tag`.
    pub(super) fn find_waiting(&self, tag: u32) -> Option<u32> {
        self.by_tag.get(&tag).copied()
    }

    pub(super) fn slot_of(&self, id: AssociationId) -> Option<u32> {
        let entry = self.slots.get(id.slot as usize)?;
        (entry.generation == id.generation && entry.association.is_some()).then_some(id.slot)
    }

    pub(super) fn id_of(&self, slot: u32) -> AssociationId {
        AssociationId {
            slot,
            generation: self.slots[slot as usize].generation,
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Association> {
        self.slots.get(slot as usize)?.association.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Association> {
        self.slots
            .get_mut(slot as usize)?
            .association
            .as_deref_mut()
    }

    /// Makes the association unfindable: packets of its peer are out of the blue from now on.
    pub(super) fn detach(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot as usize) else {
            return;
        };
        for key in entry.keys.drain(..) {
            self.by_peer.remove(&key);
        }
        self.last = None;
        if let Some(association) = &entry.association
            && self.by_tag.get(&association.local_tag) == Some(&slot)
        {
            self.by_tag.remove(&association.local_tag);
        }
    }

    /// Forgets the association whole.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Association>> {
        self.detach(slot);
        let entry = self.slots.get_mut(slot as usize)?;
        let association = entry.association.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.push(slot);
        Some(association)
    }

    /// The slots in use, lowest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = AssociationId> + '_ {
        (0..self.slots.len() as u32)
            .filter(|&slot| self.get(slot).is_some())
            .map(|slot| self.id_of(slot))
    }

    /// Associations that are not closed yet, or closed and not yet released.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Notes that `slot` may have something to send, and may have something to tell.
    pub(super) fn touch(&mut self, slot: u32) {
        self.sends(slot);
        self.tells(slot);
    }

    /// Notes that `slot` may have something to send.
    pub(super) fn sends(&mut self, slot: u32) {
        if let Some(entry) = self.slots.get_mut(slot as usize)
            && !std::mem::replace(&mut entry.waits_to_transmit, true)
        {
            self.to_transmit.push_back(slot);
        }
    }

    /// Notes that `slot` has something to tell.
    pub(super) fn tells(&mut self, slot: u32) {
        if let Some(entry) = self.slots.get_mut(slot as usize)
            && !std::mem::replace(&mut entry.waits_to_tell, true)
        {
            self.to_tell.push_back(slot);
        }
    }

    /// The slot whose turn it is to send.
    pub(super) fn next_to_transmit(&self) -> Option<u32> {
        self.to_transmit.front().copied()
    }

    /// That slot has nothing more to send.
    pub(super) fn transmitted(&mut self) {
        if let Some(slot) = self.to_transmit.pop_front() {
            self.slots[slot as usize].waits_to_transmit = false;
        }
    }

    /// The slot whose turn it is to tell.
    pub(super) fn next_to_tell(&self) -> Option<u32> {
        self.to_tell.front().copied()
    }

    /// That slot has nothing more to tell.
    pub(super) fn told(&mut self) {
        if let Some(slot) = self.to_tell.pop_front() {
            self.slots[slot as usize].waits_to_tell = false;
        }
    }
}
