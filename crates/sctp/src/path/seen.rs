//! What users see of a path, and what they set.

use std::net::IpAddr;

use anabranch_congestion::CarefulResume;
use anabranch_congestion::rsctp::receiver_estimate::ReceiverEstimate;
use anabranch_transport::{Nanos, Path};

use super::{PathEntry, PathState, Paths};
use crate::runtime::PathSettings;

impl PathEntry {
    /// The pair of addresses.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The peer's UDP port, where packets go inside UDP (RFC 6951 §5.1); 0: right above IP.
    pub fn udp_port(&self) -> u16 {
        self.udp_port
    }

    /// Whether it may carry data.
    pub fn state(&self) -> PathState {
        self.state
    }

    /// The address was shown to be the peer's, or the user says so (RFC 9260 §5.4), whatever has become of it since.
    pub fn is_known(&self) -> bool {
        self.verified
    }

    /// Errors in a row (RFC 9260 §8.2).
    pub fn error_count(&self) -> u32 {
        self.error_count
    }

    /// Bytes of DATA chunks sent over it since the association began, first and again.
    pub fn bytes_sent(&self) -> u64 {
        self.carried.bytes
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> u64 {
        self.cc.cwnd()
    }

    /// The state of Careful Resume (RFC 9959), where the configuration asks for it.
    pub fn careful_resume(&self) -> Option<&CarefulResume> {
        self.cc.careful_resume()
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> u64 {
        self.cc.ssthresh()
    }

    /// Bytes in flight, as the profile counts them, without chunks marked for retransmission.
    pub fn flightsize(&self) -> u64 {
        self.flightsize
    }

    /// Bytes of chunks last sent here that are marked for retransmission.
    pub fn marked_bytes(&self) -> u64 {
        self.marked_bytes
    }

    /// What the receiver reports of this path, once it has: where it speaks RSCTP.
    pub fn receiver(&self) -> Option<&ReceiverEstimate> {
        self.receiver.as_deref()
    }

    /// Retransmission timeout and what it is made of.
    pub fn rto(&self) -> &super::RtoEstimator {
        &self.rto
    }

    /// The largest SCTP packet, bytes with the common header.
    pub fn max_packet(&self) -> usize {
        self.max_packet
    }

    /// What the user may change while the association is up.
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

    /// How often it is probed while it is idle, where it is.
    #[inline]
    pub(crate) fn heartbeat_interval(&self) -> Option<Nanos> {
        self.heartbeat_interval.get()
    }

    /// Changes them; gives those before.
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
    /// Takes over what was set of paths to the same addresses.
    pub(crate) fn set_as(&mut self, former: &Paths) {
        for (_, old) in former.iter() {
            if let Some(id) = self.find(old.path.remote) {
                self.get_mut(id).set_settings(old.settings());
            }
        }
    }

    /// When the earliest T3-rtx expires.
    pub fn next_t3(&self) -> Option<Nanos> {
        self.iter().filter_map(|(_, entry)| entry.t3_deadline).min()
    }

    /// The same, [`Nanos::MAX`] where none runs.
    #[inline]
    pub(crate) fn earliest_t3(&self) -> Nanos {
        let deadlines = self.entries.iter().map(|entry| entry.t3_deadline);
        deadlines.fold(Nanos::MAX, |least, it| least.min(it.unwrap_or(Nanos::MAX)))
    }

    /// The paths' remote addresses that are the peer's.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + '_ {
        let ours = self.iter().filter(|(_, entry)| !entry.disowned);
        ours.map(|(_, entry)| entry.path.remote)
    }
}
