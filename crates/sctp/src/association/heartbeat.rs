//! HEARTBEAT: checks whether idle or unconfirmed paths are alive, and measures their round-trip
//! time (RFC 9260 §5.4, §8.3).
//!
//! With RSCTP, HEARTBEATs also measure bandwidth and loss; [`crate::rsctp`] describes their
//! contents and schedule.

use anabranch_transport::Nanos;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::path::{Heartbeat, HeartbeatResult, PathEntry, PathId, PathState, Role};
use crate::profile::{AssociationErrors, FailedPathProbing, HeartbeatLoss};
use crate::rsctp::{PathReport, Report};

/// Number of HEARTBEATs sent to unconfirmed addresses in the current RTO (HB.Max.Burst, RFC 9260
/// §5.4).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Verifying {
    sent: u32,
    /// RTO of the path of the first such HEARTBEAT, in microseconds.
    span: u32,
    since: Nanos,
}

impl Verifying {
    /// End of the period to which the limit of HEARTBEATs (HB.Max.Burst) applies, for a path with
    /// the RTO `rto`. The period is at most `rto`, so that this path does not wait for the longer
    /// RTO of a silent path.
    fn until(&self, rto: Nanos) -> Nanos {
        let span = Nanos::from(self.span) * 1_000;
        self.since.saturating_add(span.min(rto))
    }
}

const OWN_LEN: usize = 9;

/// Encodes the Heartbeat Info: path and nonce. The transmission time is stored locally, so that the
/// peer cannot change it.
pub(crate) fn own_info(path: PathId, nonce: u64) -> Bytes {
    let mut info = BytesMut::with_capacity(OWN_LEN);
    info.put_u8(path.0);
    info.put_u64(nonce);
    info.freeze()
}

/// Decodes path and nonce of a HEARTBEAT ACK.
fn read_own_info(mut info: Bytes) -> Option<(PathId, u64)> {
    if info.len() != OWN_LEN {
        return None;
    }
    Some((PathId(info.get_u8()), info.get_u64()))
}

impl Association {
    /// Starts probing: unconfirmed paths immediately, and other paths after their heartbeat
    /// interval.
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

    /// Sends a HEARTBEAT to `path` immediately (RFC 9260 §11.1.8). Has no effect if the path does
    /// not exist or the association is not established.
    pub fn request_heartbeat(&mut self, path: PathId) {
        let ours = usize::from(path.0) < self.paths.len() && !self.paths.get(path).disowned;
        if ours && self.state.probes_paths() {
            self.heartbeat_mut(path).request();
        }
    }

    /// Schedules the next HEARTBEAT after HB.interval plus one RTO, which is varied at random by up
    /// to 50 % (RFC 9260 §8.3). The intervals of RSCTP have no jitter.
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

    /// Earliest time at which a HEARTBEAT is due or times out on any path.
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

    /// Invalidates the cached time of the next probe.
    pub(crate) fn forget_probes(&mut self) {
        self.probes_at = 0;
    }

    /// Earliest time at which a HEARTBEAT or path MTU probe needs work; [`Nanos::MAX`] if none
    /// does. The time is cached until HEARTBEAT or MTU state changes; DATA and SACKs do not change
    /// it.
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

    /// Whether the cache shows that no HEARTBEAT or MTU probe is due at `now`; valid if the
    /// association [is plain](Self::is_plain).
    pub(crate) fn probes_nothing(&self, now: Nanos) -> bool {
        now < self.probes_at
    }

    /// Path to which a HEARTBEAT must be sent.
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
        // If only some HEARTBEATs may be sent, choose the path that has waited longest, so that a
        // silent path does not delay the verification of others.
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

    /// Heartbeat Info of the HEARTBEAT that is being sent to `path`.
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

    /// Whether the second HEARTBEAT of a pair is due. RSCTP measures the bandwidth by pairs of
    /// HEARTBEATs.
    pub(crate) fn second_heartbeat_due(&self, path: PathId) -> bool {
        self.paths.get(path).heartbeat.is_second_due()
    }

    /// Sends or times out the HEARTBEATs that are due at `now`.
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

    /// Handles a HEARTBEAT that was not answered within one RTO: counts an error of the path (RFC
    /// 9260 §8.3), and under the condition of the profile's switch `association_errors` also an
    /// error of the association (§8.1).
    fn on_heartbeat_lost(&mut self, now: Nanos, path: PathId) {
        let entry = self.paths.get(path);
        let before = entry.state;
        let carries_data = path == self.paths.choose_for_new_data();
        if self.rsctp.is_some() && carries_data && entry.t3_deadline.is_some() {
            // This HEARTBEAT of RSCTP only measures, because T3-rtx already detects a failure of
            // the path.
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

    /// Sends a further HEARTBEAT at once to a path that has not answered, so that the path is
    /// probed once per RTO: until it is confirmed or inactive (RFC 9260 §5.4), and while it is
    /// potentially failed (RFC 7829 §3). The profile of ns-2.35 does so in every state if
    /// HEARTBEATs are enabled.
    pub(crate) fn probe_again(&mut self, path: PathId) {
        let on = self.paths.get(path).heartbeat_interval().is_some();
        let always = on && self.config.profile.failed_path_probing == FailedPathProbing::AtOnce;
        let again = match self.paths.get(path).state {
            PathState::Unconfirmed => true,
            // A potentially failed path is not probed if HEARTBEATs are off (RFC 7829 §3.2, rule
            // 5).
            PathState::PotentiallyFailed => on,
            PathState::Active => always,
            // Without a verified address no other chunk may be sent, so inactive paths are probed,
            // too.
            PathState::Inactive => always || !self.paths.has_verified(),
        };
        if again {
            self.heartbeat_mut(path).send_now();
        }
    }

    /// Handles a lost HEARTBEAT on the path that carries data, as the switch `rsctp_heartbeat_loss`
    /// selects.
    fn judge_lost_heartbeat(&mut self, now: Nanos, path: PathId) {
        if self.config.profile.rsctp_heartbeat_loss == HeartbeatLoss::Judged {
            self.paths.switch_if_lossy(now, path, &mut self.trace);
            self.tx
                .make(&self.config, self.local_initial_tsn)
                .on_heartbeat_lost(now, path, &mut self.paths, &mut self.trace);
        }
    }

    /// Processes a HEARTBEAT ACK: the path is alive (RFC 9260 §8.3). Only an answer to a HEARTBEAT
    /// sent to this path counts, so that an attacker who did not see the HEARTBEAT can neither
    /// confirm a path (§5.4) nor report measurements.
    pub(crate) fn on_heartbeat_ack(
        &mut self,
        now: Nanos,
        acknowledged: Bytes,
        discards: &mut DiscardCounts,
    ) {
        if self.is_answer_to_probe(now, &acknowledged) {
            return;
        }
        let Some((sent, path, report)) = self.answered(acknowledged) else {
            discards.count(DiscardReason::HeartbeatNonce);
            return;
        };
        self.error_count = 0;
        let rtt = now.saturating_sub(sent.at);
        let entry = self.paths.get_mut(path);
        entry.measure_rtt(now, path, rtt, &mut self.trace);
        let claim = report.map(|report| PathReport {
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

    /// Whether the HEARTBEAT ACK answers a path MTU probe. If so, also records that the path is
    /// alive.
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

    /// Finds the HEARTBEAT that was acknowledged. This HEARTBEAT and earlier ones are no longer
    /// outstanding.
    fn answered(&mut self, info: Bytes) -> Option<(HeartbeatResult, PathId, Option<Report>)> {
        let (own, report) = self.read_heartbeat_ack(info)?;
        let (path, nonce) = read_own_info(own)?;
        if usize::from(path.0) >= self.paths.len() {
            return None;
        }
        let sent = self.heartbeat_mut(path).answered(nonce)?;
        Some((sent, path, report))
    }
}
