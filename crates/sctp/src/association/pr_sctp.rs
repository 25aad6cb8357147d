//! Association part of partial reliability: messages abandoned by the user and by the peer (RFC
//! 3758, [`crate::pr_sctp`]).

use anabranch_transport::Nanos;
use anabranch_wire::extension::ForwardTsn;
use anabranch_wire::packet::PacketBuilder;
use bytes::Bytes;

use super::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::{Event, UndeliveredCause, UndeliveredMessage};
use crate::path::PathId;
use crate::pr_sctp::{AbandonPolicy, AbandonedCount, SendOptions};
use crate::rx::{Abandoned, ForwardTsnOutcome};
use crate::tx::{SendError, Sender};

impl Association {
    /// Like [`Association::send`], with per-message options.
    pub(super) fn send_with(
        &mut self,
        now: Nanos,
        payload: Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        self.takes_messages(Some(options.ppid))?;
        let options = options.or(&self.send_defaults());
        let sent = self.sender().send(now, payload, &options);
        self.tell_given_up();
        sent
    }

    /// Whether a message with these options has a lifetime, either from `options` or from the
    /// [defaults](crate::AssociationSettings::send_defaults). Without a lifetime the time of
    /// queuing does not matter.
    pub fn has_lifetime(&self, options: &SendOptions) -> bool {
        let of_defaults = || self.slow_send && self.send_defaults().lifetime().is_some();
        options.lifetime().is_some() || of_defaults()
    }

    /// Local messages abandoned by `policy`, of all streams (SCTP_PR_ASSOC_STATUS, RFC 7496 §4.4)
    /// or of one (SCTP_PR_STREAM_STATUS, §4.3).
    pub fn abandoned(&self, stream: Option<u16>, policy: AbandonPolicy) -> AbandonedCount {
        let tx = self.tx.get();
        tx.map_or_else(Default::default, |it| it.abandoned(stream, policy))
    }

    /// Abandons messages whose chunks are next to be sent or retransmitted, but whose abandonment
    /// policy no longer permits this.
    #[inline]
    pub(super) fn give_up_due(&mut self, now: Nanos) {
        if self.tx.is_partially_reliable() {
            self.give_up(now);
        }
    }

    #[cold]
    fn give_up(&mut self, now: Nanos) {
        if self.state.sends_data() {
            if let Some(tx) = self.tx.get_mut() {
                tx.abandon_due(now, &mut self.paths);
            }
            self.tell_given_up();
            self.advance_reconfiguration();
            self.advance_shutdown(now);
        }
    }

    /// Reports abandoned messages to the user.
    pub(super) fn tell_given_up(&mut self) {
        if let Some(tx) = self.tx.get_mut() {
            let messages = std::iter::from_fn(|| tx.next_abandoned());
            self.events.abandoned(messages);
        }
        self.tell_receipts();
    }

    /// Reports all messages of the sender to the user as undelivered, before the sender is dropped.
    #[cold]
    pub(super) fn tell_undelivered(&mut self, cause: UndeliveredCause) {
        let last = matches!(cause, UndeliveredCause::Closed(_));
        let messages = self.tx.take_undelivered();
        let messages = messages.map(|it| UndeliveredMessage::of(it, cause.clone()));
        self.events.undelivered(messages, last);
    }

    /// Reports the outcome of messages with receipts.
    #[inline]
    pub(super) fn tell_receipts(&mut self) {
        while let Some((number, delivery)) = self.tx.get_mut().and_then(Sender::next_receipt) {
            self.events.receipt(number, delivery);
        }
    }

    /// Processes a FORWARD TSN (RFC 3758 §3.6).
    pub(super) fn on_forward_tsn(
        &mut self,
        now: Nanos,
        from: PathId,
        forward: &ForwardTsn,
        discards: &mut DiscardCounts,
    ) {
        if !self.state.receives_data() || self.is_unsure_of_numbers() {
            return discards.count(DiscardReason::WrongState);
        }
        let Some(rx) = &mut self.rx else {
            return;
        };
        rx.note_events(self.events.count());
        self.sack_path = from;
        self.data_taken = true;
        if self.tx.is_interleaving() {
            return self.refuse_protocol("FORWARD TSN where I-FORWARD-TSN was agreed on");
        }
        let forwarded = rx.handle_forward_tsn(now, forward, &mut self.trace);
        self.note_forwarded(forwarded, discards);
    }

    /// Destination of a FORWARD TSN that is due; always a confirmed address (RFC 3758 §3.5 C3).
    pub(super) fn forward_destination(&self) -> Option<PathId> {
        if !self.tx.forward_due() || !self.may_send_data() {
            return None;
        }
        let path = self.paths.choose_for_new_data();
        self.paths.get(path).is_verified().then_some(path)
    }

    /// Adds a FORWARD TSN if it is due on `path`.
    pub(super) fn push_forward_tsn(
        &mut self,
        now: Nanos,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) {
        if self.forward_destination() == Some(path) {
            self.tx
                .make(&self.config, self.local_initial_tsn)
                .push_forward_tsn(now, path, packet, &mut self.paths);
        }
    }

    /// Reports partially delivered messages that the peer has abandoned.
    pub(super) fn tell_aborted(&mut self) {
        if let Some(rx) = &mut self.rx {
            let aborted = rx.take_aborted().into_iter().map(Abandoned::told);
            self.events.extend(aborted);
        }
    }

    /// Handles the result of a received FORWARD TSN.
    pub(super) fn note_forwarded(
        &mut self,
        forwarded: ForwardTsnOutcome,
        discards: &mut DiscardCounts,
    ) {
        match forwarded {
            ForwardTsnOutcome::Moved {
                aborted,
                streams_ignored,
            } => {
                (0..streams_ignored).for_each(|_| discards.count(DiscardReason::BadForwardTsn));
                let aborted = aborted.into_iter().map(Abandoned::told);
                self.events.extend(aborted);
            }
            ForwardTsnOutcome::Behind | ForwardTsnOutcome::BeyondWindow => {
                discards.count(DiscardReason::BadForwardTsn);
            }
        }
    }
}

impl Abandoned {
    /// Event that reports the abandoned message to the user.
    pub(super) fn told(self) -> Event {
        Event::PartialDeliveryAborted {
            stream: self.stream,
            unordered: self.unordered,
            ssn: self.ssn,
            first_tsn: self.tsn,
            ppid: self.ppid,
        }
    }
}
