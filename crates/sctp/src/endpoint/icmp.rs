//! ICMP messages: lookup of the association, validation and effect (RFC 9260 §10).

use anabranch_transport::Nanos;

use super::Endpoint;
use super::association_event::Input;
use crate::discard::DiscardReason;
use crate::icmp::{Icmp, IcmpError, QuotedPacket};

impl Endpoint {
    /// Processes an ICMP message received by this host. An ICMP message has an effect only if it
    /// quotes a packet of an association, with matching ports, UDP port and verification tag (for
    /// an INIT: its Initiate Tag); other messages are counted by reason
    /// ([`DiscardReason::IcmpIgnored`] and the following reasons). The effects:
    ///
    /// - packet too big: the packet size of the path is reduced to the reported MTU, but not below
    ///   576 bytes over IPv4 and 1,280 over IPv6, including the IP header; larger data in flight is
    ///   retransmitted. With [`Config::path_mtu_discovery`](crate::Config::path_mtu_discovery)
    ///   larger sizes are probed again after ten minutes;
    /// - protocol unreachable, and with UDP encapsulation port unreachable (RFC 6951 §5.5): the
    ///   association is closed as after an ABORT;
    /// - other unreachable codes: one error of the path is counted, at most once per RTO, and no
    ///   error of the association.
    ///
    /// The caller should drain `poll_transmit` and `poll_event` afterwards.
    pub fn handle_icmp(&mut self, now: Nanos, icmp: &Icmp<'_>) {
        let meaning = icmp.meaning();
        if meaning == IcmpError::Nothing {
            return self.discards.count(DiscardReason::IcmpIgnored);
        }
        let Some(quote) = QuotedPacket::read(icmp.v6, icmp.quoted) else {
            return self.discards.count(DiscardReason::IcmpQuote);
        };
        if quote.source_port != self.port {
            return self.discards.count(DiscardReason::IcmpNoAssociation);
        }
        let (port, remote) = (quote.destination_port, quote.remote);
        let live = self.live(port, remote);
        let slot = live.or_else(|| {
            let mut claimants = self.table.claimants(port, remote, quote.verification_tag);
            claimants.find(|&slot| match self.table.get(slot) {
                Some(it) => !it.is_closed(),
                None => self.table.view(slot).is_some_and(|it| !it.is_closed()),
            })
        });
        let Some(slot) = slot else {
            return self.discards.count(DiscardReason::IcmpNoAssociation);
        };
        let Some(association) = self.table.get_mut(slot) else {
            return self.forward(slot, Input::Icmp(now, quote, meaning));
        };
        match association.handle_icmp(now, &quote, meaning) {
            None => self.table.touch(slot),
            Some(reason) => self.discards.count(reason),
        }
    }
}
