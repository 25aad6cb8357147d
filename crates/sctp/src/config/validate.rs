//! Validation of settings.

use std::fmt::Display;
use std::sync::Arc;

use anabranch_congestion::{Property, Requirement, registry};
use anabranch_settings::units::show_time;
use anabranch_settings::{SettingError, SettingValue, look_up, without_effect};
use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use thiserror::Error;

use super::{BufferSplit, Config, SchedulerKind};
use crate::address::MAX_PATHS;
use crate::authentication::Authentication;
use crate::mtu::MAX_ENCAPSULATION;
use crate::profile::{DormantPath, Profile, RecoveryWaits};
pub(crate) use crate::profile::{MAX_SPAN, MIN_RTO};

/// Minimum receive buffer of RFC 9260 §6 in bytes; peers refuse less (§3.3.3).
pub(super) const MIN_RECEIVE_BUFFER: u64 = 1500;
/// Maximum size of a buffer in bytes.
pub(super) const MAX_BYTES: u64 = u64::MAX;
/// Maximum limit of consecutive errors.
pub(super) const MAX_ERRORS: u64 = u32::MAX as u64;
/// Maximum delay of a SACK in nanoseconds (RFC 9260 §6.2).
pub(crate) const MAX_SACK_DELAY: Nanos = 500 * MILLISECOND;

/// Invalid setting.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: found {found}; allowed: {allowed}")]
#[non_exhaustive]
pub struct ConfigError {
    /// Name of the invalid setting or switch, or field of [`Config`].
    pub field: &'static str,
    /// Invalid value, with its unit.
    pub found: String,
    /// Allowed values.
    pub allowed: String,
}

pub(super) fn refuse(
    field: &'static str,
    found: impl Display,
    allowed: impl Into<String>,
) -> ConfigError {
    ConfigError {
        field,
        found: found.to_string(),
        allowed: allowed.into(),
    }
}

impl From<SettingError> for ConfigError {
    fn from(error: SettingError) -> Self {
        match error {
            SettingError::Value {
                setting,
                invalid_value,
            } => refuse(setting, invalid_value.found, invalid_value.range),
            SettingError::Unknown { found, .. } => refuse("", found, "a setting or a switch"),
        }
    }
}

/// Checks a duration against its inclusive bounds.
fn span(
    field: &'static str,
    found: Nanos,
    (least, most): (Nanos, Nanos),
) -> Result<(), ConfigError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let allowed = format!("{} to {}", show_time(least), show_time(most));
    Err(refuse(field, show_time(found), allowed))
}

/// Validated settings, for any number of endpoints
/// ([`Endpoint::with_shared_config`](crate::Endpoint::with_shared_config)). A clone shares the same
/// settings.
#[derive(Clone, Debug)]
pub struct CheckedConfig(pub(crate) Arc<Config>);

impl CheckedConfig {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.0
    }
}

impl Config {
    /// Validates the settings like [`Self::check`], and makes them shareable.
    ///
    /// # Errors
    /// Like [`Self::check`].
    pub fn checked(self) -> Result<CheckedConfig, ConfigError> {
        self.check()?;
        Ok(CheckedConfig(Arc::new(self)))
    }

    /// Checks that every setting and switch is within its range, and that they are consistent with
    /// each other. [`Endpoint::new`](crate::Endpoint::new) calls it.
    ///
    /// # Errors
    /// The first invalid setting, with its value and the allowed values.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        self.profile.check_ranges()?;
        self.check_relations()?;
        self.check_security()?;
        self.check_addresses()
    }

    /// Checks that each setting has an effect: the [settings that it needs](Self::check_partners)
    /// are on, and further requirements of its value are met.
    ///
    /// # Errors
    /// The first setting without effect.
    pub fn check_effects(&self) -> Result<(), SettingError> {
        self.check_partners()?;
        let missing = match self.congestion.needs {
            Requirement::Reports => (!self.profile.rsctp).then_some("without `rsctp`"),
            Requirement::SeveralPaths => (!self.cmt).then_some("without `cmt`"),
            Requirement::Nothing => None,
        };
        if let Some(why) = missing {
            self.refuse_idle("congestion", why)?;
        }
        // If all streams have the value 0, `priority` is the same as round robin, which is the
        // default.
        if self.scheduler == SchedulerKind::Priority && self.stream_values.is_none() {
            self.refuse_idle("scheduler", "without `stream_values`")?;
        }
        // Per-path loss detection and recovery replace those of the association.
        if self.cmt && self.cmt_split_fast_retransmit {
            let why = "with `cmt`, unless `cmt_split_fast_retransmit = false`";
            self.refuse_idle("htna", why)?;
            self.refuse_idle("fast_retransmit_in_recovery_waits", why)?;
        }
        if self.profile.potentially_failed && self.profile.dormant_path == DormantPath::FewestErrors
        {
            let why = "with `potentially_failed`, which chooses that path also by `last`";
            self.refuse_same("dormant_path", &DormantPath::Last, why)?;
        }
        self.check_recovery_waits()
    }

    /// Refuses values of `fast_retransmit_in_recovery_waits` that have the same effect as `paced`:
    /// with `paced`, chunks always wait for cwnd if the sender is paced, and never if it is not.
    fn check_recovery_waits(&self) -> Result<(), SettingError> {
        let own = registry::KINDS.iter().any(|it| **it == *self.congestion);
        let computes_rate = self.congestion.has(Property::PacesItself) || !own;
        let why = match self.profile.fast_retransmit_in_recovery_waits {
            RecoveryWaits::Always if self.pacing.is_some() => "with `pacing`",
            RecoveryWaits::Never if self.pacing.is_none() && !computes_rate => {
                "without `pacing`, or a `congestion` that computes a rate"
            }
            _ => return Ok(()),
        };
        let name = "fast_retransmit_in_recovery_waits";
        self.refuse_same(name, &RecoveryWaits::Paced, why)
    }

    /// Returns an error if the value of `name` is changed from the default `same` to a value that
    /// has the same effect.
    fn refuse_same(
        &self,
        name: &str,
        same: &impl SettingValue,
        why: &str,
    ) -> Result<(), SettingError> {
        let own = Profile::by_name(self.profile.name).unwrap_or_default();
        match own.get(name) == Some(same.to_datum()) {
            true => self.refuse_idle(name, why),
            false => Ok(()),
        }
    }

    /// Refuses a setting without effect: returns an error with the reason `why` if the setting
    /// `name` differs from its default.
    ///
    /// # Errors
    /// The setting differs from its default.
    pub fn refuse_idle(&self, name: &str, why: &str) -> Result<(), SettingError> {
        let own = Profile::by_name(self.profile.name).unwrap_or_default();
        let fresh = Self::new(own);
        let of = |config: &Self| config.get(name).or_else(|| config.profile.get(name));
        let setting = look_up(Self::SETTINGS, name).or_else(|| look_up(Profile::SWITCHES, name));
        match (setting, of(self), of(&fresh)) {
            (Some(setting), Some(found), Some(default)) if found != default => {
                Err(without_effect(setting, [&found, &default], why))
            }
            _ => Ok(()),
        }
    }

    fn check_relations(&self) -> Result<(), ConfigError> {
        let unsigned = self.profile.asconf_without_auth;
        if self.address_changes && self.authentication == Authentication::Off && !unsigned {
            let allowed = "false, or authentication = \"on\" in addition (RFC 5061 §4.1)";
            return Err(refuse("address_changes", true, allowed));
        }
        let splits = matches!(
            self.cmt_buffer_split,
            BufferSplit::Sender | BufferSplit::Both
        );
        if self.cmt && splits && self.send_buffer < MAX_PATHS {
            // The share of a path would be empty, so that no data could ever be sent.
            let allowed = format!("{} B or more with `cmt_buffer_split`", MAX_PATHS);
            return Err(refuse(
                "send_buffer",
                format!("{} B", self.send_buffer),
                allowed,
            ));
        }
        if self.encapsulation > MAX_ENCAPSULATION {
            let allowed = format!("0 B to {MAX_ENCAPSULATION} B");
            return Err(refuse(
                "encapsulation",
                format!("{} B", self.encapsulation),
                allowed,
            ));
        }
        if self.max_message == 0 {
            return Err(refuse("max_message", "0 B", "1 B or more"));
        }
        span("rto_min", self.rto_min, (MIN_RTO, self.rto_max))?;
        // A profile's value is clamped to the bounds (RFC 9260 §6.3.1), but an explicit value must
        // be within the bounds.
        let initial = self.profile.rto_initial;
        let own = || Profile::by_name(self.profile.name).map(|profile| profile.rto_initial);
        if let Err(error) = span("rto_initial", initial.0, (self.rto_min, self.rto_max))
            && own() != Some(initial)
        {
            return Err(error);
        }
        // RFC 7829 §5, rule 1: a primary path that has not failed stays the primary.
        let least = self.least_primary_switch();
        match self.primary_switchover_max_retrans {
            Some(found) if found < least => {
                let allowed = format!("{least} or more");
                Err(refuse("primary_switchover_max_retrans", found, allowed))
            }
            _ => Ok(()),
        }
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        if let Some(address) = self.preferred_address
            && !self.addresses.contains(&address)
        {
            return Err(refuse("preferred_address", address, "one of addresses"));
        }
        for (index, address) in self.addresses.iter().enumerate() {
            let repeated = self.addresses[..index].contains(address);
            if repeated || !crate::address::is_unicast(*address) {
                let allowed = "unicast addresses of this host, each once";
                return Err(refuse("addresses", address, allowed));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anabranch_settings::{PositiveTime, WindowSize};
    use anabranch_transport::time::SECOND;

    use super::*;
    use crate::profile::InitialCwnd;

    /// Error of [`Config::check`] after `change`, if any.
    fn complaint(change: impl FnOnce(&mut Config)) -> Option<ConfigError> {
        let mut config = Config::default();
        change(&mut config);
        config.check().err()
    }

    #[test]
    fn the_defaults_of_every_profile_are_accepted() {
        for name in Profile::NAMES {
            let profile = Profile::by_name(name).expect("its own name");
            assert_eq!(Config::new(profile).check(), Ok(()), "{name}");
        }
    }

    #[test]
    fn each_setting_out_of_its_range_is_named_with_what_is_allowed() {
        type Change = fn(&mut Config);
        let cases: [(&str, Change); 31] = [
            ("mtu", |it| it.mtu = 127),
            ("mtu", |it| it.mtu = 65_536),
            ("encapsulation", |it| it.encapsulation = 33),
            ("receive_buffer", |it| it.receive_buffer = 1_499),
            ("send_buffer", |it| it.send_buffer = 0),
            ("max_message", |it| it.max_message = 0),
            ("partial_delivery_point", |it| {
                it.partial_delivery_point = Some(0)
            }),
            ("window_update", |it| it.window_update = Some(0)),
            ("initial_ssthresh", |it| {
                it.profile.initial_ssthresh = WindowSize::Bytes(0)
            }),
            ("sack_delay", |it| it.sack_delay = 501 * MILLISECOND),
            ("rto_max", |it| it.rto_max = u64::MAX),
            ("rto_max", |it| it.rto_max = 0),
            ("rto_min", |it| it.rto_min = 0),
            ("rto_min", |it| it.rto_min = 61 * SECOND),
            ("rto_initial", |it| it.profile.rto_initial = PositiveTime(0)),
            ("rto_initial", |it| {
                it.profile.rto_initial = PositiveTime(SECOND - 1)
            }),
            ("rto_initial", |it| {
                it.profile.rto_initial = PositiveTime(61 * SECOND)
            }),
            ("heartbeat_interval", |it| {
                it.heartbeat_interval = Some(u64::MAX)
            }),
            ("drain_timeout", |it| it.drain_timeout = Some(0)),
            ("valid_cookie_life", |it| it.valid_cookie_life = 0),
            ("streams", |it| it.outbound_streams = 0),
            ("inbound_streams", |it| it.inbound_streams = 0),
            ("primary_switchover_max_retrans", |it| {
                it.primary_switchover_max_retrans = Some(4)
            }),
            ("max_burst", |it| it.profile.max_burst = 0),
            ("hb_max_burst", |it| it.profile.hb_max_burst = 0),
            ("missing_reports", |it| it.profile.missing_reports = 0),
            ("initial_window", |it| {
                it.profile.initial_window = InitialCwnd::Units(0)
            }),
            ("rsctp_primary_interval", |it| {
                it.profile.rsctp_primary_interval.0 = 0
            }),
            ("addresses", |it| it.addresses = vec![[224, 0, 0, 1].into()]),
            ("preferred_address", |it| {
                it.preferred_address = Some([10, 0, 0, 1].into());
            }),
            ("addresses", |it| {
                it.addresses = vec![[10, 0, 0, 1].into(); 2]
            }),
        ];
        for (field, change) in cases {
            let error = complaint(change).unwrap_or_else(|| panic!("{field} was accepted"));
            assert_eq!(error.field, field, "{error}");
        }
    }

    /// Default configuration with these settings and switches changed.
    fn with(given: &[(&str, &str)]) -> Config {
        let mut config = Config::default();
        for (name, text) in given {
            let setting = Config::all_settings()
                .into_iter()
                .find(|it| it.name == *name);
            let setting = setting.unwrap_or_else(|| panic!("{name} is no setting"));
            let datum = setting.parse(text).expect("in its range");
            config.assign(name, &datum).expect("known");
        }
        config
    }

    #[test]
    fn a_setting_without_its_partner_is_refused_and_its_partner_named() {
        for (given, partner) in [
            (("lifetime", "50 ms"), ("partial_reliability", "true")),
            (("max_retransmits", "0"), ("partial_reliability", "true")),
            (("cmt_buffer_split", "both"), ("cmt", "true")),
            (("cmt_delayed_ack", "false"), ("cmt", "true")),
            (
                ("authentication_hmac", "sha1"),
                ("authentication", "required"),
            ),
            (
                ("accept_stream_resets", "false"),
                ("reconfiguration", "true"),
            ),
            (("binomial_k", "1"), ("congestion", "binomial")),
            (("tail_loss_probe", "false"), ("rack", "true")),
            (("pacing_burst", "10 KiB"), ("pacing", "1.25")),
            (("pacing_burst", "10 KiB"), ("congestion", "bbr")),
            (("stream_values", "4,1"), ("scheduler", "weighted_fair")),
            (("pf_max_retrans", "1"), ("potentially_failed", "true")),
            (("rsctp_beta", "0.5"), ("congestion", "rsctp")),
            (("rsctp_loss_gain", "0.5"), ("rsctp", "true")),
            (("rsctp_path_switch", "false"), ("rsctp", "true")),
            (("asconf_without_auth", "true"), ("address_changes", "true")),
        ] {
            let error = with(&[given]).check_partners().expect_err(given.0);
            assert_eq!(error.setting(), given.0);
            let text = error.to_string();
            assert!(text.contains(&format!("`{}", partner.0)), "{text}");
            assert_eq!(
                with(&[given, partner]).check_partners(),
                Ok(()),
                "{given:?}"
            );
        }
        let error = with(&[("stream_values", "4,1"), ("scheduler", "fcfs")]).check_partners();
        let text = error.expect_err("of no use").to_string();
        assert!(
            text.contains("without `scheduler = \"priority\"` or `scheduler = \"weighted_fair\"`"),
            "{text}"
        );
    }

    #[test]
    fn a_setting_with_one_that_takes_its_effect_away_is_refused() {
        for (given, rival) in [
            (("frto", "true"), ("cmt", "true")),
            (("missing_reports", "4"), ("rack", "true")),
            (("fast_retransmit_once", "false"), ("rack", "true")),
            (("htna", "off"), ("rack", "true")),
            (("path_mtu_discovery", "true"), ("rsctp", "true")),
            (("pacing", "1.25"), ("congestion", "bbr")),
            (("abc_limit", "2"), ("congestion", "bbr")),
            (("pba_when_underused", "keep"), ("congestion", "cubic")),
            (("scheduler", "fcfs"), ("streams", "1")),
            (("sack_delay", "100 ms"), ("sack_frequency", "1")),
            (
                ("failed_path_probing", "at_once"),
                ("heartbeat_interval", "off"),
            ),
            (
                ("loss_cancels_rtt", "false"),
                ("rtt_once_per_round_trip", "false"),
            ),
            (
                ("retransmission_cancels_rtt", "false"),
                ("rtt_once_per_round_trip", "false"),
            ),
            (
                ("fast_retransmit_in_recovery_waits", "always"),
                ("fast_retransmit_ignores_cwnd", "false"),
            ),
            (
                ("fast_retransmit_in_recovery_waits", "always"),
                ("fast_recovery", "none"),
            ),
        ] {
            assert_eq!(with(&[given]).check_partners(), Ok(()), "{given:?}");
            assert_eq!(with(&[rival]).check_partners(), Ok(()), "{rival:?}");
            let error = with(&[given, rival]).check_partners();
            let error = error.expect_err(given.0);
            assert_eq!(error.setting(), given.0);
            let text = error.to_string();
            let words = format!("it has no effect with `{}", rival.0);
            assert!(text.contains(&words), "{text}");
        }
        for (given, rival) in [
            (
                ("bundle_new_with_retransmissions", "false"),
                ("bundling", "false"),
            ),
            (
                ("idle_decay_sets_ssthresh", "false"),
                ("idle_decay", "since_last_send"),
            ),
        ] {
            let error = with(&[given, rival]).check_partners();
            assert_eq!(error.expect_err(given.0).setting(), given.0);
        }
        let cwnd_update = ("cmt_cwnd_update", "false");
        let [grows, waits] = ["false", "true"].map(|it| ("growth_needs_cumulative_advance", it));
        let error = with(&[("cmt", "true"), cwnd_update, grows]).check_partners();
        let text = error.expect_err("windows grow anyway").to_string();
        let words = "with `growth_needs_cumulative_advance = false`";
        assert!(text.contains(words), "{text}");
        let beside = with(&[("cmt", "true"), cwnd_update, waits]);
        assert_eq!(beside.check_partners(), Ok(()));
    }

    #[test]
    fn a_word_that_needs_more_than_others_is_refused_without() {
        for (given, partner) in [
            (("congestion", "lia"), ("cmt", "true")),
            (("congestion", "rsctp"), ("rsctp", "true")),
            (("scheduler", "priority"), ("stream_values", "4,1")),
        ] {
            let error = with(&[given]).check_effects().expect_err(given.1);
            assert_eq!(error.setting(), given.0);
            let text = error.to_string();
            let words = format!("it has no effect without `{}`", partner.0);
            assert!(text.contains(&words), "{text}");
            assert_eq!(with(&[given, partner]).check_effects(), Ok(()), "{given:?}");
        }
        for name in Profile::NAMES {
            let profile = Profile::by_name(name).expect("its own name");
            assert_eq!(Config::new(profile).check_effects(), Ok(()), "{name}");
        }
    }

    #[test]
    fn a_word_that_comes_to_the_same_as_the_default_is_refused() {
        let waits = "fast_retransmit_in_recovery_waits";
        let paced = ("pacing", "1.25");
        for (given, beside, effective) in [
            ((waits, "never"), &[][..], &[paced][..]),
            (
                (waits, "never"),
                &[("congestion", "cubic")],
                &[("congestion", "bbr")],
            ),
            ((waits, "always"), &[paced], &[]),
            (
                (waits, "always"),
                &[("cmt", "true")],
                &[("cmt", "true"), ("cmt_split_fast_retransmit", "false")],
            ),
            (
                ("htna", "off"),
                &[("cmt", "true")],
                &[("cmt", "true"), ("cmt_split_fast_retransmit", "false")],
            ),
            (
                ("dormant_path", "fewest_errors"),
                &[("potentially_failed", "true")],
                &[],
            ),
        ] {
            let check = |all: &[(&str, &str)]| with(&[all, &[given]].concat()).check_effects();
            assert_eq!(check(beside).expect_err(given.0).setting(), given.0);
            assert_eq!(check(effective), Ok(()), "{given:?} {effective:?}");
        }
        let primary = [("potentially_failed", "true"), ("dormant_path", "primary")];
        assert_eq!(with(&primary).check_effects(), Ok(()));
    }

    #[test]
    fn a_default_that_is_repeated_needs_no_partner_and_partners_are_settings() {
        for name in Profile::NAMES {
            let profile = Profile::by_name(name).expect("its own name");
            assert_eq!(Config::new(profile).check_partners(), Ok(()), "{name}");
        }
        assert_eq!(
            with(&[("tail_loss_probe", "true")]).check_partners(),
            Ok(())
        );
        let all = Config::all_settings();
        for partners in all.iter().map(|it| it.partners) {
            for partner in partners.needs.iter().chain(partners.rivals) {
                let known = all.iter().find(|it| it.name == partner.setting);
                let known = known.unwrap_or_else(|| panic!("{} is no setting", partner.setting));
                for word in partner.words() {
                    assert!(known.parse(word).is_ok(), "{} = {word}", known.name);
                }
            }
        }
        let probe = all.iter().find(|it| it.name == "tail_loss_probe");
        let text = probe.expect("a setting").text();
        assert!(
            text.ends_with("A value other than the default needs `rack`."),
            "{text}"
        );
    }

    /// A path's share is empty if the buffer has fewer bytes than there are paths.
    #[test]
    fn a_send_buffer_that_is_split_has_a_share_for_each_path() {
        let split = |split, send_buffer| {
            complaint(|it| {
                it.cmt = true;
                (it.cmt_buffer_split, it.send_buffer) = (split, send_buffer);
            })
        };
        for sends in [BufferSplit::Sender, BufferSplit::Both] {
            assert_eq!(split(sends, MAX_PATHS), None);
            let error = split(sends, 31).expect("no share");
            let words = "send_buffer: found 31 B; allowed: 32 B or more with `cmt_buffer_split`";
            assert_eq!(error.to_string(), words);
        }
        assert_eq!(split(BufferSplit::Receiver, 1), None);
    }

    #[test]
    fn the_bounds_themselves_are_accepted_and_the_message_says_all() {
        let accepted = complaint(|it| {
            (it.mtu, it.encapsulation) = (128, 32);
            (it.rto_min, it.rto_max) = (MIN_RTO, MIN_RTO);
            it.profile.rto_initial = PositiveTime(MIN_RTO);
            (it.receive_buffer, it.send_buffer) = (1_500, 1);
            it.sack_delay = MAX_SACK_DELAY;
        });
        assert_eq!(accepted, None);
        let error = complaint(|it| it.rto_min = 0).expect("refused");
        assert_eq!(
            error.to_string(),
            "rto_min: found 0 s; allowed: 1 ms to 86400 s"
        );
        let error = complaint(|it| it.mtu = 64).expect("refused");
        assert_eq!(
            error.to_string(),
            "mtu: found 64 B; allowed: 128 B to 65535 B"
        );
    }
}
