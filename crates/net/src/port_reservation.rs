//! Reservation of an SCTP port, at some or all addresses, on sockets that endpoints share.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reservation of an SCTP port at some addresses. Several reservations of one port have different
/// addresses.
#[derive(Debug)]
pub(crate) struct PortReservation {
    /// The SCTP port.
    pub port: u16,
    /// The addresses; empty: all.
    addresses: Mutex<Vec<IpAddr>>,
}

impl PortReservation {
    pub(crate) fn new(port: u16, addresses: &[IpAddr]) -> Self {
        Self {
            port,
            addresses: Mutex::new(addresses.to_vec()),
        }
    }

    fn addresses(&self) -> MutexGuard<'_, Vec<IpAddr>> {
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if packets to this address and port belong to this endpoint.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.addresses().contains(&address)
    }

    /// Returns true if another endpoint cannot use the port at the addresses `others` (none: all),
    /// because they overlap with this reservation.
    pub(crate) fn overlaps(&self, others: &[IpAddr]) -> bool {
        let own = self.addresses();
        own.is_empty() || others.is_empty() || own.iter().any(|it| others.contains(it))
    }

    /// Replaces the addresses of the reservation.
    pub(crate) fn change(&self, addresses: Vec<IpAddr>) {
        *self.addresses() = addresses;
    }
}
