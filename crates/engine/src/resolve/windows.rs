//! Windows that were left out and bind: who compares transports over a long path with the windows of the standards compares these.
//!
//! TCP offers 65535 bytes where a spec says nothing, SCTP 64 KiB, and QUIC more than a megabyte. Over a geostationary satellite that is a
//! difference of twenty times, and none of the protocols. It may be meant, so it is a note.

use std::collections::BTreeSet;

use anabranch_scenario::quantity::{Rate, Size, Span};
use anabranch_settings::Datum;

use crate::plan::{PlannedExperiment, PlannedPoint};

/// The settings that are windows.
const WINDOWS: [&str; 2] = ["receive_window", "receive_buffer"];
/// A workload that takes what it is given.
const GREEDY: &str = "bulk";

/// Notes about the flows of a plan whose windows were left out and let them carry less than half of what their path does, each flow and
/// window once.
pub fn notes(experiments: &[PlannedExperiment]) -> Vec<String> {
    let mut told = BTreeSet::new();
    let points = experiments.iter().flat_map(|it| &it.points);
    let bound = points.flat_map(|point| {
        let flows = 0..point.spec.flows.len();
        flows.filter_map(move |flow| bound(point, flow))
    });
    let new = bound.filter(|it| told.insert((it.key.clone(), it.window)));
    new.map(|it| it.note).collect()
}

/// A flow at a point that its window binds.
struct Bound {
    key: String,
    window: u64,
    note: String,
}

fn bound(point: &PlannedPoint, index: usize) -> Option<Bound> {
    let flow = &point.spec.flows[index];
    let written = &flow.transport;
    let kind = point.kinds.transports.kind(written)?;
    if flow.workload.kind != GREEDY {
        return None;
    }
    let setting = WINDOWS.iter().find_map(|name| kind.setting(name))?;
    if written
        .values(kind)
        .any(|(given, _)| given.name == setting.name)
    {
        return None;
    }
    let profile = written.profile().or(kind.profiles.first().copied());
    let default = (kind.fallback)(profile.unwrap_or_default(), setting.name)?;
    let Ok(Datum::Whole(window)) = setting.parse(&default) else {
        return None;
    };
    let members = point.resolved.members.iter();
    let members: Vec<_> = members.filter(|member| member.flow == index).collect();
    let alone = members.first()?.alone.as_ref()?;
    let round_trip = alone.delays[0].saturating_add(alone.delays[1]);
    let bits = u128::from(window) * 8 * members.len() as u128;
    let most = bits * 1_000_000_000 / u128::from(round_trip.max(1));
    if most * 2 >= u128::from(alone.rates[0]) {
        return None;
    }
    let at: Vec<String> = point
        .point
        .iter()
        .map(|(name, x)| format!("{name} {x}"))
        .collect();
    let at = match at.is_empty() {
        true => String::new(),
        false => format!(" ({})", at.join(", ")),
    };
    let key = format!("`flow.{}.transport.{}`", flow.name, setting.name);
    let note = format!(
        "{key}: left out, so {}; with a round trip of {} no more than {:.3} Mbit/s pass, and the path carries {}{at}",
        Size(window),
        Span(round_trip),
        most as f64 / 1e6,
        Rate(alone.rates[0]),
    );
    Some(Bound { key, window, note })
}
