//! Advice in plain words, for a terminal or a file.

use std::fmt::Write;

use anabranch_report::statistics::Summary;
use anabranch_report::table;

use crate::evidence::{Advice, Limit, Tried};
use crate::knobs;
use crate::question::{Control, Question};
use crate::ranking::Ranking;
use crate::spec::{count, percent, x_of};
use crate::trials::Answer;

/// Everything there is to say, but the figure: what is advised for the first candidate, and for the one that surely carries
/// more, if there is one.
pub fn whole(
    question: &Question,
    ranking: &Ranking,
    first: &Advice,
    better: Option<&Advice>,
) -> String {
    let mut parts = vec![
        fitted(&path(question)),
        fitted(&recommendation(first, false)),
    ];
    match better {
        Some(better) => parts.push(fitted(&recommendation(better, true))),
        None => parts.extend(without_better(ranking).map(|text| fitted(&text))),
    }
    parts.push(tried(first));
    parts.extend(better.map(tried));
    parts.push(candidates(ranking));
    parts.push(fitted(&doubts(first)));
    parts.extend(better.map(|better| fitted(&doubts(better))));
    parts.push(fitted(&effort(ranking, first, better)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Characters of a line.
const WIDE: usize = 80;
/// Where values stand.
const VALUES: usize = 20;

/// Text whose lines are no wider than a terminal: what does not fit goes on below, values below values.
fn fitted(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let indent = if line.starts_with("  ") { VALUES } else { 0 };
        if line.chars().count() <= WIDE {
            let _ = writeln!(out, "{line}");
            continue;
        }
        // A name is plain ASCII, so that a value begins at a byte, too.
        let (mut head, rest) = line.split_at_checked(indent).unwrap_or(("", line));
        let below = " ".repeat(indent);
        let mut now = String::new();
        for word in rest.split_whitespace() {
            if !now.is_empty() && indent + now.chars().count() + 1 + word.chars().count() > WIDE {
                let _ = writeln!(out, "{head}{now}");
                (head, now) = (&below, String::new());
            }
            if !now.is_empty() {
                now.push(' ');
            }
            now.push_str(word);
        }
        let _ = writeln!(out, "{head}{now}");
    }
    out
}

/// Why there is no second advice.
fn without_better(ranking: &Ranking) -> Option<String> {
    match ranking.better {
        Some(place) => Some(format!(
            "{} surely carries more without limit, but no buffer was found that surely carries the wanted share of that: there is no \
             advice for it, and no directory `better`.\n",
            ranking.candidates[place].0
        )),
        None if ranking.candidates.len() > 1 => {
            Some("No other candidate surely carries over 1 % more on this path.\n".to_owned())
        }
        None => None,
    }
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

fn path(question: &Question) -> String {
    format!(
        "Path: {} round trip, {}, {} % of the packets lost, a queue of {}, MTU {}.\nWanted: {} % of the goodput that a \
         receive buffer without limit gives the same sender.\n",
        question.rtt,
        question.rate,
        percent(question.loss.0),
        question.queue(),
        question.mtu,
        percent(question.share)
    )
}

fn control(advice: &Advice) -> Control {
    advice.question.controls().swap_remove(0)
}

fn recommendation(advice: &Advice, better: bool) -> String {
    let control = control(advice);
    let standard = control.is_standard();
    let whose = match (standard, better) {
        (true, _) => "any stack of the standard (Linux, usrsctp, WebRTC, this one)",
        (false, true) => "this stack alone, which has a sender that carries more",
        (false, false) => "this stack",
    };
    let mut text = format!("Advice for {whose}: {control}\n");
    let Some(advised) = advice.advised() else {
        text.push_str(
            "  none. The search chose a setting that the evidence does not confirm with its 95 % interval.\n  Ask for a smaller \
             share, or for a longer --duration.\n",
        );
        return text;
    };
    let setting = advised.setting;
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:18}{value}");
    };
    line("receive buffer", x_of(setting.buffer));
    line("streams", setting.streams.to_string());
    line(
        "expected goodput",
        format!(
            "{} (95 % interval, {} runs)",
            goodput(&advised.goodput),
            advice.replications[0]
        ),
    );
    line(
        "",
        format!(
            "= {} of the {} without limit",
            share(&advised.share),
            goodput(&advice.unlimited)
        ),
    );
    if let Some(half) = advice.half() {
        let enough = match half.answer {
            Answer::Fails => "not enough",
            Answer::Open => "perhaps enough",
            Answer::Holds => "enough here, and not in the search",
        };
        line(
            "half of it",
            format!("{} of no limit: {enough}", share(&half.share)),
        );
    }
    for (place, part) in limit(advised).iter().enumerate() {
        line(if place == 0 { "limited by" } else { "" }, part.clone());
    }
    for (place, part) in growing(advice, standard).into_iter().enumerate() {
        line(if place == 0 { "not settled" } else { "" }, part);
    }
    for (place, part) in size(advice).into_iter().enumerate() {
        line(if place == 0 { "simulated" } else { "" }, part);
    }
    let knobs = match standard {
        true => knobs::of(setting),
        false => {
            let buffer = setting.buffer.unwrap_or_default();
            let mut lines = knobs::here(buffer, setting.streams);
            lines.push(format!(
                "congestion = \"{}\" at the sender",
                control.congestion
            ));
            vec![("set it", lines)]
        }
    };
    for (stack, lines) in knobs {
        for (place, words) in lines.into_iter().enumerate() {
            line(if place == 0 { stack } else { "" }, words);
        }
    }
    text
}

/// What to know of a sender that keeps most of its window at a loss, and so goes on growing long after the runs begin to count:
/// until its window is what link and queue hold, a buffer is enough that is not later.
fn growing(advice: &Advice, standard: bool) -> Vec<String> {
    let (question, timing) = (&advice.question, advice.question.timing());
    let filling = question.filling();
    if standard || timing.begin >= filling {
        return Vec::new();
    }
    vec![
        format!(
            "measured from {} to {}, while its window may",
            timing.begin, timing.end
        ),
        format!(
            "still grow: a packet a round trip takes {}",
            long(filling.seconds())
        ),
        "to fill link and queue. Later it may use more than this".to_owned(),
        "buffer, so that this is neither the least nor enough.".to_owned(),
    ]
}

/// A time of minutes or hours for a reader.
fn long(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// How the path was simulated where it was not at its own size, and what its own size said.
fn size(advice: &Advice) -> Vec<String> {
    let scale = advice.question.scale;
    if scale == 1 {
        return Vec::new();
    }
    let mut lines = vec![format!(
        "at 1/{scale} of the size, losses {} times as likely;",
        u64::from(scale).pow(2)
    )];
    match &advice.full {
        Some(full) => {
            let verdict = match full.agrees {
                true => "the same as on the smaller path, within both intervals",
                false => "not the same as on the smaller path: an estimate",
            };
            lines.push(format!(
                "at full size {} in {} runs:",
                goodput(&full.goodput),
                full.goodput.replications
            ));
            lines.push(verdict.to_owned());
        }
        None => lines.push("not at full size, which would take too long".to_owned()),
    }
    lines
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
    let control = control(advice);
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
    let head = format!(
        "Goodput in {name} of {control}; {} runs of what decides (the chosen buffer, its half, larger ones), {} of the others",
        advice.replications[0], advice.replications[1],
    );
    let signs = "What holds it back: b buffer, c congestion control, l link; * advised, + surely enough, ? perhaps enough";
    format!("{}{}{}", fitted(&head), columns(&rows), fitted(signs))
}

/// What each candidate gives without limit.
fn candidates(ranking: &Ranking) -> String {
    if ranking.candidates.len() < 2 {
        return String::new();
    }
    let most = ranking.candidates.iter();
    let most = most.fold(0.0, |most, (_, goodput)| goodput.mean.max(most));
    let (divisor, name) = unit(most);
    let mut rows = vec![vec![
        "profile, control".to_owned(),
        "without limit".to_owned(),
    ]];
    rows.extend(ranking.candidates.iter().map(|(control, goodput)| {
        let goodput = format!("{} {name}", with_interval(goodput, divisor));
        vec![control.to_string(), goodput]
    }));
    let size = match ranking.scale {
        1 => String::new(),
        scale => format!(", simulated at 1/{scale} of the size"),
    };
    format!("Candidates{size}\n{}", columns(&rows))
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
fn effort(ranking: &Ranking, first: &Advice, better: Option<&Advice>) -> String {
    let all = || [Some(first), better].into_iter().flatten();
    let found: u64 = all().map(|advice| advice.search.runs).sum();
    let confirmed: u64 = all().map(|advice| advice.effort.0).sum();
    let events: u64 = all()
        .map(|advice| advice.search.events + advice.effort.1)
        .sum();
    let timing = first.question.timing();
    format!(
        "Simulated: {} runs to rank, {found} to find and {confirmed} to confirm; those of {} measured from {} to {}; {:.1} million events.\n",
        ranking.runs,
        control(first),
        timing.begin,
        timing.end,
        (ranking.events + events) as f64 / 1e6
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_a_terminal_and_no_word_is_lost() {
        let long = "word ".repeat(30);
        let text = format!(
            "Head {long}\n  {:18}{long}\n  short             1 ± 2 %\n",
            "limited by"
        );
        let fitted = fitted(&text);
        assert!(
            fitted.lines().all(|line| line.chars().count() <= WIDE),
            "{fitted}"
        );
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&fitted), words(&text));
        let below = fitted.lines().nth(3).expect("the value goes on");
        assert!(
            below.starts_with(&" ".repeat(VALUES)) && !below.starts_with(&" ".repeat(VALUES + 1)),
            "{fitted}"
        );
        assert!(fitted.contains("  short             1 ± 2 %\n"), "{fitted}");
    }

    #[test]
    fn long_times_are_told_in_minutes_and_hours() {
        assert_eq!(
            [18.0, 525.0, 13_500.0].map(long),
            ["18 s", "9 min", "3.8 h"]
        );
    }
}
