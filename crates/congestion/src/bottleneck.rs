//! Simulated bottleneck for tests of controllers that pace: 10 Mbit/s, a drop-tail queue, and
//! segments of 1000 bytes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_transport::Nanos;
use anabranch_transport::time::{self, MILLISECOND as MS};

use crate::rate_sample::RateSampler;
use crate::recovery::RackTransmission;
use crate::{AckSample, CongestionControl, LossCause};

pub(crate) const SEGMENT: u64 = 1000;

/// A sender that always has data to send.
pub(crate) struct Flow<C, S> {
    pub control: C,
    state: fn(&C) -> S,
    pub sampler: RateSampler,
    /// Segments in flight: their numbers, and the times at which they were sent.
    pub flying: BTreeMap<u64, Nanos>,
    next: u64,
    opens: Nanos,
    pub delivered: u64,
    lost_until: Option<u64>,
    /// States of the controller so far, without repetition.
    pub states: Vec<S>,
    pub paused: bool,
}

/// Flow and number of a segment that is acknowledged.
type Arrival = (usize, u64);

pub(crate) struct Line<C, S> {
    pub now: Nanos,
    pub flows: Vec<Flow<C, S>>,
    /// Transmission time of a segment, maximum number of queued segments, and sum of the delays in
    /// both directions.
    service: Nanos,
    room: usize,
    pub delay: Nanos,
    /// One of this many segments is lost at random; 0: no segment is lost.
    pub loss: u64,
    random: u64,
    waiting: VecDeque<Arrival>,
    free_at: Nanos,
    back: BTreeSet<(Nanos, u64, usize)>,
}

impl<C: CongestionControl, S: PartialEq> Line<C, S> {
    /// A line of 10 Mbit/s and 40 ms, which holds 50 segments; the queue holds `room` more.
    pub(crate) fn new(flows: usize, room: usize, make: fn() -> C, state: fn(&C) -> S) -> Self {
        let flow = |_| Flow {
            state,
            control: make(),
            sampler: RateSampler::default(),
            flying: BTreeMap::new(),
            next: 0,
            opens: 0,
            delivered: 0,
            lost_until: None,
            states: vec![state(&make())],
            paused: false,
        };
        Self {
            now: 0,
            flows: (0..flows).map(flow).collect(),
            service: 800_000,
            room,
            delay: 40 * MS,
            loss: 0,
            random: 1,
            waiting: VecDeque::new(),
            free_at: 0,
            back: BTreeSet::new(),
        }
    }

    fn is_lost(&mut self) -> bool {
        // A multiplicative generator is sufficient for these losses.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.loss > 0 && (self.random >> 33).is_multiple_of(self.loss)
    }

    fn send(&mut self, index: usize) {
        loop {
            let now = self.now;
            let flow = &mut self.flows[index];
            let flight = flow.flying.len() as u64 * SEGMENT;
            let room = flight + SEGMENT <= flow.control.cwnd();
            if flow.paused || now < flow.opens || !room {
                return;
            }
            let number = flow.next;
            flow.next += 1;
            flow.flying.insert(number, now);
            let sent = RackTransmission {
                sent_at: now,
                number,
            };
            flow.sampler
                .on_sent(sent, number, SEGMENT, flight + SEGMENT);
            flow.control.on_sent(now, SEGMENT, flight + SEGMENT);
            let gap = SEGMENT as f64 / flow.control.pacing_rate().unwrap();
            flow.opens = flow.opens.max(now) + time::from_seconds(gap);
            if self.waiting.len() < self.room && !self.is_lost() {
                self.waiting.push_back((index, number));
                let begins = self.free_at.max(now);
                self.free_at = begins + self.service;
                self.back.insert((self.free_at + self.delay, number, index));
            }
        }
    }

    /// Acknowledges segment `number` of a flow. Unacknowledged segments that were sent three or
    /// more before it count as lost.
    fn acknowledge(&mut self, index: usize, number: u64) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let before = flow.flying.len() as u64 * SEGMENT;
        let sent_at = flow.flying.remove(&number).unwrap();
        flow.delivered += 1;
        flow.sampler
            .on_delivered(now, RackTransmission { sent_at, number });
        let lost: Vec<(u64, Nanos)> = flow
            .flying
            .range(..number.saturating_sub(2))
            .map(|(&number, &at)| (number, at))
            .collect();
        for &(number, sent_at) in &lost {
            flow.flying.remove(&number);
            let found = flow.sampler.on_lost(RackTransmission { sent_at, number });
            flow.control.on_packet_lost(&found.unwrap());
        }
        let in_recovery = flow.lost_until.is_some_and(|until| number < until);
        if !lost.is_empty() && !in_recovery {
            flow.lost_until = Some(flow.next);
            flow.control.on_loss(now, LossCause::FastRetransmit, before);
        }
        let after = flow.flying.len() as u64 * SEGMENT;
        let rtt = Some(now - sent_at);
        flow.control.on_ack(&AckSample {
            now,
            bytes_acked: SEGMENT,
            segments_acked: 1,
            cumulative_advanced: true,
            flightsize_before: before,
            flightsize_after: after,
            in_recovery: in_recovery || !lost.is_empty(),
            latest_rtt: rtt,
            rate: flow.sampler.take_sample(rtt),
            ..AckSample::default()
        });
        if flow.control.limits_itself() {
            flow.sampler.on_app_limited(after);
        }
        let state = (flow.state)(&flow.control);
        if flow.states.last() != Some(&state) {
            flow.states.push(state);
        }
    }

    pub(crate) fn run_until(&mut self, end: Nanos) {
        loop {
            (0..self.flows.len()).for_each(|index| self.send(index));
            let opens = self.flows.iter().filter(|flow| {
                let flight = (flow.flying.len() as u64 + 1) * SEGMENT;
                !flow.paused && flight <= flow.control.cwnd()
            });
            let opens = opens.map(|flow| flow.opens.max(self.now + 1)).min();
            let arrives = self.back.first().map(|&(at, _, _)| at);
            let Some(next) = opens
                .into_iter()
                .chain(arrives)
                .min()
                .filter(|&at| at <= end)
            else {
                self.now = end;
                return;
            };
            self.now = next;
            // Removes the segments that have left the queue by now.
            let kept = self.free_at.saturating_sub(next).div_ceil(self.service) as usize;
            while self.waiting.len() > kept {
                self.waiting.pop_front();
            }
            while let Some(&(at, number, index)) = self.back.first()
                && at <= next
            {
                self.back.pop_first();
                self.acknowledge(index, number);
            }
        }
    }

    /// Number of segments that each flow delivers in the next `span` nanoseconds.
    pub(crate) fn delivered_in(&mut self, span: Nanos) -> Vec<u64> {
        let before: Vec<u64> = self.flows.iter().map(|flow| flow.delivered).collect();
        self.run_until(self.now + span);
        let after = self.flows.iter().map(|flow| flow.delivered);
        after
            .zip(before)
            .map(|(after, before)| after - before)
            .collect()
    }
}
