//! Settings that can change while an association is up (RFC 6458 §8.1). Each has the name, unit and range of the setting of
//! [`Config`] that it begins with; times are in nanoseconds.

use std::net::IpAddr;

use anabranch_transport::Nanos;
use thiserror::Error;

use crate::config::{Config, ConfigError, SchedulerKind};
use crate::partial::SendOptions;

/// What can be set of a living association, for all its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationSettings {
    /// More consecutive errors than this end the association (SCTP_ASSOCINFO, RFC 6458 §8.1.2).
    pub association_max_retrans: u32,
    /// SACKs are delayed (SCTP_DELAYED_SACK, RFC 6458 §8.1.19).
    pub delayed_sack: bool,
    /// Longest delay of a SACK: 0 to 500 ms.
    pub sack_delay: Nanos,
    /// Packets with DATA that a SACK waits for: 1 to 100.
    pub sack_frequency: u32,
    /// Largest number of packets of new data in one burst, at least 1 (SCTP_MAX_BURST, RFC 6458 §8.1.24).
    pub max_burst: u32,
    /// Which stream's message goes next, from the next message or fragment on (SCTP_STREAM_SCHEDULER, RFC 8260 §4.3.2). Of the messages that
    /// wait, each stream keeps its order.
    pub scheduler: SchedulerKind,
    /// Options for messages of which nothing else is said (SCTP_DEFAULT_SNDINFO, SCTP_DEFAULT_PRINFO: RFC 6458 §8.1.31, RFC 7496 §4.5), without
    /// a receipt. Their policies count for other messages, too, where [`SendOptions`] leave them open. A lifetime is 1 ns to 86,400 s.
    pub send_defaults: SendOptions,
}

/// What can be set of one path of a living association (SCTP_PEER_ADDR_PARAMS, SCTP_RTOINFO, SCTP_PEER_ADDR_THLDS: RFC 6458
/// §8.1.1, §8.1.12, RFC 7829 §7.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSettings {
    /// Time between HEARTBEATs while the path is idle, beside its RTO: 1 ms to 86,400 s. `None`: no HEARTBEAT there. An address that
    /// is not verified gets them all the same.
    pub heartbeat_interval: Option<Nanos>,
    /// Lower bound of the retransmission timeout: 1 ms to `rto_max`.
    pub rto_min: Nanos,
    /// Upper bound of the retransmission timeout: 1 ms to 86,400 s.
    pub rto_max: Nanos,
    /// More consecutive errors than this make the path inactive.
    pub path_max_retrans: u32,
    /// With the switch `potentially_failed`: more consecutive errors than this make it potentially failed.
    pub pf_max_retrans: u32,
}

/// Why a setting of a living association stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// Out of its range, or at odds with another setting.
    #[error(transparent)]
    Value(#[from] ConfigError),
    /// The peer has no such address.
    #[error("address: found {0}; allowed: an address of the peer")]
    NoSuchPath(IpAddr),
    /// The stream is not among those negotiated.
    #[error("stream: found {stream}; allowed: 0 to {most}")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// The last of those negotiated.
        most: u16,
    },
    /// The association has ended.
    #[error("the association is closed")]
    Closed,
}

impl AssociationSettings {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Those of `config`.
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

    /// `config` with these instead.
    pub(crate) fn put_in(self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        config.association_max_retrans = self.association_max_retrans;
        config.delayed_sack = self.delayed_sack;
        config.sack_delay = self.sack_delay;
        config.sack_frequency = self.sack_frequency;
        config.profile.max_burst = self.max_burst;
        config.scheduler = self.scheduler;
        // That of the defaults is judged as that of the configuration is.
        let lifetime = std::mem::replace(&mut config.lifetime, self.send_defaults.lifetime);
        config.check()?;
        config.lifetime = lifetime;
        Ok(config)
    }
}

impl PathSettings {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// `config` with these instead, so that all later paths have them.
    pub(crate) fn put_in(self, config: &Config) -> Result<Config, ConfigError> {
        let mut config = config.clone();
        config.heartbeat_interval = self.heartbeat_interval;
        (config.rto_min, config.rto_max) = (self.rto_min, self.rto_max);
        config.path_max_retrans = self.path_max_retrans;
        config.pf_max_retrans = self.pf_max_retrans;
        // It is the first timeout of a path, and there has been one.
        let initial = &mut config.profile.rto_initial.0;
        *initial = (*initial).clamp(self.rto_min, self.rto_max.max(self.rto_min));
        config.check()?;
        Ok(config)
    }

    /// The least number of errors that may take the office from a primary: it has not failed before (RFC 7829 §5, rule 1).
    /// `pf_max_retrans`: PFMR, where paths can be potentially failed.
    pub(crate) fn least_primary_switch(&self, pf_max_retrans: Option<u32>) -> u32 {
        let most = self.path_max_retrans;
        pf_max_retrans.map_or(most, |pf| pf.min(most))
    }
}
