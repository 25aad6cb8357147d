//! Receiver that is created on first use, because many associations never receive DATA.

use anabranch_wire::Tsn;

use super::Association;
use crate::config::Config;
use crate::extensions::{INTERLEAVING, RE_CONFIG};
use crate::rx::Receiver;
use crate::state::{State, Tcb};

impl Association {
    /// Receiver of an open association; `None` if it was not created yet.
    #[inline]
    pub(super) fn live_rx(&self) -> Option<&Receiver> {
        match self.state {
            State::Closed(_) => None,
            _ => self.rx.as_deref(),
        }
    }

    /// Like [`Self::sack_due`], for an association that is known to be open.
    #[inline(always)]
    pub(super) fn owes_sack(&self) -> bool {
        self.rx.as_deref().is_some_and(Receiver::sack_due)
    }

    /// Creates the receiver when the first DATA arrives, in a packet of `packet` bytes, if the
    /// state accepts DATA.
    #[cold]
    #[inline(never)]
    pub(super) fn begin_to_receive(&mut self, packet: usize) {
        if self.state.receives_data()
            && let State::Active(known) = &self.state
        {
            let rx = begun(
                known,
                &self.config,
                self.inbound_streams,
                self.manages_keys(),
            );
            self.rx.insert(rx).on_packet_begin(packet);
        }
    }

    /// Sets up the receiver after the handshake. The receiver is created at once if a negotiated
    /// extension may need it before the first DATA. Data received before a restart stays readable.
    #[cold]
    #[inline(never)]
    pub(super) fn receive_anew(&mut self) {
        let State::Active(known) = &self.state else {
            return;
        };
        let former = self.rx.take();
        if former.is_none() && may_wait(known) {
            return;
        }
        let mut rx = begun(
            known,
            &self.config,
            self.inbound_streams,
            self.manages_keys(),
        );
        if let Some(mut former) = former {
            rx.take_over_unread(&mut former);
        }
        self.rx = Some(rx);
    }

    /// Whether the association may receive key management messages in addition to user messages.
    fn manages_keys(&self) -> bool {
        self.dtls.as_ref().is_some_and(|it| it.method.is_some())
    }

    /// Cumulative TSN of the received data.
    pub(super) fn cumulative(&self, known: &Tcb) -> Tsn {
        match &self.rx {
            Some(rx) => rx.cumulative_tsn(),
            None => known.peer.initial_tsn.prev(),
        }
    }
}

/// Whether the receiver can be created later, when the first DATA arrives.
fn may_wait(known: &Tcb) -> bool {
    #[cfg(test)]
    if crate::tx::EARLY.get() {
        return false;
    }
    let spoken = known.extensions;
    !spoken.has(&INTERLEAVING) && !spoken.give_up() && !spoken.has(&RE_CONFIG)
}

/// Creates the receiver for `streams` inbound streams. `keys`: key management messages may arrive.
fn begun(known: &Tcb, config: &Config, streams: u16, keys: bool) -> Box<Receiver> {
    // The receiver is constructed directly in its allocation, without a move, because no step can
    // fail.
    let block = Box::new_uninit();
    let rx = Receiver::new(config, known.peer.initial_tsn, streams);
    let mut rx = Box::write(block, rx);
    let gives_up = known.extensions.give_up();
    rx.expect_abandoned(gives_up);
    rx.expect_key_messages(keys);
    rx.expect_interleaved(known.extensions.has(&INTERLEAVING));
    rx
}
