//! Path status for users, and the user's path settings.

use std::net::IpAddr;

use anabranch_congestion::CarefulResume;
use anabranch_congestion::rsctp::receiver_estimate::ReceiverEstimate;
use anabranch_transport::{Nanos, Path};

use super::{PathEntry, PathState, Paths};
use crate::dynamic_settings::PathSettings;

impl PathEntry {
    /// Local and remote address.
    pub fn path(&self) -> Path {
        self.path
    }

    /// Peer's UDP port for UDP encapsulation (RFC 6951 §5.1); 0 without it.
    pub fn udp_port(&self) -> u16 {
        self.udp_port
    }

    /// Path state, which determines whether the path may carry data.
    pub fn state(&self) -> PathState {
        self.state
    }

    /// Whether the address was verified, or given by the user (RFC 9260 §5.4), regardless of its
    /// current state.
    pub fn is_known(&self) -> bool {
        self.verified
    }

    /// Number of consecutive errors (RFC 9260 §8.2).
    pub fn error_count(&self) -> u32 {
        self.error_count
    }

    /// Bytes of DATA chunks sent on the path since the association began, including
    /// retransmissions.
    pub fn bytes_sent(&self) -> u64 {
        self.carried.bytes
    }

    /// Congestion window in bytes.
    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd()
    }

    /// State of Careful Resume (RFC 9959) on this path, if configured.
    pub fn careful_resume(&self) -> Option<&CarefulResume> {
        self.cc.careful_resume()
    }

    /// Slow-start threshold in bytes.
    pub fn ssthresh(&self) -> u64 {
        self.cc.ssthresh()
    }

    /// Number of bytes in flight as the profile counts them, excluding chunks marked for
    /// retransmission.
    pub fn flightsize(&self) -> u64 {
        self.flightsize
    }

    /// Number of bytes in chunks that were last sent on this path and are marked for
    /// retransmission.
    pub fn marked_bytes(&self) -> u64 {
        self.marked_bytes
    }

    /// Reports of the receiver about this path, if any; only with RSCTP.
    pub fn receiver(&self) -> Option<&ReceiverEstimate> {
        self.receiver.as_deref()
    }

    /// Retransmission timeout and its estimator.
    pub fn rto(&self) -> &super::RtoEstimator {
        &self.rto
    }

    /// Maximum SCTP packet size in bytes, including the common header.
    pub fn max_packet(&self) -> usize {
        self.max_packet
    }

    /// Path settings that the user can change during the association.
    pub fn settings(&self) -> PathSettings {
        let (rto_min, rto_max) = self.rto.bounds();
        PathSettings {
            heartbeat_interval: self.heartbeat_interval.get(),
            rto_min,
            rto_max,
            path_max_retrans: self.path_max_retrans,
            pf_max_retrans: self.pf_max_retrans,
        }
    }

    /// HEARTBEAT interval of an idle path; `None` if HEARTBEATs are disabled.
    #[inline]
    pub(crate) fn heartbeat_interval(&self) -> Option<Nanos> {
        self.heartbeat_interval.get()
    }

    /// Applies new settings and returns the previous ones.
    pub(crate) fn set_settings(&mut self, settings: PathSettings) -> PathSettings {
        let former = self.settings();
        self.rto.set_bounds(settings.rto_min, settings.rto_max);
        self.heartbeat_interval = settings.heartbeat_interval.into();
        self.path_max_retrans = settings.path_max_retrans;
        self.pf_max_retrans = settings.pf_max_retrans;
        former
    }
}

impl Paths {
    /// Copies the settings of paths in `former` to the paths with the same addresses.
    pub(crate) fn set_as(&mut self, former: &Paths) {
        for (_, old) in former.iter() {
            if let Some(id) = self.find(old.path.remote) {
                self.get_mut(id).set_settings(old.settings());
            }
        }
    }

    /// Expiration time of the earliest T3-rtx.
    pub fn next_t3(&self) -> Option<Nanos> {
        self.iter().filter_map(|(_, entry)| entry.t3_deadline).min()
    }

    /// Like [`Self::next_t3`], but [`Nanos::MAX`] if no T3-rtx is running.
    #[inline]
    pub(crate) fn earliest_t3(&self) -> Nanos {
        let deadlines = self.entries.iter().map(|entry| entry.t3_deadline);
        deadlines.fold(Nanos::MAX, |least, it| least.min(it.unwrap_or(Nanos::MAX)))
    }

    /// Remote addresses of the paths that belong to the peer.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let ours = self.iter().filter(|(_, entry)| !entry.disowned);
        ours.map(|(_, entry)| entry.path.remote)
    }
}
