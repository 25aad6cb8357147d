//! Endpoints that are one to their peers: each has associations of its own, and none has a peer that another has.
//!
//! They have one port at the same addresses, so a peer sees one SCTP endpoint, which has one association with it at most (RFC 9260 §1.2).
//! Whose a packet is tells its verification tag: each sibling draws tags of a class of its own. An INIT has no tag (§8.5.1 A), and a tag
//! that is reflected is the peer's (§8.5.1 B, C): whose these are tells the peer's address. So siblings have one list of the addresses that
//! their associations' peers have verified. It has as many entries as they have in their tables, and is looked at where an association
//! begins, ends or gets another address, and for packets that no association of one's own takes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Several endpoints that are one to their peers. Clones are handles of the same.
///
/// Each is driven by itself, on a thread of its own where that is wanted. Whoever receives for them hands a packet to the one that its
/// verification tag names ([`Siblings::of_tag`]), and asks after each packet whether it was for another
/// ([`Endpoint::take_misdirected`](super::Endpoint::take_misdirected)).
#[derive(Clone, Debug)]
pub struct Siblings(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    count: u32,
    known: RwLock<Known>,
}

/// A peer's address and port, as one of the endpoints of a sibling knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    local_port: u16,
    port: u16,
    address: IpAddr,
    /// Which of the endpoints that have the port `local_port` it is, each at other addresses.
    place: IpAddr,
}

#[derive(Debug, Default)]
struct Known {
    /// Addresses that peers have verified, and which sibling has the association.
    owners: BTreeMap<Name, u32>,
    /// Addresses that are listed and that nobody has verified: with a tag, the sibling, and the association's slot there.
    claims: BTreeSet<(Name, u32, u32, u32)>,
}

impl Siblings {
    /// So many, at least one.
    pub fn new(count: u32) -> Self {
        Self(Arc::new(Shared {
            count: count.max(1),
            known: RwLock::default(),
        }))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.count
    }

    /// Which of them, counted from 0, draws this verification tag. 0 is an INIT's, which any may take.
    pub fn of_tag(&self, tag: u32) -> u32 {
        tag % self.0.count
    }

    /// Which of them has an association, at the port `local_port`, with a peer that has verified this address and has this port. Where they
    /// have several endpoints with that port, each at other addresses, that of any.
    pub fn owner(&self, local_port: u16, port: u16, address: IpAddr) -> Option<u32> {
        let name = |place: IpAddr| Name {
            local_port,
            port,
            address,
            place,
        };
        let (first, last) = (
            Ipv4Addr::UNSPECIFIED.into(),
            Ipv6Addr::from([0xff; 16]).into(),
        );
        let known = self.read();
        let mut owners = known.owners.range(name(first)..=name(last));
        owners.next().map(|(_, &owner)| owner)
    }

    /// Addresses that their associations' peers have verified, and those that are listed and nobody has verified.
    pub fn known_addresses(&self) -> (usize, usize) {
        let known = self.read();
        (known.owners.len(), known.claims.len())
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        (self.0.known.read()).unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        (self.0.known.write()).unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an endpoint is among its siblings; mostly it has none.
#[derive(Debug, Default)]
pub(super) struct Member(Option<Box<Membership>>);

#[derive(Debug)]
struct Membership {
    siblings: Siblings,
    number: u32,
    /// The endpoint's port, and which of those with that port it is.
    port: u16,
    place: IpAddr,
    /// What stays taken until [`Member::settle`], and whether what is given up meanwhile is.
    held: Vec<Name>,
    holds: bool,
    /// Whose the last packet was, if another's.
    misdirected: Option<u32>,
}

impl Membership {
    fn name(&self, port: u16, address: IpAddr) -> Name {
        Name {
            local_port: self.port,
            port,
            address,
            place: self.place,
        }
    }
}

impl Member {
    /// That of `number` among `siblings`, of an endpoint at `port` and these addresses (none: all). Others with that port have other addresses.
    pub(super) fn new(siblings: &Siblings, number: u32, port: u16, addresses: &[IpAddr]) -> Self {
        let place = addresses.iter().min().copied();
        Self(Some(Box::new(Membership {
            siblings: siblings.clone(),
            number: number % siblings.count(),
            port,
            place: place.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
            held: Vec::new(),
            holds: false,
            misdirected: None,
        })))
    }

    /// Whether there are any.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.0.is_some()
    }

    /// The tag to have in place of one that was drawn; `None`: draw again. All of its own class are as likely as before.
    pub(super) fn own_tag(&self, tag: u32) -> Option<u32> {
        let Some(it) = &self.0 else {
            return Some(tag);
        };
        let whole = tag - tag % it.siblings.count();
        whole.checked_add(it.number).filter(|&tag| tag != 0)
    }

    /// Takes a peer's address, unless another has it.
    pub(super) fn take(&mut self, port: u16, address: IpAddr) -> bool {
        let Some(it) = &self.0 else { return true };
        let mut known = it.siblings.write();
        *known
            .owners
            .entry(it.name(port, address))
            .or_insert(it.number)
            == it.number
    }

    /// Takes all of these, or none if another has one. Those that no association has by the next [`Member::settle`] are given up again.
    pub(super) fn take_all(&mut self, port: u16, addresses: impl Iterator<Item = IpAddr>) -> bool {
        let Some(it) = &mut self.0 else { return true };
        let names: Vec<Name> = addresses.map(|address| it.name(port, address)).collect();
        let mut known = it.siblings.write();
        let others = |name: &Name| known.owners.get(name).is_some_and(|&at| at != it.number);
        if names.iter().any(others) {
            return false;
        }
        for &name in &names {
            known.owners.insert(name, it.number);
        }
        it.held.extend(names);
        true
    }

    /// An association has this address no more.
    pub(super) fn release(&mut self, port: u16, address: IpAddr) {
        let Some(it) = &mut self.0 else { return };
        let name = it.name(port, address);
        if it.holds {
            it.held.push(name);
        } else {
            it.release(name);
        }
    }

    /// What is released from now on stays taken until [`Member::settle`]: an association changes, and nobody is to come between.
    pub(super) fn hold(&mut self) {
        if let Some(it) = &mut self.0 {
            it.holds = true;
        }
    }

    /// Gives up what was held and is not `owned`, by its port and address.
    #[inline]
    pub(super) fn settle(&mut self, owned: impl Fn(u16, IpAddr) -> bool) {
        if let Some(it) = &mut self.0 {
            it.holds = false;
            for name in std::mem::take(&mut it.held) {
                if !owned(name.port, name.address) {
                    it.release(name);
                }
            }
        }
    }

    /// Who else has an association with a peer of that address.
    pub(super) fn other(&self, port: u16, address: IpAddr) -> Option<u32> {
        let it = self.0.as_ref()?;
        let owner = it
            .siblings
            .read()
            .owners
            .get(&it.name(port, address))
            .copied();
        owner.filter(|&owner| owner != it.number)
    }

    /// The association in `slot` lists an address that nobody has verified, and has `tag` for itself or its peer.
    pub(super) fn claim(&mut self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        if let Some(it) = &self.0 {
            let claim = (it.name(port, address), tag, it.number, slot);
            it.siblings.write().claims.insert(claim);
        }
    }

    /// It does so no more.
    pub(super) fn withdraw(&mut self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        if let Some(it) = &self.0 {
            let claim = (it.name(port, address), tag, it.number, slot);
            it.siblings.write().claims.remove(&claim);
        }
    }

    /// Another that has such an association.
    pub(super) fn other_claimant(&self, port: u16, address: IpAddr, tag: u32) -> Option<u32> {
        let it = self.0.as_ref()?;
        let name = it.name(port, address);
        let known = it.siblings.read();
        let claims = |first: u32, end: u32| {
            let mut claims = known
                .claims
                .range((name, tag, first, 0)..=(name, tag, end, u32::MAX));
            claims.next().map(|&(_, _, sibling, _)| sibling)
        };
        let before = it.number.checked_sub(1).and_then(|end| claims(0, end));
        before.or_else(|| claims(it.number + 1, u32::MAX))
    }

    /// The packet at hand is for another.
    pub(super) fn misdirect(&mut self, sibling: u32) {
        if let Some(it) = &mut self.0 {
            it.misdirected = Some(sibling);
        }
    }

    /// Whom the packet at hand is for, if it is for another.
    pub(super) fn take_misdirected(&mut self) -> Option<u32> {
        self.0.as_mut()?.misdirected.take()
    }
}

impl Membership {
    fn release(&self, name: Name) {
        let mut known = self.siblings.write();
        if known.owners.get(&name) == Some(&self.number) {
            known.owners.remove(&name);
        }
    }
}

impl Drop for Membership {
    /// Its associations are no more.
    fn drop(&mut self) {
        let (number, own) = (self.number, (self.port, self.place));
        let mut known = self.siblings.write();
        let own = |name: &Name, owner: u32| (name.local_port, name.place) == own && owner == number;
        known.owners.retain(|name, owner| !own(name, *owner));
        (known.claims).retain(|(name, _, owner, _)| !own(name, *owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::draws;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn tags_are_of_their_own_class_and_all_of_it_are_drawn() {
        for count in [1, 2, 3, 7, 64, 255] {
            let siblings = Siblings::new(count);
            for number in 0..count {
                let member = Member::new(&siblings, number, 7, &[]);
                // The ends of the range, and beyond what is whole.
                for tag in (1..=2 * count).chain(u32::MAX - 2 * count..=u32::MAX) {
                    match member.own_tag(tag) {
                        Some(own) => {
                            assert_eq!(siblings.of_tag(own), number);
                            assert_eq!(own / count, tag / count, "as many draws give each");
                            assert!(own != 0);
                        }
                        None => {
                            let whole = u64::from(tag - tag % count) + u64::from(number);
                            assert!(whole == 0 || whole > u32::MAX.into());
                        }
                    }
                }
            }
        }
        let alone = Member::new(&Siblings::new(1), 0, 7, &[]);
        let none = Member::default();
        let mut draw = draws(1);
        for _ in 0..1_000 {
            let tag = draw(u32::MAX) + 1;
            assert_eq!(
                (alone.own_tag(tag), none.own_tag(tag)),
                (Some(tag), Some(tag))
            );
        }
    }

    #[test]
    fn an_address_has_one_owner_until_it_is_released() {
        let siblings = Siblings::new(3);
        let [mut a, mut b] = [0, 1].map(|number| Member::new(&siblings, number, 7, &[]));
        let other_port = Member::new(&siblings, 2, 8, &[]);
        assert!(a.take(5, address(1)) && a.take(5, address(1)));
        assert!(!b.take(5, address(1)) && b.take(6, address(1)));
        assert_eq!(
            (a.other(5, address(1)), b.other(5, address(1))),
            (None, Some(0))
        );
        assert_eq!(other_port.other(5, address(1)), None);
        // All or none.
        assert!(!b.take_all(5, [2, 1].map(address).into_iter()));
        assert_eq!(a.other(5, address(2)), None);
        // What another has is not released.
        b.release(5, address(1));
        assert_eq!(b.other(5, address(1)), Some(0));
        // What is held is nobody else's meanwhile.
        a.hold();
        a.release(5, address(1));
        assert!(!b.take(5, address(1)));
        a.settle(|_, _| false);
        assert!(b.take(5, address(1)));
        drop(b);
        assert_eq!(siblings.known_addresses(), (0, 0));
    }

    #[test]
    fn endpoints_of_one_port_at_other_addresses_know_nothing_of_each_other() {
        let siblings = Siblings::new(2);
        let [mut a, mut b] =
            [0, 1].map(|at| Member::new(&siblings, at, 7, &[address(201), address(200)]));
        let [mut c, d] = [0, 1].map(|at| Member::new(&siblings, at, 7, &[address(202)]));
        assert!(a.take(5, address(1)) && c.take(5, address(1)));
        assert!(!b.take(5, address(1)));
        a.release(5, address(1));
        assert!(b.take(5, address(1)));
        assert_eq!(d.other(5, address(1)), Some(0));
        assert!(siblings.owner(7, 5, address(1)).is_some());
        b.claim(5, address(2), 77, 3);
        assert_eq!(a.other_claimant(5, address(2), 77), Some(1));
        assert_eq!(c.other_claimant(5, address(2), 77), None);
        drop((a, b));
        assert_eq!(siblings.known_addresses(), (1, 0));
        assert_eq!(siblings.owner(7, 5, address(1)), Some(0));
        drop((c, d));
        assert_eq!(siblings.owner(7, 5, address(1)), None);
    }

    #[test]
    fn claims_are_found_by_others_alone() {
        let siblings = Siblings::new(3);
        let mut members = [0, 1, 2].map(|number| Member::new(&siblings, number, 7, &[]));
        members[1].claim(5, address(1), 77, 3);
        let found = |members: &[Member; 3]| {
            [0, 1, 2].map(|at: usize| members[at].other_claimant(5, address(1), 77))
        };
        assert_eq!(found(&members), [Some(1), None, Some(1)]);
        members[2].claim(5, address(1), 77, 9);
        assert_eq!(found(&members), [Some(1), Some(2), Some(1)]);
        members[1].withdraw(5, address(1), 77, 3);
        assert_eq!(found(&members), [Some(2), Some(2), None]);
        assert_eq!(members[0].other_claimant(5, address(1), 78), None);
    }
}
