//! What a user may wish of this side's addresses, and is told.

use std::net::IpAddr;

use thiserror::Error;

/// A change of this side's addresses that the peer is asked for (SCTP_BINDX_ADD_ADDR, SCTP_BINDX_REM_ADDR, RFC 6458 §9.1, and
/// SCTP_SET_PEER_PRIMARY_ADDR, §8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChange {
    /// The address is added. Until the peer has agreed nothing is sent from it but the request (RFC 5061 §5.3 F1).
    Add(IpAddr),
    /// As [`AddressChange::Add`]; the peer learns the address as the source of the request (RFC 5061 §4.2.1), which a NAT may
    /// have changed on the way.
    AddSource(IpAddr),
    /// The address is removed. Nothing is sent from it any more (RFC 5061 §5.3 F4).
    Remove(IpAddr),
    /// All addresses are removed but this one (the wildcard of RFC 5061 §4.2.2).
    KeepOnly(IpAddr),
    /// The peer is asked to send to this address first (RFC 5061 §5.4).
    PeerPrimary(IpAddr),
}

impl AddressChange {
    /// The address it is about.
    pub fn address(&self) -> IpAddr {
        match *self {
            Self::Add(address)
            | Self::AddSource(address)
            | Self::Remove(address)
            | Self::KeepOnly(address)
            | Self::PeerPrimary(address) => address,
        }
    }

    /// The address that the request must come from, if it says nothing of it itself.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        match *self {
            Self::AddSource(address) | Self::KeepOnly(address) => Some(address),
            _ => None,
        }
    }

    /// Whether it takes `address` away.
    pub(crate) fn removes(&self, address: IpAddr) -> bool {
        match *self {
            Self::Remove(gone) => gone == address,
            Self::KeepOnly(kept) => kept != address,
            _ => false,
        }
    }

    /// The address it brings.
    pub fn adds(&self) -> Option<IpAddr> {
        match *self {
            Self::Add(address) | Self::AddSource(address) => Some(address),
            _ => None,
        }
    }

    /// Does it to a list of addresses.
    pub fn apply(&self, addresses: &mut Vec<IpAddr>) {
        match self.adds() {
            Some(address) if !addresses.contains(&address) => addresses.push(address),
            Some(_) => {}
            None => addresses.retain(|&it| !self.removes(it)),
        }
    }
}

/// What became of a wish to change addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChangeOutcome {
    /// The peer has done it.
    Performed,
    /// The peer did not do it; nothing changed.
    Refused {
        /// The code of the cause it gave (RFC 5061 §4.3, RFC 9260 §3.3.10), if it gave one: what stands behind a refused request
        /// is refused with it (§5.1 A7).
        cause: Option<u16>,
    },
    /// It was not asked, or its answer will not come: the peer does not know ASCONF, it began anew, the association ends, or an
    /// earlier wish that this one needs was refused.
    Failed,
}

/// Why a wish to change addresses was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressChangeError {
    /// The association is not up, or closes (RFC 5061 §5.1.1 C4).
    #[error("the association is not established, or closes")]
    NotEstablished,
    /// One of the ends does not offer ASCONF: see the setting `address_changes`.
    #[error("changes of addresses were not negotiated")]
    NotNegotiated,
    /// The peer has said that it does not know such requests (RFC 5061 §5.1 A9, §5.3 F3).
    #[error("the peer does not understand such requests")]
    NotUnderstood,
    /// It is no unicast address.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// The association has the address, or is about to.
    #[error("{0} is an address of the association already")]
    Exists(IpAddr),
    /// The association does not have the address, or is about to lose it.
    #[error("{0} is not an address of the association")]
    NoSuchAddress(IpAddr),
    /// No address would be left from which an address of the peer is reached (RFC 5061 §5.3 F5).
    #[error("without {0} no address is left to reach the peer from")]
    LastAddress(IpAddr),
    /// The peer has no address of that family.
    #[error("the peer has no address of the family of {0}")]
    Family(IpAddr),
    /// This side's own address is not known: its packets leave from whatever address the system chooses. Give addresses
    /// ([`Config::addresses`](crate::Config::addresses)).
    #[error("the address of this side is not known")]
    Unknown,
    /// So many wishes wait, or stand in one call.
    #[error("more than {most} changes of addresses at a time")]
    TooMany {
        /// The most there may be.
        most: usize,
    },
}
