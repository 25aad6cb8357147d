//! The associations of an endpoint, found by the peer's address and port.
//!
//! An address that is verified (RFC 9260 §5.4) belongs to one association. Others may list it as long as it is not; then
//! only their own packets, told by their tags, come to them from there, so that nobody who lists an address keeps its owner
//! out or is taken for it (RFC 5062 §2).

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

use anabranch_transport::Path;
use anabranch_wire::packet::CommonHeader;
use smallvec::SmallVec;

use super::keyed::{Keyed, Secret};
use super::line::{Line, Place};
use super::shard::Shard;
use super::slots::Slots;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::path::PathId;
use crate::seldom::Seldom;

/// The peer's port and one of its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    port: u16,
    address: IpAddr,
}

impl Hash for Key {
    /// As few words as tell keys apart: one for IPv4. Keys of the two families differ in length, which is hashed, too.
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

/// Claims to one address under one tag that are looked at. Tags that are drawn here differ; those that peers choose, and
/// reflect in an ABORT, may be made alike, to the harm of those who make them so.
const MOST_ALIKE: usize = 4;

/// How a packet came, and what its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) header: CommonHeader,
    pub(super) udp_port: u16,
    pub(super) path: Path,
}

/// A place for an association.
#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    association: Option<Box<Association>>,
    /// What finds it in `by_peer`: its verified addresses. Most have one.
    keys: SmallVec<[Key; 1]>,
    /// What finds it in `claims`.
    claims: Seldom<Vec<(Key, u32)>>,
    /// In `to_transmit` and `to_tell`.
    transmits: Place,
    tells: Place,
}

/// All associations, and the queues of those that have something to send or to tell.
#[derive(Debug)]
pub(super) struct Table {
    slots: Slots<Slot>,
    free: Seldom<Vec<u32>>,
    by_peer: Keyed<Key>,
    secret: Secret,
    /// Associations that list an address which nobody has verified: by the address and each of their two tags.
    claims: Seldom<BTreeSet<(Key, u32, u32)>>,
    /// The peer that was looked for and found last: packets come in rows.
    last: Option<(Key, u32)>,
    /// How the last packet of DATA or SACK came that was one of its association's, by address, ports and tag: another that comes
    /// like it is of the same. Until anything changes by which associations are found.
    way: Option<(Way, u32)>,
    /// Associations whose INIT is unanswered, by their tag: the INIT ACK may come from an address not known yet
    /// (RFC 9260 §5.1.2 B).
    by_tag: Keyed<u32>,
    shard: Shard,
    to_transmit: Line,
    to_tell: Line,
}

impl Table {
    /// `key`: a secret under which it arranges what peers choose.
    pub(super) fn new(key: [u8; 16]) -> Self {
        Self {
            slots: Slots::default(),
            free: Seldom::default(),
            by_peer: Keyed::default(),
            secret: Secret(key),
            claims: Seldom::default(),
            last: None,
            way: None,
            by_tag: Keyed::default(),
            shard: Shard::default(),
            to_transmit: Line::default(),
            to_tell: Line::default(),
        }
    }

    /// Takes in an association and makes it findable.
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

    /// Makes the association findable by all its addresses, as they stand now. One that it has verified is its own from now
    /// on, and no longer of others that list it; one that another association has verified it does not get.
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
            return;
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
            // Most begin so.
            return self.own_verified(slot, Key { port, address });
        }
        self.forget_lost_keys(slot);
        for path in (0..paths).filter_map(|path| u8::try_from(path).ok()) {
            let entry = self.get(slot).map(|it| it.paths().get(PathId(path)));
            let Some(entry) = entry.filter(|entry| !entry.disowned) else {
                continue;
            };
            let (address, verified) = (entry.path.remote, entry.verified);
            let key = Key { port, address };
            if self.slots.of(slot).keys.contains(&key) {
                continue;
            }
            if verified {
                self.own_verified(slot, key);
            } else if self.owner(key).is_some() || self.shard.other(port, address).is_some() {
                self.disown(slot, address);
            } else {
                self.claim(slot, key, tags);
            }
        }
    }

    /// What finds the association no more: addresses that are not its verified ones any longer.
    fn forget_lost_keys(&mut self, slot: u32) {
        let Slot {
            keys, association, ..
        } = self.slots.of_mut(slot);
        let Some(association) = association else {
            return;
        };
        keys.retain(|&mut key| {
            let entries = &mut association.paths().iter();
            let kept =
                entries.any(|(_, it)| it.path.remote == key.address && it.verified && !it.disowned);
            if !kept {
                self.by_peer.remove(&key);
                self.shard.release(key.port, key.address);
                self.last = None;
            }
            kept
        });
    }

    /// Who has verified the address. An association that is over has nothing.
    fn owner(&mut self, key: Key) -> Option<u32> {
        let owner = self.by_peer.get(&key)?;
        self.lives(owner).then_some(owner)
    }

    /// Whether the association goes on; packets find one no more that is over.
    fn lives(&mut self, slot: u32) -> bool {
        if self.get(slot).is_some_and(|it| !it.is_closed()) {
            return true;
        }
        self.detach(slot);
        false
    }

    /// The address is the association's own; not if another has it.
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
        // Its packets come next.
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

    /// The association has verified the address. Another shard may have done so at the same time; it stays that one's.
    fn own_verified(&mut self, slot: u32, key: Key) {
        if !self.own(slot, key) {
            let Key { address, .. } = key;
            debug_assert!(self.shard.has_any(), "two have verified {address}");
            if let Some(association) = self.get_mut(slot) {
                association.lose(address);
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

    /// The association's peer does not have `address`: another's has.
    fn disown(&mut self, slot: u32, address: IpAddr) {
        let entry = self.slots.of_mut(slot);
        let claimed = |claim: &mut (Key, u32)| claim.0.address == address;
        let gone = (entry.claims).change(|it| it.extract_if(.., claimed).collect::<Vec<_>>());
        for (key, tag) in gone.into_iter().flatten() {
            self.shard.withdraw(key.port, key.address, tag, slot);
            self.claims.change(|it| it.remove(&(key, tag, slot)));
        }
        if let Some(association) = self.get_mut(slot) {
            association.disown(address);
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

    /// Associations that list the address, which nobody has verified, and have `tag` for themselves or for their peer.
    pub(super) fn claimants(
        &self,
        port: u16,
        address: IpAddr,
        tag: u32,
    ) -> impl Iterator<Item = u32> + '_ {
        let key = Key { port, address };
        let alike = self.claims.range((key, tag, 0)..=(key, tag, u32::MAX));
        alike.take(MOST_ALIKE).map(|&(_, _, slot)| slot)
    }

    /// Remembers the tag under which an INIT ACK will come.
    pub(super) fn await_init_ack(&mut self, id: AssociationId, tag: u32) {
        self.by_tag.insert(tag, id.slot, self.secret);
    }

    /// The association, which waits for an INIT ACK, has `tag` from now on; gives the one that it
    /// had. The caller indexes it next.
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

    /// The association whose peer has been shown to be at `address` and `port`.
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

    /// A packet of the association's came; `way`: others that come like it are its own.
    pub(super) fn came(&mut self, way: Option<Way>, slot: u32) {
        self.way = way.map(|way| (way, slot));
    }

    /// Whose packets came this way just now.
    #[inline]
    pub(super) fn comes_again(&self, way: &Way) -> Option<u32> {
        let (last, slot) = self.way.as_ref()?;
        (last == way).then_some(*slot)
    }

    /// The association whose INIT carried `tag`.
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

    /// Whether packets of its peer find the association.
    pub(super) fn is_findable(&self, slot: u32) -> bool {
        let entry = self.slots.get(slot);
        entry.is_some_and(|entry| {
            let tag = entry.association.as_ref().map(|it| it.local_tag());
            !entry.keys.is_empty() || tag.is_some_and(|tag| self.by_tag.get(&tag) == Some(slot))
        })
    }

    /// Makes the association unfindable: packets of its peer are out of the blue from now on.
    pub(super) fn detach(&mut self, slot: u32) {
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
        if let Some(association) = &entry.association
            && self.by_tag.get(&association.local_tag()) == Some(slot)
        {
            self.by_tag.remove(&association.local_tag());
        }
    }

    /// The same, for one that is indexed again: no other shard gets a peer of its addresses meanwhile.
    pub(super) fn detach_to_index(&mut self, slot: u32) {
        self.shard.hold();
        self.detach(slot);
    }

    /// Has the endpoint among other shards, or alone.
    pub(super) fn join(&mut self, shard: Shard) {
        self.shard = shard;
    }

    /// What it is among them.
    #[inline]
    pub(super) fn shard(&mut self) -> &mut Shard {
        &mut self.shard
    }

    /// Takes the peer of these addresses for an association that is taken in next; not if another shard has one with it.
    pub(super) fn reserve(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        self.shard.take_all(port, addresses)
    }

    /// Forgets the association whole.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Box<Association>> {
        self.detach(slot);
        let entry = self.slots.get_mut(slot)?;
        let association = entry.association.take()?;
        entry.generation = entry.generation.wrapping_add(1);
        self.free.make().push(slot);
        Some(association)
    }

    /// The slots in use, lowest first.
    pub(super) fn ids(&self) -> impl Iterator<Item = AssociationId> + '_ {
        (0..self.slots.len())
            .filter(|&slot| self.get(slot).is_some())
            .map(|slot| self.id_of(slot))
    }

    /// Associations that are not closed yet, or closed and not yet released.
    pub(super) fn len(&self) -> usize {
        self.slots.len() as usize - self.free.len()
    }

    /// Notes that `slot` may have something to send, and may have something to tell.
    #[inline]
    pub(super) fn touch(&mut self, slot: u32) {
        self.sends(slot);
        self.tells(slot);
    }

    /// As [`Self::touch`], for who comes here seldom.
    #[inline(never)]
    pub(super) fn begins(&mut self, slot: u32) {
        self.touch(slot);
    }

    /// Notes that `slot` may have something to send.
    #[inline(always)]
    pub(super) fn sends(&mut self, slot: u32) {
        (self.to_transmit).push(&mut self.slots, slot, |it| &mut it.transmits);
    }

    /// Notes that `slot` has something to tell.
    #[inline(always)]
    pub(super) fn tells(&mut self, slot: u32) {
        (self.to_tell).push(&mut self.slots, slot, |it| &mut it.tells);
    }

    /// The slot whose turn it is to send.
    pub(super) fn next_to_transmit(&self) -> Option<u32> {
        self.to_transmit.first()
    }

    /// That slot has nothing more to send.
    pub(super) fn transmitted(&mut self) {
        (self.to_transmit).pop(&mut self.slots, |it| &mut it.transmits);
    }

    /// The slot whose turn it is to tell.
    #[inline]
    pub(super) fn next_to_tell(&self) -> Option<u32> {
        self.to_tell.first()
    }

    /// That slot has nothing more to tell.
    pub(super) fn told(&mut self) {
        (self.to_tell).pop(&mut self.slots, |it| &mut it.tells);
    }
}
