//! What is done over one association: sending, or asking the server to send, and ending in time.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_net::{Association, CloseReason, SendOptions};
use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use super::counters::Counted;
use crate::wire::arguments::Perf;
use crate::wire::pace::Pace;
use crate::wire::talk::{Job, PPID, Received, Sent, Text};
use crate::wire::{PATIENCE, all_acknowledged};

/// How long the other end has to say what it counted, and then to close: time for a packet to be lost twice (1 s and 2 s), and to come.
const ANSWER: Duration = Duration::from_secs(5);
/// Messages sent without waiting before the clock is asked whether time is over.
const MESSAGES_BETWEEN_LOOKS: u64 = 16;

/// What a measurement is to do.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub job: Job,
    /// How long; `None`: until the job's bytes are there.
    pub time: Option<Duration>,
    /// The server sends.
    pub reverse: bool,
}

impl Plan {
    /// As the command line says.
    fn of(arguments: &Perf) -> Self {
        let time = Duration::from_nanos(arguments.time.0);
        Self {
            job: Job {
                message: arguments.message.0,
                bytes: arguments.bytes.map(|bytes| bytes.0),
                unordered: arguments.unordered,
                rate: arguments.bitrate.map(|rate| rate.0),
            },
            time: arguments.bytes.is_none().then_some(time),
            reverse: arguments.reverse,
        }
    }

    /// One for each association: in one direction, or as many again in the other.
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

    /// The part of association `index` of `count`: the bytes are of all together.
    fn share(self, index: u64, count: u64) -> Self {
        let share = |bytes: u64| bytes / count + u64::from(index < bytes % count);
        Self {
            job: Job {
                bytes: self.job.bytes.map(share),
                ..self.job
            },
            ..self
        }
    }
}

/// How it ended.
#[derive(Debug)]
pub struct End {
    pub reason: CloseReason,
    /// It was aborted here, since what was in flight when time was over took too long.
    pub cut: bool,
    /// Something arrived after time was over.
    pub progressed: bool,
    /// What the other end counted, or did.
    pub received: Option<Received>,
    pub sent: Option<Sent>,
}

/// The work over one association.
pub struct Work {
    pub association: Association,
    pub counted: Arc<Counted>,
    pub plan: Plan,
    pub begin: Instant,
    /// Somebody wants it to end as if time were over.
    pub stop: watch::Receiver<bool>,
}

impl Work {
    /// Does it, and closes the association.
    pub async fn run(self) -> End {
        let (tell, told) = watch::channel(None);
        let taking = tokio::spawn(take(
            self.association.clone(),
            Arc::clone(&self.counted),
            self.begin,
            tell,
        ));
        if self.plan.reverse {
            let (reason, cut, progressed) = self.ask().await;
            // What came before the end is counted.
            let _ = taking.await;
            let last = self.counted.last.load(Ordering::Relaxed);
            self.counted.done.store(last, Ordering::Relaxed);
            let sent = match *told.borrow() {
                Some(Text::Sent(sent)) => Some(sent),
                _ => None,
            };
            End {
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

    /// Sends until time is over, or until the job's bytes are sent, or the association takes no more; then closes it.
    async fn send(self, mut told: watch::Receiver<Option<Text>>) -> End {
        let (fed, stopped) = self.feed().await;
        // What was not begun when time is over would keep it open for as long as the path takes for a full buffer.
        let withdrawn = match stopped {
            true => self.association.cancel_unsent() as u64,
            false => 0,
        };
        let messages = fed - withdrawn;
        let acknowledged = || {
            let status = self.association.status();
            status.map_or(0, |it| it.counters.sender.bytes_acknowledged)
        };
        if let Some(status) = self.association.status() {
            let bytes = status.counters.sender.bytes_sent + status.penddata as u64;
            self.counted.fed_messages.store(messages, Ordering::Relaxed);
            self.counted.fed_bytes.store(bytes, Ordering::Relaxed);
        }
        let before = acknowledged();
        let late = self.late(stopped);
        tokio::pin!(late);
        let drained = async {
            // Where messages may be given up nobody knows how many come; what came is behind what was acknowledged or given up.
            let gives_up = self.association.negotiated().partial_reliability;
            if gives_up {
                all_acknowledged(&self.association).await;
            }
            let messages = if gives_up { 0 } else { messages };
            let text = Text::Count { messages }.write();
            let options = SendOptions::default().with_ppid(PPID).reliable();
            // Refused where the association has ended, which is told otherwise.
            let _ = self
                .association
                .send(text, options.with_immediate(true))
                .await;
            all_acknowledged(&self.association).await;
        };
        let mut end = End {
            reason: CloseReason::Shutdown,
            cut: false,
            progressed: true,
            received: None,
            sent: None,
        };
        tokio::select! {
            biased;
            reason = self.association.closed() => {
                end.reason = reason;
                self.done();
                return end;
            }
            () = drained => self.done(),
            () = &mut late => {
                self.done();
                end.progressed = acknowledged() > before;
                end.cut = true;
                self.association.abort("time is over");
                end.reason = self.association.closed().await;
                return end;
            }
        }
        let counted = |text: &Option<Text>| matches!(text, Some(Text::Received(_)));
        if let Ok(Ok(text)) = timeout(ANSWER, told.wait_for(counted)).await
            && let Some(Text::Received(received)) = *text
        {
            end.received = Some(received);
        }
        if let Err(lost) = self.association.shutdown_with_timeout(ANSWER).await {
            end.reason = lost.0;
        }
        end
    }

    /// Notes that what arrived by now is all.
    fn done(&self) {
        let done = self.begin.elapsed().as_nanos() as u64;
        self.counted.done.store(done, Ordering::Relaxed);
    }

    /// Gives how many messages were sent, and whether time was over.
    async fn feed(&self) -> (u64, bool) {
        let job = self.plan.job;
        let payload = Bytes::from(vec![0; job.message as usize]);
        let options = SendOptions::default().with_unordered(job.unordered);
        let until = self.plan.time.map(|time| self.begin + time);
        let over = self.over();
        tokio::pin!(over);
        let mut left = job.bytes.unwrap_or(u64::MAX);
        let mut pace = Pace::new(job.rate);
        let mut messages = 0_u64;
        while left > 0 {
            // Where sending waits, `over` is looked at beside it.
            let looks = messages.is_multiple_of(MESSAGES_BETWEEN_LOOKS);
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

    /// Waits until time is over, or somebody wants it to be.
    async fn over(&self) {
        let mut stop = self.stop.clone();
        let stopped = async {
            // An error says that nobody can want it any more.
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

    /// Waits until time has been over for longer than anybody wants to wait.
    async fn late(&self, over: bool) {
        if !over {
            self.over().await;
        }
        tokio::time::sleep(PATIENCE).await;
    }

    /// Asks the server to send, and tells it when time is over. Gives how it ended, whether it was cut, and whether something
    /// arrived after time was over.
    async fn ask(&self) -> (CloseReason, bool, bool) {
        let options = SendOptions::default().with_ppid(PPID).reliable();
        let say = |text: Text| {
            self.association
                .send(text.write(), options.with_immediate(true))
        };
        // Refused where the association has ended, which is told otherwise.
        let _ = say(Text::Source(self.plan.job)).await;
        tokio::select! {
            biased;
            reason = self.association.closed() => return (reason, false, true),
            () = self.over() => {}
        }
        let before = self.counted.bytes.load(Ordering::Relaxed);
        let _ = say(Text::Stop).await;
        if let Ok(reason) = timeout(PATIENCE, self.association.closed()).await {
            return (reason, false, true);
        }
        let progressed = self.counted.bytes.load(Ordering::Relaxed) > before;
        self.association.abort("time is over");
        (self.association.closed().await, true, progressed)
    }
}

/// Takes what comes, and counts it. Where nothing was asked for it may come all the same, and nobody is to wait for that.
async fn take(
    association: Association,
    counted: Arc<Counted>,
    begin: Instant,
    tell: watch::Sender<Option<Text>>,
) {
    while let Ok(Some(message)) = association.recv().await {
        if message.ppid == PPID {
            if let Some(text) = Text::read(&message.bytes) {
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
