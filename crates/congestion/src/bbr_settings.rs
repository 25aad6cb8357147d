//! Settings of `bbr` and `bbr1`, which the configurations of SCTP and TCP share.

/// Declares a configuration by [`settings!`](anabranch_settings::settings), and adds the settings
/// of [`bbr`](crate::bbr) and [`bbr1`](crate::bbr1) after its own. The configuration must have the
/// fields `congestion`, for the algorithm, and `tuning`, for its
/// [`AlgorithmParameters`](crate::parameters).
#[doc(hidden)]
#[macro_export]
macro_rules! settings_with_bbr {
    ($(#[$meta:meta])* pub struct $owner:ident { $($own:tt)* } beside { $($beside:tt)* }) => {
        anabranch_settings::settings! {
            $(#[$meta])*
            pub struct $owner {
                $($own)*
                /// BBR version 3: pacing gain of Startup. The value 2.77 (4 ln 2) doubles the rate
                /// per round trip.
                bbr_startup_gain: f64 = $crate::bbr::BbrParameters::DRAFT.startup_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 10.0, above: true, step: 0.0 },
                    "draft-ietf-ccwg-bbr-06, StartupPacingGain", needs congestion = "bbr";
                /// BBR version 3: cwnd gain of all states except ProbeBW_UP and ProbeRTT, in
                /// bandwidth-delay products.
                bbr_cwnd_gain: f64 = $crate::bbr::BbrParameters::DRAFT.cwnd_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 10.0, above: false, step: 0.0 },
                    "draft-ietf-ccwg-bbr-06, DefaultCwndGain", needs congestion = "bbr";
                /// BBR version 3: pacing gain of ProbeBW_UP.
                bbr_probe_gain: f64 = $crate::bbr::BbrParameters::DRAFT.probe_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 10.0, above: true, step: 0.0 },
                    "draft-ietf-ccwg-bbr-06, ProbeBW_UP", needs congestion = "bbr";
                /// BBR version 3: loss rate of a round trip above which a probe ends and bounds the
                /// bytes in flight. Version 1 has no such bound.
                bbr_loss_threshold: f64 = $crate::bbr::BbrParameters::DRAFT.loss_threshold,
                    anabranch_settings::Kind::Number { least: 0.0, most: 0.5, above: true, step: 0.0 },
                    "draft-ietf-ccwg-bbr-06, LossThresh", needs congestion = "bbr";
                /// BBR version 1: pacing gain and cwnd gain of Startup; the pacing gain of Drain is
                /// the inverse. The value 2 / ln 2 doubles the rate per round trip.
                bbr1_high_gain: f64 = $crate::bbr1::Bbr1Parameters::DRAFT.high_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 10.0, above: true, step: 0.0 },
                    "draft-cardwell-iccrg-bbr-congestion-control-00, BBRHighGain",
                    needs congestion = "bbr1";
                /// BBR version 1: cwnd gain of ProbeBW, in bandwidth-delay products.
                bbr1_cwnd_gain: f64 = $crate::bbr1::Bbr1Parameters::DRAFT.cwnd_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 10.0, above: false, step: 0.0 },
                    "draft-cardwell-iccrg-bbr-congestion-control-00, cwnd_gain",
                    needs congestion = "bbr1";
                /// BBR version 1: pacing gain of the phase that probes for bandwidth; the gain of
                /// the next phase is 2 minus this value.
                bbr1_probe_gain: f64 = $crate::bbr1::Bbr1Parameters::DRAFT.probe_gain,
                    anabranch_settings::Kind::Number { least: 1.0, most: 1.9, above: true, step: 0.0 },
                    "draft-cardwell-iccrg-bbr-congestion-control-00, pacing_gain",
                    needs congestion = "bbr1";
            }
            beside { $($beside)* }
        }

        impl $owner {
            /// Parameters of all congestion control algorithms: those of BBR are taken from these
            /// settings, and all others from `tuning`.
            pub(crate) fn algorithm_parameters(&self) -> $crate::parameters::AlgorithmParameters {
                $crate::parameters::AlgorithmParameters {
                    bbr: $crate::bbr::BbrParameters {
                        startup_gain: self.bbr_startup_gain,
                        cwnd_gain: self.bbr_cwnd_gain,
                        probe_gain: self.bbr_probe_gain,
                        loss_threshold: self.bbr_loss_threshold,
                    },
                    bbr1: $crate::bbr1::Bbr1Parameters {
                        high_gain: self.bbr1_high_gain,
                        cwnd_gain: self.bbr1_cwnd_gain,
                        probe_gain: self.bbr1_probe_gain,
                    },
                    ..self.tuning
                }
            }
        }
    };
}
