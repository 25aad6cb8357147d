//! Peers of all shards of a port: a list of the verified addresses of all peers with an
//! association, which each endpoint queries ([`ShardPeers`]). Its size is that of the endpoints'
//! association tables together.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use anabranch_sctp::ShardPeers;

/// The peers of all shards of a port. Clones share the same list.
#[derive(Clone, Debug)]
pub(crate) struct SharedPeers(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    count: u32,
    known: RwLock<KnownAddresses>,
}

/// Key of an entry: a peer's address and port, and the local endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PeerKey {
    local_port: u16,
    port: u16,
    address: IpAddr,
    /// The lowest address of the endpoint, which distinguishes it from other endpoints with the
    /// port `local_port`.
    place: IpAddr,
}

#[derive(Debug, Default)]
struct KnownAddresses {
    /// Verified addresses of peers, with the number of the shard that has the association.
    owners: BTreeMap<PeerKey, u32>,
    /// Addresses that a peer has listed but that are not verified, with a tag of the association
    /// (its own or the peer's), the number of the shard, and the slot of the association in the
    /// shard.
    claims: BTreeSet<(PeerKey, u32, u32, u32)>,
}

impl SharedPeers {
    /// Creates an empty list for `count` shards, at least one.
    pub(crate) fn new(count: u32) -> Self {
        Self(Arc::new(Shared {
            count: count.max(1),
            known: RwLock::default(),
        }))
    }

    /// Number of shards.
    pub(crate) fn count(&self) -> u32 {
        self.0.count
    }

    /// The shard, counted from 0, that uses this verification tag. Tag 0 is that of INIT, which any
    /// shard may handle.
    pub(crate) fn of_tag(&self, tag: u32) -> u32 {
        tag % self.0.count
    }

    /// The shard that has an association with a peer at this address and port, from the local port
    /// `local_port`. If several endpoints have that port, returns the shard of any of them.
    #[cfg(test)]
    pub(crate) fn owner(&self, local_port: u16, port: u16, address: IpAddr) -> Option<u32> {
        let name = |place: IpAddr| PeerKey {
            local_port,
            port,
            address,
            place,
        };
        let (first, last) = (
            Ipv4Addr::UNSPECIFIED.into(),
            std::net::Ipv6Addr::from([0xff; 16]).into(),
        );
        let known = self.read();
        let mut owners = known.owners.range(name(first)..=name(last));
        owners.next().map(|(_, &owner)| owner)
    }

    /// The access to the list for an endpoint of shard `number` with this port and these addresses
    /// (none: all). Other endpoints with this port have other addresses.
    pub(crate) fn shard(
        &self,
        number: u32,
        port: u16,
        addresses: &[IpAddr],
    ) -> Box<dyn ShardPeers> {
        let place = addresses.iter().min().copied();
        Box::new(View {
            peers: self.clone(),
            number: number % self.count(),
            port,
            place: place.unwrap_or(Ipv4Addr::UNSPECIFIED.into()),
        })
    }

    /// Numbers of addresses that are verified, and of addresses that are listed but not verified.
    #[cfg(test)]
    pub(crate) fn known_addresses(&self) -> (usize, usize) {
        let known = self.read();
        (known.owners.len(), known.claims.len())
    }

    fn read(&self) -> RwLockReadGuard<'_, KnownAddresses> {
        (self.0.known.read()).unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, KnownAddresses> {
        (self.0.known.write()).unwrap_or_else(PoisonError::into_inner)
    }
}

/// An endpoint's access to the list. Dropping it removes the entries of the endpoint.
#[derive(Debug)]
struct View {
    peers: SharedPeers,
    number: u32,
    /// The endpoint's port, and its lowest address.
    port: u16,
    place: IpAddr,
}

impl View {
    fn name(&self, port: u16, address: IpAddr) -> PeerKey {
        PeerKey {
            local_port: self.port,
            port,
            address,
            place: self.place,
        }
    }
}

impl ShardPeers for View {
    fn own_tag(&self, drawn: u32) -> Option<u32> {
        let whole = drawn - drawn % self.peers.count();
        whole.checked_add(self.number).filter(|&tag| tag != 0)
    }

    fn take(&self, port: u16, addresses: &[IpAddr]) -> bool {
        let names = || addresses.iter().map(|&address| self.name(port, address));
        let mut known = self.peers.write();
        let others = |name: &PeerKey| known.owners.get(name).is_some_and(|&at| at != self.number);
        if names().any(|name| others(&name)) {
            return false;
        }
        known.owners.extend(names().map(|name| (name, self.number)));
        true
    }

    fn release(&self, port: u16, address: IpAddr) {
        let name = self.name(port, address);
        let mut known = self.peers.write();
        if known.owners.get(&name) == Some(&self.number) {
            known.owners.remove(&name);
        }
    }

    fn owner(&self, port: u16, address: IpAddr) -> Option<u32> {
        let known = self.peers.read();
        let owner = known.owners.get(&self.name(port, address)).copied();
        owner.filter(|&owner| owner != self.number)
    }

    fn claim(&self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        let claim = (self.name(port, address), tag, self.number, slot);
        self.peers.write().claims.insert(claim);
    }

    fn withdraw(&self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        let claim = (self.name(port, address), tag, self.number, slot);
        self.peers.write().claims.remove(&claim);
    }

    fn claimant(&self, port: u16, address: IpAddr, tag: u32) -> Option<u32> {
        let name = self.name(port, address);
        let known = self.peers.read();
        let claims = |first: u32, end: u32| {
            let mut claims = known
                .claims
                .range((name, tag, first, 0)..=(name, tag, end, u32::MAX));
            claims.next().map(|&(_, _, shard, _)| shard)
        };
        let before = self.number.checked_sub(1).and_then(|end| claims(0, end));
        before.or_else(|| claims(self.number + 1, u32::MAX))
    }
}

impl Drop for View {
    /// The associations of the endpoint have ended, so its entries are removed.
    fn drop(&mut self) {
        let (number, own) = (self.number, (self.port, self.place));
        let mut known = self.peers.write();
        let own =
            |name: &PeerKey, owner: u32| (name.local_port, name.place) == own && owner == number;
        known.owners.retain(|name, owner| !own(name, *owner));
        (known.claims).retain(|(name, _, owner, _)| !own(name, *owner));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[test]
    fn tags_are_of_their_own_class_and_all_of_it_are_drawn() {
        for count in [1, 2, 3, 7, 64, 255] {
            let peers = SharedPeers::new(count);
            for number in 0..count {
                let shard = peers.shard(number, 7, &[]);
                // Tags at both ends of the range, including those beyond the last complete set of
                // residues.
                for tag in (1..=2 * count).chain(u32::MAX - 2 * count..=u32::MAX) {
                    match shard.own_tag(tag) {
                        Some(own) => {
                            assert_eq!(peers.of_tag(own), number);
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
    }

    #[test]
    fn an_address_has_one_owner_until_it_is_released() {
        let peers = SharedPeers::new(3);
        let [a, b] = [0, 1].map(|number| peers.shard(number, 7, &[]));
        let other_port = peers.shard(2, 8, &[]);
        let take = |shard: &dyn ShardPeers, port, last| shard.take(port, &[address(last)]);
        assert!(take(&*a, 5, 1) && take(&*a, 5, 1));
        assert!(!take(&*b, 5, 1) && take(&*b, 6, 1));
        assert_eq!(
            (a.owner(5, address(1)), b.owner(5, address(1))),
            (None, Some(0))
        );
        assert_eq!(other_port.owner(5, address(1)), None);
        // If one of several addresses is taken, none is added.
        assert!(!b.take(5, &[2, 1].map(address)));
        assert_eq!(a.owner(5, address(2)), None);
        // A shard cannot release the entry of another.
        b.release(5, address(1));
        assert_eq!(b.owner(5, address(1)), Some(0));
        a.release(5, address(1));
        assert!(take(&*b, 5, 1));
        drop(b);
        assert_eq!(peers.known_addresses(), (0, 0));
    }

    #[test]
    fn endpoints_of_one_port_at_other_addresses_know_nothing_of_each_other() {
        let peers = SharedPeers::new(2);
        let [a, b] = [0, 1].map(|at| peers.shard(at, 7, &[address(201), address(200)]));
        let [c, d] = [0, 1].map(|at| peers.shard(at, 7, &[address(202)]));
        let one = [address(1)];
        assert!(a.take(5, &one) && c.take(5, &one));
        assert!(!b.take(5, &one));
        a.release(5, address(1));
        assert!(b.take(5, &one));
        assert_eq!(d.owner(5, address(1)), Some(0));
        assert!(peers.owner(7, 5, address(1)).is_some());
        b.claim(5, address(2), 77, 3);
        assert_eq!(a.claimant(5, address(2), 77), Some(1));
        assert_eq!(c.claimant(5, address(2), 77), None);
        drop((a, b));
        assert_eq!(peers.known_addresses(), (1, 0));
        assert_eq!(peers.owner(7, 5, address(1)), Some(0));
        drop((c, d));
        assert_eq!(peers.owner(7, 5, address(1)), None);
    }

    #[test]
    fn claims_are_found_by_others_alone() {
        let peers = SharedPeers::new(3);
        let shards = [0, 1, 2].map(|number| peers.shard(number, 7, &[]));
        shards[1].claim(5, address(1), 77, 3);
        let found = || [0, 1, 2].map(|at: usize| shards[at].claimant(5, address(1), 77));
        assert_eq!(found(), [Some(1), None, Some(1)]);
        shards[2].claim(5, address(1), 77, 9);
        assert_eq!(found(), [Some(1), Some(2), Some(1)]);
        shards[1].withdraw(5, address(1), 77, 3);
        assert_eq!(found(), [Some(2), Some(2), None]);
        assert_eq!(shards[0].claimant(5, address(1), 78), None);
    }
}
