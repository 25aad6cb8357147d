//! A user-defined congestion control for SCTP and TCP: the protocol's own control, with a limit on
//! the window.

use anabranch_congestion::{
    AckSample, Algorithm, Base, CongestionControl, LossCause, Requirement, registry,
};
use anabranch_engine::kinds::Standard;
use anabranch_transport::Nanos;

/// The name in specs, and the constructor, which wraps the protocol's own controller.
static CAPPED: Algorithm = Algorithm {
    name: "capped",
    about: "the protocol's own, with at most four segments in flight",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Capped { base }),
};

#[derive(Debug)]
struct Capped {
    base: Base,
}

impl CongestionControl for Capped {
    fn on_ack(&mut self, ack: &AckSample) {
        self.base.on_ack(ack);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.base.on_loss(now, cause, flightsize);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        self.base.on_idle(now, idle_for, rto);
    }

    fn on_mtu(&mut self, segment: u64) {
        self.base.on_mtu(segment);
    }

    fn cwnd(&self) -> u64 {
        self.base.cwnd().min(4 * self.base.unit())
    }

    fn ssthresh(&self) -> u64 {
        self.base.ssthresh()
    }

    fn name(&self) -> &'static str {
        CAPPED.name
    }
}

const SPEC: &str = r#"
anabranch = 1
name = "capped"
node = [{ name = "a" }, { name = "b" }]
link = [{ name = "wire", between = ["a", "b"], rate = "100 Mbit/s", delay = "50 ms" }]
measure = [{ metric = "goodput", flow = "f" }]

[world]
duration = "100 s"

[[flow]]
name = "f"
from = "a"
to = "b"
workload = { kind = "bulk" }
transport = { protocol = "tcp", congestion = "capped" }
"#;

#[test]
fn a_spec_names_it_for_either_protocol() {
    registry::add(&CAPPED);
    for protocol in ["tcp", "sctp"] {
        let spec = SPEC.replace("\"tcp\"", &format!("{protocol:?}"));
        let goodput = super::value(&Standard::default(), &spec);
        // Four segments of some 1450 B in 100 ms.
        assert!((440e3..470e3).contains(&goodput), "{protocol}: {goodput}");
    }
}
