//! Checks that `docs/FINDINGS.md` is generated from `docs/findings/text.md` and the tables in
//! `docs/findings/`, so that no number of a table is typed by hand.
//!
//! `docs/findings/PAPER/` contains the tables that `anabranch reproduce PAPER` writes;
//! `docs/findings/keep` runs a paper and stores them. Below a heading `## PAPER: ...` of the text,
//! the following placeholders are replaced by numbers from the tables of that paper:
//!
//! - `{table|series|metric|x}`: the value and half of its 95 % interval, such as `21.4 ± 4.1`;
//! - `{table|series|metric|x|mean}`: the value alone;
//! - `{table|series|metric|x|ns2}`: the value of ns-2.35, from `table-ns2.csv`, with half of its
//!   interval;
//! - `{overlap|tables}`, `{overlap|table|series|metric}`: the number of means whose intervals
//!   overlap with those of ns-2.35, such as `141 of 144`; `tables` are one or several, separated by
//!   commas;
//! - `{farthest|table|series|metric}`: the largest relative difference from ns-2.35, in percent;
//! - `{count|tables|verdict}`: the number of printed values in one or several tables that have
//!   this verdict;
//! - `{tally|printed values}`, `{tally|claims|reproduced}`: the number of printed values or
//!   claims; with a third part, the number of those that have this verdict;
//! - `{claims|id}`: the verdict on a claim; `{claims|id|x}`: the value found at this x, with half
//!   of its interval; `{claims|id|x|1000}`: the same divided by 1000.
//!
//! `{PAPER/...}` uses the tables of another paper than the heading's.
//!
//! To write the page after a change:
//! `FINDINGS=write cargo test -p anabranch-house --test findings`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A table: its rows, each of which maps a column to its cell.
type Table = Vec<BTreeMap<String, String>>;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs")
}

/// The cells of one line of CSV.
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

/// Formats a value with the decimals that show two significant digits of the half width, but no
/// more than six significant digits. Without a half width, the value has five significant digits.
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
            let decimals = digits(half, 2).min(digits(mean, 6));
            match alone {
                true => format!("{mean:.decimals$}"),
                false => format!("{mean:.decimals$} ± {half:.decimals$}"),
            }
        }
    }
}

/// The text for the placeholder `asked`, from the tables of `paper` unless the placeholder names
/// another paper.
fn value(
    paper: &str,
    asked: &str,
    read: &impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let (paper, asked) = asked
        .split_once('/')
        .filter(|(name, _)| !name.contains('|'))
        .unwrap_or((paper, asked));
    let parts: Vec<&str> = asked.split('|').collect();
    match &parts[..] {
        ["tally", of, rest @ ..] => {
            tallied(&read(&format!("{paper}/tally.txt"))?, of, rest.first())
        }
        ["claims", id, x @ ..] => claimed(&table(&read(&format!("{paper}/claims.csv"))?), id, x),
        ["overlap", ids, of @ ..] => {
            let mut rows = Table::new();
            for id in ids.split(',') {
                rows.append(&mut table(&read(&format!("{paper}/{id}-ns2.csv"))?));
            }
            overlapping(&rows, of).ok_or_else(|| format!("no such rows in {ids}"))
        }
        ["farthest", id, of @ ..] => {
            let rows = table(&read(&format!("{paper}/{id}-ns2.csv"))?);
            let found = chosen(&rows, of).filter_map(|row| number(row, "relative_difference"));
            let most = found
                .map(|share| 100.0 * share.abs())
                .max_by(f64::total_cmp);
            most.map(|most| shown(most, Some(most), true))
                .ok_or_else(|| format!("no such rows in {id}"))
        }
        ["count", ids, verdict] => {
            let mut count = 0;
            for id in ids.split(',') {
                let rows = table(&read(&format!("{paper}/{id}.csv"))?);
                count += rows.iter().filter(|row| row["verdict"] == *verdict).count();
            }
            Ok(count.to_string())
        }
        [id, series, metric, x, how @ ..] => {
            let beside = how.contains(&"ns2");
            let file = match beside {
                true => format!("{paper}/{id}-ns2.csv"),
                false => format!("{paper}/{id}.csv"),
            };
            let rows = table(&read(&file)?);
            let wanted = [("series", series), ("metric", metric), ("x", x)];
            let is = |row: &&BTreeMap<String, String>| {
                wanted
                    .iter()
                    .all(|(column, wanted)| row.get(*column).is_some_and(|it| it == *wanted))
            };
            let found: Vec<_> = rows.iter().filter(is).collect();
            let [row] = found[..] else {
                return Err(format!("{} rows in {file}, not one", found.len()));
            };
            let (mean, half) = match beside {
                true => (number(row, "ns2"), number(row, "ns2_ci95")),
                false => (number(row, "value"), number(row, "ci95")),
            };
            let mean = mean.ok_or_else(|| format!("no value in {file}"))?;
            // ns-2's value of a single run has no interval, and is shown with all digits of the
            // table.
            match half {
                None if beside => Ok(mean.to_string()),
                half => Ok(shown(mean, half, how.contains(&"mean"))),
            }
        }
        _ => Err("a number is {table|series|metric|x}".to_owned()),
    }
}

/// A count from a tally in the format of a run: `60 printed values: 49 reproduced, 9 compatible, 2
/// differ, 0 not attempted`. With a verdict, the count of that verdict; without, the count of all.
fn tallied(text: &str, of: &str, verdict: Option<&&str>) -> Result<String, String> {
    let missing = || format!("no {of:?} {} in the tally", verdict.unwrap_or(&""));
    let line = |line: &str| {
        let (head, grades) = line.split_once(": ")?;
        let count = head.strip_suffix(of)?.trim();
        count.parse::<usize>().ok()?;
        Some((count.to_owned(), grades.to_owned()))
    };
    let (count, grades) = text.lines().find_map(line).ok_or_else(missing)?;
    assert!(
        !grades.contains('('),
        "a tally of fewer replications than the spec asks for: {grades}"
    );
    let Some(verdict) = verdict else {
        return Ok(count);
    };
    let graded = grades
        .split(", ")
        .find_map(|grade| grade.strip_suffix(verdict));
    graded
        .map(|count| count.trim().to_owned())
        .ok_or_else(missing)
}

/// The verdict on the claim `id`, or the value found at an x.
fn claimed(rows: &Table, id: &str, x: &[&str]) -> Result<String, String> {
    let mut of = rows.iter().filter(|row| row["claim"] == id).peekable();
    let first = of.peek().ok_or_else(|| format!("no claim {id:?}"))?;
    let [x, how @ ..] = x else {
        return Ok(first["verdict"].clone());
    };
    let here = of
        .find(|row| row["x"] == *x)
        .ok_or_else(|| format!("claim {id:?} has no x {x:?}"))?;
    let ends = number(here, "low").zip(number(here, "high"));
    let value =
        number(here, "value").ok_or_else(|| format!("claim {id:?} has no value at {x:?}"))?;
    let by: f64 = match how.first() {
        Some(by) => by.parse().map_err(|_| format!("{by:?} is no number"))?,
        None => 1.0,
    };
    Ok(shown(
        value / by,
        ends.map(|(low, high)| (high - low) / 2.0 / by),
        false,
    ))
}

/// The rows of this series and metric; all rows if `of` names none.
fn chosen<'a>(
    rows: &'a Table,
    of: &'a [&'a str],
) -> impl Iterator<Item = &'a BTreeMap<String, String>> {
    let is = move |row: &&BTreeMap<String, String>| {
        let mut wanted = ["series", "metric"].into_iter().zip(of);
        wanted.all(|(column, wanted)| row[column] == *wanted)
    };
    rows.iter().filter(is)
}

/// The number of means whose intervals overlap, of all that are compared (`141 of 144`); `None` if
/// no row is compared.
fn overlapping(rows: &Table, of: &[&str]) -> Option<String> {
    let judged = chosen(rows, of).filter(|row| !row["overlap"].is_empty());
    let judged: Vec<bool> = judged.map(|row| row["overlap"] == "yes").collect();
    let held = judged.iter().filter(|held| **held).count();
    (!judged.is_empty()).then(|| format!("{held} of {}", judged.len()))
}

/// Replaces all placeholders of the text. An error contains the number of the line.
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

/// The tables of an invented run.
fn read(name: &str) -> Result<String, String> {
    match name {
        "some2001/table-1.csv" => Ok("series,x,metric,value,ci95\n\
             sctp,2,goodput,22.6178,4.9731\n\"a, b\",,goodput,8257,\nsctp,4,goodput,0.995126,0.00214\nsctp,,delay,252.711,0.00124\n"
            .to_owned()),
        "some2001/tally.txt" => Ok("60 printed values: 49 reproduced, 9 compatible, 2 differ, 0 not attempted\n\
             3 claims: 3 reproduced, 0 compatible, 0 differ, 0 not attempted\n"
            .to_owned()),
        "some2001/table-2.csv" => Ok("series,verdict\na,differs\na,\nb,differs\n".to_owned()),
        "some2001/claims.csv" => Ok("claim,verdict,x,value,low,high\nmore,differs,1,2.51,1.5,3.5\nmore,differs,2,,,\nless,reproduced,,0,0,0\n".to_owned()),
        "some2001/table-1-ns2.csv" => Ok("series,metric,x,overlap,relative_difference\na,m,1,yes,0.001\na,m,2,no,-0.0123\na,n,1,,0.1\nb,m,1,yes,0\n".to_owned()),
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
        line("{table-1|sctp|delay|}").as_deref(),
        Ok("252.711 ± 0.001")
    );
    assert_eq!(
        line("{table-1|sctp|goodput|4}").as_deref(),
        Ok("0.9951 ± 0.0021")
    );
}

#[test]
fn counts_and_verdicts_are_taken_from_their_files() {
    for (asked, expected) in [
        ("tally|printed values", Ok("60")),
        ("tally|printed values|reproduced", Ok("49")),
        ("tally|printed values|differ", Ok("2")),
        ("tally|claims|not attempted", Ok("0")),
        (
            "tally|values|reproduced",
            Err("no \"values\" reproduced in the tally"),
        ),
        ("claims|more", Ok("differs")),
        ("claims|none", Err("no claim \"none\"")),
        ("overlap|table-1", Ok("2 of 3")),
        ("overlap|table-1|a|m", Ok("1 of 2")),
        ("overlap|table-1,table-1|a|m", Ok("2 of 4")),
        ("overlap|table-1|a|n", Err("no such rows in table-1")),
        ("farthest|table-1|a|m", Ok("1.2")),
        ("count|table-2|differs", Ok("2")),
        ("count|table-2,table-2|differs", Ok("4")),
        ("claims|more|1", Ok("2.5 ± 1.0")),
        ("claims|more|1|100", Ok("0.025 ± 0.010")),
        ("claims|more|2", Err("claim \"more\" has no value at \"2\"")),
        ("some2001/claims|less", Ok("reproduced")),
        ("none2001/claims|less", Err("no none2001/claims.csv")),
    ] {
        let found = value("some2001", asked, &read);
        assert_eq!(
            found.as_deref().map_err(String::as_str),
            expected,
            "{asked}"
        );
    }
}

#[test]
fn a_number_that_is_not_there_is_an_error() {
    for (text, expected) in [
        (
            "{table-1|tcp|goodput|2}",
            "line 2: {table-1|tcp|goodput|2}: 0 rows in some2001/table-1.csv, not one",
        ),
        (
            "{table-3|tcp|goodput|2}",
            "line 2: {table-3|tcp|goodput|2}: no some2001/table-3.csv",
        ),
        ("{table-1", "line 2: a brace is not closed"),
    ] {
        let found = rendered(&format!("## some2001: a title\n{text}"), read);
        assert_eq!(found, Err(expected.to_owned()));
    }
}
