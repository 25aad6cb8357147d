//! `anabranch perf`: what an association carries, by intervals.

use std::io::{self, Write};
use std::time::Duration;

use anabranch_lab::spec::quantity::Size;
use anabranch_net::{Association, CloseReason, SendOptions, Status};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::arguments::Perf;
use super::serve::{Job, REQUEST};
use super::{interrupted, peer};
use crate::work::Failure;

/// How far an association is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Progress {
    /// Bytes that reached the other end: acknowledged, or received here.
    bytes: u64,
    messages: u64,
    retransmitted: u64,
    timeouts: u64,
    cwnd: u64,
    /// Seconds.
    srtt: Option<f64>,
}

/// A line of the report.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: f64,
    to: f64,
    /// What was done in it; windows and times as they stand at its end.
    done: Progress,
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
            "cwnd": self.done.cwnd,
            "srtt": self.done.srtt,
        })
    }
}

/// The measuring side of an association.
struct Meter {
    reverse: bool,
    message: u64,
    begin: Instant,
    received: Progress,
    last: Progress,
    last_at: f64,
    lines: Vec<Line>,
}

impl Meter {
    fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }

    fn progress(&self, status: Option<&Status>) -> Progress {
        let Some(status) = status else {
            return self.last;
        };
        let sender = &status.counters.sender;
        let in_flight: u64 = status.paths.iter().map(|path| path.flightsize).sum();
        let acknowledged = sender.bytes_sent.saturating_sub(in_flight);
        let (bytes, messages) = if self.reverse {
            (self.received.bytes, self.received.messages)
        } else {
            (acknowledged, acknowledged / self.message)
        };
        Progress {
            // Bytes in flight are counted by the profile's rule, and a mark may make them rise.
            bytes: bytes.max(self.last.bytes),
            messages: messages.max(self.last.messages),
            retransmitted: sender.chunks_retransmitted,
            timeouts: sender.timeouts,
            cwnd: status.primary.cwnd,
            srtt: status.primary.srtt.map(|srtt| srtt as f64 / 1e9),
        }
    }

    /// Ends an interval.
    fn line(&mut self, status: Option<&Status>) -> Line {
        let (now, progress) = (self.now(), self.progress(status));
        let line = Line {
            from: self.last_at,
            to: now,
            done: Progress {
                bytes: progress.bytes - self.last.bytes,
                messages: progress.messages - self.last.messages,
                retransmitted: progress.retransmitted - self.last.retransmitted,
                timeouts: progress.timeouts - self.last.timeouts,
                ..progress
            },
        };
        (self.last, self.last_at) = (progress, now);
        self.lines.push(line);
        line
    }
}

/// Runs a measurement.
pub async fn perf(arguments: Perf) -> Result<(), Failure> {
    let peer = peer(&arguments.host, &arguments.path).await?;
    let bound = arguments.wire.bind(None)?;
    let association = bound
        .endpoint
        .connect(peer.clone())
        .await
        .map_err(|error| Failure::Wire(format!("{}: {error}", arguments.host)))?;
    let mut meter = Meter {
        reverse: arguments.reverse,
        message: arguments.message.0,
        begin: Instant::now(),
        received: Progress::default(),
        last: Progress::default(),
        last_at: 0.0,
        lines: Vec::new(),
    };
    let mut report = Report::begin(&arguments, &association)?;
    let reason = if arguments.reverse {
        receive(&arguments, &association, &mut meter, &mut report).await?
    } else {
        send(&arguments, &association, &mut meter, &mut report).await?
    };
    let failed = (reason != CloseReason::Shutdown).then(|| anabranch_net::Lost(reason).to_string());
    let mut status = association.status();
    if let (Some(status), false) = (&mut status, arguments.reverse)
        && failed.is_none()
    {
        // All was acknowledged, or there would have been no graceful end.
        status.paths.iter_mut().for_each(|path| path.flightsize = 0);
    }
    let last = meter.line(status.as_ref());
    if last.to - last.from > 1e-3 {
        report.line(&last)?;
    } else {
        meter.lines.pop();
    }
    report.end(&meter, failed.as_deref())?;
    bound.watched.finish(&bound.sctp.toml, failed.clone())?;
    match failed {
        None => Ok(()),
        Some(reason) => Err(Failure::Wire(reason)),
    }
}

/// Sends until time or bytes are over, closes, and gives how it ended.
async fn send(
    arguments: &Perf,
    association: &Association,
    meter: &mut Meter,
    report: &mut Report,
) -> Result<CloseReason, Failure> {
    let sender = association.clone();
    let job = Job {
        message: arguments.message.0,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        unordered: arguments.unordered,
    };
    let until = arguments
        .bytes
        .is_none()
        .then(|| meter.begin + Duration::from_nanos(arguments.time.0));
    let sending = tokio::spawn(async move {
        feed(&sender, job, until).await;
        sender.begin_shutdown();
    });
    let mut ticks = ticks(arguments, meter.begin);
    loop {
        tokio::select! {
            reason = association.closed() => {
                sending.abort();
                return Ok(reason);
            }
            _ = ticks.tick() => {
                let line = meter.line(association.status().as_ref());
                report.line(&line)?;
            }
            // The end of what was begun; a second one ends the program.
            () = interrupted() => {
                sending.abort();
                association.begin_shutdown();
            }
        }
    }
}

/// Sends messages until `until`, or until the job's bytes are sent, or the association takes no more.
async fn feed(association: &Association, job: Job, until: Option<Instant>) {
    let payload = Bytes::from(vec![0; job.message as usize]);
    let options = SendOptions {
        ppid: 0,
        unordered: job.unordered,
    };
    let mut left = job.bytes.unwrap_or(u64::MAX);
    while left > 0 {
        let size = left.min(job.message);
        let message = payload.slice(..size as usize);
        let sent = association.send_spread(message, options);
        let sent = match until {
            Some(until) => timeout_at(until, sent).await,
            None => Ok(sent.await),
        };
        // Time is over; or the association takes no more.
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
        left = left.saturating_sub(size);
        if until.is_some_and(|until| Instant::now() >= until) {
            return;
        }
    }
}

/// Asks the server to send, receives until time is over or the server closes, and gives how it ended.
async fn receive(
    arguments: &Perf,
    association: &Association,
    meter: &mut Meter,
    report: &mut Report,
) -> Result<CloseReason, Failure> {
    let job = Job {
        message: arguments.message.0,
        bytes: arguments.bytes.map(|bytes| bytes.0),
        unordered: arguments.unordered,
    };
    let request = SendOptions {
        ppid: REQUEST,
        unordered: false,
    };
    association
        .send(0, job.to_request(), request)
        .await
        .map_err(|error| Failure::Wire(error.to_string()))?;
    let until = meter.begin + Duration::from_nanos(arguments.time.0);
    let timed = arguments.bytes.is_none();
    let mut closing = false;
    let mut ticks = ticks(arguments, meter.begin);
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                let line = meter.line(association.status().as_ref());
                report.line(&line)?;
            }
            () = tokio::time::sleep_until(until), if timed && !closing => {
                closing = true;
                association.begin_shutdown();
            }
            () = interrupted(), if !closing => {
                closing = true;
                association.begin_shutdown();
            }
            message = association.recv() => match message {
                Ok(Some(message)) => {
                    meter.received.bytes += message.bytes.len() as u64;
                    meter.received.messages += 1;
                }
                Ok(None) => return Ok(CloseReason::Shutdown),
                Err(lost) => return Ok(lost.0),
            },
        }
    }
}

fn ticks(arguments: &Perf, begin: Instant) -> tokio::time::Interval {
    let period = Duration::from_nanos(arguments.interval.0);
    let mut ticks = interval_at(begin + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    ticks
}

/// Writes lines, or gathers a document.
struct Report {
    json: bool,
    start: Value,
}

impl Report {
    fn begin(arguments: &Perf, association: &Association) -> Result<Self, Failure> {
        let status = association.status();
        let paths: Vec<String> = status
            .iter()
            .flat_map(|status| &status.paths)
            .map(|path| path.address.to_string())
            .collect();
        let streams = status.as_ref().map_or(0, |status| status.outstrms);
        let start = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "host": arguments.host,
            "paths": paths,
            "streams": streams,
            "message": arguments.message.0,
            "unordered": arguments.unordered,
            "reverse": arguments.reverse,
        });
        if !arguments.json {
            let mut out = io::stdout().lock();
            let direction = if arguments.reverse { "from" } else { "to" };
            writeln!(
                out,
                "{direction} {}, {streams} streams, messages of {}",
                paths.join(", "),
                arguments.message
            )?;
            writeln!(
                out,
                "{:>15}  {:>10}  {:>13}  {:>11}  {:>5}  {:>10}  {:>9}",
                "Interval", "Transfer", "Bitrate", "Messages", "Retr", "Cwnd", "RTT"
            )?;
        }
        Ok(Self {
            json: arguments.json,
            start,
        })
    }

    fn line(&mut self, line: &Line) -> Result<(), Failure> {
        if !self.json {
            writeln!(io::stdout().lock(), "{}", text(line))?;
        }
        Ok(())
    }

    fn end(&self, meter: &Meter, failed: Option<&str>) -> Result<(), Failure> {
        let whole = Line {
            from: 0.0,
            to: meter.last_at,
            done: meter.last,
        };
        let mut out = io::stdout().lock();
        if self.json {
            let intervals: Vec<Value> = meter.lines.iter().map(Line::json).collect();
            let mut end = whole.json();
            end["error"] = json!(failed);
            let document = json!({ "start": self.start, "intervals": intervals, "end": end });
            let document = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
            writeln!(out, "{document}")?;
        } else {
            writeln!(out, "{}", "-".repeat(88))?;
            let side = if meter.reverse {
                "received"
            } else {
                "acknowledged"
            };
            writeln!(out, "{}  {side}", text(&whole))?;
        }
        Ok(())
    }
}

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
        scaled(done.bytes as f64, 1024.0, ["B", "KiB", "MiB", "GiB"]),
        scaled(
            line.bits_per_second(),
            1000.0,
            ["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]
        ),
        done.messages,
        done.retransmitted,
        Size(done.cwnd).to_string(),
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

    #[test]
    fn a_rate_is_what_was_done_over_how_long() {
        let done = Progress {
            bytes: 1_000,
            ..Progress::default()
        };
        let line = Line {
            from: 1.0,
            to: 3.0,
            done,
        };
        assert_eq!(line.bits_per_second(), 4_000.0);
        let none = Line {
            from: 1.0,
            to: 1.0,
            done,
        };
        assert_eq!(none.bits_per_second(), 0.0);
    }
}
