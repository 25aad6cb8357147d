//! ICMP messages: which association they are about, whether they can be believed, what follows (RFC 9260 §10).

use anabranch_transport::Nanos;

use super::Endpoint;
use crate::association::Association;
use crate::discard::Discard;
use crate::event::CloseReason;
use crate::icmp::{Icmp, Meaning, Quote};
use crate::path::PathId;
use crate::state::State;

impl Endpoint {
    /// Takes an ICMP message that reached this host. Only one that quotes a packet of an association's, with its ports, UDP
    /// port and verification tag (of an INIT: its Initiate Tag), has an effect; the others are counted by reason
    /// ([`Discard::IcmpIgnored`] and those after it). The effects:
    ///
    /// - packet too big: the path's packets become smaller ([`Association::lower_pmtu`]), never larger;
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
        let path = association.paths.find(quote.remote);
        let Some(path) =
            path.filter(|&path| association.paths.get(path).udp_port == quote.udp_port)
        else {
            return self.discards.count(Discard::IcmpStranger);
        };
        if !association.sent(&quote) {
            return self.discards.count(Discard::IcmpTag);
        }
        let acted = association.on_icmp(now, path, &quote, meaning);
        if !acted {
            return self.discards.count(Discard::IcmpIgnored);
        }
        association.control.icmp += 1;
        self.table.touch(slot);
    }
}

impl Association {
    /// Whether the quoted packet shows a tag that only the two ends and those on the way between them know.
    fn sent(&self, quote: &Quote) -> bool {
        match quote.verification_tag {
            0 => quote.initiate_tag == Some(self.local_tag),
            tag => tag == self.peer_tag,
        }
    }

    /// Does what the message asks for; `false` if it asks for nothing here.
    fn on_icmp(&mut self, now: Nanos, path: PathId, quote: &Quote, meaning: Meaning) -> bool {
        match meaning {
            Meaning::TooBig(mtu) => self.lower_pmtu(
                now,
                quote.remote,
                usize::try_from(mtu).unwrap_or(usize::MAX),
            ),
            Meaning::NoProtocol => self.on_nobody_there(quote),
            // The UDP port of an SCTP stack that is there is open; one that is not does not answer by ABORT.
            Meaning::NoPort if quote.udp_port != 0 => self.on_nobody_there(quote),
            Meaning::NoPort | Meaning::Nothing => false,
            Meaning::Unreachable => self.on_unreachable(now, path),
        }
    }

    /// As an ABORT; but what was said of an INIT counts in COOKIE-WAIT only, since afterwards somebody was there.
    fn on_nobody_there(&mut self, quote: &Quote) -> bool {
        let of_init = quote.verification_tag == 0;
        if of_init && !matches!(self.state, State::CookieWait(_)) {
            return false;
        }
        self.close(CloseReason::ProtocolUnreachable);
        true
    }

    /// A flight of packets draws a message each: they are one error, as a timeout would be.
    fn on_unreachable(&mut self, now: Nanos, path: PathId) -> bool {
        let entry = self.paths.get_mut(path);
        if entry.unreachable_until.is_some_and(|until| now < until) {
            return false;
        }
        entry.unreachable_until = Some(now.saturating_add(entry.rto.rto()));
        self.count_path_error(now, path);
        self.note_data_path(now);
        true
    }
}
