//! The specs of a question: what any user could have written, and may take and change.

use anabranch_scenario::document::{Document, Table};
use anabranch_scenario::quantity::{Size, Span};

use crate::grid::{UNLIMITED, readable};
use crate::question::{Control, Question, Setting};

/// The flow whose goodput counts.
pub const FLOW: &str = "association";
/// The metric that counts.
pub const GOODPUT: &str = "goodput";
/// The experiment that runs every candidate without limit.
pub const CANDIDATES: &str = "candidates";
/// The experiment that decides: the chosen setting, those that may stand in for it, and what they are held against.
pub const DECISION: &str = "decision";
/// The x of what the wanted share is a share of.
pub const REFERENCE: &str = "reference";
/// The x of a buffer without limit.
pub const NO_LIMIT: &str = "no limit";

/// What is to be run for the evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What the search chose.
    pub chosen: Setting,
    /// What decides, the chosen setting first, then those that may stand in for it, in their order.
    pub deciding: Vec<Setting>,
    /// Runs of each of these, of the reference, and of the chosen candidate without limit.
    pub replications: u32,
    /// The buffers that are shown around, bytes, rising.
    pub buffers: Vec<u64>,
    /// The numbers of streams that are shown with each of these, rising.
    pub streams: Vec<u16>,
    /// Runs of each point around.
    pub around: u32,
    /// The spec.
    pub spec: Document,
}

/// The experiment of a number of streams.
pub fn experiment_of(streams: u16) -> String {
    format!("streams-{streams}")
}

/// The x of a buffer.
pub fn x_of(buffer: Option<u64>) -> String {
    buffer.map_or(NO_LIMIT.to_owned(), readable)
}

/// The x of a setting that decides.
pub fn x_of_setting(setting: Setting) -> String {
    format!("{}, {}", x_of(setting.buffer), count(setting.streams))
}

/// A buffer as a spec has it; without limit it is one that is never full.
fn size_of(buffer: Option<u64>) -> Size {
    Size(buffer.unwrap_or(UNLIMITED))
}

/// Runs of settings, each a point of one experiment, in their order.
pub fn trials(question: &Question, settings: &[Setting]) -> Document {
    let controls = question.controls();
    let point = |(x, setting): (usize, &Setting)| {
        let control = &controls[setting.control];
        Table::new()
            .with("x", x)
            .with("profile", &control.profile)
            .with("congestion", &control.congestion)
            .with("streams", setting.streams)
            .with("buffer", size_of(setting.buffer))
    };
    let points: Vec<Table> = settings.iter().enumerate().map(point).collect();
    let search = experiment("search").with("sweep", [sweep("setting", points)]);
    let document = Document::new("search");
    world(document, question, &controls[0], question.streams[0], None).push("experiment", search)
}

/// An experiment all of whose points meet the same losses.
fn experiment(id: &str) -> Table {
    Table::new().with("id", id).with("common_losses", true)
}

fn sweep(name: &str, points: Vec<Table>) -> Table {
    Table::new().with("name", name).with("points", points)
}

/// Parameters, world and measures; the same for search and evidence.
fn world(
    document: Document,
    question: &Question,
    control: &Control,
    streams: u16,
    buffer: Option<u64>,
) -> Document {
    let timing = question.timing();
    // Loss is a probability, of the data direction; the delay is one way.
    let parameters = Table::new()
        .with("rate", question.rate)
        .with("delay", Span(question.rtt.0 / 2))
        .with("loss", question.loss)
        .with("queue", question.queue())
        .with("mtu", question.mtu)
        .with("message", Size(question.message()))
        .with("profile", &control.profile)
        .with("congestion", &control.congestion)
        .with("streams", streams)
        .with("buffer", size_of(buffer));
    let loss = Table::new()
        .with("model", "bernoulli")
        .with("probability", "$loss")
        .with("place", "after-queue");
    let link = Table::new()
        .with("name", "path")
        .with("between", ["sender", "receiver"])
        .with("rate", "$rate")
        .with("delay", "$delay")
        .with("queue", "$queue")
        .with("loss", Table::new().with("forward", loss));
    let workload = Table::new()
        .with("kind", "bulk")
        .with("message", "$message");
    let transport = Table::new()
        .with("protocol", "sctp")
        .with("profile", "$profile")
        .with("congestion", "$congestion")
        .with("mtu", "$mtu")
        .with("streams", "$streams")
        .with("receive_buffer", "$buffer");
    let flow = Table::new()
        .with("name", FLOW)
        .with("from", "sender")
        .with("to", "receiver")
        .with("workload", workload)
        .with("transport", transport);
    let named = |name: &str| Table::new().with("name", name);
    let measure = |metric: &str| Table::new().with("metric", metric);
    // After the first slow start.
    let window = [timing.begin, timing.end];
    let of_flow = |metric: &str| measure(metric).with("flow", FLOW);
    let utilization = measure("link_utilization")
        .with("link", "path")
        .with("counting", "wire")
        .with("window", window);
    document
        .table("parameters", parameters)
        .table("world", Table::new().with("duration", timing.end))
        .push("node", named("sender"))
        .push("node", named("receiver"))
        .push("link", link)
        .push("flow", flow)
        .push("measure", of_flow(GOODPUT).with("window", window))
        .push("measure", utilization)
        .push("measure", of_flow("mean_cwnd").with("window", window))
        .push("measure", of_flow("timeouts"))
}

/// What the evidence is to run, with what its text needs.
struct Wanted<'a> {
    question: &'a Question,
    evidence: &'a Evidence,
    /// The candidates, and which of them is the reference.
    controls: Vec<Control>,
    best: usize,
}

impl Wanted<'_> {
    /// The candidate that the search chose.
    fn chosen(&self) -> &Control {
        &self.controls[self.evidence.chosen.control]
    }
}

/// The spec of the evidence; the candidate `best` without limit is the reference.
pub fn evidence(question: &Question, best: usize, evidence: &Evidence) -> Document {
    let wanted = Wanted {
        question,
        evidence,
        controls: question.controls(),
        best,
    };
    let Setting {
        streams, buffer, ..
    } = evidence.chosen;
    let document = world(head(&wanted), question, wanted.chosen(), streams, buffer);
    let document = candidates(decision(document, &wanted), &wanted);
    let streams = evidence.streams.iter();
    let document = streams.fold(document, |document, &streams| {
        buffers(document, &wanted, streams)
    });
    let document = tables(recommended(document, &wanted), &wanted);
    figures(document, &wanted)
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
        |about: &str, text: String| Table::new().with("about", about).with("text", text);
    let path = format!(
        "One link with a drop-tail queue of {} at the sender's side. Each packet of the data direction is lost for itself with one probability; SACKs are not lost. Nobody else uses the link.",
        wanted.question.queue()
    );
    let applications = format!(
        "The sender always has a message of {} more, spread over its streams in turn; the receiver reads at once what can be delivered.",
        Size(wanted.question.message())
    );
    let limit = format!(
        "A buffer of 1 GiB stands for one without limit. Goodput is counted from {} to {}, after the first slow start.",
        timing.begin, timing.end
    );
    let title =
        format!("Which receive buffer, how many streams? {rtt} round trip, {rate}, {loss} % lost");
    let about = format!(
        "The evidence of `anabranch advise --rtt \"{rtt}\" --rate \"{rate}\" --loss {loss}% --goodput {share}%`.\n\n  anabranch run spec.toml --seed {seed}\n\nChange what you like and run it again. Equal replications of all experiments meet the same random stream of losses."
    );
    Document::new("advice")
        .head(&about)
        .with("title", title)
        .push("assumption", assumption("the path", path))
        .push("assumption", assumption("the applications", applications))
        .push("assumption", assumption("no limit", limit))
}

/// A share in percent, without needless digits.
pub fn percent(share: f64) -> String {
    let text = format!("{:.6}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn decision(document: Document, wanted: &Wanted<'_>) -> Document {
    let Control {
        profile,
        congestion,
    } = &wanted.controls[wanted.best];
    let at = |x: &str| Table::new().with("x", x);
    let reference = at(REFERENCE)
        .with("profile", profile)
        .with("congestion", congestion)
        .with("streams", wanted.question.streams[0])
        .with("buffer", size_of(None));
    let mut points = vec![reference, at(NO_LIMIT).with("buffer", size_of(None))];
    points.extend(wanted.evidence.deciding.iter().map(|&setting| {
        at(&x_of_setting(setting))
            .with("streams", setting.streams)
            .with("buffer", size_of(setting.buffer))
    }));
    let title = format!("What decides, against {profile} {congestion} without limit");
    let decision = experiment(DECISION)
        .with("title", title)
        .with("replications", wanted.evidence.replications)
        .with("sweep", [sweep("setting", points)]);
    document
        .comment(
            "experiment",
            "What decides: the setting that the search chose, those that may stand in for it, and the best candidate without limit.",
        )
        .push("experiment", decision)
}

fn candidates(document: Document, wanted: &Wanted<'_>) -> Document {
    let parameters = Table::new()
        .with("streams", wanted.question.streams[0])
        .with("buffer", size_of(None));
    let point = |control: &Control| {
        Table::new()
            .with("x", control.to_string())
            .with("profile", &control.profile)
            .with("congestion", &control.congestion)
    };
    let points = wanted.controls.iter().map(point).collect();
    let candidates = experiment(CANDIDATES)
        .with(
            "title",
            "Every profile and congestion control with a buffer without limit",
        )
        .with("replications", wanted.evidence.around)
        .with("parameters", parameters)
        .with("sweep", [sweep("candidate", points)]);
    document
        .comment(
            "experiment",
            "Every candidate with a buffer without limit: the asked share is a share of what the best of them carries.",
        )
        .push("experiment", candidates)
}

fn buffers(document: Document, wanted: &Wanted<'_>, streams: u16) -> Document {
    let shown = wanted.evidence.buffers.iter().copied().map(Some);
    let point = |buffer| {
        Table::new()
            .with("x", x_of(buffer))
            .with("buffer", size_of(buffer))
    };
    let points = shown.chain([None]).map(point).collect();
    let sweep = sweep("buffer", points).with("label", "receive buffer");
    let title = format!("{} of {}", count(streams), wanted.chosen());
    let buffers = experiment(&experiment_of(streams))
        .with("title", title)
        .with("replications", wanted.evidence.around)
        .with("parameters", Table::new().with("streams", streams))
        .with("sweep", [sweep]);
    document.push("experiment", buffers)
}

fn recommended(document: Document, wanted: &Wanted<'_>) -> Document {
    let record = Table::new()
        .with("flow", FLOW)
        .with("probes", ["cwnd", "peer_rwnd"])
        .with("window", window(wanted.question));
    let recommended = experiment("recommended")
        .with("title", "The windows with the buffer that the search chose")
        .with("record", [record]);
    document
        .comment(
            "experiment",
            "One run of what the search chose, to look at.",
        )
        .push("experiment", recommended)
}

/// A part of the run long enough to see some losses, and short enough to see each.
fn window(question: &Question) -> [Span; 2] {
    let timing = question.timing();
    let end = (timing.begin.0 + 60 * question.rtt.0.max(20_000_000)).min(timing.end.0);
    [timing.begin, Span(end)]
}

fn tables(document: Document, wanted: &Wanted<'_>) -> Document {
    let control = wanted.chosen();
    let row =
        |series: &str, metric: &str| Table::new().with("series", series).with("metric", metric);
    let rows = [
        row(FLOW, GOODPUT),
        row("all", "link_utilization_wire"),
        row(FLOW, "mean_cwnd"),
        row(FLOW, "timeouts"),
    ];
    let table = |id: &str, title: &str| {
        Table::new()
            .with("id", id)
            .with("title", title)
            .with("row", &rows)
    };
    let document = document
        .push("table", table(DECISION, "What decides"))
        .push(
            "table",
            table(CANDIDATES, "Every candidate with a buffer without limit"),
        );
    let streams = wanted.evidence.streams.iter();
    streams.fold(document, |document, &streams| {
        let title = format!("{control}, {}", count(streams));
        document.push("table", table(&experiment_of(streams), &title))
    })
}

/// The figure of what was tried.
pub const FIGURE: &str = "goodput";

fn figures(document: Document, wanted: &Wanted<'_>) -> Document {
    let evidence = wanted.evidence;
    let chosen = (x_of(evidence.chosen.buffer), count(evidence.chosen.streams));
    let of_streams = |&streams: &u16| {
        Table::new()
            .with("label", count(streams))
            .with("series", FLOW)
            .with("metric", GOODPUT)
            .with("experiment", experiment_of(streams))
    };
    let tried = Table::new()
        .with("id", FIGURE)
        .with(
            "title",
            format!("Goodput by receive buffer, {}", wanted.chosen()),
        )
        .with("kind", "sweep")
        .with("experiment", experiment_of(evidence.streams[0]))
        .with(
            "caption",
            format!(
                "Means with 95 % intervals over {} runs. The search chose {} with {}.",
                evidence.around, chosen.0, chosen.1
            ),
        )
        .with(
            "curve",
            evidence.streams.iter().map(of_streams).collect::<Vec<_>>(),
        );
    let curve = |label: &str, probe: &str, style: &str| {
        Table::new()
            .with("label", label)
            .with("flow", FLOW)
            .with("probe", probe)
            .with("unit", "KiB")
            .with("style", style)
    };
    let title = format!(
        "Congestion window and the sender's view of the receiver's window, {}, {}",
        chosen.0, chosen.1
    );
    let windows = Table::new()
        .with("id", "windows")
        .with("title", title)
        .with("kind", "time")
        .with("experiment", "recommended")
        .with("window", window(wanted.question))
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

/// So many streams, in words.
pub fn count(streams: u16) -> String {
    format!("{streams} stream{}", if streams == 1 { "" } else { "s" })
}
