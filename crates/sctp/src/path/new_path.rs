//! Construction of a new path from the configuration: congestion control, estimators, packet size.

use std::net::IpAddr;

use anabranch_congestion::estimator::PathEstimator;
use anabranch_congestion::parameters::AlgorithmParameters;
use anabranch_congestion::rate_limited::RateLimitedIncrease;
use anabranch_congestion::sctp_newreno::{self, SctpNewReno, SctpParameters};
use anabranch_congestion::westwood_rate::{RateParameters, WestwoodRate};
use anabranch_congestion::{CarefulResume, CongestionControl, Pacer, RateSampler, WindowControl};

use super::{Discovery, PathRack, mtu};
use crate::config::Config;
use crate::profile::{IdleDecay, WindowUnit};

/// Components of a new path that are allocated before the path itself.
pub(crate) struct PathComponents {
    pub(super) cc: Box<dyn CongestionControl>,
    pub(super) sampler: Option<Box<RateSampler>>,
    pub(super) pacer: Option<Box<Pacer>>,
    pub(super) estimator: Option<Box<dyn PathEstimator>>,
    pub(super) discovery: Option<Box<Discovery>>,
    pub(super) rack: Option<Box<PathRack>>,
    pub(super) max_packet: usize,
}

impl PathComponents {
    /// Creates the components of a path to `remote`.
    pub(crate) fn of(config: &Config, remote: IpAddr) -> Self {
        let cc = config.new_congestion_control(remote);
        let first_mtu = config.first_mtu(remote);
        Self {
            sampler: cc.wants_rate_samples().then(Box::default),
            cc,
            pacer: config.new_pacer(),
            estimator: config.new_path_estimator(),
            discovery: config.new_discovery(remote).map(Box::new),
            rack: config.rack.then(Box::default),
            max_packet: mtu::max_packet(first_mtu, remote, config.encapsulation),
        }
    }
}

impl Config {
    /// Size in bytes of the largest DATA chunk to `remote`, including its header: the unit of
    /// parameters that are given in segments.
    fn largest_chunk(&self, remote: IpAddr) -> u64 {
        mtu::pmdcs(self.max_packet(remote)) as u64
    }

    /// Initial parameters of the congestion control of a path to `remote`.
    pub fn congestion_parameters(&self, remote: IpAddr) -> SctpParameters {
        let profile = &self.profile;
        let unit = self.window_unit(remote, self.first_mtu(remote));
        SctpParameters {
            unit,
            initial_cwnd: profile.initial_window.bytes(unit, remote.is_ipv6()),
            initial_ssthresh: profile.initial_ssthresh.bytes(self.largest_chunk(remote)),
            floor_units: profile.ssthresh_floor,
            slow_start_at_ssthresh: profile.slow_start_at_ssthresh,
            abc_limit: profile.abc_limit.into(),
            growth_needs_full_cwnd: profile.growth_needs_full_cwnd && !self.rate_limited_increase,
            growth_needs_cumulative_advance: profile.growth_needs_cumulative_advance,
            pba_when_underused: profile.pba_when_underused,
            repeated_timeout_keeps_ssthresh: profile.repeated_timeout_keeps_ssthresh,
            idle_decay_above_units: (profile.idle_decay == IdleDecay::SinceLastSend).then_some(2),
            idle_decay_sets_ssthresh: profile.idle_decay_sets_ssthresh,
        }
    }

    /// Initial path MTU to `remote`, in bytes.
    pub(crate) fn first_mtu(&self, remote: IpAddr) -> usize {
        self.new_discovery(remote)
            .map_or(self.mtu, |discovery| discovery.pmtu())
    }

    /// Path MTU discovery for a path to `remote`, if enabled.
    pub(crate) fn new_discovery(&self, remote: IpAddr) -> Option<Discovery> {
        let wanted = self.path_mtu_discovery && !self.profile.rsctp;
        wanted.then(|| Discovery::new(remote.is_ipv6(), self.mtu))
    }

    /// Unit of cwnd in bytes, on a path to `remote` with path MTU `mtu`.
    pub(crate) fn window_unit(&self, remote: IpAddr, mtu: usize) -> u64 {
        match self.profile.window_unit {
            WindowUnit::Mtu => mtu as u64,
            WindowUnit::Pmdcs => {
                let max_packet = mtu::max_packet(mtu, remote, self.encapsulation);
                let counts = self.profile.cwnd_counts;
                counts.bytes(mtu::max_user_data(max_packet))
            }
        }
    }

    /// Rate estimator for a new path, if configured or needed by the stream allocation.
    pub(crate) fn new_path_estimator(&self) -> Option<Box<dyn PathEstimator>> {
        let needed = self
            .stream_allocation
            .needs_rate()
            .then_some(RateParameters::RE);
        let parameters = self.rate_estimate.or(needed)?;
        Some(Box::new(WestwoodRate::new(parameters)))
    }

    /// Congestion control for a new path to `remote`.
    pub(crate) fn new_congestion_control(&self, remote: IpAddr) -> Box<dyn CongestionControl> {
        let base = Box::new(SctpNewReno::new(self.congestion_parameters(remote)));
        if self.is_plainly_controlled() {
            return base; // same as its `make`
        }
        let tuning = AlgorithmParameters {
            binomial: self.profile.binomial_parameters(),
            rsctp: self.profile.rsctp_parameters(),
            ..self.algorithm_parameters()
        };
        let segment = base.unit();
        let mut control = (self.congestion.make)(base, &tuning);
        if self.rate_limited_increase {
            control = Box::new(RateLimitedIncrease::new(control, segment));
        }
        match self.careful_resume {
            Some(parameters) => Box::new(CarefulResume::new(control, segment, parameters)),
            None => control,
        }
    }

    /// Whether the default congestion control is used, which needs neither a rate nor samples. This
    /// is decided from the settings, without an instance of the congestion control.
    fn is_plainly_controlled(&self) -> bool {
        std::ptr::eq(self.congestion, &sctp_newreno::ALGORITHM)
            && !self.rate_limited_increase
            && self.careful_resume.is_none()
    }

    /// Pacer for a new path, if the settings or the congestion control may need one.
    pub(crate) fn new_pacer(&self) -> Option<Box<Pacer>> {
        let wanted = self.pacing.is_some() || !self.is_plainly_controlled();
        wanted.then(|| {
            let pacer = Pacer::new(self.pacing).with_burst(self.pacing_burst);
            Box::new(pacer.with_slack(self.timer_slack))
        })
    }

    /// Whether the congestion control needs rate samples.
    pub(crate) fn samples_rates(&self) -> bool {
        let anywhere = IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED);
        !self.is_plainly_controlled() && self.new_congestion_control(anywhere).wants_rate_samples()
    }
}
