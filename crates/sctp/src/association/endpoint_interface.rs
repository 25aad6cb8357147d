//! Interface of an association for its endpoint, which transfers the packets.

use std::net::IpAddr;
use std::sync::Arc;

use anabranch_transport::{Ecn, Nanos};

use super::Association;
use crate::config::Config;
use crate::cookie::TieTags;
use crate::event::CloseReason;
use crate::handshake::LocalOffer;
use crate::path::PathId;
use crate::state::State;

/// Time after a graceful shutdown during which received data counts as late, in RTOs.
const LATE_TIMEOUTS: u64 = 4;

impl Association {
    /// End of the period in which data received after a close at `now` is considered delayed in the
    /// network: see [`Profile::late_data_unanswered`](crate::Profile::late_data_unanswered).
    pub(crate) fn late_data_until(&self, now: Nanos) -> Nanos {
        let graceful = self.close_reason() == Some(&CloseReason::Shutdown);
        if !graceful || !self.config.profile.late_data_unanswered {
            return 0;
        }
        let rto = self.paths.get(self.paths.primary()).rto.rto();
        now.saturating_add(rto.saturating_mul(LATE_TIMEOUTS))
    }

    /// Settings, shared with the endpoint and other associations.
    pub(crate) fn shared_config(&self) -> Arc<Config> {
        Arc::clone(&self.config)
    }

    /// Verification tag of packets to this side.
    pub(crate) fn local_tag(&self) -> u32 {
        self.local_tag
    }

    /// Whether the association restarts the setup after a Stale Cookie error, and has not sent the
    /// new INIT yet.
    pub(crate) fn begins_again(&self) -> bool {
        matches!(&self.state, State::CookieWait(wait) if wait.stale_cookies > 0 && wait.init.deadline.is_none())
    }

    /// Replaces the local tag and returns the old one.
    pub(crate) fn replace_tag(&mut self, tag: u32) -> u32 {
        std::mem::replace(&mut self.local_tag, tag)
    }

    /// Verification tag of packets to the peer, once it is known.
    pub(crate) fn peer_tag(&self) -> Option<u32> {
        self.state.peer_tag()
    }

    pub(crate) fn tie_tags(&self) -> TieTags {
        self.tie_tags
    }

    /// Parameters of the INIT of this side.
    pub(crate) fn own(&self) -> LocalOffer {
        LocalOffer {
            tag: self.local_tag,
            initial_tsn: self.local_initial_tsn,
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.inbound_streams,
            auth_random: match (&self.auth, &self.dtls) {
                (Some(auth), _) => Some(auth.random()),
                (None, dtls) => dtls.as_ref().map(|it| it.random),
            },
        }
    }

    /// Schedules the immediate retransmission of the unanswered control chunk.
    pub(crate) fn repeat_control(&mut self) {
        if let Some(retry) = self.state.retry_mut() {
            retry.due = true;
        }
    }

    /// Records the ECN field and size of a received packet before its chunks are processed.
    #[inline(always)]
    pub(crate) fn begin_packet(&mut self, ecn: Ecn, bytes: usize) {
        self.sack_taken = false;
        self.data_taken = false;
        self.reply_room = None;
        self.note_field(ecn);
        if let Some(rx) = &mut self.rx {
            rx.on_packet_begin(bytes);
        }
    }

    /// See [`Paths::set_udp_port`](crate::path::Paths::set_udp_port).
    pub(crate) fn set_udp_port(&mut self, port: u16) {
        self.paths.set_udp_port(port);
    }

    /// See [`Paths::follow_udp_port`](crate::path::Paths::follow_udp_port).
    #[inline]
    pub(crate) fn follow_udp_port(&mut self, remote: IpAddr, port: u16) {
        self.paths.follow_udp_port(remote, port);
    }

    /// Whether the association is closed and still has its final packet to send.
    pub(crate) fn has_last_words(&self) -> bool {
        self.parting.is_some()
    }

    /// Whether the peer's addresses have changed since the endpoint last read them.
    pub(crate) fn addresses_changed(&self) -> bool {
        self.addresses_changed
    }

    /// Records that the endpoint has updated its table with the peer's addresses.
    pub(crate) fn addresses_learnt(&mut self) {
        self.addresses_changed = false;
    }

    /// Addresses listed by the peer that this association does not know (RFC 9260 §5.2.1, §5.2.2).
    pub(crate) fn lacks_any(&self, addresses: &[IpAddr]) -> Vec<IpAddr> {
        addresses
            .iter()
            .copied()
            .filter(|&address| self.paths.find(address).is_none())
            .collect()
    }

    /// Destination of replies: the path to `remote` if it is verified, else the primary path.
    pub(crate) fn path_to(&self, remote: IpAddr) -> PathId {
        let path = self.paths.find(remote);
        self.paths.verified(path.unwrap_or(self.paths.primary()))
    }
}
