//! What `perf` prints: lines as it goes and a summary, or one document in iperf3's shape.

use std::io;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::wire::arguments::Perf;
use crate::wire::print::Printer;

/// How far an association is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Bytes that reached the other end: acknowledged, or received here.
    pub bytes: u64,
    pub messages: u64,
    /// Chunks sent again, expiries of T3-rtx, and the path in use: the sender's, which a receiver does not know.
    pub retransmitted: Option<u64>,
    pub timeouts: Option<u64>,
    /// Bytes.
    pub cwnd: Option<u64>,
    /// Seconds.
    pub srtt: Option<f64>,
}

/// `with` of both, or the one there is.
fn both<T>(one: Option<T>, two: Option<T>, with: impl Fn(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(with(one, two)),
        (one, two) => one.or(two),
    }
}

impl Progress {
    /// What was done since `last`. None of it goes back.
    pub fn since(self, last: &Self) -> Self {
        let less = |now: u64, last: u64| now.saturating_sub(last);
        Self {
            bytes: less(self.bytes, last.bytes),
            messages: less(self.messages, last.messages),
            retransmitted: both(self.retransmitted, last.retransmitted, less),
            timeouts: both(self.timeouts, last.timeouts, less),
            ..self
        }
    }

    /// Both together; of the round-trip times the longer.
    fn and(self, other: Self) -> Self {
        let sum = |one: u64, two: u64| one + two;
        Self {
            bytes: self.bytes + other.bytes,
            messages: self.messages + other.messages,
            retransmitted: both(self.retransmitted, other.retransmitted, sum),
            timeouts: both(self.timeouts, other.timeouts, sum),
            cwnd: both(self.cwnd, other.cwnd, sum),
            srtt: both(self.srtt, other.srtt, f64::max),
        }
    }
}

/// What was done in an interval; windows and times as they stand at its end.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Seconds since the beginning.
    pub from: f64,
    pub to: f64,
    pub done: Progress,
}

impl Line {
    fn bits_per_second(&self) -> f64 {
        let seconds = self.to - self.from;
        if seconds > 0.0 {
            self.done.bytes as f64 * 8.0 / seconds
        } else {
            0.0
        }
    }

    fn json(&self) -> Value {
        let seconds = self.to - self.from;
        json!({
            "start": self.from,
            "end": self.to,
            "seconds": seconds,
            "bytes": self.done.bytes,
            "bits_per_second": self.bits_per_second(),
            "messages": self.done.messages,
            "retransmits": self.done.retransmitted,
            "timeouts": self.done.timeouts,
            "snd_cwnd": self.done.cwnd,
            "rtt": self.done.srtt,
        })
    }
}

/// The same interval of several associations, and all of them together.
#[derive(Clone, Debug)]
pub struct Lines {
    each: Vec<Line>,
    sum: Line,
}

impl Lines {
    /// Lines of one interval; there is at least one.
    pub fn of(each: Vec<Line>) -> Self {
        let (first, others) = (each[0], &each[1..]);
        let done = others.iter().fold(first.done, |sum, it| sum.and(it.done));
        let to = others.iter().map(|line| line.to).fold(first.to, f64::max);
        Self {
            sum: Line { done, to, ..first },
            each,
        }
    }

    /// All associations together.
    pub fn sum(&self) -> Line {
        self.sum
    }

    /// Whether anything arrived.
    pub fn is_empty(&self) -> bool {
        self.sum.done.bytes == 0
    }

    /// Seconds it took.
    pub fn seconds(&self) -> f64 {
        self.sum.to - self.sum.from
    }

    fn json(&self) -> Value {
        let streams: Vec<Value> = self.each.iter().map(Line::json).collect();
        json!({ "streams": streams, "sum": self.sum.json() })
    }

    /// As people read it: a line for each association and, where there are several, one for all.
    fn text(&self, remark: &str) -> String {
        let several = self.each.len() > 1;
        let mut lines = Vec::new();
        for (index, line) in self.each.iter().enumerate() {
            let name = several.then(|| format!("[{:>3}] ", index + 1));
            lines.push(format!(
                "{}{}{remark}",
                name.unwrap_or_default(),
                text(line)
            ));
        }
        if several {
            lines.push(format!("[SUM] {}{remark}", text(&self.sum)));
        }
        lines.join("\n")
    }
}

/// What a whole measurement came to.
pub struct Summary {
    /// What this end knows: as the sender what was acknowledged, as the receiver what came.
    pub here: Lines,
    /// The same of all associations as the other end counted it, where it told.
    pub there: Option<Line>,
}

/// What all associations of a measurement have in common.
pub struct Peers {
    /// The peer's addresses.
    pub paths: Vec<String>,
    /// Streams outwards.
    pub streams: u16,
}

/// Writes lines, or gathers a document.
pub struct Report {
    json: bool,
    reverse: bool,
    several: bool,
    start: Value,
    intervals: Vec<Value>,
    printer: Printer,
}

impl Report {
    pub fn begin(arguments: &Perf, peers: &Peers, printer: Printer) -> Result<Self, Failure> {
        if !arguments.json {
            printer.line(heading(arguments, peers))?;
        }
        Ok(Self {
            json: arguments.json,
            reverse: arguments.reverse,
            several: arguments.parallel > 1,
            start: start(arguments, peers),
            intervals: Vec::new(),
            printer,
        })
    }

    pub fn lines(&mut self, lines: &Lines) -> Result<(), Failure> {
        if self.json {
            self.intervals.push(lines.json());
        } else {
            self.printer.line(lines.text(""))?;
        }
        Ok(())
    }

    /// The summary; `failed` says why not everything went well.
    pub fn end(self, summary: &Summary, failed: Option<&str>) -> Result<(), Failure> {
        let text = if self.json {
            let end = summary.json(self.reverse);
            let mut document =
                json!({ "start": self.start, "intervals": self.intervals, "end": end });
            if let Some(failed) = failed {
                document["error"] = json!(failed);
            }
            serde_json::to_string_pretty(&document).map_err(io::Error::from)?
        } else {
            let rule = "-".repeat(88);
            format!("{rule}\n{}", summary.text(self.reverse, self.several))
        };
        Ok(self.printer.line(text)?)
    }
}

impl Summary {
    /// As iperf3 has it: what the sender knows, and what the receiver counted. `null`: the other end did not tell.
    fn json(&self, reverse: bool) -> Value {
        let mut end = self.here.json();
        let here = end["sum"].take();
        let there = self.there.as_ref().map_or(Value::Null, Line::json);
        let (sent, received) = if reverse {
            (there, here)
        } else {
            (here, there)
        };
        if let Some(end) = end.as_object_mut() {
            end.remove("sum");
            end.insert("sum_sent".to_owned(), sent);
            end.insert("sum_received".to_owned(), received);
        }
        end
    }

    fn text(&self, reverse: bool, several: bool) -> String {
        let (here, there) = match reverse {
            true => ("received", "sent"),
            false => ("acknowledged", "received"),
        };
        let first = self.here.text(&format!("  {here}"));
        let name = if several { "[SUM] " } else { "" };
        match &self.there {
            Some(line) => format!("{first}\n{name}{}  {there}", text(line)),
            None => format!("{first}\n{name}what was {there}: the other end did not tell"),
        }
    }
}

/// What is said of a measurement before it begins.
fn start(arguments: &Perf, peers: &Peers) -> Value {
    json!({
        "version": format!("anabranch {}", env!("CARGO_PKG_VERSION")),
        "host": arguments.host,
        "paths": peers.paths,
        "streams": peers.streams,
        "message": arguments.message.0,
        "unordered": arguments.unordered,
        "test_start": {
            "protocol": "SCTP",
            "num_streams": arguments.parallel,
            "blksize": arguments.message.0,
            "bytes": arguments.bytes.map_or(0, |bytes| bytes.0),
            "duration": arguments.bytes.map_or(arguments.time.0 as f64 / 1e9, |_| 0.0),
            "reverse": u8::from(arguments.reverse),
        },
    })
}

/// The same for people, and what the columns are.
fn heading(arguments: &Perf, peers: &Peers) -> String {
    let direction = if arguments.reverse { "from" } else { "to" };
    let associations = match arguments.parallel {
        1 => String::new(),
        many => format!("{many} associations, "),
    };
    format!(
        "{direction} {}, {associations}{} streams, messages of {}\n{}{:>15}  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
        peers.paths.join(", "),
        peers.streams,
        arguments.message,
        if arguments.parallel > 1 { "[ ID] " } else { "" },
        "Interval",
        "Transfer",
        "Bitrate",
        "Messages",
        "Retr",
        "Cwnd",
        "RTT"
    )
}

/// Units of sizes.
const BYTES: [&str; 4] = ["B", "KiB", "MiB", "GiB"];

/// A line as people read it; `-`: not known at this end.
fn text(line: &Line) -> String {
    let done = &line.done;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:>6.2}-{:<6.2} s  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
        line.from,
        line.to,
        scaled(done.bytes as f64, 1024.0, BYTES),
        scaled(
            line.bits_per_second(),
            1000.0,
            ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]
        ),
        done.messages,
        or_dash(done.retransmitted.map(|chunks| chunks.to_string())),
        or_dash(done.cwnd.map(|cwnd| scaled(cwnd as f64, 1024.0, BYTES))),
        or_dash(done.srtt.map(|srtt| format!("{:.3} ms", srtt * 1e3)))
    )
}

/// A number with the largest of the units that leaves it at least 1.
fn scaled(mut value: f64, step: f64, units: [&str; 4]) -> String {
    let mut unit = units[0];
    for larger in &units[1..] {
        if value < step {
            break;
        }
        value /= step;
        unit = larger;
    }
    format!("{value:.2} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_fits() {
        let bits = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"];
        assert_eq!(scaled(999.0, 1000.0, bits), "999.00 bit/s");
        assert_eq!(scaled(2_500_000.0, 1000.0, bits), "2.50 Mbit/s");
        assert_eq!(scaled(7e12, 1000.0, bits), "7000.00 Gbit/s");
    }

    fn line(from: f64, to: f64, bytes: u64, srtt: Option<f64>) -> Line {
        let done = Progress {
            bytes,
            srtt,
            ..Progress::default()
        };
        Line { from, to, done }
    }

    #[test]
    fn a_rate_is_what_was_done_over_how_long() {
        assert_eq!(line(1.0, 3.0, 1_000, None).bits_per_second(), 4_000.0);
        assert_eq!(line(1.0, 1.0, 1_000, None).bits_per_second(), 0.0);
    }

    /// A receiver's own window and round-trip times are of a path that carries no data, and are not shown for the sender's.
    #[test]
    fn what_this_end_does_not_know_is_a_dash_or_null() {
        let received = line(0.0, 1.0, 100, None);
        let text = text(&received);
        assert_eq!(
            text.split_whitespace().filter(|it| *it == "-").count(),
            3,
            "{text}"
        );
        let json = received.json();
        for key in ["retransmits", "timeouts", "snd_cwnd", "rtt"] {
            assert_eq!(json[key], Value::Null, "{json}");
        }
    }

    /// What the receiver counted is its own count, and nobody's where it did not tell.
    #[test]
    fn the_summary_has_the_count_of_either_end() {
        let here = || Lines::of(vec![line(0.0, 2.0, 100, None)]);
        let there = Some(line(0.0, 1.5, 90, None));
        let summary = Summary {
            here: here(),
            there,
        };
        let forward = summary.json(false);
        assert_eq!(forward["sum_sent"]["bytes"], 100);
        assert_eq!(forward["sum_received"]["bytes"], 90);
        assert_eq!(forward["sum_received"]["seconds"], 1.5);
        let reverse = summary.json(true);
        assert_eq!(reverse["sum_sent"]["bytes"], 90);
        assert_eq!(reverse["sum_received"]["bytes"], 100);
        let silent = Summary {
            here: here(),
            there: None,
        };
        assert_eq!(silent.json(false)["sum_received"], Value::Null);
        assert!(silent.text(false, false).contains("did not tell"));
    }

    #[test]
    fn associations_add_up() {
        let lines = Lines::of(vec![
            line(0.0, 2.0, 100, None),
            line(0.0, 2.0, 300, Some(0.1)),
        ]);
        assert_eq!(lines.sum.done.bytes, 400);
        assert_eq!(lines.sum.done.srtt, Some(0.1));
        assert_eq!(lines.sum.bits_per_second(), 1_600.0);
        let text = lines.text("");
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.starts_with("[  1]") && text.contains("[SUM]"),
            "{text}"
        );
        let one = Lines::of(vec![line(0.0, 2.0, 100, None)]).text("  received");
        assert!(
            one.starts_with("  0.00-2.00") && one.ends_with("received"),
            "{one}"
        );
    }
}
