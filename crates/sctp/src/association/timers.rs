//! Timers of an association: T1-init, T1-cookie, T2-shutdown, T5-shutdown-guard, T3-rtx, SACK and
//! HEARTBEAT.

use anabranch_transport::Nanos;

use super::Association;
use crate::event::CloseReason;
use crate::path::PathId;
use crate::profile::AssociationErrors;
use crate::rx::Receiver;
use crate::state::State;
use crate::tx::T3Outcome;

impl Association {
    /// Time at which [`Self::handle_timeout`] should be called next.
    #[inline]
    pub(crate) fn deadline(&mut self) -> Option<Nanos> {
        let earliest = match self.plain_deadline() {
            Some(earliest) => {
                debug_assert_eq!(earliest, self.earliest_deadline(), "one was left out");
                earliest
            }
            None => self.earliest_deadline(),
        };
        (earliest != Nanos::MAX).then_some(earliest)
    }

    /// Earliest deadline of data, SACKs and path probes ([`Nanos::MAX`] for never). `None` if
    /// anything else can have a deadline, or if the deadline of the probes is not cached. The
    /// method is called after every packet, and therefore examines no other state.
    #[inline]
    fn plain_deadline(&self) -> Option<Nanos> {
        let State::Active(known) = &self.state else {
            return None;
        };
        let others =
            known.reconfig.is_some() || known.addresses.is_some() || !self.close_by.is_none();
        let others = others || self.dtls.is_some() || self.drains;
        if others || !self.is_plain() {
            return None;
        }
        let data = self.tx.plain_deadline(&self.paths)?;
        let of = |rx: &Receiver| rx.sack_deadline().unwrap_or(Nanos::MAX);
        let sack = self.rx.as_deref().map_or(Nanos::MAX, of);
        (self.probes_at > 0).then(|| self.probes_at.min(data).min(sack))
    }

    /// Earliest of all possible deadlines, [`Nanos::MAX`] for never.
    #[inline(never)]
    fn earliest_deadline(&mut self) -> Nanos {
        match &self.state {
            State::Closed(_) => return Nanos::MAX,
            State::CookieWait(_) => {
                let both = [self.state.deadline(), self.close_by.get()];
                return both.into_iter().flatten().min().unwrap_or(Nanos::MAX);
            }
            State::Active(_) => {}
        }
        let mut earliest = self.probes_deadline();
        let mut before = |at: Option<Nanos>| earliest = earliest.min(at.unwrap_or(Nanos::MAX));
        if !self.state.is_established() {
            before(self.state.deadline());
        }
        before(self.closing_deadline());
        before(self.request_deadline());
        before(self.asconf_deadline());
        before(self.key_deadline());
        if self.state.sends_data() && !self.is_held() {
            before(self.tx.next_deadline(&self.paths));
            before(self.tx.streams_deadline());
            before(self.tx.pacing_deadline(&self.paths));
        }
        before(self.live_rx().and_then(Receiver::sack_deadline));
        earliest
    }

    /// Deadline of T3-rtx and the window probe, if DATA may be sent.
    fn data_deadline(&self) -> Option<Nanos> {
        if self.state.sends_data() && !self.is_held() {
            self.tx.next_deadline(&self.paths)
        } else {
            None
        }
    }

    /// Next decision time of the adaptive stream allocation, if DATA may be sent.
    fn streams_deadline(&self) -> Option<Nanos> {
        if self.state.sends_data() {
            self.tx.streams_deadline()
        } else {
            None
        }
    }

    /// Runs the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) {
        if self.is_closed() {
            return;
        }
        self.forget_probes();
        if self
            .closing_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            return self.give_up_closing();
        }
        if self
            .state
            .deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.handle_state_timeout(now);
        }
        if self.is_closed() {
            return;
        }
        if self.data_deadline().is_some_and(|deadline| deadline <= now) {
            if let Some(tx) = self.tx.get_mut() {
                tx.handle_timed(now, &mut self.paths, &mut self.trace);
                self.look_for_what_is_in_vain(now);
            }
            self.handle_t3_timeout(now);
        }
        if self
            .streams_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            if let Some(tx) = self.tx.get_mut() {
                tx.judge_streams(now, &mut self.trace);
            }
            self.tell_stream_limit();
        }
        if self
            .request_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.handle_request_timeout(now);
            if self.is_closed() {
                return;
            }
        }
        if self
            .asconf_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.handle_asconf_timeout(now);
            if self.is_closed() {
                return;
            }
        }
        if self.key_deadline().is_some_and(|deadline| deadline <= now) {
            self.handle_key_timeout(now);
            if self.is_closed() {
                return;
            }
        }
        if let Some(rx) = &mut self.rx
            && rx.sack_deadline().is_some_and(|deadline| deadline <= now)
        {
            rx.handle_sack_timer(now);
        }
        if self
            .heartbeat_deadline()
            .is_some_and(|deadline| deadline <= now)
        {
            self.handle_heartbeat_timeout(now);
        }
        if self.pmtu_deadline().is_some_and(|deadline| deadline <= now) {
            self.handle_pmtu_timeout(now);
        }
        let mut paced = false;
        for (_, entry) in self.paths.iter_mut() {
            if let Some(pacer) = &mut entry.pacer {
                paced |= pacer.deadline().is_some_and(|deadline| deadline <= now);
                pacer.handle_timeout(now);
            }
        }
        if let Some(tx) = self.tx.get_mut().filter(|_| paced) {
            tx.on_pacing_timeout(now);
        }
        self.note_data_path(now);
    }

    /// Handles expirations of T1-init and T1-cookie (RFC 9260 §5.1), T2-shutdown and
    /// T5-shutdown-guard (§9.2).
    fn handle_state_timeout(&mut self, now: Nanos) {
        let guard = self.state.closing().and_then(|closing| closing.guard);
        if guard.is_some_and(|guard| guard <= now) {
            return self.on_guard_expired();
        }
        let Some(retry) = self
            .state
            .retry()
            .copied()
            .filter(|retry| retry.expired(now))
        else {
            return;
        };
        if self.state.is_being_set_up() {
            if retry.retransmissions >= self.config.max_init_retransmits {
                // In COOKIE-ECHOED an ABORT is sent, because the peer may be in ESTABLISHED, if
                // only its COOKIE ACKs were lost (RFC 9260 §9.1).
                return self.fail(CloseReason::unanswered(self.state.name()));
            }
        } else {
            self.count_path_error(now, retry.path);
            self.count_association_error();
            if self.is_closed() {
                return;
            }
        }
        // DATA bundled with the COOKIE ECHO was lost with it. T3-rtx was started together with
        // T1-cookie and doubles the same RTO, so the RTO must be doubled here only if T3-rtx has
        // not done so.
        let t3 = self
            .tx
            .handle_t3(now, retry.path, &mut self.paths, &mut self.trace);
        if t3 == T3Outcome::Nothing {
            self.back_off(now, retry.path);
        }
        let next = self.paths.alternate_to(retry.path);
        if let Some(retry) = self.state.retry_mut() {
            retry.again(next);
        }
    }

    /// Handles each path whose T3-rtx expired (RFC 9260 §6.3.3, §8.1, §8.2).
    fn handle_t3_timeout(&mut self, now: Nanos) {
        let due: Vec<PathId> = self
            .paths
            .iter()
            .filter(|(_, entry)| entry.t3_deadline.is_some_and(|deadline| deadline <= now))
            .map(|(path, _)| path)
            .collect();
        for path in due {
            let outcome = self
                .tx
                .handle_t3(now, path, &mut self.paths, &mut self.trace);
            self.tell_stream_limit();
            if outcome != (T3Outcome::Marked { count_error: true }) {
                continue;
            }
            let counts = self.config.profile.association_errors == AssociationErrors::PathInUse
                || self.is_active_or_none_is(path);
            self.count_path_error(now, path);
            self.look_for_black_hole(now, path);
            if counts {
                self.count_association_error();
            }
            if self.is_closed() {
                return;
            }
        }
    }
}
