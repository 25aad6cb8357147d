//! Negative controls: simulated worlds that differ from the world of a paper in one property, and
//! that must not be accepted. The verdict may use all values and claims of the paper. Controls that
//! the values and claims cannot distinguish from the right world are listed in `docs/VERDICTS.md`
//! and in these tests. A test fails if a control is distinguished unexpectedly, or is no longer
//! distinguished.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_lab::papers::carried;
use anabranch_lab::run::{Quiet, Simulator, run};
use anabranch_lab::store::Store;
use anabranch_report::Outputs;
use anabranch_report::claim::EvaluatedClaim;
use anabranch_report::compare::Verdict;
use anabranch_report::table::Table;

mod alamgir2002;
mod atiquzzaman2002;
mod ho2008;
mod rafiq2007;
mod tsunoda2007;

/// Runs part of a paper in a world with changed settings.
fn judged(
    paper: &str,
    only: &[&str],
    set: impl IntoIterator<Item = &'static str>,
    replications: Option<u32>,
) -> (Vec<Table>, Vec<EvaluatedClaim>) {
    let name = paper;
    let paper = carried(name).expect("a paper of the program");
    // The settings of a control come last. Earlier settings of the same key are removed, because
    // each key must be set only once.
    let mut overrides: Vec<String> = Vec::new();
    for setting in set {
        let key = setting.split_once('=').map(|(key, _)| format!("{key}="));
        overrides.retain(|before| key.as_ref().is_none_or(|key| !before.starts_with(key)));
        overrides.push(setting.to_owned());
    }
    let request =
        PlanRequest::new(format!("{name}.toml"), paper.text().expect("its spec")).with(|it| {
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

/// Evidence that distinguishes the worlds of a paper.
struct Evidence {
    paper: &'static str,
    /// Identifiers of tables and claims.
    only: &'static [&'static str],
    /// Settings that reduce the number of points, so that the test is short.
    set: &'static [&'static str],
    replications: u32,
}

/// A negative control: its name, its settings, and the evidence that distinguishes it from the
/// right world.
type Control = (
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

/// Name of the evidence from printed values.
const VALUES: &str = "values";

/// Minimum number of additional values that must differ, because one of twenty differs by chance.
const MORE: usize = 3;

/// Verdicts on the results of a world.
#[derive(Debug)]
struct Said {
    /// Printed values that differ from the results, or have no counterpart.
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

    /// Fails if a control is distinguished from the right world in another way than expected.
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
    /// Evidence against a world: the printed values together, and each claim that holds only in the
    /// right world.
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
