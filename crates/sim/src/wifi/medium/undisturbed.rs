//! Frames without interference, which are processed in one step and not edge by edge.
//!
//! While one frame is alone on the air and no station has a deadline, the only events are the
//! beginning and the end of the frame at each listener, and the result depends only on the received
//! power. Such a frame is therefore not added to the transmissions whose edges are events. The
//! stations receive the carrier and the frame in the same order and at the same times as if it were
//! processed edge by edge. If an event intervenes, the frame is added to the transmissions in its
//! current state, and the remaining edges are processed one by one.

use anabranch_transport::Nanos;

use super::{Listener, Medium, Station};
use crate::wifi::event_queue::Transmission;
use crate::wifi::frame::Frame;
use crate::wifi::phy::{SignalEnd, SignalStart, TransmissionId};

/// Number of listeners at which a frame has begun, and at which it has ended, nearest first.
#[derive(Clone, Copy, Default)]
pub(super) struct Progress {
    pub begun: usize,
    pub ended: usize,
}

impl<P> Medium<P> {
    /// Processes a frame in one step until an event intervenes or `limit` is reached. If the frame
    /// has not ended at all listeners by then, adds it to the transmissions, or holds it.
    pub(super) fn send(&mut self, frame: &Frame, start: Nanos, limit: Nanos) {
        let id = self.next_transmission;
        self.next_transmission += 1;
        let listeners = self.stations[frame.from.index()].listeners.len();
        let mut passed = Progress::default();
        if self.air.transmissions.is_empty() && self.may_begin(frame, start, limit) {
            passed.begun = self.begin_everywhere(frame, start);
            let (_, farthest) = self.reach_of(frame);
            if passed.begun == listeners {
                if start + frame.air_time + farthest < limit {
                    passed.ended = self.end_until_disturbed(frame, start);
                } else if self.hold(id, frame, start) {
                    return;
                }
            }
        }
        if passed.ended < listeners {
            self.put_on_air(id, frame, start, passed);
        }
    }

    /// Whether a frame that is alone will begin at all listeners before any other event. The frame
    /// must also end before `limit`, unless it may be held.
    fn may_begin(&self, frame: &Frame, start: Nanos, limit: Nanos) -> bool {
        let (nearest, farthest) = self.reach_of(frame);
        let span = if self.holding { 0 } else { frame.air_time };
        farthest - nearest < frame.air_time
            && start + span + farthest < limit
            && start + farthest <= self.deadlines.earliest.0
    }

    /// Minimum and maximum delay from the sender of a frame to its listeners.
    fn reach_of(&self, frame: &Frame) -> (Nanos, Nanos) {
        match &self.stations[frame.from.index()].listeners[..] {
            [nearest, .., farthest] => (nearest.delay, farthest.delay),
            [only] => (only.delay, only.delay),
            [] => (0, 0),
        }
    }

    /// Begins a frame at its listeners, nearest first, up to the first listener that cannot
    /// receive. Returns the number of listeners at which it began.
    fn begin_everywhere(&mut self, frame: &Frame, start: Nanos) -> usize {
        let from = frame.from.index();
        let mut begun = 0;
        while let Some(&listener) = self.stations[from].listeners.get(begun) {
            if !self.begins_alone(start + listener.delay, listener) {
                break;
            }
            begun += 1;
        }
        begun
    }

    /// Ends a frame at its listeners, nearest first, until an event intervenes. Returns the number
    /// of listeners at which it ended.
    fn end_until_disturbed(&mut self, frame: &Frame, start: Nanos) -> usize {
        let from = frame.from.index();
        let mut ended = 0;
        let end = start + frame.air_time;
        // A delivered packet may be reported after the frame has passed all listeners, if this is
        // before the layer above its receiver has processed the packet.
        let (nearest, farthest) = self.reach_of(frame);
        let in_time = farthest - nearest < self.rules.parameters.link_layer_delay;
        while let Some(&listener) = self.stations[from].listeners.get(ended) {
            let now = end + listener.delay;
            let told = in_time || self.outcomes.is_empty() || now == self.now;
            if self.deadlines.earliest.0 < now || !told {
                break;
            }
            self.ends_alone(now, listener, frame);
            ended += 1;
        }
        ended
    }

    /// Begins a frame at a listener that detects no other signal. Returns whether it began there.
    #[inline]
    fn begins_alone(&mut self, now: Nanos, listener: Listener) -> bool {
        let index = listener.station.index();
        let Station { dcf, receiver, .. } = &mut self.stations[index];
        if receiver.is_transmitting(now) {
            return false;
        }
        if !self.rules.parameters.radio.decodes(listener.power) {
            dcf.stats.heard(SignalStart::Weak);
        }
        dcf.carrier_begins(now, &self.rules);
        self.deadlines.set(index, dcf.deadline());
        self.reach(now);
        self.events += 1;
        true
    }

    /// Ends a frame at a listener that has detected no other signal.
    #[inline]
    pub(super) fn ends_alone(&mut self, now: Nanos, listener: Listener, frame: &Frame) {
        let ending = match self.rules.parameters.radio.decodes(listener.power) {
            true => SignalEnd::Decoded,
            false => SignalEnd::Spoiled,
        };
        self.reach(now);
        self.events += 1;
        self.stations[listener.station.index()]
            .dcf
            .carrier_ends(now);
        self.heard(now, listener.station, (ending, false), frame);
    }

    /// Adds a frame that was processed in part to the transmissions, so that its remaining edges
    /// are processed one by one.
    #[inline(never)]
    pub(super) fn put_on_air(
        &mut self,
        id: TransmissionId,
        frame: &Frame,
        start: Nanos,
        passed: Progress,
    ) {
        let Progress { begun, ended } = passed;
        let from = frame.from.index();
        for place in ended..begun {
            let Listener {
                station,
                delay,
                power,
            } = self.stations[from].listeners[place];
            let receiver = &mut self.stations[station.index()].receiver;
            receiver.begin(start + delay, id, power, &self.rules.parameters.radio);
        }
        let listeners = &self.stations[from].listeners;
        let begins = listeners.get(begun).map(|it| start + it.delay);
        let ends = listeners
            .get(ended)
            .map(|it| start + frame.air_time + it.delay);
        if let Some(next) = begins.into_iter().chain(ends).min() {
            self.air.begin(Transmission {
                id,
                frame: *frame,
                start,
                begun,
                ended,
                next,
            });
        }
    }
}
