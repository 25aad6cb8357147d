//! What an endpoint has of the sockets that it shares with others: an SCTP port, at some addresses or at all.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port, and the addresses that it is taken at. Of several with one port each has addresses of its own.
#[derive(Debug)]
pub(crate) struct PortReservation {
    /// The SCTP port.
    pub port: u16,
    /// None: all.
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

    /// Whether packets to that address are this one's alone.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        self.addresses().contains(&address)
    }

    /// Whether another cannot have these addresses at the same port (none: all).
    pub(crate) fn overlaps(&self, others: &[IpAddr]) -> bool {
        let own = self.addresses();
        own.is_empty() || others.is_empty() || own.iter().any(|it| others.contains(it))
    }

    /// It has these addresses from now on.
    pub(crate) fn change(&self, addresses: Vec<IpAddr>) {
        *self.addresses() = addresses;
    }
}
