//! Tests of effects for the kinds of links and flows: queues, losses, delays and workloads. Every
//! parameter should change the packets that pass, if the other parameters that it requires are set.

use anabranch_engine::kinds::Standard;
use anabranch_settings::{Datum, Fallback, Setting, Variant};

use super::values::{toml, values};
use super::worlds;

/// Values of required parameters whose type does not imply an example.
const GIVEN: &[(&str, &str)] = &[
    ("bernoulli", "probability = 0.02"),
    ("gilbert-elliott", "to_bad = 0.01, to_good = 0.3"),
    ("list", "segments = [{ flow = \"s\", number = 9 }]"),
    ("schedule", "steps = [[\"1 s\", 0.05]]"),
    ("ordinals", "packets = [20]"),
    ("periodic", "every = 40"),
    (
        "rain-fade",
        "losses = [0, 0.05, 0.3], means = [\"200 ms\", \"200 ms\", \"100 ms\"]",
    ),
    ("token-bucket", "rate = \"2 Mbit/s\""),
    (
        "dvb-s2",
        "clear_sky = 12.5, attenuation = { steps = [[\"0 s\", 0], [\"1 s\", 4], [\"2500 ms\", 0.2]] }, rain_probability = 99, rain_m = 0.8",
    ),
    (
        "leo-access",
        "interval = \"1 s\", first_handover = \"500 ms\", least_rate = 0.4, loss = 0.02",
    ),
    ("dvb-rcs2", "terminals = 2, cra = \"64 kbit/s\""),
    ("step", "threshold = \"4 packets\""),
    ("priority", "order = [\"tcp\", \"udp\"]"),
    (
        "deterministic",
        "delay = { steps = [[\"0 s\", \"90 ms\"], [\"1 s\", \"5 ms\"]], repeat = \"2 s\" }",
    ),
    ("jitter", "delay = \"10 ms\", jitter = \"12 ms\""),
    (
        "listed-jitter",
        "delay = \"10 ms\", delays = [\"1 ms\", \"25 ms\"]",
    ),
    ("satellites", "from = \"40.7,-74.0\", to = \"51.5,-0.1\""),
    ("cbr", "rate = \"300 kbit/s\", message = \"600 B\""),
    (
        "on-off",
        "rate = \"600 kbit/s\", message = \"600 B\", on = \"300 ms\", off = \"200 ms\"",
    ),
    (
        "transfers",
        "every = \"150 ms\", size = { kind = \"lognormal\", median = \"9 kB\", sigma = 1.0 }",
    ),
    (
        "request-response",
        "request = { kind = \"lognormal\", median = \"2 kB\", sigma = 1.0 }, response = { kind = \"lognormal\", median = \"9 kB\", sigma = 1.0 }, think = \"100 ms\"",
    ),
    (
        "trace",
        "messages = [{ at = \"1 s\", size = \"900 B\", stream = 1 }, { at = \"2 s\", size = \"30 kB\" }]",
    ),
    (
        "mixed",
        "small = \"100 B\", small_every = \"20 ms\", large = \"40 kB\", large_every = \"300 ms\"",
    ),
];

/// Parameters that show no effect in the world below: a packet takes longer than the whole marking
/// ramp of DualPI2, classic packets rarely wait for other packets, and each direction has only one
/// terminal.
const UNSEEN: &[&str] = &[
    "dualpi2.l4s_min_th",
    "dualpi2.classic_share",
    "dvb-rcs2.terminals",
];
/// This kind is not tested, because the world below covers only five seconds of an orbit, and the
/// test has no values for its places.
const UNSEEN_KIND: &str = "satellites";

/// A spec of three flows over one link, with different transports.
fn spec([queue, loss, delay, workload]: [&str; 4]) -> String {
    format!(
        r#"anabranch = 1
name = "effects"
world = {{ duration = "5 s" }}
node = [{{ name = "a" }}, {{ name = "b" }}]
measure = [{{ metric = "goodput", flow = "s" }}]
[[link]]
name = "one"
between = ["a", "b"]
rate = "3 Mbit/s"
queue = {queue}
loss = {loss}
delay = {delay}
[[flow]]
name = "s"
from = "a"
to = "b"
workload = {workload}
transport = {{ protocol = "sctp", ecn = true, receive_buffer = "256 KiB" }}
[[flow]]
name = "t"
from = "a"
to = "b"
start = "400 ms"
workload = {{ kind = "bulk" }}
transport = {{ protocol = "tcp", congestion = "dctcp", ecn = true, l4s = true, receive_buffer = "256 KiB" }}
[[flow]]
name = "u"
from = "a"
to = "b"
start = "600 ms"
workload = {{ kind = "on-off", rate = "2 Mbit/s", message = "900 B", on = "50 ms", off = "700 ms" }}
transport = {{ protocol = "udp" }}
"#
    )
}

/// A kind with its parameters, as TOML.
fn table(tag: &str, name: &str, given: &str) -> String {
    let separator = if given.is_empty() { "" } else { ", " };
    format!("{{ {tag} = \"{name}\"{separator}{given} }}")
}

/// The parameters `given`, with another value of the parameter `setting`.
fn replaced(given: &str, setting: &Setting, value: &str) -> String {
    let own = format!("{} = {value}", setting.name);
    match given.find(&format!("{} = ", setting.name)) {
        // The parameters after the replaced one are kept.
        Some(at) => {
            let rest = &given[at..];
            let mut depth = 0;
            let end = rest.find(|it: char| {
                depth += i32::from(matches!(it, '{' | '[')) - i32::from(matches!(it, '}' | ']'));
                depth == 0 && it == ','
            });
            let rest = end.map_or("", |end| &rest[end..]);
            format!("{}{own}{rest}", &given[..at])
        }
        None if given.is_empty() => own,
        None => format!("{given}, {own}"),
    }
}

/// Parameters of a kind that show no effect.
fn idle(place: usize, tag: &str, variant: &Variant, runs: &mut usize) -> Vec<String> {
    let mut parts = [
        "\"12 packets\"".to_owned(),
        "{ model = \"none\" }".to_owned(),
        "\"20 ms\"".to_owned(),
        "{ kind = \"bulk\" }".to_owned(),
    ];
    let given = GIVEN.iter().find(|(name, _)| *name == variant.name);
    let given = given.map_or("", |(_, given)| given);
    let mut seen = |given: &str| {
        parts[place] = table(tag, variant.name, given);
        let plan = worlds::plan(spec([0, 1, 2, 3].map(|it| parts[it].as_str()))).ok()?;
        *runs += 1;
        Some(worlds::run(&plan, worlds::Depth::Packets))
    };
    let without = seen(given);
    if without.is_none() {
        return vec![format!(
            "{} is refused: GIVEN has no example of it",
            variant.name
        )];
    }
    let changes_nothing = |setting: &&Setting| {
        let default = match setting.fallback {
            Fallback::Is(text) => setting.kind.parse(text).ok(),
            _ => None,
        };
        let others = values(&setting.kind, default.as_ref());
        !others.iter().any(|datum: &Datum| {
            let value = toml(&setting.kind.to_json(datum));
            let with = seen(&replaced(given, setting, &value));
            with.is_some() && with != without
        })
    };
    let all = variant.parameters.iter().filter(changes_nothing);
    all.map(|it| format!("{}.{}", variant.name, it.name))
        .collect()
}

#[test]
fn each_parameter_of_a_kind_changes_something() {
    let known = Standard::default();
    let families = [
        ("kind", known.queues.variants()),
        ("model", known.losses.variants()),
        ("kind", known.propagations.variants()),
        ("kind", known.workloads.variants()),
    ];
    let (mut all, mut runs) = (Vec::new(), 0);
    for (place, (tag, variants)) in families.iter().enumerate() {
        for variant in variants.iter().filter(|it| it.name != UNSEEN_KIND) {
            all.extend(idle(place, tag, variant, &mut runs));
        }
    }
    println!("{runs} runs");
    all.retain(|name| !UNSEEN.contains(&name.as_str()));
    assert_eq!(all, Vec::<String>::new());
}
