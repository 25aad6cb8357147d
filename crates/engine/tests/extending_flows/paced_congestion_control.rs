//! A user-defined congestion control with pacing: the pace is slightly above the delivery rate of
//! the path.

use anabranch_congestion::{
    AckSample, Algorithm, Base, CongestionControl, LossCause, Property, Requirement, registry,
};
use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_transport::{Nanos, time};

/// The name in specs. The properties state which settings of SCTP and TCP have no effect.
static STEADY: Algorithm = Algorithm {
    name: "steady",
    about: "a pace a quarter above the largest delivery rate, and a window of two round trips of it",
    only: None,
    needs: Requirement::Nothing,
    properties: &[
        Property::PacesItself,
        Property::NeedsRateSamples,
        Property::OwnWindow,
    ],
    make: &|base, _| Box::new(Steady::new(base)),
};

/// Ratio of pace and delivery rate. The ratio must exceed 1 to discover unused capacity.
const PACING_GAIN: f64 = 1.25;
/// Factor by which a loss reduces the estimate.
const AFTER_LOSS: f64 = 0.7;

#[derive(Debug)]
struct Steady {
    base: Base,
    /// The largest delivery rate since the last loss, bytes per second; 0 before the first sample.
    rate: f64,
    least_rtt: Nanos,
}

impl Steady {
    fn new(base: Base) -> Self {
        Self {
            base,
            rate: 0.0,
            least_rtt: Nanos::MAX,
        }
    }
}

impl CongestionControl for Steady {
    fn on_ack(&mut self, ack: &AckSample) {
        self.least_rtt = self.least_rtt.min(ack.rtt.unwrap_or(Nanos::MAX));
        // The rate of a sample without an interval is 0, and a sample of a sender without data
        // underestimates the capacity.
        if let Some(sample) = ack.rate {
            self.rate = self.rate.max(sample.rate);
        }
    }

    fn on_loss(&mut self, _: Nanos, _: LossCause, _: u64) {
        self.rate *= AFTER_LOSS;
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    /// The sender then stores the data for a rate sample with each packet.
    fn wants_rate_samples(&self) -> bool {
        true
    }

    /// Bytes per second; `None`: packets leave as soon as the window permits. The rate is never 0,
    /// because the sender would stop permanently.
    fn pacing_rate(&self) -> Option<f64> {
        (self.rate > 0.0).then_some(PACING_GAIN * self.rate)
    }

    fn cwnd(&self) -> u64 {
        if self.rate == 0.0 || self.least_rtt == Nanos::MAX {
            return self.base.cwnd();
        }
        let window = 2.0 * self.rate * time::seconds(self.least_rtt);
        (window as u64).max(4 * self.base.unit())
    }

    fn ssthresh(&self) -> u64 {
        self.base.ssthresh()
    }

    fn name(&self) -> &'static str {
        STEADY.name
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "steady"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "10 Mbit/s", delay = "20 ms" }]
measure = [{ metric = "goodput", flow = "f", window = ["5 s", "25 s"] }]

[world]
duration = "25 s"

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "tcp", congestion = "steady" }
"#;

#[test]
fn it_fills_a_path_with_either_protocol() {
    registry::add(&STEADY);
    for protocol in ["tcp", "sctp"] {
        let spec = SPEC.replace("\"tcp\"", &format!("{protocol:?}"));
        let goodput = super::value(&Standard::default(), &spec);
        assert!((9.4e6..9.8e6).contains(&goodput), "{protocol}: {goodput}");
    }
}

#[test]
fn a_pace_of_the_protocol_has_no_effect_with_it() {
    registry::add(&STEADY);
    let spec = SPEC.replace("\"steady\" }", "\"steady\", pacing = 1.25 }");
    let request = PlanRequest::default().with(|it| it.text = spec);
    let error = Plan::with(request, &Standard::default()).expect_err("it has no effect");
    let error = error.to_string();
    assert!(
        error.contains("it has no effect with `congestion = "),
        "{error}"
    );
}
