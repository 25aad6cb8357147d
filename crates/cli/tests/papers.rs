//! Papers are folders that are found at run time, and a user's spec is compared with the user's
//! reference values in the same way.

mod common;

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{command, text};

/// The command in a directory, for a user whose data folder is `data`.
fn anabranch(directory: &Path, data: &Path, arguments: &[&str]) -> Output {
    command(directory, arguments)
        .env("XDG_DATA_HOME", data)
        .output()
        .expect("the command starts")
}

/// Runs the command without user data; returns its status and output.
fn says(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let said = anabranch(directory, &directory.join("no-data"), arguments);
    (said.status.code(), text(&said.stdout) + &text(&said.stderr))
}

fn write(path: &Path, contents: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, contents).expect("a file");
}

/// A spec with a lossless link: UDP at 80 kbit/s arrives at 80 kbit/s with any seed.
const SPEC: &str = r#"anabranch = 1
name = "steady1999"
title = "A steady stream"

[reference]
published = "published.csv"
ns3 = "ns3.csv"

[world]
duration = "20 s"

[[node]]
name = "a"
[[node]]
name = "b"
[[link]]
name = "wire"
between = ["a", "b"]
rate = "$rate"
delay = "10 ms"
[[flow]]
name = "stream"
from = "a"
to = "b"
workload = { kind = "cbr", rate = "80 kbit/s", message = "100 B" }
transport = { protocol = "udp" }

[parameters]
rate = "1 Mbit/s"

[[measure]]
metric = "goodput"
flow = "stream"
window = ["10 s", "20 s"]

[[experiment]]
id = "rates"
replications = 5
sweep = [{ parameter = "rate", values = ["1 Mbit/s", "2 Mbit/s"] }]

[[table]]
id = "table-1"
title = "Goodput"
published = "Table 1"
baseline.ns3 = { condition = "rate={rate}" }
row = [{ series = "stream", metric = "goodput", unit = "kbit/s", baseline.ns3 = "throughput" }]
"#;
const PUBLISHED: &str = "where,series,x_name,x,metric,value,unit
Table 1,stream,rate,1 Mbit/s,goodput,80.0,kbit/s
Table 1,stream,rate,2 Mbit/s,goodput,83,kbit/s
Table 1,straem,rate,1 Mbit/s,goodput,80.0,kbit/s
";
const NS3: &str = "where,condition,metric,mean,ci95,replications
Table 1,rate=1 Mbit/s,throughput,80,0.5,20
Table 1,rate=2 Mbit/s,throughput,90,0.5,20
Table 1,rate=4 Mbit/s,throughput,90,0.5,20
";

fn write_paper(papers: &Path, name: &str) {
    let folder = papers.join(name);
    write(
        &folder.join("paper.toml"),
        &SPEC.replace("steady1999", name),
    );
    write(&folder.join("published.csv"), PUBLISHED);
    write(&folder.join("ns3.csv"), NS3);
}

const VERDICTS: &str =
    "series,x_name,x,metric,value,ci95,replications,unit,published,verdict,band_low,band_high,rank
stream,rate,1 Mbit/s,goodput,80,0,5,kbit/s,80.0,reproduced,80,80,3.5
stream,rate,2 Mbit/s,goodput,80,0,5,kbit/s,83,differs,80,80,6
";

#[test]
fn a_folder_is_a_paper_and_no_more_is_needed() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    write_paper(&here.join("papers"), "steady1999");
    // A folder without a spec is not a paper.
    write(&here.join("papers/notes/read.md"), "no spec");
    let (status, said) = says(here, &["reproduce", "steady1999", "--out", "out"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("2 printed values: 1 reproduced, 0 compatible, 1 differ, 0 not attempted"),
        "{said}"
    );
    let unanswered =
        "papers/steady1999/published.csv: nothing is compared with 1 of 3 rows (line 4)";
    assert!(said.contains(unanswered), "{said}");
    let unanswered = "papers/steady1999/ns3.csv: nothing is compared with 1 of 3 rows (line 4)";
    assert!(said.contains(unanswered), "{said}");
    let file = |name: &str| fs::read_to_string(here.join("out").join(name)).expect(name);
    assert_eq!(file("tables/table-1.csv"), VERDICTS);
    let beside = file("tables/table-1-ns3.csv");
    let lines: Vec<&str> = beside.lines().collect();
    assert!(
        lines[0].contains("unit,ns3,ns3_ci95,ns3_replications"),
        "{beside}"
    );
    assert!(lines[1].ends_with("80,0.5,20,yes,0,0"), "{beside}");
    assert!(lines[2].contains("90,0.5,20,no,-10,"), "{beside}");
    let page = file("report.html");
    assert!(page.contains("overlaps") && page.contains("lies apart"));
    assert_eq!(
        file("tally.txt"),
        "2 printed values: 1 reproduced, 0 compatible, 1 differ, 0 not attempted\n"
    );

    // Showing the results does not require the folder of the paper.
    fs::remove_dir_all(here.join("papers")).expect("the papers");
    let (status, shown) = says(here, &["show", "out"]);
    assert_eq!(status, Some(0), "{shown}");
    assert!(
        shown.contains("2 printed values: 1 reproduced, 0 compatible, 1 differ, 0 not attempted"),
        "{shown}"
    );
    fs::remove_file(here.join("out/reference/ns3.csv")).expect("a kept file");
    let (status, shown) = says(here, &["show", "out"]);
    assert_eq!(status, Some(1), "{shown}");
    assert!(
        shown.contains("cannot read out/reference/ns3.csv, which `reference.ns3` names"),
        "{shown}"
    );
}

#[test]
fn the_nearest_folder_hides_the_others_and_the_list_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let (here, data) = (directory.path().join("here"), directory.path().join("data"));
    fs::create_dir_all(&here).expect("a directory");
    let of_user = data.join("anabranch/papers");
    write_paper(&of_user, "steady1999");
    write_paper(&of_user, "alamgir2002");
    let list = || text(&anabranch(&here, &data, &["papers"]).stdout);
    let listed = list();
    let of_user = of_user.display();
    let found = [
        format!("found in {of_user}/alamgir2002; hides that of the program itself\n"),
        format!("found in {of_user}/steady1999\n"),
        "found in the program itself\n".to_owned(),
    ];
    for found in found {
        assert!(listed.contains(&found), "{found}: {listed}");
    }
    // Papers are listed in the order of their years.
    assert!(
        listed.starts_with("steady1999       A steady stream\n"),
        "{listed}"
    );
    write_paper(&here.join("papers"), "alamgir2002");
    let found = format!(
        "found in papers/alamgir2002; hides that of {of_user}/alamgir2002; hides that of the program itself\n"
    );
    assert!(list().contains(&found), "{}", list());
    let ran = anabranch(&here, &data, &["reproduce", "alamgir2002"]);
    assert!(
        text(&ran.stdout).contains("1 reproduced, 0 compatible, 1 differ"),
        "{ran:?}"
    );
}

#[test]
fn a_damaged_folder_is_named_and_nothing_else_stands_in_for_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let folder = here.join("papers/alamgir2002");
    let told = |wanted: &[&str]| {
        let (status, said) = says(here, &["reproduce", "alamgir2002"]);
        assert_eq!(status, Some(2), "{said}");
        for wanted in wanted {
            assert!(said.contains(wanted), "{wanted}: {said}");
        }
        assert!(!here.join("alamgir2002").exists(), "something was run");
    };
    let good = SPEC.replace("steady1999", "alamgir2002");
    write(&folder.join("paper.toml"), &good);
    told(&["cannot read papers/alamgir2002/published.csv, which `reference.published` names"]);
    write(
        &folder.join("published.csv"),
        "where,series,metric,value\nTable 1,stream,goodput,80 kbit\n",
    );
    told(&[
        "papers/alamgir2002/published.csv:2:24: column `value`: found \"80 kbit\"; allowed: a number",
    ]);
    write(&folder.join("published.csv"), PUBLISHED);
    write(&folder.join("ns3.csv"), "condition,metric,maen\n");
    told(&[
        "papers/alamgir2002/ns3.csv:1:18: found column \"maen\"",
        "did you mean `mean`?",
    ]);
    write(&folder.join("paper.toml"), SPEC);
    told(&[
        "papers/alamgir2002/paper.toml:2:8",
        "found \"steady1999\"; a paper is called as its folder, which is \"alamgir2002\"",
    ]);
    write(&folder.join("paper.toml"), "anabranch = \n");
    told(&["papers/alamgir2002/paper.toml:1:"]);
    let (status, listed) = says(here, &["papers"]);
    assert_eq!(status, Some(2), "{listed}");
    for wanted in [
        "alamgir2002      cannot be read",
        "rafiq2007",
        "papers/alamgir2002/paper.toml:1:",
    ] {
        assert!(listed.contains(wanted), "{wanted}: {listed}");
    }
    fs::remove_file(folder.join("paper.toml")).expect("a file");
    fs::create_dir(folder.join("paper.toml")).expect("a directory in its place");
    told(&["cannot read papers/alamgir2002/paper.toml: "]);
}

#[test]
fn numbers_of_ones_own_are_judged_as_a_papers_are() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let spec = SPEC.replace("\"published.csv\"", "\"mine.csv\"");
    write(&here.join("specs/my.toml"), &spec);
    write(&here.join("specs/mine.csv"), PUBLISHED);
    write(&here.join("specs/ns3.csv"), NS3);
    let (status, said) = says(here, &["run", "specs/my.toml", "--out", "out"]);
    assert_eq!(status, Some(0), "{said}");
    let table = fs::read_to_string(here.join("out/tables/table-1.csv")).expect("a table");
    assert_eq!(table, VERDICTS);
    // A spec without a table gets one table for each experiment. Published values refer to such a
    // table by the id of the experiment.
    let (before, _) = spec.split_once("[[table]]").expect("a table");
    write(
        &here.join("specs/plain.toml"),
        &before.replace("ns3 = \"ns3.csv\"\n", ""),
    );
    write(
        &here.join("specs/mine.csv"),
        "where,series,x_name,x,metric,value,unit\n\
         rates,stream,rate,1 Mbit/s,goodput,80000,bit/s\n\
         ,stream,rate,2 Mbit/s,goodput,83000,bit/s\n\
         ,stream,rate,2 Mbit/s,goodput,80,kbit/s\n",
    );
    let (status, said) = says(here, &["run", "specs/plain.toml", "--out", "plain"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("3 printed values: 1 reproduced, 0 compatible, 1 differ, 1 not attempted"),
        "{said}"
    );
}

#[test]
fn wrong_references_are_found_before_anything_is_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    write(&here.join("published.csv"), PUBLISHED);
    write(&here.join("ns3.csv"), NS3);
    for (good, wrong, told) in [
        (
            "ns3 = \"ns3.csv\"\n",
            "",
            "found \"ns3\", but [reference] has no such file",
        ),
        (
            "ns3 = \"ns3.csv\"",
            "ns4 = \"ns3.csv\"",
            "no table has `baseline.ns4`",
        ),
        (
            "published = \"published.csv\"",
            "publishd = \"published.csv\"",
            "did you mean `published`?",
        ),
        (
            ", baseline.ns3 = \"throughput\"",
            ", baseline.ns4 = \"throughput\"",
            "the table has no `baseline.ns4`",
        ),
        ("ns3 = \"ns3.csv\"", "ns3 = 7", "reference.ns3"),
    ] {
        assert!(SPEC.contains(good), "{good}");
        write(&here.join("my.toml"), &SPEC.replace(good, wrong));
        let (status, said) = says(here, &["run", "my.toml"]);
        assert_eq!(status, Some(2), "{said}");
        assert!(
            said.contains(told) && said.contains("my.toml:"),
            "{told}: {said}"
        );
        assert!(!here.join("steady1999").exists(), "something was run");
    }
}

/// The files that `docs/extending/paper.md` shows, each with its path.
fn files_of_the_page() -> Vec<(String, String)> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extending/paper.md");
    let page = fs::read_to_string(page).expect("the page");
    let mut files = Vec::new();
    for part in page.split("`papers/example1999/").skip(1) {
        let (name, rest) = part.split_once('`').expect("the end of a path");
        let (_, block) = rest.split_once("\n```").expect("a block");
        let (_, block) = block.split_once('\n').expect("its first line");
        let (block, _) = block.split_once("```").expect("its end");
        files.push((name.to_owned(), block.to_owned()));
    }
    files
}

#[test]
fn the_paper_of_the_page_is_reproduced() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    let files = files_of_the_page();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["paper.toml", "published.csv", "ns3.csv"]);
    for (name, text) in &files {
        write(&here.join("papers/example1999").join(name), text);
    }
    let (status, said) = says(here, &["reproduce", "example1999"]);
    assert_eq!(status, Some(0), "{said}");
    assert!(
        said.contains("2 printed values: 1 reproduced, 0 compatible, 1 differ, 0 not attempted"),
        "{said}"
    );
    assert!(!said.contains("nothing is compared"), "{said}");
    let beside = fs::read_to_string(here.join("example1999/tables/table-1-ns3.csv"));
    let beside = beside.expect("a table");
    assert_eq!(beside.matches(",yes,").count(), 2, "{beside}");
}
