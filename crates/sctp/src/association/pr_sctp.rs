//! Partial reliability's part of an association: what its user gives up, and what the peer has (RFC 3758, [`crate::pr_sctp`]).

use anabranch_transport::Nanos;
use anabranch_wire::extension::ForwardTsn;
use bytes::Bytes;

use super::Association;
use crate::discard::{Discard, Discards};
use crate::event::{Event, UndeliveredCause, UndeliveredMessage};
use crate::path::PathId;
use crate::pr_sctp::{AbandonPolicy, AbandonedCount, SendOptions};
use crate::rx::{Abandoned, ForwardTsnOutcome};
use crate::tx::{SendError, Sender};

impl Association {
    /// As [`Association::send`], where more is said of the message.
    pub(super) fn send_with(
        &mut self,
        now: Nanos,
        payload: Bytes,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        self.takes_messages()?;
        let options = options.or(&self.send_defaults());
        let sent = self.sender().send(now, payload, &options);
        self.tell_given_up();
        sent
    }

    /// Whether a message of that size is taken for certain by [`Association::send`]: the
    /// stream exists, and the send buffer has room for it. One that is not may be taken all the same, where others are given up for it.
    #[inline]
    pub fn takes(&self, stream: Option<u16>, size: usize) -> bool {
        self.takes_messages().is_ok() && self.tx.get().is_some_and(|tx| tx.takes(stream, size))
    }

    /// Whether a message that is sent so has a lifetime, its own or that of the [defaults](crate::AssociationSettings::send_defaults): only then it
    /// matters when it is given.
    pub fn has_lifetime(&self, options: &SendOptions) -> bool {
        let of_defaults = || self.has_send_policy && self.send_defaults().lifetime.is_some();
        options.lifetime.is_some() || of_defaults()
    }

    /// Messages of this side abandoned by `policy`, of all streams (SCTP_PR_ASSOC_STATUS, RFC 7496 §4.4) or of one (SCTP_PR_STREAM_STATUS, §4.3).
    pub fn abandoned(&self, stream: Option<u16>, policy: AbandonPolicy) -> AbandonedCount {
        let tx = self.tx.get();
        tx.map_or_else(Default::default, |it| it.abandoned(stream, policy))
    }

    /// Gives up what is not to be sent any more and would be next.
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

    /// Tells the user of messages that were given up.
    pub(super) fn tell_given_up(&mut self) {
        if let Some(tx) = self.tx.get_mut() {
            let messages = std::iter::from_fn(|| tx.next_abandoned());
            self.events.abandoned(messages);
        }
        self.tell_receipts();
    }

    /// Gives the user all messages back that the sender holds, which goes.
    #[cold]
    pub(super) fn tell_undelivered(&mut self, cause: UndeliveredCause) {
        let last = matches!(cause, UndeliveredCause::Closed(_));
        let messages = self.tx.take_undelivered();
        let messages = messages.map(|it| UndeliveredMessage::of(it, cause.clone()));
        self.events.undelivered(messages, last);
    }

    /// Tells the user what became of messages, if it wants to know.
    #[inline]
    pub(super) fn tell_receipts(&mut self) {
        while let Some((number, delivery)) = self.tx.get_mut().and_then(Sender::next_receipt) {
            self.events.receipt(number, delivery);
        }
    }

    /// FORWARD TSN (RFC 3758 §3.6).
    pub(super) fn on_forward_tsn(
        &mut self,
        now: Nanos,
        from: PathId,
        forward: &ForwardTsn,
        discards: &mut Discards,
    ) {
        if !self.state.receives_data() || self.is_unsure_of_numbers() {
            return discards.count(Discard::Unexpected);
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
        let forwarded = rx.handle_forward_tsn(now, forward, from, &mut self.trace);
        self.note_forwarded(forwarded, discards);
    }

    /// Tells the user of messages that the peer has left without an end.
    pub(super) fn tell_aborted(&mut self) {
        if let Some(rx) = &mut self.rx {
            let aborted = rx.take_aborted().into_iter().map(Abandoned::told);
            self.events.extend(aborted);
        }
    }

    /// What follows from a FORWARD TSN.
    pub(super) fn note_forwarded(&mut self, forwarded: ForwardTsnOutcome, discards: &mut Discards) {
        match forwarded {
            ForwardTsnOutcome::Moved {
                aborted,
                streams_ignored,
            } => {
                (0..streams_ignored).for_each(|_| discards.count(Discard::BadForwardTsn));
                let aborted = aborted.into_iter().map(Abandoned::told);
                self.events.extend(aborted);
            }
            ForwardTsnOutcome::Behind | ForwardTsnOutcome::BeyondWindow => {
                discards.count(Discard::BadForwardTsn);
            }
        }
    }
}

impl Abandoned {
    /// What the user is told of it.
    pub(super) fn told(self) -> Event {
        Event::PartialDeliveryAborted {
            stream: self.stream,
            unordered: self.unordered,
            ssn: self.ssn,
            first_tsn: self.first_tsn,
            ppid: self.ppid,
        }
    }
}
