//! Keys of links, cells and workloads that change nothing beside others of the same point. Experiments compare what is on with what is off:
//! one that has an effect at some other point is meant for that. One that says what another says already is right, and is a note; one that
//! cannot do what it says is a mistake.

use std::collections::BTreeMap;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::chosen::{Chosen, Family};
use anabranch_scenario::families::{Place, Propagation, Queue};
use anabranch_scenario::problem::Problem;
use anabranch_scenario::quantity::Span;
use anabranch_scenario::{Flow, Link, Spec};
use anabranch_settings::Datum;
use anabranch_sim::wifi::Propagation as Law;

use crate::kinds::Standard;
use crate::medium;

/// What is said of a key that is set at a point: the problem that it is without effect; `None`: it has one.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Its path.
    pub path: String,
    /// Why it has no effect there.
    pub idle: Option<Problem>,
    /// Whether it says what holds without it.
    pub redundant: bool,
}

/// The keys that are judged, at one point.
pub fn judge(c: &Checker<'_>, spec: &Spec, kinds: &Standard) -> Vec<Judged> {
    let mut judge = Judge {
        c,
        kinds,
        all: Vec::new(),
    };
    for (index, link) in spec.links.iter().enumerate() {
        judge.link(link, &format!("link.{index}"));
    }
    for (index, cell) in spec.cells.iter().enumerate() {
        if let Some(height) = cell.parameters.antenna_height {
            let free = medium::parameters(cell).radio.propagation == Law::FreeSpace;
            let path = format!("wifi.{index}.parameters.antenna_height");
            judge.key(&path, height, free, "with `propagation = \"free-space\"`");
        }
    }
    for (index, flow) in spec.flows.iter().enumerate() {
        judge.workload(flow, &format!("flow.{index}.workload"));
        if let Some(name) = &flow.resume {
            let users = spec.flows.iter();
            let users = users.filter(|it| it.resume.as_ref() == Some(name));
            let users: u64 = users.map(|it| u64::from(it.count.0)).sum();
            let why = "on one flow alone: a later flow with the same name resumes from what an earlier one observed";
            judge.key(
                &format!("flow.{index}.resume"),
                format!("{name:?}"),
                users < 2,
                why,
            );
        }
    }
    judge.all
}

/// The keys that have no effect wherever they are set, for either direction of a link, each as the first problem that it is.
#[derive(Clone, Debug, Default)]
pub struct Everywhere {
    /// Those that cannot do what they say.
    pub mistakes: Vec<Problem>,
    /// Those that say what holds without them, as notes.
    pub redundant: Vec<String>,
}

impl Everywhere {
    /// Of all points.
    pub fn of<'a>(points: impl Iterator<Item = &'a [Judged]>) -> Self {
        let mut all: BTreeMap<String, Option<(&Problem, bool)>> = BTreeMap::new();
        for judged in points.flatten() {
            let both = judged.path.replace(".forward", "").replace(".backward", "");
            let idle = judged
                .idle
                .as_ref()
                .map(|problem| (problem, judged.redundant));
            let known = all.entry(both).or_insert(idle);
            *known = known.and(idle);
        }
        let mut everywhere = Self::default();
        for (problem, redundant) in all.into_values().flatten() {
            match redundant {
                true => everywhere
                    .redundant
                    .push(format!("`{}`: {}", problem.key, problem.message)),
                false => everywhere.mistakes.push(problem.clone()),
            }
        }
        everywhere
    }
}

struct Judge<'a, 'c> {
    c: &'a Checker<'c>,
    kinds: &'a Standard,
    all: Vec<Judged>,
}

impl Judge<'_, '_> {
    /// A key is set to `found`, which has no effect if it `is_idle`, and why.
    fn key(&mut self, path: &str, found: impl std::fmt::Display, is_idle: bool, why: &str) {
        let message = || format!("found {found}; it has no effect {why}; leave it out");
        self.all.push(Judged {
            path: path.to_owned(),
            idle: is_idle.then(|| self.c.located(path, message())),
            redundant: false,
        });
    }

    /// A key is set to `found`, and what it says holds without it if it `is_redundant`, and why.
    fn statement(
        &mut self,
        path: &str,
        found: impl std::fmt::Display,
        is_redundant: bool,
        why: &str,
    ) {
        let message = || format!("found {found}; it holds without that {why}");
        self.all.push(Judged {
            path: path.to_owned(),
            idle: is_redundant.then(|| self.c.located(path, message())),
            redundant: true,
        });
    }

    /// As [`Self::key`], of a parameter of a kind.
    fn parameter<F: Family>(
        &mut self,
        of: &Chosen<F>,
        path: &str,
        name: &str,
        is_idle: bool,
        why: &str,
    ) {
        if let Some(found) = of.parameters.get(name) {
            self.key(&format!("{path}.{name}"), found, is_idle, why);
        }
    }

    fn link(&mut self, link: &Link, path: &str) {
        for (side, forward) in [("forward", true), ("backward", false)] {
            let at = |key: &str, both: bool| match both {
                true => format!("{path}.{key}"),
                false => format!("{path}.{key}.{side}"),
            };
            if let Some(loss) = link.loss.side(forward)
                && loss.place() == Place::AfterQueue
            {
                let path = at("loss", link.loss.forward == link.loss.backward);
                let (none, why) = (loss.kind == "none", "with `model = \"none\"`");
                self.parameter(loss, &path, "place", none, why);
            }
            if let Some(delay) = link.delay.side(forward) {
                self.delay(
                    delay,
                    &at("delay", link.delay.forward == link.delay.backward),
                );
            }
            if let Some(queue) = link.queue.side(forward) {
                let path = at("queue", link.queue.forward == link.queue.backward);
                self.queue(queue, &path);
            }
            if let Some(impairment) = link.impairment.side(forward)
                && let Some(delay) = impairment.reorder_delay
            {
                let both = link.impairment.forward == link.impairment.backward;
                let path = format!("{}.reorder_delay", at("impairment", both));
                let none = impairment.reorder.0 == 0.0;
                self.key(&path, delay, none, "without `reorder`, the probability");
            }
            if let Some(rate) = link.rate.side(forward)
                && let Some(repeat) = rate.repeat()
            {
                let path = at("rate", link.rate.forward == link.rate.backward);
                let one = rate.steps().len() == 1;
                self.statement(
                    &format!("{path}.repeat"),
                    Span(repeat),
                    one,
                    "with one step, which lasts",
                );
            }
        }
    }

    fn queue(&mut self, queue: &Queue, path: &str) {
        let given = queue.values(&self.kinds.queues);
        let of = |name: &str| value(&given, name);
        if queue.kind == "red" && of("gentle") == Some(&Datum::Flag(false)) {
            let full = of("probability").and_then(Datum::number) == Some(1.0);
            let why = "with `probability = 1`, above which nothing rises";
            self.statement(&format!("{path}.gentle"), false, full, why);
        }
        if queue.kind == "fq-codel" {
            let one = of("flows").and_then(Datum::whole) == Some(1);
            let why = "with `flows = 1`: there is one queue, which always has its turn";
            self.parameter(queue, path, "quantum", one, why);
        }
    }

    fn delay(&mut self, delay: &Propagation, path: &str) {
        let given = delay.values(&self.kinds.propagations);
        let of = |name: &str| value(&given, name);
        let is_steady = of("delay").and_then(Datum::whole).is_some();
        let jitter = of("jitter").and_then(Datum::whole);
        if delay.overtaking() {
            let same = match &*delay.kind {
                "deterministic" => is_steady,
                "jitter" => is_steady && jitter == Some(0),
                "listed-jitter" => {
                    let listed = of("delays").map_or(&[][..], Datum::items);
                    is_steady && listed.iter().all(|it| *it == listed[0])
                }
                _ => false,
            };
            let why = "where the delay is the same for all packets";
            self.parameter(delay, path, "overtaking", same, why);
        }
        if delay.kind == "jitter"
            && of("distribution").is_some_and(|it| it.text() != Some("uniform"))
        {
            let why = "with a `jitter` of 0";
            self.parameter(delay, path, "distribution", jitter == Some(0), why);
        }
        let none = of("gateways").is_none_or(|it| it.items().is_empty());
        for name in ["fibre_speed", "fibre_detour"] {
            if delay.kind == "satellites" {
                let why = "without `gateways`, where fibre begins";
                self.parameter(delay, path, name, none, why);
            }
        }
    }

    fn workload(&mut self, flow: &Flow, path: &str) {
        let workload = &flow.workload;
        let given = workload.values(&self.kinds.workloads);
        let of = |name: &str| value(&given, name);
        let Some(kind) = self.kinds.transports.kind(&flow.transport) else {
            return;
        };
        let asks = workload.kind == "request-response";
        if asks && of("exponential") == Some(&Datum::Flag(true)) {
            let thinks = of("think").and_then(Datum::whole).is_some_and(|it| it > 0);
            let why = "without `think`, the time that it is about";
            self.parameter(workload, path, "exponential", !thinks, why);
        }
        if asks || workload.kind == "transfers" {
            let why = format!("over {}, which carries bytes and no messages", kind.title());
            self.parameter(workload, path, "message", !kind.messages, &why);
        }
        let several = of("large_streams").and_then(Datum::whole) > Some(1);
        if workload.kind == "mixed" && several {
            let why = "over TCP, which has one stream";
            self.parameter(workload, path, "large_streams", kind.name == "tcp", why);
        }
    }
}

fn value<'a>(given: &'a [(String, Datum)], name: &str) -> Option<&'a Datum> {
    let found = given.iter().find(|(known, _)| known == name);
    found.map(|(_, datum)| datum)
}
