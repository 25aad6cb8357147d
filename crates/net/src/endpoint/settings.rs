//! Settings of SCTP that follow from the endpoint's configuration, and changes at run time.

use std::net::IpAddr;

use anabranch_sctp::config::Config as SctpConfig;
use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use super::Endpoint;
use crate::config::check_effects;
use crate::error::BindError;

/// Maximum lateness that is assumed of a system timer: tokio's timer has steps of 1 ms, and then
/// the task has to be scheduled.
const TIMER_SLACK: Nanos = 2 * MILLISECOND;

/// Settings of SCTP that follow from the rest of the endpoint's configuration.
pub(super) struct DerivedSettings {
    pub(super) addresses: Vec<IpAddr>,
    pub(super) encapsulation: usize,
    pub(super) max_message: usize,
    /// Whether the endpoint has a cache for Careful Resume.
    pub(super) resumes: bool,
}

impl DerivedSettings {
    /// Reads the derived settings from `sctp`, to which they were [applied](Self::apply) before.
    fn of(sctp: &SctpConfig) -> Self {
        Self {
            addresses: sctp.addresses.clone(),
            encapsulation: sctp.encapsulation,
            max_message: sctp.max_message,
            resumes: sctp.careful_resume.is_some(),
        }
    }

    /// Sets these settings in `sctp`, and those whose defaults differ from the defaults of the
    /// protocol core.
    pub(super) fn apply(self, sctp: &mut SctpConfig) {
        sctp.addresses = self.addresses;
        sctp.encapsulation = self.encapsulation;
        sctp.max_message = self.max_message;
        sctp.checksum = true;
        sctp.timer_slack = TIMER_SLACK;
        // Without a setting, window updates are larger than in the simulator, because applications
        // read when they are scheduled, and not whenever a packet arrives.
        sctp.window_update.get_or_insert(window_step(sctp));
        if self.resumes {
            sctp.careful_resume.get_or_insert_default();
        }
    }
}

/// Growth of the receive window that is announced immediately, bytes: a quarter of the buffer, but
/// at least a packet.
fn window_step(config: &SctpConfig) -> u32 {
    (config.receive_buffer / 4).max(config.mtu as u32)
}

impl Endpoint {
    /// Changes the settings of SCTP ([`Config::sctp`](crate::Config::sctp)) for future
    /// associations; existing associations keep theirs. The addresses, and the settings that follow
    /// from the carrier and from [`Config::max_message_size`](crate::Config::max_message_size),
    /// stay as they are. A `window_update` that was not set follows the receive buffer, and with
    /// [`Config::resume_cache`](crate::Config::resume_cache) a `careful_resume` of `None` selects
    /// the default parameters, as when the endpoint is bound.
    ///
    /// # Errors
    /// [`BindError::Config`]: an invalid setting, or one that has no effect in this endpoint. After
    /// an error the settings are unchanged.
    pub fn change_sctp(&self, change: impl FnOnce(&mut SctpConfig)) -> Result<(), BindError> {
        let mut state = self.shared.lock();
        let mut sctp = state.endpoint.config().clone();
        let derived = DerivedSettings::of(&sctp);
        if sctp.window_update == Some(window_step(&sctp)) {
            sctp.window_update = None;
        }
        change(&mut sctp);
        check_effects(&sctp, derived.resumes)?;
        derived.apply(&mut sctp);
        let changed = state.endpoint.change_config(|it| *it = sctp);
        changed.map_err(|error| BindError::Config(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use anabranch_sctp::ZeroChecksum;

    use super::*;
    use crate::{Carrier, Config, ResumeCache};

    fn bound(change: impl FnOnce(&mut Config)) -> Endpoint {
        let config = Config::default().with(|it| {
            it.addresses = vec![Ipv4Addr::LOCALHOST.into()];
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
        });
        Endpoint::bind(config.with(change)).expect("loopback")
    }

    fn settings(endpoint: &Endpoint) -> SctpConfig {
        endpoint.shared.lock().endpoint.config().clone()
    }

    fn shown(endpoint: &Endpoint) -> String {
        format!("{:?}", settings(endpoint))
    }

    /// If the receive buffer is reduced, the default of `window_update`, a quarter of the buffer,
    /// must be reduced with it. Otherwise `window_update` could exceed the whole new buffer, so
    /// that no window update would be sent.
    #[tokio::test]
    async fn window_updates_follow_a_changed_receive_buffer() {
        let endpoint = bound(|_| ());
        assert_eq!(settings(&endpoint).window_update, Some(262_144));
        let changed = endpoint.change_sctp(|it| it.receive_buffer = 65_536);
        changed.expect("valid");
        assert_eq!(settings(&endpoint).window_update, Some(16_384));
        let set = endpoint.change_sctp(|it| it.window_update = Some(5_000));
        set.expect("valid");
        let changed = endpoint.change_sctp(|it| it.receive_buffer = 1 << 20);
        changed.expect("valid");
        assert_eq!(settings(&endpoint).window_update, Some(5_000));
    }

    /// If `change_sctp` replaces all settings, the endpoint has the same settings as if it had been
    /// bound with the new ones.
    #[tokio::test]
    async fn replaced_settings_are_completed_as_in_bind() {
        for cache in [None, Some(ResumeCache::default())] {
            let endpoint = bound(|it| it.resume_cache = cache);
            let before = shown(&endpoint);
            let replaced = endpoint.change_sctp(|it| *it = Config::default().sctp);
            replaced.expect("valid");
            assert_eq!(shown(&endpoint), before);
        }
    }

    #[tokio::test]
    async fn settings_without_effect_are_refused_as_in_bind() {
        let endpoint = bound(|_| ());
        let before = shown(&endpoint);
        let changes: [fn(&mut SctpConfig); 2] = [
            |it| it.zero_checksum = ZeroChecksum::Dtls,
            |it| it.careful_resume = Some(Default::default()),
        ];
        for change in changes {
            let refused = endpoint.change_sctp(change).expect_err("no effect");
            let config = Config::default().with(|it| change(&mut it.sctp));
            let at_bind = Endpoint::bind(config).expect_err("no effect");
            assert_eq!(refused.to_string(), at_bind.to_string());
            assert_eq!(shown(&endpoint), before);
        }
    }
}
