//! Settings of stream allocations.

use anabranch_settings::{
    Choice, Datum, Fallback, Kind, OFF, Setting, SettingValue, Variant, spelled,
};
use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

use super::{AllocationKind, LossClassifier, LossEvents, RoundTrip};

spelled!(LossEvents: LossEvents::PerSack = "per-sack", LossEvents::PerChunk = "per-chunk", LossEvents::PerCut = "per-cut");

/// Maximum duration in nanoseconds, as for other settings.
const MAX_TIME: Nanos = 86_400 * SECOND;

impl SettingValue for RoundTrip {
    const KIND: Kind = Kind::Either(
        &[
            Choice {
                name: "least",
                about: "the smallest so far",
            },
            Choice {
                name: "smoothed",
                about: "the smoothed round-trip time",
            },
        ],
        &Kind::Duration {
            least: 1,
            most: MAX_TIME,
        },
    );

    fn from_datum(datum: &Datum) -> Option<Self> {
        match datum {
            Datum::Whole(span) => Some(RoundTrip::Given(*span)),
            other => match other.text()? {
                "least" => Some(RoundTrip::Least),
                "smoothed" => Some(RoundTrip::Smoothed),
                _ => None,
            },
        }
    }

    fn to_datum(&self) -> Datum {
        match self {
            RoundTrip::Least => Datum::word("least"),
            RoundTrip::Smoothed => Datum::word("smoothed"),
            RoundTrip::Given(span) => Datum::Whole(*span),
        }
    }
}

/// Setting of the number of streams, with its default.
const fn streams(about: &'static str, fallback: Fallback) -> Setting {
    Setting::new(
        "streams",
        about,
        Kind::Count {
            least: 1,
            most: 65_535,
        },
    )
    .clause("tsunoda2007 §II-B")
    .fallback(fallback)
}

const ABOVE_ZERO: Kind = Kind::Number {
    least: 0.0,
    most: f64::INFINITY,
    above: true,
    step: 0.0,
};

const WEIGHT_SINGLE: Setting = Setting::new(
    "weight_single",
    "Weight of the rate estimate while one stream is in use.",
    ABOVE_ZERO,
)
.clause("tsunoda2007 Fig. 3")
.or("1.4");
const WEIGHT_MULTIPLE: Setting = Setting::new(
    "weight_multiple",
    "Weight of the rate estimate while several streams are in use. It is larger, so that the \
     number of streams does not oscillate.",
    ABOVE_ZERO,
)
.clause("tsunoda2007 Fig. 3")
.or("1.6");
const ROUND_TRIP: Setting = Setting::new(
    "rtt_source",
    "The round-trip time that is multiplied with the rate estimate. The paper does not specify it; the work that the paper cites uses the minimum.",
    RoundTrip::KIND,
)
.clause("tsunoda2007 §II-B")
.or("least");
const LOSS_EVENTS: Setting = Setting::new(
    "loss_events",
    "Definition of one loss event. `per-sack`: each SACK that brings chunks to the threshold of \
     missing reports; `per-chunk`: each such chunk; `per-cut`: each reduction of a congestion \
     window.",
    LossEvents::KIND,
)
.clause("tsunoda2007 §II-B")
.or("per-sack");
const QUIET: Setting = Setting::new(
    "quiet_period",
    "After this time without a retransmission, one stream is used again; checked at this \
     interval. Off, or 0 s: never.",
    Kind::Either(
        OFF,
        &Kind::Duration {
            least: 0,
            most: MAX_TIME,
        },
    ),
)
.clause("tsunoda2007 §II-B")
.or("5 s");

const FIXED: &[Setting] = &[streams("Number of streams in use.", Fallback::Required)];
const ADAPTIVE: &[Setting] = &[
    streams(
        "Number of streams in use after a loss of the link.",
        Fallback::Is("4"),
    ),
    WEIGHT_SINGLE,
    WEIGHT_MULTIPLE,
    ROUND_TRIP,
    LOSS_EVENTS,
    QUIET,
];
const ADAPTIVE_STEP: &[Setting] = &[
    WEIGHT_SINGLE,
    WEIGHT_MULTIPLE,
    ROUND_TRIP,
    LOSS_EVENTS,
    QUIET,
];

/// Allocations that the setting accepts.
pub const VARIANTS: &[Variant] = &[
    Variant {
        name: "negotiated",
        about: "All negotiated streams are used.",
        parameters: &[],
    },
    Variant {
        name: "fixed",
        about: "A constant number of streams is used.",
        parameters: FIXED,
    },
    Variant {
        name: "adaptive",
        about: "One stream is used after a loss by congestion, and several after a loss by the link. A loss is attributed to congestion if the \
                congestion window is larger than the rate estimate x RTT x weight (Tsunoda et al. 2007, Fig. 3).",
        parameters: ADAPTIVE,
    },
    Variant {
        name: "adaptive-step",
        about: "One stream fewer is used after a loss by congestion, and one more after a loss by the link (Tsunoda et al. 2007, Fig. 11).",
        parameters: ADAPTIVE_STEP,
    },
];

impl SettingValue for AllocationKind {
    const KIND: Kind = Kind::Variant(|| VARIANTS.to_vec());

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        // [`Self::Negotiated`] has no parameters, so it is written as a plain name.
        matches!((self, kind), (Self::Negotiated, Kind::Variant(_)))
    }

    fn from_datum(datum: &Datum) -> Option<Self> {
        let Datum::Variant { kind, parameters } = datum else {
            return None;
        };
        let given = |name: &str| parameters.iter().find(|(key, _)| key == name);
        let streams = given("streams").map(|(_, datum)| u16::from_datum(datum));
        match kind.as_str() {
            "negotiated" => Some(Self::Negotiated),
            "fixed" => Some(Self::Fixed(streams??)),
            "adaptive" => Some(Self::Adaptive {
                streams: streams.unwrap_or(Some(Self::ADAPTIVE_STREAMS))?,
                judgement: judgement(parameters)?,
            }),
            "adaptive-step" => Some(Self::AdaptiveStep {
                judgement: judgement(parameters)?,
            }),
            _ => None,
        }
    }

    fn to_datum(&self) -> Datum {
        let (kind, streams, judgement) = match self {
            Self::Negotiated => ("negotiated", None, None),
            Self::Fixed(streams) => ("fixed", Some(*streams), None),
            Self::Adaptive { streams, judgement } => ("adaptive", Some(*streams), Some(judgement)),
            Self::AdaptiveStep { judgement } => ("adaptive-step", None, Some(judgement)),
        };
        let mut parameters = Vec::new();
        let mut give = |name: &str, datum: Datum| parameters.push((name.to_owned(), datum));
        if let Some(streams) = streams {
            give("streams", streams.to_datum());
        }
        if let Some(judgement) = judgement {
            give("weight_single", judgement.weight_single.to_datum());
            give("weight_multiple", judgement.weight_multiple.to_datum());
            give("rtt_source", judgement.round_trip.to_datum());
            give("loss_events", judgement.loss_events.to_datum());
            give("quiet_period", judgement.quiet.to_datum());
        }
        Datum::Variant {
            kind: kind.to_owned(),
            parameters,
        }
    }
}

fn judgement(parameters: &[(String, Datum)]) -> Option<LossClassifier> {
    let mut judgement = LossClassifier::default();
    for (name, datum) in parameters {
        match name.as_str() {
            "weight_single" => judgement.weight_single = f64::from_datum(datum)?,
            "weight_multiple" => judgement.weight_multiple = f64::from_datum(datum)?,
            "rtt_source" => judgement.round_trip = RoundTrip::from_datum(datum)?,
            "loss_events" => judgement.loss_events = LossEvents::from_datum(datum)?,
            "quiet_period" => {
                let quiet = Option::<Nanos>::from_datum(datum)?;
                judgement.quiet = quiet.filter(|span| *span > 0);
            }
            _ => {}
        }
    }
    Some(judgement)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documented defaults of omitted parameters must match the code.
    #[test]
    fn allocations_are_what_their_defaults_say() {
        for variant in VARIANTS {
            let given = |all: bool| {
                let wanted =
                    variant
                        .parameters
                        .iter()
                        .filter_map(|setting| match setting.fallback {
                            Fallback::Is(text) if all => {
                                Some((setting.name.to_owned(), setting.parse(text).expect(text)))
                            }
                            Fallback::Required => Some((setting.name.to_owned(), Datum::Whole(3))),
                            _ => None,
                        });
                Datum::Variant {
                    kind: variant.name.to_owned(),
                    parameters: wanted.collect(),
                }
            };
            let [bare, full] = [false, true].map(|all| AllocationKind::from_datum(&given(all)));
            assert!(bare.is_some(), "{}", variant.name);
            assert_eq!(bare, full, "{}", variant.name);
            let allocation = full.expect("it was read");
            assert_eq!(
                AllocationKind::from_datum(&allocation.to_datum()),
                Some(allocation)
            );
        }
    }
}
