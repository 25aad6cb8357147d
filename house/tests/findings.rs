//! `docs/FINDINGS.md` is made from `docs/findings/text.md` and the tables beside it, so that no number of a table is typed.
//!
//! Tables are kept as `anabranch reproduce PAPER` writes them, in `docs/findings/PAPER/`. `docs/findings/keep` runs a paper and
//! keeps them. In the text, below a heading `## PAPER: ...`, a number of one of its tables is
//!
//! - `{table|series|metric|x}`: the value and half of its 95 % interval, `21.4 ± 4.1`;
//! - `{table|series|metric|x|mean}`: the value alone;
//! - `{table|series|metric|x|ns2}`: the same of ns-2.35, from `table-ns2.csv`.
//!
//! After a change: `FINDINGS=write cargo test -p anabranch-house --test findings`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A table: its rows, each with its cells by column.
type Table = Vec<BTreeMap<String, String>>;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The cells of a line of CSV.
fn cells(line: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(String::new()),
            _ => all.last_mut().expect("a cell").push(letter),
        }
    }
    all
}

fn table(text: &str) -> Table {
    let mut lines = text.lines();
    let names = cells(lines.next().expect("the names of the columns"));
    lines
        .map(|line| names.iter().cloned().zip(cells(line)).collect())
        .collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> Option<f64> {
    row.get(column)?.parse().ok()
}

/// A value with as many decimals as the half width with two digits has; alone, with five digits.
fn shown(mean: f64, half: Option<f64>, alone: bool) -> String {
    let digits = |value: f64, significant: i32| {
        let power = value.abs().log10().floor() as i32;
        (significant - 1 - power).clamp(0, 9) as usize
    };
    match half.filter(|half| *half > 0.0) {
        None if mean == 0.0 => "0".to_owned(),
        None => {
            let text = format!("{mean:.0$}", digits(mean, 5));
            match text.contains('.') {
                true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
                false => text,
            }
        }
        Some(half) => {
            let decimals = digits(half, 2);
            match alone {
                true => format!("{mean:.decimals$}"),
                false => format!("{mean:.decimals$} ± {half:.decimals$}"),
            }
        }
    }
}

/// What a placeholder stands for, with the tables of `paper`.
fn value(
    paper: &str,
    asked: &str,
    read: &impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let parts: Vec<&str> = asked.split('|').collect();
    let [id, series, metric, x, how @ ..] = &parts[..] else {
        return Err("a number is {table|series|metric|x}".to_owned());
    };
    let beside = how.contains(&"ns2");
    let file = match beside {
        true => format!("{paper}/{id}-ns2.csv"),
        false => format!("{paper}/{id}.csv"),
    };
    let is = |row: &BTreeMap<String, String>, column: &str, wanted: &str| {
        row.get(column).is_some_and(|found| found == wanted)
    };
    let rows = table(&read(&file)?);
    let found: Vec<_> = rows
        .iter()
        .filter(|row| is(row, "series", series) && is(row, "metric", metric) && is(row, "x", x))
        .collect();
    let [row] = found[..] else {
        return Err(format!("{} rows in {file}, not one", found.len()));
    };
    let (mean, half) = match beside {
        true => (number(row, "ns2"), number(row, "ns2_ci95")),
        false => (number(row, "value"), number(row, "ci95")),
    };
    let mean = mean.ok_or_else(|| format!("no value in {file}"))?;
    Ok(shown(mean, half, how.contains(&"mean")))
}

/// The text with its numbers put in; or what is wrong, with the line.
fn rendered(text: &str, read: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let mut paper = String::new();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading
                .split(':')
                .next()
                .unwrap_or("")
                .clone_into(&mut paper);
        }
        let mut rest = line;
        let mut out = String::new();
        while let Some((before, after)) = rest.split_once('{') {
            let (asked, behind) = after
                .split_once('}')
                .ok_or_else(|| format!("line {}: a brace is not closed", number + 1))?;
            out += before;
            out += &value(&paper, asked, &read)
                .map_err(|problem| format!("line {}: {{{asked}}}: {problem}", number + 1))?;
            rest = behind;
        }
        lines.push(out + rest);
    }
    Ok(lines.join("\n") + "\n")
}

#[test]
fn the_findings_say_what_the_tables_say() {
    let read = |name: &str| {
        let path = docs().join("findings").join(name);
        fs::read_to_string(&path).map_err(|error| format!("{name}: {error}"))
    };
    let text = read("text.md").expect("the text");
    let made =
        rendered(&text, read).unwrap_or_else(|problem| panic!("docs/findings/text.md: {problem}"));
    let path = docs().join("FINDINGS.md");
    if std::env::var("FINDINGS").is_ok_and(|how| how == "write") {
        fs::write(&path, &made).expect("docs/FINDINGS.md");
    }
    let found = fs::read_to_string(path).expect("docs/FINDINGS.md");
    assert!(
        found == made,
        "docs/FINDINGS.md is not what docs/findings gives; `FINDINGS=write cargo test -p anabranch-house --test findings`"
    );
}

/// The tables of a run that was not made.
fn read(name: &str) -> Result<String, String> {
    match name {
        "some2001/table-1.csv" => Ok("series,x,metric,value,ci95\n\
             sctp,2,goodput,22.6178,4.9731\n\"a, b\",,goodput,8257,\nsctp,4,goodput,0.995126,0.00214\n"
            .to_owned()),
        _ => Err(format!("no {name}")),
    }
}

#[test]
fn a_number_is_taken_from_its_cell() {
    let made = |text: &str| rendered(&format!("## some2001: a title\n{text}"), read);
    let line = |text: &str| made(text).map(|all| all.lines().nth(1).expect("a line").to_owned());
    assert_eq!(
        line("{table-1|sctp|goodput|2} %").as_deref(),
        Ok("22.6 ± 5.0 %")
    );
    assert_eq!(line("{table-1|sctp|goodput|2|mean}").as_deref(), Ok("22.6"));
    assert_eq!(line("{table-1|a, b|goodput|}").as_deref(), Ok("8257"));
    assert_eq!(
        line("{table-1|sctp|goodput|4}").as_deref(),
        Ok("0.9951 ± 0.0021")
    );
}

#[test]
fn a_number_that_is_not_there_is_an_error() {
    for (text, expected) in [
        (
            "{table-1|tcp|goodput|2}",
            "line 2: {table-1|tcp|goodput|2}: 0 rows in some2001/table-1.csv, not one",
        ),
        (
            "{table-2|tcp|goodput|2}",
            "line 2: {table-2|tcp|goodput|2}: no some2001/table-2.csv",
        ),
        ("{table-1", "line 2: a brace is not closed"),
    ] {
        let found = rendered(&format!("## some2001: a title\n{text}"), read);
        assert_eq!(found, Err(expected.to_owned()));
    }
}
