//! Which settings an endpoint accepts.

use std::fmt::Display;

use anabranch_transport::Nanos;
use anabranch_transport::time::{MILLISECOND, SECOND, seconds};
use thiserror::Error;

use super::Config;
use crate::path::mtu::{LEAST_MTU, MOST_ENCAPSULATION, MOST_MTU};
use crate::profile::InitialCwnd;

/// The receive buffer that RFC 9260 §6 asks for at least, bytes; peers refuse less (§3.3.3).
const LEAST_RECEIVE_BUFFER: u32 = 1500;
/// The least timeout: less is shorter than what a host takes to answer.
const LEAST_RTO: Nanos = MILLISECOND;
/// The longest span of any timer.
const MOST_SPAN: Nanos = 86_400 * SECOND;
/// No SACK may be delayed longer (RFC 9260 §6.2).
pub(crate) const MOST_SACK_DELAY: Nanos = 500 * MILLISECOND;

/// A setting that no association could work with.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field}: found {found}; allowed: {allowed}")]
pub struct ConfigError {
    /// The field of [`Config`], or the switch of its profile.
    pub field: &'static str,
    /// What it is set to, with its unit.
    pub found: String,
    /// What it may be.
    pub allowed: String,
}

fn refuse(field: &'static str, found: impl Display, allowed: impl Into<String>) -> ConfigError {
    ConfigError {
        field,
        found: found.to_string(),
        allowed: allowed.into(),
    }
}

/// A number and its bounds, both included, in `unit`.
fn within<N: PartialOrd + Display>(
    field: &'static str,
    found: N,
    (least, most): (N, N),
    unit: &str,
) -> Result<(), ConfigError> {
    if found >= least && found <= most {
        return Ok(());
    }
    let found = format!("{found}{unit}");
    Err(refuse(field, found, format!("{least} to {most}{unit}")))
}

fn at_least<N: PartialOrd + Display>(
    field: &'static str,
    found: N,
    least: N,
    unit: &str,
) -> Result<(), ConfigError> {
    if found >= least {
        return Ok(());
    }
    let found = format!("{found}{unit}");
    Err(refuse(field, found, format!("{least}{unit} or more")))
}

fn span(
    field: &'static str,
    found: Nanos,
    (least, most): (Nanos, Nanos),
) -> Result<(), ConfigError> {
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let allowed = format!("{} s to {} s", seconds(least), seconds(most));
    Err(refuse(field, format!("{} s", seconds(found)), allowed))
}

impl Config {
    /// Checks every field and switch that has a range, and how they agree. [`Endpoint::new`](crate::Endpoint::new) does.
    ///
    /// # Errors
    /// The first setting that cannot work, with what was found and what is allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_sizes()?;
        self.check_timers()?;
        self.check_limits()?;
        self.check_switches()?;
        self.check_addresses()
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        within("mtu", self.mtu, (LEAST_MTU, MOST_MTU), " B")?;
        let encapsulation = (0, MOST_ENCAPSULATION);
        within("encapsulation", self.encapsulation, encapsulation, " B")?;
        let buffer = self.receive_buffer;
        at_least("receive_buffer", buffer, LEAST_RECEIVE_BUFFER, " B")?;
        at_least("send_buffer", self.send_buffer, 1, " B")?;
        at_least("max_message", self.max_message, 1, " B")?;
        let point = self.partial_delivery_point.unwrap_or(1);
        at_least("partial_delivery_point", point, 1, " B")?;
        at_least("window_update", self.window_update.unwrap_or(1), 1, " B")?;
        let ssthresh = self.initial_ssthresh.unwrap_or(1);
        at_least("initial_ssthresh", ssthresh, 1, " B")
    }

    fn check_timers(&self) -> Result<(), ConfigError> {
        span("sack_delay", self.sack_delay, (0, MOST_SACK_DELAY))?;
        span("rto_max", self.rto_max, (LEAST_RTO, MOST_SPAN))?;
        span("rto_min", self.rto_min, (LEAST_RTO, self.rto_max))?;
        if let Some(initial) = self.rto_initial {
            span("rto_initial", initial, (self.rto_min, self.rto_max))?;
        }
        let drain = self.drain_timeout.unwrap_or(MILLISECOND);
        span("drain_timeout", drain, (MILLISECOND, MOST_SPAN))?;
        span("hb_interval", self.hb_interval.unwrap_or(0), (0, MOST_SPAN))?;
        let life = self.valid_cookie_life;
        span("valid_cookie_life", life, (MILLISECOND, MOST_SPAN))
    }

    fn check_limits(&self) -> Result<(), ConfigError> {
        at_least("outbound_streams", self.outbound_streams, 1, "")?;
        at_least("inbound_streams", self.inbound_streams, 1, "")?;
        // RFC 7829 §5, rule 1: a primary that has not failed keeps its office.
        let least = self.least_primary_switch();
        let found = self.primary_switch_max_retrans.unwrap_or(least);
        at_least("primary_switch_max_retrans", found, least, "")
    }

    fn check_switches(&self) -> Result<(), ConfigError> {
        let profile = &self.profile;
        at_least("max_burst", profile.max_burst, 1, "")?;
        at_least("hb_max_burst", profile.hb_max_burst, 1, "")?;
        at_least("missing_reports", profile.missing_reports, 1, "")?;
        at_least("ssthresh_floor", profile.ssthresh_floor, 1, "")?;
        if let InitialCwnd::Units(units) = profile.initial_cwnd {
            at_least("initial_cwnd", units, 1, " units")?;
        }
        at_least("initial_ssthresh", profile.initial_ssthresh, 1, " B")?;
        span("rto_initial", profile.rto_initial.0, (LEAST_RTO, MOST_SPAN))?;
        for (switch, interval) in [
            ("rsctp_primary_interval", profile.rsctp_primary_interval.0),
            (
                "rsctp_secondary_interval",
                profile.rsctp_secondary_interval.0,
            ),
        ] {
            span(switch, interval, (MILLISECOND, MOST_SPAN))?;
        }
        Ok(())
    }

    fn check_addresses(&self) -> Result<(), ConfigError> {
        for (index, address) in self.addresses.iter().enumerate() {
            let repeated = self.addresses[..index].contains(address);
            if repeated || !crate::handshake::is_unicast(*address) {
                let allowed = "unicast addresses of this host, each once";
                return Err(refuse("addresses", address, allowed));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// The field that `change` makes the check complain of.
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
        let cases: [(&str, Change); 30] = [
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
            ("initial_ssthresh", |it| it.initial_ssthresh = Some(0)),
            ("sack_delay", |it| it.sack_delay = 501 * MILLISECOND),
            ("rto_max", |it| it.rto_max = u64::MAX),
            ("rto_max", |it| it.rto_max = 0),
            ("rto_min", |it| it.rto_min = 0),
            ("rto_min", |it| it.rto_min = 61 * SECOND),
            ("rto_initial", |it| it.rto_initial = Some(0)),
            ("rto_initial", |it| it.rto_initial = Some(SECOND - 1)),
            ("rto_initial", |it| it.rto_initial = Some(61 * SECOND)),
            ("hb_interval", |it| it.hb_interval = Some(u64::MAX)),
            ("drain_timeout", |it| it.drain_timeout = Some(0)),
            ("valid_cookie_life", |it| it.valid_cookie_life = 0),
            ("outbound_streams", |it| it.outbound_streams = 0),
            ("inbound_streams", |it| it.inbound_streams = 0),
            ("primary_switch_max_retrans", |it| {
                it.primary_switch_max_retrans = Some(4)
            }),
            ("max_burst", |it| it.profile.max_burst = 0),
            ("hb_max_burst", |it| it.profile.hb_max_burst = 0),
            ("missing_reports", |it| it.profile.missing_reports = 0),
            ("initial_cwnd", |it| {
                it.profile.initial_cwnd = InitialCwnd::Units(0)
            }),
            ("rsctp_primary_interval", |it| {
                it.profile.rsctp_primary_interval.0 = 0
            }),
            ("addresses", |it| it.addresses = vec![[224, 0, 0, 1].into()]),
            ("addresses", |it| {
                it.addresses = vec![[10, 0, 0, 1].into(); 2]
            }),
        ];
        for (field, change) in cases {
            let error = complaint(change).unwrap_or_else(|| panic!("{field} was accepted"));
            assert_eq!(error.field, field, "{error}");
        }
    }

    #[test]
    fn the_bounds_themselves_are_accepted_and_the_message_says_all() {
        let accepted = complaint(|it| {
            (it.mtu, it.encapsulation) = (128, 32);
            (it.rto_min, it.rto_initial, it.rto_max) = (LEAST_RTO, Some(LEAST_RTO), LEAST_RTO);
            (it.receive_buffer, it.send_buffer) = (1_500, 1);
            it.sack_delay = MOST_SACK_DELAY;
        });
        assert_eq!(accepted, None);
        let error = complaint(|it| it.rto_min = 0).expect("refused");
        assert_eq!(
            error.to_string(),
            "rto_min: found 0 s; allowed: 0.001 s to 60 s"
        );
        let error = complaint(|it| it.mtu = 64).expect("refused");
        assert_eq!(
            error.to_string(),
            "mtu: found 64 B; allowed: 128 to 65535 B"
        );
    }
}
