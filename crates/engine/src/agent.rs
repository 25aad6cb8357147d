//! Adapters: transports, workloads and sinks as the simulator's agents.
//!
//! A flow's member is two agents, a source and a sink, that share one [`tally::Tally`]: what the metrics need, kept while
//! the run goes on, so that memory does not follow its length.

pub mod calling;
pub mod distribution;
pub mod inspect;
pub mod meter;
pub mod observer;
pub mod once;
pub mod packet_counter;
pub mod packets;
pub mod resume;
pub mod series;
pub mod stamp;
pub mod taking;
pub mod tally;
pub mod transfers;

use anabranch_sim::workload::{BoxedWorkload, Facts, Message, Offer, Workload};
use anabranch_transport::Nanos;

/// A workload with the message that was taken from it and found no room yet.
pub struct Feed {
    workload: BoxedWorkload,
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
    pub fn new(workload: BoxedWorkload) -> Self {
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
            Offer::Waiting => {}
            Offer::Done => self.state = FeedState::Over,
        }
        self.waiting
    }

    /// As [`Feed::peek`], lent.
    #[inline]
    pub fn waiting(&mut self, now: Nanos) -> Option<&Message> {
        if self.waiting.is_none() {
            self.peek(now);
        }
        self.waiting.as_ref()
    }

    /// The last byte of an answer arrived.
    pub fn answered(&mut self, now: Nanos) {
        self.workload.answered(now);
    }

    /// What is known of its workload.
    pub fn facts(&self) -> Facts {
        self.workload.facts()
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
