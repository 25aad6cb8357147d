//! Observers of measures: they watch a member of a flow, or a direction of a link, during a run.

use std::any::Any;
use std::fmt::Debug;

use anabranch_sim::LinkSample;
use anabranch_transport::{Nanos, Probe, Sample};

use super::transfers::Transfer;

/// Observes one member of a flow, or one direction of a link, for one measure. Methods that are not
/// overridden cost nothing. Memory should depend on the retained data and not on the length of the
/// run.
pub trait Observer: Any + Debug {
    /// The probes that it needs.
    fn probes(&self) -> &[Probe] {
        &[]
    }

    /// The initial congestion window of the sender, before the first answer of its peer.
    fn first_window(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// A sample of any probe that is enabled.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Payload reached the receiving application: `bytes`, and `headers` bytes that its segments
    /// added.
    fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        let _ = (at, bytes, headers);
    }

    /// A whole message reached the receiving application, `delay` after it was handed over.
    fn message(&mut self, at: Nanos, delay: Nanos) {
        let _ = (at, delay);
    }

    /// The last byte of a transfer reached its receiver.
    fn transfer(&mut self, transfer: &Transfer) {
        let _ = transfer;
    }

    /// A sample of a direction of a link, for a measure of links.
    fn link(&mut self, sample: &LinkSample) {
        let _ = sample;
    }

    /// The run ended.
    fn close(&mut self, end: Nanos) {
        let _ = end;
    }
}

/// An observer for one of the windows of a measure.
#[derive(Debug)]
pub struct Observing {
    /// Index of the measure among those of the run.
    pub measure: usize,
    /// Index of the window of the measure.
    pub window: usize,
    /// The observer.
    pub observer: Box<dyn Observer>,
}

impl Observing {
    /// The observer as its concrete type.
    pub fn get<T: Observer>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.observer;
        any.downcast_ref()
    }
}
