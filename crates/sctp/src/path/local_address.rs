//! Change of a path's local address.

use std::net::IpAddr;

use super::{PathEntry, RtoEstimator};
use crate::compact_option::OptionalNanos;
use crate::config::Config;

impl PathEntry {
    /// Changes the source address of the path to `local`. RTT, cwnd and other measurements are
    /// reset, because packets take another route (RFC 9260 §7.2.1). Data in flight remains in
    /// flight.
    pub(crate) fn change_local_address(&mut self, config: &Config, local: IpAddr) {
        self.path.local = local;
        let fresh = Self::new(config, self.path, self.state);
        self.cc = fresh.cc;
        self.pacer = fresh.pacer;
        self.estimator = fresh.estimator;
        self.rtt_min = OptionalNanos::NONE;
        self.timed = None;
        self.unreachable_until = OptionalNanos::NONE;
        self.reduction = None;
        self.decay_at = OptionalNanos::NONE;
        self.heartbeat = fresh.heartbeat;
        self.forget_timeouts(config);
        if fresh.discovery.is_some() {
            self.discovery = fresh.discovery;
            self.set_mtu(config, config.first_mtu(self.path.remote));
        }
    }

    /// Resets the RTO to its initial value.
    pub(crate) fn forget_timeouts(&mut self, config: &Config) {
        let (min, max) = self.rto.bounds();
        let initial = config.profile.rto_initial.0.clamp(min, max);
        self.rto = RtoEstimator::new(initial, min, max);
    }
}
