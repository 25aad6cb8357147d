//! Notifications, laid out as Linux has them (RFC 6458 §6.1).

use std::net::{IpAddr, SocketAddr};

use anabranch_net::AssociationEvent;

/// A notification: its place in struct sctp_event_subscribe, and its bytes.
pub type Notification = (usize, Vec<u8>);

/// SCTP_SN_TYPE_BASE.
const BASE: u16 = 1 << 15;
const ASSOC_CHANGE: usize = 1;
const PEER_ADDR_CHANGE: usize = 2;
const REMOTE_ERROR: usize = 4;
const SHUTDOWN: usize = 5;

/// States of struct sctp_assoc_change.
#[derive(Clone, Copy)]
pub enum Change {
    /// SCTP_COMM_UP.
    Up = 0,
    /// SCTP_COMM_LOST.
    Lost = 1,
    /// SCTP_RESTART.
    Restart = 2,
    /// SCTP_SHUTDOWN_COMP.
    Down = 3,
}

fn notification(kind: usize, flags: u16, rest: &[u8]) -> Notification {
    let mut out = Vec::with_capacity(8 + rest.len());
    out.extend((BASE + kind as u16).to_ne_bytes());
    out.extend(flags.to_ne_bytes());
    out.extend((8 + rest.len() as u32).to_ne_bytes());
    out.extend(rest);
    (kind, out)
}

/// struct sctp_assoc_change.
pub fn change(change: Change, error: u16, streams: [u16; 2], association: u32) -> Notification {
    let mut rest = Vec::new();
    for value in [change as u16, error, streams[0], streams[1]] {
        rest.extend(value.to_ne_bytes());
    }
    rest.extend(association.to_ne_bytes());
    notification(ASSOC_CHANGE, 0, &rest)
}

/// What the protocol told, as a notification; `None` where RFC 6458 has none for it, or it is none yet.
pub fn of_event(event: &AssociationEvent, port: u16, association: u32) -> Option<Notification> {
    let path = |address: IpAddr, state: u32| {
        let mut rest = storage(SocketAddr::new(address, port)).to_vec();
        for value in [state, 0, association] {
            rest.extend(value.to_ne_bytes());
        }
        Some(notification(PEER_ADDR_CHANGE, 0, &rest))
    };
    match *event {
        AssociationEvent::PathUp(address) => path(address, 0),
        AssociationEvent::PathDown(address) => path(address, 1),
        AssociationEvent::PrimaryChanged(address) => path(address, 4),
        AssociationEvent::PathPotentiallyFailed(address) => path(address, 6),
        AssociationEvent::PeerShutdown => {
            Some(notification(SHUTDOWN, 0, &association.to_ne_bytes()))
        }
        AssociationEvent::PeerError { cause } => {
            let cause = cause.to_be_bytes();
            let association = association.to_ne_bytes();
            let rest = [&cause[..], &[0; 2], &association[..]].concat();
            Some(notification(REMOTE_ERROR, 0, &rest))
        }
        AssociationEvent::Restarted { .. } => Some(change(Change::Restart, 0, [0; 2], association)),
        _ => None,
    }
}

/// struct sockaddr_storage of an address.
pub fn storage(address: SocketAddr) -> [u8; 128] {
    let mut out = [0; 128];
    out[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(it) => {
            out[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            out[4..8].copy_from_slice(&it.ip().octets());
        }
        SocketAddr::V6(it) => {
            out[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            out[8..24].copy_from_slice(&it.ip().octets());
            out[24..28].copy_from_slice(&it.scope_id().to_ne_bytes());
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_have_the_layouts_of_linux() {
        let (kind, bytes) = change(Change::Up, 0, [5, 6], 9);
        assert_eq!((kind, bytes.len()), (1, 20));
        assert_eq!(bytes[..2], 0x8001_u16.to_ne_bytes());
        assert_eq!(bytes[4..8], 20_u32.to_ne_bytes());
        assert_eq!(bytes[12..14], 5_u16.to_ne_bytes());
        assert_eq!(bytes[16..], 9_u32.to_ne_bytes());
        let event = AssociationEvent::PathDown("192.0.2.1".parse().unwrap());
        let (kind, bytes) = of_event(&event, 7, 9).unwrap();
        assert_eq!((kind, bytes.len()), (2, 148));
        assert_eq!(bytes[8..16], [2, 0, 0, 7, 192, 0, 2, 1]);
        assert_eq!(bytes[136..140], 1_u32.to_ne_bytes());
    }
}
