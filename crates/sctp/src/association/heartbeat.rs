//! HEARTBEAT: is an idle or unconfirmed path alive, and how long is its round trip (RFC 9260 §5.4, §8.3)?
//!
//! With RSCTP the same chunks measure: what they then carry and when they go is in [`crate::rsctp`].

use anabranch_transport::Nanos;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::Association;
use crate::discard::{Discard, Discards};
use crate::path::{Answered, Heartbeat, PathEntry, PathId, PathState, Role};
use crate::profile::{AssociationErrors, FailedPathProbing, HeartbeatLoss};
use crate::rsctp::{Claim, Report};

/// How many HEARTBEATs went to unconfirmed addresses within the current RTO (HB.Max.Burst, RFC 9260 §5.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verifying {
    sent: u32,
    /// The RTO of the first of them, microseconds.
    span: u32,
    since: Nanos,
}

impl Verifying {
    /// When the current RTO is over for a path whose own is `rto`: it does not wait for a longer one, of a path that does not answer.
    fn until(&self, rto: Nanos) -> Nanos {
        let span = Nanos::from(self.span) * 1_000;
        self.since.saturating_add(span.min(rto))
    }
}

const OWN_LEN: usize = 9;

/// What a HEARTBEAT says to ourselves: path and nonce. The time it was sent stays here, where the peer cannot alter it.
pub(crate) fn own_info(path: PathId, nonce: u64) -> Bytes {
    let mut info = BytesMut::with_capacity(OWN_LEN);
    info.put_u8(path.0);
    info.put_u64(nonce);
    info.freeze()
}

/// Path and nonce of an answer.
fn read_own_info(mut info: Bytes) -> Option<(PathId, u64)> {
    if info.len() != OWN_LEN {
        return None;
    }
    Some((PathId(info.get_u8()), info.get_u64()))
}

impl Association {
    /// Begins to probe: unconfirmed paths at once, the others when they have been idle.
    pub(crate) fn start_heartbeats(&mut self, now: Nanos) {
        for path in self.path_ids() {
            *self.heartbeat_mut(path) = Heartbeat::default();
            if self.paths.get(path).disowned {
                continue;
            }
            if self.paths.get(path).state == PathState::Unconfirmed {
                self.heartbeat_mut(path).request();
            } else {
                self.schedule_heartbeat(now, path);
                self.start_discovery(now, path);
            }
        }
        self.verifying = Verifying::default();
        self.note_data_path(now);
    }

    pub(crate) fn heartbeat_mut(&mut self, path: PathId) -> &mut Heartbeat {
        self.forget_probes();
        &mut self.paths.get_mut(path).heartbeat
    }

    /// Sends a HEARTBEAT to `path` without waiting for its time (RFC 9260 §11.1.8). Nothing happens where there is no such
    /// path, or the association is not up.
    pub fn request_heartbeat(&mut self, path: PathId) {
        let ours = usize::from(path.0) < self.paths.len() && !self.paths.get(path).disowned;
        if ours && self.state.probes_paths() {
            self.heartbeat_mut(path).request();
        }
    }

    /// HB.interval and one RTO, give or take half of it, from `now` on (RFC 9260 §8.3); RSCTP's intervals are exact.
    pub(crate) fn schedule_heartbeat(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get(path);
        let (rto, interval) = (entry.rto.rto(), entry.heartbeat_interval());
        let wait = match (self.rsctp_interval(path), interval) {
            (Some(interval), _) => Some(interval),
            (None, Some(interval)) => {
                let jittered = self.random.jittered_by_half(rto);
                Some(interval.saturating_add(jittered))
            }
            (None, None) => None,
        };
        self.heartbeat_mut(path).schedule(now, wait);
    }

    /// The earliest time a path must be looked at.
    pub(crate) fn heartbeat_deadline(&self) -> Option<Nanos> {
        if !self.state.probes_paths() || self.is_mute() {
            return None;
        }
        let mut earliest = Nanos::MAX;
        for (_, entry) in self.paths.iter() {
            earliest = earliest.min(entry.heartbeat.deadline());
            if entry.heartbeat.is_due() {
                earliest = earliest.min(self.verifying.until(entry.rto.rto()));
            }
        }
        (earliest != Nanos::MAX).then_some(earliest)
    }

    /// What is known of when paths are to be probed may be wrong now.
    pub(crate) fn forget_probes(&mut self) {
        self.probes_at = 0;
    }

    /// The earliest time a path must be looked at, for HEARTBEAT or its MTU; [`Nanos::MAX`]: never. It is found out once, and
    /// known until something that a HEARTBEAT or an MTU depends on changes: not by DATA and its acknowledgement.
    pub(crate) fn probes_deadline(&mut self) -> Nanos {
        let at = |this: &Self| {
            let heartbeat = this.heartbeat_deadline().unwrap_or(Nanos::MAX);
            heartbeat.min(this.pmtu_deadline().unwrap_or(Nanos::MAX))
        };
        if self.probes_at > 0 && self.is_plain() {
            debug_assert_eq!(self.probes_at, at(self), "somebody forgot to forget it");
            return self.probes_at;
        }
        let at = at(self);
        let in_order = |entry: &PathEntry| {
            !entry.heartbeat.is_due() && entry.state == PathState::Active && entry.error_count == 0
        };
        let known = self.is_plain() && self.paths.iter().all(|(_, entry)| in_order(entry));
        self.probes_at = if known { at } else { 0 };
        at
    }

    /// Whether it is known that no path wants a HEARTBEAT or a probe at `now`, where the association [is plain](Self::is_plain).
    pub(crate) fn probes_nothing(&self, now: Nanos) -> bool {
        now < self.probes_at
    }

    /// A path that a HEARTBEAT must be sent to.
    pub(crate) fn heartbeat_due(&self, now: Nanos) -> Option<PathId> {
        if !self.state.probes_paths() {
            return None;
        }
        let most = self.config.profile.hb_max_burst;
        let is_unconfirmed = |entry: &PathEntry| entry.state == PathState::Unconfirmed;
        let held_back = |entry: &PathEntry| {
            let spent = self.verifying.sent >= most && now < self.verifying.until(entry.rto.rto());
            spent && is_unconfirmed(entry)
        };
        let goes =
            |(_, entry): &(PathId, &PathEntry)| entry.heartbeat.is_due() && !held_back(entry);
        let mut due = self.paths.iter().filter(goes);
        let (first, entry) = due.next()?;
        if !is_unconfirmed(entry) {
            return Some(first);
        }
        // Where not all may go: one that does not answer does not keep those behind it from being verified.
        let waiting = || {
            self.paths
                .iter()
                .filter(goes)
                .filter(|(_, it)| is_unconfirmed(it))
        };
        if waiting().count() <= most as usize {
            return Some(first);
        }
        let longest = waiting().min_by_key(|(_, it)| it.heartbeat.last_sent());
        longest.map(|(path, _)| path)
    }

    /// The info of the HEARTBEAT now being sent to `path`.
    pub(crate) fn send_heartbeat(&mut self, now: Nanos, path: PathId) -> Bytes {
        self.forget_probes();
        let nonce = self.random.next_u64();
        let role = self.role_of_heartbeat(path);
        let entry = self.paths.get_mut(path);
        let rto = entry.rto.rto();
        let (bytes, measures) = (entry.carried.bytes, self.rsctp.is_some());
        entry.heartbeat.sent(now, nonce, role, rto, bytes, measures);
        if role != Role::PairSecond {
            let unconfirmed = entry.state == PathState::Unconfirmed;
            if unconfirmed {
                self.count_verification(now, rto);
            }
            self.schedule_heartbeat(now, path);
        }
        self.heartbeat_info(now, path, own_info(path, nonce))
    }

    fn count_verification(&mut self, now: Nanos, rto: Nanos) {
        if now >= self.verifying.until(rto) {
            self.verifying = Verifying {
                sent: 0,
                since: now,
                span: u32::try_from(rto / 1_000).unwrap_or(u32::MAX),
            };
        }
        self.verifying.sent += 1;
    }

    /// The second of a pair is to follow.
    pub(crate) fn second_heartbeat_due(&self, path: PathId) -> bool {
        self.paths.get(path).heartbeat.is_second_due()
    }

    /// Runs what is due at `now`: paths that were idle, HEARTBEATs that were not answered.
    pub(crate) fn handle_heartbeat_timeout(&mut self, now: Nanos) {
        for path in self.path_ids() {
            let measures = self.rsctp.is_some();
            if self.heartbeat_mut(path).expire(now, measures) {
                self.on_heartbeat_lost(now, path);
                if self.is_closed() {
                    return;
                }
            }
            let entry = self.paths.get(path);
            if entry.heartbeat.is_time(now) {
                let idle = entry.heartbeat.is_idle(entry.last_sent);
                if idle || self.rsctp_interval(path).is_some() {
                    self.heartbeat_mut(path).send_now();
                } else {
                    self.schedule_heartbeat(now, path);
                }
            }
        }
    }

    /// One RTO passed without an answer: an error of the path, and of the association where data uses that path
    /// (RFC 9260 §8.1, §8.3).
    fn on_heartbeat_lost(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get(path);
        let before = entry.state;
        let carries_data = path == self.paths.choose_for_new_data();
        if self.rsctp.is_some() && carries_data && entry.t3_deadline.is_some() {
            // It only measures: that the path lives is what T3-rtx watches, with data more often than this.
            return self.judge_lost_heartbeat(now, path);
        }
        let active = self.is_active_or_none_is(path);
        self.back_off(now, path);
        self.count_path_error(now, path);
        let profile = &self.config.profile;
        let counts = match profile.association_errors {
            AssociationErrors::PathInUse => {
                carries_data
                    && (before != PathState::Unconfirmed || profile.confirm_paths_before_data)
            }
            AssociationErrors::ActivePaths => active,
        };
        if counts {
            self.count_association_error();
        }
        if !self.is_closed() {
            self.probe_again(path);
        }
    }

    /// Probes a path that has not answered once per RTO, where the text wants it so: until it is confirmed or inactive
    /// (RFC 9260 §5.4), or while it is potentially failed (RFC 7829 §3); ns-2.35 wherever there are HEARTBEATs at all.
    pub(crate) fn probe_again(&mut self, path: PathId) {
        let on = self.paths.get(path).heartbeat_interval().is_some();
        let always = on && self.config.profile.failed_path_probing == FailedPathProbing::AtOnce;
        let again = match self.paths.get(path).state {
            PathState::Unconfirmed => true,
            // Not where HEARTBEATs are off (RFC 7829 §3.2, rule 5).
            PathState::PotentiallyFailed => on,
            PathState::Active => always,
            // Nothing else may go before one address is verified; the peer may have deleted those that were.
            PathState::Inactive => always || !self.paths.has_verified(),
        };
        if again {
            self.heartbeat_mut(path).send_now();
        }
    }

    /// A lost HEARTBEAT of the path that carries data, as `rsctp_heartbeat_loss` says.
    fn judge_lost_heartbeat(&mut self, now: Nanos, path: PathId) {
        if self.config.profile.rsctp_heartbeat_loss == HeartbeatLoss::Judged {
            self.paths.switch_if_lossy(now, path, &mut self.trace);
            self.tx
                .make(&self.config, self.local_initial_tsn)
                .on_heartbeat_lost(now, path, &mut self.paths, &mut self.trace);
        }
    }

    /// A HEARTBEAT ACK: the path is alive (RFC 9260 §8.3). Only an answer to what was sent to that path counts, so nobody
    /// who did not see it can confirm a path (§5.4), or tell what it carries.
    pub(crate) fn on_heartbeat_ack(
        &mut self,
        now: Nanos,
        acknowledged: Bytes,
        discards: &mut Discards,
    ) {
        if self.is_answer_to_probe(now, &acknowledged) {
            return;
        }
        let Some((sent, path, report)) = self.answered(acknowledged) else {
            discards.count(Discard::HeartbeatNonce);
            return;
        };
        self.error_count = 0;
        let rtt = now.saturating_sub(sent.at);
        let entry = self.paths.get_mut(path);
        entry.measure_rtt(now, path, rtt, &mut self.trace);
        let claim = report.map(|report| Claim {
            report,
            role: sent.role,
            bytes: sent.bytes,
            interval: sent.interval,
        });
        self.revive_path(now, path);
        if let Some(claim) = claim {
            self.on_report(now, path, &claim, discards);
        }
    }

    /// Whether it answers a probe of the path MTU, which then is a sign of life, too.
    fn is_answer_to_probe(&mut self, now: Nanos, acknowledged: &Bytes) -> bool {
        let Some((path, nonce)) = read_own_info(acknowledged.clone()) else {
            return false;
        };
        if usize::from(path.0) >= self.paths.len() {
            return false;
        }
        let Some(answered) = self.on_pmtu_answer(now, path, nonce) else {
            return false;
        };
        self.error_count = 0;
        if let Some(sent) = answered.measures {
            let rtt = now.saturating_sub(sent);
            let entry = self.paths.get_mut(path);
            entry.measure_rtt(now, path, rtt, &mut self.trace);
        }
        self.revive_path(now, path);
        true
    }

    /// The HEARTBEAT that an answer belongs to, which with those before it is no longer waited for.
    fn answered(&mut self, info: Bytes) -> Option<(Answered, PathId, Option<Report>)> {
        let (own, report) = self.read_heartbeat_ack(info)?;
        let (path, nonce) = read_own_info(own)?;
        if usize::from(path.0) >= self.paths.len() {
            return None;
        }
        let sent = self.heartbeat_mut(path).answered(nonce)?;
        Some((sent, path, report))
    }
}
