//! Abandonment of messages: selection, timing, and the FORWARD TSN to the peer (RFC 3758 §3.5, RFC
//! 7496).
//!
//! The policy of a message is checked when the message would be started, continued or
//! retransmitted. Data in flight that is not considered lost may still arrive, and is not
//! abandoned.

use anabranch_transport::{Nanos, Probe, Trace, time};
use anabranch_wire::serial::{Fsn, Mid};
use anabranch_wire::{PacketBuilder, Tsn};
use bytes::Bytes;

use super::ack::Newly;
use super::delivery_receipts::DeliveryStatus;
use super::outstanding::{ChunkState, OutstandingChunk, Standing};
use super::send_queue::{Fragment, Unsent};
use super::{Message, SendError, Sender, T3Outcome};
use crate::path::{PathId, Paths};
use crate::pr_sctp::{
    AbandonPolicy, AbandonedCount, AbandonedMessage, ForwardTsnKind, MessageId, PrPolicy,
    PrSctpSender, SendOptions, TrackedMessage,
};
use crate::stream_scheduler::QueueId;

impl Sender {
    /// Sets whether messages may be abandoned, because both ends support partial reliability.
    pub(crate) fn set_partial_reliability(&mut self, spoken: bool) {
        let cumulative = self.outstanding.cumulative_point();
        self.queue.take_begun();
        self.pr_sctp = spoken.then(|| Box::new(PrSctpSender::new(cumulative)));
        self.forward_due = false;
    }

    /// Queues a message with per-message options.
    ///
    /// # Errors
    /// See [`SendError`]. After an error the message was not queued.
    pub(super) fn send_on_terms(
        &mut self,
        now: Nanos,
        message: Message,
        options: &SendOptions,
    ) -> Result<(), SendError> {
        let (stream, receipt) = (options.stream, options.receipt());
        if let Some(stream) = stream {
            self.check_stream(stream)?;
        }
        let queue_id = stream.map_or(QueueId::Unassigned, QueueId::Stream);
        // Before the handshake it is unknown whether the peer supports partial reliability.
        let may_matter = self.streams == 0 || self.pr_sctp.is_some();
        let terms = options.pr_policy(now).filter(|_| may_matter);
        let terms = match receipt {
            None => terms,
            Some(_) => Some(PrPolicy {
                receipt,
                ..terms.unwrap_or_default()
            }),
        };
        let Some(terms) = terms else {
            self.queue.set_context(options.context());
            let sent =
                self.queue_message(queue_id, message, options.is_immediate(), options.route());
            self.queue.set_context(0);
            return sent;
        };
        if message.payload.is_empty() {
            return Err(SendError::Empty);
        }
        if !self.make_room(message.payload.len(), &terms) {
            return Err(SendError::BufferFull);
        }
        let immediate = options.is_immediate() && self.profile.sack_immediately;
        self.queue.set_context(options.context());
        self.queue.push(
            queue_id,
            message,
            immediate,
            Some(Box::new(terms)),
            options.route(),
        );
        self.queue.set_context(0);
        self.burst.message_given = true;
        if receipt.is_some() {
            self.receipts.get_or_insert_default();
        }
        Ok(())
    }

    /// Whether messages may be abandoned.
    pub fn is_partially_reliable(&self) -> bool {
        self.pr_sctp.is_some()
    }

    /// Number of messages abandoned by `policy`, of one stream or of all.
    pub fn abandoned(&self, stream: Option<u16>, policy: AbandonPolicy) -> AbandonedCount {
        let Some(abandoning) = &self.pr_sctp else {
            return AbandonedCount::default();
        };
        match stream {
            Some(stream) => abandoning.count_on(stream, policy),
            None => abandoning.count(policy),
        }
    }

    /// Next abandoned message to report to the user.
    pub(crate) fn next_abandoned(&mut self) -> Option<AbandonedMessage> {
        let message = self.pr_sctp.as_mut()?.next_news()?;
        if let Some(stream) = message.stream {
            self.note_sent(stream);
        }
        Some(message)
    }

    /// Whether a FORWARD TSN must be sent.
    #[inline]
    pub(crate) fn forward_due(&self) -> bool {
        self.forward_due
    }

    /// Called when chunk `tsn` is sent for the first time: records the message if it has a policy
    /// or a receipt.
    #[cold]
    pub(super) fn note_terms(&mut self, tsn: Tsn) {
        self.note_receipt(tsn);
        let Some(abandoning) = &mut self.pr_sctp else {
            drop(self.queue.take_begun());
            return;
        };
        let Some(OutstandingChunk { fragment, .. }) = self.outstanding.get(tsn) else {
            return;
        };
        let (message, context) = (fragment.message(), fragment.context);
        if !fragment.beginning {
            return abandoning.go_on(message, tsn, fragment.ending);
        }
        if let Some(begun) = self.queue.take_begun().filter(|it| it.0.may_give_up()) {
            let (terms, payload) = *begun;
            abandoning.begin(TrackedMessage {
                tsns: vec![tsn],
                ended: fragment.ending,
                abandoned: false,
                message,
                ssn: fragment.ssn,
                ppid: fragment.ppid,
                payload,
                context,
                terms,
            });
        }
    }

    /// Policy that forbids the retransmission of the marked chunk `tsn`, if any.
    #[inline]
    pub(super) fn forbids(&self, now: Nanos, tsn: Tsn) -> Option<AbandonPolicy> {
        let abandoning = self.pr_sctp.as_ref()?;
        let chunk = self.outstanding.get(tsn)?;
        let record = abandoning.find(chunk.fragment.message())?;
        record.terms.forbids(now, chunk.transmissions)
    }

    /// Whether the lifetime of the next unsent message has expired.
    #[inline]
    pub(super) fn next_is_over(&self, now: Nanos) -> bool {
        self.pr_sctp.is_some() && self.next_is_over_at(now)
    }

    #[cold]
    fn next_is_over_at(&self, now: Nanos) -> bool {
        let next = self.queue.next_terms();
        next.is_some_and(|terms| terms.is_over(now))
    }

    /// Abandons messages whose chunks are next to be sent or retransmitted, but whose abandonment
    /// policy no longer permits this.
    #[inline]
    pub(crate) fn abandon_due(&mut self, now: Nanos, paths: &mut Paths) {
        if self.pr_sctp.is_some() {
            self.abandon_all_due(now, paths);
        }
    }

    /// Chunk that would be retransmitted next, and the policy that forbids its retransmission;
    /// `None` if the retransmission is allowed.
    fn next_forbidden(&self, now: Nanos, paths: &Paths) -> Option<(Tsn, AbandonPolicy)> {
        let forbidden = |tsn| Some((tsn, self.forbids(now, tsn)?));
        match self.uses_paths_at_once() {
            false => self.outstanding.first_marked().and_then(forbidden),
            true => self.next_on_each(paths).find_map(forbidden),
        }
    }

    #[cold]
    fn abandon_all_due(&mut self, now: Nanos, paths: &mut Paths) {
        let mut any = false;
        while let Some((tsn, policy)) = self.next_forbidden(now, paths) {
            let Some(message) = self.outstanding.get(tsn).map(|it| it.fragment.message()) else {
                break;
            };
            self.abandon(message, policy, paths);
            any = true;
        }
        loop {
            let over = self.queue.started_terms().is_some_and(|it| it.is_over(now));
            if let Some(message) = self.queue.started_message().filter(|_| over) {
                self.abandon(message, AbandonPolicy::Lifetime, paths);
                any = true;
            } else if self.next_is_over(now) {
                let unsent = self.queue.drop_next();
                self.note_unsent(unsent, AbandonPolicy::Lifetime);
            } else {
                break;
            }
        }
        if any {
            self.advance_point();
            self.forward_due |= self.forward_pending();
        }
    }

    /// Abandons unsent messages of lower priority until `length` bytes of a message with policy
    /// `terms` fit into the send buffer. Returns whether they fit.
    fn make_room(&mut self, length: usize, terms: &PrPolicy) -> bool {
        while self.queue.bytes() > 0 && self.queue.bytes() + length > self.send_buffer {
            let priority = terms.priority.filter(|_| self.pr_sctp.is_some());
            let unsent = priority.and_then(|priority| self.queue.drop_lower(priority));
            if unsent.is_none() {
                return false;
            }
            self.note_unsent(unsent, AbandonPolicy::Priority);
        }
        true
    }

    fn note_unsent(&mut self, unsent: Option<Unsent>, policy: AbandonPolicy) {
        let (Some(unsent), Some(abandoning)) = (unsent, &mut self.pr_sctp) else {
            return;
        };
        let Unsent {
            stream,
            message,
            context,
            receipt,
        } = unsent;
        self.statistics.rare().abandoned_unsent += 1;
        abandoning.note(AbandonedMessage {
            stream,
            ppid: message.ppid,
            unordered: message.unordered,
            payload: message.payload,
            context,
            policy,
            sent: false,
        });
        self.answer_all(receipt, DeliveryStatus::Abandoned(policy));
    }

    /// Abandons a partly sent message with all its chunks (RFC 3758 §3.5 A2, A3).
    fn abandon(&mut self, message: MessageId, policy: AbandonPolicy, paths: &mut Paths) {
        let Some(abandoning) = &mut self.pr_sctp else {
            return;
        };
        let Some(record) = abandoning.find_mut(message) else {
            return self.queue.drop_started(message.0);
        };
        let (stream, unordered, mid) = message;
        record.abandoned = true;
        let unended = !record.ended;
        let told = AbandonedMessage {
            stream: Some(stream),
            ppid: record.ppid,
            unordered,
            payload: std::mem::take(&mut record.payload),
            context: record.context,
            policy,
            sent: true,
        };
        let tsns = record.tsns.clone();
        let receipt = record.terms.receipt;
        let end = Fragment {
            stream,
            ssn: record.ssn,
            mid: Mid(mid),
            fsn: Fsn(0),
            ppid: record.ppid,
            unordered,
            beginning: false,
            ending: true,
            immediate: false,
            context: 0,
            user_data: Bytes::new(),
        };
        self.statistics.rare().abandoned_sent += 1;
        abandoning.note(told);
        if let (Some(receipts), Some(number)) = (&mut self.receipts, receipt) {
            receipts.abandoned(number, tsns.last().copied(), policy);
        }
        if unended {
            // Reserves a TSN for the last fragment, which is never sent. The receiver then sees a
            // gap, and not the start of another message within this one.
            abandoning.go_on(message, self.outstanding.next_tsn(), true);
        }
        abandoning.given_up(message);
        for tsn in tsns {
            if let Some(standing) = self.outstanding.abandon(tsn) {
                self.release(tsn, &standing, paths);
            }
        }
        if unended {
            self.queue.drop_started(stream);
            self.skip_one(end);
        }
        self.peer_rwnd = self
            .believed_window()
            .saturating_sub(self.in_flight_for_window());
    }

    /// Uses a TSN for a fragment that is never sent.
    #[inline(never)]
    fn skip_one(&mut self, fragment: Fragment) {
        let tsn = self.outstanding.next_tsn();
        self.outstanding.push(OutstandingChunk {
            fragment,
            state: ChunkState::InFlight,
            path: PathId(0),
            moved: false,
            sent_at: 0,
            transmissions: 0,
            begins_packet: false,
            missing_reports: 0,
            fast_retransmitted: false,
            reported: false,
        });
        self.outstanding.abandon(tsn);
    }

    /// Removes an abandoned chunk from the bytes in flight or marked.
    fn release(&mut self, tsn: Tsn, standing: &Standing, paths: &mut Paths) {
        let (bytes, rwnd) = (
            self.profile.cwnd_counts.bytes(standing.length),
            self.profile.rwnd_counts.bytes(standing.length),
        );
        let entry = paths.get_mut(standing.path);
        match standing.state {
            ChunkState::InFlight => {
                entry.flightsize -= bytes;
                self.rwnd_in_flight -= rwnd;
            }
            ChunkState::Marked { .. } => {
                entry.marked_bytes -= bytes;
                self.rwnd_marked -= rwnd;
            }
            ChunkState::GapAcked => self.forget_gap_acked(standing.path, standing.length),
            ChunkState::Abandoned => {}
        }
        let entry = paths.get_mut(standing.path);
        entry.timed = entry.timed.filter(|timed| *timed != tsn);
        self.probe = self.probe.filter(|probe| probe.tsn != tsn);
    }

    /// Advances Advanced.Peer.Ack.Point over abandoned chunks (RFC 3758 §3.5 C2).
    fn advance_point(&mut self) {
        let Some(abandoning) = &mut self.pr_sctp else {
            return;
        };
        let given_up = |tsn| {
            let chunk = self.outstanding.get(tsn);
            chunk.is_some_and(|chunk| chunk.state == ChunkState::Abandoned)
        };
        while given_up(abandoning.point().next()) {
            abandoning.advance();
        }
    }

    /// Whether a FORWARD TSN can move the peer's cumulative TSN forward, because abandoned chunks
    /// follow the cumulative TSN that it has acknowledged.
    pub(super) fn forward_pending(&self) -> bool {
        let cumulative = self.outstanding.cumulative_point();
        let pending = |it: &PrSctpSender| it.point().gt(cumulative);
        self.pr_sctp.as_deref().is_some_and(pending)
    }

    /// Records that the peer's cumulative TSN has passed an abandoned chunk, which shows that the
    /// peer is alive and has received the FORWARD TSN.
    #[cold]
    pub(super) fn passed_abandoned(&mut self, newly: &mut Newly) {
        newly.chunks += 1;
        let before = self.outstanding.cumulative_point().prev();
        let path = self.pr_sctp.as_ref().and_then(|it| it.sent_on(before));
        if let Some(ack) = path.and_then(|path| self.acks.get_mut(usize::from(path.0))) {
            ack.alive = true;
        }
    }

    /// Called after each acknowledgment: advances the Advanced.Peer.Ack.Point (RFC 3758 §3.5 C1 to
    /// C3).
    #[inline]
    pub(super) fn follow_acknowledgement(
        &mut self,
        now: Nanos,
        cumulative: Tsn,
        paths: &mut Paths,
    ) {
        if self.pr_sctp.is_some() {
            self.follow(now, cumulative, paths);
        }
        if let Some(receipts) = &mut self.receipts {
            receipts.acknowledged(cumulative);
        }
    }

    #[cold]
    fn follow(&mut self, now: Nanos, cumulative: Tsn, paths: &mut Paths) {
        if let Some(abandoning) = &mut self.pr_sctp {
            abandoning.acknowledged(cumulative);
        }
        self.advance_point();
        let pending = self.forward_pending();
        let path = paths.choose_for_new_data();
        let rto = &paths.get(path).rto;
        let round_trip = rto.srtt().unwrap_or(rto.rto());
        let worth = |it: &PrSctpSender| it.must_be_sent(now, round_trip);
        self.forward_due = pending && self.pr_sctp.as_deref().is_some_and(worth);
        if pending && paths.next_t3().is_none() {
            paths.get_mut(path).start_t3(now); // C5
        }
    }

    /// Adds a FORWARD TSN that is due on path `id` to a packet, if it fits.
    pub(crate) fn push_forward_tsn(
        &mut self,
        now: Nanos,
        id: PathId,
        packet: &mut PacketBuilder<'_>,
        paths: &mut Paths,
    ) {
        let cumulative = self.outstanding.cumulative_point();
        let Some(abandoning) = self.pr_sctp.as_mut().filter(|_| self.forward_due) else {
            return;
        };
        let form = if self.interleaving {
            ForwardTsnKind::ByMid
        } else {
            ForwardTsnKind::BySsn
        };
        match abandoning.forward(form, cumulative, packet.room()) {
            None if !packet.is_empty() => return,
            None => {}
            Some((point, forward)) if packet.push(&forward).is_ok() => {
                abandoning.tell(now, point, id);
                self.statistics.rare().forward_tsns += 1;
            }
            Some(_) => return,
        }
        self.forward_due = false;
        // RFC 3758 §3.5 C5: a T3-rtx timer must run.
        if paths.next_t3().is_none() {
            paths.get_mut(id).start_t3(now);
        }
    }

    /// Must be called when T3-rtx of path `id` expires while no data is in flight on this path. The
    /// timer may have been started for a FORWARD TSN, which is then sent again (RFC 3758 §3.5 A5).
    pub(super) fn repeat_forward_tsn(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> T3Outcome {
        if !self.forward_pending() || paths.next_t3().is_some() {
            return T3Outcome::Nothing;
        }
        let rto = &mut paths.get_mut(id).rto;
        rto.back_off();
        trace.record(now, Probe::Rto, id.0.into(), time::seconds(rto.rto()));
        self.statistics.rare().timeouts += 1;
        self.forward_due = true;
        T3Outcome::Marked { count_error: true }
    }
}
