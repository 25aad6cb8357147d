//! The associations of a measurement, and their progress.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_net::{PathStatus, Status};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::counters::SharedCounters;
use super::report::{AssociationProgress, DataDirection, IntervalReport, Lines, PerfSummary};
use super::session::{self, PerfPlan, SessionEnd};
use crate::net::connection::Connection;
use crate::net::control_protocol::{ReceiverCounts, Sent};

/// An association, with its progress at the last printed line.
struct Flow {
    association: Connection,
    plan: PerfPlan,
    counted: Arc<SharedCounters>,
    last: AssociationProgress,
    /// State of the paths when the last line was printed.
    paths: Vec<PathStatus>,
    /// Number of received or acknowledged bytes, and the time of their last increase.
    arrived: (u64, Instant),
    end: Option<SessionEnd>,
}

/// Progress of a sender with messages of `message` bytes, of which the peer has acknowledged
/// `acknowledged` bytes.
fn sending(
    status: &Status,
    counted: &SharedCounters,
    message: u64,
    acknowledged: u64,
) -> AssociationProgress {
    let sender = &status.counters.sender;
    let fed = counted.fed_bytes.load(Ordering::Relaxed);
    // `acknowledged` may include a control message after the data, so it is limited to the size of
    // the data.
    let bytes = acknowledged.min(fed);
    let abandoned = sender.abandoned_unsent + sender.abandoned_sent;
    let messages = if bytes == fed && abandoned == 0 {
        counted.fed_messages.load(Ordering::Relaxed)
    } else {
        bytes / message
    };
    AssociationProgress {
        bytes,
        messages,
        retransmitted: Some(sender.chunks_retransmitted),
        timeouts: Some(sender.timeouts),
        abandoned: Some(abandoned),
        cwnd: Some(status.in_use.cwnd),
        srtt: status.in_use.srtt.map(|srtt| srtt.as_secs_f64()),
    }
}

/// Progress of a receiver. Windows and round-trip times are missing, because only the sender knows
/// them.
fn receiving(counted: &SharedCounters) -> AssociationProgress {
    AssociationProgress {
        bytes: counted.bytes.load(Ordering::Relaxed),
        messages: counted.messages.load(Ordering::Relaxed),
        ..AssociationProgress::default()
    }
}

impl Flow {
    /// Progress since the last call.
    fn advance(&mut self) -> AssociationProgress {
        let last = self.last;
        if let Some(now) = self.progress() {
            self.last = now;
        }
        if let Some(status) = self.association.association().status() {
            self.paths = status.paths;
        }
        self.last.since(&last)
    }

    fn progress(&self) -> Option<AssociationProgress> {
        if self.plan.reverse {
            return Some(receiving(&self.counted));
        }
        let status = self.association.association().status()?;
        let message = self.plan.job.message;
        let acknowledged = status.counters.sender.bytes_acknowledged;
        let acknowledged = self.association.user_bytes(acknowledged, message);
        Some(sending(&status, &self.counted, message, acknowledged))
    }

    fn direction(&self) -> DataDirection {
        match self.plan.reverse {
            true => DataDirection::Receives,
            false => DataDirection::Sends,
        }
    }

    /// The line of a report for an interval.
    fn line(&self, from: f64, to: f64, done: AssociationProgress) -> IntervalReport {
        IntervalReport {
            from,
            to,
            done,
            direction: self.direction(),
            paths: self.paths.clone(),
        }
    }

    /// The line with the statistics that the other end has reported.
    fn there(&self, to: f64) -> Option<IntervalReport> {
        let end = self.end.as_ref()?;
        Some(match self.plan.reverse {
            true => self.line(0.0, to, of_sender(end.sent?)),
            false => {
                let received = end.received?;
                let to = received.nanoseconds as f64 / 1e9;
                self.line(0.0, to, of_receiver(received))
            }
        })
    }

    /// Returns true if no data has arrived for `limit`.
    fn is_idle_for(&mut self, limit: Duration) -> bool {
        let arrived = self.progress().map_or(0, |progress| progress.bytes);
        let now = Instant::now();
        if arrived != self.arrived.0 {
            self.arrived = (arrived, now);
        }
        now.duration_since(self.arrived.1) >= limit
    }
}

/// The associations of a measurement.
pub struct Associations {
    all: Vec<Flow>,
    begin: Instant,
    /// End of the last printed interval, seconds.
    last: f64,
    stop: watch::Sender<bool>,
}

impl Associations {
    /// Creates the state; the measurement starts now.
    pub fn begin(plans: Vec<PerfPlan>, associations: Vec<Connection>) -> Self {
        let begin = Instant::now();
        let flow = |(plan, association): (PerfPlan, Connection)| Flow {
            paths: association
                .association()
                .status()
                .map_or_else(Vec::new, |status| status.paths),
            association,
            plan,
            counted: Arc::new(SharedCounters::new()),
            last: AssociationProgress::default(),
            arrived: (0, begin),
            end: None,
        };
        Self {
            all: plans.into_iter().zip(associations).map(flow).collect(),
            begin,
            last: 0.0,
            stop: watch::channel(false).0,
        }
    }

    /// Starts a task for each association, which ends with its association.
    pub fn work(&self) -> JoinSet<(usize, SessionEnd)> {
        let mut tasks = JoinSet::new();
        for (index, flow) in self.all.iter().enumerate() {
            let work = session::PerfSession {
                association: flow.association.clone(),
                counted: Arc::clone(&flow.counted),
                plan: flow.plan,
                begin: self.begin,
                stop: self.stop.subscribe(),
            };
            tasks.spawn(async move { (index, work.run().await) });
        }
        tasks
    }

    /// Ends the measurement early, in the same way as when its time is over.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    /// Records that an association has ended.
    pub fn end(&mut self, index: usize, end: SessionEnd) {
        self.all[index].end = Some(end);
    }

    /// Returns true if all data of every association has arrived, and none is to follow.
    pub fn are_done(&self) -> bool {
        self.all.iter().all(|flow| flow.counted.done().is_some())
    }

    /// Open associations over which no data has arrived for `limit`.
    pub fn idle_for(&mut self, limit: Duration) -> impl Iterator<Item = &Connection> {
        let open = self.all.iter_mut().filter(|flow| flow.end.is_none());
        open.filter_map(move |flow| flow.is_idle_for(limit).then_some(&flow.association))
    }

    /// Ends an interval: at the present time, or at the last arrival if all data has arrived.
    pub fn lines(&mut self) -> Lines {
        let now = self.begin.elapsed().as_secs_f64();
        let done = self.all.iter().map(|flow| flow.counted.done());
        let done = done.collect::<Option<Vec<u64>>>();
        let last = done.and_then(|all| all.into_iter().max());
        let to = last.map_or(now, |last| last as f64 / 1e9).max(self.last);
        let from = std::mem::replace(&mut self.last, to);
        let line = |flow: &mut Flow| {
            let done = flow.advance();
            flow.line(from, to, done)
        };
        Lines::of(self.all.iter_mut().map(line).collect())
    }

    /// Totals from the start to the last line, and the statistics of the other end.
    pub fn summary(&self) -> PerfSummary {
        let line = |flow: &Flow| flow.line(0.0, self.last, flow.last);
        let there = self.all.iter().map(|flow| flow.there(self.last));
        PerfSummary {
            here: Lines::of(self.all.iter().map(line).collect()),
            // There is no sum if some peers reported no statistics.
            there: there
                .collect::<Option<Vec<IntervalReport>>>()
                .map(Lines::of),
        }
    }
}

fn of_sender(sent: Sent) -> AssociationProgress {
    AssociationProgress {
        bytes: sent.bytes,
        messages: sent.messages,
        retransmitted: Some(sent.retransmitted),
        timeouts: Some(sent.timeouts),
        abandoned: None,
        cwnd: Some(sent.cwnd),
        srtt: sent.srtt.map(|srtt| srtt as f64 / 1e9),
    }
}

fn of_receiver(received: ReceiverCounts) -> AssociationProgress {
    AssociationProgress {
        bytes: received.bytes,
        messages: received.messages,
        ..AssociationProgress::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(sent: u64, acknowledged: u64) -> Status {
        let path = |last| {
            let path = PathStatus::new([192, 0, 2, last].into(), [192, 0, 2, 9].into());
            path.with(|it| {
                it.cwnd = 1_000 * u64::from(last);
                it.srtt = Some(Duration::from_millis(last.into()));
            })
        };
        Status::new(path(1)).with(|it| {
            it.in_use = path(2);
            it.paths.push(path(2));
            it.counters.sender.bytes_sent = sent;
            it.counters.sender.bytes_acknowledged = acknowledged;
        })
    }

    /// After an abort no data is in flight, although not all of it was acknowledged.
    #[test]
    fn a_message_counts_as_acknowledged_once_all_of_it_is() {
        let counted = SharedCounters::new();
        for (acknowledged, messages) in [(0, 0), (999, 0), (1_000, 1), (2_999, 2)] {
            let progress = sending(&status(3_000, acknowledged), &counted, 1_000, acknowledged);
            assert_eq!(
                (progress.bytes, progress.messages),
                (acknowledged, messages)
            );
        }
        // The last message may be shorter. Messages after it are control messages, which are not
        // counted.
        counted.fed_bytes.store(2_500, Ordering::Relaxed);
        counted.fed_messages.store(3, Ordering::Relaxed);
        for (acknowledged, bytes, messages) in
            [(2_000, 2_000, 2), (2_500, 2_500, 3), (2_530, 2_500, 3)]
        {
            let progress = sending(&status(2_530, acknowledged), &counted, 1_000, acknowledged);
            assert_eq!((progress.bytes, progress.messages), (bytes, messages));
        }
    }

    #[test]
    fn window_and_round_trip_time_are_of_the_path_in_use() {
        let progress = sending(&status(0, 0), &SharedCounters::new(), 1_000, 0);
        assert_eq!((progress.cwnd, progress.srtt), (Some(2_000), Some(0.002)));
        let progress = receiving(&SharedCounters::new());
        assert_eq!((progress.cwnd, progress.srtt), (None, None));
    }
}
