//! A workload of one's own: a sensor that reports at the beginning of each interval, every report a little larger.

use anabranch_engine::kinds::Standard;
use anabranch_settings::{Entry, Fallback, Kind, Setting, Variant};
use anabranch_sim::workload::{Context, Facts, Made, Message, Offer, Workload};
use anabranch_transport::Nanos;

/// How specs name it, its parameters, and how it is made.
static SENSOR: Entry<Made, Context> = Entry {
    variant: Variant {
        name: "sensor",
        about: " A report each interval, each larger than the last by its first size.",
        parameters: &[
            Setting {
                name: "interval",
                about: " Between two reports.",
                clause: "",
                kind: Kind::duration(1, Nanos::MAX),
                fallback: Fallback::Required,
            },
            Setting {
                name: "first",
                about: " The first report.",
                clause: "",
                kind: Kind::bytes(1, 65_536),
                fallback: Fallback::Is("100 B"),
            },
        ],
    },
    build: |parameters, _| {
        Ok(Box::new(Sensor {
            interval: parameters.get("interval")?,
            first: parameters.get("first")?,
            due: None,
            reports: 0,
        }))
    },
};

struct Sensor {
    interval: Nanos,
    first: usize,
    /// When the next report is due; not known before the first question.
    due: Option<Nanos>,
    reports: usize,
}

impl Workload for Sensor {
    fn next(&mut self, now: Nanos) -> Offer {
        let due = *self.due.get_or_insert(now);
        if due > now {
            return Offer::At(due);
        }
        self.due = Some(due.saturating_add(self.interval));
        self.reports += 1;
        // A transfer begins when it is due, also where the transport takes it late.
        Offer::Now(Message::new(self.first * self.reports).due(due))
    }

    /// What checks and adapters must know of it before it runs.
    fn facts(&self) -> Facts {
        Facts {
            sizes: [self.first as u64, u64::from(u16::MAX)],
            gap: Some(self.interval),
            ..Facts::default()
        }
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "sensor"
node = [{ name = "field" }, { name = "office" }]
link = [{ name = "radio", between = ["field", "office"], rate = "1 Mbit/s", delay = "20 ms" }]
measure = [{ metric = "goodput", flow = "reports" }]

[world]
duration = "10 s"

[[flow]]
name = "reports"
from = "field"
to = "office"
stop = "4.5 s"
workload = { kind = "sensor", interval = "1 s" }
transport = { protocol = "tcp" }
"#;

#[test]
fn a_spec_names_it() {
    let kinds = Standard::default().with_workload(&SENSOR);
    // Reports of 100 to 500 B at 0 to 4 s: 1500 B in a run of 10 s.
    assert_eq!(super::value(&kinds, SPEC), 1500.0 * 8.0 / 10.0);
}
