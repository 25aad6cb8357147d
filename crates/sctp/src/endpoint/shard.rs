//! Interface between endpoints that share a port, each of which is a shard of a single endpoint
//! from the viewpoint of peers.
//!
//! The shards have one port at the same addresses, so a peer sees a single SCTP endpoint, which has
//! at most one association with this peer (RFC 9260 §1.2). A verification tag identifies the shard,
//! because each shard draws tags of a separate class. An INIT has no tag (§8.5.1 A), and a
//! reflected tag is the peer's (§8.5.1 B, C), so packets with either must be assigned to a shard by
//! the peer's address. Therefore the driver, which knows the other shards, stores the verified
//! addresses of the peers of all shards. This store is consulted if an association begins, ends or
//! gets another address, and for packets that no association accepts.

use std::fmt::Debug;
use std::net::IpAddr;

/// Driver's table of the peers of all shards, as seen by one shard. Several shards may call the
/// table concurrently, so each result may be outdated immediately after the call.
pub trait ShardPeers: Debug + Send {
    /// Maps a random tag to a tag of this shard's class; `None`: another random tag is needed. All
    /// tags of the class must be equally likely, and none may be 0.
    fn own_tag(&self, drawn: u32) -> Option<u32>;

    /// Claims all of these addresses of a peer at `port` for this shard. Returns `false`, and
    /// claims none, if another shard has one of the addresses.
    fn take(&self, port: u16, addresses: &[IpAddr]) -> bool;

    /// Releases the address, if this shard has it.
    fn release(&self, port: u16, address: IpAddr);

    /// Other shard that has an association with a peer at this address, if any.
    fn owner(&self, port: u16, address: IpAddr) -> Option<u32>;

    /// Records that the association in `slot` lists an unverified address, and has `tag` as its own
    /// or its peer's tag.
    fn claim(&self, port: u16, address: IpAddr, tag: u32, slot: u32);

    /// Reverts [`ShardPeers::claim`].
    fn withdraw(&self, port: u16, address: IpAddr, tag: u32, slot: u32);

    /// Other shard with an association that lists this address and has this tag, if any.
    fn claimant(&self, port: u16, address: IpAddr, tag: u32) -> Option<u32>;
}

/// Shard membership of an endpoint; `None` inside if the endpoint is the only one at its port.
#[derive(Debug, Default)]
pub(super) struct Shard(Option<Box<ShardMembership>>);

#[derive(Debug)]
struct ShardMembership {
    peers: Box<dyn ShardPeers>,
    /// Released addresses that are retained until [`Shard::settle`] (`held`), and whether addresses
    /// are retained now (`holds`).
    held: Vec<(u16, IpAddr)>,
    holds: bool,
    /// Shard that the current packet belongs to, if it is another shard.
    misrouted: Option<u32>,
}

impl Shard {
    pub(super) fn new(peers: Box<dyn ShardPeers>) -> Self {
        Self(Some(Box::new(ShardMembership {
            peers,
            held: Vec::new(),
            holds: false,
            misrouted: None,
        })))
    }

    /// Whether the endpoint is a member of a shard group.
    #[inline]
    pub(super) fn has_any(&self) -> bool {
        self.0.is_some()
    }

    /// See [`ShardPeers::own_tag`].
    pub(super) fn own_tag(&self, tag: u32) -> Option<u32> {
        match &self.0 {
            Some(it) => it.peers.own_tag(tag),
            None => Some(tag),
        }
    }

    /// Claims a peer's address, unless another shard has it.
    pub(super) fn take(&self, port: u16, address: IpAddr) -> bool {
        let membership = self.0.as_ref();
        membership.is_none_or(|it| it.peers.take(port, &[address]))
    }

    /// Claims all of these addresses, or none if another shard has one. The next [`Shard::settle`]
    /// releases addresses that do not belong to an association.
    pub(super) fn take_all(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        let Some(it) = &mut self.0 else { return true };
        let taken = it.peers.take(port, addresses);
        if taken {
            it.held.extend(addresses.iter().map(|&it| (port, it)));
        }
        taken
    }

    /// Releases an address of an association.
    pub(super) fn release(&mut self, port: u16, address: IpAddr) {
        match &mut self.0 {
            Some(it) if it.holds => it.held.push((port, address)),
            Some(it) => it.peers.release(port, address),
            None => (),
        }
    }

    /// Retains released addresses until [`Shard::settle`]: while an association changes, no other
    /// shard may claim its addresses.
    pub(super) fn hold(&mut self) {
        if let Some(it) = &mut self.0 {
            it.holds = true;
        }
    }

    /// Releases retained addresses for which `owned` (by port and address) is false.
    #[inline]
    pub(super) fn settle(&mut self, owned: impl Fn(u16, IpAddr) -> bool) {
        if let Some(it) = &mut self.0 {
            it.holds = false;
            for (port, address) in std::mem::take(&mut it.held) {
                if !owned(port, address) {
                    it.peers.release(port, address);
                }
            }
        }
    }

    /// See [`ShardPeers::owner`].
    pub(super) fn other(&self, port: u16, address: IpAddr) -> Option<u32> {
        self.0.as_ref()?.peers.owner(port, address)
    }

    /// See [`ShardPeers::claim`].
    pub(super) fn claim(&self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        if let Some(it) = &self.0 {
            it.peers.claim(port, address, tag, slot);
        }
    }

    /// See [`ShardPeers::withdraw`].
    pub(super) fn withdraw(&self, port: u16, address: IpAddr, tag: u32, slot: u32) {
        if let Some(it) = &self.0 {
            it.peers.withdraw(port, address, tag, slot);
        }
    }

    /// See [`ShardPeers::claimant`].
    pub(super) fn other_claimant(&self, port: u16, address: IpAddr, tag: u32) -> Option<u32> {
        self.0.as_ref()?.peers.claimant(port, address, tag)
    }

    /// Marks the current packet as belonging to another shard.
    pub(super) fn misroute(&mut self, shard: u32) {
        if let Some(it) = &mut self.0 {
            it.misrouted = Some(shard);
        }
    }

    /// Returns and clears the shard that the current packet belongs to, if it is another shard.
    #[inline]
    pub(super) fn take_misrouted(&mut self) -> Option<u32> {
        self.0.as_mut()?.misrouted.take()
    }
}
