//! Endpoint's view of a detached association.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use anabranch_wire::chunk::kind;
use anabranch_wire::packet::Frame;
use smallvec::SmallVec;

use crate::association::Association;
use crate::association_state::AssociationState;
use crate::cookie::TieTags;

/// T bit of ABORT and SHUTDOWN COMPLETE: the tag is the sender's own (RFC 9260 §3.3.7, §3.3.13).
const TAG_REFLECTED: u8 = 1;

/// Address of the peer in the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ViewedAddress {
    pub(super) remote: IpAddr,
    pub(super) udp_port: u16,
    pub(super) verified: bool,
    /// Whether the address belongs to another peer.
    pub(super) disowned: bool,
}

/// Properties of a detached association that the endpoint needs to find it for packets of its peer,
/// and to answer INITs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AssociationView {
    pub(super) local_tag: u32,
    pub(super) peer_tag: u32,
    pub(super) remote_port: u16,
    pub(super) tie_tags: TieTags,
    pub(super) addresses: SmallVec<[ViewedAddress; 2]>,
    pub(super) primary: IpAddr,
    /// Whether the association is in SHUTDOWN-ACK-SENT.
    pub(super) shutdown_ack_sent: bool,
    pub(super) accepts_zero_checksums: bool,
    pub(super) uses_asconf: bool,
    /// Whether DTLS chunks of the peer can be processed.
    pub(super) takes_dtls: bool,
    /// Present once the association is closed and has sent its final packet. Data that arrives
    /// until this time is considered late, and is not answered by an ABORT.
    pub(super) late_data_until: Option<Nanos>,
}

fn addresses_of(association: &Association) -> impl Iterator<Item = ViewedAddress> + '_ {
    association.paths().iter().map(|(_, it)| ViewedAddress {
        remote: it.path.remote,
        udp_port: it.udp_port,
        verified: it.verified,
        disowned: it.disowned,
    })
}

impl AssociationView {
    pub(super) fn of(now: Nanos, association: &Association) -> Self {
        let over = association.is_closed() && !association.has_last_words();
        Self {
            local_tag: association.local_tag(),
            peer_tag: association.peer_tag().unwrap_or_default(),
            remote_port: association.remote_port(),
            tie_tags: association.tie_tags(),
            addresses: addresses_of(association).collect(),
            primary: association.primary_remote(),
            shutdown_ack_sent: association.state() == AssociationState::ShutdownAckSent,
            accepts_zero_checksums: association.accepts_zero_checksums(),
            uses_asconf: association.uses_asconf(),
            takes_dtls: association.key_agreement_or_restart(),
            late_data_until: over.then(|| association.late_data_until(now)),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.late_data_until.is_some()
    }

    /// Whether the packet has a tag of this association (RFC 9260 §8.5).
    pub(super) fn has_tag(&self, tag: u32, first: Frame<'_>) -> bool {
        let ends = matches!(first.kind, kind::ABORT | kind::SHUTDOWN_COMPLETE);
        match ends && first.flags & TAG_REFLECTED != 0 {
            true => tag == self.peer_tag,
            false => tag == self.local_tag,
        }
    }

    pub(super) fn address(&self, remote: IpAddr) -> Option<&ViewedAddress> {
        let mut known = self.addresses.iter().filter(|it| !it.disowned);
        known.find(|it| it.remote == remote)
    }

    /// Marks the address as belonging to another peer.
    pub(super) fn disown(&mut self, remote: IpAddr) {
        let of_it = |it: &&mut ViewedAddress| it.remote == remote;
        if let Some(address) = self.addresses.iter_mut().find(of_it) {
            address.disowned = true;
        }
    }
}
