//! End of an association: graceful SHUTDOWN, and ABORT (RFC 9260 §9).

use anabranch_transport::Nanos;
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::serial::Tsn;
use bytes::Bytes;

use super::{Association, LastChunk, Parting};
use crate::compact_option::OptionalNanos;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::error::CloseError;
use crate::event::{CloseReason, Event, Violation};
use crate::path::PathId;
use crate::state::{Closing, ControlRetransmission, EstablishedState};

/// Maximum number of bytes of the user's reason in an ABORT.
pub(crate) const MAX_REASON: usize = 512;

impl Association {
    /// Starts a graceful shutdown: accepted messages are still delivered and acknowledged, and no
    /// more are accepted (RFC 9260 §9.2, §11.1.3). [`Event::Closed`] reports the end.
    ///
    /// With a `timeout` in nanoseconds, an association that has not closed after this time is
    /// aborted in any state ([`CloseReason::ShutdownTimeout`]). Without a timeout, an association
    /// whose peer never answers the SHUTDOWN ends when
    /// [`Config::association_max_retrans`](crate::Config::association_max_retrans) is exceeded or
    /// T5-shutdown-guard expires. That timer runs for five times
    /// [`Config::rto_max`](crate::Config::rto_max), which is five minutes by default. A later call
    /// can only shorten the time.
    ///
    /// # Errors
    /// The association is closed already.
    pub fn shutdown(&mut self, now: Nanos, timeout: Option<Nanos>) -> Result<(), CloseError> {
        if self.is_closed() {
            return Err(CloseError::Closed);
        }
        if let Some(wish) = self.state.shutdown_when_open() {
            *wish = true;
        } else if self.is_established() {
            self.finish_data(now, EstablishedState::ShutdownPending);
            self.advance_shutdown(now);
        }
        if let Some(timeout) = timeout {
            let by = now.saturating_add(timeout);
            self.close_by = OptionalNanos::some(self.close_by.or_never().min(by));
        }
        Ok(())
    }

    /// Starts (`true`) or ends the application of
    /// [`Config::drain_timeout`](crate::Config::drain_timeout) in the state ESTABLISHED, for an
    /// application that waits until all messages are acknowledged before it sends its last message
    /// and requests the shutdown (RFC 6083 §4.9). Messages can still be sent.
    pub fn expect_drain(&mut self, now: Nanos, drains: bool) {
        self.drains = drains;
        if self.is_established() {
            self.drained_at = now;
        }
    }

    /// Stops accepting messages; messages that were already accepted are still delivered.
    pub(crate) fn finish_data(&mut self, now: Nanos, stage: EstablishedState) {
        self.drop_pending_requests();
        self.set_stage(stage);
        self.drained_at = now;
    }

    /// Deadline of the shutdown: the user's timeout, or the drain timeout for data or a SHUTDOWN
    /// ACK that the peer does not acknowledge. The drain timeout also applies before an
    /// [expected](Self::expect_drain) shutdown.
    pub(crate) fn closing_deadline(&self) -> Option<Nanos> {
        let drain = match self.state.stage() {
            Some(EstablishedState::ShutdownPending | EstablishedState::ShutdownReceived) => {
                self.config.drain_timeout
            }
            // A SHUTDOWN ACK that answers a repeated SHUTDOWN does not count as a retransmission,
            // so against a peer that repeats its SHUTDOWN only this limit ends the association.
            Some(EstablishedState::ShutdownAckSent(_)) => self.config.drain_timeout,
            Some(EstablishedState::Established) if self.drains => self.config.drain_timeout,
            _ => None,
        };
        let drained_by = drain.map(|drain| self.drained_at.saturating_add(drain));
        self.close_by.get().into_iter().chain(drained_by).min()
    }

    /// Handles the expiration of [`Self::closing_deadline`].
    pub(crate) fn give_up_closing(&mut self) {
        let reason = Bytes::from_static(b"the shutdown took too long");
        self.abort_with(
            Cause::UserInitiatedAbort { reason },
            CloseReason::ShutdownTimeout,
        );
    }

    /// Handles the expiration of T5-shutdown-guard: the shutdown ends with an ABORT, even if
    /// retransmissions were left (RFC 9260 §9.2).
    pub(crate) fn on_guard_expired(&mut self) {
        let information = Bytes::from_static(b"T5-shutdown-guard expired");
        self.abort_with(
            Cause::ProtocolViolation { information },
            CloseReason::ShutdownTimeout,
        );
    }

    /// Aborts the association immediately and sends `reason` to the peer (RFC 9260 §9.1, §11.1.4).
    /// Queued and outstanding messages are lost. A reason longer than 512 bytes is truncated.
    ///
    /// # Errors
    /// The association is closed already.
    pub fn abort(&mut self, _now: Nanos, mut reason: Bytes) -> Result<(), CloseError> {
        if self.is_closed() {
            return Err(CloseError::Closed);
        }
        reason.truncate(MAX_REASON);
        self.abort_with(
            Cause::UserInitiatedAbort { reason },
            CloseReason::AbortedHere,
        );
        Ok(())
    }

    /// Sends an ABORT with `cause` if the peer's tag is known, and closes the association.
    pub(crate) fn abort_with(&mut self, cause: Cause, reason: CloseReason) {
        self.abort_under(self.state.peer_tag(), cause, reason);
    }

    /// Like [`Self::abort_with`], with a tag that the peer has announced and that is not stored
    /// yet.
    pub(crate) fn abort_under(&mut self, tag: Option<u32>, cause: Cause, reason: CloseReason) {
        self.parting =
            tag.map(|peer_tag| Parting::new(peer_tag, LastChunk::Abort(Causes::of(&[cause]))));
        self.close(reason);
    }

    /// Aborts the association because the peer violated the protocol.
    pub(crate) fn refuse(&mut self, cause: Cause, violation: Violation) {
        self.abort_with(cause, CloseReason::PeerViolation(violation));
    }

    /// Continues a shutdown if no data is outstanding or queued.
    #[inline(always)]
    pub(crate) fn advance_shutdown(&mut self, now: Nanos) {
        if self.is_established() {
            return;
        }
        self.advance_shutdown_to(now, self.paths.choose_for_new_data());
    }

    /// Like [`Self::advance_shutdown`], with SHUTDOWN or SHUTDOWN ACK to `path`.
    #[inline(never)]
    fn advance_shutdown_to(&mut self, now: Nanos, path: PathId) {
        let closes = match self.state.stage() {
            Some(EstablishedState::ShutdownPending) => true,
            Some(EstablishedState::ShutdownReceived) => false,
            _ => return,
        };
        // Without a usable source or destination address, the shutdown waits for a new address.
        if !self.tx.is_drained() || self.is_mute() || !self.paths.has_verified() {
            return;
        }
        self.drained_at = now;
        let guard = now.saturating_add(self.config.shutdown_guard());
        let closing = Box::new(Closing {
            retry: ControlRetransmission::new(path),
            guard: closes.then_some(guard),
        });
        self.set_stage(if closes {
            EstablishedState::ShutdownSent(closing)
        } else {
            EstablishedState::ShutdownAckSent(closing)
        });
    }

    /// Processes a SHUTDOWN received over `from`, the destination of the SHUTDOWN ACK (RFC 9260
    /// §6.4, §9.2).
    pub(crate) fn on_shutdown(
        &mut self,
        now: Nanos,
        from: PathId,
        cumulative_tsn_ack: Tsn,
        discards: &mut DiscardCounts,
    ) {
        match self.state.stage_mut() {
            None | Some(EstablishedState::CookieEchoed(_)) => {
                discards.count(DiscardReason::WrongState)
            }
            Some(EstablishedState::Established | EstablishedState::ShutdownPending) => {
                self.finish_data(now, EstablishedState::ShutdownReceived);
                self.events.push_back(Event::PeerShutdown);
                self.finish_sending(now, from, cumulative_tsn_ack, discards);
            }
            Some(EstablishedState::ShutdownReceived) => {
                self.finish_sending(now, from, cumulative_tsn_ack, discards);
            }
            // Both ends sent a SHUTDOWN at the same time.
            Some(EstablishedState::ShutdownSent(closing)) => {
                let closing = Closing {
                    retry: ControlRetransmission::new(from),
                    ..**closing
                };
                self.set_stage(EstablishedState::ShutdownAckSent(Box::new(closing)));
                self.drained_at = now;
            }
            // The SHUTDOWN ACK was lost.
            Some(EstablishedState::ShutdownAckSent(closing)) => {
                closing.retry.path = from;
                closing.retry.due = true;
            }
        }
    }

    fn finish_sending(
        &mut self,
        now: Nanos,
        from: PathId,
        cumulative_tsn_ack: Tsn,
        discards: &mut DiscardCounts,
    ) {
        self.on_cumulative_ack(now, cumulative_tsn_ack, discards);
        self.advance_shutdown_to(now, from);
    }

    /// Processes a SHUTDOWN ACK with a valid tag. In COOKIE-WAIT and COOKIE-ECHOED it is out of the
    /// blue and handled elsewhere (RFC 9260 §8.5.1 E).
    pub(crate) fn on_shutdown_ack(&mut self, from: PathId, discards: &mut DiscardCounts) {
        if self.state.closing().is_none() {
            return discards.count(DiscardReason::WrongState);
        }
        let tag = self.state.peer_tag();
        self.parting =
            tag.map(|peer_tag| Parting::new(peer_tag, LastChunk::ShutdownComplete(from)));
        self.close(CloseReason::Shutdown);
    }

    /// Processes a SHUTDOWN COMPLETE with a valid tag (RFC 9260 §8.5.1 C).
    pub(crate) fn on_shutdown_complete(&mut self, discards: &mut DiscardCounts) {
        match self.state.stage() {
            Some(EstablishedState::ShutdownAckSent(_)) => self.close(CloseReason::Shutdown),
            _ => discards.count(DiscardReason::WrongState),
        }
    }

    /// Must be called for each packet received from the peer. In SHUTDOWN-SENT the peer may still
    /// be sending its remaining data, so the retransmission count and T2-shutdown restart (RFC 9260
    /// §9.2).
    pub(crate) fn hear_of_peer(&mut self, now: Nanos) {
        let restarts = !self.config.profile.t2_restarts_with_data_only;
        let Some(EstablishedState::ShutdownSent(closing)) = self.state.stage_mut() else {
            return;
        };
        let path = closing.retry.path;
        if restarts && !closing.retry.due {
            let rto = self.paths.get(path).rto.rto();
            closing.retry.restart(now, rto);
        }
        self.error_count = 0;
    }

    /// Resends the SHUTDOWN for DATA received in SHUTDOWN-SENT, because its cumulative TSN
    /// acknowledges the DATA, and restarts T2-shutdown (RFC 9260 §9.2).
    pub(crate) fn repeat_shutdown(&mut self) {
        if let Some(EstablishedState::ShutdownSent(closing)) = self.state.stage_mut() {
            closing.retry.due = true;
        }
    }
}
