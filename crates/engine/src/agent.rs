//! Adapters: transports, workloads and sinks as the simulator's agents.
//!
//! A flow's member is two agents, a source and a sink, that share one [`tally::Tally`]: what the metrics need, kept while
//! the run goes on, so that memory does not follow its length.

pub mod bins;
pub mod inspect;
pub mod meter;
pub mod once;
pub mod packets;
pub mod sctp;
pub mod tally;
pub mod tcp;
pub mod udp;

use anabranch_scenario::Workload as WorkloadSpec;
use anabranch_scenario::flow::TraceMessage;
use anabranch_sim::workload::{
    Bulk, Cbr, Message, Offer, OnOff, Span, Trace, TraceEntry, Workload,
};
use anabranch_sim::{BuildError, Rng};
use anabranch_transport::Nanos;

/// A workload as the simulator has it; `message` is the size where the spec leaves it open.
///
/// # Errors
/// Values that the simulator refuses: a rate of 0, messages of 0 bytes.
pub fn workload(
    spec: &WorkloadSpec,
    message: usize,
    rng: Rng,
) -> Result<Box<dyn Workload>, BuildError> {
    Ok(match spec {
        WorkloadSpec::Bulk {
            message: size,
            total,
        } => {
            let size = size.map_or(message, |size| size.0 as usize);
            match total {
                Some(total) => Box::new(Bulk::of(total.0, size)),
                None => Box::new(Bulk::endless(size)),
            }
        }
        WorkloadSpec::Cbr { rate, message } => Box::new(Cbr::new(rate.0, message.0 as usize)?),
        WorkloadSpec::OnOff {
            rate,
            message,
            on,
            off,
            exponential,
        } => {
            let span = |mean: Nanos| {
                if *exponential {
                    Span::Exponential(mean)
                } else {
                    Span::Fixed(mean)
                }
            };
            Box::new(OnOff::new(
                rate.0,
                message.0 as usize,
                span(on.0),
                span(off.0),
                rng,
            )?)
        }
        WorkloadSpec::Trace { messages } => {
            let entry = |message: &TraceMessage| TraceEntry {
                after: message.at.0,
                message: Message {
                    size: message.size.0 as usize,
                    stream: Some(message.stream),
                },
            };
            Box::new(Trace::new(messages.iter().map(entry).collect())?)
        }
    })
}

/// A workload with the message that was taken from it and found no room yet.
pub struct Feed {
    workload: Box<dyn Workload>,
    waiting: Option<Message>,
    next: Option<Nanos>,
    state: FeedState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedState {
    NotStarted,
    Running,
    Over,
}

impl Feed {
    /// A feed that offers nothing before it is started.
    pub fn new(workload: Box<dyn Workload>) -> Self {
        Self {
            workload,
            waiting: None,
            next: None,
            state: FeedState::NotStarted,
        }
    }

    /// Offers from now on.
    pub fn start(&mut self) {
        self.state = FeedState::Running;
    }

    /// Offers nothing more.
    pub fn stop(&mut self) {
        self.state = FeedState::Over;
        (self.waiting, self.next) = (None, None);
    }

    /// Whether it will never offer anything more.
    pub fn is_over(&self) -> bool {
        self.state == FeedState::Over
    }

    /// When it has to be asked again; `None` while it waits for room.
    pub fn deadline(&self) -> Option<Nanos> {
        self.next
    }

    /// The next message, if there is one now. It comes again until it is [taken](Feed::take).
    pub fn peek(&mut self, now: Nanos) -> Option<Message> {
        if self.waiting.is_some() || self.state != FeedState::Running {
            return self.waiting;
        }
        if self.next.is_some_and(|next| next > now) {
            return None;
        }
        self.next = None;
        match self.workload.next(now) {
            Offer::Now(message) => self.waiting = Some(message),
            Offer::At(next) => self.next = Some(next),
            Offer::Done => self.state = FeedState::Over,
        }
        self.waiting
    }

    /// The message of [`Feed::peek`] found room.
    pub fn take(&mut self) {
        self.waiting = None;
    }
}

/// The earlier of two deadlines.
pub fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
