//! What `perf` prints: lines as it goes and a summary, or one document in iperf3's shape.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::wire::arguments::Perf;

/// How far an association is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Bytes that reached the other end: acknowledged, or received here.
    pub bytes: u64,
    pub messages: u64,
    pub retransmitted: u64,
    pub timeouts: u64,
    pub cwnd: u64,
    /// Seconds.
    pub srtt: Option<f64>,
}

impl Progress {
    /// Both together; of the round-trip times the longer.
    fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            messages: self.messages + other.messages,
            retransmitted: self.retransmitted + other.retransmitted,
            timeouts: self.timeouts + other.timeouts,
            cwnd: self.cwnd + other.cwnd,
            srtt: match (self.srtt, other.srtt) {
                (Some(one), Some(two)) => Some(one.max(two)),
                (one, two) => one.or(two),
            },
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
        let first = each[0];
        let done = each[1..]
            .iter()
            .fold(first.done, |sum, line| sum.and(line.done));
        Self {
            sum: Line { done, ..first },
            each,
        }
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
    start: Value,
    intervals: Vec<Value>,
}

impl Report {
    pub fn begin(arguments: &Perf, peers: &Peers) -> Result<Self, Failure> {
        let start = json!({
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
        });
        if !arguments.json {
            let mut out = io::stdout().lock();
            let direction = if arguments.reverse { "from" } else { "to" };
            let associations = match arguments.parallel {
                1 => String::new(),
                many => format!("{many} associations, "),
            };
            writeln!(
                out,
                "{direction} {}, {associations}{} streams, messages of {}",
                peers.paths.join(", "),
                peers.streams,
                arguments.message
            )?;
            writeln!(
                out,
                "{}{:>15}  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
                if arguments.parallel > 1 { "[ ID] " } else { "" },
                "Interval",
                "Transfer",
                "Bitrate",
                "Messages",
                "Retr",
                "Cwnd",
                "RTT"
            )?;
        }
        Ok(Self {
            json: arguments.json,
            reverse: arguments.reverse,
            start,
            intervals: Vec::new(),
        })
    }

    pub fn lines(&mut self, lines: &Lines) -> Result<(), Failure> {
        if self.json {
            self.intervals.push(lines.json());
        } else {
            writeln!(io::stdout().lock(), "{}", lines.text(""))?;
        }
        Ok(())
    }

    /// The summary; `failed` says why not everything went well.
    pub fn end(&self, whole: &Lines, failed: Option<&str>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            let mut end = whole.json();
            // What was acknowledged was received, and the other way round.
            end["sum_sent"] = end["sum"].clone();
            end["sum_received"] = end["sum"].take();
            if let Some(end) = end.as_object_mut() {
                end.remove("sum");
            }
            let mut document =
                json!({ "start": self.start, "intervals": self.intervals, "end": end });
            if let Some(failed) = failed {
                document["error"] = json!(failed);
            }
            let document = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
            writeln!(out, "{document}")?;
        } else {
            let side = if self.reverse {
                "received"
            } else {
                "acknowledged"
            };
            writeln!(out, "{}", "-".repeat(88))?;
            writeln!(out, "{}", whole.text(&format!("  {side}")))?;
        }
        Ok(())
    }
}

/// Units of sizes.
const BYTES: [&str; 4] = ["B", "KiB", "MiB", "GiB"];

/// A line as people read it.
fn text(line: &Line) -> String {
    let done = &line.done;
    let rtt = done
        .srtt
        .map_or("-".to_owned(), |srtt| format!("{:.3} ms", srtt * 1e3));
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
        done.retransmitted,
        scaled(done.cwnd as f64, 1024.0, BYTES),
        rtt
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
