//! HEARTBEAT: is an idle or unconfirmed path alive, and how long is its round trip (RFC 9260 §5.4, §8.3)?

use anabranch_transport::Nanos;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::association::Association;
use crate::discard::{Discard, Discards};
use crate::path::{PathId, PathState};

/// Probing of one path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Heartbeat {
    /// When the path is looked at next.
    next: Option<Nanos>,
    /// When `next` was set: a path that carried data since then is not idle.
    scheduled_at: Nanos,
    /// A HEARTBEAT must be sent.
    due: bool,
    /// The nonce that was sent last and not answered, and when it was sent.
    nonce: Option<(u64, Nanos)>,
    /// When the missing answer counts as an error.
    unanswered_at: Option<Nanos>,
}

impl Heartbeat {
    fn deadline(&self) -> Option<Nanos> {
        match (self.next, self.unanswered_at) {
            (Some(next), Some(unanswered)) => Some(next.min(unanswered)),
            (next, unanswered) => next.or(unanswered),
        }
    }
}

const INFO_LEN: usize = 9;

/// What a HEARTBEAT says to ourselves: path and nonce. The time it was sent stays here, where the peer cannot alter it.
fn info(path: PathId, nonce: u64) -> Bytes {
    let mut info = BytesMut::with_capacity(INFO_LEN);
    info.put_u8(path.0);
    info.put_u64(nonce);
    info.freeze()
}

/// Path and nonce of an answer.
fn read_info(mut info: Bytes) -> Option<(PathId, u64)> {
    if info.len() != INFO_LEN {
        return None;
    }
    Some((PathId(info.get_u8()), info.get_u64()))
}

impl Association {
    /// Begins to probe: unconfirmed paths at once, the others when they have been idle.
    pub(crate) fn start_heartbeats(&mut self, now: Nanos) {
        for path in self.path_ids() {
            *self.heartbeat_mut(path) = Heartbeat::default();
            if self.paths.get(path).state == PathState::Unconfirmed {
                self.heartbeat_mut(path).due = true;
            } else {
                self.schedule_heartbeat(now, path);
            }
        }
    }

    fn heartbeat_mut(&mut self, path: PathId) -> &mut Heartbeat {
        &mut self.paths.get_mut(path).heartbeat
    }

    /// HB.interval and one RTO, give or take half of it, from `now` on (RFC 9260 §8.3).
    fn schedule_heartbeat(&mut self, now: Nanos, path: PathId) {
        let rto = self.paths.get(path).rto.rto();
        let Some(interval) = self.config.hb_interval else {
            self.heartbeat_mut(path).next = None;
            return;
        };
        let jittered = self.random.jittered_by_half(rto);
        let heartbeat = self.heartbeat_mut(path);
        heartbeat.scheduled_at = now;
        heartbeat.next = Some(now.saturating_add(interval).saturating_add(jittered));
    }

    /// The earliest time a path must be looked at.
    pub(crate) fn heartbeat_deadline(&self) -> Option<Nanos> {
        if !self.state.probes_paths() {
            return None;
        }
        self.paths
            .iter()
            .filter_map(|(_, entry)| entry.heartbeat.deadline())
            .min()
    }

    /// A path that a HEARTBEAT must be sent to.
    pub(crate) fn heartbeat_due(&self) -> Option<PathId> {
        if !self.state.probes_paths() {
            return None;
        }
        self.paths
            .iter()
            .find(|(_, entry)| entry.heartbeat.due)
            .map(|(path, _)| path)
    }

    /// The info of the HEARTBEAT now being sent to `path`.
    pub(crate) fn send_heartbeat(&mut self, now: Nanos, path: PathId) -> Bytes {
        let nonce = self.random.next_u64();
        let rto = self.paths.get(path).rto.rto();
        let heartbeat = self.heartbeat_mut(path);
        heartbeat.due = false;
        heartbeat.nonce = Some((nonce, now));
        heartbeat.unanswered_at = Some(now.saturating_add(rto));
        self.schedule_heartbeat(now, path);
        info(path, nonce)
    }

    /// Runs what is due at `now`: paths that were idle, HEARTBEATs that were not answered.
    pub(crate) fn handle_heartbeat_timeout(&mut self, now: Nanos) {
        for path in self.path_ids() {
            let Heartbeat {
                next,
                scheduled_at,
                unanswered_at,
                ..
            } = self.paths.get(path).heartbeat;
            if unanswered_at.is_some_and(|at| at <= now) {
                self.on_heartbeat_lost(now, path);
                if self.is_closed() {
                    return;
                }
            }
            if next.is_some_and(|at| at <= now) {
                if self.paths.get(path).last_sent > scheduled_at {
                    self.schedule_heartbeat(now, path);
                } else {
                    let heartbeat = self.heartbeat_mut(path);
                    heartbeat.next = None;
                    heartbeat.due = true;
                }
            }
        }
    }

    /// One RTO passed without an answer: an error of the path, and of the association where data uses that path
    /// (RFC 9260 §8.1, §8.3).
    fn on_heartbeat_lost(&mut self, now: Nanos, path: PathId) {
        self.heartbeat_mut(path).unanswered_at = None;
        let unconfirmed = self.paths.get(path).state == PathState::Unconfirmed;
        let carries_data = path == self.paths.choose_for_new_data();
        self.back_off(now, path);
        self.count_path_error(now, path);
        if carries_data && (!unconfirmed || self.config.profile.confirm_paths_before_data) {
            self.count_association_error();
        }
        if unconfirmed && !self.is_closed() {
            let heartbeat = self.heartbeat_mut(path);
            heartbeat.next = None;
            heartbeat.due = true;
        }
    }

    /// A HEARTBEAT ACK: the path is alive (RFC 9260 §8.3). Only the answer to the last HEARTBEAT of a path counts, so
    /// nobody who did not see it can confirm a path (§5.4).
    pub(crate) fn on_heartbeat_ack(
        &mut self,
        now: Nanos,
        acknowledged: Bytes,
        discards: &mut Discards,
    ) {
        let answer = read_info(acknowledged).and_then(|(path, nonce)| {
            let known = usize::from(path.0) < self.paths.len();
            let (sent, sent_at) = known.then(|| self.paths.get(path).heartbeat.nonce)??;
            (sent == nonce).then_some((path, sent_at))
        });
        let Some((path, sent_at)) = answer else {
            discards.count(Discard::HeartbeatNonce);
            return;
        };
        let heartbeat = self.heartbeat_mut(path);
        heartbeat.nonce = None;
        heartbeat.unanswered_at = None;
        self.error_count = 0;
        self.paths.get_mut(path).measure_rtt(
            now,
            path,
            now.saturating_sub(sent_at),
            &mut self.trace,
        );
        self.revive_path(now, path);
    }
}
