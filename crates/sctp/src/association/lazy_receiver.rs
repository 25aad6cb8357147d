//! What receives is made when there is first something for it to do: many associations are up for long and never receive DATA.

use anabranch_wire::Tsn;

use super::Association;
use crate::config::Config;
use crate::extensions::{INTERLEAVING, RE_CONFIG};
use crate::rx::Receiver;
use crate::state::{Known, State};

impl Association {
    /// What receives while the association lives, once something came.
    #[inline]
    pub(super) fn live_rx(&self) -> Option<&Receiver> {
        match self.state {
            State::Closed(_) => None,
            _ => self.rx.as_deref(),
        }
    }

    /// As [`Self::sack_due`], where it is known that the association is not over.
    #[inline(always)]
    pub(super) fn owes_sack(&self) -> bool {
        self.rx.as_deref().is_some_and(Receiver::sack_due)
    }

    /// The first DATA comes, in a packet of so many bytes: what receives is made, where DATA is taken at all.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_to_receive(&mut self, packet: usize) {
        if self.state.receives_data()
            && let State::Known(known) = &self.state
        {
            let rx = begun(known, &self.config, self.inbound_streams);
            self.rx.insert(rx).on_packet_begin(packet);
        }
    }

    /// The handshake has settled what is spoken. What receives is there at once where that does not begin with DATA alone. What was received in
    /// a former life stays readable.
    #[cold]
    #[inline(never)]
    pub(super) fn receive_anew(&mut self) {
        let State::Known(known) = &self.state else {
            return;
        };
        let former = self.rx.take();
        if former.is_none() && may_wait(known) {
            return;
        }
        let mut rx = begun(known, &self.config, self.inbound_streams);
        if let Some(mut former) = former {
            rx.inherit(&mut former);
        }
        self.rx = Some(rx);
    }

    /// The last TSN of the peer's before which none is missing.
    pub(super) fn cumulative(&self, known: &Known) -> Tsn {
        match &self.rx {
            Some(rx) => rx.cumulative_tsn(),
            None => known.peer.initial_tsn.prev(),
        }
    }
}

/// Whether what receives need not be there before there is DATA.
fn may_wait(known: &Known) -> bool {
    #[cfg(test)]
    if crate::tx::EARLY.get() {
        return false;
    }
    let spoken = known.extensions;
    !spoken.has(&INTERLEAVING) && !spoken.give_up() && !spoken.has(&RE_CONFIG)
}

/// What receives, on `streams` of the peer's.
fn begun(known: &Known, config: &Config, streams: u16) -> Box<Receiver> {
    // Made in its block, and not moved there: nothing here can fail.
    let block = Box::new_uninit();
    let rx = Receiver::new(config, known.peer.initial_tsn, streams);
    let mut rx = Box::write(block, rx);
    let gives_up = known.extensions.give_up();
    rx.expect_abandoned(gives_up);
    rx.expect_interleaved(known.extensions.has(&INTERLEAVING), gives_up);
    rx
}
