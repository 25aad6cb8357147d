//! A user-defined workload: a sensor that reports at the beginning of each interval, with growing
//! reports.

use anabranch_engine::kinds::Standard;
use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_sim::workload::{BoxedWorkload, Context, Facts, Message, NextMessage, Workload};
use anabranch_transport::Nanos;

kind! {
    /// The parameters of [`Sensor`].
    struct SensorConfig {
        /// Time between two reports.
        interval: Nanos, Kind::duration(1, Nanos::MAX);
        /// Size of the first report.
        first: usize = "100 B", Kind::bytes(1, 65_536);
    }
    /// A report in each interval; each report is larger than the previous one by the first size.
    static SENSOR: KindEntry<BoxedWorkload, Context> = "sensor", |config, _| Ok(Box::new(Sensor {
        config,
        due: None,
        reports: 0,
    }));
}

struct Sensor {
    config: SensorConfig,
    /// Time of the next report; `None` before the first call.
    due: Option<Nanos>,
    reports: usize,
}

impl Workload for Sensor {
    fn next(&mut self, now: Nanos) -> NextMessage {
        let due = *self.due.get_or_insert(now);
        if due > now {
            return NextMessage::At(due);
        }
        self.due = Some(due.saturating_add(self.config.interval));
        self.reports += 1;
        // A transfer begins when it is due, even if the transport accepts the data later.
        NextMessage::Now(Message::new(self.config.first * self.reports).due(due))
    }

    /// Properties of the workload for checks and adapters.
    fn facts(&self) -> Facts {
        Facts {
            sizes: [self.config.first as u64, u64::from(u16::MAX)],
            gap: Some(self.config.interval),
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
