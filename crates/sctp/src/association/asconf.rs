//! ASCONF of an association (RFC 5061): the peer's requests ([`receive`]), this side's requests
//! ([`send`]), and the source addresses of packets while a request is outstanding
//! ([`source_address`]).

mod receive;
mod send;
mod source_address;

use std::net::IpAddr;

use anabranch_transport::Nanos;

use crate::asconf::AsconfState;
use crate::association::Association;
use crate::state::{EstablishedState, State};

impl Association {
    /// Handles the peer's request to send data to `address` (Set Primary in INIT and INIT ACK, RFC
    /// 5061 §4.2.4). The primary path changes once that address is verified.
    pub(crate) fn prefer(&mut self, now: Nanos, address: Option<IpAddr>) {
        if let Some(address) = address.filter(|_| self.config.accept_address_changes) {
            self.set_primary(now, address);
        }
    }

    /// Whether both sides may change their addresses: both offered ASCONF (RFC 5061), this side
    /// because of the setting [`Config::address_changes`](crate::Config::address_changes).
    pub(crate) fn uses_asconf(&self) -> bool {
        self.address_changes().is_some()
    }

    fn address_changes(&self) -> Option<&AsconfState> {
        match &self.state {
            State::Active(known) => known.addresses.as_deref(),
            _ => None,
        }
    }

    fn address_changes_mut(&mut self) -> Option<&mut AsconfState> {
        match &mut self.state {
            State::Active(known) => known.addresses.as_deref_mut(),
            _ => None,
        }
    }

    /// Whether `local` is a local address that is being removed or was removed recently.
    pub(super) fn is_of_the_past(&self, local: IpAddr) -> bool {
        self.address_changes()
            .is_some_and(|it| it.sender.is_of_the_past(local))
    }

    /// Whether `local` is a local address that the peer has not accepted yet, and other local
    /// addresses exist.
    pub(super) fn is_unknown_yet(&self, local: IpAddr) -> bool {
        let asking = self.address_changes().map(|it| &it.sender);
        let coming = asking.is_some_and(|it| it.adding().contains(&local));
        coming && !self.is_mute()
    }

    /// Whether ASCONF and ASCONF-ACK may be sent (RFC 5061 §5.1.1 C4).
    fn may_send_asconf(&self) -> bool {
        self.state.sends_data()
            || matches!(self.state.stage(), Some(EstablishedState::ShutdownSent(_)))
    }
}
