//! Errors returned by calls of the user.

use std::net::IpAddr;

use thiserror::Error;

use crate::association_id::AssociationId;

/// Why [`Endpoint::connect`](crate::Endpoint::connect) failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No peer address was given.
    #[error("no address of the peer was given")]
    NoAddress,
    /// Port 0 is reserved (RFC 9260 §3.1).
    #[error("the peer's port is 0, which is reserved")]
    Port,
    /// The address is multicast, broadcast or unspecified.
    #[error("{0} is not a unicast address")]
    NotUnicast(IpAddr),
    /// No local address of this family is available.
    #[error("no local address is of the family of {0}")]
    Family(IpAddr),
    /// An association with this address and port already exists; RFC 9260 §1.2 allows only one.
    #[error("there is an association with that peer already")]
    Exists(AssociationId),
    /// Another endpoint of the same shard group ([`ShardPeers`](crate::ShardPeers)) has an
    /// association with this address and port.
    #[error("another endpoint at this port has an association with that peer already")]
    ExistsElsewhere,
}

/// Why a shutdown or abort had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CloseError {
    /// The association is closed already.
    #[error("the association is closed")]
    Closed,
}
