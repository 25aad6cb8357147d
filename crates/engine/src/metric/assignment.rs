//! Metrics of capacity on demand: the delay of assignments, and the share of assigned slots that
//! was used.

use anabranch_settings::{KindEntry, kind};
use anabranch_sim::Assignments;
use anabranch_transport::time;

use super::common_parameters::LINK;
use super::{BoxedMetric, Metric, ResultName, RunData};

kind! {
    /// Parameter of the two metrics of capacity assignments: the link with the assigned slots.
    struct AssignmentConfig {
        link: String as LINK;
    }
    /// Delay of capacity assignments, s: time from a request to the superframe in which the
    /// requested volume is assigned completely (VBDC), or in which a requested rate gets its first
    /// slot (RBDC). The values are the mean (`assignment_delay_mean`) and the maximum
    /// (`assignment_delay_max`). Defined only for links with the queue `dvb-rcs2`.
    pub(super) static DELAY: KindEntry<BoxedMetric> = "assignment_delay", |it, ()| Ok(it.of(Quantity::Delay));
    /// Share of assigned slots that was used, %: bytes of packets in the assigned slots of a link,
    /// divided by the capacity of these slots in bytes. Defined only for links with the queue
    /// `dvb-rcs2`.
    pub(super) static EFFICIENCY: KindEntry<BoxedMetric> =
        "assignment_efficiency", |it, ()| Ok(it.of(Quantity::Efficiency));
}

#[derive(Clone, Copy, Debug)]
enum Quantity {
    Delay,
    Efficiency,
}

struct Assigned {
    link: String,
    quantity: Quantity,
}

impl AssignmentConfig {
    fn of(self, quantity: Quantity) -> BoxedMetric {
        Box::new(Assigned {
            link: self.link,
            quantity,
        })
    }
}

impl Metric for Assigned {
    fn names(&self) -> Vec<ResultName> {
        let name = |metric, unit| ResultName::new(&self.link, metric, unit);
        match self.quantity {
            Quantity::Delay => vec![
                name("assignment_delay_mean", "s"),
                name("assignment_delay_max", "s"),
            ],
            Quantity::Efficiency => vec![name("assignment_efficiency", "%")],
        }
    }

    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let directions = seen.link_members(&self.link).iter().flatten();
        let all: Vec<Assignments> = directions.filter_map(|stats| stats.assignments).collect();
        let sum = |of: fn(&Assignments) -> u64| all.iter().map(of).sum::<u64>() as f64;
        match self.quantity {
            Quantity::Delay => {
                let delay = all.iter().map(|it| it.delay).sum::<u128>() as f64;
                let longest = all.iter().filter(|it| it.answered > 0);
                let longest = longest.map(|it| time::seconds(it.longest_delay));
                vec![
                    delay / 1e9 / sum(|it| it.answered),
                    longest.reduce(f64::max).unwrap_or(f64::NAN),
                ]
            }
            Quantity::Efficiency => vec![sum(|it| it.used) / sum(|it| it.assigned) * 100.0],
        }
    }
}
