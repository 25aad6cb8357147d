//! Advice in plain words, for a terminal or a file.

use std::fmt::Write;

use anabranch_report::statistics::Summary;
use anabranch_report::table;

use crate::evidence::{Advice, Limit, Tried};
use crate::grid::readable;
use crate::search::{Finding, Found};
use crate::spec::{count, percent, x_of};
use crate::trials::Answer;

/// Everything there is to say, but the figure.
pub fn whole(advice: &Advice) -> String {
    let mut text = String::new();
    for part in [
        path(advice),
        recommendation(advice),
        tried(advice),
        candidates(advice),
        doubts(advice),
        effort(advice),
    ] {
        if !part.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
    }
    text
}

/// The unit that suits a rate: what it is divided by, and its name.
fn unit(rate: f64) -> (f64, &'static str) {
    if rate >= 999_500.0 {
        (1e6, "Mbit/s")
    } else {
        (1e3, "kbit/s")
    }
}

/// A mean with its interval: `0.262 ± 0.006`.
fn with_interval(summary: &Summary, divisor: f64) -> String {
    match table::readable(
        summary.mean / divisor,
        summary.confidence().map(|half| half / divisor),
    ) {
        (mean, Some(half)) => format!("{mean} ± {half}"),
        (mean, None) => mean,
    }
}

fn goodput(summary: &Summary) -> String {
    let (divisor, name) = unit(summary.mean);
    format!("{} {name}", with_interval(summary, divisor))
}

fn share(summary: &Summary) -> String {
    format!("{} %", with_interval(summary, 0.01))
}

fn path(advice: &Advice) -> String {
    let question = &advice.question;
    format!(
        "Path: {} round trip, {}, {} % of the packets lost, a queue of {}, MTU {}.\nWanted: {} % of the goodput that a \
         receive buffer without limit gives.\n",
        question.rtt,
        question.rate,
        percent(question.loss.0),
        question.queue(),
        question.mtu,
        percent(question.share)
    )
}

fn recommendation(advice: &Advice) -> String {
    let Some(advised) = advice.advised() else {
        return "Advice: none. The search chose a setting that the evidence does not confirm with its 95 % interval. Ask for a \
                smaller share, or for a longer --duration.\n"
            .to_owned();
    };
    let setting = advised.setting;
    let control = &advice.search.findings[setting.control].control;
    let best = &advice.search.findings[advice.search.best].control;
    let reference = advice
        .unlimited
        .get(advice.search.best)
        .map_or(String::new(), goodput);
    let mut text = String::from("Advice\n");
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:20}{value}");
    };
    line("receive buffer", x_of(setting.buffer));
    line("streams", setting.streams.to_string());
    line("congestion control", control.congestion.clone());
    line("profile", control.profile.clone());
    line(
        "expected goodput",
        format!(
            "{} (mean of {} runs with its 95 % interval)",
            goodput(&advised.goodput),
            advice.replications[0]
        ),
    );
    line(
        "",
        format!(
            "= {} of the {reference} of {best} without limit",
            share(&advised.share)
        ),
    );
    for (place, part) in limit(advised).iter().enumerate() {
        line(if place == 0 { "limited by" } else { "" }, part.clone());
    }
    text
}

/// What holds the advised setting back, with the numbers that say so.
fn limit(tried: &Tried) -> Vec<String> {
    let (cost, half) = (tried.cost.0 * 100.0, tried.cost.1 * 100.0);
    let decimals = if tried.utilization < 10.0 { 1 } else { 0 };
    let used = format!(
        "{:.decimals$} % of the link's rate is in use",
        tried.utilization
    );
    let buffer =
        format!("a buffer without limit would change the goodput by {cost:+.1} ± {half:.1} %");
    match tried.limit {
        Limit::Link => vec![format!("the link: {used}")],
        Limit::Buffer => vec![
            "the buffer, within the share asked for".to_owned(),
            used,
            buffer,
        ],
        Limit::Congestion => {
            let window = format!(
                "congestion control: its window is {:.1} packets on average",
                tried.mean_cwnd
            );
            vec![window, used, buffer]
        }
    }
}

/// Goodput by buffer and streams.
fn tried(advice: &Advice) -> String {
    let Some(first) = advice.tried.first() else {
        return String::new();
    };
    let control = &advice.search.findings[first.setting.control].control;
    let largest = advice
        .tried
        .iter()
        .map(|tried| tried.goodput.mean)
        .fold(0.0, f64::max);
    let (divisor, name) = unit(largest);
    let mut rows = vec![vec![String::from("receive buffer")]];
    let mut shown: Vec<u16> = advice
        .tried
        .iter()
        .map(|tried| tried.setting.streams)
        .collect();
    shown.dedup();
    rows[0].extend(shown.into_iter().map(count));
    let buffers = advice
        .tried
        .iter()
        .filter(|tried| tried.setting.streams == first.setting.streams);
    for buffer in buffers.map(|tried| tried.setting.buffer) {
        let mut row = vec![x_of(buffer)];
        row.extend(
            advice
                .tried
                .iter()
                .enumerate()
                .filter(|(_, tried)| tried.setting.buffer == buffer)
                .map(|(place, tried)| {
                    let mark = match (advice.advised == Some(place), tried.answer) {
                        (true, _) => '*',
                        (false, Answer::Holds) => '+',
                        (false, Answer::Open) => '?',
                        (false, Answer::Fails) => ' ',
                    };
                    let limit = match tried.limit {
                        Limit::Link => 'l',
                        Limit::Buffer => 'b',
                        Limit::Congestion => 'c',
                    };
                    format!("{} {limit}{mark}", with_interval(&tried.goodput, divisor))
                }),
        );
        rows.push(row);
    }
    format!(
        "Goodput in {name} of {control}; {} runs of what decides (the chosen buffer, larger buffers with the chosen streams), {} of \
         the others\n{}  b buffer, c congestion control, l link holds it back; * advised, + surely enough, ? perhaps enough\n",
        advice.replications[0],
        advice.replications[1],
        columns(&rows)
    )
}

/// What each candidate gives without limit, and what it needs.
fn candidates(advice: &Advice) -> String {
    let mut rows = vec![vec![
        "profile, control".to_owned(),
        "without limit".to_owned(),
        "needs".to_owned(),
    ]];
    let best = advice.unlimited.get(advice.search.best);
    for (finding, unlimited) in advice.search.findings.iter().zip(&advice.unlimited) {
        let divisor = unit(best.map_or(unlimited.mean, |best| best.mean));
        let without = format!("{} {}", with_interval(unlimited, divisor.0), divisor.1);
        rows.push(vec![
            finding.control.to_string(),
            without,
            needs(finding, advice),
        ]);
    }
    format!("Candidates, with what the search found\n{}", columns(&rows))
}

fn needs(finding: &Finding, advice: &Advice) -> String {
    let wanted = percent(advice.question.share);
    let setting = |setting: crate::Setting| {
        let buffer = setting.buffer.map_or(String::new(), readable);
        format!("{buffer}, {}", count(setting.streams))
    };
    match finding.found {
        Found::OfBest(found) => setting(found),
        Found::OfOwn(found) => format!("{} for {wanted} % of its own", setting(found)),
        Found::NotSmaller => "no smaller buffer than those above".to_owned(),
        Found::Behind => "too little with any buffer".to_owned(),
        Found::Unsure => "not surely enough with any buffer".to_owned(),
        Found::Open => "no buffer that is surely enough was found".to_owned(),
    }
}

fn doubts(advice: &Advice) -> String {
    let mut text = String::new();
    if let (Some(advised), Some(chosen)) = (advice.advised(), advice.search.chosen)
        && advised.setting != chosen
    {
        let _ = writeln!(
            text,
            "The search chose {} and {}; fresh losses did not confirm it, so that the next larger setting that they do confirm \
             is advised.",
            x_of(chosen.buffer),
            count(chosen.streams)
        );
    }
    if advice.search.exhausted {
        text.push_str(
            "The search spent all it may before every comparison was sure: a smaller buffer may do. Shorter lists of \
             --congestion, --profile or --streams leave more for each.\n",
        );
    }
    text
}

/// What the answer cost.
fn effort(advice: &Advice) -> String {
    let timing = advice.question.timing();
    let (runs, events) = advice.effort;
    format!(
        "Simulated: {} runs to find it and {runs} to confirm it, each measured from {} to {}, {:.1} million events.\n",
        advice.search.runs,
        timing.begin,
        timing.end,
        (advice.search.events + events) as f64 / 1e6
    )
}

/// Rows as aligned columns, the first to the left, numbers as they come.
fn columns(rows: &[Vec<String>]) -> String {
    let most = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..most).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths) {
            let pad = " ".repeat(width - cell.chars().count());
            let _ = write!(line, "{cell}{pad}   ");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
