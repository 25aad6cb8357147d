//! Addresses that change (RFC 5061): what the peer asks and is answered ([`answer`]), what this side asks ([`ask`]), and from which
//! address packets go meanwhile ([`sources`]).

mod answer;
mod ask;
mod sources;

use std::net::IpAddr;

use crate::address_changes::AddressChanges;
use crate::association::Association;
use crate::state::{Stage, State};

impl Association {
    /// Whether both sides may change their addresses: both ends speak ASCONF (RFC 5061), which the setting
    /// [`Config::address_changes`](crate::Config::address_changes) offers.
    pub(crate) fn takes_address_changes(&self) -> bool {
        self.address_changes().is_some()
    }

    fn address_changes(&self) -> Option<&AddressChanges> {
        match &self.state {
            State::Known(known) => known.addresses.as_deref(),
            _ => None,
        }
    }

    fn address_changes_mut(&mut self) -> Option<&mut AddressChanges> {
        match &mut self.state {
            State::Known(known) => known.addresses.as_deref_mut(),
            _ => None,
        }
    }

    /// Whether `local` is an address of this side that is being removed, or was lately.
    pub(super) fn is_of_the_past(&self, local: IpAddr) -> bool {
        self.address_changes()
            .is_some_and(|it| it.asking.is_of_the_past(local))
    }

    /// Whether `local` is an address of this side that the peer has not agreed to, while there are others.
    pub(super) fn is_unknown_yet(&self, local: IpAddr) -> bool {
        let asking = self.address_changes().map(|it| &it.asking);
        let coming = asking.is_some_and(|it| it.adding().contains(&local));
        coming && !self.is_mute()
    }

    /// Whether ASCONF and ASCONF-ACK may be sent (RFC 5061 §5.1.1 C4).
    fn may_send_asconf(&self) -> bool {
        self.state.sends_data() || matches!(self.state.stage(), Some(Stage::ShutdownSent(_)))
    }
}
