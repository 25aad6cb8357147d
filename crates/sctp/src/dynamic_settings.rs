//! Settings that can be changed while an association exists (RFC 6458 §8.1). Each has the name,
//! unit and range of the corresponding setting of [`Config`]; times are in nanoseconds.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use thiserror::Error;

use crate::config::{Config, ConfigError, SchedulerKind};
use crate::send_options::SendOptions;

/// Dynamic settings that apply to the whole association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationSettings {
    /// Number of consecutive errors above which the association fails (SCTP_ASSOCINFO, RFC 6458
    /// §8.1.2).
    pub association_max_retrans: u32,
    /// Whether SACKs are delayed (SCTP_DELAYED_SACK, RFC 6458 §8.1.19).
    pub delayed_sack: bool,
    /// Maximum delay of a SACK: 0 to 500 ms.
    pub sack_delay: Nanos,
    /// Number of packets with DATA after which a SACK is sent: 1 to 100.
    pub sack_frequency: u32,
    /// Maximum number of packets of new data in one burst, at least 1 (SCTP_MAX_BURST, RFC 6458
    /// §8.1.24).
    pub max_burst: u32,
    /// Stream scheduler, effective from the next message or fragment on (SCTP_STREAM_SCHEDULER, RFC
    /// 8260 §4.3.2). Waiting messages keep their order within each stream.
    pub scheduler: SchedulerKind,
    /// Default options for messages (SCTP_DEFAULT_SNDINFO, SCTP_DEFAULT_PRINFO: RFC 6458 §8.1.31,
    /// RFC 7496 §4.5); a [receipt](SendOptions::receipt) in them is ignored. The abandonment
    /// policies also apply to messages with [`SendOptions`] that do not set a policy. A lifetime is
    /// 1 ns to 86,400 s.
    pub send_defaults: SendOptions,
}

/// Dynamic settings of one path (SCTP_PEER_ADDR_PARAMS, SCTP_RTOINFO, SCTP_PEER_ADDR_THLDS: RFC
/// 6458 §8.1.1, §8.1.12, RFC 7829 §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSettings {
    /// Time between HEARTBEATs while the path is idle, in addition to its RTO: 1 ms to 86,400 s.
    /// `None`: no HEARTBEATs, except to verify an address.
    pub heartbeat_interval: Option<Nanos>,
    /// Lower bound of the retransmission timeout: 1 ms to `rto_max`.
    pub rto_min: Nanos,
    /// Upper bound of the retransmission timeout: 1 ms to 86,400 s.
    pub rto_max: Nanos,
    /// Number of consecutive errors above which the path becomes inactive.
    pub path_max_retrans: u32,
    /// With the switch `potentially_failed`: number of consecutive errors above which the path
    /// becomes potentially failed.
    pub pf_max_retrans: u32,
}

/// Why a dynamic setting was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DynamicSettingError {
    /// A value is out of range, or conflicts with another setting.
    #[error(transparent)]
    Value(#[from] ConfigError),
    /// The peer has no such address.
    #[error("address: found {0}; allowed: an address of the peer")]
    NoSuchPath(IpAddr),
    /// The stream number exceeds the number of negotiated streams.
    #[error("stream: found {stream}; allowed: 0 to {most}")]
    NoSuchStream {
        /// The requested stream.
        stream: u16,
        /// Highest negotiated stream number.
        most: u16,
    },
    /// The association is closed.
    #[error("the association is closed")]
    Closed,
}

impl AssociationSettings {
    /// The same settings, modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Dynamic settings of `config`.
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            association_max_retrans: config.association_max_retrans,
            delayed_sack: config.delayed_sack,
            sack_delay: config.sack_delay,
            sack_frequency: config.sack_frequency,
            max_burst: config.profile.max_burst,
            scheduler: config.scheduler,
            send_defaults: SendOptions::of(config),
        }
    }

    /// Copy of `config` with these settings.
    pub(crate) fn put_in(self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        config.association_max_retrans = self.association_max_retrans;
        config.delayed_sack = self.delayed_sack;
        config.sack_delay = self.sack_delay;
        config.sack_frequency = self.sack_frequency;
        config.profile.max_burst = self.max_burst;
        config.scheduler = self.scheduler;
        // The lifetime of the default options is validated like `Config::lifetime`.
        let lifetime = std::mem::replace(&mut config.lifetime, self.send_defaults.lifetime());
        config.check()?;
        config.lifetime = lifetime;
        Ok(config)
    }
}

impl PathSettings {
    /// The same settings, modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Copy of `config` with these settings, which paths added later will use.
    pub(crate) fn put_in(self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        config.heartbeat_interval = self.heartbeat_interval;
        (config.rto_min, config.rto_max) = (self.rto_min, self.rto_max);
        config.path_max_retrans = self.path_max_retrans;
        config.pf_max_retrans = self.pf_max_retrans;
        // `rto_initial` only matters for a path's first timeout, so it may be clamped to the new
        // bounds.
        let initial = &mut config.profile.rto_initial.0;
        *initial = (*initial).clamp(self.rto_min, self.rto_max.max(self.rto_min));
        config.check()?;
        Ok(config)
    }

    /// Minimum number of errors after which another path may become the primary. With fewer errors,
    /// the primary path has not failed and must stay the primary (RFC 7829 §5, rule 1).
    /// `pf_max_retrans`: PFMR, or `None` if paths cannot be potentially failed.
    pub(crate) fn least_primary_switch(&self, pf_max_retrans: Option<u32>) -> u32 {
        let most = self.path_max_retrans;
        pf_max_retrans.map_or(most, |pf| pf.min(most))
    }
}
