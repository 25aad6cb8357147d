//! Output of `perf`: lines during the measurement and a summary, or one JSON document in iperf3's
//! format.

use std::io;

use anabranch_net::PathStatus;
use anabranch_settings::counted;
use serde_json::{Value, json};

use super::cpu_time::CpuUsage;
use super::paths::{path_json, path_text};
use super::scale::{BITS, BYTES, scaled};
use crate::failure::Failure;
use crate::net::arguments::Perf;
use crate::net::in_brackets;
use crate::net::print::Printer;

/// Progress of an association.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AssociationProgress {
    /// Bytes that have reached the receiver: acknowledged if this end sends, received if it
    /// receives.
    pub bytes: u64,
    pub messages: u64,
    /// Retransmitted chunks, and expiries of T3-rtx; `None` if this end is the receiver, which
    /// cannot know them.
    pub retransmitted: Option<u64>,
    pub timeouts: Option<u64>,
    /// Number of messages that the sender abandoned.
    pub abandoned: Option<u64>,
    /// Congestion window, bytes.
    pub cwnd: Option<u64>,
    /// Smoothed round-trip time, seconds.
    pub srtt: Option<f64>,
}

/// Combines two values by `with`; if only one is present, returns it.
fn both<T>(one: Option<T>, two: Option<T>, with: impl Fn(T, T) -> T) -> Option<T> {
    match (one, two) {
        (Some(one), Some(two)) => Some(with(one, two)),
        (one, two) => one.or(two),
    }
}

impl AssociationProgress {
    /// Difference to the earlier progress `last`. Counters never decrease.
    pub fn since(self, last: &Self) -> Self {
        let less = |now: u64, last: u64| now.saturating_sub(last);
        Self {
            bytes: less(self.bytes, last.bytes),
            messages: less(self.messages, last.messages),
            retransmitted: both(self.retransmitted, last.retransmitted, less),
            timeouts: both(self.timeouts, last.timeouts, less),
            abandoned: both(self.abandoned, last.abandoned, less),
            ..self
        }
    }

    /// The sum of two associations, with the longer of their round-trip times. The additions
    /// saturate, because the other end may report any numbers.
    fn and(self, other: Self) -> Self {
        let sum = u64::saturating_add;
        Self {
            bytes: sum(self.bytes, other.bytes),
            messages: sum(self.messages, other.messages),
            retransmitted: both(self.retransmitted, other.retransmitted, sum),
            timeouts: both(self.timeouts, other.timeouts, sum),
            abandoned: both(self.abandoned, other.abandoned, sum),
            cwnd: both(self.cwnd, other.cwnd, sum),
            srtt: both(self.srtt, other.srtt, f64::max),
        }
    }
}

/// Direction of the data of an association, from the viewpoint of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataDirection {
    Sends,
    Receives,
}

/// Progress in an interval; windows and round-trip times are those at its end.
#[derive(Clone, Debug)]
pub struct IntervalReport {
    /// Start and end of the interval, seconds since the start of the measurement.
    pub from: f64,
    pub to: f64,
    pub done: AssociationProgress,
    pub direction: DataDirection,
    /// The paths of the association; empty for a sum.
    pub paths: Vec<PathStatus>,
}

impl IntervalReport {
    /// Rate, bit/s. `None` if the interval has length 0, as in a report of a receiver that got only
    /// one message.
    fn bits_per_second(&self) -> Option<f64> {
        let seconds = self.to - self.from;
        (seconds > 0.0).then(|| self.done.bytes as f64 * 8.0 / seconds)
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
            "abandoned": self.done.abandoned,
            "snd_cwnd": self.done.cwnd,
            "rtt": self.done.srtt,
            "sender": self.direction == DataDirection::Sends,
        })
    }
}

/// The lines of all associations for one interval, and the sum of each direction.
#[derive(Clone, Debug)]
pub struct Lines {
    each: Vec<IntervalReport>,
    sums: Vec<IntervalReport>,
}

impl Lines {
    /// Creates the sums from the lines of one interval.
    pub fn of(each: Vec<IntervalReport>) -> Self {
        let sum = |direction| {
            let mut lines = each.iter().filter(|line| line.direction == direction);
            let first = IntervalReport {
                paths: Vec::new(),
                ..lines.next()?.clone()
            };
            Some(lines.fold(first, |sum, line| IntervalReport {
                done: sum.done.and(line.done),
                to: sum.to.max(line.to),
                ..sum
            }))
        };
        let sums = [DataDirection::Sends, DataDirection::Receives];
        Self {
            sums: sums.into_iter().filter_map(sum).collect(),
            each,
        }
    }

    /// The sum of all associations in a direction.
    pub fn sum(&self, direction: DataDirection) -> Option<&IntervalReport> {
        self.sums.iter().find(|sum| sum.direction == direction)
    }

    /// Returns true if no data arrived.
    pub fn is_empty(&self) -> bool {
        self.sums.iter().all(|sum| sum.done.bytes == 0)
    }

    /// Duration of the interval, seconds.
    pub fn seconds(&self) -> f64 {
        let all = self.sums.iter().map(|sum| sum.to - sum.from);
        all.fold(0.0, f64::max)
    }

    /// The lines of the associations as JSON, with their paths if requested.
    fn streams(&self, per_path: bool) -> Value {
        let stream = |line: &IntervalReport| {
            let mut json = line.json();
            if per_path {
                json["paths"] = line.paths.iter().map(path_json).collect();
            }
            json
        };
        self.each.iter().map(stream).collect()
    }

    fn json(&self, per_path: bool) -> Value {
        let mut json = json!({ "streams": self.streams(per_path) });
        for (name, sum) in ["sum", "sum_bidir_reverse"].iter().zip(&self.sums) {
            json[name] = sum.json();
        }
        json
    }

    /// The lines as text: one for each association, and one for the sum of each direction if there
    /// are several.
    fn text(&self, per_path: bool, remark: impl Fn(DataDirection) -> String) -> String {
        let mut lines = Vec::new();
        for (index, line) in self.each.iter().enumerate() {
            let name = self.name(&format!("{:>3}", index + 1), line.direction);
            lines.push(format!("{name}{}{}", text(line), remark(line.direction)));
            if per_path {
                lines.extend(line.paths.iter().map(path_text));
            }
        }
        // A single association has no separate sum.
        for sum in self
            .sums
            .iter()
            .filter(|_| self.each.len() > self.sums.len())
        {
            let name = self.name("SUM", sum.direction);
            lines.push(format!("{name}{}{}", text(sum), remark(sum.direction)));
        }
        lines.join("\n")
    }

    /// The name at the start of a line; empty if there is only one association.
    fn name(&self, name: &str, direction: DataDirection) -> String {
        let way = match (self.sums.len() > 1, direction) {
            (false, _) => "",
            (true, DataDirection::Sends) => "TX ",
            (true, DataDirection::Receives) => "RX ",
        };
        match self.each.len() {
            1 => String::new(),
            _ => format!("[{name}] {way}"),
        }
    }
}

/// Results of a whole measurement.
pub struct PerfSummary {
    /// Statistics of this end: acknowledged data as the sender, received data as the receiver.
    pub here: Lines,
    /// Statistics that the other end reported, if it did so for all associations.
    pub there: Option<Lines>,
}

/// Properties that all associations of a measurement have in common.
pub struct Peers {
    /// The peer's addresses.
    pub paths: Vec<String>,
    /// Number of outbound streams.
    pub streams: u16,
    /// Maximum size of an SCTP packet on the primary path, bytes.
    pub mtu: usize,
    /// Negotiated extensions, by the names of their settings.
    pub extensions: Vec<&'static str>,
}

/// Prints lines, or collects them for one JSON document.
pub struct ReportWriter {
    json: bool,
    per_path: bool,
    start: Value,
    intervals: Vec<Value>,
    printer: Printer,
}

impl ReportWriter {
    pub fn begin(arguments: &Perf, peers: &Peers, printer: Printer) -> Result<Self, Failure> {
        if !arguments.json {
            printer.line(heading(arguments, peers))?;
        }
        Ok(Self {
            json: arguments.json,
            per_path: arguments.per_path,
            start: start(arguments, peers),
            intervals: Vec::new(),
            printer,
        })
    }

    pub fn lines(&mut self, lines: &Lines) -> Result<(), Failure> {
        if self.json {
            self.intervals.push(lines.json(self.per_path));
        } else {
            self.printer
                .line(lines.text(self.per_path, |_| String::new()))?;
        }
        Ok(())
    }

    /// Prints the summary; `failed` is the reason if some association failed.
    pub fn end(
        self,
        summary: &PerfSummary,
        processor: &CpuUsage,
        failed: Option<&str>,
    ) -> Result<(), Failure> {
        let CpuUsage { user, system } = *processor;
        let total = user + system;
        let text = if self.json {
            let mut end = summary.json();
            end["cpu_utilization_percent"] =
                json!({ "host_total": total, "host_user": user, "host_system": system });
            let mut document =
                json!({ "start": self.start, "intervals": self.intervals, "end": end });
            if let Some(failed) = failed {
                document["error"] = json!(failed);
            }
            serde_json::to_string_pretty(&document).map_err(io::Error::from)?
        } else {
            let rule = "-".repeat(88);
            let lines = summary.text(self.per_path);
            format!(
                "{rule}\n{lines}\nprocessor: {total:.1} % of one ({user:.1} % user, {system:.1} % system)"
            )
        };
        Ok(self.printer.line(text)?)
    }
}

impl PerfSummary {
    /// The summary in iperf3's format: statistics of the sender and of the receiver. `null` if the
    /// other end has reported none.
    fn json(&self) -> Value {
        let mut end = json!({ "streams": self.here.streams(true) });
        // The first direction, and the second one if both were measured.
        for (here, suffix) in self.here.sums.iter().zip(["", "_bidir_reverse"]) {
            let there = self.there.as_ref().and_then(|it| it.sum(here.direction));
            let there = there.map_or(Value::Null, IntervalReport::json);
            let here_json = here.json();
            let (sent, received) = match here.direction {
                DataDirection::Sends => (here_json, there),
                DataDirection::Receives => (there, here_json),
            };
            end[format!("sum_sent{suffix}")] = sent;
            end[format!("sum_received{suffix}")] = received;
        }
        end
    }

    fn text(&self, per_path: bool) -> String {
        let here = |direction| match direction {
            DataDirection::Sends => "  acknowledged".to_owned(),
            DataDirection::Receives => "  received".to_owned(),
        };
        let abandoned: u64 = self
            .here
            .each
            .iter()
            .filter_map(|it| it.done.abandoned)
            .sum();
        let mut lines = vec![self.here.text(per_path, here)];
        for sum in &self.here.sums {
            let name = self.here.name("SUM", sum.direction);
            let word = match sum.direction {
                DataDirection::Sends => "received",
                DataDirection::Receives => "sent",
            };
            lines.push(
                match self.there.as_ref().and_then(|it| it.sum(sum.direction)) {
                    Some(there) => format!("{name}{}  {word}", text(there)),
                    None => format!("{name}what was {word}: not reported by the other end"),
                },
            );
        }
        if abandoned > 0 {
            lines.push(format!("abandoned: {}", counted(abandoned, "message")));
        }
        lines.join("\n")
    }
}

/// Parameters of a measurement.
fn start(arguments: &Perf, peers: &Peers) -> Value {
    json!({
        "version": format!("anabranch {}", crate::version::version()),
        "host": arguments.host,
        "paths": peers.paths,
        "streams": peers.streams,
        "mtu": peers.mtu,
        "extensions": peers.extensions,
        "message": arguments.message_size.0,
        "unordered": arguments.unordered,
        "test_start": {
            "protocol": "SCTP",
            "num_streams": arguments.parallel,
            "blksize": arguments.message_size.0,
            "bytes": arguments.bytes.map_or(0, |bytes| bytes.0),
            "duration": arguments.bytes.map_or(arguments.duration.0 as f64 / 1e9, |_| 0.0),
            "reverse": u8::from(arguments.reverse),
            "bidir": u8::from(arguments.bidir),
            "target_bitrate": arguments.bitrate.map_or(0, |rate| rate.0),
        },
    })
}

/// The heading as text, with the column headings.
fn heading(arguments: &Perf, peers: &Peers) -> String {
    let direction = match (arguments.bidir, arguments.reverse) {
        (true, _) => "to and from",
        (false, true) => "from",
        (false, false) => "to",
    };
    let count = arguments.parallel * if arguments.bidir { 2 } else { 1 };
    let associations = match count {
        1 => String::new(),
        many => format!("{many} associations, "),
    };
    let name = match (arguments.bidir, count) {
        (true, _) => "[ ID] Dir",
        (false, 1) => "",
        (false, _) => "[ ID] ",
    };
    format!(
        "{direction} {}{}, {associations}{}, messages of {}\n{}{:>15}  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
        peers.paths.join(", "),
        in_brackets(&peers.extensions),
        counted(peers.streams, "stream"),
        arguments.message_size,
        name,
        "Interval",
        "Transfer",
        "Bitrate",
        "Messages",
        "Retr",
        "Cwnd",
        "RTT"
    )
}

/// The text of a line; `-` is printed for values that this end does not know.
fn text(line: &IntervalReport) -> String {
    let done = &line.done;
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:>6.2}-{:<6.2} s  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
        line.from,
        line.to,
        scaled(done.bytes as f64, 1024.0, BYTES),
        or_dash(
            line.bits_per_second()
                .map(|rate| scaled(rate, 1000.0, BITS))
        ),
        done.messages,
        or_dash(done.retransmitted.map(|chunks| chunks.to_string())),
        or_dash(done.cwnd.map(|cwnd| scaled(cwnd as f64, 1024.0, BYTES))),
        or_dash(done.srtt.map(|srtt| format!("{:.3} ms", srtt * 1e3)))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(from: f64, to: f64, bytes: u64, srtt: Option<f64>) -> IntervalReport {
        let done = AssociationProgress {
            bytes,
            srtt,
            ..AssociationProgress::default()
        };
        IntervalReport {
            from,
            to,
            done,
            direction: DataDirection::Sends,
            paths: Vec::new(),
        }
    }

    #[test]
    fn a_rate_is_what_was_done_over_how_long() {
        assert_eq!(line(1.0, 3.0, 1_000, None).bits_per_second(), Some(4_000.0));
        let at_once = line(1.0, 1.0, 1_000, None);
        assert_eq!(at_once.json()["bits_per_second"], Value::Null);
        assert!(
            text(&at_once).contains("1000.00 B              -  "),
            "{}",
            text(&at_once)
        );
    }

    /// A receiver does not show its own window and round-trip time, because they belong to a path
    /// without data.
    #[test]
    fn unknown_values_are_a_dash_or_null() {
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

    /// The receiver's statistics are those that it has reported; they are missing if it reported
    /// none.
    #[test]
    fn the_summary_has_the_count_of_either_end() {
        let with = |direction, to, bytes| IntervalReport {
            direction,
            ..line(0.0, to, bytes, None)
        };
        let [sends, receives] = [DataDirection::Sends, DataDirection::Receives];
        let summary = |here: Vec<IntervalReport>, there: Option<Vec<IntervalReport>>| PerfSummary {
            here: Lines::of(here),
            there: there.map(Lines::of),
        };
        let forward = summary(
            vec![with(sends, 2.0, 100)],
            Some(vec![with(sends, 1.5, 90)]),
        )
        .json();
        assert_eq!(forward["sum_sent"]["bytes"], 100);
        assert_eq!(forward["sum_received"]["bytes"], 90);
        assert_eq!(forward["sum_received"]["seconds"], 1.5);
        let reverse = vec![with(receives, 2.0, 100)];
        let reverse = summary(reverse, Some(vec![with(receives, 1.5, 90)])).json();
        assert_eq!(reverse["sum_sent"]["bytes"], 90);
        assert_eq!(reverse["sum_received"]["bytes"], 100);
        let silent = summary(vec![with(sends, 2.0, 100)], None);
        assert_eq!(silent.json()["sum_received"], Value::Null);
        assert!(silent.text(false).contains("not reported by the other end"));
        let here = vec![with(sends, 2.0, 100), with(receives, 2.0, 70)];
        let there = vec![with(sends, 2.0, 99), with(receives, 2.0, 71)];
        let both = summary(here, Some(there));
        let json = both.json();
        for (key, bytes) in [
            ("sum_sent", 100),
            ("sum_received", 99),
            ("sum_sent_bidir_reverse", 71),
            ("sum_received_bidir_reverse", 70),
        ] {
            assert_eq!(json[key]["bytes"], bytes, "{key}");
        }
        let text = both.text(false);
        assert!(
            text.starts_with("[  1] TX ") && text.contains("\n[  2] RX "),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn associations_add_up() {
        let lines = Lines::of(vec![
            line(0.0, 2.0, 100, None),
            line(0.0, 2.0, 300, Some(0.1)),
        ]);
        let sum = lines.sum(DataDirection::Sends).expect("a sum");
        assert_eq!(sum.done.bytes, 400);
        assert_eq!(sum.done.srtt, Some(0.1));
        assert_eq!(sum.bits_per_second(), Some(1_600.0));
        assert!(lines.sum(DataDirection::Receives).is_none());
        let most = || line(0.0, 2.0, u64::MAX, None);
        let most = Lines::of(vec![most(), most()]);
        let sum = most.sum(DataDirection::Sends).expect("a sum");
        assert_eq!(sum.done.bytes, u64::MAX);
        let text = lines.text(false, |_| String::new());
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.starts_with("[  1]") && text.contains("[SUM]"),
            "{text}"
        );
        let one = Lines::of(vec![line(0.0, 2.0, 100, None)]);
        let one = one.text(false, |_| "  received".to_owned());
        assert!(
            one.starts_with("  0.00-2.00") && one.ends_with("received"),
            "{one}"
        );
    }
}
