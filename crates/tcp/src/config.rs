//! Configuration of one end of a connection: settings with their ranges, and the checks of their
//! combinations.

use anabranch_congestion::careful_resume::ResumeParameters;
use anabranch_congestion::parameters::AlgorithmParameters;
use anabranch_congestion::registry::{needs_rate_samples, own_window, paces_itself};
use anabranch_congestion::tcp_newreno;
use anabranch_congestion::{Algorithm, registry, settings_with_bbr};
use anabranch_settings::{
    Datum, InvalidValue, Kind, SettingError, SettingValue, WindowSize, look_up, profiled,
    without_effect,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::{MICROSECOND, MILLISECOND, SECOND};

use crate::control::Congestion;
use crate::profile::Profile;

/// Largest window that TCP can advertise (RFC 7323 §2.3), bytes.
const MAX_WINDOW: u64 = 1 << 30;
/// Largest receive buffer that may be configured without window scaling, bytes. The usual value of
/// 64 KiB is allowed, although the 16-bit window field holds one byte less.
const MAX_UNSCALED: u64 = 1 << 16;

settings_with_bbr! {
    /// Configuration of one end. Every switch of [`Config::profile`] is a setting as well.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Congestion control algorithm. A program can register further algorithms.
        congestion: &'static Algorithm = &tcp_newreno::ALGORITHM, registry::TCP, "RFC 5681 §3";
        /// Spreads the packets over the round-trip time: after `bytes` have been sent, the next
        /// packet follows after `bytes / (factor x cwnd / SRTT)`, unless the algorithm computes a
        /// rate itself. The factor should be above 1, because the window is otherwise never filled;
        /// RFC 9002 suggests 1.25. Off: packets are sent as soon as the window permits.
        pacing: Option<f64> = None,
            Kind::Either(anabranch_settings::OFF, &Kind::Number { least: 0.0, most: 1000.0, above: true, step: 0.0 }), "RFC 9002 §7.7",
            not with congestion in paces_itself;
        /// With `pacing`, or with an algorithm that computes a rate: number of bytes that may be
        /// sent at once after a pause. 0: no burst; all packets are spaced. RFC 9002 allows an
        /// initial window.
        pacing_burst: u64 = 0, Kind::Bytes { least: 0, most: 1 << 30 }, "RFC 9002 §7.7", needs pacing or congestion in paces_itself;
        /// Rate-limited increase: if the sender does not fill the window, the window grows at most
        /// to twice the largest flight in slow start, and to one segment more than the largest
        /// flight in congestion avoidance. Off: the window grows with each acknowledgement even if
        /// it is not filled; RFC 5681 does not specify this case.
        rate_limited_increase: bool = false, Kind::Flag, "draft-ietf-ccwg-ratelimited-increase", not with congestion in own_window;
        /// Detects losses by time (RACK): a segment is lost once a segment sent later has arrived,
        /// and a reordering window of a quarter of the minimum round-trip time has passed. Lost
        /// retransmissions are detected as well. RACK replaces the algorithm in `recovery` if the
        /// peer permits SACK. Always on with `bbr`, which must know of each segment whether it was
        /// delivered or lost.
        rack: bool = false, Kind::Flag, "RFC 8985 §6", needs sack;
        /// With `rack`: tail loss probe (TLP). If no acknowledgement arrives for two round-trip
        /// times, the sender transmits new data, or the last segment again. Off: a loss of the last
        /// segments is detected only by a timeout.
        tail_loss_probe: bool = true, Kind::Flag, "RFC 8985 §7", needs rack;
        /// Proportional rate reduction: fast recovery sends, for each delivered byte, a fraction of
        /// a byte, which is the ratio of the reduced window to the flight at the start of recovery.
        /// Off: the sender pauses until the flight has fallen below the reduced window.
        proportional_rate_reduction: bool = false, Kind::Flag, "RFC 6937", needs recovery = "rfc6675" or rack or congestion in needs_rate_samples,
            not with sack = false;
        /// Maximum segment size (MSS) sent and received, bytes without headers. Over IPv6 the
        /// default is 20 B less, because the header is 20 B longer and packets should have the same
        /// size.
        mss: u16 = 1460, Kind::Bytes { least: 1, most: 65_495 }, "RFC 9293 §3.7.1";
        /// Receive buffer, and thus the largest window that is offered to the peer. Without
        /// `window_scale`, or with a peer that does not scale, at most 65535 B.
        receive_buffer: WindowSize = WindowSize::Bytes(65_535),
            Kind::Amount { segments: [1, 1_000_000], bytes: [1, MAX_WINDOW], counted: "segments" }, "RFC 9293 §3.8.6";
        /// Send buffer: number of bytes that [`Connection::write`] accepts and keeps until they are
        /// acknowledged.
        ///
        /// [`Connection::write`]: crate::Connection::write
        send_buffer: u64 = 1 << 20, Kind::Bytes { least: 1, most: u64::MAX }, "";
        /// Duration of TIME-WAIT: two maximum segment lifetimes.
        time_wait: Nanos = 240 * SECOND, Kind::Duration { least: MILLISECOND, most: 86_400 * SECOND }, "RFC 9293 §3.4.2";
    }
    beside {
        /// Switches of the TCP variant: choices in which RFCs and implementations differ.
        profile: Profile = Profile::default();
        /// Parameters of the congestion control algorithms. Those of `bbr` and `bbr1` are separate
        /// settings and are not included.
        tuning: AlgorithmParameters = AlgorithmParameters::default();
        /// Observes the path, and starts from saved parameters if the driver
        /// [supplies](crate::Connection::resume) them (Careful Resume, RFC 9959).
        careful_resume: Option<ResumeParameters> = None;
        /// Computes the checksums of segments sent, and verifies those of segments received. A
        /// simulation that never corrupts packets can switch this off to save time.
        checksum: bool = true;
        /// Time of the first tick edge of a coarse clock, as an offset from time 0; less than
        /// `profile.rtt_granularity`. Ignored if the granularity is 0.
        clock_phase: Nanos = 0;
    }
}

profiled!(Config, Profile);

impl Config {
    /// Checks that every setting and switch is in its range, and that they are consistent.
    ///
    /// # Errors
    /// The first invalid setting, with the value found and the values allowed.
    pub fn check(&self) -> Result<(), SettingError> {
        self.check_ranges()?;
        self.profile.check_ranges()?;
        let (min, max) = (self.profile.rto_min, self.profile.rto_max);
        let below_max = Kind::duration(MICROSECOND, max.0).check(&min.to_datum());
        below_max.map_err(|invalid_value| SettingError::Value {
            setting: "rto_min",
            invalid_value,
        })?;
        self.check_control()?;
        self.check_window()
    }

    /// Checks the settings that the selected congestion control requires, and the settings that
    /// require a certain congestion control.
    fn check_control(&self) -> Result<(), SettingError> {
        let needs = self.control().needs(&self.profile, self.mss.max(1).into());
        let name = self.congestion.name;
        let wrong = |setting, found: bool, allowed: &str| {
            let invalid_value = InvalidValue {
                found: format!("`{setting} = {found}` with `congestion = {name:?}`"),
                allowed: allowed.to_owned(),
                range: (!found).to_string(),
                words: Vec::new(),
                parameter: None,
            };
            Err(SettingError::Value {
                setting,
                invalid_value,
            })
        };
        if needs.marks && !self.profile.ecn {
            let allowed = "`ecn = true` in addition: this control reacts to marks (RFC 8257)";
            return wrong("ecn", false, allowed);
        }
        if self.profile.l4s && !needs.marks {
            let allowed = "false, or a control that counts marks: `congestion = \"dctcp\"` or `\"prague\"` (RFC 9331 §4.3)";
            return wrong("l4s", true, allowed);
        }
        if needs.rates && !self.profile.sack {
            let allowed = "`sack = true` in addition: without selective acknowledgements the delivery rate that this control needs is not known";
            return wrong("sack", false, allowed);
        }
        Ok(())
    }

    /// Checks that window scaling (RFC 7323 §2) is on if the receive buffer exceeds 16 bits,
    /// because the part beyond 65,535 bytes would otherwise have no effect.
    fn check_window(&self) -> Result<(), SettingError> {
        if self.profile.window_scale || self.receive_bytes() <= MAX_UNSCALED {
            return Ok(());
        }
        let segments = MAX_UNSCALED / u64::from(self.mss.max(1));
        let range = Kind::Amount {
            segments: [1, segments.max(1)],
            bytes: [1, MAX_UNSCALED],
            counted: "segments",
        };
        let invalid_value = range.check(&self.receive_buffer.to_datum()).err();
        let Some(mut invalid_value) = invalid_value else {
            return Ok(()); // a single segment may exceed the remainder of 64 KiB
        };
        invalid_value.allowed += ", unless the switch `window_scale` is on (RFC 7323)";
        Err(SettingError::Value {
            setting: "receive_buffer",
            invalid_value,
        })
    }

    /// Checks that each setting has an effect: the [settings that it needs](Self::check_partners)
    /// are present, and no other setting makes it redundant.
    ///
    /// # Errors
    /// The first setting without effect.
    pub fn check_effects(&self) -> Result<(), SettingError> {
        self.check_partners()?;
        let own = Profile::by_name(self.profile.name).unwrap_or_default();
        let halving = (self.profile.integer_halving, own.integer_halving);
        // If `whole_segments` and `cwnd_floor` are on, a halved window is used only as ssthresh,
        // which is rounded to whole segments anyway.
        if self.profile.whole_segments && self.profile.cwnd_floor && halving.0 != halving.1 {
            let setting = look_up(Profile::SWITCHES, "integer_halving");
            let why =
                "with `whole_segments` and `cwnd_floor`, which round a half to whole segments";
            let [found, default] = [halving.0, halving.1].map(Datum::Flag);
            return setting.map_or(Ok(()), |it| {
                Err(without_effect(it, [&found, &default], why))
            });
        }
        Ok(())
    }

    /// Parameters for creating congestion controllers.
    pub(crate) fn control(&self) -> Congestion {
        Congestion {
            algorithm: self.congestion,
            tuning: self.algorithm_parameters(),
            rate_limited_increase: self.rate_limited_increase,
            careful_resume: self.careful_resume,
            saved_parameters: None,
        }
    }

    /// Receive buffer in bytes, limited to the largest window of TCP.
    pub fn receive_bytes(&self) -> u64 {
        self.receive_buffer
            .bytes(self.mss.max(1).into())
            .min(MAX_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_congestion::Protocol;

    use super::*;

    #[test]
    fn settings_and_switches_share_no_name_and_have_defaults_in_their_ranges() {
        let settings = Config::all_settings();
        for profile in Profile::NAMES {
            let mut config = Config::new(Profile::by_name(profile).expect("its own name"));
            let before = config.clone();
            assert_eq!(config.check(), Ok(()), "{profile}");
            for setting in &settings {
                let shown = Config::fallback(profile, setting.name).expect("a default");
                let datum = setting.parse(&shown).expect("a default in its range");
                config
                    .assign(setting.name, &datum)
                    .expect("its own default");
            }
            assert_eq!(config, before, "{profile}");
        }
        let mut names: Vec<_> = settings.iter().map(|setting| setting.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), settings.len());
    }

    #[test]
    fn a_control_is_given_what_it_works_by() {
        let with = |settings: &[(&str, &str)]| {
            let mut config = Config::default();
            for (name, value) in settings {
                let set = config.set(name, value);
                set.or_else(|_| config.profile.set(name, value))
                    .expect("a setting or a switch");
            }
            config.check()
        };
        let dctcp = ("congestion", "dctcp");
        assert_eq!(with(&[dctcp, ("ecn", "true")]), Ok(()));
        let prague = ("congestion", "prague");
        assert_eq!(with(&[prague, ("ecn", "true"), ("l4s", "true")]), Ok(()));
        assert_eq!(with(&[dctcp, ("ecn", "true"), ("l4s", "true")]), Ok(()));
        assert_eq!(with(&[("congestion", "bbr")]), Ok(()));
        for (settings, setting) in [
            ([dctcp, ("ecn", "false")], "ecn"),
            ([("congestion", "cubic"), ("l4s", "true")], "l4s"),
            ([("congestion", "bbr"), ("sack", "false")], "sack"),
        ] {
            let error = with(&settings).expect_err("what it works by is missing");
            assert_eq!(error.setting(), setting);
            let text = error.to_string();
            assert!(text.contains(settings[0].1), "{text}");
        }
    }

    #[test]
    fn settings_without_their_partner_are_refused() {
        let with = |change: fn(&mut Config)| Config::default().with(change).check_partners();
        let error = with(|it| it.tail_loss_probe = false).expect_err("there are no probes");
        assert_eq!(
            error.to_string(),
            "`tail_loss_probe`: found false; expected true, the default: it has no effect without `rack`"
        );
        assert_eq!(
            with(|it| (it.rack, it.tail_loss_probe) = (true, false)),
            Ok(())
        );
        let error = with(|it| it.profile.eifel = true).expect_err("there are no timestamps");
        assert_eq!(error.setting(), "eifel");
        let error = with(|it| (it.rack, it.profile.sack) = (true, false)).expect_err("no SACK");
        assert_eq!(error.setting(), "rack");
        let bbr = anabranch_congestion::registry::by_name(Protocol::Tcp, "bbr");
        let bbr = bbr.expect("a control");
        let paced = Config::default().with(|it| (it.congestion, it.pacing) = (bbr, Some(1.25)));
        let error = paced.check_partners().expect_err("it has its own pace");
        assert_eq!(
            error.to_string(),
            "`pacing`: found 1.25; expected off, the default: it has no effect with `congestion = \"bbr\"` or `congestion = \"bbr1\"`"
        );
        let control = |name| {
            let algorithms = anabranch_congestion::registry::by_name(Protocol::Tcp, name);
            algorithms.expect("a control")
        };
        for (name, own, setting) in [
            ("bbr", true, "bbr_loss_threshold"),
            ("bbr1", false, "bbr_loss_threshold"),
            ("bbr1", false, "bbr_startup_gain"),
            ("bbr", false, "bbr1_high_gain"),
            ("bbr1", true, "bbr1_high_gain"),
            ("cubic", false, "bbr_cwnd_gain"),
            ("newreno", false, "bbr1_probe_gain"),
        ] {
            let mut config = Config::default().with(|it| it.congestion = control(name));
            let value = if setting == "bbr_loss_threshold" {
                "0.1"
            } else {
                "1.5"
            };
            config.set(setting, value).expect("a value in the range");
            let error = config.check_effects().err();
            let refused = error.as_ref().map(|it| it.setting());
            assert_eq!(refused, (!own).then_some(setting), "{name} {setting}");
        }
        let error =
            with(|it| (it.profile.duplicate_threshold, it.profile.limited_transmit) = (1, false));
        let text = error
            .expect_err("there are no earlier duplicates")
            .to_string();
        assert!(text.contains("with `duplicate_threshold = 1`"), "{text}");
        for name in Profile::NAMES {
            let profile = Profile::by_name(name).expect("its own name");
            assert_eq!(Config::new(profile).check_partners(), Ok(()), "{name}");
        }
        let all = Config::all_settings();
        for partners in all.iter().map(|it| it.partners) {
            let known = |name| all.iter().any(|it| it.name == name);
            let mut named = partners.needs.iter().chain(partners.rivals);
            assert!(named.all(|it| known(it.setting)), "{partners:?}");
        }
    }

    /// With `whole_segments` and `cwnd_floor`, the halved window is used only as ssthresh, in whole
    /// segments.
    #[test]
    fn a_half_that_is_rounded_anyway_is_not_rounded_by_a_switch() {
        let check = |whole_segments, cwnd_floor, integer_halving| {
            let mut config = Config::default();
            let profile = &mut config.profile;
            (profile.whole_segments, profile.cwnd_floor) = (whole_segments, cwnd_floor);
            profile.integer_halving = integer_halving;
            config.check_effects()
        };
        let error = check(true, true, true).expect_err("it is idle");
        assert_eq!(error.setting(), "integer_halving");
        assert!(
            error
                .to_string()
                .contains("with `whole_segments` and `cwnd_floor`"),
            "{error}"
        );
        for (whole_segments, cwnd_floor) in [(true, false), (false, true)] {
            assert_eq!(check(whole_segments, cwnd_floor, true), Ok(()));
        }
        assert_eq!(check(true, true, false), Ok(()));
    }

    #[test]
    fn the_floor_of_the_timeout_lies_below_its_ceiling() {
        let mut config = Config::default();
        config.profile.rto_min.0 = 61 * SECOND;
        let error = config.check().expect_err("above the ceiling");
        assert!(
            error
                .to_string()
                .contains("found 61 s; expected a time with its unit, 1 us to 60 s"),
            "{error}"
        );
        config.profile.sack_blocks_remembered = 9;
        assert_eq!(
            config.check().expect_err("more than fit").setting(),
            "sack_blocks_remembered"
        );
    }

    #[test]
    fn a_window_may_be_counted_in_segments() {
        let mut config = Config::default();
        config
            .set("receive_buffer", "45 segments")
            .expect("an amount");
        config.set("mss", "1448 B").expect("a size");
        assert_eq!(config.receive_bytes(), 45 * 1448);
        assert_eq!(config.check(), Ok(()));
        let error = config
            .set("receive_buffer", "2048 MiB")
            .expect_err("too large");
        assert!(error.to_string().contains("1 B to 1024 MiB"), "{error}");
    }

    #[test]
    fn a_window_beyond_16_bits_needs_scaling() {
        let mut config = Config::default();
        for (window, fits) in [
            ("65535 B", true),
            ("64 KiB", true),
            ("65537 B", false),
            ("44 segments", true),
            ("45 segments", false),
        ] {
            config.set("receive_buffer", window).expect("an amount");
            config.profile.window_scale = false;
            let checked = config.check();
            assert_eq!(checked.is_ok(), fits, "{window}: {checked:?}");
            if let Err(error) = checked {
                assert_eq!(error.setting(), "receive_buffer");
                let text = error.to_string();
                assert!(text.contains("1 to 44 segments"), "{text}");
                assert!(text.contains("`window_scale` is on"), "{text}");
            }
            config.profile.window_scale = true;
            assert_eq!(config.check(), Ok(()), "{window}");
        }
    }
}
