//! Address changes of an endpoint at run time (RFC 5061).

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_sctp::{AddressChange, AddressChangeError, AssociationId};

use super::Endpoint;
use crate::error::AddressError;

impl Endpoint {
    /// The addresses of this host that new associations list to their peers; empty: all addresses
    /// of the host.
    pub fn addresses(&self) -> Vec<IpAddr> {
        self.shared.lock().endpoint.config().addresses.clone()
    }

    /// Changes this host's addresses for all associations: new ones list the new addresses, and
    /// established ones request the change from their peers, in one chunk, as
    /// [`Association::change_addresses`](crate::Association::change_addresses) does. Returns the
    /// number of associations that request the change; the others have not negotiated ASCONF, are
    /// closing, or cannot apply the change. A socket is opened for an added address; the socket of
    /// a removed address stays open.
    ///
    /// If an endpoint is not bound to particular addresses, it has all addresses of the host, and
    /// the list does not change.
    ///
    /// # Errors
    /// A socket cannot be opened; another endpoint has the address at the same port; an address to
    /// add is present already or is not unicast; an address to remove is not present or is the only
    /// one. After an error no address is changed or requested.
    pub fn change_addresses(&self, changes: &[AddressChange]) -> Result<usize, AddressError> {
        let now_has = self.addresses();
        let after = afterwards(&now_has, changes)?;
        for address in changes.iter().filter_map(AddressChange::adds) {
            let opened = self.shared.driver_shared.open_for(address);
            opened.map_err(|error| AddressError::Socket(Arc::new(error)))?;
        }
        if !now_has.is_empty() {
            let changed = self
                .shared
                .driver_shared
                .change(&self.shared.reservation, after.clone());
            changed.map_err(|error| AddressError::Socket(Arc::new(error)))?;
        }
        let now = self.shared.now();
        let mut state = self.shared.lock();
        if !now_has.is_empty() {
            let first = changes.first().map(AddressChange::address);
            let set = state.endpoint.set_addresses(after);
            if let (Err(_), Some(address)) = (set, first) {
                self.shared.reservation.change(now_has);
                return Err(AddressChangeError::NotUnicast(address).into());
            }
        }
        let ids: Vec<AssociationId> = state.entries.keys().copied().collect();
        let mut with_receipt = 0;
        for id in ids {
            if let Some(association) = state.association(id)
                && association.change_addresses(now, changes).is_ok()
            {
                with_receipt += 1;
            }
        }
        state.wake_driver();
        Ok(with_receipt)
    }
}

/// The list of addresses after `changes` were applied in order.
fn afterwards(
    own: &[IpAddr],
    changes: &[AddressChange],
) -> Result<Vec<IpAddr>, AddressChangeError> {
    let mut after = own.to_vec();
    if own.is_empty() {
        return Ok(after);
    }
    for change in changes {
        let address = change.address();
        match change.adds() {
            Some(_) if after.contains(&address) => return Err(AddressChangeError::Exists(address)),
            None if !after.contains(&address) => {
                return Err(AddressChangeError::NoSuchAddress(address));
            }
            _ => change.apply(&mut after),
        }
        if after.is_empty() {
            return Err(AddressChangeError::LastAddress(address));
        }
    }
    Ok(after)
}
