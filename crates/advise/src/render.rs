//! Text of a recommendation, for a terminal or a file.

use anabranch_report::statistics::Summary;
use anabranch_report::{Introduction, table};
use anabranch_settings::counted;

use crate::discipline::DROP_TAIL;
use crate::evidence::{Advice, Drift, LimitingFactor, TestedSetting};
use crate::question::{CandidateSender, Question};
use crate::ranking::Ranking;
use crate::recovery;
use crate::spec::{percent, x_of};
use crate::stack_settings;
use crate::trials::ShareVerdict;

mod layout;

use layout::{columns, fitted, text};

/// The complete text without the figure: the recommendation for the first candidate, and for a
/// significantly better candidate if there is one.
pub fn whole(
    question: &Question,
    ranking: &Ranking,
    first: &Advice,
    better: Option<&Advice>,
) -> String {
    let mut parts: Vec<String> = introduction(question, ranking, first, better)
        .iter()
        .map(text)
        .collect();
    parts.push(tried(first));
    parts.extend(better.map(tried));
    parts.push(candidates(ranking));
    parts.push(left_out(question));
    parts.push(fitted(&effort(ranking, first, better)));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

/// Introduction of the report, without the tables.
pub fn introduction(
    question: &Question,
    ranking: &Ranking,
    first: &Advice,
    better: Option<&Advice>,
) -> Vec<Introduction> {
    let mut words = vec![
        Introduction::Text(path(question)),
        recommendation(first, false),
    ];
    words.extend(doubts(first).map(Introduction::Text));
    match better {
        Some(better) => words.extend(of_better(better)),
        None => words.extend(without_better(ranking).map(Introduction::Text)),
    }
    words
}

/// Introduction of the report about a sender that is better than the first candidate.
pub fn of_better(better: &Advice) -> Vec<Introduction> {
    let doubts = doubts(better).map(Introduction::Text);
    [recommendation(better, true)]
        .into_iter()
        .chain(doubts)
        .collect()
}

/// Reason why there is no second recommendation.
fn without_better(ranking: &Ranking) -> Option<String> {
    match ranking.better {
        Some(place) => Some(format!(
            "{} surely carries more without limit, but no buffer was found that surely carries the wanted share of that: there is no \
             advice for it, and no directory `better`.",
            ranking.candidates[place].0
        )),
        None if ranking.candidates.len() > 1 => {
            Some("No other candidate surely carries over 1 % more on this path.".to_owned())
        }
        None => None,
    }
}

/// Suitable unit for a rate: the factor and the name.
fn unit(rate: f64) -> (f64, &'static str) {
    if rate >= 999_500.0 {
        (1e6, "Mbit/s")
    } else {
        (1e3, "kbit/s")
    }
}

/// Formats a mean with its interval, such as `0.262 ± 0.006`.
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
    let round_trip = match &question.satellites {
        None => format!("{} round trip", question.rtt),
        Some(over) => format!(
            "from {} to {} over {}, a median round trip of {:.1} ms, handovers of {}",
            over.from,
            over.to,
            over.shell,
            question.rtt.seconds() * 1e3,
            over.handover
        ),
    };
    let discipline = match question.qdisc.as_str() {
        DROP_TAIL => String::new(),
        other => format!(" ({other})"),
    };
    format!(
        "Path: {round_trip}, {}, {} % of the packets lost, a queue of {}{discipline}, MTU {}.\nWanted: {} % of the goodput that a \
         receive buffer without limit gives the same sender.",
        question.rate,
        percent(question.loss.0),
        question.queue(),
        question.mtu,
        percent(question.share)
    )
}

fn control(advice: &Advice) -> CandidateSender {
    advice.question.controls().swap_remove(0)
}

fn recommendation(advice: &Advice, better: bool) -> Introduction {
    let control = control(advice);
    let standard = control.is_standard();
    let whose = match (standard, better) {
        (true, _) => "any stack of the standard (Linux, usrsctp, WebRTC, this one)",
        (false, true) => "this stack alone, which has a sender that carries more",
        (false, false) => "this stack",
    };
    let title = format!("Advice for {whose}: {control}");
    let items = match advice.advised() {
        Some(advised) => advised_items(advice, advised, &control),
        None => {
            let lines = [
                "the search chose a setting that the evidence does not confirm with its 95 % interval",
                "ask for a smaller share, or for a longer --duration",
            ];
            vec![("none".to_owned(), lines.map(str::to_owned).to_vec())]
        }
    };
    Introduction::List { title, items }
}

/// Items of a recommendation: setting, goodput, limiting factor, measurement, and configuration.
fn advised_items(
    advice: &Advice,
    advised: &TestedSetting,
    control: &CandidateSender,
) -> Vec<(String, Vec<String>)> {
    let setting = advised.setting;
    let carried = vec![
        format!(
            "{} (95 % interval, {})",
            goodput(&advised.goodput),
            counted(advice.replications[0], "run")
        ),
        format!(
            "= {} of the {} without limit",
            share(&advised.share),
            goodput(&advice.unlimited)
        ),
    ];
    let mut items = vec![
        ("receive buffer", vec![x_of(setting.buffer)]),
        ("streams", vec![setting.streams.to_string()]),
        ("expected goodput", carried),
    ];
    if let Some(half) = advice.half() {
        let enough = match half.answer {
            ShareVerdict::Fails => "not enough",
            ShareVerdict::Open => "perhaps enough",
            ShareVerdict::Holds => "enough here, and not in the search",
        };
        let half = format!("{} of no limit: {enough}", share(&half.share));
        items.push(("half of it", vec![half]));
    }
    items.push(("limited by", limit(advised)));
    items.push(warm_up_items(advice));
    items.push(("simulated", size(advice)));
    if control.is_standard() {
        items.extend(stack_settings::of(setting));
    } else {
        let mut lines = stack_settings::here(setting.buffer.unwrap_or_default(), setting.streams);
        lines.push(format!(
            "congestion = \"{}\" at the sender",
            control.congestion
        ));
        lines.extend(recovery::settings(&control.recovery));
        items.push(("set it", lines));
    }
    items.retain(|(_, lines)| !lines.is_empty());
    let owned = items
        .into_iter()
        .map(|(name, lines)| (name.to_owned(), lines));
    owned.collect()
}

/// Measured part of the runs, and whether the sender had reached a steady state, as a name with
/// lines.
fn warm_up_items(advice: &Advice) -> (&'static str, Vec<String>) {
    let timing = advice.question.timing();
    let [begin, end] = [timing.begin, timing.end].map(|span| tenths(span.seconds()));
    let counted = format!("from {begin} to {end} s of each run");
    let more = |of: &str, drift: &Drift| {
        let (mean, half) = (drift.mean.0 * 100.0, drift.mean.1 * 100.0);
        format!("second half of that, {of}: {mean:+.1} ± {half:.1} %")
    };
    let mut lines = vec![counted, more("no limit", &advice.drift)];
    lines.extend(advice.advised().map(|it| more("advised", &it.drift)));
    if advice.has_settled() {
        return ("measured", lines);
    }
    if let Some(found) = advice.warm_up.filter(|found| !found.surely) {
        lines.push(format!(
            "without limit it had not settled after {}; a window that grows by a packet a round trip takes {} to fill link and queue",
            long(found.seen.seconds()),
            long(advice.question.filling().seconds())
        ));
    }
    lines.push("later it may carry more and use more than this buffer".to_owned());
    ("not settled", lines)
}

/// Formats seconds with one decimal, without a trailing zero.
fn tenths(seconds: f64) -> String {
    let text = format!("{seconds:.1}");
    text.trim_end_matches(".0").to_owned()
}

/// Formats a duration in minutes or hours.
fn long(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Lines about the size at which the path was simulated, and the result at full size.
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
                "at full size {} in {}:",
                goodput(&full.goodput),
                counted(full.goodput.replications, "run")
            ));
            lines.push(verdict.to_owned());
        }
        None => lines.push("not at full size, which would take too long".to_owned()),
    }
    lines
}

/// Lines about the factor that limits the recommended setting, with the numbers that show it.
fn limit(tried: &TestedSetting) -> Vec<String> {
    let (cost, half) = (tried.cost.0 * 100.0, tried.cost.1 * 100.0);
    let decimals = if tried.utilization < 10.0 { 1 } else { 0 };
    let used = format!(
        "{:.decimals$} % of the link's rate is in use",
        tried.utilization
    );
    let buffer =
        format!("a buffer without limit would change the goodput by {cost:+.1} ± {half:.1} %");
    match tried.limit {
        LimitingFactor::Link => vec![format!("the link: {used}")],
        LimitingFactor::Buffer => vec![
            "the buffer, within the share asked for".to_owned(),
            used,
            buffer,
        ],
        LimitingFactor::Congestion => {
            let window = format!(
                "congestion control: its window is {:.1} packets on average",
                tried.mean_cwnd
            );
            vec![window, used, buffer]
        }
    }
}

/// Table of the goodput by buffer and streams.
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
    let mut rows = vec![vec![String::from("buffer")]];
    let mut shown: Vec<u16> = advice
        .tried
        .iter()
        .map(|tried| tried.setting.streams)
        .collect();
    shown.dedup();
    rows[0].extend(shown.into_iter().map(|streams| counted(streams, "stream")));
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
                        (false, ShareVerdict::Holds) => '+',
                        (false, ShareVerdict::Open) => '?',
                        (false, ShareVerdict::Fails) => ' ',
                    };
                    let limit = match tried.limit {
                        LimitingFactor::Link => 'l',
                        LimitingFactor::Buffer => 'b',
                        LimitingFactor::Congestion => 'c',
                    };
                    format!("{} {limit}{mark}", with_interval(&tried.goodput, divisor))
                }),
        );
        rows.push(row);
    }
    let head = format!(
        "Goodput in {name} of {control}; {} runs of what decides (the setting found, what stood in for it, half its buffer), {} of the others",
        advice.replications[0], advice.replications[1],
    );
    let signs = "What holds it back: b buffer, c congestion control, l link; * advised, + surely enough, ? perhaps enough";
    format!("{}{}{}", fitted(&head), columns(&rows), fitted(signs))
}

/// Table of the goodput of each candidate with an unlimited buffer.
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
        scale => {
            format!(", simulated at 1/{scale} of the size (those that go by the clock: at its own)")
        }
    };
    let head = format!(
        "Candidates{size}, after 20 round trips and a second: those that grow slowly carry more later"
    );
    format!("{}{}", fitted(&head), columns(&rows))
}

/// Text about the candidates that were not tested, with the reason.
fn left_out(question: &Question) -> String {
    match question.left_out.as_slice() {
        [] => String::new(),
        names => fitted(&format!(
            "Not tried, since they go by the clock and cannot be simulated at a smaller size than this path's: {}",
            names.join(", ")
        )),
    }
}

fn doubts(advice: &Advice) -> Option<String> {
    let mut text = Vec::new();
    if let (Some(advised), Some(chosen)) = (advice.advised(), advice.search.chosen)
        && advised.setting != chosen
    {
        text.push(format!(
            "The search chose {} and {}; fresh losses did not confirm it, so that the next larger setting that they do confirm \
             is advised.",
            x_of(chosen.buffer),
            counted(chosen.streams, "stream")
        ));
    }
    if advice.search.exhausted {
        let spent = "The search spent all it may before every comparison was sure: a smaller buffer may do. Shorter lists of \
             --congestion, --profile or --streams leave more for each.";
        text.push(spent.to_owned());
    }
    (!text.is_empty()).then(|| text.join("\n"))
}

/// Text about the computing effort of the answer.
fn effort(ranking: &Ranking, first: &Advice, better: Option<&Advice>) -> String {
    let all = || [Some(first), better].into_iter().flatten();
    let found: u64 = all().map(|advice| advice.search.runs).sum();
    let confirmed: u64 = all().map(|advice| advice.effort.0).sum();
    let events: u64 = all()
        .map(|advice| advice.search.events + advice.effort.1)
        .sum();
    let warm_up = || all().filter_map(|advice| advice.warm_up);
    let start: u64 = warm_up().map(|warm_up| warm_up.runs).sum();
    let events = events + warm_up().map(|warm_up| warm_up.events).sum::<u64>();
    format!(
        "Simulated: {} to rank, {start} to see when a sender settles, {found} to find and {confirmed} to confirm; {:.1} million events.\n",
        counted(ranking.runs, "run"),
        (ranking.events + events) as f64 / 1e6
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_reported_in_minutes_and_hours() {
        assert_eq!(
            [18.0, 525.0, 13_500.0].map(long),
            ["18 s", "9 min", "3.8 h"]
        );
    }
}
