//! `anabranch perf`: what associations carry, by intervals.

mod report;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_net::{Association, CloseReason, Endpoint, Lost, SendOptions, Status};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};

use super::arguments::Perf;
use super::serve::{Job, REQUEST};
use super::{Interrupts, Ports, connect, peer};
use crate::failure::Failure;
use report::{Line, Lines, Peers, Progress, Report};

/// Longer than any measurement takes.
const NEVER: Duration = Duration::from_secs(365 * 86_400);

/// What came over an association.
#[derive(Debug, Default)]
struct Received {
    bytes: AtomicU64,
    messages: AtomicU64,
}

/// One of the associations, and how far it was at the last line.
struct Flow {
    association: Association,
    received: Arc<Received>,
    /// Bytes of a message, where this side sends.
    sends: Option<u64>,
    last: Progress,
    over: bool,
}

impl Flow {
    fn progress(&self, status: &Status) -> Progress {
        let sender = &status.counters.sender;
        let in_flight: u64 = status.paths.iter().map(|path| path.flightsize).sum();
        // At a graceful end everything was acknowledged, or there would have been none.
        let in_flight = if self.over { 0 } else { in_flight };
        let acknowledged = sender.bytes_sent.saturating_sub(in_flight);
        let (bytes, messages) = match self.sends {
            Some(message) => (acknowledged, acknowledged.div_ceil(message)),
            None => (
                self.received.bytes.load(Ordering::Relaxed),
                self.received.messages.load(Ordering::Relaxed),
            ),
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

    /// What was done since the last time.
    fn advance(&mut self) -> Progress {
        let last = self.last;
        if let Some(status) = self.association.status() {
            self.last = self.progress(&status);
        }
        Progress {
            bytes: self.last.bytes - last.bytes,
            messages: self.last.messages - last.messages,
            retransmitted: self.last.retransmitted - last.retransmitted,
            timeouts: self.last.timeouts - last.timeouts,
            ..self.last
        }
    }
}

/// The associations of a measurement.
struct Flows {
    all: Vec<Flow>,
    begin: Instant,
    /// When the last line ended, seconds.
    last: f64,
}

impl Flows {
    /// Ends an interval.
    fn lines(&mut self) -> Lines {
        let (from, to) = (self.last, self.begin.elapsed().as_secs_f64());
        self.last = to;
        let done = self.all.iter_mut().map(Flow::advance);
        Lines::of(done.map(|done| Line { from, to, done }).collect())
    }

    /// Everything from the beginning to the last line.
    fn whole(&self) -> Lines {
        let line = |flow: &Flow| Line {
            from: 0.0,
            to: self.last,
            done: flow.last,
        };
        Lines::of(self.all.iter().map(line).collect())
    }
}

/// Runs a measurement.
pub async fn perf(arguments: Perf) -> Result<(), Failure> {
    let peer = peer(&arguments.host, arguments.port, &arguments.path).await?;
    let bound = arguments
        .wire
        .bind(Ports::Any(usize::from(arguments.parallel)))?;
    let mut associations = Vec::new();
    for endpoint in &bound.endpoints {
        associations.push(connect(endpoint, &arguments.host, &peer).await?);
    }
    let status = associations[0].status();
    let mut report = Report::begin(
        &arguments,
        &Peers {
            paths: status
                .iter()
                .flat_map(|status| &status.paths)
                .map(|path| path.address.to_string())
                .collect(),
            streams: status.as_ref().map_or(0, |status| status.outstrms),
        },
    )?;
    let mut flows = begin(&arguments, associations);
    let failed = attend(&arguments, &bound.endpoints, &mut flows, &mut report).await?;
    let last = flows.lines();
    // Nothing happened since the last line, most times; what did is not to be missing among the intervals.
    if last.seconds() > 1e-3 || !last.is_empty() {
        report.lines(&last)?;
    }
    report.end(&flows.whole(), failed.as_deref())?;
    bound.watched.finish(&bound.sctp.toml, failed.clone())?;
    match failed {
        None => Ok(()),
        Some(reason) => Err(Failure::Wire(reason)),
    }
}

/// Sets every association to work.
fn begin(arguments: &Perf, associations: Vec<Association>) -> Flows {
    let begin = Instant::now();
    let until = begin + Duration::from_nanos(arguments.time.0);
    let until = arguments.bytes.is_none().then_some(until);
    let count = associations.len() as u64;
    let start = |(index, association): (usize, Association)| {
        // The bytes are of all together.
        let share = |bytes: u64| bytes / count + u64::from((index as u64) < bytes % count);
        let job = Job {
            message: arguments.message.0,
            bytes: arguments.bytes.map(|bytes| share(bytes.0)),
            unordered: arguments.unordered,
        };
        let received = Arc::new(Received::default());
        let worker = association.clone();
        if arguments.reverse {
            tokio::spawn(ask(worker, job, until));
        } else {
            tokio::spawn(feed(worker, job, until));
        }
        Flow {
            association,
            received,
            sends: (!arguments.reverse).then_some(job.message),
            last: Progress::default(),
            over: false,
        }
    };
    Flows {
        all: associations.into_iter().enumerate().map(start).collect(),
        begin,
        last: 0.0,
    }
}

/// Writes lines until every association has ended; gives why one of them did otherwise than well.
async fn attend(
    arguments: &Perf,
    endpoints: &[Endpoint],
    flows: &mut Flows,
    report: &mut Report,
) -> Result<Option<String>, Failure> {
    let mut ends = JoinSet::new();
    for (index, flow) in flows.all.iter().enumerate() {
        let (association, received) = (flow.association.clone(), Arc::clone(&flow.received));
        ends.spawn(async move {
            take(&association, &received).await;
            (index, association.closed().await)
        });
    }
    let mut failed = None;
    let mut interrupts = Interrupts::new();
    let mut interruptions = 0;
    let period = Duration::from_nanos(arguments.interval.0);
    let silent = period.is_zero();
    let period = if silent { NEVER } else { period };
    let mut ticks = interval_at(flows.begin + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            end = ends.join_next() => match end {
                None => return Ok(failed),
                Some(Ok((index, CloseReason::Shutdown))) => flows.all[index].over = true,
                Some(Ok((_, reason))) => failed = failed.or(Some(Lost(reason).to_string())),
                Some(Err(error)) => return Err(Failure::Wire(error.to_string())),
            },
            _ = ticks.tick(), if !silent => report.lines(&flows.lines())?,
            // The first ends what was begun as time would; the second waits for nobody.
            () = interrupts.next() => {
                interruptions += 1;
                for flow in &flows.all {
                    flow.association.begin_shutdown();
                }
                if interruptions > 1 {
                    endpoints.iter().for_each(|endpoint| endpoint.abort("interrupted"));
                }
            }
        }
    }
}

/// Sends messages until `until`, or until the job's bytes are sent, or the association takes no more; then closes it.
async fn feed(association: Association, job: Job, until: Option<Instant>) {
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
            break;
        }
        left = left.saturating_sub(size);
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
    }
    association.begin_shutdown();
}

/// Asks the server to send, and closes the association when time is over.
async fn ask(association: Association, job: Job, until: Option<Instant>) {
    let request = SendOptions {
        ppid: REQUEST,
        unordered: false,
    };
    // Refused where it is closing already, which is told otherwise.
    let _ = association.send(0, job.to_request(), request).await;
    if let Some(until) = until {
        tokio::time::sleep_until(until).await;
        association.begin_shutdown();
    }
}

/// Takes what comes, and counts it. Where nothing was asked for it may come all the same, and nobody is to wait for that.
async fn take(association: &Association, received: &Received) {
    while let Ok(Some(message)) = association.recv().await {
        let bytes = message.bytes.len() as u64;
        received.bytes.fetch_add(bytes, Ordering::Relaxed);
        received.messages.fetch_add(1, Ordering::Relaxed);
    }
}
