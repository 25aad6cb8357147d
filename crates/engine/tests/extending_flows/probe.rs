//! A user-defined probe: the increase of the round-trip time, by queues and other delays, above its
//! minimum.

use anabranch_engine::agent::observer::Observer;
use anabranch_engine::agent::series::{SeriesProbe, SeriesValue};
use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::probe::ProbeEntry;
use anabranch_engine::sink::Memory;
use anabranch_engine::world;
use anabranch_transport::{Probe, Sample};

/// The name in specs, and the constructor for a member of a flow.
static EXCESS_RTT: ProbeEntry = ProbeEntry {
    name: "excess_rtt",
    about: "The smoothed round-trip time less the least so far, s; recorded when it changes.",
    make: |_| Box::new(ExcessRtt::default()),
};

#[derive(Debug, Default)]
struct ExcessRtt {
    least: Option<f64>,
    sample: Option<SeriesValue>,
}

/// Input: one probe of the transport, which is recorded only if a record names `excess_rtt`.
impl Observer for ExcessRtt {
    fn probes(&self) -> &[Probe] {
        &[Probe::Srtt]
    }

    fn sample(&mut self, sample: &Sample) {
        if sample.probe != Probe::Srtt {
            return;
        }
        let least = self
            .least
            .map_or(sample.value, |least| least.min(sample.value));
        self.least = Some(least);
        self.sample = Some(SeriesValue {
            at: sample.at,
            index: sample.index,
            value: sample.value - least,
        });
    }
}

/// Output.
impl SeriesProbe for ExcessRtt {
    fn poll(&mut self) -> Option<SeriesValue> {
        self.sample.take()
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "excess"
node = [{ name = "a" }, { name = "b" }]

[world]
duration = "20 s"

[[link]]
name = "wire"
between = ["a", "b"]
rate = "1 Mbit/s"
delay = "50 ms"
queue = "20 packets"

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "sctp" }

[[experiment]]
id = "excess"
replications = 1
record = [{ flow = "f", probes = ["excess_rtt", "srtt"], window = ["1 s", "20 s"] }]
"#;

#[test]
fn a_spec_names_it() {
    let request = PlanRequest::default().with(|it| it.text = SPEC.to_owned());
    let unknown = Plan::new(request.clone())
        .map(drop)
        .expect_err("no such probe");
    assert!(unknown.to_string().contains("excess_rtt"), "{unknown}");
    let kinds = Standard::default().with_probe(&EXCESS_RTT);
    let plan = Plan::with(request, &kinds).unwrap_or_else(|error| panic!("{error}"));
    let mut sink = Memory::default();
    world::run(&PlannedRun::all(&plan)[0], 1, &mut sink, &[]).expect("a run");
    let series = |probe: &str| {
        let found = sink.series.iter().find(|series| series.probe == probe);
        found.expect(probe)
    };
    let (excess, srtt) = (series("excess_rtt"), series("srtt"));
    assert!(excess.samples.len() > 50);
    assert_eq!(excess.samples.len(), srtt.samples.len());
    // 20 packets of 1500 B at 1 Mbit/s are a queueing delay of 240 ms, and one more packet is in
    // transmission. A bulk transfer fills the queue repeatedly, and the smoothed time lags behind.
    // The propagation takes 100 ms.
    let most = excess.samples.iter().map(|it| it.value).fold(0.0, f64::max);
    assert!((0.12..0.252).contains(&most), "{most}");
    for (excess, srtt) in excess.samples.iter().zip(&srtt.samples) {
        assert_eq!(excess.time, srtt.time);
        assert!(excess.value >= 0.0 && excess.value < srtt.value - 0.1);
    }
}
