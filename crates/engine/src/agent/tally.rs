//! What is counted of one member of a flow while it runs.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_transport::{Nanos, Probe, ProbeSet, Sample, time};

use super::bins::Bins;
use super::meter::Meter;
use super::once::Once;
use super::packets::PacketAccount;

/// Samples on their way to a series file: the series' index in the run's keys, and the sample.
pub type SampleBuffer = Rc<RefCell<Vec<(u32, SeriesSample)>>>;

/// A tally that a source and its sink share.
pub type SharedTally = Rc<RefCell<Tally>>;

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
    /// Recorded goodput.
    pub bins: Vec<Bins>,
    /// Which messages were delivered, and how often, where that is asked for.
    pub once: Option<Once>,
    /// Where samples go.
    pub buffer: SampleBuffer,
    /// Times that an allocation met the limit of the negotiated streams.
    pub stream_limits_met: u64,
    /// Its packets with data, where a measure wants them.
    pub packets: PacketAccount,
}

/// Probes that a receiver records; a sender records the others.
const RECEIVING: [Probe; 5] = [
    Probe::Received,
    Probe::AdvertisedRwnd,
    Probe::HeadOfLineWait,
    Probe::Buffered,
    Probe::Delivered,
];

/// Probes that both ends record.
const MUTUAL: [Probe; 1] = [Probe::HeartbeatBytes];

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
    pub fn sender_probes(&self) -> ProbeSet {
        let wanted = self.metered_probes().union(self.recorded_probes());
        let of_sender = |probe: &&Probe| wanted.contains(**probe) && !RECEIVING.contains(probe);
        let all = Probe::ALL.iter().filter(of_sender);
        all.fold(COUNTED, |set, probe| set.with(*probe))
    }

    /// The probes that the receiving side must record.
    pub fn receiver_probes(&self) -> ProbeSet {
        let wanted = self.metered_probes().union(self.recorded_probes());
        RECEIVING
            .into_iter()
            .chain(MUTUAL)
            .filter(|probe| wanted.contains(*probe))
            .fold(ProbeSet::NONE, ProbeSet::with)
    }

    fn metered_probes(&self) -> ProbeSet {
        let meters = self.meters.iter().flat_map(|meter| meter.probes());
        meters.fold(ProbeSet::NONE, |set, probe| set.with(*probe))
    }

    fn recorded_probes(&self) -> ProbeSet {
        self.recorded
            .iter()
            .fold(ProbeSet::NONE, |set, recorded| set.with(recorded.probe))
    }

    /// Takes a sample of the transport.
    pub fn sample(&mut self, sample: Sample) {
        match sample.probe {
            Probe::Retransmitted => self.retransmissions += 1,
            Probe::FastRetransmit => self.fast_retransmits += 1,
            Probe::Timeout => self.timeouts += 1,
            _ => {}
        }
        self.meters
            .iter_mut()
            .for_each(|meter| meter.sample(&sample));
        self.record(sample);
    }

    /// The congestion window that a sender begins with, bytes, before its peer has answered: the first value of the series and
    /// of means over it. What else is made of cwnd begins when there are windows to compare.
    pub fn first_window(&mut self, at: Nanos, cwnd: f64) {
        let sample = Sample {
            at,
            probe: Probe::Cwnd,
            index: 0,
            value: cwnd,
        };
        let means = self
            .meters
            .iter_mut()
            .filter(|meter| meter.is_of(Probe::Cwnd));
        means.for_each(|meter| meter.sample(&sample));
        self.record(sample);
    }

    fn record(&mut self, sample: Sample) {
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

    /// Payload reached the application: `bytes`, and `headers` bytes that its segments added.
    pub fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        self.delivered += bytes;
        self.delivered_segments += bytes + headers;
        for meter in &mut self.meters {
            meter.deliver(at, bytes, headers);
        }
        for bins in &mut self.bins {
            bins.deliver(at, bytes, &self.buffer);
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

    /// Tells the recorded bins that are over at `now`.
    pub fn settle(&mut self, now: Nanos) {
        for bins in &mut self.bins {
            bins.settle(now, &self.buffer);
        }
    }

    /// The run is over: what stands now stood until here.
    pub fn close(&mut self, end: Nanos) {
        self.meters.iter_mut().for_each(|meter| meter.close(end));
    }
}
