//! Published values of the embedded papers: each line of a `published.csv` must be compared with a
//! result, or give the reason for omitting the comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_lab::papers::{PaperCatalog, carried};
use anabranch_report::reference::Published;
use anabranch_report::table::Table;
use anabranch_report::verdict_counts::VerdictCounts;
use anabranch_scenario::records::{Manifest, Results};

/// Tables of a paper without any runs, which contain only published values.
fn tables(name: &str) -> (Vec<Table>, Vec<Published>) {
    let paper = carried(name).expect("a paper of the program");
    let plan = Plan::new(
        PlanRequest::new(format!("{name}.toml"), paper.text().expect("its spec"))
            .with(|it| it.seed = 1),
    );
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    let reference = paper.reference(&plan.spec).expect("its files").reference;
    let results = Results {
        manifest: Manifest {
            version: String::new(),
            commit: None,
            name: name.to_owned(),
            spec: String::new(),
            overrides: Vec::new(),
            only: Vec::new(),
            files: BTreeMap::new(),
            spec_hash: plan.hash.clone(),
            seed: 1,
            record_all: false,
            added: Vec::new(),
            live: Vec::new(),
            replications: Vec::new(),
            runs: 0,
            packet_hops: 0,
        },
        spec: plan.spec.clone(),
        records: Vec::new(),
        series: Arc::new(Vec::new()),
    };
    let table = |spec| Table::make(spec, &results, &reference).expect("a table");
    let tables = plan.spec.tables.iter().map(table).collect();
    (tables, reference.published)
}

#[test]
fn each_printed_line_is_compared_or_says_why_not() {
    let mut seen = 0;
    let papers = PaperCatalog::of([])
        .papers()
        .expect("the papers of the program");
    for name in papers.iter().map(|paper| &paper.name) {
        let (tables, published) = tables(name);
        let lines = tables.iter().flat_map(|table| &table.lines);
        let printed = lines.filter_map(|line| line.published.as_ref());
        let compared: BTreeSet<u64> = printed.map(|it| it.line).collect();
        for row in published {
            seen += 1;
            let (line, reason) = (row.line, &row.not_compared);
            assert_ne!(
                compared.contains(&line),
                !reason.is_empty(),
                "{name}/published.csv:{line}: one of the two: it stands in a table, or `not_compared` says why not ({reason:?})"
            );
        }
    }
    assert!(seen > 200, "{seen} lines");
}

/// Figs. 8 and 10 share two times, and so do Figs. 9 and 11. Tables II and III are each in two
/// tables.
#[test]
fn a_value_printed_once_is_counted_once() {
    let count = |name: &str| {
        let (tables, published) = tables(name);
        let first = published.iter().filter(|it| it.first == it.line);
        let compared = first.filter(|it| it.not_compared.is_empty()).count();
        (VerdictCounts::of(&tables).total(), compared)
    };
    // A line about a step has two published values, the window and its time. There are nine steps.
    let (counted, lines) = count("alamgir2002");
    assert_eq!(counted, lines + 9, "{lines} lines");
    assert_eq!(counted, 60);
    for paper in ["rafiq2007", "ho2008"] {
        let (counted, lines) = count(paper);
        assert_eq!(counted, lines, "{paper}");
    }
}
