//! From what a run counted to the measures that a spec asks for.

use anabranch_scenario::Metric;
use anabranch_scenario::measure::{Clock, Counting, PacketTake, Since, Take, Weighting};
use anabranch_scenario::names::{self, member_name};
use anabranch_scenario::quantity::{Span, Window};
use anabranch_scenario::rates::RateOverTime;
use anabranch_scenario::records::Measure;
use anabranch_scenario::unit::of_probe;
use anabranch_sim::{DropReason, LinkStats};
use anabranch_transport::{Nanos, Probe, time};

use crate::agent::meter::{Meter, MeterKind};
use crate::agent::once::Once;
use crate::agent::packets::PacketAccount;
use crate::agent::tally::Tally;

pub mod mark;

use mark::Mark;

/// What a run counted.
#[derive(Debug)]
pub struct Outcome {
    /// The flows, in the order of the spec.
    pub flows: Vec<FlowOutcome>,
    /// The links, in the order of the spec.
    pub links: Vec<LinkOutcome>,
    /// What had been carried at the moments that [`mark::moments`] names, in order; none where nobody could look.
    pub marks: Vec<Mark>,
    /// Length of the run.
    pub duration: Nanos,
}

/// What was counted of a flow.
#[derive(Debug)]
pub struct FlowOutcome {
    /// Its name.
    pub name: String,
    /// Bytes of a full segment as its window counts them.
    pub segment: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// Its members.
    pub members: Vec<Tally>,
}

impl FlowOutcome {
    /// Its members that gave up before their time, each with its reason.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        let count = self.members.len() as u32;
        self.members
            .iter()
            .zip(0..)
            .filter_map(move |(tally, index)| {
                let reason = tally.failed.as_ref()?;
                Some(format!(
                    "{}: {reason}",
                    member_name(&self.name, count, index)
                ))
            })
    }
}

/// What was counted of a link.
#[derive(Debug)]
pub struct LinkOutcome {
    /// Its name.
    pub name: String,
    /// Bits per second, forward.
    pub rate: RateOverTime,
    /// Its members, each with forward and backward.
    pub members: Vec<[LinkStats; 2]>,
}

/// Whether a measure asks which messages of a flow were delivered.
pub fn wants_once(wanted: &[Metric], flow: &str) -> bool {
    wanted.iter().any(|metric| match metric {
        Metric::RepeatedMessages { flow: name } | Metric::MissingMessages { flow: name } => {
            names::member(name).0 == flow
        }
        _ => false,
    })
}

/// The meters that a flow's member needs, which starts at `start`: one for each measure that has one, in the order of
/// the measures.
pub fn meters(wanted: &[Metric], flow: &str, start: Nanos, duration: Nanos) -> Vec<Meter> {
    let concerns =
        |metric: &&Metric| metered(metric).is_some_and(|(_, name)| names::member(name).0 == flow);
    let meter = |metric: &Metric| {
        let (kind, _) = metered(metric)?;
        let meter = Meter::new(kind, window(metric, duration));
        Some(match metric.clock() {
            Clock::Run => meter,
            Clock::Flow => meter.starting(start),
        })
    };
    wanted.iter().filter(concerns).filter_map(meter).collect()
}

fn window(metric: &Metric, duration: Nanos) -> Window {
    metric.window().unwrap_or(Window([Span(0), Span(duration)]))
}

/// The meter that a metric wants, and of which flow.
fn metered(metric: &Metric) -> Option<(MeterKind, &str)> {
    Some(match metric {
        Metric::Goodput {
            flow,
            window: Some(_),
        }
        | Metric::SegmentsDelivered { flow, .. }
        | Metric::SegmentRate { flow, .. } => (MeterKind::Delivered, flow),
        Metric::SegmentsSent { flow, path, .. } => (MeterKind::Segments { path: *path }, flow),
        Metric::TimeToResume { flow, .. } | Metric::LongestSilence { flow, .. } => {
            (MeterKind::Silence, flow)
        }
        Metric::HeartbeatOverhead { flow, path } => {
            let kind = MeterKind::Probe {
                probe: Probe::HeartbeatBytes,
                index: *path,
                take: Take::Sum,
                threshold: 0.0,
            };
            (kind, flow)
        }
        Metric::EstimateError {
            flow,
            probe,
            index,
            truth,
            weighting,
            ..
        } => {
            let per_unit = if of_probe(probe) == "B/s" { 8.0 } else { 1.0 };
            let truth = truth
                .iter()
                .map(|(from, rate)| (from.0, rate.0 as f64 / per_unit));
            let kind = MeterKind::Error {
                probe: Probe::from_name(probe)?,
                index: *index,
                truth: truth.collect(),
                weighting: *weighting,
            };
            (kind, flow)
        }
        Metric::MeanCwnd {
            flow,
            weighting: Weighting::Time,
            ..
        } => (MeterKind::CWND_BY_TIME, flow),
        Metric::MeanCwnd {
            flow,
            weighting: Weighting::Samples,
            ..
        } => (MeterKind::CWND_BY_SAMPLES, flow),
        Metric::Probe {
            flow,
            probe,
            take,
            threshold,
            index,
            ..
        } => {
            let kind = MeterKind::Probe {
                probe: Probe::from_name(probe)?,
                index: *index,
                take: *take,
                threshold: threshold.unwrap_or(0.0),
            };
            (kind, flow)
        }
        Metric::BlockedByRwnd {
            flow, threshold, ..
        } => (
            MeterKind::Blocked {
                threshold: threshold.0 as f64,
            },
            flow,
        ),
        Metric::MostHeld { flow } => {
            let kind = MeterKind::Probe {
                probe: Probe::AdvertisedRwnd,
                index: None,
                take: Take::Least,
                threshold: 0.0,
            };
            (kind, flow)
        }
        _ => return None,
    })
}

/// Computes every measure; one that has no value (nothing was sent, nothing to divide by) is absent.
pub fn measure(wanted: &[Metric], outcome: &Outcome) -> Vec<Measure> {
    let mut used = vec![0; outcome.flows.len()];
    wanted
        .iter()
        .filter_map(|metric| {
            // The meters of a flow stand in the order of the measures that want one.
            let meter = metered(metric).and_then(|(_, name)| {
                let flow = outcome
                    .flows
                    .iter()
                    .position(|flow| flow.name == names::member(name).0)?;
                used[flow] += 1;
                Some(used[flow] - 1)
            });
            one(metric, meter, outcome)
        })
        .collect()
}

impl Outcome {
    /// What was carried by the end of the run.
    fn carried(&self) -> Mark {
        let links = self.links.iter().map(|link| link.members.clone());
        let tallies = self.flows.iter().flat_map(|flow| &flow.members);
        Mark::read(self.duration, links, tallies)
    }

    /// The members that a name means, and the size of their segments.
    fn members<'a>(&'a self, name: &str) -> (&'a [Tally], u64) {
        let (group, member) = names::member(name);
        let Some(flow) = self.flows.iter().find(|flow| flow.name == group) else {
            return (&[], 1);
        };
        let members = match member {
            Some(index) => flow
                .members
                .get(index as usize)
                .map(std::slice::from_ref)
                .unwrap_or_default(),
            None => &flow.members[..],
        };
        (members, flow.segment)
    }

    fn flow(&self, name: &str) -> Option<&FlowOutcome> {
        let (group, _) = names::member(name);
        self.flows.iter().find(|flow| flow.name == group)
    }

    /// The mean over the members of what `of` makes of their meter; NaN where there is none.
    fn mean(&self, name: &str, meter: Option<usize>, of: impl Fn(&Meter) -> f64) -> f64 {
        let members = self.members(name).0.iter();
        let values: Vec<f64> = members
            .filter_map(|tally| tally.meters.get(meter?).map(&of))
            .collect();
        values.iter().sum::<f64>() / values.len() as f64
    }

    fn link_members<'a>(&'a self, name: &str) -> &'a [[LinkStats; 2]] {
        let (group, member) = names::member(name);
        let Some(link) = self.links.iter().find(|link| link.name == group) else {
            return &[];
        };
        match member {
            Some(index) => link
                .members
                .get(index as usize)
                .map(std::slice::from_ref)
                .unwrap_or_default(),
            None => &link.members[..],
        }
    }

    /// The sum over the members of what `of` makes of their messages' account; NaN where none was kept.
    fn once(&self, name: &str, of: impl Fn(&Once) -> u64) -> f64 {
        let kept: Vec<u64> = self
            .members(name)
            .0
            .iter()
            .filter_map(|tally| tally.once.as_ref().map(&of))
            .collect();
        if kept.is_empty() {
            return f64::NAN;
        }
        kept.iter().sum::<u64>() as f64
    }

    fn sum(&self, name: &str, of: impl Fn(&Tally) -> u64) -> f64 {
        self.members(name).0.iter().map(of).sum::<u64>() as f64
    }
}

fn counted(tally: &Tally, counting: Counting) -> u64 {
    match counting {
        Counting::UniquePayload => tally.delivered,
        Counting::UniqueSegments | Counting::Wire => tally.delivered_segments,
    }
}

fn one(metric: &Metric, meter: Option<usize>, outcome: &Outcome) -> Option<Measure> {
    let (value, unit) = value(metric, meter, outcome);
    let (series, metric) = metric.names();
    value.is_finite().then(|| Measure {
        series,
        metric,
        value,
        unit: unit.to_owned(),
    })
}

/// The value of a metric and its unit; not finite where there is none.
fn value(metric: &Metric, meter: Option<usize>, outcome: &Outcome) -> (f64, &'static str) {
    let metered = |flow: &str| -> Vec<Meter> {
        let members = outcome.members(flow).0.iter();
        members
            .filter_map(|tally| tally.meters.get(meter?).cloned())
            .collect()
    };
    let segment = |flow: &str| outcome.members(flow).1 as f64;
    let metered_sum = |flow: &str| metered(flow).iter().map(|meter| meter.sum).sum::<f64>();
    match metric {
        Metric::Goodput { flow, window: None } => (
            outcome.sum(flow, |t| t.delivered) * 8.0 / time::seconds(outcome.duration),
            "bit/s",
        ),
        Metric::Goodput {
            flow,
            window: Some(window),
        } => (
            metered_sum(flow) * 8.0 / time::seconds(window.length()),
            "bit/s",
        ),
        Metric::SegmentsDelivered { flow, .. } => (
            outcome.mean(flow, meter, |m| m.weight / segment(flow)),
            "segments",
        ),
        Metric::SegmentRate { flow, .. } => {
            let rate = |m: &Meter| m.weight / segment(flow) / time::seconds(m.length());
            (outcome.mean(flow, meter, rate), "segments/s")
        }
        Metric::Probe {
            flow,
            probe,
            take,
            per,
            ..
        } => {
            let seen = metered(flow).into_iter().filter(|meter| meter.weight > 0.0);
            let mean = |of: fn(&Meter) -> f64| {
                let values: Vec<f64> = seen.clone().map(|meter| of(&meter)).collect();
                values.iter().sum::<f64>() / values.len() as f64
            };
            let unit = of_probe(probe);
            let (value, unit) = match take {
                Take::Mean | Take::SampleMean => (mean(|m| m.sum / m.weight), unit),
                Take::Least | Take::Most => (mean(|m| m.sum), unit),
                Take::FirstTime => (mean(|m| m.sum), "s"),
                Take::Below => (mean(|m| m.sum / m.weight), "1"),
                Take::Count => (
                    metered(flow).iter().map(|meter| meter.weight).sum(),
                    "samples",
                ),
                Take::Sum => (metered_sum(flow), unit),
            };
            per.map_or((value, unit), |per| (value / per, "1"))
        }
        Metric::TimeToResume { flow, .. } => (outcome.mean(flow, meter, |m| m.sum / 1e9), "s"),
        Metric::LongestSilence { flow, .. } => (outcome.mean(flow, meter, |m| m.weight / 1e9), "s"),
        Metric::RepeatedMessages { flow } => (outcome.once(flow, Once::repeated), "messages"),
        Metric::MissingMessages { flow } => (outcome.once(flow, Once::missing), "messages"),
        Metric::HeartbeatOverhead { flow, .. } => {
            let payload = outcome.sum(flow, |t| t.delivered);
            (metered_sum(flow) / payload * 100.0, "%")
        }
        Metric::EstimateError { flow, .. } => {
            let seen = metered(flow).into_iter().filter(|meter| meter.weight > 0.0);
            let means: Vec<f64> = seen.map(|meter| meter.sum / meter.weight * 100.0).collect();
            (means.iter().sum::<f64>() / means.len() as f64, "%")
        }
        Metric::BlockedByRwnd { flow, .. } => {
            (outcome.mean(flow, meter, |m| m.sum / m.weight), "1")
        }
        Metric::MostHeld { flow } => {
            let buffer = outcome
                .flow(flow)
                .map_or(0.0, |flow| flow.receive_buffer as f64);
            (
                buffer
                    - outcome.mean(
                        flow,
                        meter,
                        |m| if m.weight > 0.0 { m.sum } else { f64::NAN },
                    ),
                "bytes",
            )
        }
        Metric::StreamLimitsMet { flow } => (outcome.sum(flow, |t| t.stream_limits_met), "events"),
        Metric::ThroughputIncrease { of, over, counting } => {
            let ours = outcome.sum(of, |t| counted(t, *counting));
            let theirs = outcome.sum(over, |t| counted(t, *counting));
            ((ours - theirs) / theirs * 100.0, "%")
        }
        Metric::LinkUtilization {
            link,
            counting,
            window,
        } => (utilization(outcome, link, *counting, *window), "%"),
        Metric::JainFairness { flows, counting } => (jain(outcome, flows, *counting), "1"),
        Metric::MeanCwnd { flow, .. } => {
            let segment = outcome.members(flow).1 as f64;
            let seen = metered(flow).into_iter().filter(|meter| meter.weight > 0.0);
            let means: Vec<f64> = seen
                .map(|meter| meter.sum / meter.weight / segment)
                .collect();
            (means.iter().sum::<f64>() / means.len() as f64, "segments")
        }
        Metric::SegmentsSent { flow, .. } => (metered_sum(flow), "segments"),
        Metric::Retransmissions { flow } => (outcome.sum(flow, |t| t.retransmissions), "segments"),
        Metric::FastRetransmits { flow } => (outcome.sum(flow, |t| t.fast_retransmits), "events"),
        Metric::Timeouts { flow } => (outcome.sum(flow, |t| t.timeouts), "events"),
        Metric::MeanOneWayDelay { flow } => {
            let members = outcome.members(flow).0.iter();
            let (sum, count) = members.fold((0, 0), |(sum, count), t| {
                (sum + t.delay_sum, count + t.delays)
            });
            (sum as f64 / count as f64 / 1e9, "s")
        }
        Metric::Packets { flow, take, from } => {
            (packets(outcome, flow, *take, *from), take.names().1)
        }
        Metric::Drops { link, reason } => {
            let drops = |stats: &LinkStats| match reason.as_deref().and_then(DropReason::from_name)
            {
                Some(reason) => stats.dropped.count(reason),
                None => stats.dropped.total(),
            };
            (
                outcome
                    .link_members(link)
                    .iter()
                    .flatten()
                    .map(drops)
                    .sum::<u64>() as f64,
                "packets",
            )
        }
    }
}

/// A number made of the packets of all members of a flow.
fn packets(outcome: &Outcome, flow: &str, take: PacketTake, from: Since) -> f64 {
    let members = outcome.members(flow).0;
    let sum = |of: fn(&PacketAccount) -> u64| members.iter().map(|t| of(&t.packets)).sum::<u64>();
    let (sent, received) = (sum(|p| p.sent) as f64, sum(|p| p.received) as f64);
    // Every packet weighs alike, whichever member it belongs to.
    let [mean, square] = members.iter().fold([0.0; 2], |[mean, square], tally| {
        let packets = &tally.packets;
        let delays = match from {
            Since::Host => &packets.from_host,
            Since::Wire => &packets.from_wire,
        };
        let share = packets.received as f64 / received;
        let [m, s] = match packets.received {
            0 => [0.0; 2],
            _ => packets.moments(delays),
        };
        [mean + share * m, square + share * s]
    });
    match take {
        PacketTake::Sent => sent,
        PacketTake::Received => received,
        PacketTake::ReceivedOverSent => received / sent * 100.0,
        PacketTake::MeanDelay => mean,
        PacketTake::DelaySpread => square / 1000.0,
        PacketTake::DelayVariance => square - mean * mean,
    }
}

/// Use of a link in percent: the papers' sum of throughputs over its rate, or what crossed it forward. NaN over a window that
/// nobody could look at.
fn utilization(outcome: &Outcome, name: &str, counting: Counting, window: Option<Window>) -> f64 {
    let (group, member) = names::member(name);
    let Some(link) = outcome.links.iter().position(|link| link.name == group) else {
        return f64::NAN;
    };
    let carried = |at: Nanos| {
        let mark = outcome.marks.iter().find(|mark| mark.at == at);
        mark.map(|mark| mark.bytes(link, member, counting))
    };
    let [begin, end] = window.map_or([0, outcome.duration], |window| {
        window.0.map(|end| end.0.min(outcome.duration))
    });
    let bytes = match (carried(begin), carried(end)) {
        (Some(before), Some(after)) => after - before,
        _ if window.is_none() => outcome.carried().bytes(link, member, counting),
        _ => return f64::NAN,
    };
    let members = outcome.link_members(name).len() as f64;
    let capacity = outcome.links[link].rate.mean(begin, end) * members * time::seconds(end - begin);
    bytes as f64 * 8.0 / capacity * 100.0
}

/// Jain's index over the throughputs of all members of the flows; all flows if none is named.
fn jain(outcome: &Outcome, flows: &[String], counting: Counting) -> f64 {
    let all: Vec<String> = outcome.flows.iter().map(|flow| flow.name.clone()).collect();
    let names = if flows.is_empty() { &all } else { flows };
    let members = names.iter().flat_map(|name| outcome.members(name).0);
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    for tally in members {
        let bytes = counted(tally, counting) as f64;
        sum += bytes;
        squares += bytes * bytes;
        count += 1.0;
    }
    sum * sum / (count * squares)
}

#[cfg(test)]
mod tests;
