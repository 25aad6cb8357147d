//! Files of a results directory, including its page.

use anabranch_lab::outputs::write;
use anabranch_report::Outputs;

use crate::{fake, results};

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
    // Files that the runs have written.
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

/// Names may come from specs, records and CSV files of other users, and must not insert markup into
/// a page.
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
