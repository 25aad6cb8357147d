//! Tables, figures, report and terminal output for fabricated results and the reference file of
//! alamgir2002.

#[path = "../../examples/gallery/fake.rs"]
mod fake;
mod figures;
mod page;

use std::sync::Arc;

use anabranch_report::compare::Verdict;
use anabranch_report::figure::Figure;
use anabranch_report::table::Table;
use anabranch_report::terminal::{self, Terminal};
use anabranch_report::{Outputs, VerdictCounts};
use anabranch_scenario::records::Results;

fn results(replications: u32) -> Results {
    fake::results(fake::spec(fake::PAPER), replications)
}

fn table(results: &Results, id: &str) -> Table {
    let spec = results
        .spec
        .tables
        .iter()
        .find(|table| table.id == id)
        .expect("the data file has this table");
    Table::make(spec, results, &fake::reference()).expect("series are in memory")
}

fn figure(results: &Results, id: &str) -> Figure {
    let spec = results
        .spec
        .figures
        .iter()
        .find(|figure| figure.id == id)
        .expect("the data file has this figure");
    Figure::make(spec, results, &fake::reference()).expect("series are in memory")
}

fn csv(table: &Table) -> String {
    let mut bytes = Vec::new();
    table.write_csv(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn tables_as_csv() {
    let results = results(20);
    for id in [
        "table-2",
        "table-2-profiles",
        "segments",
        "mean-cwnd",
        "fig-8",
        "fig-9",
        "fig-10",
        "fig-11",
    ] {
        insta::assert_snapshot!(format!("csv_{id}"), csv(&table(&results, id)));
    }
    let mut bytes = Vec::new();
    table(&results, "table-2-as-ns2")
        .write_baseline_csv("ns2", &mut bytes)
        .unwrap();
    insta::assert_snapshot!("csv_table-2-ns2", String::from_utf8(bytes).unwrap());
}

#[test]
fn every_printed_value_of_the_paper_has_a_line() {
    let results = results(20);
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    for table in &outputs.tables {
        let Some(place) = &table.place else { continue };
        for printed in fake::reference().published(place) {
            let of = |line: &&anabranch_report::table::TableLine| {
                line.published.as_ref() == Some(printed)
            };
            assert_eq!(
                table.lines.iter().filter(of).count(),
                1,
                "{}: {printed:?}",
                table.id
            );
        }
    }
    let places = [
        "Table II",
        "Table III",
        "Section V-A",
        "Section V-B",
        "Fig. 8",
        "Fig. 9",
        "Fig. 10",
        "Fig. 11",
    ];
    for place in places {
        assert!(
            outputs
                .tables
                .iter()
                .any(|table| table.place.as_deref() == Some(place)),
            "{place}"
        );
    }
}

#[test]
fn without_runs_every_printed_value_is_not_attempted() {
    let mut results = results(20);
    results.records.clear();
    results.series = Arc::new(Vec::new());
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    let verdict_counts = VerdictCounts::of(&outputs.tables);
    assert_eq!(
        verdict_counts.count(Verdict::NotAttempted),
        verdict_counts.total()
    );
    assert_eq!(
        csv(&outputs.tables[0]).lines().nth(1).unwrap(),
        "sctp over tcp,sources,2,throughput_increase,,,,%,23.9,not attempted,,,"
    );
    // 24 values of Tables II and III, each in two tables; 4 of Section V; 20 of Figs. 8 and 9; and
    // 12 of Figs. 10 and 11, four of whose times are also in Figs. 8 and 9.
    assert_eq!(verdict_counts.total(), 60);
    assert!(
        outputs
            .figures
            .iter()
            .all(|figure| figure.content.is_none())
    );
}

#[test]
fn few_replications_give_means_and_no_verdict() {
    let results = results(3);
    let table = table(&results, "table-2");
    assert!(table.lines.iter().all(|line| {
        line.measured
            .is_some_and(|measured| measured.replications == 3)
    }));
    let verdicts = table
        .lines
        .iter()
        .filter_map(|line| line.judgement.as_ref())
        .map(|judgement| judgement.verdict);
    assert!(
        verdicts
            .clone()
            .all(|verdict| verdict == Verdict::NotAttempted)
            && verdicts.count() == 12
    );
}

#[test]
fn every_figure_is_drawn_and_always_alike() {
    let results = results(20);
    let mut shapes = String::new();
    for spec in &results.spec.figures {
        let made = figure(&results, &spec.id);
        let svg = made
            .svg()
            .unwrap()
            .unwrap_or_else(|| panic!("{} is empty", spec.id));
        assert_eq!(
            Some(&svg),
            figure(&results, &spec.id).svg().unwrap().as_ref(),
            "{}",
            spec.id
        );
        // A page of 400 pixels leaves 366 pixels for a figure, which is drawn at twice its
        // displayed size. The displayed font size is 11 pixels.
        let number = |text: &str| text.split('"').next().and_then(|it| it.parse::<f64>().ok());
        let width = svg.split_once('"').and_then(|(_, it)| number(it));
        let width = width.expect("a drawing begins with its width");
        for size in svg.split("font-size=\"").skip(1).filter_map(number) {
            assert!(size / 2.0 * 366.0 / width >= 11.0, "{}: {size}", spec.id);
        }
        assert!(
            svg.contains(&format!("aria-label=\"{}\"", made.headline())),
            "{}",
            spec.id
        );
        assert!(
            !svg.contains("NaN") && !svg.contains("2147483647"),
            "{}",
            spec.id
        );
        // Compares the texts in order, and the number of each element, instead of the position of
        // each pixel.
        let texts: Vec<&str> = svg
            .split("<text")
            .skip(1)
            .filter_map(|t| t.split('>').nth(1)?.split('<').next())
            .collect();
        let counts: Vec<String> = ["<circle", "<line", "<polyline", "<polygon", "<rect"]
            .iter()
            .map(|element| format!("{} {}", svg.matches(element).count(), &element[1..]))
            .collect();
        let texts: Vec<&str> = texts.iter().map(|text| text.trim()).collect();
        shapes.push_str(&format!(
            "{}: {}\n  {}\n",
            spec.id,
            counts.join(", "),
            texts.join(" | ")
        ));
    }
    insta::assert_snapshot!("figures", shapes);
}

#[test]
fn the_terminal_shows_tables_and_figures_within_its_width() {
    let results = results(20);
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    let shown = |width, colours| {
        let mut bytes = Vec::new();
        terminal::show(&outputs, Terminal { width, colours }, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    insta::assert_snapshot!("terminal_100", shown(100, false));
    let narrow = shown(60, false);
    let plot_rows = narrow
        .lines()
        .filter(|line| line.contains('┤') || line.contains('│') || line.contains('└'));
    assert!(
        plot_rows.clone().count() > 80
            && plot_rows.into_iter().all(|line| line.chars().count() <= 60)
    );
    let coloured = shown(100, true);
    assert!(coloured.contains("\x1b[32mreproduced\x1b[0m"));
    assert!(!shown(100, false).contains('\x1b'));
}

/// The errors of a spec that contains `extra`.
fn problems(extra: &str) -> String {
    use anabranch_engine::plan::{Plan, PlanRequest};
    let text = format!("{}\n{extra}", fake::PAPER);
    Plan::new(PlanRequest::new("mine.toml", text))
        .unwrap_err()
        .to_string()
}

#[test]
fn outputs_of_what_is_not_there_are_refused() {
    let wrong = [
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nexperiment = \"tabel-2\"\nrow = [{ metric = \"jain_fairness\" }]",
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nrow = [{ metric = \"jain_fairnes\" }]",
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nrow = [{ series = \"tcp over sctp\", metric = \"throughput_increase\" }]",
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nkind = \"difference\"\nrow = [{ metric = \"jain_fairness\" }]",
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nkind = \"steps\"\nexperiment = \"loss-8\"\nrow = [{ flow = \"tpc\" }]",
        "[[table]]\nid = \"a\"\ntitle = \"A\"\nkind = \"events\"\nexperiment = \"loss-8\"\nrow = [{ flow = \"tcp\", probe = \"snet\", segment = 0 }]",
        "[[figure]]\nid = \"a\"\ntitle = \"A\"\ncurve = [{ label = \"x\", flow = \"tcp\", probe = \"cwnd\" }]",
        "[[figure]]\nid = \"a\"\ntitle = \"A\"\nexperiment = \"two-sources\"\ncurve = [{ label = \"x\", flow = \"tcp\", probe = \"cwnd\", unit = \"segmets\" }]",
        "[[figure]]\nid = \"a\"\ntitle = \"A\"\nkind = \"sweep\"",
        "[[figure]]\nid = \"a\"\ntitle = \"A\"\nkind = \"lader\"",
    ];
    let told: Vec<String> = wrong
        .iter()
        .map(|extra| format!("{extra}\n---\n{}", problems(extra).trim_end()))
        .collect();
    insta::assert_snapshot!("refused", told.join("\n\n"));
}
