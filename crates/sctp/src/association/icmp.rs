//! Effect of ICMP messages on an association (RFC 9260 §10).

use anabranch_transport::Nanos;

use super::Association;
use crate::association_state::AssociationState;
use crate::compact_option::OptionalNanos;
use crate::discard::DiscardReason;
use crate::event::CloseReason;
use crate::icmp::{IcmpError, QuotedPacket};
use crate::path::PathId;

impl Association {
    /// Processes an ICMP message about a packet that this association may have sent. Returns the
    /// reason if the message is ignored.
    pub(crate) fn handle_icmp(
        &mut self,
        now: Nanos,
        quote: &QuotedPacket,
        meaning: IcmpError,
    ) -> Option<DiscardReason> {
        let path = self.paths.find(quote.remote);
        let to_port = |path: &PathId| self.paths.get(*path).udp_port == quote.udp_port;
        let Some(path) = path.filter(to_port) else {
            return Some(DiscardReason::IcmpNoAssociation);
        };
        if !self.sent(quote) {
            return Some(DiscardReason::IcmpTag);
        }
        if !self.on_icmp(now, path, quote, meaning) {
            return Some(DiscardReason::IcmpIgnored);
        }
        self.control.rare().icmp += 1;
        None
    }

    /// Whether the quoted packet has the current verification tag, which off-path attackers do not
    /// know.
    fn sent(&self, quote: &QuotedPacket) -> bool {
        match quote.verification_tag {
            0 => quote.initiate_tag == Some(self.local_tag),
            tag => Some(tag) == self.state.peer_tag(),
        }
    }

    /// Applies a verified ICMP message; returns `false` if it has no effect.
    fn on_icmp(
        &mut self,
        now: Nanos,
        path: PathId,
        quote: &QuotedPacket,
        meaning: IcmpError,
    ) -> bool {
        match meaning {
            IcmpError::TooBig(mtu) => self.lower_pmtu(
                now,
                quote.remote,
                usize::try_from(mtu).unwrap_or(usize::MAX),
            ),
            IcmpError::NoProtocol => self.on_nobody_there(quote),
            // With UDP encapsulation, a closed UDP port means that the peer's SCTP stack has
            // stopped, so it cannot answer by ABORT.
            IcmpError::NoPort if quote.udp_port != 0 => self.on_nobody_there(quote),
            IcmpError::NoPort | IcmpError::Nothing => false,
            IcmpError::Unreachable => self.on_unreachable(now, path),
        }
    }

    /// Handles an unreachable SCTP stack like an ABORT. An ICMP message about an INIT counts only
    /// in COOKIE-WAIT, because in later states the peer has already answered the INIT.
    fn on_nobody_there(&mut self, quote: &QuotedPacket) -> bool {
        let of_init = quote.verification_tag == 0;
        if of_init && self.state() != AssociationState::CookieWait {
            return false;
        }
        self.close(CloseReason::ProtocolUnreachable);
        true
    }

    /// Counts an unreachable address as an error of the path, like a timeout, but at most once per
    /// RTO, because each packet in flight can cause an ICMP message.
    fn on_unreachable(&mut self, now: Nanos, path: PathId) -> bool {
        let entry = self.paths.get_mut(path);
        if now < entry.unreachable_until.get().unwrap_or(0) {
            return false;
        }
        entry.unreachable_until = OptionalNanos::some(now.saturating_add(entry.rto.rto()));
        self.count_path_error(now, path);
        self.note_data_path(now);
        true
    }
}
