//! ICMP messages: which association they are about, whether they can be believed, what follows (RFC 9260 §10).

use anabranch_transport::Nanos;

use super::Endpoint;
use crate::discard::Discard;
use crate::icmp::{Icmp, Meaning, Quote};

impl Endpoint {
    /// Takes an ICMP message that reached this host. Only one that quotes a packet of an association's, with its ports, UDP
    /// port and verification tag (of an INIT: its Initiate Tag), has an effect; the others are counted by reason
    /// ([`Discard::IcmpIgnored`] and those after it). The effects:
    ///
    /// - packet too big: the path's packets become smaller ([`Association::lower_pmtu`](crate::Association::lower_pmtu)), never larger;
    /// - protocol unreachable, and inside UDP port unreachable (RFC 6951 §5.5): the association ends as by an ABORT;
    /// - other kinds of unreachable: one error of the path, at most once per RTO, and none of the association's.
    ///
    /// Afterwards drain `poll_transmit` and `poll_event`.
    pub fn handle_icmp(&mut self, now: Nanos, icmp: &Icmp<'_>) {
        let meaning = icmp.meaning();
        if meaning == Meaning::Nothing {
            return self.discards.count(Discard::IcmpIgnored);
        }
        let Some(quote) = Quote::read(icmp.v6, icmp.quoted) else {
            return self.discards.count(Discard::IcmpQuote);
        };
        if quote.source_port != self.port {
            return self.discards.count(Discard::IcmpStranger);
        }
        let (port, remote) = (quote.destination_port, quote.remote);
        let live = self.live(port, remote);
        let slot = live.or_else(|| {
            let mut claimants = self.table.claimants(port, remote, quote.verification_tag);
            claimants.find(|&slot| self.table.get(slot).is_some_and(|it| !it.is_closed()))
        });
        let Some(slot) = slot else {
            return self.discards.count(Discard::IcmpStranger);
        };
        let Some(association) = self.table.get_mut(slot) else {
            return;
        };
        match association.handle_icmp(now, &quote, meaning) {
            None => self.table.touch(slot),
            Some(reason) => self.discards.count(reason),
        }
    }
}
