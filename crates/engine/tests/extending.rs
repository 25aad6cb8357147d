//! Tests of the examples in `docs/extending/`: the code of each page is a file here, which is
//! compiled and run.

use std::fs;
use std::path::Path;

use anabranch_engine::kinds::Standard;
use anabranch_engine::plan::{Plan, PlanRequest, PlannedRun};
use anabranch_engine::sink::NullSink;
use anabranch_engine::world;

#[path = "extending/loss.rs"]
mod loss;
#[path = "extending/propagation.rs"]
mod propagation;
#[path = "extending/queue.rs"]
mod queue;
#[path = "extending/routing.rs"]
mod routing;

fn kinds() -> Standard {
    Standard::default()
        .with_loss(&loss::OVEN)
        .with_queue(&queue::EARLY)
        .with_propagation(&propagation::PASS)
        .with_routing(&routing::WEIGHED)
}

/// Checks that a page of the manual contains the code of the file, and that its spec is valid.
fn page(name: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join(format!("tests/extending/{name}.rs"));
    let code = fs::read_to_string(&file).expect("the example");
    let page = root.join(format!("../../docs/extending/{name}.md"));
    let page = fs::read_to_string(&page).expect("the page");
    assert!(
        page.contains(&format!("```rust\n{code}```\n")),
        "docs/extending/{name}.md does not have the text of {}",
        file.display()
    );
    let spec = page
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let keys = spec.expect("a spec in the page");
    plan(keys, "");
}

/// A spec whose link has the given keys.
fn plan(link: &str, measure: &str) -> Plan {
    let text = format!(
        "anabranch = 1\nname = \"own\"\nworld = {{ duration = \"10 s\" }}\nnode = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         measure = [{measure}]\n{link}\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\ntransport = {{ protocol = \"udp\" }}\n\
         workload = {{ kind = \"cbr\", rate = \"800 kbit/s\", message = \"1000 B\" }}\n"
    );
    let request = PlanRequest::new("own.toml", text).with(|it| {
        it.seed = 1;
    });
    Plan::with(request, &kinds()).unwrap_or_else(|error| panic!("{error}"))
}

/// Value of a metric on a link with the given keys, over which 100 messages per second are sent for
/// 10 s.
fn measured(link: &str, measure: &str) -> f64 {
    let link = format!("[[link]]\nname = \"wire\"\nbetween = [\"a\", \"b\"]\n{link}");
    let plan = plan(&link, measure);
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    record.metrics[0].value
}

const DROPS: &str = "{ metric = \"drops\", link = \"wire\" }";

#[test]
fn the_pages_have_the_code_that_is_run() {
    for name in ["loss", "queue", "propagation"] {
        page(name);
    }
}

#[test]
fn the_oven_takes_what_meets_it() {
    // Messages are sent every 10 ms. In each period of 100 ms two of ten are sent during the 15 ms
    // in which all packets are lost: at 0 and at 10 ms.
    let keys = "rate = \"10 Mbit/s\"\ndelay = \"1 ms\"\nloss = { forward = { model = \"oven\", period = \"100 ms\", on = \"15 ms\" } }";
    let lost = measured(keys, DROPS);
    assert!((199.0..=201.0).contains(&lost), "{lost}");
}

#[test]
fn the_early_queue_drops_before_it_is_full() {
    let keys = |rate: &str| {
        format!(
            "rate = \"{rate}\"\ndelay = \"1 ms\"\nqueue = {{ kind = \"early\", from = 2, limit = 12 }}"
        )
    };
    assert_eq!(measured(&keys("10 Mbit/s"), DROPS), 0.0);
    // At this rate half of the traffic fits, and the other half is dropped.
    let lost = measured(&keys("411.2 kbit/s"), DROPS);
    assert!((480.0..=510.0).contains(&lost), "{lost}");
    let reason = "{ metric = \"drops\", link = \"wire\", reason = \"aqm\" }";
    assert_eq!(measured(&keys("411.2 kbit/s"), reason), lost);
}

#[test]
fn the_satellite_is_near_half_of_the_time() {
    let keys = "rate = \"10 Gbit/s\"\ndelay = { kind = \"pass\", near = \"10 ms\", far = \"30 ms\", period = \"2 s\" }";
    let delay = measured(keys, "{ metric = \"mean_one_way_delay\", flow = \"f\" }");
    // The delay is 20 ms; the value may be in seconds or milliseconds.
    let milliseconds = if delay < 1.0 { delay * 1000.0 } else { delay };
    assert!((milliseconds - 20.0).abs() < 0.1, "{delay}");
}

/// Two stations are below satellites that are connected over a third satellite, and over the other
/// side of the ring. At any cost per hop, the path over the third satellite is used.
#[test]
fn the_weighed_routing_is_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let code = fs::read_to_string(root.join("tests/extending/routing.rs")).expect("the example");
    let page = fs::read_to_string(root.join("../../docs/extending/routing.md"));
    let page = page.expect("the page");
    assert!(
        page.contains(&format!("```rust\n{code}```\n")),
        "the page differs"
    );
    let world = page.split("```toml\n").nth(1);
    let world = world.and_then(|rest| rest.split("```").next());
    let text = format!(
        "anabranch = 1\nname = \"own\"\n{}\n[[constellation]]\nname = \"ring\"\n\
         shells = [{{ kind = \"walker\", planes = 1, satellites = 12, phasing = 0, altitude = 1000, inclination = 0, earth_rotates = false }}]\n\
         isl = {{ rate = \"1 Gbit/s\" }}\nup = {{ rate = \"1 Gbit/s\" }}\ndown = {{ rate = \"1 Gbit/s\" }}\n\
         [[ground]]\nname = \"city\"\nstations = [\"0,0\", \"0,60\"]\n\
         [[flow]]\nname = \"f\"\nfrom = \"city[0]\"\nto = \"city[1]\"\ntransport = {{ protocol = \"udp\" }}\n\
         workload = {{ kind = \"cbr\", rate = \"800 kbit/s\", message = \"1000 B\" }}\n",
        world.expect("a spec in the page")
    );
    let request = PlanRequest::new("own.toml", text).with(|it| it.seed = 1);
    let plan = Plan::with(request, &kinds()).unwrap_or_else(|error| panic!("{error}"));
    let record = world::run(&PlannedRun::all(&plan)[0], 1, &mut NullSink, &[]).expect("a run");
    let goodput = record.value("f", "goodput").expect("a measure");
    assert!((797e3..=800e3).contains(&goodput), "{goodput}");
}
