//! The seam for endpoints that share a port, each of which is a shard of what peers take for one endpoint.
//!
//! They have one port at the same addresses, so a peer sees one SCTP endpoint, which has at most one association with it (RFC 9260 §1.2).
//! A verification tag names the shard: each draws tags of a class of its own. An INIT has no tag (§8.5.1 A), and a tag that is reflected is
//! the peer's (§8.5.1 B, C), so for these the peer's address has to name the shard. Therefore the driver, which knows the other shards, keeps
//! the addresses that peers of all of them have verified. It is asked if an association begins, ends or gets another address, and for packets
//! that no association here takes.

use std::fmt::Debug;
use std::net::IpAddr;

/// What a driver knows of the peers of all shards, as one of them sees it. Others may ask at the same time; an answer holds at its instant.
pub trait ShardPeers: Debug + Send {
    /// The tag of this shard's class for a tag that was drawn; `None`: draw again. All of the class must be equally likely, and none 0.
    fn own_tag(&self, drawn: u32) -> Option<u32>;

    /// Notes that these addresses of a peer at `port` are this shard's. All or none: `false` if another shard has one of them.
    fn take(&self, port: u16, addresses: &[IpAddr]) -> bool;

    /// The address is no longer this shard's, if it was.
    fn release(&self, port: u16, address: IpAddr);

    /// The other shard that has an association with a peer of that address.
    fn owner(&self, port: u16, address: IpAddr) -> Option<u32>;

    /// The association in `slot` lists an address that is not verified, and has `tag` for itself or for its peer.
    fn claim(&self, port: u16, address: IpAddr, tag: u32, slot: u32);

    /// It does so no longer.
    fn withdraw(&self, port: u16, address: IpAddr, tag: u32, slot: u32);

    /// Another shard with an association that lists that address and has that tag.
    fn claimant(&self, port: u16, address: IpAddr, tag: u32) -> Option<u32>;
}

/// What an endpoint is among the shards; mostly there are no others.
#[derive(Debug, Default)]
pub(super) struct Shard(Option<Box<Seat>>);

#[derive(Debug)]
struct Seat {
    peers: Box<dyn ShardPeers>,
    /// What stays taken until [`Shard::settle`], and whether what is released meanwhile does.
    held: Vec<(u16, IpAddr)>,
    holds: bool,
    /// Whose the last packet was, if another's.
    misrouted: Option<u32>,
}

impl Shard {
    pub(super) fn new(peers: Box<dyn ShardPeers>) -> Self {
        Self(Some(Box::new(Seat {
            peers,
            held: Vec::new(),
            holds: false,
            misrouted: None,
        })))
    }

    /// Whether there are others.
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

    /// Takes a peer's address, unless another has it.
    pub(super) fn take(&self, port: u16, address: IpAddr) -> bool {
        let seat = self.0.as_ref();
        seat.is_none_or(|it| it.peers.take(port, &[address]))
    }

    /// Takes all of these, or none if another has one. Those that no association has by the next [`Shard::settle`] are released again.
    pub(super) fn take_all(&mut self, port: u16, addresses: &[IpAddr]) -> bool {
        let Some(it) = &mut self.0 else { return true };
        let taken = it.peers.take(port, addresses);
        if taken {
            it.held.extend(addresses.iter().map(|&it| (port, it)));
        }
        taken
    }

    /// An association no longer has this address.
    pub(super) fn release(&mut self, port: u16, address: IpAddr) {
        match &mut self.0 {
            Some(it) if it.holds => it.held.push((port, address)),
            Some(it) => it.peers.release(port, address),
            None => (),
        }
    }

    /// What is released from now on stays taken until [`Shard::settle`]: an association changes, and no other may come between.
    pub(super) fn hold(&mut self) {
        if let Some(it) = &mut self.0 {
            it.holds = true;
        }
    }

    /// Releases what was held and is not `owned`, by its port and address.
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

    /// The packet at hand is for another.
    pub(super) fn misroute(&mut self, shard: u32) {
        if let Some(it) = &mut self.0 {
            it.misrouted = Some(shard);
        }
    }

    /// Which shard the packet at hand is for, if it is for another.
    #[inline]
    pub(super) fn take_misrouted(&mut self) -> Option<u32> {
        self.0.as_mut()?.misrouted.take()
    }
}
