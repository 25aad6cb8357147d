//! What a user did that cannot be done.

use std::net::IpAddr;

use thiserror::Error;

use crate::association_id::AssociationId;

/// Why [`Endpoint::connect`](crate::Endpoint::connect) refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No address was given.
    #[error("no address of the peer was given")]
    NoAddress,
    /// Port 0 is reserved (RFC 9260 §3.1).
    #[error("the peer's port is 0, which is reserved")]
    Port,
    /// The address is multicast, broadcast or unspecified.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// None of the endpoint's addresses is of this family.
    #[error("no local address is of the family of {0}")]
    Family(IpAddr),
    /// There is an association with that address and port already; two cannot exist (RFC 9260 §1.2).
    #[error("there is an association with that peer already")]
    Exists(AssociationId),
    /// Another endpoint that is one with this to its peers ([`ShardPeers`](crate::ShardPeers)) has an association with that address and port.
    #[error("another endpoint at this port has an association with that peer already")]
    ExistsElsewhere,
}

/// Why a shutdown or abort had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseError {
    /// It is closed already.
    #[error("the association is closed")]
    Closed,
}
