//! What is counted of one member of a flow while it runs.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_transport::{Nanos, Probe, ProbeSet, Sample, time};

use crate::model::SeriesSample;
use crate::spec::quantity::Window;

/// Samples on their way to a series file: the series' index in the run's keys, and the sample.
pub type SampleBuffer = Rc<RefCell<Vec<(u32, SeriesSample)>>>;

/// A tally that a source and its sink share.
pub type SharedTally = Rc<RefCell<Tally>>;

/// A quantity over a window of the run, for one measure.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    /// The window.
    pub window: Window,
    /// What is metered.
    pub kind: MeterKind,
    /// Payload bytes, segments, or the sum of cwnd (by time or by samples).
    pub sum: f64,
    /// Segment bytes; nanoseconds; samples.
    pub weight: f64,
}

/// What a meter meters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterKind {
    /// Payload (`sum`) and segment bytes (`weight`) delivered.
    Delivered,
    /// Data segments sent.
    Segments,
    /// cwnd by the time each value stood.
    CwndByTime,
    /// cwnd by changes.
    CwndBySamples,
}

impl Meter {
    /// A meter that has seen nothing.
    pub fn new(kind: MeterKind, window: Window) -> Self {
        Self {
            window,
            kind,
            sum: 0.0,
            weight: 0.0,
        }
    }

    /// Adds a value that stood from `from` to `to`.
    fn stood(&mut self, from: Nanos, to: Nanos, value: f64) {
        let [begin, end] = self.window.0;
        let (from, to) = (from.max(begin.0), to.min(end.0));
        if from < to {
            let span = (to - from) as f64;
            self.sum += value * span;
            self.weight += span;
        }
    }
}

/// A recorded series of this member.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The probe.
    pub probe: Probe,
    /// Only samples in this window.
    pub window: Option<Window>,
    /// Index of the series in the run's keys.
    pub key: u32,
}

/// Counts, meters and recorded series of one member.
#[derive(Debug, Default)]
pub struct Tally {
    /// Payload that reached the receiving application, once, bytes.
    pub delivered: u64,
    /// The same with the header that each segment gives its payload: SCTP's chunk headers; TCP has none.
    pub delivered_segments: u64,
    /// Messages that reached it.
    pub messages: u64,
    /// Sum of the one-way delays of messages, nanoseconds.
    pub delay_sum: u128,
    /// Messages with a known delay.
    pub delays: u64,
    /// Data segments sent again.
    pub retransmissions: u64,
    /// Times that fast retransmit was entered.
    pub fast_retransmits: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Why it ended before its time, if it did.
    pub failed: Option<String>,
    /// One for each measure that wants one, in the order of the measures.
    pub meters: Vec<Meter>,
    /// Series to record.
    pub recorded: Vec<Recorded>,
    /// Where samples go.
    pub buffer: SampleBuffer,
    /// cwnd now and since when.
    cwnd: Option<(f64, Nanos)>,
}

/// Probes that are counted always: all are rare.
const COUNTED: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::FastRetransmit)
    .with(Probe::Timeout);

impl Tally {
    /// A tally with these meters and series.
    pub fn new(meters: Vec<Meter>, recorded: Vec<Recorded>, buffer: SampleBuffer) -> Self {
        Self {
            meters,
            recorded,
            buffer,
            ..Self::default()
        }
    }

    /// The probes that the sending side must record.
    pub fn probes(&self) -> ProbeSet {
        let mut wanted = COUNTED;
        for meter in &self.meters {
            wanted = match meter.kind {
                MeterKind::Segments => wanted.with(Probe::Sent),
                MeterKind::CwndByTime | MeterKind::CwndBySamples => wanted.with(Probe::Cwnd),
                MeterKind::Delivered => wanted,
            };
        }
        self.recorded_probes().union(wanted)
    }

    /// The probes that are recorded as series.
    pub fn recorded_probes(&self) -> ProbeSet {
        self.recorded
            .iter()
            .fold(ProbeSet::NONE, |set, recorded| set.with(recorded.probe))
    }

    /// Takes a sample of the transport.
    pub fn sample(&mut self, sample: Sample) {
        match sample.probe {
            Probe::Sent => self.segment(sample.at),
            Probe::Retransmitted => {
                self.retransmissions += 1;
                self.segment(sample.at);
            }
            Probe::FastRetransmit => self.fast_retransmits += 1,
            Probe::Timeout => self.timeouts += 1,
            Probe::Cwnd => self.cwnd(sample.at, sample.value),
            _ => {}
        }
        self.record(sample);
    }

    /// Only keeps a sample, if its series is recorded; for probes of the receiving side.
    pub fn record(&mut self, sample: Sample) {
        for recorded in &self.recorded {
            if recorded.probe == sample.probe
                && recorded
                    .window
                    .is_none_or(|window| window.contains(sample.at))
            {
                let kept = SeriesSample {
                    index: sample.index,
                    time: time::seconds(sample.at),
                    value: sample.value,
                };
                self.buffer.borrow_mut().push((recorded.key, kept));
            }
        }
    }

    fn segment(&mut self, at: Nanos) {
        for meter in self
            .meters
            .iter_mut()
            .filter(|meter| meter.kind == MeterKind::Segments)
        {
            if meter.window.contains(at) {
                meter.sum += 1.0;
            }
        }
    }

    fn cwnd(&mut self, at: Nanos, value: f64) {
        let before = self.cwnd.replace((value, at));
        for meter in &mut self.meters {
            match (meter.kind, before) {
                (MeterKind::CwndByTime, Some((value, since))) => meter.stood(since, at, value),
                (MeterKind::CwndBySamples, _) if meter.window.contains(at) => {
                    meter.sum += value;
                    meter.weight += 1.0;
                }
                _ => {}
            }
        }
    }

    /// Payload reached the application: `bytes`, and `headers` bytes that its segments added.
    pub fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        self.delivered += bytes;
        self.delivered_segments += bytes + headers;
        for meter in self
            .meters
            .iter_mut()
            .filter(|meter| meter.kind == MeterKind::Delivered)
        {
            if meter.window.contains(at) {
                meter.sum += bytes as f64;
                meter.weight += (bytes + headers) as f64;
            }
        }
    }

    /// A whole message reached the application, `delay` after it was offered, if that is known.
    pub fn message(&mut self, delay: Option<Nanos>) {
        self.messages += 1;
        if let Some(delay) = delay {
            self.delay_sum += u128::from(delay);
            self.delays += 1;
        }
    }

    /// The run is over: what stands now stood until here.
    pub fn close(&mut self, end: Nanos) {
        let Some((value, since)) = self.cwnd.take() else {
            return;
        };
        for meter in self
            .meters
            .iter_mut()
            .filter(|meter| meter.kind == MeterKind::CwndByTime)
        {
            meter.stood(since, end, value);
        }
    }
}
