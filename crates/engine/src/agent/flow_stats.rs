//! Statistics of one member of a flow during a run.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_scenario::quantity::Window;
use anabranch_scenario::records::SeriesSample;
use anabranch_sim::workload::Message;
use anabranch_transport::{Nanos, Probe, ProbeSet, Sample, time};

use super::duplicate_check::DuplicateCheck;
use super::observer::{End, Observer, Observing};
use super::packets::PacketAccount;
use super::series::{self, SampleBuffer};
use super::transfers::{Arrived, Key, TransferTracker};

/// Statistics shared by the source and the sink of a member.
pub type SharedFlowStats = Rc<RefCell<FlowStats>>;

/// A probe whose samples are recorded as a series of this member.
#[derive(Clone, Copy, Debug)]
pub struct RecordedProbe {
    /// The probe.
    pub probe: Probe,
    /// If set, only samples in this window are kept.
    pub window: Option<Window>,
    /// Index of the series in the list of recorded series of the run.
    pub key: u32,
}

/// Counters, observers and recorded series of one member.
#[derive(Debug, Default)]
pub struct FlowStats {
    /// Payload that reached the receiving application, bytes; duplicates are not counted.
    pub delivered: u64,
    /// Like `delivered`, plus the header of each segment: the chunk headers for SCTP, nothing for
    /// TCP.
    pub delivered_segments: u64,
    /// Number of messages that reached the receiving application.
    pub messages: u64,
    /// Sum of the one-way delays of messages, nanoseconds.
    pub delay_sum: u128,
    /// Number of messages with a known delay.
    pub delays: u64,
    /// Number of data segments retransmitted.
    pub retransmissions: u64,
    /// Number of fast retransmits.
    pub fast_retransmits: u64,
    /// Number of expired retransmission timers.
    pub timeouts: u64,
    /// Number of window reductions in response to ECN marks.
    pub ecn_reductions: u64,
    /// Number of duplicate data segments received.
    pub duplicates: u64,
    /// Reason why the member ended early, if it did.
    pub failed: Option<String>,
    /// Observers that metrics need.
    pub observers: Vec<Observing>,
    /// Probes whose samples are recorded.
    pub recorded: Vec<RecordedProbe>,
    /// Recorded series that are computed here and not by the transport.
    pub series: Vec<series::SeriesRecorder>,
    /// Transfers of the flow, if a metric or an answer requires them.
    pub transfers: Option<TransferTracker>,
    /// Exactly-once check of the messages, if a metric requires it.
    pub once: Option<DuplicateCheck>,
    /// Buffer to which recorded samples are appended.
    pub buffer: SampleBuffer,
    /// Number of times at which a stream allocation reached the number of negotiated streams.
    pub stream_limits_met: u64,
    /// Data packets of the flow, if a metric requires them.
    pub packets: PacketAccount,
}

/// Statistics of a member of a flow from one part of a divided world. Each part runs on a separate
/// thread.
#[derive(Debug)]
pub struct FlowStatsPart {
    delivered: u64,
    delivered_segments: u64,
    messages: u64,
    delay_sum: u128,
    delays: u64,
    retransmissions: u64,
    fast_retransmits: u64,
    timeouts: u64,
    ecn_reductions: u64,
    duplicates: u64,
    stream_limits_met: u64,
    failed: Option<String>,
    observers: Vec<Observing>,
    transfers: Option<TransferTracker>,
    once: Option<DuplicateCheck>,
    packets: PacketAccount,
}

/// The effect of arrived bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalEffect {
    /// Size of the answer that is now due in bytes, if a request is complete.
    pub asked: Option<u64>,
    /// Whether a transfer is complete, including its answer.
    pub complete: bool,
}

/// Probes that only the receiver records; the sender records all others.
const RECEIVING: [Probe; 6] = [
    Probe::Received,
    Probe::Duplicate,
    Probe::AdvertisedRwnd,
    Probe::HolBlockingDelay,
    Probe::ReceiveBufferUsed,
    Probe::Delivered,
];

/// Probes that both ends record.
const MUTUAL: [Probe; 1] = [Probe::HeartbeatBytes];

/// The end of a flow at which all of these probes are recorded.
pub fn end_of(probes: &[Probe]) -> End {
    let all = |kind: &[Probe]| probes.iter().all(|probe| kind.contains(probe));
    let any = |kind: &[Probe]| probes.iter().any(|probe| kind.contains(probe));
    if probes.is_empty() || any(&MUTUAL) {
        End::Both
    } else if all(&RECEIVING) {
        End::Receiver
    } else if !any(&RECEIVING) {
        End::Sender
    } else {
        End::Both
    }
}

/// Probes that are always counted, because all of them are rare.
const COUNTED: ProbeSet = ProbeSet::NONE
    .with(Probe::Retransmitted)
    .with(Probe::FastRetransmit)
    .with(Probe::EcnResponse)
    .with(Probe::Timeout);

/// Probes that the receiver always counts.
const COUNTED_BY_RECEIVER: ProbeSet = ProbeSet::NONE.with(Probe::Duplicate);

impl FlowStats {
    /// Creates statistics with the given observers and series.
    pub fn new(
        observers: Vec<Observing>,
        recorded: Vec<RecordedProbe>,
        buffer: SampleBuffer,
    ) -> Self {
        Self {
            observers,
            recorded,
            buffer,
            ..Self::default()
        }
    }

    /// Keeps only the observers and series of the selected ends of the flow, because the part of a
    /// divided world that runs the other end has the others.
    pub fn keep_ends(&mut self, [source, sink]: [bool; 2]) {
        let keeps = |observer: &dyn Observer| match observer.end() {
            End::Sender | End::Both => source,
            End::Receiver => sink,
        };
        self.observers.retain(|it| keeps(&*it.observer));
        self.series.retain(|it| keeps(&*it.series));
        if !source {
            (self.transfers, self.once) = (None, None);
        }
    }

    /// Converts the statistics to the form in which another part of a divided world can
    /// [add](Self::add) them.
    pub fn into_part(self) -> FlowStatsPart {
        // Every field is named, so that a new one cannot be forgotten.
        let Self {
            delivered,
            delivered_segments,
            messages,
            delay_sum,
            delays,
            retransmissions,
            fast_retransmits,
            timeouts,
            ecn_reductions,
            duplicates,
            failed,
            observers,
            transfers,
            once,
            stream_limits_met,
            packets,
            // Samples are not part of the result, because they are gathered while the part runs.
            recorded: _,
            series: _,
            buffer: _,
        } = self;
        FlowStatsPart {
            delivered,
            delivered_segments,
            messages,
            delay_sum,
            delays,
            retransmissions,
            fast_retransmits,
            timeouts,
            ecn_reductions,
            duplicates,
            stream_limits_met,
            failed,
            observers,
            transfers,
            once,
            packets,
        }
    }

    /// Adds the statistics of another part.
    pub fn add(&mut self, part: FlowStatsPart) {
        let FlowStatsPart {
            delivered,
            delivered_segments,
            messages,
            delay_sum,
            delays,
            retransmissions,
            fast_retransmits,
            timeouts,
            ecn_reductions,
            duplicates,
            stream_limits_met,
            failed,
            observers,
            transfers,
            once,
            packets,
        } = part;
        self.delivered += delivered;
        self.delivered_segments += delivered_segments;
        self.messages += messages;
        self.delay_sum += delay_sum;
        self.delays += delays;
        self.retransmissions += retransmissions;
        self.fast_retransmits += fast_retransmits;
        self.timeouts += timeouts;
        self.ecn_reductions += ecn_reductions;
        self.duplicates += duplicates;
        self.stream_limits_met += stream_limits_met;
        self.failed = self.failed.take().or(failed);
        self.observers.extend(observers);
        self.observers.sort_by_key(|it| (it.measure, it.window));
        self.transfers = self.transfers.take().or(transfers);
        self.once = self.once.take().or(once);
        if packets != PacketAccount::default() {
            self.packets = packets;
        }
    }

    /// The probes that the sending side must record.
    pub fn sender_probes(&self) -> ProbeSet {
        let wanted = self.metered_probes().union(self.recorded_probes());
        let of_sender = |probe: &&Probe| wanted.contains(**probe) && !RECEIVING.contains(probe);
        let all = Probe::ALL.iter().filter(of_sender);
        all.fold(COUNTED, |set, probe| set.with(*probe))
    }

    /// Probes that the receiver must enable.
    pub fn receiver_probes(&self) -> ProbeSet {
        let wanted = self.metered_probes().union(self.recorded_probes());
        RECEIVING
            .into_iter()
            .chain(MUTUAL)
            .filter(|probe| wanted.contains(*probe))
            .fold(COUNTED_BY_RECEIVER, ProbeSet::with)
    }

    fn metered_probes(&self) -> ProbeSet {
        let observers = self.observers.iter().flat_map(|it| it.observer.probes());
        let series = self.series.iter().flat_map(|it| it.series.probes());
        let probes = observers.chain(series);
        probes.fold(ProbeSet::NONE, |set, probe| set.with(*probe))
    }

    fn recorded_probes(&self) -> ProbeSet {
        self.recorded
            .iter()
            .fold(ProbeSet::NONE, |set, recorded| set.with(recorded.probe))
    }

    /// Counts a sample of the transport, and passes it to observers and records.
    pub fn sample(&mut self, sample: Sample) {
        match sample.probe {
            Probe::Retransmitted => self.retransmissions += 1,
            Probe::FastRetransmit => self.fast_retransmits += 1,
            Probe::Timeout => self.timeouts += 1,
            Probe::EcnResponse => self.ecn_reductions += 1,
            Probe::Duplicate => self.duplicates += 1,
            _ => {}
        }
        self.tell(|observer| observer.sample(&sample));
        self.record(sample);
    }

    /// Reports the initial congestion window of a sender in bytes, before the first packet from its
    /// peer. It is the first value of the cwnd series and of its means.
    pub fn first_window(&mut self, at: Nanos, cwnd: f64) {
        let sample = Sample {
            at,
            probe: Probe::Cwnd,
            index: 0,
            value: cwnd,
        };
        self.tell(|observer| observer.first_window(&sample));
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

    /// Counts `bytes` of payload that reached the application, and `headers` bytes for the headers
    /// of its segments.
    pub fn deliver(&mut self, at: Nanos, bytes: u64, headers: u64) {
        self.delivered += bytes;
        self.delivered_segments += bytes + headers;
        self.tell(|observer| observer.deliver(at, bytes, headers));
    }

    /// Whether no observer and no series needs details of deliveries, so that [`Self::count`] can
    /// be used.
    #[inline]
    pub fn is_unwatched(&self) -> bool {
        let nobody = self.observers.is_empty() && self.series.is_empty();
        nobody && self.transfers.is_none() && self.once.is_none()
    }

    /// Counts payload and messages with unknown delay, like [`Self::deliver`] and [`Self::message`]
    /// together. It must only be called if [no observer needs details](Self::is_unwatched).
    #[inline]
    pub fn count(&mut self, bytes: u64, headers: u64, messages: u64) {
        debug_assert!(self.is_unwatched(), "that was asked");
        self.delivered += bytes;
        self.delivered_segments += bytes + headers;
        self.messages += messages;
    }

    /// Counts a whole message that reached the application at `at`. `delay` is the time since it
    /// was offered, if known.
    pub fn message(&mut self, at: Nanos, delay: Option<Nanos>) {
        self.messages += 1;
        if let Some(delay) = delay {
            self.delay_sum += u128::from(delay);
            self.delays += 1;
            self.tell(|observer| observer.message(at, delay));
        }
    }

    /// Records that the transport accepts a message as the next transfer under `key`.
    pub fn begin(&mut self, now: Nanos, key: Key, message: &Message) {
        if let Some(transfers) = &mut self.transfers {
            let answer = message.answer.map(|bytes| bytes as u64);
            let begin = message.due.unwrap_or(now);
            transfers.begin(key, begin, message.size as u64, answer);
        }
    }

    /// Records a datagram that arrived `delay` nanoseconds after it was due. The datagram counts as
    /// a transfer.
    pub fn datagram(&mut self, now: Nanos, delay: Nanos, bytes: u64) {
        if let Some(transfers) = &mut self.transfers {
            let transfer = transfers.datagram(now, delay, bytes);
            self.tell(|observer| observer.transfer(&transfer));
        }
    }

    /// Records bytes that arrived in order under `key`: at the sink, or, for answers, at the
    /// source. Reports the transfers that these bytes complete. Returns the size of an answer that
    /// is now due.
    pub fn arrive(&mut self, now: Nanos, key: Key, bytes: u64) -> ArrivalEffect {
        let mut outcome = ArrivalEffect::default();
        let Some(transfers) = &mut self.transfers else {
            return outcome;
        };
        let (observers, series, buffer) = (&mut self.observers, &mut self.series, &self.buffer);
        transfers.arrive(key, now, bytes, |arrived| match arrived {
            Arrived::Asked(answer) => outcome.asked = Some(answer),
            Arrived::Whole(transfer) => {
                outcome.complete = true;
                tell(observers, series, buffer, |it| it.transfer(&transfer));
            }
        });
        outcome
    }

    /// Appends the remaining values of recorded series at the end of the run, `now`.
    pub fn settle(&mut self, now: Nanos) {
        for recorded in &mut self.series {
            recorded.show(&self.buffer, |series| series.settle(now));
        }
    }

    /// Passes an observation to all observers and series.
    #[inline]
    fn tell(&mut self, show: impl Fn(&mut dyn Observer)) {
        tell(&mut self.observers, &mut self.series, &self.buffer, show);
    }

    /// Ends the observation at `end`; the current values are valid until then.
    pub fn close(&mut self, end: Nanos) {
        for observing in &mut self.observers {
            observing.observer.close(end);
        }
    }
}

#[inline]
fn tell(
    observers: &mut [Observing],
    series: &mut [series::SeriesRecorder],
    buffer: &SampleBuffer,
    show: impl Fn(&mut dyn Observer),
) {
    for observing in observers {
        show(&mut *observing.observer);
    }
    for recorded in series {
        recorded.show(buffer, |series| show(series));
    }
}
