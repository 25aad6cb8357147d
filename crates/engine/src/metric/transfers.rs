//! Completion times of transfers.
//!
//! A transfer is the data that a workload offers at one time: a message, a file of `transfers`, or
//! a request with its answer. It starts when it is due, whether or not the transport has buffer
//! space, and ends when its last byte reaches the receiving application. With an answer it ends
//! when the last byte of the answer arrives.

use anabranch_scenario::quantity::Window;
use anabranch_settings::{KindEntry, kind};
use anabranch_transport::{Nanos, time};

use super::common_parameters::{CLOCK, FLOW, WINDOW, WINDOWS};
use super::message_integrity::numbered;
use super::percentiles::{STATISTIC, Taken};
use super::window::TimeWindows;
use super::{BoxedMetric, FlowFacts, Life, MeasureNeeds, Metric, ResultName, RunData};
use crate::agent::histogram::Histogram;
use crate::agent::observer::Observer;
use crate::agent::transfers::{Transfer, TransferTracker};

kind! {
    /// The parameters of [`Completion`].
    struct CompletionConfig {
        flow: String as FLOW;
        statistic: Taken as [STATISTIC];
        over: TimeWindows as [WINDOW, WINDOWS, CLOCK];
    }
    /// Completion time of transfers, s: time from when a transfer is due until its last byte
    /// arrives; with an answer, until the last byte of the answer arrives. Computed from the
    /// transfers of all members that are complete at the end of the run. A transfer counts in the
    /// window in which it begins.
    pub(super) static COMPLETION_TIME: KindEntry<BoxedMetric> =
        "flow_completion_time", |it, ()| Ok(it.of(false));
    /// Completion time of a transfer divided by its ideal time, at least 1. The ideal time is that
    /// of a transfer without other traffic on the path: delay + 8 x size / rate. `delay` is the sum
    /// of the propagation delays on the primary path of the flow, and `rate` is the smallest link
    /// rate on it, by the routes at the start of the run. If the rate of a link changes, its
    /// maximum is used. The ideal time does not include handshake, headers and windows. If a
    /// transfer has an answer, its ideal time is the sum of the times of both directions. There is
    /// no value if the path crosses a radio cell, a link without a rate, or a link whose delay
    /// changes.
    pub(super) static SLOWDOWN: KindEntry<BoxedMetric> = "slowdown", |it, ()| Ok(it.of(true));
}

struct Completion {
    config: CompletionConfig,
    /// Whether completion times are divided by the ideal time.
    relative: bool,
}

impl CompletionConfig {
    fn of(self, relative: bool) -> BoxedMetric {
        Box::new(Completion {
            config: self,
            relative,
        })
    }
}

/// Properties of a path that determine the ideal time of a transfer without other traffic: delay
/// and rate in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdealTransfer {
    /// Sums of the propagation delays, nanoseconds.
    pub delays: [Nanos; 2],
    /// Smallest link rates, bits per second.
    pub rates: [u64; 2],
}

impl IdealTransfer {
    /// Ideal time of a transfer, seconds.
    pub fn time(&self, transfer: &Transfer) -> f64 {
        let way = |direction: usize| {
            let bits = transfer.sizes[direction] as f64 * 8.0;
            time::seconds(self.delays[direction]) + bits / self.rates[direction] as f64
        };
        match transfer.sizes[1] {
            0 => way(0),
            _ => way(0) + way(1),
        }
    }
}

/// Observer of the completion times of one member's transfers.
#[derive(Debug)]
struct Completed {
    window: Window,
    /// Ideal of the path by which times are divided; the outer `None` means no division.
    alone: Option<Option<IdealTransfer>>,
    seen: Histogram,
}

impl Observer for Completed {
    fn transfer(&mut self, transfer: &Transfer) {
        if !self.window.contains(transfer.begin) {
            return;
        }
        let taken = time::seconds(transfer.time());
        match self.alone {
            None => self.seen.add(taken, 1.0),
            Some(Some(alone)) => self.seen.add(taken / alone.time(transfer), 1.0),
            Some(None) => {}
        }
    }
}

impl Metric for Completion {
    fn names(&self) -> Vec<ResultName> {
        let (name, unit) = match self.relative {
            true => ("slowdown", "1"),
            false => ("flow_completion_time", "s"),
        };
        self.config
            .statistic
            .names(&self.config.over, &self.config.flow, name, unit)
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.config.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds {
            transfers: true,
            ..MeasureNeeds::default()
        }
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.config.over.observers(life, |window| Completed {
            window,
            alone: self.relative.then_some(life.alone),
            seen: Histogram::default(),
        })
    }

    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        check(flow)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        self.config.statistic.over::<Completed>(
            &self.config.over,
            seen,
            &self.config.flow,
            |completed| &completed.seen,
        )
    }
}

/// Checks that the transfers of a flow can be distinguished at the receiver.
fn check(flow: &FlowFacts<'_>) -> Result<(), String> {
    let (name, workload) = (&flow.flow.name, flow.workload);
    if !workload.paced && !workload.answered {
        return Err(format!(
            "{name:?} offers bulk data, whose messages are no transfers; a file of a certain size is \
             `{{ kind = \"transfers\", count = 1, ... }}`"
        ));
    }
    let unordered = flow.flow.transport.settings.get("unordered") == Some(&true.into());
    if workload.piece.is_some() && unordered {
        return Err(format!(
            "{name:?} is unordered, so that pieces of a transfer overtake one another and cannot be told from those of others"
        ));
    }
    if flow.messages && flow.window && workload.piece.is_none() {
        return numbered(flow);
    }
    if flow.messages && !flow.window && workload.sizes[0] < super::message_integrity::ROOM {
        return Err(format!(
            "{name:?} has messages of {} B; a datagram says when it was sent, for which it needs {} B",
            workload.sizes[0],
            super::message_integrity::ROOM,
        ));
    }
    Ok(())
}

kind! {
    /// Parameter of the transfer counters: the flow.
    struct CountConfig {
        flow: String as FLOW;
    }
    /// Number of transfers whose last byte arrived before the end of the run.
    pub(super) static COMPLETE: KindEntry<BoxedMetric> =
        "transfers_complete", |it, ()| Ok(it.of("transfers_complete", TransferTracker::complete));
    /// Number of transfers that the transport accepted but that were not complete at the end of the
    /// run.
    pub(super) static INCOMPLETE: KindEntry<BoxedMetric> = "transfers_incomplete", |it, ()| {
        Ok(it.of("transfers_incomplete", |transfers| transfers.offered() - transfers.complete()))
    };
}

struct Count {
    flow: String,
    name: &'static str,
    of: fn(&TransferTracker) -> u64,
}

impl CountConfig {
    fn of(self, name: &'static str, of: fn(&TransferTracker) -> u64) -> BoxedMetric {
        Box::new(Count {
            flow: self.flow,
            name,
            of,
        })
    }
}

impl Metric for Count {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(&self.flow, self.name, "transfers")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds {
            transfers: true,
            ..MeasureNeeds::default()
        }
    }

    fn check(&self, flow: &FlowFacts<'_>) -> Result<(), String> {
        check(flow)
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let of = |transfers: &TransferTracker| (self.of)(transfers);
        vec![seen.sum(&self.flow, |flow_stats| {
            flow_stats.transfers.as_ref().map_or(0, of)
        })]
    }
}
