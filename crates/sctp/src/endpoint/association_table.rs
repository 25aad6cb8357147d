//! Associations of an endpoint, found by the peer's address and port.
//!
//! A verified address (RFC 9260 §5.4) belongs to one association. Other associations may list the
//! address as unverified. Such an association receives only its own packets from the address,
//! identified by its tag. A peer that lists the address of another host therefore neither locks out
//! that host nor impersonates it (RFC 5062 §2).

mod detached;

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use anabranch_transport::Path;
use anabranch_wire::packet::CommonHeader;
use smallvec::SmallVec;

use super::association_event::{Detached, Input};
use super::intrusive_queue::{IntrusiveQueue, QueueLink};
use super::shard::Shard;
use super::siphash_map::{HashKey, SipHashMap};
use super::slab::Slab;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::lazy_box::LazyBox;
use crate::path::{PathEntry, PathId};

/// The peer's port and one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    port: u16,
    address: IpAddr,
}

impl Hash for Key {
    /// Hashes as few words as possible: one for IPv4. IPv4 and IPv6 keys cannot collide, because
    /// their lengths differ and the length is hashed, too.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.address {
            IpAddr::V4(address) => {
                state.write_u64(u64::from(address.to_bits()) << 16 | u64::from(self.port));
            }
            IpAddr::V6(address) => {
                state.write_u128(address.to_bits());
                state.write_u16(self.port);
            }
        }
    }
}

/// Maximum number of associations examined that list the same address and tag. Tags drawn by this
/// endpoint are unique. Only peers can cause equal tags, because peers choose their own tags. A
/// peer that does this harms only its own associations.
const MAX_ALIKE: usize = 4;

/// Source, destination and common header of a packet: lookup key of the last flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowKey {
    pub(super) header: CommonHeader,
    pub(super) udp_port: u16,
    pub(super) path: Path,
}

/// Slot for an association.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    association: Option<Box<Association>>,
    /// Keys of the association in `by_peer`, which are its verified addresses; usually one.
    keys: SmallVec<[Key; 1]>,
    /// Keys of the association in `claims`.
    claims: LazyBox<Vec<(Key, u32)>>,
    /// Links of the queues `to_transmit` and `ready`.
    transmits: QueueLink,
    ready: QueueLink,
}

/// All associations, and the queues of associations that have packets to send or events to report.
#[derive(Debug)]
pub(super) struct AssociationTable {
    slots: Slab<Slot>,
    free: LazyBox<Vec<u32>>,
    by_peer: SipHashMap<Key>,
    secret: HashKey,
    /// Associations that list an unverified address, by address and by each of their two tags.
    claims: LazyBox<BTreeSet<(Key, u32, u32)>>,
    /// Last peer that was found, cached because packets often arrive in series.
    last: Option<(Key, u32)>,
    /// Source, ports and tag of the last packet with DATA or SACK that matched its association. The
    /// next packet with the same values belongs to the same association, until any lookup key
    /// changes.
    way: Option<(FlowKey, u32)>,
    /// Associations whose INIT is unanswered, by their tag, because the INIT ACK may come from an
    /// unknown address (RFC 9260 §5.1.2 B).
    by_tag: SipHashMap<u32>,
    shard: Shard,
    /// Associations that the driver has detached.
    detached: LazyBox<Detached>,
    to_transmit: IntrusiveQueue,
    ready: IntrusiveQueue,
}

impl AssociationTable {
    /// Empty table. `key` is the secret key of the hash tables.
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self {
            slots: Slab::default(),
            free: LazyBox::default(),
            by_peer: SipHashMap::default(),
            secret: HashKey(key),
            claims: LazyBox::default(),
            last: None,
            way: None,
            by_tag: SipHashMap::default(),
            shard: Shard::default(),
            detached: LazyBox::default(),
            to_transmit: IntrusiveQueue::default(),
            ready: IntrusiveQueue::default(),
        }
    }

    /// Inserts an association and its lookup keys.
    pub(super) fn insert(&mut self, association: Box<Association>) -> AssociationId {
        let slot = self
            .free
            .change(Vec::pop)
            .flatten()
            .unwrap_or_else(|| self.slots.add());
        let entry = self.slots.of_mut(slot);
        entry.association = Some(association);
        let id = AssociationId {
            slot,
            generation: entry.generation,
        };
        self.index(slot);
        id
    }

    /// Updates the lookup keys of the association to its current addresses. A newly verified
    /// address is removed from other associations that list it, unless another association has
    /// already verified it.
    pub(super) fn index(&mut self, slot: u32) {
        self.index_all(slot);
        let by_peer = &self.by_peer;
        let owned = |port, address| by_peer.get(&Key { port, address }).is_some();
        self.shard.settle(owned);
    }

    fn index_all(&mut self, slot: u32) {
        self.way = None;
        self.withdraw_claims(slot);
        let Some(association) = self.get_mut(slot) else {
            return self.index_detached(slot);
        };
        association.addresses_learnt();
        let port = association.remote_port();
        let tags = [
            association.local_tag(),
            association.peer_tag().unwrap_or_default(),
        ];
        let paths = association.paths().len();
        let first = association.paths().get(PathId(0));
        let (address, settled) = (first.path.remote, first.verified && !first.disowned);
        if paths == 1 && settled && self.slots.of(slot).keys.is_empty() {
            // Fast path for a new association with one verified address.
            return self.own_verified(slot, Key { port, address });
        }
        let owns = |it: &PathEntry| it.verified && !it.disowned;
        self.forget_lost_keys(slot, |it, address| {
            let it = it.get(slot);
            it.is_some_and(|it| {
                let mut paths = it.paths().iter();
                paths.any(|(_, it)| it.path.remote == address && owns(it))
            })
        });
        for path in (0..paths).filter_map(|path| u8::try_from(path).ok()) {
            let entry = self.get(slot).map(|it| it.paths().get(PathId(path)));
            let Some(entry) = entry.filter(|entry| !entry.disowned) else {
                continue;
            };
            let (address, verified) = (entry.path.remote, entry.verified);
            self.index_address(slot, Key { port, address }, verified, tags);
        }
    }

    /// Updates the lookup keys of one address of the association.
    fn index_address(&mut self, slot: u32, key: Key, verified: bool, tags: [u32; 2]) {
        if self.slots.of(slot).keys.contains(&key) {
            return;
        }
        if verified {
            self.own_verified(slot, key);
        } else if self.owner(key).is_some() || self.shard.other(key.port, key.address).is_some() {
            self.disown(slot, key.address);
        } else {
            self.claim(slot, key, tags);
        }
    }

    /// Removes the keys of addresses that are no longer verified addresses of the association, as
    /// determined by `owns`.
    fn forget_lost_keys(&mut self, slot: u32, owns: impl Fn(&Self, IpAddr) -> bool) {
        let mut keys = std::mem::take(&mut self.slots.of_mut(slot).keys);
        keys.retain(|&mut key| {
            let kept = owns(self, key.address);
            if !kept {
                self.by_peer.remove(&key);
                self.shard.release(key.port, key.address);
                self.last = None;
            }
            kept
        });
        self.slots.of_mut(slot).keys = keys;
    }

    /// Open association that has verified the address.
    fn owner(&mut self, key: Key) -> Option<u32> {
        let owner = self.by_peer.get(&key)?;
        self.lives(owner).then_some(owner)
    }

    /// Whether the association is open. Removes the lookup keys of a closed association.
    pub(super) fn lives(&mut self, slot: u32) -> bool {
        let lives = match self.get(slot) {
            Some(association) => !association.is_closed(),
            None => self.view(slot).is_some_and(|it| !it.is_closed()),
        };
        if lives {
            return true;
        }
        self.remove_keys(slot);
        false
    }

    /// Assigns the address to the association, unless another association or shard has verified it.
    fn own(&mut self, slot: u32, key: Key) -> bool {
        if let Some(other) = self.by_peer.insert_new(key, slot, self.secret) {
            if self.lives(other) {
                return false;
            }
            self.by_peer.insert(key, slot, self.secret);
        }
        if !self.shard.take(key.port, key.address) {
            self.by_peer.remove(&key);
            return false;
        }
        self.slots.of_mut(slot).keys.push(key);
        // The key is cached, because the next packets probably belong to this association.
        self.last = Some((key, slot));
        if self.claims.is_empty() {
            return true;
        }
        let all = (key, 0, 0)..=(key, u32::MAX, u32::MAX);
        let others: BTreeSet<u32> = self.claims.range(all).map(|&(_, _, slot)| slot).collect();
        for other in others {
            self.disown(other, key.address);
            self.touch(other);
        }
        true
    }

    /// Records that the association has verified the address. If another association or shard has
    /// verified it earlier, this association loses the address.
    fn own_verified(&mut self, slot: u32, key: Key) {
        if !self.own(slot, key) {
            let Key { address, .. } = key;
            // A detached association may verify the address of another peer before the endpoint has
            // removed the address from it.
            debug_assert!(
                self.shard.has_any() || self.detached.has_any(),
                "two have verified {address}"
            );
            match self.get_mut(slot) {
                Some(association) => association.lose(address),
                None => self.disown_detached(slot, address, Input::Lose(address)),
            }
        }
    }

    fn claim(&mut self, slot: u32, key: Key, tags: [u32; 2]) {
        for tag in tags {
            if self.claims.make().insert((key, tag, slot)) {
                self.shard.claim(key.port, key.address, tag, slot);
                let claims = self.slots.of_mut(slot).claims.make();
                claims.push((key, tag));
            }
        }
    }

    /// Removes `address` from the association, because it belongs to another peer.
    fn disown(&mut self, slot: u32, address: IpAddr) {
        let entry = self.slots.of_mut(slot);
        let claimed = |claim: &mut (Key, u32)| claim.0.address == address;
        let gone = (entry.claims).change(|it| it.extract_if(.., claimed).collect::<Vec<_>>());
        for (key, tag) in gone.into_iter().flatten() {
            self.shard.withdraw(key.port, key.address, tag, slot);
            self.claims.change(|it| it.remove(&(key, tag, slot)));
        }
        match self.get_mut(slot) {
            Some(association) => association.disown(address),
            None => self.disown_detached(slot, address, Input::Disown(address)),
        }
    }

    fn withdraw_claims(&mut self, slot: u32) {
        let Some(entry) = self.slots.get_mut(slot) else {
            return;
        };
        for (key, tag) in entry.claims.take() {
            self.shard.withdraw(key.port, key.address, tag, slot);
            self.claims.change(|it| it.remove(&(key, tag, slot)));
        }
    }

    /// Associations that list this unverified address, and have `tag` as their own or their peer's
    /// tag.
    pub(super) fn claimants(
        &self,
        port: u16,
        address: IpAddr,
        tag: u32,
    ) -> impl Iterator<Item = u32> + '_ {
        let key = Key { port, address };
        let alike = self.claims.range((key, tag, 0)..=(key, tag, u32::MAX));
        alike.take(MAX_ALIKE).map(|&(_, _, slot)| slot)
    }

    /// Registers the tag with which an INIT ACK will arrive.
    pub(super) fn await_init_ack(&mut self, id: AssociationId, tag: u32) {
        self.by_tag.insert(tag, id.slot, self.secret);
    }

    /// Changes the tag of the association, which waits for an INIT ACK, to `tag`; returns the
    /// previous tag. The caller must index the association next.
    pub(super) fn renew_tag(&mut self, slot: u32, tag: u32) -> Option<u32> {
        let former = self.get_mut(slot)?.replace_tag(tag);
        if self.by_tag.get(&former) == Some(slot) {
            self.by_tag.remove(&former);
        }
        self.by_tag.insert(tag, slot, self.secret);
        Some(former)
    }

    pub(super) fn tag_in_use(&self, tag: u32) -> bool {
        self.by_tag.get(&tag).is_some()
    }

    /// Association whose peer is verified at `address` and `port`.
    pub(super) fn find(&mut self, port: u16, address: IpAddr) -> Option<u32> {
        let key = Key { port, address };
        if let Some((last, slot)) = self.last
            && last == key
        {
            return Some(slot);
        }
        let slot = self.by_peer.get(&key)?;
        self.last = Some((key, slot));
        Some(slot)
    }

    /// Records that a packet belonged to the association. `way`: further packets with this flow key
    /// belong to the association, too.
    pub(super) fn came(&mut self, way: Option<FlowKey>, slot: u32) {
        self.way = way.map(|way| (way, slot));
    }

    /// Association of the last packet, if the current packet has the same flow key.
    #[inline]
    pub(super) fn comes_again(&self, way: &FlowKey) -> Option<u32> {
        let (last, slot) = self.way.as_ref()?;
        (last == way).then_some(*slot)
    }

    /// Association that waits for an INIT ACK with `tag`.
    pub(super) fn find_waiting(&self, tag: u32) -> Option<u32> {
        self.by_tag.get(&tag)
    }

    pub(super) fn slot_of(&self, id: AssociationId) -> Option<u32> {
        let entry = self.slots.get(id.slot)?;
        (entry.generation == id.generation && entry.association.is_some()).then_some(id.slot)
    }

    pub(super) fn id_of(&self, slot: u32) -> AssociationId {
        AssociationId {
            slot,
            generation: self.slots.of(slot).generation,
        }
    }

    pub(super) fn get(&self, slot: u32) -> Option<&Association> {
        self.slots.get(slot)?.association.as_deref()
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Association> {
        self.slots.get_mut(slot)?.association.as_deref_mut()
    }

    /// Whether lookup keys lead to the association, so that packets of its peer find it.
    pub(super) fn is_findable(&self, slot: u32) -> bool {
        let entry = self.slots.get(slot);
        entry.is_some_and(|entry| {
            let tag = self.local_tag(slot);
            !entry.keys.is_empty() || tag.is_some_and(|tag| self.by_tag.get(&tag) == Some(slot))
        })
    }

    /// Removes all lookup keys of the association: packets of its peer are out of the blue from now
    /// on.
    pub(super) fn remove_keys(&mut self, slot: u32) {
        self.way = None;
        self.withdraw_claims(slot);
        let Some(entry) = self.slots.get_mut(slot) else {
            return;
        };
        for key in entry.keys.drain(..) {
            self.by_peer.remove(&key);
            self.shard.release(key.port, key.address);
        }
        self.last = None;
        if let Some(tag) = self.local_tag(slot)
            && self.by_tag.get(&tag) == Some(slot)
        {
            self.by_tag.remove(&tag);
        }
    }

    /// Verification tag of packets sent by the peer of the association.
    fn local_tag(&self, slot: u32) -> Option<u32> {
        match self.get(slot) {
            Some(association) => Some(association.local_tag()),
            None => self.view(slot).map(|it| it.local_tag),
        }
    }

    /// Like [`Self::remove_keys`], for an association that is indexed again afterwards. Until then
    /// no other shard can claim its peer.
    pub(super) fn remove_keys_to_index(&mut self, slot: u32) {
        self.shard.hold();
        self.remove_keys(slot);
    }

    /// Sets the shard membership of the endpoint.
    pub(super) fn join(&mut self, shard: Shard) {
        self.shard = shard;
    }

    /// Shard membership of the endpoint.
    #[inline]
    pub(super) fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Claims the peer with these addresses for an association that will be inserted. Fails if
    /// another shard has an association with this peer.
    pub(super) fn reserve(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        self.shard.take_all(port, addresses)
    }

    /// Removes the association completely.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Association>> {
        self.remove_keys(slot);
        let entry = self.slots.get_mut(slot)?;
        let association = entry.association.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.make().push(slot);
        Some(association)
    }

    /// Used slots in ascending order.
    pub(super) fn ids(&self) -> impl Iterator<Item = AssociationId> + '_ {
        let used = self.slots().filter(|&slot| self.get(slot).is_some());
        used.map(|slot| self.id_of(slot))
    }

    /// All slots in ascending order, used or not.
    pub(super) fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        0..self.slots.len()
    }

    /// Number of associations that were not released, closed or not.
    pub(super) fn len(&self) -> usize {
        self.slots.len() as usize - self.free.len()
    }

    /// Records that `slot` may have packets to send and events to report.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        self.sends(slot);
        self.note_output(slot);
    }

    /// Like [`Self::touch`], but not inlined, for callers outside of the fast path.
    #[inline(never)]
    pub(super) fn touch_out_of_line(&mut self, slot: u32) {
        self.touch(slot);
    }

    /// Records that `slot` may have packets to send.
    #[inline(always)]
    pub(super) fn sends(&mut self, slot: u32) {
        (self.to_transmit).push(&mut self.slots, slot, |it| &mut it.transmits);
    }

    /// Records that `slot` has events to report.
    #[inline(always)]
    pub(super) fn note_output(&mut self, slot: u32) {
        (self.ready).push(&mut self.slots, slot, |it| &mut it.ready);
    }

    /// Next slot with packets to send, in round robin order.
    pub(super) fn next_to_transmit(&self) -> Option<u32> {
        self.to_transmit.first()
    }

    /// Removes the first slot of the send queue, which has no more packets to send.
    pub(super) fn transmitted(&mut self) {
        (self.to_transmit).pop(&mut self.slots, |it| &mut it.transmits);
    }

    /// Next slot with events, in round robin order.
    #[inline]
    pub(super) fn next_ready(&self) -> Option<u32> {
        self.ready.first()
    }

    /// Removes the first slot of the event queue, which has no more events.
    pub(super) fn pop_ready(&mut self) {
        (self.ready).pop(&mut self.slots, |it| &mut it.ready);
    }
}
