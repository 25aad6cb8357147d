//! Tests of documents: all specs of the project should be planned and survive a round trip
//! unchanged, and a spec built by a program should be checked like a file.

use std::path::{Path, PathBuf};

use anabranch_engine::plan::{Plan, PlanRequest};
use anabranch_scenario::Spec;
use anabranch_scenario::decode::decode;
use anabranch_scenario::document::{Document, SpecTable};
use anabranch_scenario::quantity::{Rate, TimeSpan};

/// All specs of the project: file name and text.
fn specs() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["papers", "examples", "docs/ns2"] {
        collect(&root.join(folder), &mut files);
    }
    files.sort();
    assert!(files.len() > 8, "{files:?}");
    let read = |file: &PathBuf| std::fs::read_to_string(file).expect("a file that can be read");
    let specs = files
        .iter()
        .map(|file| (file.display().to_string(), read(file)));
    // Specs without flows are excluded, because they are networks for emulation.
    specs
        .filter(|(_, text)| text.contains("[[flow]]"))
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            files.push(path);
        }
    }
}

fn request(file: &str, text: &str) -> PlanRequest {
    PlanRequest::new(file, text)
}

#[test]
fn every_spec_is_planned() {
    for (file, text) in specs() {
        Plan::new(request(&file, &text)).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// The round trip `Document -> TOML -> Document`, with parameters, expressions and sweeps, should
/// not change the plan.
#[test]
fn every_document_written_back_is_the_same() {
    for (file, text) in specs() {
        let document = Document::parse(&text).expect("TOML");
        let written = document.to_toml();
        let read = Document::parse(&written).unwrap_or_else(|error| panic!("{error:?}\n{written}"));
        assert_eq!(read, document, "{file}:\n{written}");
        let plan = Plan::new(request(&file, &text)).unwrap_or_else(|error| panic!("{error}"));
        let again = Plan::of(&read, request(&file, "")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again.hash, plan.hash, "{file}");
    }
}

/// The round trip `Spec -> TOML -> Spec` should change nothing, at the first and the last point of
/// each experiment.
#[test]
fn every_spec_written_back_is_the_same() {
    for (file, text) in specs() {
        let plan = Plan::new(request(&file, &text)).unwrap_or_else(|error| panic!("{error}"));
        let specs = plan.experiments.iter().flat_map(|experiment| {
            let points = experiment.points.iter();
            points.map(|point| experiment.resolve(point).expect("a point").spec.clone())
        });
        for spec in specs.chain([plan.spec.clone().into()]) {
            let written = Document::of(&spec).expect("a document").to_toml();
            let document = Document::parse(&written);
            let document = document.unwrap_or_else(|error| panic!("{error:?}\n{written}"));
            let read: Result<Spec, _> = decode(document.root(), "");
            let read = read.unwrap_or_else(|error| panic!("{file}: {error:?}\n{written}"));
            assert_eq!(read, *spec, "{file}:\n{written}");
        }
    }
}

/// A spec with an experiment, a sweep and parameters, built by a program.
fn built() -> Document {
    let parameters = SpecTable::new()
        .with("rate", Rate(2_000_000))
        .with("rtt", TimeSpan(100_000_000));
    let link = SpecTable::new()
        .with("name", "wire")
        .with("between", ["a", "b"])
        .with("rate", "$rate")
        .with("delay", "$rtt / 2")
        .with("queue", "$rate * $rtt");
    let flow = SpecTable::new()
        .with("name", "one")
        .with("from", "a")
        .with("to", "b")
        .with("workload", SpecTable::new().with("kind", "bulk"))
        .with("transport", SpecTable::new().with("protocol", "sctp"));
    let sweep = SpecTable::new()
        .with("parameter", "rate")
        .with("values", [Rate(1_000_000), Rate(4_000_000)]);
    Document::new("built")
        .head("What a program wrote.")
        .with("title", "Two \"rates\"\nof a \\ link")
        .table("parameters", parameters)
        .table("world", SpecTable::new().with("duration", "20 * $rtt"))
        .push("node", SpecTable::new().with("name", "a"))
        .push("node", SpecTable::new().with("name", "b"))
        .push("link", link)
        .push("flow", flow)
        .comment("experiment", "The link gets faster.")
        .push(
            "experiment",
            SpecTable::new().with("id", "rates").with("sweep", [sweep]),
        )
}

#[test]
fn a_program_writes_a_spec() {
    let plan = Plan::of(&built(), PlanRequest::default()).unwrap_or_else(|error| panic!("{error}"));
    let second = |plan: &Plan| {
        let experiment = &plan.experiments[0];
        let point = experiment.resolve(&experiment.points[1]);
        point.unwrap_or_else(|error| panic!("{error}"))
    };
    let point = second(&plan);
    let link = &point.spec.links[0];
    let rate = link.rate.side(true).and_then(|rate| rate.as_constant());
    assert_eq!(rate, Some(4_000_000));
    let delay = link
        .delay
        .side(true)
        .map(|delay| &delay.parameters["delay"]);
    assert_eq!(delay, Some(&"50 ms".into()));
    let text = &plan.request.text;
    assert!(
        text.starts_with("# What a program wrote.\n\nanabranch = 1\n"),
        "{text}"
    );
    assert!(
        text.contains("# The link gets faster.\n[[experiment]]\n"),
        "{text}"
    );
    let read = Plan::new(request("built.toml", text)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.hash, plan.hash);
    assert_eq!(second(&read).spec, point.spec);
}

/// A mistake in a spec that a program builds should cause the same error as in a file, except for
/// the line number.
#[test]
fn specs_built_by_a_program_are_checked_like_files() {
    for (path, value) in [
        ("link.wire.delay", "5 parsecs"),
        ("link.wire.delay", "$rt / 2"),
        ("link.wire.delay", "$rtt + $rate"),
        ("flow.one.to", "c"),
        ("flow.one.transport.protocol", "stcp"),
        ("flow.one.colour", "red"),
        ("parameters.spare", "1 s"),
    ] {
        let wrong = built().with(path, value);
        let refused = |plan: Result<Plan, _>| plan.map(drop).expect_err(path);
        let of_program = refused(Plan::of(&wrong, PlanRequest::default()));
        let of_file = refused(Plan::new(request("built.toml", &wrong.to_toml())));
        let said = |error: &anabranch_scenario::diagnostic::SpecError| {
            let problems = error.problems().iter();
            problems
                .map(|it| {
                    (
                        it.key.clone(),
                        it.message.clone(),
                        it.allowed.clone(),
                        it.nearest.clone(),
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(said(&of_program), said(&of_file), "{path}");
        assert!(!of_program.to_string().contains("-->"), "{of_program}");
    }
    let lost = built().with("link.wir.delay", "5 ms");
    let error = Plan::of(&lost, PlanRequest::default())
        .map(drop)
        .expect_err("no such link");
    assert!(
        error.to_string().contains("did you mean `wire`?"),
        "{error}"
    );
}

/// Every example on the manual's page about specs should be a valid spec.
#[test]
fn the_examples_of_the_manual_are_planned() {
    let page = include_str!("../../../docs/reference/spec.md");
    let blocks: Vec<&str> = page.split("```toml\n").skip(1).collect();
    assert!(blocks.len() >= 3);
    for block in blocks {
        let text = block.split("```").next().unwrap_or_default();
        Plan::new(request("docs/reference/spec.md", text))
            .unwrap_or_else(|error| panic!("{error}"));
    }
}
