//! Observers: receive the events of a member of a flow, or of a direction of a link, during a run.

use std::any::Any;
use std::fmt::Debug;

use anabranch_sim::LinkSample;
use anabranch_transport::{Nanos, Probe, Sample};

use super::transfers::Transfer;

/// The end of a flow that an observer observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Only the sender.
    Sender,
    /// Only the receiver.
    Receiver,
    /// Both ends, or an unknown end.
    Both,
}

/// Observes one member of a flow, or one direction of a link, for one measure. Methods that are not
/// overridden cost nothing. Memory should depend on the retained data and not on the length of the
/// run.
pub trait Observer: Any + Debug + Send {
    /// The end of the flow that the observer observes. Two threads of a divided world can run the
    /// two ends of a flow only if each observer of the flow observes a single end. The default is
    /// [`End::Both`].
    fn end(&self) -> End {
        End::Both
    }

    /// Probes whose samples the observer needs.
    fn probes(&self) -> &[Probe] {
        &[]
    }

    /// Receives the initial congestion window of the sender, before the first packet from its peer.
    fn first_window(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Receives a sample of any enabled probe.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Called when `bytes` of payload reach the receiving application; `headers` are the bytes of
    /// the headers of its segments.
    fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        let _ = (at, bytes, headers);
    }

    /// Called when a whole message reaches the receiving application, `delay` nanoseconds after it
    /// was offered.
    fn message(&mut self, at: Nanos, delay: Nanos) {
        let _ = (at, delay);
    }

    /// Called when the last byte of a transfer reaches its receiver.
    fn transfer(&mut self, transfer: &Transfer) {
        let _ = transfer;
    }

    /// Receives a sample of a direction of a link, for a metric of links.
    fn link(&mut self, sample: &LinkSample) {
        let _ = sample;
    }

    /// Called when the run ends.
    fn close(&mut self, end: Nanos) {
        let _ = end;
    }
}

/// An observer for one window of a metric.
#[derive(Debug)]
pub struct Observing {
    /// Index of the metric among those of the run.
    pub measure: usize,
    /// Index of the window in the metric.
    pub window: usize,
    /// The observer.
    pub observer: Box<dyn Observer>,
}

impl Observing {
    /// The observer, if its type is `T`.
    pub fn get<T: Observer>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.observer;
        any.downcast_ref()
    }
}
