//! Generation of specs for a question. They are ordinary specs, which a user could have written and
//! can modify.

use std::collections::VecDeque;

use anabranch_scenario::document::{Document, SpecTable};
use anabranch_scenario::quantity::{Size, TimeSpan};
use anabranch_settings::counted;
use anabranch_transport::time::SECOND;

use crate::discipline::{self, DROP_TAIL};
use crate::grid::readable;
use crate::question::{CandidateSender, Question, TunedSetting};
use crate::recovery;

/// Name of the flow whose goodput is measured.
pub const FLOW: &str = "association";
/// Name of the metric.
pub const GOODPUT: &str = "goodput";
/// Id of the deciding experiment, which contains the chosen setting, its possible replacements, and
/// the reference.
pub const DECISION: &str = "decision";
/// Text for an unlimited buffer on the x axis; its goodput is the reference of the requested share.
pub const NO_LIMIT: &str = "no limit";

/// Start of the header comment of every evidence spec.
pub const ABOUT: &str = "The evidence of `anabranch advise";

/// Plan of the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The setting that the search has chosen.
    pub chosen: TunedSetting,
    /// Deciding settings: the chosen one, then the replacements that were added, in their order,
    /// then half of the chosen buffer.
    pub deciding: Vec<TunedSetting>,
    /// Further replacements if no setting is confirmed, in order; [`Evidence::fall_back`] adds them
    /// one by one.
    pub waiting: VecDeque<TunedSetting>,
    /// Number of runs of each deciding setting, and of the reference.
    pub replications: u32,
    /// Surrounding buffers in ascending order, bytes.
    pub buffers: Vec<u64>,
    /// Numbers of streams that are shown with each of these buffers, in ascending order.
    pub streams: Vec<u16>,
    /// Number of runs of each surrounding point.
    pub around: u32,
    /// Goodput with an unlimited buffer in the search, bit/s.
    pub goodput: f64,
}

/// Id of the experiment for a number of streams.
pub fn experiment_of(streams: u16) -> String {
    format!("streams-{streams}")
}

/// Text for a buffer on the x axis.
pub fn x_of(buffer: Option<u64>) -> String {
    buffer.map_or(NO_LIMIT.to_owned(), readable)
}

/// Text for a deciding setting on the x axis.
pub fn x_of_setting(setting: TunedSetting) -> String {
    format!(
        "{}, {}",
        x_of(setting.buffer),
        counted(setting.streams, "stream")
    )
}

/// Spec for runs of settings. Each setting is a point of one experiment, in order.
pub fn trials(question: &Question, settings: &[TunedSetting]) -> Document {
    let controls = question.controls();
    let point = |(x, setting): (usize, &TunedSetting)| {
        let control = &controls[setting.control];
        SpecTable::new()
            .with("x", x)
            .with("profile", &control.profile)
            .with("congestion", &control.congestion)
            .with("rack", recovery::by_name(&control.recovery).rack)
            .with("pacing", pacing(control))
            .with("streams", setting.streams)
            .with("buffer", question.simulated_buffer(setting.buffer))
    };
    let points: Vec<SpecTable> = settings.iter().enumerate().map(point).collect();
    let search = experiment("search").with("sweep", [sweep("setting", points)]);
    let document = Document::new("search");
    world(document, question, &controls[0], question.streams[0], None).push("experiment", search)
}

/// Value of the setting `pacing` for a sender.
fn pacing(control: &CandidateSender) -> String {
    let factor = recovery::by_name(&control.recovery).pacing;
    factor.map_or("off".to_owned(), |factor| factor.to_string())
}

/// Name of the goodput metric for a part of a run.
pub fn goodput_in(part: &str) -> String {
    format!("{GOODPUT}_{part}")
}

/// Like [`trials`], for a single setting and with the goodput of each of `parts` equal parts of the
/// measured time.
pub fn parts(question: &Question, setting: TunedSetting, parts: u64) -> Document {
    let timing = question.timing();
    let length = (timing.end.0 - timing.begin.0) / parts;
    let of_part = |windows: SpecTable, part: u64| {
        let begin = timing.begin.0 + part * length;
        windows.with(
            &part.to_string(),
            [TimeSpan(begin), TimeSpan(begin + length)],
        )
    };
    let windows = (0..parts).fold(SpecTable::new(), of_part);
    trials(question, &[setting]).push("measure", goodput().with("windows", windows))
}

fn goodput() -> SpecTable {
    SpecTable::new().with("metric", GOODPUT).with("flow", FLOW)
}

/// Names of the two halves of the measured time.
pub const HALVES: [&str; 2] = ["first_half", "second_half"];

fn halves(question: &Question) -> SpecTable {
    let timing = question.timing();
    let middle = TimeSpan(timing.begin.0.midpoint(timing.end.0));
    let [first, second] = HALVES;
    let windows = SpecTable::new()
        .with(first, [timing.begin, middle])
        .with(second, [middle, timing.end]);
    goodput().with("windows", windows)
}

/// An experiment whose points all have the same losses.
fn experiment(id: &str) -> SpecTable {
    SpecTable::new()
        .with("id", id)
        .with("common_random_numbers", true)
}

fn sweep(name: &str, points: Vec<SpecTable>) -> SpecTable {
    SpecTable::new().with("name", name).with("points", points)
}

/// Parameters, world and measures, which search and evidence have in common.
fn world(
    document: Document,
    question: &Question,
    control: &CandidateSender,
    streams: u16,
    buffer: Option<u64>,
) -> Document {
    let timing = question.timing();
    // Losses occur only in the data direction; the delay is that of one direction.
    let parameters = SpecTable::new()
        .with("rate", question.simulated_rate())
        .with("loss", question.simulated_loss())
        .with("mtu", question.mtu)
        .with("message", Size(question.message_size()))
        .with("profile", &control.profile)
        .with("congestion", &control.congestion)
        .with("rack", recovery::by_name(&control.recovery).rack)
        .with("pacing", pacing(control))
        .with("streams", streams)
        .with("buffer", question.simulated_buffer(buffer));
    let parameters = match &question.satellites {
        None => parameters.with("delay", TimeSpan(question.rtt.0 / 2)),
        Some(satellites) => parameters.with("delay", satellites.delay()),
    };
    let parameters = match question.qdisc.as_str() {
        DROP_TAIL => parameters.with("queue", question.simulated_queue()),
        other => parameters.with("queue", discipline::table(question.link(), other)),
    };
    let loss = SpecTable::new()
        .with("model", "bernoulli")
        .with("probability", "$loss")
        .with("position", "after-queue");
    let link = SpecTable::new()
        .with("name", "path")
        .with("between", ["sender", "receiver"])
        .with("rate", "$rate")
        .with("delay", "$delay")
        .with("queue", "$queue")
        .with("loss", SpecTable::new().with("forward", loss));
    let workload = SpecTable::new()
        .with("kind", "bulk")
        .with("message", "$message");
    let transport = SpecTable::new()
        .with("protocol", "sctp")
        .with("profile", "$profile")
        .with("congestion", "$congestion")
        .with("rack", "$rack")
        .with("proportional_rate_reduction", "$rack")
        .with("pacing", "$pacing")
        .with("mtu", "$mtu")
        .with("streams", "$streams")
        .with("receive_buffer", "$buffer");
    let flow = SpecTable::new()
        .with("name", FLOW)
        .with("from", "sender")
        .with("to", "receiver")
        .with("workload", workload)
        .with("transport", transport);
    let named = |name: &str| SpecTable::new().with("name", name);
    let measure = |metric: &str| SpecTable::new().with("metric", metric);
    // The measurement window starts after the warm-up.
    let window = [timing.begin, timing.end];
    let of_flow = |metric: &str| measure(metric).with("flow", FLOW);
    let utilization = measure("link_utilization")
        .with("link", "path")
        .with("counting", "wire")
        .with("window", window);
    document
        .table("parameters", parameters)
        .table("world", SpecTable::new().with("duration", timing.end))
        .push("node", named("sender"))
        .push("node", named("receiver"))
        .push("link", link)
        .push("flow", flow)
        .push("measure", goodput().with("window", window))
        .push("measure", utilization)
        .push("measure", of_flow("mean_cwnd").with("window", window))
        .push("measure", of_flow("timeouts"))
}

/// Data from which an evidence spec is generated.
struct Wanted<'a> {
    question: &'a Question,
    evidence: &'a Evidence,
    /// The setting that the figures and the recorded run show.
    shown: TunedSetting,
    control: CandidateSender,
}

impl Evidence {
    /// Spec with only the deciding experiment.
    pub fn decision(&self, question: &Question) -> Document {
        self.spec(question, self.chosen, |document, _| document)
    }

    /// The whole spec, including the surroundings of `shown`: the recommended setting, or the
    /// chosen one if no setting is recommended.
    pub fn whole(&self, question: &Question, shown: TunedSetting) -> Document {
        self.spec(question, shown, |document, wanted| {
            let streams = self.streams.iter();
            let document = streams.fold(document, |document, &streams| {
                buffers(document, wanted, streams)
            });
            figures(tables(recommended(document, wanted), wanted), wanted)
        })
    }

    fn spec(
        &self,
        question: &Question,
        shown: TunedSetting,
        rest: impl FnOnce(Document, &Wanted<'_>) -> Document,
    ) -> Document {
        let wanted = Wanted {
            question,
            evidence: self,
            shown,
            control: question.controls().swap_remove(shown.control),
        };
        let TunedSetting {
            streams, buffer, ..
        } = shown;
        let document = world(head(&wanted), question, &wanted.control, streams, buffer)
            .push("measure", halves(question));
        rest(decision(document, &wanted), &wanted)
    }
}

fn head(wanted: &Wanted<'_>) -> Document {
    let Question {
        rtt,
        rate,
        loss,
        share,
        seed,
        ..
    } = wanted.question;
    let (loss, share) = (percent(loss.0), percent(*share));
    let timing = wanted.question.timing();
    let assumption =
        |about: &str, text: String| SpecTable::new().with("about", about).with("text", text);
    let path = format!(
        "One link with a {} queue of {} at the sender's side. Each packet of the data direction is lost for itself with one probability; SACKs are not lost. Nobody else uses the link.",
        wanted.question.qdisc,
        wanted.question.queue()
    );
    let path = path + over_satellites(wanted.question);
    let path = path + &scaled(wanted.question);
    let applications = format!(
        "The sender always has a message of {} more, spread over its streams in turn; the receiver reads at once what can be delivered.",
        Size(wanted.question.message_size())
    );
    let limit = format!(
        "A buffer of 1 GiB stands for one without limit. Goodput is counted from {} to {}, after what was seen to belong to the start.",
        timing.begin, timing.end
    );
    let whence = match &wanted.question.satellites {
        None => format!("--rtt \"{rtt}\""),
        Some(satellites) => satellites.options(),
    };
    let title =
        format!("Which receive buffer, how many streams? {rtt} round trip, {rate}, {loss} % lost");
    let about = format!(
        "{ABOUT} {whence} --rate \"{rate}\" --loss {loss}% --goodput {share}%`.\n\n  anabranch run spec.toml --seed {seed}\n\nChange what you like and run it again. Equal replications of all experiments meet the same random stream of losses."
    );
    Document::new("advice")
        .head(&about)
        .with("title", title)
        .push("assumption", assumption("the path", path))
        .push("assumption", assumption("the applications", applications))
        .push("assumption", assumption("no limit", limit))
}

/// Note for the reader about satellite paths.
fn over_satellites(question: &Question) -> &'static str {
    match question.satellites {
        None => "",
        Some(_) => {
            " Its delay is that of the shortest path over the shell, computed anew each interval; every run begins at the epoch, so that all \
             runs see the same satellites."
        }
    }
}

/// Formats a share in percent without trailing zeros.
pub fn percent(share: f64) -> String {
    let text = format!("{:.6}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn decision(document: Document, wanted: &Wanted<'_>) -> Document {
    let question = wanted.question;
    let point = |x: String, setting: TunedSetting| {
        SpecTable::new()
            .with("x", x)
            .with("streams", setting.streams)
            .with("buffer", question.simulated_buffer(setting.buffer))
    };
    let unlimited = TunedSetting {
        streams: question.streams[0],
        buffer: None,
        ..wanted.evidence.chosen
    };
    let mut points = vec![point(x_of(None), unlimited)];
    let deciding = wanted.evidence.deciding.iter();
    points.extend(deciding.map(|&setting| point(x_of_setting(setting), setting)));
    let decision = experiment(DECISION)
        .with("title", "What decides, against a buffer without limit")
        .with("replications", wanted.evidence.replications)
        .with("sweep", [sweep("setting", points)]);
    document
        .comment(
            "experiment",
            "What decides: the setting that the search chose, those that had to stand in for it, half of its buffer, and one without limit.",
        )
        .push("experiment", decision)
}

fn buffers(document: Document, wanted: &Wanted<'_>, streams: u16) -> Document {
    let shown = wanted.evidence.buffers.iter().copied().map(Some);
    let point = |buffer| {
        SpecTable::new()
            .with("x", x_of(buffer))
            .with("buffer", wanted.question.simulated_buffer(buffer))
    };
    let points = shown.chain([None]).map(point).collect();
    let sweep = sweep("buffer", points).with("label", "receive buffer");
    let title = format!("{} of {}", counted(streams, "stream"), wanted.control);
    let buffers = experiment(&experiment_of(streams))
        .with("title", title)
        .with("replications", wanted.evidence.around)
        .with("parameters", SpecTable::new().with("streams", streams))
        .with("sweep", [sweep]);
    document.push("experiment", buffers)
}

fn recommended(document: Document, wanted: &Wanted<'_>) -> Document {
    let record = SpecTable::new()
        .with("flow", FLOW)
        .with("probes", ["cwnd", "peer_rwnd"])
        .with("window", window(wanted));
    let recommended = experiment("recommended")
        .with("title", "The windows with the advised setting")
        .with("record", [record]);
    document
        .comment("experiment", "One run of what is advised, to look at.")
        .push("experiment", recommended)
}

/// Number of packets in the figure of the window; each is a point of both curves.
const SHOWN_PACKETS: f64 = 2_000.0;

/// Part of the run for a figure: long enough to contain some losses, and short enough to show each
/// loss.
fn window(wanted: &Wanted<'_>) -> [TimeSpan; 2] {
    let question = wanted.question;
    let timing = question.timing();
    let goodput = (wanted.evidence.goodput / f64::from(question.scale)).max(1.0);
    let packets = SHOWN_PACKETS * question.mtu.0 as f64 * 8.0 / goodput * SECOND as f64;
    let trips = 60 * question.rtt.0.max(20_000_000);
    let length = trips.min(packets as u64).max(2 * question.rtt.0);
    [
        timing.begin,
        TimeSpan((timing.begin.0 + length).min(timing.end.0)),
    ]
}

fn tables(document: Document, wanted: &Wanted<'_>) -> Document {
    let control = &wanted.control;
    let row = |series: &str, metric: &str| {
        SpecTable::new()
            .with("series", series)
            .with("metric", metric)
    };
    let rows = [
        row(FLOW, GOODPUT),
        row("all", "link_utilization_wire"),
        row(FLOW, "mean_cwnd"),
        row(FLOW, "timeouts"),
    ];
    let table = |id: &str, title: &str| {
        SpecTable::new()
            .with("id", id)
            .with("title", title)
            .with("row", &rows)
    };
    let document = document.push("table", table(DECISION, "What decides"));
    let streams = wanted.evidence.streams.iter();
    streams.fold(document, |document, &streams| {
        let title = format!("{control}, {}", counted(streams, "stream"));
        document.push("table", table(&experiment_of(streams), &title))
    })
}

/// Id of the figure with all tested settings.
pub const FIGURE: &str = "goodput";

fn figures(document: Document, wanted: &Wanted<'_>) -> Document {
    let evidence = wanted.evidence;
    let shown = (
        x_of(wanted.shown.buffer),
        counted(wanted.shown.streams, "stream"),
    );
    let of_streams = |&streams: &u16| {
        SpecTable::new()
            .with("label", counted(streams, "stream"))
            .with("series", FLOW)
            .with("metric", GOODPUT)
            .with("experiment", experiment_of(streams))
    };
    let tried = SpecTable::new()
        .with("id", FIGURE)
        .with(
            "title",
            format!("Goodput by receive buffer, {}", wanted.control),
        )
        .with("kind", "sweep")
        .with("experiment", experiment_of(evidence.streams[0]))
        .with(
            "caption",
            format!(
                "Means with 95 % intervals over {} runs. Advised: {}, {}.{}",
                evidence.around,
                shown.0,
                shown.1,
                scaled(wanted.question)
            ),
        )
        .with(
            "curve",
            evidence.streams.iter().map(of_streams).collect::<Vec<_>>(),
        );
    let curve = |label: &str, probe: &str, style: &str| {
        SpecTable::new()
            .with("label", label)
            .with("flow", FLOW)
            .with("probe", probe)
            .with("unit", "KiB")
            .with("style", style)
    };
    let title = format!(
        "Congestion window and the sender's view of the receiver's window, {}, {}",
        shown.0, shown.1
    );
    let windows = SpecTable::new()
        .with("id", "windows")
        .with("title", title)
        .with("kind", "time")
        .with("experiment", "recommended")
        .with("window", window(wanted))
        .with("y_label", "KiB")
        .with(
            "caption",
            "Where the receiver's window touches 0 the buffer holds the sender back; elsewhere the congestion window does.",
        )
        .with(
            "curve",
            [
                curve("receiver's window", "peer_rwnd", "dashed-step"),
                curve("congestion window", "cwnd", "step"),
            ],
        );
    document.push("figure", tried).push("figure", windows)
}

/// Note for the reader about a path that was simulated at a smaller size.
pub fn scaled(question: &Question) -> String {
    match question.scale {
        1 => String::new(),
        scale => format!(
            " Simulated at 1/{scale} of the size: rates, windows and what is sent are {scale} times as large on the path; buffers are named by \
             their size there."
        ),
    }
}
