//! Adapters that run transports, workloads and sinks as agents of the simulator.
//!
//! A member of a flow consists of two agents, a source and a sink, which share one
//! [`flow_stats::FlowStats`]. It accumulates the data for the metrics during the run, so that
//! memory does not grow with the length of the run.

pub mod aggregation;
pub mod client;
pub mod duplicate_check;
pub mod flow_stats;
pub mod histogram;
pub mod inspect;
pub mod message_header;
pub mod meter;
pub mod observer;
pub mod packet_counter;
pub mod packets;
pub mod resume;
pub mod series;
pub mod transfers;

use anabranch_sim::workload::{BoxedWorkload, Facts, Message, NextMessage, Workload};
use anabranch_transport::Nanos;

/// A workload, and the message taken from it that the transport has not accepted yet.
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
    /// Creates a feed that offers no message until it is started.
    pub fn new(workload: BoxedWorkload) -> Self {
        Self {
            workload,
            waiting: None,
            next: None,
            state: FeedState::NotStarted,
        }
    }

    /// Starts to offer messages.
    pub fn start(&mut self) {
        self.state = FeedState::Running;
    }

    /// Stops offering messages.
    pub fn stop(&mut self) {
        self.state = FeedState::Over;
        (self.waiting, self.next) = (None, None);
    }

    /// Whether the workload has ended, so that the feed will offer no further message.
    pub fn is_over(&self) -> bool {
        self.state == FeedState::Over
    }

    /// Time at which the feed must be polled again, nanoseconds; `None` while it waits for buffer
    /// space.
    pub fn deadline(&self) -> Option<Nanos> {
        self.next
    }

    /// Returns the next message that is due, if any. The same message is returned again until it is
    /// [taken](Feed::take).
    pub fn peek(&mut self, now: Nanos) -> Option<Message> {
        if self.waiting.is_some() || self.state != FeedState::Running {
            return self.waiting;
        }
        if self.next.is_some_and(|next| next > now) {
            return None;
        }
        self.next = None;
        match self.workload.next(now) {
            NextMessage::Now(message) => self.waiting = Some(message),
            NextMessage::At(next) => self.next = Some(next),
            NextMessage::Waiting => {}
            NextMessage::Done => self.state = FeedState::Over,
        }
        self.waiting
    }

    /// Like [`Feed::peek`], but returns a reference.
    #[inline]
    pub fn waiting(&mut self, now: Nanos) -> Option<&Message> {
        if self.waiting.is_none() {
            self.peek(now);
        }
        self.waiting.as_ref()
    }

    /// Notifies the workload that the last byte of an answer has arrived.
    pub fn answered(&mut self, now: Nanos) {
        self.workload.answered(now);
    }

    /// Static properties of the workload.
    pub fn facts(&self) -> Facts {
        self.workload.facts()
    }

    /// Removes the message that [`Feed::peek`] returned, because the transport has accepted it.
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
