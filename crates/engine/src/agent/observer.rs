//! What a measure watches of a flow's member, or of a direction of a link, while a run goes on.

use std::any::Any;
use std::fmt::Debug;

use anabranch_sim::LinkSample;
use anabranch_transport::{Nanos, Probe, Sample};

use super::transfers::Transfer;

/// Watches one member of a flow, or one direction of a link, for one measure. Only what it overrides costs anything; memory should follow what is kept,
/// not the length of the run.
pub trait Observer: Any + Debug {
    /// The probes that it needs.
    fn probes(&self) -> &[Probe] {
        &[]
    }

    /// The congestion window that the sender begins with, before its peer has answered.
    fn first_window(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// A sample of any probe that somebody needs.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }

    /// Payload reached the receiving application: `bytes`, and `headers` bytes that its segments added.
    fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        let _ = (at, bytes, headers);
    }

    /// A whole message reached it, `delay` after it was handed over.
    fn message(&mut self, at: Nanos, delay: Nanos) {
        let _ = (at, delay);
    }

    /// The last byte of a transfer reached its receiver.
    fn transfer(&mut self, transfer: &Transfer) {
        let _ = transfer;
    }

    /// A sample of a direction of a link, for a measure that watches one.
    fn link(&mut self, sample: &LinkSample) {
        let _ = sample;
    }

    /// The run is over.
    fn close(&mut self, end: Nanos) {
        let _ = end;
    }
}

/// An observer of one of a measure's windows.
#[derive(Debug)]
pub struct Observing {
    /// The place of the measure among those of the run.
    pub measure: usize,
    /// Which of the measure's windows.
    pub window: usize,
    /// Who watches.
    pub observer: Box<dyn Observer>,
}

impl Observing {
    /// The observer, as the measure made it.
    pub fn get<T: Observer>(&self) -> Option<&T> {
        let any: &dyn Any = &*self.observer;
        any.downcast_ref()
    }
}
