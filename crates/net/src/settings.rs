//! Settings that can change at run time, with times as durations.

use std::time::Duration;

use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{self as sctp, SendOptions};

use crate::time::nanos;

/// Settings of an association that can change while it is established: see
/// [`Association::set_settings`](crate::Association::set_settings). Names and ranges are those of
/// [`Config::sctp`](crate::Config::sctp).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationSettings {
    /// Association.Max.Retrans: the association fails after more consecutive errors than this
    /// (SCTP_ASSOCINFO, RFC 6458 §8.1.2).
    pub association_max_retrans: u32,
    /// True if SACKs are delayed (SCTP_DELAYED_SACK, RFC 6458 §8.1.19).
    pub delayed_sack: bool,
    /// Maximum delay of a SACK, 0 to 500 ms.
    pub sack_delay: Duration,
    /// Number of packets with DATA after which a SACK is sent without further delay, 1 to 100.
    pub sack_frequency: u32,
    /// Maximum number of packets with new data in one burst, 1 to 1,000,000 (SCTP_MAX_BURST, RFC
    /// 6458 §8.1.24).
    pub max_burst: u32,
    /// Scheduler that selects the stream whose message is sent next (SCTP_STREAM_SCHEDULER, RFC
    /// 8260 §4.3.2). A change takes effect from the next message or fragment on. Queued messages of
    /// each stream keep their order.
    pub scheduler: SchedulerKind,
    /// The default options of messages (SCTP_DEFAULT_SNDINFO, SCTP_DEFAULT_PRINFO: RFC 6458
    /// §8.1.31, RFC 7496 §4.5). A lifetime is between 1 ns and 86,400 s.
    pub send_defaults: SendOptions,
}

impl AssociationSettings {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn of(association: &sctp::Association) -> Self {
        let settings = association.settings();
        Self {
            association_max_retrans: settings.association_max_retrans,
            delayed_sack: settings.delayed_sack,
            sack_delay: Duration::from_nanos(settings.sack_delay),
            sack_frequency: settings.sack_frequency,
            max_burst: settings.max_burst,
            scheduler: settings.scheduler,
            send_defaults: settings.send_defaults,
        }
    }

    pub(crate) fn put_in(
        &self,
        association: &mut sctp::Association,
    ) -> Result<(), sctp::DynamicSettingError> {
        association.set_settings(association.settings().with(|it| {
            it.association_max_retrans = self.association_max_retrans;
            it.delayed_sack = self.delayed_sack;
            it.sack_delay = nanos(self.sack_delay);
            it.sack_frequency = self.sack_frequency;
            it.max_burst = self.max_burst;
            it.scheduler = self.scheduler;
            it.send_defaults = self.send_defaults;
        }))
    }
}

/// Settings of a path that can change while an association is established: see
/// [`Association::set_path_settings`](crate::Association::set_path_settings).
/// (SCTP_PEER_ADDR_PARAMS, SCTP_RTOINFO, SCTP_PEER_ADDR_THLDS: RFC 6458 §8.1.1, §8.1.12, RFC 7829
/// §7.2)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathSettings {
    /// HB.interval: time between HEARTBEATs on an idle path in addition to its RTO, 1 ms to 86,400
    /// s. `None`: HEARTBEATs are sent only to confirm the address.
    pub heartbeat_interval: Option<Duration>,
    /// Minimum of the retransmission timeout (RTO.Min), 1 ms to `rto_max`.
    pub rto_min: Duration,
    /// Maximum of the retransmission timeout (RTO.Max), 1 ms to 86,400 s.
    pub rto_max: Duration,
    /// Path.Max.Retrans: the path is inactive after more consecutive errors than this.
    pub path_max_retrans: u32,
    /// PFMR (RFC 7829): with the setting `potentially_failed`, the path is potentially failed after
    /// more consecutive errors than this.
    pub pf_max_retrans: u32,
}

impl PathSettings {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(crate) fn of(settings: sctp::PathSettings) -> Self {
        Self {
            heartbeat_interval: settings.heartbeat_interval.map(Duration::from_nanos),
            rto_min: Duration::from_nanos(settings.rto_min),
            rto_max: Duration::from_nanos(settings.rto_max),
            path_max_retrans: settings.path_max_retrans,
            pf_max_retrans: settings.pf_max_retrans,
        }
    }

    /// Copies these values to `settings`.
    pub(crate) fn put_in(&self, settings: &mut sctp::PathSettings) {
        settings.heartbeat_interval = self.heartbeat_interval.map(nanos);
        (settings.rto_min, settings.rto_max) = (nanos(self.rto_min), nanos(self.rto_max));
        settings.path_max_retrans = self.path_max_retrans;
        settings.pf_max_retrans = self.pf_max_retrans;
    }
}

/// The timers of [`Config::sctp`](crate::Config::sctp) as durations: see
/// [`Config::with_timers`](crate::Config::with_timers). A value outside its range is an error of
/// [`Endpoint::bind`](crate::Endpoint::bind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timers {
    /// RTO.Initial: the first retransmission timeout, `rto_min` to `rto_max`.
    pub rto_initial: Duration,
    /// RTO.Min: 1 ms to `rto_max`.
    pub rto_min: Duration,
    /// RTO.Max: 1 ms to 86,400 s.
    pub rto_max: Duration,
    /// HB.interval: time between HEARTBEATs on an idle path, in addition to its RTO, 1 ms to 86,400
    /// s. `None`: HEARTBEATs are sent only to confirm addresses.
    pub heartbeat_interval: Option<Duration>,
    /// Maximum delay of a SACK, 0 to 500 ms.
    pub sack_delay: Duration,
    /// Valid.Cookie.Life, 1 ms to 86,400 s.
    pub valid_cookie_life: Duration,
    /// Time without new acknowledgements after which a closing association is aborted, 1 ms to
    /// 86,400 s. `None`: no limit.
    pub drain_timeout: Option<Duration>,
}

impl Timers {
    pub(crate) fn of(config: &sctp::Config) -> Self {
        Self {
            rto_initial: Duration::from_nanos(config.profile.rto_initial.0),
            rto_min: Duration::from_nanos(config.rto_min),
            rto_max: Duration::from_nanos(config.rto_max),
            heartbeat_interval: config.heartbeat_interval.map(Duration::from_nanos),
            sack_delay: Duration::from_nanos(config.sack_delay),
            valid_cookie_life: Duration::from_nanos(config.valid_cookie_life),
            drain_timeout: config.drain_timeout.map(Duration::from_nanos),
        }
    }

    pub(crate) fn put_in(&self, config: &mut sctp::Config) {
        config.profile.rto_initial.0 = nanos(self.rto_initial);
        (config.rto_min, config.rto_max) = (nanos(self.rto_min), nanos(self.rto_max));
        config.heartbeat_interval = self.heartbeat_interval.map(nanos);
        config.sack_delay = nanos(self.sack_delay);
        config.valid_cookie_life = nanos(self.valid_cookie_life);
        config.drain_timeout = self.drain_timeout.map(nanos);
    }
}
