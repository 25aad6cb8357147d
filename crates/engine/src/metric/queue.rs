//! Queue length of a link, and queueing delay of its packets.

use anabranch_scenario::quantity::Window;
use anabranch_settings::{KindEntry, SettingValue, kind, spelled};
use anabranch_sim::{LinkDirection, LinkProbe, LinkProbes, LinkSample};
use anabranch_transport::{Nanos, time};

use super::common_parameters::{LINK, WINDOW, WINDOWS};
use super::percentiles::{STATISTIC, Taken};
use super::window::TimeWindows;
use super::{BoxedMetric, Life, Metric, ObservedDirection, ResultName, RunData};
use crate::agent::histogram::Histogram;
use crate::agent::observer::Observer;

/// A direction of a link, as specs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueueDirection {
    Forward,
    Backward,
}
spelled!(QueueDirection: QueueDirection::Forward = "forward", QueueDirection::Backward = "backward");

kind! {
    /// The parameters of [`Queue`].
    struct QueueConfig {
        link: String as LINK;
        /// Direction of the link: `forward`, from the first node to the second, or `backward`; for
        /// `backward` the name of the value ends with `backward`.
        direction: QueueDirection = "forward", QueueDirection::KIND;
        statistic: Taken as [STATISTIC];
        over: TimeWindows as [WINDOW, WINDOWS];
    }
    /// Number of packets in a link's queue, including the packet in transmission: percentiles over
    /// time, over all members together.
    pub(super) static LENGTH: KindEntry<BoxedMetric> = "queue_length", |it, ()| Ok(it.of(Quantity::Length));
    /// Time for which packets stay in a link's queue, s, from arrival to the end of transmission:
    /// percentiles over the packets of all members. Dropped packets do not count. A packet counts
    /// in the window in which it is transmitted.
    pub(super) static DELAY: KindEntry<BoxedMetric> = "queue_delay", |it, ()| Ok(it.of(Quantity::Delay));
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Length,
    Delay,
}

struct Queue {
    config: QueueConfig,
    quantity: Quantity,
}

impl QueueConfig {
    fn of(self, quantity: Quantity) -> BoxedMetric {
        Box::new(Queue {
            config: self,
            quantity,
        })
    }
}

/// Observer of the queue of one direction of a link's member.
#[derive(Debug)]
struct Watched {
    window: Window,
    quantity: Quantity,
    /// Current queue length, and the time since which it is valid.
    standing: (f64, Nanos),
    seen: Histogram,
}

impl Watched {
    fn stood_until(&mut self, until: Nanos) {
        let (length, since) = self.standing;
        let [begin, end] = self.window.0;
        let span = until.min(end.0).saturating_sub(since.max(begin.0));
        self.seen.add(length, time::seconds(span));
    }
}

impl Observer for Watched {
    fn link(&mut self, sample: &LinkSample) {
        match (self.quantity, sample.probe) {
            (Quantity::Length, LinkProbe::QueueLength) => {
                self.stood_until(sample.at);
                self.standing = (sample.value, sample.at);
            }
            (Quantity::Delay, LinkProbe::Sojourn) if self.window.contains(sample.at) => {
                self.seen.add(sample.value, 1.0);
            }
            _ => {}
        }
    }

    fn close(&mut self, end: Nanos) {
        if self.quantity == Quantity::Length {
            self.stood_until(end);
        }
    }
}

impl Metric for Queue {
    fn names(&self) -> Vec<ResultName> {
        let (name, unit) = match self.quantity {
            Quantity::Length => ("queue_length", "packets"),
            Quantity::Delay => ("queue_delay", "s"),
        };
        let name = match self.config.direction {
            QueueDirection::Forward => name.to_owned(),
            QueueDirection::Backward => format!("{name}_backward"),
        };
        self.config
            .statistic
            .names(&self.config.over, &self.config.link, &name, unit)
    }

    fn lane(&self) -> Option<ObservedDirection<'_>> {
        Some(ObservedDirection {
            link: &self.config.link,
            direction: match self.config.direction {
                QueueDirection::Forward => LinkDirection::Forward,
                QueueDirection::Backward => LinkDirection::Backward,
            },
            probes: LinkProbes {
                queue: self.quantity == Quantity::Length,
                sojourn: self.quantity == Quantity::Delay,
                ..LinkProbes::default()
            },
        })
    }

    fn observers(&self, life: Life) -> Vec<Box<dyn Observer>> {
        self.config.over.observers(life, |window| Watched {
            window,
            quantity: self.quantity,
            standing: (0.0, 0),
            seen: Histogram::default(),
        })
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let windows = 0..self.config.over.windows().len();
        let values = windows.flat_map(|window| {
            let mut all = Histogram::default();
            for watched in seen.lane_observers::<Watched>(&self.config.link, window) {
                all.merge(&watched.seen);
            }
            self.config.statistic.of(&all)
        });
        values.collect()
    }
}
