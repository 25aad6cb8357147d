//! A user-defined metric: the share of messages that missed a deadline.

use anabranch_engine::agent::observer::Observer;
use anabranch_engine::kinds::Standard;
use anabranch_engine::metric::common_parameters::FLOW;
use anabranch_engine::metric::{BoxedMetric, Life, MeasureNeeds, Metric, ResultName, RunData};
use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_transport::Nanos;

kind! {
    /// The parameters. A metric without other state is this structure.
    struct Late {
        flow: String as FLOW;
        /// Maximum delay of a message.
        deadline: Nanos, Kind::duration(1, Nanos::MAX);
    }
    /// Share of the messages that took longer than `deadline`, % of all that arrived.
    static LATE: KindEntry<BoxedMetric> = "late", |late, ()| Ok(Box::new(late));
}

/// Observer of one member of the flow during a run.
#[derive(Debug)]
struct Watch {
    deadline: Nanos,
    messages: u64,
    late: u64,
}

impl Observer for Watch {
    fn message(&mut self, _at: Nanos, delay: Nanos) {
        self.messages += 1;
        self.late += u64::from(delay > self.deadline);
    }
}

impl Metric for Late {
    fn names(&self) -> Vec<ResultName> {
        vec![ResultName::new(&self.flow, "late", "%")]
    }

    fn flow(&self) -> Option<&str> {
        Some(&self.flow)
    }

    fn needs(&self) -> MeasureNeeds {
        MeasureNeeds::default().with(|it| it.delays = true)
    }

    fn observers(&self, _: Life) -> Vec<Box<dyn Observer>> {
        vec![Box::new(Watch {
            deadline: self.deadline,
            messages: 0,
            late: 0,
        })]
    }

    /// One value for each name. NaN stands for a missing value, which is omitted.
    fn values(&self, seen: &RunData<'_>) -> Vec<f64> {
        let watched: Vec<&Watch> = seen.observers(&self.flow, 0);
        let sum = |of: fn(&Watch) -> u64| watched.iter().map(|watch| of(watch)).sum::<u64>() as f64;
        vec![sum(|watch| watch.late) / sum(|watch| watch.messages) * 100.0]
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "late"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "8 Mbit/s", delay = "10 ms" }]
measure = [{ metric = "late", flow = "frames", deadline = "15 ms" }]

[world]
duration = "1 s"

[[flow]]
name = "frames"
from = "a"
to = "b"
transport = { protocol = "udp" }

[flow.workload]
kind = "trace"
messages = [
    { at = "0 s", size = "1000 B" },
    { at = "0.1 s", size = "1000 B" },
    { at = "0.2 s", size = "1000 B" },
    { at = "0.3 s", size = "9000 B" },
]
"#;

#[test]
fn a_spec_names_it() {
    let kinds = Standard::default().with_metric(&LATE);
    // 1000 B take 10 ms and a little more than 1 ms, 9000 B take more than 19 ms.
    assert_eq!(super::value(&kinds, SPEC), 25.0);
}
