//! Time-based loss recovery: RACK-TLP (RFC 8985), which uses the send times of the segments in
//! flight.
//!
//! Duplicate acknowledgements are not counted. A segment is lost if a segment sent later has
//! arrived and a reordering window has passed since, so lost retransmissions are detected as well.
//! After a timeout, only the first segment and overdue segments are retransmitted immediately; the
//! others follow as acknowledgements arrive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use anabranch_congestion::recovery::{
    Rack as Rule, RackDecision, RackTransmission, TailProbe, tail_probe,
};
use anabranch_congestion::{LossCause, RateSample, RateSampler};
use anabranch_transport::Nanos;

use super::{
    Acknowledgement, ByTime, Due, Flow, Moment, NextSegment, Outcome, Recovery, note_blocks,
};

/// Maximum number of transmissions that are searched for the newest segment still missing.
const MAX_EXAMINED: usize = 64;

/// A segment that was sent and that the peer has not reported.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Offset after the segment.
    end: u64,
    sent_at: Nanos,
    times: u32,
    lost: bool,
}

/// A single transmission of a segment; retransmissions are separate ones.
#[derive(Clone, Copy, Debug)]
struct Sending {
    start: u64,
    transmission: RackTransmission,
}

/// Segment that a tail loss probe sends when the probe timer expires.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tail {
    /// A segment of new data.
    New,
    /// A retransmission of the last segment.
    Again(Range<u64>),
}

#[derive(Debug)]
pub(super) struct Rack {
    rule: Rule,
    /// Missing segments by their start offset.
    missing: BTreeMap<u64, Segment>,
    /// Start offsets of segments that are lost and not yet retransmitted.
    lost: BTreeSet<u64>,
    /// All transmissions, in the order in which they were sent. Transmissions of segments that are
    /// no longer missing are removed when they reach the front.
    sent: VecDeque<Sending>,
    /// Number of bytes in flight.
    pipe: u64,
    recovery_point: Option<u64>,
    /// After a timeout: offset after the highest byte sent before it. Losses below this offset are
    /// attributed to the timeout.
    timeout_point: Option<u64>,
    cut_at: Nanos,
    deadline: Option<Nanos>,
    tail: TailProbe,
    by: ByTime,
    sampler: Option<Box<RateSampler>>,
    owed_probe: Option<Tail>,
    /// One retransmission must be sent even if the window is full.
    owed: bool,
}

impl Rack {
    /// Creates the state of a new connection.
    pub(super) fn new(by: ByTime) -> Self {
        Self {
            rule: Rule::default(),
            missing: BTreeMap::new(),
            lost: BTreeSet::new(),
            sent: VecDeque::new(),
            pipe: 0,
            recovery_point: None,
            timeout_point: None,
            cut_at: 0,
            deadline: None,
            tail: TailProbe::default(),
            by,
            sampler: by.samples.then(Box::default),
            owed_probe: None,
            owed: false,
        }
    }

    /// Updates the state for a segment that has arrived.
    fn delivered(&mut self, now: Nanos, start: u64, segment: &Segment) {
        if segment.lost {
            self.lost.remove(&start);
        } else {
            self.pipe -= segment.end - start;
        }
        if segment.times == 1 {
            self.tail.on_measured();
        }
        let transmission = RackTransmission {
            sent_at: segment.sent_at,
            number: segment.end - 1,
        };
        self.rule.on_delivered(now, transmission, segment.times > 1);
        if let Some(sampler) = &mut self.sampler {
            sampler.on_delivered(now, transmission);
        }
    }

    /// Updates the state after everything below `una` has arrived.
    fn advance(&mut self, now: Nanos, una: u64) {
        while let Some((&start, &segment)) = self.missing.first_key_value() {
            if start >= una {
                return;
            }
            self.missing.remove(&start);
            if segment.end <= una {
                self.delivered(now, start, &segment);
                continue;
            }
            // Only the first part of the segment has arrived; the remainder becomes a separate
            // segment.
            if segment.lost {
                self.lost.remove(&start);
                self.lost.insert(una);
            } else {
                self.pipe -= una - start;
            }
            self.missing.insert(una, segment);
            return;
        }
    }

    /// Updates the state after the data of a SACK block has arrived.
    fn report(&mut self, now: Nanos, block: &Range<u64>) {
        if block.start >= block.end {
            return;
        }
        let within = |(start, segment): (&u64, &Segment)| {
            (segment.end <= block.end).then_some((*start, *segment))
        };
        while let Some((start, segment)) = self.missing.range(block.clone()).next().and_then(within)
        {
            self.missing.remove(&start);
            self.delivered(now, start, &segment);
        }
    }

    fn flies(&self, sending: &Sending) -> bool {
        self.missing
            .get(&sending.start)
            .is_some_and(|segment| !segment.lost && segment.sent_at == sending.transmission.sent_at)
    }

    fn recovers(&self) -> bool {
        self.recovery_point.is_some() || self.timeout_point.is_some()
    }

    /// Marks segments as lost according to the arrived data and the reordering window. Returns
    /// whether the losses indicate congestion to which the sender has not yet responded.
    fn find_lost(&mut self, flow: &mut Flow, moment: &Moment) -> bool {
        let reported = flow.board.reported().div_ceil(flow.mss) as u32;
        let window = self.rule.window(self.recovers(), reported, moment.srtt);
        let mut news = false;
        self.deadline = None;
        while let Some(&sending) = self.sent.front() {
            if !self.flies(&sending) {
                self.sent.pop_front();
                continue;
            }
            match self.rule.judge(moment.now, sending.transmission, window) {
                RackDecision::Lost => {
                    self.sent.pop_front();
                    news |= self.lose(flow, sending.start);
                }
                RackDecision::LostAt(_) => {
                    self.start_timer(moment.now, window);
                    break;
                }
                RackDecision::Unknown => break,
            }
        }
        news
    }

    /// Marks a segment as lost. Returns whether this indicates new congestion. During recovery, it
    /// does only if the segment was retransmitted after the window was reduced (RFC 5681 §4.3).
    fn lose(&mut self, flow: &mut Flow, start: u64) -> bool {
        let Some(segment) = self.missing.get_mut(&start) else {
            return false;
        };
        segment.lost = true;
        self.pipe -= segment.end - start;
        self.lost.insert(start);
        let again = segment.times > 1 && segment.sent_at >= self.cut_at;
        let transmission = RackTransmission {
            sent_at: segment.sent_at,
            number: segment.end - 1,
        };
        let lost = self.sampler.as_mut();
        if let Some(lost) = lost.and_then(|it| it.on_lost(transmission)) {
            flow.control.on_packet_lost(&lost);
        }
        again || !self.recovers()
    }

    /// Starts the reordering timer for the newest transmission that may become lost because of the
    /// data that has arrived.
    fn start_timer(&mut self, now: Nanos, window: Nanos) {
        let judged =
            |it: &Sending| self.rule.judge(now, it.transmission, window) != RackDecision::Unknown;
        let behind = self.sent.partition_point(judged);
        let late = self.sent.range(..behind).rev().take(MAX_EXAMINED);
        let newest = late
            .clone()
            .find(|it| self.flies(it))
            .or(late.clone().next());
        self.deadline = newest.map(|it| {
            self.rule
                .overdue_at(it.transmission.sent_at, window)
                .max(now)
        });
    }

    /// Starts or restarts a recovery after a loss.
    fn enter(&mut self, flow: &mut Flow, now: Nanos) {
        self.recovery_point = Some(flow.max);
        self.timeout_point = None;
        self.cut_at = now;
        self.owed = true;
        flow.begin_reduction(self.pipe);
        flow.cut(now, LossCause::FastRetransmit, 0);
        self.tail.disarm();
    }

    /// Restarts or stops the probe timer (RFC 8985 §7.2).
    fn arm(&mut self, flow: &Flow, moment: &Moment) {
        match self.by.probes {
            Some(delay) if self.pipe > 0 && !self.recovers() && flow.board.reported() == 0 => {
                let alone = self.pipe <= flow.mss;
                let after = tail_probe::timeout(moment.srtt, alone, delay);
                self.tail.arm(moment.now, after, Nanos::MAX);
            }
            _ => self.tail.disarm(),
        }
    }

    /// Ends recovery if everything sent before it has arrived. Returns whether a recovery was in
    /// progress before.
    fn end_recovery(&mut self, una: u64) -> bool {
        let before = self.recovers();
        self.recovery_point = self.recovery_point.filter(|&point| una < point);
        self.timeout_point = self.timeout_point.filter(|&point| una < point);
        if before && !self.recovers() {
            self.rule.on_recovery_end();
            self.owed = false;
        }
        before
    }

    /// Range of the lowest lost segment, without the part that the peer has acknowledged.
    fn first_lost(&self) -> Option<Range<u64>> {
        let start = *self.lost.first()?;
        let segment = self.missing.get(&start)?;
        Some(start..segment.end)
    }
}

impl Recovery for Rack {
    fn on_ack(&mut self, flow: &mut Flow, ack: &Acknowledgement<'_>) -> Outcome {
        let now = ack.moment.now;
        let pipe_before = self.pipe;
        let reported = flow.board.advance(flow.una);
        let newly_sacked = note_blocks(flow, ack.blocks);
        self.advance(now, flow.una);
        for block in ack.blocks {
            self.report(now, &(block.start.max(flow.una)..block.end.min(flow.max)));
        }
        let delivered = pipe_before.saturating_sub(self.pipe);
        let in_recovery = self.end_recovery(flow.una);
        let mut outcome = Outcome {
            in_recovery: in_recovery && self.timeout_point.is_none(),
            sample: true,
            restart_timer: true,
            duplicate: ack.advanced == 0 && newly_sacked > 0,
            newly_sacked,
            delivered: (ack.advanced + newly_sacked).saturating_sub(reported),
            ..Outcome::default()
        };
        if self.find_lost(flow, &ack.moment) {
            outcome.entered = true;
            outcome.in_recovery = true;
            self.enter(flow, now);
        }
        let bare = ack.advanced == 0 && ack.blocks.is_empty();
        if self.tail.on_ack(flow.una, false, bare) && !self.recovers() {
            flow.cut(now, LossCause::FastRetransmit, 0);
        }
        if self.recovery_point.is_some() {
            flow.reduce(delivered, self.pipe);
        } else {
            flow.end_reduction();
        }
        self.owed_probe = None;
        self.arm(flow, &ack.moment);
        outcome
    }

    fn on_timeout(&mut self, flow: &mut Flow, moment: &Moment) {
        let window = self.rule.window(true, 0, moment.srtt);
        let overdue =
            |segment: &Segment| self.rule.overdue_at(segment.sent_at, window) <= moment.now;
        let first = self.missing.first_key_value().map(|(start, _)| *start);
        let lost = self.missing.iter().filter(|(start, segment)| {
            !segment.lost && (Some(**start) == first || overdue(segment))
        });
        let lost: Vec<u64> = lost.map(|(start, _)| *start).collect();
        for start in lost {
            self.lose(flow, start);
        }
        self.recovery_point = None;
        self.timeout_point = Some(flow.max);
        self.cut_at = moment.now;
        self.deadline = None;
        self.tail.on_timeout();
        self.owed_probe = None;
        self.owed = true;
        flow.end_reduction();
        flow.duplicates = 0;
    }

    /// Treats missing data as sent now, because after a spurious timeout it is still in flight even
    /// if data sent later has arrived.
    fn on_spurious_timeout(&mut self, now: Nanos, _una: u64) {
        self.lost.clear();
        self.sent.clear();
        self.pipe = 0;
        for (&start, segment) in &mut self.missing {
            let number = segment.end - 1;
            let sent_at = std::mem::replace(&mut segment.sent_at, now);
            let size = segment.end - start;
            self.pipe += size;
            let transmission = RackTransmission {
                sent_at: now,
                number,
            };
            if let Some(sampler) = &mut self.sampler {
                sampler.forget(RackTransmission { sent_at, number });
                sampler.on_sent(transmission, start, size, self.pipe);
            }
            segment.lost = false;
            self.sent.push_back(Sending {
                start,
                transmission,
            });
        }
        (self.timeout_point, self.deadline, self.owed) = (None, None, false);
    }

    fn goes_back(&self) -> bool {
        false
    }

    fn next(&self, flow: &Flow) -> Option<NextSegment> {
        match &self.owed_probe {
            Some(Tail::Again(range)) => return Some(NextSegment::Retransmit(range.clone())),
            Some(Tail::New) => {
                return Some(NextSegment::Continue {
                    room: flow.mss,
                    skip_reported: false,
                });
            }
            None => {}
        }
        let limit = flow.limit();
        if let Some(range) = self.first_lost() {
            let fits = self.owed || self.pipe + (range.end - range.start) <= limit;
            return fits.then_some(NextSegment::Retransmit(range));
        }
        Some(NextSegment::Continue {
            room: limit.saturating_sub(self.pipe),
            skip_reported: false,
        })
    }

    fn on_sent(&mut self, flow: &mut Flow, moment: &Moment, sent: Range<u64>, retransmit: bool) {
        let now = moment.now;
        flow.count_reduced(sent.end - sent.start);
        let transmission = RackTransmission {
            sent_at: now,
            number: sent.end - 1,
        };
        let start = sent.start;
        match self.missing.get_mut(&start) {
            Some(segment) if retransmit => {
                let was_lost = std::mem::replace(&mut segment.lost, false);
                segment.sent_at = now;
                segment.times += 1;
                self.lost.remove(&start);
                self.owed = false;
                if was_lost {
                    self.pipe += segment.end - start;
                }
            }
            _ => {
                self.pipe += sent.end - start;
                let segment = Segment {
                    end: sent.end,
                    sent_at: now,
                    times: 1,
                    lost: false,
                };
                self.missing.insert(start, segment);
            }
        }
        self.sent.push_back(Sending {
            start,
            transmission,
        });
        if let Some(sampler) = &mut self.sampler {
            sampler.on_sent(transmission, start, sent.end - start, self.pipe);
        }
        if self.owed_probe.take().is_some() {
            self.tail.on_sent(flow.max, retransmit);
        } else {
            self.arm(flow, moment);
        }
    }

    fn rate_sample(&mut self, rtt: Option<Nanos>) -> Option<RateSample> {
        self.sampler.as_mut()?.take_sample(rtt)
    }

    fn on_app_limited(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.on_app_limited(self.pipe);
        }
    }

    fn recovering(&self) -> bool {
        self.recovery_point.is_some()
    }

    fn pipe(&self, _flow: &Flow) -> u64 {
        self.pipe
    }

    fn deadline(&self) -> Option<Nanos> {
        [self.deadline, self.tail.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_timer(&mut self, flow: &mut Flow, moment: &Moment, timeout: bool) -> Due {
        if self.deadline.is_some_and(|at| at <= moment.now) && self.find_lost(flow, moment) {
            self.enter(flow, moment.now);
            flow.reduce(0, self.pipe);
            return Due::Lost;
        }
        let armed = self.tail.deadline().is_some();
        let due = self.tail.take_due(moment.now) || (timeout && armed);
        if !due || !self.tail.may_go() || self.recovers() || self.pipe == 0 {
            return Due::Nothing;
        }
        self.tail.disarm();
        self.owed_probe = if flow.can_send_new() {
            Some(Tail::New)
        } else {
            let last = self.missing.last_key_value();
            last.map(|(&start, segment)| Tail::Again(start..segment.end))
        };
        match self.owed_probe {
            Some(_) => Due::Probe,
            None => Due::Nothing,
        }
    }
}
