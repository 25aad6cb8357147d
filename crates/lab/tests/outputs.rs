//! Tables, figures, report and terminal output for invented results and the reference file of
//! alamgir2002.

#[path = "../examples/gallery/fake.rs"]
mod fake;

use std::sync::Arc;

use anabranch_lab::outputs::write;
use anabranch_report::compare::Verdict;
use anabranch_report::figure::plot::{Axis, Mark, Plot};
use anabranch_report::figure::{Content, Figure};
use anabranch_report::table::Table;
use anabranch_report::terminal::{self, Terminal};
use anabranch_report::{Outputs, VerdictCounts};
use anabranch_scenario::records::{Measure, Results, SeriesQuery};
use anabranch_scenario::value::Value;

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
            let of =
                |line: &&anabranch_report::table::Line| line.published.as_ref() == Some(printed);
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
    // 24 values of Tables II and III, which are in two tables each, 4 of Section V, 20 of Figs. 8
    // and 9, 12 of Figs. 10 and 11: four of their times are also in Figs. 8 and 9.
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
        // A page of 400 pixels leaves 366 for a figure, which is drawn at twice its displayed size.
        // Its letters have 11 pixels.
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
        // Texts in order, and the number of each element: the visible contents and not the position
        // of each pixel.
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
fn the_ladder_marks_the_lost_segment_and_its_repair() {
    let results = results(20);
    for id in ["fig-10", "fig-11"] {
        let Some(Content::Ladder(ladder)) = figure(&results, id).content else {
            panic!("{id} is no ladder")
        };
        use anabranch_report::figure::ladder::Fate;
        let eighth: Vec<_> = ladder
            .segments
            .iter()
            .filter(|segment| segment.number == 8)
            .collect();
        assert_eq!(eighth.len(), 2, "{id}");
        assert_eq!(
            (eighth[0].fate, eighth[0].again),
            (Fate::Lost, false),
            "{id}"
        );
        assert!(
            matches!(eighth[1].fate, Fate::Arrived(_)) && eighth[1].again,
            "{id}"
        );
        let others = ladder.segments.iter().filter(|segment| segment.number != 8);
        assert!(
            others
                .into_iter()
                .all(|segment| matches!(segment.fate, Fate::Arrived(_))),
            "{id}"
        );
    }
}

/// Five runs with rates of 1, 2, 3, 4 and 9: the third is the median, and the first and the last
/// determine the band. The first is drawn separately as well.
#[test]
fn a_figure_over_time_shows_the_middle_of_all_recorded_runs() {
    let mut results = results(20);
    let query = SeriesQuery {
        experiment: "two-sources",
        probe: Some("throughput"),
        ..SeriesQuery::default()
    };
    let one = results.series(&query).expect("in memory").remove(0);
    let run = |(replication, factor): (u32, f64)| {
        let mut run = one.clone();
        run.replication = replication;
        run.samples.iter_mut().for_each(|it| it.value *= factor);
        run
    };
    let runs = [1.0, 2.0, 3.0, 4.0, 9.0];
    results.series = Arc::new((0..).zip(runs).map(run).collect::<Vec<_>>());
    let made = figure(&results, "fig-5");
    assert!(made.made.contains("the median of 5 runs"), "{}", made.made);
    let Some(Content::Plot(plot)) = made.content else {
        panic!("no plot")
    };
    let band = &plot.layers[0].points;
    let single = &plot.layers[1].points;
    assert_eq!((band.len(), plot.layers.len()), (one.samples.len(), 3));
    assert_eq!(single.len(), one.samples.len());
    for ((point, sample), single) in band.iter().zip(&one.samples).zip(single) {
        let mbit = sample.value / 1e6;
        assert_eq!(point.y, 3.0 * sample.value / 1e6);
        // The first run, which a figure of a single run would show.
        assert_eq!((single.x, single.y), (sample.time, mbit));
        let (low, high) = point.span.expect("a band");
        // The positions at one and nine tenths of the way from the first to the last of five: 0.4
        // past the first, 0.6 past the fourth.
        assert!((low - 1.4 * mbit).abs() < 1e-9 && (high - 7.0 * mbit).abs() < 1e-9);
    }
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

#[test]
fn a_directory_holds_every_file_whole() {
    let results = results(20);
    let directory = tempfile::tempdir().unwrap();
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    write(&outputs, directory.path()).unwrap();
    write(&outputs, directory.path()).expect("writing again replaces the files");
    let names = |folder: &str| {
        let entries = std::fs::read_dir(directory.path().join(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("figures").len(), results.spec.figures.len());
    assert!(names("tables").contains(&"table-2-as-ns2-ns2.csv".to_owned()));
    let whole = [
        "claims.csv",
        "figures",
        "report.html",
        "spec.toml",
        "tables",
        "tally.txt",
        "verdicts.csv",
    ];
    assert_eq!(names(""), whole);
    let report = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    for expected in [
        "Table II",
        "Fig. 11",
        "reproduced",
        "What had to be assumed",
        "<svg",
        "segment size",
        "</html>",
    ] {
        assert!(report.contains(expected), "{expected}");
    }
    assert!(
        !report.contains("<script") && !report.contains("http://localhost"),
        "the page stands alone"
    );
    for (open, close) in [
        ("<table", "</table>"),
        ("<section", "</section>"),
        ("<figure", "</figure>"),
        ("<tr", "</tr>"),
    ] {
        assert_eq!(
            report.matches(open).count(),
            report.matches(close).count(),
            "{open}"
        );
    }
}

#[test]
fn every_link_of_the_page_leads_somewhere() {
    let results = results(20);
    let mut outputs = Outputs::make(&results, &fake::reference()).unwrap();
    outputs.paper = Some("alamgir2002".to_owned());
    let files = outputs.files().unwrap();
    let (_, page) = files.last().expect("the page");
    let page = std::str::from_utf8(page).unwrap();
    let mut names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    // Files left there by the runs.
    names.push("manifest.json".to_owned());
    for experiment in &results.spec.experiments {
        let folders = ["measures", "series"];
        names.extend(folders.map(|folder| format!("{folder}/{}.parquet", experiment.id)));
    }
    let links: Vec<&str> = page
        .split("href=\"")
        .skip(1)
        .filter_map(|it| it.split('"').next())
        .collect();
    assert!(links.len() > 2 * results.spec.figures.len());
    for link in links {
        match link.strip_prefix('#') {
            Some(id) => {
                let places = page.matches(&format!("id=\"{id}\"")).count();
                assert_eq!(places, 1, "{link}");
            }
            None => assert!(names.iter().any(|name| name == link), "{link}"),
        }
    }
    let command = "anabranch reproduce alamgir2002 --seed";
    assert!(page.contains(command), "the command that repeats the run");
}

/// Names come from specs, records and CSV files of other users, and must not be able to insert
/// markup into a page.
#[test]
fn markup_in_names_stays_text() {
    const BAD: &str = "<script>alert('\"&')</script>";
    const GOOD: &str = "&lt;script&gt;alert(";
    let mut results = results(20);
    let name = |text: &mut String| *text = BAD.to_owned();
    let spec = &mut results.spec;
    spec.title = Some(BAD.to_owned());
    if let Some(paper) = &mut spec.paper {
        name(&mut paper.authors);
        name(&mut paper.venue);
        paper.about = Some(BAD.to_owned());
    }
    for it in &mut spec.assumptions {
        name(&mut it.about);
        name(&mut it.text);
    }
    for it in &mut spec.experiments {
        it.title = Some(BAD.to_owned());
    }
    for (index, table) in spec.tables.iter_mut().enumerate() {
        name(&mut table.title);
        table.id = format!("{index}{BAD}");
        table.note = Some(BAD.to_owned());
        table.published = table.published.as_ref().map(|_| BAD.to_owned());
        for row in &mut table.rows {
            row.label = Some(BAD.to_owned());
            row.metric = row.metric.as_ref().map(|_| BAD.to_owned());
        }
    }
    for figure in &mut spec.figures {
        name(&mut figure.title);
        figure.caption = Some(BAD.to_owned());
    }
    for record in &mut results.records {
        record.failures = vec![BAD.to_owned()];
        for measure in &mut record.metrics {
            name(&mut measure.metric);
            name(&mut measure.unit);
        }
    }
    name(&mut results.manifest.spec);
    name(&mut results.manifest.name);
    results.manifest.overrides = vec![BAD.to_owned()];
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    assert!(outputs.tables.iter().any(|table| !table.lines.is_empty()));
    let files = outputs.files().unwrap();
    let (_, page) = files
        .iter()
        .find(|(name, _)| name == "report.html")
        .unwrap();
    let page = String::from_utf8_lossy(page);
    assert!(!page.contains("<script"), "markup of a name is in the page");
    assert!(
        page.matches(GOOD).count() > 50,
        "{}",
        page.matches(GOOD).count()
    );
    // Attribute values are escaped as well.
    assert!(page.contains("id=\"table-0&lt;script&gt;alert('&quot;&amp;')&lt;/script&gt;\""));
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let results = results(5);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let outputs = Outputs::make(&results, &fake::reference()).unwrap();
    let error = write(&outputs, &file).unwrap_err().to_string();
    assert!(error.contains("file/tables"), "{error}");
}

/// Errors of a spec that contains `extra`.
fn problems(extra: &str) -> String {
    use anabranch_engine::plan::{Plan, Request};
    let text = format!("{}\n{extra}", fake::PAPER);
    Plan::new(Request::new("mine.toml", text))
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

/// Horizontal axis of a figure over these values of a link's delay, and the drawing style of its
/// curve.
fn swept(values: &[&str], keys: &str) -> (Axis, Vec<Mark>) {
    let plot = swept_as("sweep", values, keys);
    (plot.x, plot.layers.iter().map(|it| it.mark).collect())
}

/// A figure of a kind over these values of a link's delay, with one run at each, with rates of 1,
/// 2, ... Mbit/s.
fn swept_as(kind: &str, values: &[&str], keys: &str) -> Plot {
    let one = "curve = [{ label = \"f\", series = \"f\", metric = \"goodput\" }]";
    let curve = if keys.contains("curve") { "" } else { one };
    let text = format!(
        r#"
        anabranch = 1
        name = "delays"
        world = {{ duration = "10 s" }}
        node = [{{ name = "a" }}, {{ name = "b" }}]
        link = [{{ name = "wire", between = ["a", "b"], rate = "1 Mbit/s", delay = "1 ms" }}]
        flow = [{{ name = "f", from = "a", to = "b", workload = {{ kind = "bulk" }}, transport = {{ protocol = "sctp" }} }}]
        measure = [{{ metric = "goodput", flow = "f" }}]
        [[experiment]]
        id = "delays"
        sweep = [{{ name = "delay", parameter = "link.wire.delay", values = {values:?} }}]
        [[figure]]
        id = "delays"
        title = "Delays"
        kind = "{kind}"
        {keys}
        {curve}
        "#
    );
    let mut results = fake::results(fake::spec(&text), 1);
    let record = results.records[0].clone();
    let at = |(index, x): (usize, &&str)| {
        let mut record = record.clone();
        record.experiment = "delays".to_owned();
        record.point = vec![("delay".to_owned(), Value::Text((*x).to_owned()))];
        record.metrics = vec![Measure {
            series: "f".to_owned(),
            metric: "goodput".to_owned(),
            value: 1e6 * (index + 1) as f64,
            unit: "bit/s".to_owned(),
        }];
        record
    };
    results.records = values.iter().enumerate().map(at).collect();
    match figure(&results, "delays").content {
        Some(Content::Plot(plot)) => plot,
        other => panic!("{other:?}"),
    }
}

#[test]
fn bars_stand_side_by_side_and_begin_at_zero() {
    let two = "curve = [{ label = \"f\", series = \"f\", metric = \"goodput\" }, { label = \"g\", series = \"f\", metric = \"goodput\" }]";
    let plot = swept_as("bars", &["10 ms", "1 s"], two);
    assert!(plot.layers.iter().all(|it| it.mark == Mark::Bars));
    let places = |at: usize| -> Vec<f64> { plot.layers[at].points.iter().map(|it| it.x).collect() };
    assert_eq!((places(0), places(1)), (vec![-0.2, 0.8], vec![0.2, 1.2]));
    assert_eq!((plot.y.low, plot.y.cut), (0.0, false));
    assert!(plot.x.low < -0.6 + 0.1 && plot.x.high > 1.4);
}

#[test]
fn a_distribution_counts_each_run_once() {
    let plot = swept_as("cdf", &["10 ms", "50 ms", "100 ms", "1 s"], "");
    let shares: Vec<(f64, f64)> = plot.layers[0]
        .points
        .iter()
        .map(|it| (it.x, it.y))
        .collect();
    assert_eq!(
        shares,
        [(1.0, 0.0), (1.0, 0.25), (2.0, 0.5), (3.0, 0.75), (4.0, 1.0)]
    );
    assert_eq!(
        (plot.x.label.as_str(), plot.y.high),
        ("goodput (Mbit/s)", 1.0)
    );
}

#[test]
fn a_logarithmic_axis_goes_up_too() {
    let plot = swept_as("sweep", &["10 ms", "50 ms", "100 ms"], "y_scale = \"log\"");
    assert!(plot.y.log && plot.y.low > 0.0 && plot.y.high > 3.0);
}

#[test]
fn quantities_along_x_are_numbers_of_one_unit() {
    let (x, marks) = swept(&["1 s", "50 ms", "10 ms"], "");
    assert_eq!(x.label, "delay (ms)");
    let ticks = [(10.0, "10"), (50.0, "50"), (1000.0, "1000")];
    assert_eq!(x.ticks, ticks.map(|(at, text)| (at, text.to_owned())));
    assert_eq!((marks, x.log), (vec![Mark::Means], false));
    // A unit that is already part of the label is not repeated.
    let (x, _) = swept(
        &["10 ms", "1 s"],
        "x_label = \"one way (ms)\"\nx_scale = \"log\"",
    );
    assert_eq!((x.label.as_str(), x.log), ("one way (ms)", true));
    assert!(x.low > 0.0 && x.low < 10.0 && x.high > 1000.0);
    // Zero has no logarithm.
    let (x, _) = swept(&["0 s", "1 s"], "x_scale = \"log\"");
    assert_eq!((x.label.as_str(), x.log), ("delay (s)", false));
}
