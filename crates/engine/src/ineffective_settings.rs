//! Keys of links, cells and workloads that have no effect because of other values at the same point
//! of a plan. A key is reported only if it has no effect at any point, because experiments often
//! switch a feature off at some points. A redundant key causes a note. A key that cannot have its
//! intended effect is an error.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_scenario::checker::Checker;
use anabranch_scenario::constellation::{Ground, Pairs};
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::kind_choice::{KindChoice, KindFamily};
use anabranch_scenario::names::MemberSelection;
use anabranch_scenario::quantity::TimeSpan;
use anabranch_scenario::{Flow, Link, Spec};
use anabranch_settings::{Effect, Registry};
use anabranch_sim::loss::Traffic;
use anabranch_sim::wifi::PropagationLoss as Law;
use anabranch_sim::workload::{Context, TransportCapabilities};

use crate::kinds::Standard;
use crate::medium;

/// Result of the check of one key at one point.
#[derive(Clone, Debug)]
pub struct KeyJudgement {
    /// Path of the key.
    pub path: String,
    /// Problem to report, if the key has no effect at this point.
    pub idle: Option<Diagnostic>,
    /// Whether the key is redundant, because its value would also apply if the key was omitted.
    pub redundant: bool,
}

/// Checks the keys of one point for an effect.
pub fn judge(c: &Checker<'_>, spec: &Spec, kinds: &Standard) -> Vec<KeyJudgement> {
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
    for (index, ground) in spec.grounds.iter().enumerate() {
        judge.populations(spec, ground, &format!("ground.{index}.stations"));
    }
    judge.all
}

/// Keys that have had no effect so far, at any point that sets them. A key for both directions of a
/// link has an effect if it has one in either direction.
#[derive(Clone, Debug, Default)]
pub struct IneffectiveKeys(BTreeMap<String, Option<Last>>);

/// Last point that sets a key: its position, the problem, and whether the key is redundant.
type Last = ((usize, usize), Diagnostic, bool);

impl IneffectiveKeys {
    /// Adds the results of a point; `order` is its position in the plan.
    pub fn add(&mut self, order: (usize, usize), judged: &[KeyJudgement]) {
        for judged in judged {
            let both = judged.path.replace(".forward", "").replace(".backward", "");
            let idle = judged.idle.as_ref();
            let idle = || idle.map(|problem| (order, problem.clone(), judged.redundant));
            match self.0.entry(both) {
                Entry::Vacant(entry) => {
                    entry.insert(idle());
                }
                Entry::Occupied(mut entry) => match (entry.get(), &judged.idle) {
                    (Some(_), None) => {
                        entry.insert(None);
                    }
                    (Some((last, ..)), Some(_)) if *last <= order => {
                        entry.insert(idle());
                    }
                    _ => {}
                },
            }
        }
    }

    /// Errors about keys that cannot have their intended effect.
    pub fn mistakes(&self) -> Vec<Diagnostic> {
        let all = self.0.values().flatten();
        let mistakes = all.filter(|(_, _, redundant)| !redundant);
        mistakes.map(|(_, problem, _)| problem.clone()).collect()
    }

    /// Notes about redundant keys, whose values would also apply if the keys were omitted.
    pub fn redundant(&self) -> Vec<String> {
        let all = self.0.values().flatten();
        let redundant = all.filter(|(_, _, redundant)| *redundant);
        let note = |problem: &Diagnostic| format!("`{}`: {}", problem.key, problem.message);
        redundant.map(|(_, problem, _)| note(problem)).collect()
    }
}

struct Judge<'a, 'c> {
    c: &'a Checker<'c>,
    kinds: &'a Standard,
    all: Vec<KeyJudgement>,
}

impl Judge<'_, '_> {
    /// Checks the first population of the stations at `path`. Populations have an effect only on
    /// pairs that are drawn by population. Stations from a file are skipped, because a file may
    /// serve several specs; they are recognised by their source position, which is that of the file
    /// name.
    fn populations(&mut self, spec: &Spec, ground: &Ground, path: &str) {
        let mut stations = ground.stations.iter().enumerate();
        let first = stations.find_map(|(index, it)| Some((index, it.population?)));
        let Some((index, population)) = first else {
            return;
        };
        let place = |path: &str| self.c.located(path, "").place;
        let station = format!("{path}.{index}");
        if place(&station) == place(path) {
            return;
        }
        let weighs = |flow: &Flow| {
            let random = matches!(flow.pairs, Some(Pairs::Random(it)) if it.weights.is_some());
            let mut ends = [&flow.from, &flow.to].into_iter();
            random && ends.any(|end| MemberSelection::parse(end).group == ground.name)
        };
        self.key(
            &format!("{station}.population"),
            population,
            !spec.flows.iter().any(weighs),
            "without a flow with `weights = \"population\"`",
        );
    }

    /// Checks a key with the value `found`. If `is_idle`, the key has no effect, for the reason
    /// `why`.
    fn key(&mut self, path: &str, found: impl std::fmt::Display, is_idle: bool, why: &str) {
        let message = || format!("found {found}; it has no effect {why}; leave it out");
        self.all.push(KeyJudgement {
            path: path.to_owned(),
            idle: is_idle.then(|| self.c.located(path, message())),
            redundant: false,
        });
    }

    /// Checks a key with the value `found`. If `is_redundant`, the value would also apply without
    /// the key, for the reason `why`.
    fn statement(
        &mut self,
        path: &str,
        found: impl std::fmt::Display,
        is_redundant: bool,
        why: &str,
    ) {
        let message = || format!("found {found}; it holds without that {why}");
        self.all.push(KeyJudgement {
            path: path.to_owned(),
            idle: is_redundant.then(|| self.c.located(path, message())),
            redundant: true,
        });
    }

    /// Checks the keys of a kind by the rules that the kind declares. A shared key without a rule
    /// always has an effect.
    fn kind<F: KindFamily, T: 'static, C: Default + 'static>(
        &mut self,
        chosen: &KindChoice<F>,
        path: &str,
        kinds: &Registry<T, C>,
        context: &C,
    ) {
        // An invalid kind is skipped, because other checks report it.
        let prepared = kinds.prepare(&chosen.kind, chosen.values(kinds));
        let effects = prepared.and_then(|prepared| prepared.effects(context));
        let mut effects = effects.unwrap_or_default();
        for shared in F::SHARED {
            if !chosen.differs(shared.name) {
                effects.retain(|effect| effect.key != shared.name);
            } else if effects.iter().all(|effect| effect.key != shared.name) {
                effects.push(Effect {
                    key: shared.name,
                    idle: None,
                    redundant: false,
                });
            }
        }
        for effect in effects {
            let Some(found) = chosen.parameters.get(effect.key) else {
                continue;
            };
            let path = format!("{path}.{}", effect.key);
            let why = effect.idle.as_deref().unwrap_or_default();
            match effect.redundant {
                true => self.statement(&path, found, effect.idle.is_some(), why),
                false => self.key(&path, found, effect.idle.is_some(), why),
            }
        }
    }

    fn link(&mut self, link: &Link, path: &str) {
        let kinds = self.kinds;
        for (side, forward) in [("forward", true), ("backward", false)] {
            let at = |key: &str, both: bool| match both {
                true => format!("{path}.{key}"),
                false => format!("{path}.{key}.{side}"),
            };
            if let Some(loss) = link.loss.side(forward) {
                let path = at("loss", link.loss.forward == link.loss.backward);
                self.kind(loss, &path, &kinds.losses, &Traffic::default());
            }
            if let Some(delay) = link.delay.side(forward) {
                let path = at("delay", link.delay.forward == link.delay.backward);
                self.kind(delay, &path, &kinds.propagations, &());
            }
            if let Some(queue) = link.queue.side(forward) {
                let path = at("queue", link.queue.forward == link.queue.backward);
                self.kind(queue, &path, &kinds.queues, &());
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
                    TimeSpan(repeat),
                    one,
                    "with one step, which lasts",
                );
            }
        }
    }

    #[expect(
        clippy::field_reassign_with_default,
        reason = "`Context` is non-exhaustive"
    )]
    fn workload(&mut self, flow: &Flow, path: &str) {
        let Some(transport) = self.kinds.transports.kind(&flow.transport) else {
            return;
        };
        let mut context = Context::default();
        context.carrier = TransportCapabilities {
            title: transport.title(),
            messages: transport.messages,
            one_stream: transport.one_stream,
        };
        self.kind(&flow.workload, path, &self.kinds.workloads, &context);
    }
}
