//! Negative controls: worlds that must not pass for that of a paper. Each is wrong in one thing. The judgement may use all that the
//! paper prints or concludes; where that cannot tell a control from the right world, `docs/VERDICTS.md` says so, and so do these
//! tests: they fail when a world is told apart that was not, or the other way round.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::plan::{Plan, Request};
use anabranch_lab::papers::carried;
use anabranch_lab::run::{Quiet, Simulator, run};
use anabranch_lab::store::Store;
use anabranch_report::Outputs;
use anabranch_report::claim::Claimed;
use anabranch_report::compare::Verdict;
use anabranch_report::table::Table;

mod alamgir2002;
mod atiquzzaman2002;
mod ho2008;
mod rafiq2007;
mod tsunoda2007;

/// Runs some of a paper in a world that is set as told.
fn judged(
    paper: &str,
    only: &[&str],
    set: impl IntoIterator<Item = &'static str>,
    replications: Option<u32>,
) -> (Vec<Table>, Vec<Claimed>) {
    let name = paper;
    let paper = carried(name).expect("a paper of the program");
    // What a control sets comes last, and is set once.
    let mut overrides: Vec<String> = Vec::new();
    for setting in set {
        let key = setting.split_once('=').map(|(key, _)| format!("{key}="));
        overrides.retain(|before| key.as_ref().is_none_or(|key| !before.starts_with(key)));
        overrides.push(setting.to_owned());
    }
    let request =
        Request::new(format!("{name}.toml"), paper.text().expect("its spec")).with(|it| {
            it.overrides = overrides;
            it.only = only.iter().map(|&one| one.to_owned()).collect();
            it.replications = replications;
            it.seed = 1;
        });
    let plan = Plan::new(request).unwrap_or_else(|error| panic!("{error}"));
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::create(directory.path()).expect("a store");
    let results = run(&plan, &store, &Simulator::default(), 2, &Quiet).expect("runs");
    let reference = paper.reference(&plan.spec).expect("its files").reference;
    let outputs = Outputs::make(&results, &reference).expect("outputs");
    (outputs.tables, outputs.claims)
}

/// What a paper's worlds are told apart by.
struct Evidence {
    paper: &'static str,
    /// Its tables and claims.
    only: &'static [&'static str],
    /// Fewer points than the paper has, so that the test does not last.
    set: &'static [&'static str],
    replications: u32,
}

/// A wrong world: its name, what makes it, and what tells it from the right one.
type Control = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// The word for printed values among what tells a world apart.
const VALUES: &str = "values";

/// How many values more must differ: one of twenty does by chance.
const MORE: usize = 3;

/// What the runs of a world say.
#[derive(Debug)]
struct Said {
    /// Printed values that differ from ours or that nothing of ours stands against.
    differ: BTreeSet<String>,
    claims: BTreeMap<String, Verdict>,
}

impl Evidence {
    fn said(&self, set: &[&'static str]) -> Said {
        let all = self.set.iter().chain(set).copied();
        let (tables, claims) = judged(self.paper, self.only, all, Some(self.replications));
        let mut differ = BTreeSet::new();
        for table in &tables {
            for line in &table.lines {
                let verdict = line.judgement.as_ref().map(|it| it.verdict);
                if matches!(verdict, Some(Verdict::Differs | Verdict::NotAttempted)) {
                    differ.insert(format!(
                        "{} {} {} at {}",
                        table.id, line.series, line.metric, line.x
                    ));
                }
            }
        }
        let claims = claims.into_iter().map(|it| (it.id, it.verdict)).collect();
        Said { differ, claims }
    }

    /// Fails for each control that is not told from the right world as it should be.
    fn hold(&self, controls: &[Control]) {
        let right = self.said(&[]);
        println!("right: {right:#?}");
        let mut surprises = Vec::new();
        for (name, set, expected) in controls {
            let wrong = self.said(set);
            let told = wrong.told_from(&right);
            let new: Vec<&String> = wrong.differ.difference(&right.differ).collect();
            let old: Vec<&String> = right.differ.difference(&wrong.differ).collect();
            println!(
                "{name}: {told:?}; differ now: {new:?}; no more: {old:?}; {:?}",
                wrong.claims
            );
            if told != *expected {
                surprises.push(format!("{name}: {told:?} and not {expected:?}"));
            }
        }
        assert!(surprises.is_empty(), "{surprises:#?}");
    }
}

impl Said {
    /// What speaks against a world: the values together, and each claim that holds in the right one and not here.
    fn told_from(&self, right: &Said) -> Vec<String> {
        let values = self.differ.len() >= right.differ.len() + MORE;
        let held = |(id, verdict): &(&String, &Verdict)| {
            **verdict == Verdict::Reproduced && self.claims.get(*id) != Some(*verdict)
        };
        let claims = right.claims.iter().filter(held).map(|(id, _)| id.clone());
        values
            .then(|| VALUES.to_owned())
            .into_iter()
            .chain(claims)
            .collect()
    }
}
