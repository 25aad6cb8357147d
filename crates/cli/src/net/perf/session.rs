//! The work over one association of a measurement: sends data, or requests data from the server,
//! and ends in time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_net::{CloseReason, SendOptions};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::counters::SharedCounters;
use crate::net::arguments::Perf;
use crate::net::connection::Connection;
use crate::net::control_protocol::{ControlMessage, PPID, ReceiverCounts, Sent, SourceParameters};
use crate::net::rate_limiter::RateLimiter;
use crate::net::{SHUTDOWN_TIMEOUT, all_acknowledged};

/// Time limit for the other end to report its statistics, and then to close. It is long enough for
/// a packet that is lost twice and retransmitted after 1 s and 2 s.
const ANSWER: Duration = Duration::from_secs(5);
/// Number of messages that are sent between two checks of the time, while sending does not wait.
const MESSAGES_PER_CHECK: u64 = 16;

/// Parameters of the work over one association.
#[derive(Clone, Copy, Debug)]
pub struct PerfPlan {
    pub job: SourceParameters,
    /// Duration; `None`: until all bytes of the job have arrived.
    pub time: Option<Duration>,
    /// True if the server sends.
    pub reverse: bool,
}

impl PerfPlan {
    /// The plan of the command line, for one direction.
    fn of(arguments: &Perf) -> Self {
        let time = Duration::from_nanos(arguments.duration.0);
        Self {
            job: SourceParameters {
                message: arguments.message_size.0,
                bytes: arguments.bytes.map(|bytes| bytes.0),
                unordered: arguments.unordered,
                rate: arguments.bitrate.map(|rate| rate.0),
            },
            time: arguments.bytes.is_none().then_some(time),
            reverse: arguments.reverse,
        }
    }

    /// The plans of all associations: all in one direction, or with `--bidir` the given number in
    /// each direction.
    pub fn each(arguments: &Perf) -> Vec<Self> {
        let count = u64::from(arguments.parallel);
        let plan = Self::of(arguments);
        let direction = |reverse| {
            let plan = Self { reverse, ..plan };
            (0..count).map(move |index| plan.share(index, count))
        };
        if arguments.bidir {
            direction(false).chain(direction(true)).collect()
        } else {
            direction(arguments.reverse).collect()
        }
    }

    /// The plan of association `index` of `count`, with its share of the bytes.
    fn share(self, index: u64, count: u64) -> Self {
        let share = |bytes: u64| bytes / count + u64::from(index < bytes % count);
        Self {
            job: SourceParameters {
                bytes: self.job.bytes.map(share),
                ..self.job
            },
            ..self
        }
    }
}

/// Outcome of the work over one association.
#[derive(Debug)]
pub struct SessionEnd {
    pub reason: CloseReason,
    /// True if this end aborted the association, because data in flight at the end of the time was
    /// not acknowledged soon enough.
    pub cut: bool,
    /// True if data still arrived after the end of the time.
    pub progressed: bool,
    /// Statistics that the other end has reported.
    pub received: Option<ReceiverCounts>,
    pub sent: Option<Sent>,
}

/// State of the task of one association.
pub struct PerfSession {
    pub association: Connection,
    pub counted: Arc<SharedCounters>,
    pub plan: PerfPlan,
    pub begin: Instant,
    /// Set when the measurement should end before its time is over.
    pub stop: watch::Receiver<bool>,
}

impl PerfSession {
    /// Does the work, and closes the association.
    pub async fn run(self) -> SessionEnd {
        let (tell, told) = watch::channel(None);
        let taking = tokio::spawn(take(
            self.association.clone(),
            Arc::clone(&self.counted),
            self.begin,
            tell,
        ));
        if self.plan.reverse {
            let (reason, cut, progressed) = self.request_data().await;
            // Waits for the task that counts, so that all received data is counted.
            let _ = taking.await;
            let last = self.counted.last.load(Ordering::Relaxed);
            self.counted.done.store(last, Ordering::Relaxed);
            let sent = match *told.borrow() {
                Some(ControlMessage::Sent(sent)) => Some(sent),
                _ => None,
            };
            SessionEnd {
                reason,
                cut,
                progressed,
                received: None,
                sent,
            }
        } else {
            self.send(told).await
        }
    }

    /// Sends until the time is over, until all bytes of the job are sent, or until the association
    /// accepts no more; then closes it.
    async fn send(self, mut told: watch::Receiver<Option<ControlMessage>>) -> SessionEnd {
        let (fed, stopped) = self.send_messages().await;
        // Unsent messages are cancelled at the end of the time, because sending a full buffer could
        // take very long.
        let withdrawn = match stopped {
            true => self.association.association().cancel_unsent() as u64,
            false => 0,
        };
        let messages = fed - withdrawn;
        let acknowledged = || {
            let status = self.association.association().status();
            status.map_or(0, |it| it.counters.sender.bytes_acknowledged)
        };
        if let Some(status) = self.association.association().status() {
            let bytes = status.counters.sender.bytes_sent + status.penddata as u64;
            self.counted.fed_messages.store(messages, Ordering::Relaxed);
            let bytes = self.association.user_bytes(bytes, self.plan.job.message);
            self.counted.fed_bytes.store(bytes, Ordering::Relaxed);
        }
        let before = acknowledged();
        let late = self.grace_expired(stopped);
        tokio::pin!(late);
        let drained = async {
            // With partial reliability the number of messages that will arrive is unknown.
            // Therefore the request follows after all messages were acknowledged or abandoned.
            let gives_up = self
                .association
                .association()
                .negotiated()
                .partial_reliability;
            if gives_up {
                all_acknowledged(self.association.association()).await;
            }
            let messages = if gives_up { 0 } else { messages };
            let text = ControlMessage::Count { messages }.write();
            let options = SendOptions::default().with_ppid(PPID).reliable();
            // Fails only if the association has ended, which is reported elsewhere.
            let _ = self
                .association
                .send(text, options.with_immediate(true))
                .await;
            all_acknowledged(self.association.association()).await;
        };
        let mut end = SessionEnd {
            reason: CloseReason::Shutdown,
            cut: false,
            progressed: true,
            received: None,
            sent: None,
        };
        tokio::select! {
            biased;
            reason = self.association.association().closed() => {
                end.reason = reason;
                self.done();
                return end;
            }
            () = drained => self.done(),
            () = &mut late => {
                self.done();
                end.progressed = acknowledged() > before;
                end.cut = true;
                self.association.association().abort("time is over");
                end.reason = self.association.association().closed().await;
                return end;
            }
        }
        let counted =
            |text: &Option<ControlMessage>| matches!(text, Some(ControlMessage::Received(_)));
        if let Ok(Ok(text)) = timeout(ANSWER, told.wait_for(counted)).await
            && let Some(ControlMessage::Received(received)) = *text
        {
            end.received = Some(received);
        }
        end.reason = self.association.shutdown_with_timeout(ANSWER).await;
        end
    }

    /// Records the present time as the time at which all data had arrived.
    fn done(&self) {
        let done = self.begin.elapsed().as_nanos() as u64;
        self.counted.done.store(done, Ordering::Relaxed);
    }

    /// Sends the messages of the job. Returns their number, and true if the time was over before
    /// the end.
    async fn send_messages(&self) -> (u64, bool) {
        let job = self.plan.job;
        let payload = Bytes::from(vec![0; job.message as usize]);
        let options = SendOptions::default().with_unordered(job.unordered);
        let until = self.plan.time.map(|time| self.begin + time);
        let over = self.time_over();
        tokio::pin!(over);
        let mut left = job.bytes.unwrap_or(u64::MAX);
        let mut pace = RateLimiter::new(job.rate);
        let mut messages = 0_u64;
        while left > 0 {
            // The time is checked after every few messages; while sending waits, `over` is polled
            // as well.
            let looks = messages.is_multiple_of(MESSAGES_PER_CHECK);
            let is_over = || until.is_some_and(|until| Instant::now() >= until);
            if looks && (*self.stop.borrow() || is_over()) {
                return (messages, true);
            }
            let size = left.min(job.message);
            let message = payload.slice(..size as usize);
            let send = async {
                pace.due(size).await;
                self.association
                    .send(message, options.with_stream(None))
                    .await
            };
            let sent = tokio::select! {
                biased;
                sent = send => sent,
                () = &mut over => return (messages, true),
            };
            if sent.is_err() {
                break;
            }
            messages += 1;
            left -= size;
        }
        (messages, false)
    }

    /// Waits until the time is over, or until the end of the measurement is requested.
    async fn time_over(&self) {
        let mut stop = self.stop.clone();
        let stopped = async {
            // If the sender is dropped, no request can follow.
            if stop.wait_for(|&stop| stop).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        match self.plan.time {
            Some(time) => tokio::select! {
                () = stopped => {}
                () = sleep_until(self.begin + time) => {}
            },
            None => stopped.await,
        }
    }

    /// Waits until the time limit after the end of the measurement has expired.
    async fn grace_expired(&self, over: bool) {
        if !over {
            self.time_over().await;
        }
        tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
    }

    /// Requests data from the server, and stops it when the time is over. Returns why the
    /// association ended, whether this end aborted it, and whether data arrived after the end of
    /// the time.
    async fn request_data(&self) -> (CloseReason, bool, bool) {
        let options = SendOptions::default().with_ppid(PPID).reliable();
        let say = |text: ControlMessage| {
            self.association
                .send(text.write(), options.with_immediate(true))
        };
        // Fails only if the association has ended, which is reported elsewhere.
        let _ = say(ControlMessage::Source(self.plan.job)).await;
        tokio::select! {
            biased;
            reason = self.association.association().closed() => return (reason, false, true),
            () = self.time_over() => {}
        }
        let before = self.counted.bytes.load(Ordering::Relaxed);
        let _ = say(ControlMessage::Stop).await;
        if let Ok(reason) = timeout(SHUTDOWN_TIMEOUT, self.association.association().closed()).await
        {
            return (reason, false, true);
        }
        let progressed = self.counted.bytes.load(Ordering::Relaxed) > before;
        self.association.association().abort("time is over");
        (
            self.association.association().closed().await,
            true,
            progressed,
        )
    }
}

/// Receives data, and counts it. This is needed even if this end sends, because unread data of the
/// peer must not delay the end.
async fn take(
    association: Connection,
    counted: Arc<SharedCounters>,
    begin: Instant,
    tell: watch::Sender<Option<ControlMessage>>,
) {
    while let Ok(Some(message)) = association.recv().await {
        if message.ppid == PPID {
            if let Some(text) = ControlMessage::read(&message.bytes) {
                tell.send_replace(Some(text));
            }
            continue;
        }
        let bytes = message.bytes.len() as u64;
        let now = begin.elapsed().as_nanos() as u64;
        counted.last.store(now, Ordering::Relaxed);
        counted.bytes.fetch_add(bytes, Ordering::Relaxed);
        counted.messages.fetch_add(1, Ordering::Relaxed);
    }
}
