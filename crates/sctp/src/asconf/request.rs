//! Requests for changes of local addresses, and their outcomes.

use std::net::IpAddr;

use thiserror::Error;

/// Change of this side's addresses that is requested from the peer (SCTP_BINDX_ADD_ADDR,
/// SCTP_BINDX_REM_ADDR, RFC 6458 §9.1, and SCTP_SET_PEER_PRIMARY_ADDR, §8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChange {
    /// Adds the address. Until the peer has agreed, only the ASCONF is sent from this address (RFC
    /// 5061 §5.3 F1).
    Add(IpAddr),
    /// Like [`AddressChange::Add`], but the peer adds the source address of the packet with the
    /// request (RFC 5061 §4.2.1), because a NAT may have changed the address on the way.
    AddSource(IpAddr),
    /// Removes the address. No further packets are sent from this address (RFC 5061 §5.3 F4).
    Remove(IpAddr),
    /// Removes all addresses except this address (the wildcard of RFC 5061 §4.2.2).
    KeepOnly(IpAddr),
    /// Requests that the peer uses this address as its primary destination (RFC 5061 §5.4).
    PeerPrimary(IpAddr),
}

impl AddressChange {
    /// The affected address.
    pub fn address(&self) -> IpAddr {
        match *self {
            Self::Add(address)
            | Self::AddSource(address)
            | Self::Remove(address)
            | Self::KeepOnly(address)
            | Self::PeerPrimary(address) => address,
        }
    }

    /// Source address from which the ASCONF must be sent, because the request refers to it
    /// implicitly; `None` if the request contains the address.
    pub(crate) fn source(&self) -> Option<IpAddr> {
        match *self {
            Self::AddSource(address) | Self::KeepOnly(address) => Some(address),
            _ => None,
        }
    }

    /// Whether the change removes `address`.
    pub(crate) fn removes(&self, address: IpAddr) -> bool {
        match *self {
            Self::Remove(gone) => gone == address,
            Self::KeepOnly(kept) => kept != address,
            _ => false,
        }
    }

    /// Address that the change adds, or `None` if it adds none.
    pub fn adds(&self) -> Option<IpAddr> {
        match *self {
            Self::Add(address) | Self::AddSource(address) => Some(address),
            _ => None,
        }
    }

    /// Applies the change to a list of addresses.
    pub fn apply(&self, addresses: &mut Vec<IpAddr>) {
        match self.adds() {
            Some(address) if !addresses.contains(&address) => addresses.push(address),
            Some(_) => {}
            None => addresses.retain(|&it| !self.removes(it)),
        }
    }
}

/// Outcome of a requested address change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressChangeOutcome {
    /// The peer performed the change.
    Performed,
    /// The peer refused the change, and all addresses are unchanged.
    Refused {
        /// Code of the error cause (RFC 5061 §4.3, RFC 9260 §3.3.10). `None` if the peer sent none,
        /// for example for a request that counts as refused because an earlier request in the same
        /// ASCONF was refused (§5.1 A7).
        cause: Option<u16>,
    },
    /// The request was not sent, or no response will arrive: the peer does not support ASCONF, it
    /// restarted, the association was closed, or an earlier request that this request depends on
    /// was refused.
    Failed,
}

/// Why a requested address change was rejected locally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressChangeError {
    /// The association is not established, or is shutting down (RFC 5061 §5.1.1 C4).
    #[error("the association is not established, or closes")]
    NotEstablished,
    /// At least one end does not offer ASCONF; see the setting `address_changes`.
    #[error("changes of addresses were not negotiated")]
    NotNegotiated,
    /// The peer has reported that it does not understand requests of this type, or ASCONF at all
    /// (RFC 5061 §5.3 F3, §5.1 A9).
    #[error("the peer does not understand such requests")]
    NotUnderstood,
    /// The address is not a unicast address.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// The association has the address, or its addition is requested.
    #[error("{0} is an address of the association already")]
    Exists(IpAddr),
    /// The association does not have the address, or its removal is requested.
    #[error("{0} is not an address of the association")]
    NoSuchAddress(IpAddr),
    /// After the change, no local address could reach the peer (RFC 5061 §5.3 F5).
    #[error("without {0} no address is left to reach the peer from")]
    LastAddress(IpAddr),
    /// The peer has no address of this family.
    #[error("the peer has no address of the family of {0}")]
    Family(IpAddr),
    /// The local address is unknown, because the operating system chooses it. Configure addresses
    /// ([`Config::addresses`](crate::Config::addresses)).
    #[error("the address of this side is not known")]
    Unknown,
    /// Too many requests are queued, or were passed in one call.
    #[error("more than {most} changes of addresses at a time")]
    TooMany {
        /// The allowed maximum.
        most: usize,
    },
}
