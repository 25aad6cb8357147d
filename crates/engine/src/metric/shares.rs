//! How flows share what there is.

use anabranch_settings::{Entry, Fallback, Kind, Setting, Variant};

use super::outcome::counted;
use super::words::{COUNTING, Counting, FLOW};
use super::{Made, Metric, Name, Seen};

/// How specs name it.
pub(super) static THROUGHPUT_INCREASE: Entry<Made> = Entry {
    variant: Variant {
        name: "throughput_increase",
        about: " By how much more `of` carried than `over`, % (sums over each group). Series: `of over over`.",
        parameters: &[
            Setting {
                name: "of",
                about: " The flow compared.",
                ..FLOW
            },
            Setting {
                name: "over",
                about: " The flow it is compared with.",
                ..FLOW
            },
            COUNTING,
        ],
    },
    build: |parameters, ()| {
        Ok(Box::new(Increase {
            of: parameters.get("of")?,
            over: parameters.get("over")?,
            counting: parameters.get("counting")?,
        }))
    },
};

struct Increase {
    of: String,
    over: String,
    counting: Counting,
}

impl Metric for Increase {
    fn names(&self) -> Vec<Name> {
        let series = format!("{} over {}", self.of, self.over);
        vec![Name::new(&series, "throughput_increase", "%")]
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let [ours, theirs] = [&self.of, &self.over]
            .map(|flow| seen.sum(flow, |tally| counted(tally, self.counting)));
        vec![(ours - theirs) / theirs * 100.0]
    }
}

/// How specs name it.
pub(super) static JAIN_FAIRNESS: Entry<Made> = Entry {
    variant: Variant {
        name: "jain_fairness",
        about: " Jain's index over the throughputs of all members of the flows. Series: `all`.",
        parameters: &[
            Setting {
                name: "flows",
                about: " The flows; all if left out.",
                clause: "",
                kind: Kind::List(&Kind::Name("flow")),
                fallback: Fallback::Nothing,
            },
            COUNTING,
        ],
    },
    build: |parameters, ()| {
        Ok(Box::new(Jain {
            flows: parameters.list("flows")?,
            counting: parameters.get("counting")?,
        }))
    },
};

struct Jain {
    flows: Vec<String>,
    counting: Counting,
}

impl Metric for Jain {
    fn names(&self) -> Vec<Name> {
        vec![Name::new("all", "jain_fairness", "1")]
    }

    fn values(&self, seen: &Seen<'_>) -> Vec<f64> {
        let flows = seen.outcome.flows.iter();
        let all: Vec<String> = flows.map(|flow| flow.name.clone()).collect();
        let names = if self.flows.is_empty() {
            &all
        } else {
            &self.flows
        };
        let members = names.iter().flat_map(|name| seen.members(name));
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        for tally in members {
            let bytes = counted(tally, self.counting) as f64;
            sum += bytes;
            squares += bytes * bytes;
            count += 1.0;
        }
        vec![sum * sum / (count * squares)]
    }
}
