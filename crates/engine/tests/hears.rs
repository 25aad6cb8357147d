//! Tests of the callbacks of a custom congestion control: the inputs from the sender and the effect
//! of the outputs should be the same over SCTP and TCP.

use std::sync::{Mutex, MutexGuard, PoisonError};

use anabranch_congestion::{
    AckSample, Algorithm, Base, CongestionControl, LossCause, Protocol, Requirement, registry,
};
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;
use anabranch_transport::{Nanos, time};

/// The requested pacing rate, bytes per second.
const RATE: f64 = 400_000.0;

/// Inputs that the control received since the last query.
#[derive(Debug, Default)]
struct Heard {
    sent: u64,
    acknowledged: u64,
    losses: u64,
    marks: u64,
    app_limited: u64,
    idle: u64,
    /// Delivery rates of rounds that the application did not limit, and the number of rounds that
    /// it limited.
    rates: Vec<f64>,
    limited_rates: u64,
}

static HEARD: Mutex<Option<Heard>> = Mutex::new(None);

fn heard() -> MutexGuard<'static, Option<Heard>> {
    HEARD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(what: impl FnOnce(&mut Heard)) {
    what(heard().get_or_insert_default());
}

#[derive(Debug)]
struct Listening {
    base: Base,
}

static ALGORITHM: Algorithm = Algorithm {
    name: "listening",
    about: "the protocol's own, at a pace, and keeps what it hears",
    only: None,
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Listening { base }),
};

impl CongestionControl for Listening {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        assert!(flightsize >= bytes, "it counts them already");
        note(|it| it.sent += bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_app_limited(&mut self, now: Nanos) {
        note(|it| it.app_limited += 1);
        self.base.on_app_limited(now);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        note(|it| {
            it.acknowledged += ack.bytes_acked;
            match ack.delivery {
                Some(delivery) if delivery.app_limited => it.limited_rates += 1,
                Some(delivery) => it.rates.push(delivery.rate),
                None => {}
            }
        });
        self.base.on_ack(ack);
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        note(|it| it.marks += 1);
        self.base.on_ecn(now, flightsize);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        note(|it| it.losses += 1);
        self.base.on_loss(now, cause, flightsize);
    }

    fn on_idle(&mut self, now: Nanos, idle_for: Nanos, rto: Nanos) {
        note(|it| it.idle += 1);
        self.base.on_idle(now, idle_for, rto);
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(RATE)
    }

    fn cwnd(&self) -> u64 {
        self.base.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.base.ssthresh()
    }

    fn name(&self) -> &'static str {
        "listening"
    }
}

/// Runs 20 s over a link. Returns the goodput in bit/s, the number of window reductions after
/// marks, and the inputs of the control.
fn run(protocol: &str, link: &str, workload: &str) -> (f64, f64, Heard) {
    *heard() = None;
    let text = format!(
        "anabranch = 1\nname = \"own\"\nworld = {{ duration = \"20 s\" }}\n\
         node = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         measure = [{{ metric = \"goodput\", flow = \"f\", window = [\"5 s\", \"20 s\"] }}, {{ metric = \"ecn_reductions\", flow = \"f\" }}]\n\
         [[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\ndelay = \"20 ms\"\n{link}\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\nworkload = {{ {workload} }}\n\
         transport = {{ protocol = \"{protocol}\", congestion = \"listening\", switches = {{ ecn = true }} }}\n"
    );
    let request = PlanRequest::new("own.toml", text).with(|it| {
        it.seed = 1;
    });
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    let values: Vec<f64> = record.metrics.iter().map(|it| it.value).collect();
    let heard = heard().take().expect("a controller was made");
    (values[0], values[1], heard)
}

#[test]
fn an_own_algorithm_receives_all_and_sets_the_pace_over_both_protocols() {
    registry::add(&ALGORITHM);
    for protocol in ["sctp", "tcp"] {
        assert!(registry::by_name(Protocol::Sctp, "listening").is_some());
        // Only the requested rate of 3.2 Mbit/s limits the sender, in terms of the bytes that the
        // congestion control of the profile counts.
        let (goodput, _, heard) = run(protocol, "rate = \"100 Mbit/s\"", "kind = \"bulk\"");
        assert!((3.1e6..=3.21e6).contains(&goodput), "{protocol}: {goodput}");
        let flight = RATE * time::seconds(40_000_000) * 2.0;
        assert!(heard.sent >= heard.acknowledged, "{protocol}: {heard:?}");
        assert!(heard.sent - heard.acknowledged <= flight as u64);
        assert_eq!((heard.losses, heard.marks), (0, 0), "{protocol}");
        // The delivery rate should equal the sending rate, except in the first round trips.
        let last = heard.rates.last().expect("rounds end");
        assert!((last / RATE - 1.0).abs() < 0.1, "{protocol}: {last}");
        // Messages are sent so rarely that the application should limit every round.
        let cbr = "kind = \"cbr\", rate = \"80 kbit/s\", message = \"1000 B\"";
        let (_, _, heard) = run(protocol, "rate = \"100 Mbit/s\"", cbr);
        assert!(heard.app_limited > 90, "{protocol}: {heard:?}");
        assert!(heard.limited_rates > 90, "{protocol}: {heard:?}");
        assert_eq!(heard.rates.len(), 0, "{protocol}: {heard:?}");
        // One message is sent every four seconds, which is longer than any timeout.
        let seldom = "kind = \"cbr\", rate = \"2 kbit/s\", message = \"1000 B\"";
        let (_, _, heard) = run(protocol, "rate = \"100 Mbit/s\"", seldom);
        assert!(heard.idle > 2, "{protocol}: {heard:?}");
        // The link is slower than the requested rate, so packets are marked and dropped.
        let marks = "rate = \"2 Mbit/s\"\nqueue = { kind = \"codel\", ecn = true }";
        let (_, reductions, heard) = run(protocol, marks, "kind = \"bulk\"");
        assert!(heard.marks > 2, "{protocol}: {heard:?}");
        assert_eq!(heard.marks as f64, reductions, "{protocol}");
        assert_eq!(heard.losses, 0, "{protocol}");
        let drops = "rate = \"2 Mbit/s\"\nqueue = \"5 packets\"";
        let (_, _, heard) = run(protocol, drops, "kind = \"bulk\"");
        assert!(heard.losses > 2, "{protocol}: {heard:?}");
        assert_eq!(heard.marks, 0, "{protocol}");
    }
}
