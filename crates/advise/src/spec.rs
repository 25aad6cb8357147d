//! The specs of a question: what any user could have written, and may take and change.

use std::fmt::Write;

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
    pub spec: String,
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
fn size_of(buffer: Option<u64>) -> String {
    Size(buffer.unwrap_or(UNLIMITED)).to_string()
}

/// Runs of settings, each a point of one experiment, in their order.
pub fn trials(question: &Question, settings: &[Setting]) -> String {
    let controls = question.controls();
    let mut text = String::from("anabranch = 1\nname = \"search\"\n");
    text.push_str(&world(question, &controls[0], question.streams[0], None));
    text.push_str("\n[[experiment]]\nid = \"search\"\ncommon_losses = true\n[[experiment.sweep]]\nname = \"setting\"\npoints = [\n");
    for (x, setting) in settings.iter().enumerate() {
        let control = &controls[setting.control];
        let _ = writeln!(
            text,
            "    {{ x = {x}, profile = \"{}\", congestion = \"{}\", streams = {}, buffer = \"{}\" }},",
            control.profile,
            control.congestion,
            setting.streams,
            size_of(setting.buffer)
        );
    }
    text.push_str("]\n");
    text
}

/// Parameters, world and measures; the same for search and evidence.
fn world(question: &Question, control: &Control, streams: u16, buffer: Option<u64>) -> String {
    let timing = question.timing();
    let message = question.message();
    format!(
        r#"
[parameters]
rate = "{rate}"
delay = "{delay}"                 # one way, half of the round trip
loss = {loss:?}                   # probability, data direction
queue = "{queue}"
mtu = "{mtu}"
message = "{message}"
profile = "{profile}"
congestion = "{congestion}"
streams = {streams}
buffer = "{buffer}"

[world]
duration = "{end}"

[[node]]
name = "sender"

[[node]]
name = "receiver"

[[link]]
name = "path"
between = ["sender", "receiver"]
rate = "$rate"
delay = "$delay"
queue = "$queue"
loss = {{ forward = {{ model = "bernoulli", probability = "$loss", place = "after-queue" }} }}

[[flow]]
name = "{FLOW}"
from = "sender"
to = "receiver"
workload = {{ kind = "bulk", message = "$message" }}

[flow.transport]
protocol = "sctp"
profile = "$profile"
congestion = "$congestion"
mtu = "$mtu"
streams = "$streams"
receive_buffer = "$buffer"

[[measure]]
metric = "{GOODPUT}"
flow = "{FLOW}"
window = ["{begin}", "{end}"]     # after the first slow start

[[measure]]
metric = "link_utilization"
link = "path"
counting = "wire"
window = ["{begin}", "{end}"]

[[measure]]
metric = "mean_cwnd"
flow = "{FLOW}"
window = ["{begin}", "{end}"]

[[measure]]
metric = "timeouts"
flow = "{FLOW}"
"#,
        rate = question.rate,
        delay = Span(question.rtt.0 / 2),
        loss = question.loss.0,
        queue = question.queue(),
        mtu = question.mtu,
        message = Size(message),
        profile = control.profile,
        congestion = control.congestion,
        buffer = size_of(buffer),
        begin = timing.begin,
        end = timing.end,
    )
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
pub fn evidence(question: &Question, best: usize, evidence: &Evidence) -> String {
    let wanted = Wanted {
        question,
        evidence,
        controls: question.controls(),
        best,
    };
    let mut text = head(&wanted);
    let Setting {
        streams, buffer, ..
    } = evidence.chosen;
    text.push_str(&world(question, wanted.chosen(), streams, buffer));
    decision(&mut text, &wanted);
    candidates(&mut text, &wanted);
    for &streams in &evidence.streams {
        buffers(&mut text, &wanted, streams);
    }
    recommended(&mut text, &wanted);
    tables(&mut text, &wanted);
    figures(&mut text, &wanted);
    text
}

fn head(wanted: &Wanted<'_>) -> String {
    let Question {
        rtt,
        rate,
        loss,
        share,
        seed,
        ..
    } = wanted.question;
    format!(
        r#"# The evidence of `anabranch advise --rtt "{rtt}" --rate "{rate}" --loss {loss}% --goodput {share}%`.
#
#   anabranch run spec.toml --seed {seed}
#
# Change what you like and run it again. Equal replications of all experiments meet the same random stream of losses.

anabranch = 1
name = "advice"
title = "Which receive buffer, how many streams? {rtt} round trip, {rate}, {loss} % lost"

[[assumption]]
about = "the path"
text = "One link with a drop-tail queue of {queue} at the sender's side. Each packet of the data direction is lost for itself with one probability; SACKs are not lost. Nobody else uses the link."

[[assumption]]
about = "the applications"
text = "The sender always has a message of {message} more, spread over its streams in turn; the receiver reads at once what can be delivered."

[[assumption]]
about = "no limit"
text = "A buffer of 1 GiB stands for one without limit. Goodput is counted from {begin} to {end}, after the first slow start."
"#,
        loss = percent(loss.0),
        share = percent(*share),
        queue = wanted.question.queue(),
        message = Size(wanted.question.message()),
        begin = wanted.question.timing().begin,
        end = wanted.question.timing().end,
    )
}

/// A share in percent, without needless digits.
pub fn percent(share: f64) -> String {
    let text = format!("{:.6}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn decision(text: &mut String, wanted: &Wanted<'_>) {
    let Control {
        profile,
        congestion,
    } = &wanted.controls[wanted.best];
    let _ = write!(
        text,
        r#"
# What decides: the setting that the search chose, those that may stand in for it, and the best candidate without limit.
[[experiment]]
id = "{DECISION}"
title = "What decides, against {profile} {congestion} without limit"
replications = {}
common_losses = true
[[experiment.sweep]]
name = "setting"
points = [
    {{ x = "{REFERENCE}", profile = "{profile}", congestion = "{congestion}", streams = {}, buffer = "{}" }},
    {{ x = "{NO_LIMIT}", buffer = "{}" }},
"#,
        wanted.evidence.replications,
        wanted.question.streams[0],
        size_of(None),
        size_of(None),
    );
    for &setting in &wanted.evidence.deciding {
        let _ = writeln!(
            text,
            "    {{ x = \"{}\", streams = {}, buffer = \"{}\" }},",
            x_of_setting(setting),
            setting.streams,
            size_of(setting.buffer)
        );
    }
    text.push_str("]\n");
}

fn candidates(text: &mut String, wanted: &Wanted<'_>) {
    let _ = write!(
        text,
        r#"
# Every candidate with a buffer without limit: the asked share is a share of what the best of them carries.
[[experiment]]
id = "{CANDIDATES}"
title = "Every profile and congestion control with a buffer without limit"
replications = {}
common_losses = true
parameters = {{ streams = {}, buffer = "{}" }}
[[experiment.sweep]]
name = "candidate"
points = [
"#,
        wanted.evidence.around,
        wanted.question.streams[0],
        size_of(None)
    );
    for control in &wanted.controls {
        let Control {
            profile,
            congestion,
        } = control;
        let _ = writeln!(
            text,
            "    {{ x = \"{control}\", profile = \"{profile}\", congestion = \"{congestion}\" }},"
        );
    }
    text.push_str("]\n");
}

fn buffers(text: &mut String, wanted: &Wanted<'_>, streams: u16) {
    let control = wanted.chosen();
    let _ = write!(
        text,
        r#"
[[experiment]]
id = "{}"
title = "{} of {control}"
replications = {}
common_losses = true
parameters = {{ streams = {streams} }}
[[experiment.sweep]]
name = "buffer"
label = "receive buffer"
points = [
"#,
        experiment_of(streams),
        count(streams),
        wanted.evidence.around
    );
    for buffer in wanted
        .evidence
        .buffers
        .iter()
        .copied()
        .map(Some)
        .chain([None])
    {
        let _ = writeln!(
            text,
            "    {{ x = \"{}\", buffer = \"{}\" }},",
            x_of(buffer),
            size_of(buffer)
        );
    }
    text.push_str("]\n");
}

fn recommended(text: &mut String, wanted: &Wanted<'_>) {
    let _ = write!(
        text,
        r#"
# One run of what the search chose, to look at.
[[experiment]]
id = "recommended"
title = "The windows with the buffer that the search chose"
common_losses = true

[[experiment.record]]
flow = "{FLOW}"
probes = ["cwnd", "peer_rwnd"]
window = {}
"#,
        window(wanted.question)
    );
}

/// A part of the run long enough to see some losses, and short enough to see each.
fn window(question: &Question) -> String {
    let timing = question.timing();
    let end = (timing.begin.0 + 60 * question.rtt.0.max(20_000_000)).min(timing.end.0);
    format!("[\"{}\", \"{}\"]", timing.begin, Span(end))
}

fn tables(text: &mut String, wanted: &Wanted<'_>) {
    let control = wanted.chosen();
    let mut table = |id: &str, title: String| {
        let _ = write!(
            text,
            r#"
[[table]]
id = "{id}"
title = "{title}"
row = [
    {{ series = "{FLOW}", metric = "{GOODPUT}" }},
    {{ series = "all", metric = "link_utilization_wire" }},
    {{ series = "{FLOW}", metric = "mean_cwnd" }},
    {{ series = "{FLOW}", metric = "timeouts" }},
]
"#
        );
    };
    table(DECISION, "What decides".to_owned());
    table(
        CANDIDATES,
        "Every candidate with a buffer without limit".to_owned(),
    );
    for &streams in &wanted.evidence.streams {
        table(
            &experiment_of(streams),
            format!("{control}, {}", count(streams)),
        );
    }
}

/// The figure of what was tried.
pub const FIGURE: &str = "goodput";

fn figures(text: &mut String, wanted: &Wanted<'_>) {
    let control = wanted.chosen();
    let first = experiment_of(wanted.evidence.streams[0]);
    let _ = write!(
        text,
        r#"
[[figure]]
id = "{FIGURE}"
title = "Goodput by receive buffer, {control}"
kind = "sweep"
experiment = "{first}"
caption = "Means with 95 % intervals over {} runs. The search chose {} with {}."
curve = [
"#,
        wanted.evidence.around,
        x_of(wanted.evidence.chosen.buffer),
        count(wanted.evidence.chosen.streams)
    );
    for &streams in &wanted.evidence.streams {
        let (label, experiment) = (count(streams), experiment_of(streams));
        let _ = writeln!(
            text,
            "    {{ label = \"{label}\", series = \"{FLOW}\", metric = \"{GOODPUT}\", experiment = \"{experiment}\" }},"
        );
    }
    let _ = write!(
        text,
        r#"]

[[figure]]
id = "windows"
title = "Congestion window and the sender's view of the receiver's window, {}, {}"
kind = "time"
experiment = "recommended"
window = {}
y_label = "KiB"
caption = "Where the receiver's window touches 0 the buffer holds the sender back; elsewhere the congestion window does."
curve = [
    {{ label = "receiver's window", flow = "{FLOW}", probe = "peer_rwnd", unit = "KiB", style = "dashed-step" }},
    {{ label = "congestion window", flow = "{FLOW}", probe = "cwnd", unit = "KiB", style = "step" }},
]
"#,
        x_of(wanted.evidence.chosen.buffer),
        count(wanted.evidence.chosen.streams),
        window(wanted.question)
    );
}

/// So many streams, in words.
pub fn count(streams: u16) -> String {
    format!("{streams} stream{}", if streams == 1 { "" } else { "s" })
}
