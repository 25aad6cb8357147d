//! Notes about default windows that limit a flow. Such notes are needed because a user may not
//! notice that a comparison of transports over a long path compares only their default windows.
//!
//! The default window is 65535 bytes for TCP, 64 KiB for SCTP, and more than a megabyte for QUIC.
//! Over a geostationary satellite these defaults alone cause a factor of twenty between the
//! throughputs. Because the limit may be intended, it causes only a note and no error.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_scenario::Link;
use anabranch_scenario::quantity::{Rate, Size, TimeSpan};
use anabranch_settings::Datum;

use crate::point::{PlannedPoint, PointIndex};
use crate::workload;

/// Names of the settings that are windows.
const WINDOWS: [&str; 2] = ["receive_window", "receive_buffer"];
/// Assumed packet size for a queue whose limit counts packets, bytes.
const PACKET: u128 = 1500;

/// Notes about flows whose default windows are too small to fill their path and its queue. Each
/// combination of flow and window is noted once, at its first point.
#[derive(Clone, Debug, Default)]
pub struct WindowNotes(BTreeMap<(String, u64), (PointIndex, usize, String)>);

impl WindowNotes {
    /// Adds the flows of a point.
    pub fn add(&mut self, order: PointIndex, point: &PlannedPoint) {
        for flow in 0..point.spec.flows.len() {
            let Some(Bound { key, window, note }) = bound(point, flow) else {
                continue;
            };
            match self.0.entry((key, window)) {
                Entry::Vacant(entry) => {
                    entry.insert((order, flow, note));
                }
                Entry::Occupied(mut entry) if (order, flow) < (entry.get().0, entry.get().1) => {
                    entry.insert((order, flow, note));
                }
                Entry::Occupied(_) => {}
            }
        }
    }

    /// All notes, in the order of the points.
    pub fn notes(&self) -> Vec<String> {
        let mut all: Vec<_> = self.0.values().collect();
        all.sort_by_key(|(order, flow, _)| (*order, *flow));
        all.into_iter().map(|(_, _, note)| note.clone()).collect()
    }
}

/// A flow at a point that is limited by its default window.
struct Bound {
    key: String,
    window: u64,
    note: String,
}

fn bound(point: &PlannedPoint, index: usize) -> Option<Bound> {
    let flow = &point.spec.flows[index];
    let written = &flow.transport;
    let kind = point.kinds.transports.kind(written)?;
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
    let count = members.len() as u128;
    let round_trip = alone.delays[0].saturating_add(alone.delays[1]);
    let path = u128::from(alone.rates[0]) * u128::from(round_trip) / 8_000_000_000;
    let queue = queue(point, alone.rates[0]);
    let offered = offered(point, index, round_trip).saturating_mul(count);
    let windows = u128::from(window) * count;
    if windows >= offered.min(path + queue) {
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
    let (size, rate, span) = (Size(window), Rate(alone.rates[0]), TimeSpan(round_trip));
    let most = windows * 8_000_000_000 / u128::from(round_trip.max(1));
    let note = match most < u128::from(alone.rates[0]) {
        true => format!(
            "{key}: left out, so {size}; with a round trip of {span} no more than {:.3} Mbit/s pass, and the path carries {rate}{at}",
            most as f64 / 1e6,
        ),
        false => format!(
            "{key}: left out, so {size}; the path of {rate} and {span} holds {path} bytes and its queue {queue}, which the flow never fills{at}"
        ),
    };
    Some(Bound { key, window, note })
}

/// Capacity in bytes of the bottleneck queue of a flow: the queue of a link whose rate equals
/// `rate`, the rate of the path. The capacity is 0 if the queue is unlimited, or if its discipline
/// keeps it short.
fn queue(point: &PlannedPoint, rate: u64) -> u128 {
    let limit = |link: &Link| {
        let is_narrow = link
            .rate
            .side(true)?
            .steps()
            .iter()
            .any(|(_, it)| *it == rate);
        let queue = link
            .queue
            .side(true)
            .filter(|it| is_narrow && it.kind == "drop-tail")?;
        let given = queue.values(&point.kinds.queues);
        let limit = given.iter().find(|(name, _)| name == "limit");
        match limit.map(|(_, limit)| limit) {
            Some(Datum::Segments(packets)) => Some(u128::from(*packets) * PACKET),
            Some(Datum::Whole(bytes)) => Some(u128::from(*bytes)),
            _ => None,
        }
    };
    point.spec.links.iter().filter_map(limit).min().unwrap_or(0)
}

/// Bytes that a member of a flow would have in flight without a window: the data that its workload
/// offers in a round trip, or at least a whole message.
fn offered(point: &PlannedPoint, index: usize, round_trip: u64) -> u128 {
    let (flow, built) = (&point.spec.flows[index], &point.resolved.transports[index]);
    let Some(facts) = workload::facts(&point.kinds, flow, &**built) else {
        return 0;
    };
    let largest = u128::from(facts.sizes[1]);
    match facts.gap {
        _ if facts.endless => u128::MAX,
        Some(gap) => largest * u128::from(round_trip / gap.max(1)).max(1),
        None => largest,
    }
}
