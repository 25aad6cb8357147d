//! Stream allocations and rate estimates of a spec as SCTP's own, and what is wrong with them.

use anabranch_congestion::westwood_rate::{PRESETS, RateParameters};
use anabranch_scenario::flow::{Allocation, LossEvents as LossEventsSpec};
use anabranch_scenario::quantity::Span;
use anabranch_sctp::tx::allocation::{AllocationKind, Judgement, LossEvents, RoundTrip};
use anabranch_transport::Nanos;

use super::Complain;

/// Words for the time that makes a window of a rate, beside a time itself.
const ROUND_TRIPS: [&str; 2] = ["least", "smoothed"];

/// An allocation over `negotiated` streams.
pub fn kind(spec: &Allocation, negotiated: u16, complain: &mut Complain<'_>) -> AllocationKind {
    match spec {
        Allocation::Negotiated {} => AllocationKind::Negotiated,
        Allocation::Fixed { streams } => {
            check_streams(*streams, negotiated, complain);
            AllocationKind::Fixed(*streams)
        }
        Allocation::Adaptive {
            streams,
            weight_single,
            weight_multiple,
            round_trip,
            loss_events,
            quiet,
        } => {
            let streams = streams.unwrap_or(AllocationKind::ADAPTIVE_STREAMS);
            check_streams(streams, negotiated, complain);
            let parts = Parts {
                weights: [*weight_single, *weight_multiple],
                round_trip,
                loss_events,
                quiet,
            };
            AllocationKind::Adaptive {
                streams,
                judgement: parts.judgement(complain),
            }
        }
        Allocation::AdaptiveStep {
            weight_single,
            weight_multiple,
            round_trip,
            loss_events,
            quiet,
        } => {
            let parts = Parts {
                weights: [*weight_single, *weight_multiple],
                round_trip,
                loss_events,
                quiet,
            };
            AllocationKind::AdaptiveStep {
                judgement: parts.judgement(complain),
            }
        }
    }
}

/// A published rate estimate.
pub fn rate_estimate(name: &str, complain: &mut Complain<'_>) -> Option<RateParameters> {
    let found = RateParameters::by_name(name);
    if found.is_none() {
        let names: Vec<&str> = PRESETS
            .iter()
            .map(|(parameters, _)| parameters.name)
            .collect();
        complain(
            "rate_estimate",
            format!("found {name:?}, but no rate estimate has this name"),
            name,
            &names,
        );
    }
    found
}

fn check_streams(streams: u16, negotiated: u16, complain: &mut Complain<'_>) {
    if streams == 0 {
        complain(
            "allocation.streams",
            "found 0; at least one stream is in use".to_owned(),
            "",
            &[],
        );
    } else if streams > negotiated {
        let message = format!("found {streams}; `streams` negotiates only {negotiated}");
        complain("allocation.streams", message, "", &[]);
    }
}

/// What the adaptive allocations have in common, as the spec says it.
struct Parts<'a> {
    weights: [Option<f64>; 2],
    round_trip: &'a Option<String>,
    loss_events: &'a Option<LossEventsSpec>,
    quiet: &'a Option<Span>,
}

impl Parts<'_> {
    fn judgement(&self, complain: &mut Complain<'_>) -> Judgement {
        let published = Judgement::default();
        for (key, weight) in ["weight_single", "weight_multiple"]
            .into_iter()
            .zip(self.weights)
        {
            if weight.is_some_and(|weight| !weight.is_finite() || weight <= 0.0) {
                complain(
                    &format!("allocation.{key}"),
                    "a weight lies above 0".to_owned(),
                    "",
                    &[],
                );
            }
        }
        let [single, multiple] = self.weights;
        Judgement {
            weight_single: single.unwrap_or(published.weight_single),
            weight_multiple: multiple.unwrap_or(published.weight_multiple),
            round_trip: match self.round_trip {
                Some(text) => round_trip(text, complain).unwrap_or(published.round_trip),
                None => published.round_trip,
            },
            loss_events: self
                .loss_events
                .map_or(published.loss_events, |events| match events {
                    LossEventsSpec::PerSack => LossEvents::PerSack,
                    LossEventsSpec::PerChunk => LossEvents::PerChunk,
                    LossEventsSpec::PerCut => LossEvents::PerCut,
                }),
            quiet: match self.quiet {
                Some(span) => (span.0 > 0).then_some::<Nanos>(span.0),
                None => published.quiet,
            },
        }
    }
}

fn round_trip(text: &str, complain: &mut Complain<'_>) -> Option<RoundTrip> {
    match text {
        "least" => return Some(RoundTrip::Least),
        "smoothed" => return Some(RoundTrip::Smoothed),
        _ => {}
    }
    match text.parse::<Span>() {
        Ok(span) => Some(RoundTrip::Given(span.0)),
        Err(_) => {
            let message = format!(
                "found {text:?}; expected \"least\", \"smoothed\" or a time such as \"1 s\""
            );
            complain("allocation.round_trip", message, text, &ROUND_TRIPS);
            None
        }
    }
}
