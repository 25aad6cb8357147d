//! Sending side of a connection: send buffer, data in flight, segment selection, retransmission.

pub(crate) mod accurate_ecn;
pub(crate) mod ecn;
mod fast_path;
mod next_segment;
pub(crate) mod recovery;
pub(crate) mod rto;
pub(crate) mod scoreboard;
pub(crate) mod send_buffer;
pub(crate) mod send_sequence;
mod sent_times;
pub(crate) mod spurious;
mod timers;
mod traces;
mod undo;

use std::ops::Range;

use anabranch_congestion::careful_resume::SavedParameters;
use anabranch_congestion::{AckSample, DeliveryMeter, Pacer};
use anabranch_transport::{Ecn, Nanos, Probe, Trace};

use crate::config::Config;
use crate::control::Congestion;
use crate::profile::{InitialSsthresh, Profile};
use crate::stats::Stats;
use accurate_ecn::{AccurateReport, Marks};
use ecn::{EcnSender, SettledEcn};
pub(crate) use next_segment::Plan;
use recovery::{Acknowledgement, ByTime, Outcome, Recovery};
use rto::{RtoConfig, RtoEstimator};
use scoreboard::Scoreboard;
use send_buffer::SendBuffer;
use send_sequence::Flow;
use sent_times::SentTimes;
use spurious::Spurious;

/// An acknowledgement whose number is not lower than `SND.UNA`, as passed to the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// Acknowledged offset: everything before it has arrived.
    pub to: u64,
    /// Window of the peer, bytes.
    pub window: u64,
    /// The segment carries no data, SYN or FIN.
    pub bare: bool,
    /// Valid SACK blocks, as offsets.
    pub blocks: &'a [Range<u64>],
    /// Send time of the segment whose timestamp the acknowledgement echoes.
    pub echoed: Option<Nanos>,
    /// The acknowledgement carries ECN-Echo; `false` if the peer sends counters instead.
    pub marked: bool,
    /// Counters of marks in the acknowledgement (RFC 9768), if the peer sends them.
    pub accurate: Option<&'a AccurateReport>,
}

/// Results of the handshake for the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settled {
    /// Data bytes in a full segment.
    pub mss: u64,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: SettledEcn,
    /// Initial window of the peer, bytes.
    pub window: u64,
    /// The SYN was sent more than once.
    pub syn_lost: bool,
}

/// Variables and timers of the sending direction.
#[derive(Debug)]
pub(crate) struct Sender {
    pub flow: Flow,
    pub rto: RtoEstimator,
    recovery: Box<dyn Recovery>,
    by_time: Option<ByTime>,
    buffer: SendBuffer,
    profile: Profile,
    congestion: Congestion,
    timestamps: bool,
    closing: bool,
    /// Largest window ever advertised by the peer, bytes.
    widest_window: u64,
    /// End offset and send time of the segment whose round-trip time is being measured.
    timing: Option<(u64, Nanos)>,
    /// Send times of all segments in flight; empty unless the controller requires them.
    sent_times: SentTimes,
    /// Time of the last transmission of data.
    last_sent: Option<Nanos>,
    retransmit_at: Option<Nanos>,
    persist_at: Option<Nanos>,
    /// Number of consecutive zero-window probes.
    probes: u32,
    probe_owed: bool,
    /// Number of consecutive timeouts.
    timeouts: u32,
    /// The next segment is a tail loss probe.
    probing: bool,
    /// Last recorded values of `cwnd` and `ssthresh`.
    traced: (f64, u64),
}

/// Offset of the first data byte; the SYN has offset 0.
const FIRST: u64 = 1;

/// Options of time-based loss detection (RACK), if it is enabled.
fn by_time(config: &Config) -> Option<ByTime> {
    let delay = config.profile.longest_ack_delay();
    config.rack.then(|| ByTime {
        probes: config.tail_loss_probe.then_some(delay),
        samples: false,
    })
}

impl Sender {
    /// Creates a sender before the handshake.
    pub(crate) fn new(config: &Config, mss: u64) -> Self {
        let profile = &config.profile;
        let congestion = config.control();
        let rto = RtoEstimator::new(RtoConfig {
            initial: profile.rto_initial.0,
            min: profile.rto_min.0,
            max: profile.rto_max.0,
            rtt_granularity: profile.rtt_granularity.0,
            clock_phase: config.clock_phase,
        });
        Self {
            flow: Flow {
                una: 0,
                nxt: 0,
                max: 0,
                window_edge: 0,
                queued_to: FIRST,
                mss,
                board: Scoreboard::default(),
                duplicates: 0,
                control: congestion.controller(profile, mss, 1.0, f64::INFINITY),
                pacer: Pacer::new(config.pacing).with_burst(config.pacing_burst),
                delivery: DeliveryMeter::default(),
                ecn: EcnSender::default(),
                spurious: Spurious::new(profile),
                halving: profile.halving,
                limited_transmit: profile.limited_transmit,
                duplicate_threshold: profile.duplicate_threshold.max(1),
                proportional: config.proportional_rate_reduction,
                reduction: None,
            },
            rto,
            recovery: recovery::choose(profile.recovery, false, None),
            by_time: by_time(config),
            buffer: SendBuffer::new(FIRST),
            profile: profile.clone(),
            congestion,
            timestamps: false,
            closing: false,
            widest_window: 0,
            timing: None,
            sent_times: SentTimes::default(),
            last_sent: None,
            retransmit_at: None,
            persist_at: None,
            probes: 0,
            probe_owed: false,
            timeouts: 0,
            probing: false,
            traced: (0.0, 0),
        }
    }

    /// Whether the window may grow only if the flight fills it.
    fn growth_needs_full_cwnd(&self) -> bool {
        self.profile.growth_needs_full_cwnd && !self.congestion.rate_limited_increase
    }

    /// Passes saved parameters to the current controller, and keeps them for the controller that
    /// the handshake creates.
    pub(crate) fn resume(&mut self, saved: SavedParameters) -> bool {
        let control = self.flow.control.careful_resume_mut();
        let taken = control.is_some_and(|it| it.resume(saved));
        if taken {
            self.congestion.saved_parameters = Some(saved);
        }
        taken
    }

    /// Completes the handshake at `now`: the SYN is acknowledged, and the windows are initialized.
    pub(crate) fn establish(&mut self, now: Nanos, settled: &Settled, trace: &mut Trace) {
        let mss = settled.mss.max(1);
        let peer_segments = (settled.window / mss) as f64;
        let syn_cut = settled.syn_lost && self.profile.lost_syn_cuts_ssthresh;
        let ssthresh = match self.profile.initial_ssthresh {
            _ if syn_cut => 2.0,
            InitialSsthresh::High => f64::INFINITY,
            InitialSsthresh::PeerWindow => peer_segments.max(2.0),
            InitialSsthresh::Segments(count) => f64::from(count),
            InitialSsthresh::Bytes(bytes) => (bytes / mss).max(2) as f64,
        };
        let first = if settled.syn_lost {
            1.0
        } else {
            self.profile.initial_window.segments(mss)
        };
        self.flow.control = self
            .congestion
            .controller(&self.profile, mss, first, ssthresh);
        self.flow.mss = mss;
        let samples = self.flow.control.wants_rate_samples();
        let by_time = self.by_time.or(samples.then(ByTime::default));
        let by_time = by_time.map(|it| ByTime { samples, ..it });
        self.recovery = recovery::choose(self.profile.recovery, settled.sack, by_time);
        self.timestamps = settled.timestamps;
        self.flow.ecn.settle(&settled.ecn);
        self.flow.spurious.settle(settled.sack, settled.timestamps);
        // ECT(1) requires that the peer supports accurate feedback (RFC 9331 §4.2).
        let accurate = settled.ecn.accurate.is_some() || !self.profile.accurate_ecn;
        self.flow.ecn.set_scalable(self.profile.l4s && accurate);
        if let Some((_, sent_at)) = self.timing.take() {
            self.rto.sample(now, sent_at);
        } else if self.profile.rto_after_lost_syn.0 > 0 {
            self.rto.restart_with(self.profile.rto_after_lost_syn.0);
        }
        (self.flow.una, self.flow.nxt) = (FIRST, FIRST);
        self.flow.board.advance(FIRST);
        self.timeouts = 0;
        self.retransmit_at = None;
        self.set_window(settled.window);
        self.trace_windows(now, trace);
        self.trace_rto(now, trace);
    }

    /// Number of bytes written but not acknowledged.
    pub(crate) fn buffered(&self) -> u64 {
        self.buffer.len()
    }

    /// Appends data to the send buffer.
    pub(crate) fn write(&mut self, bytes: bytes::Bytes) {
        self.buffer.write(bytes);
        self.flow.queued_to = self.buffer.end();
    }

    /// Appends zeros, which use no memory.
    pub(crate) fn write_zeros(&mut self, count: u64) {
        self.buffer.write_zeros(count);
        self.flow.queued_to = self.buffer.end();
    }

    /// Discards data that was written but never sent.
    pub(crate) fn discard_unsent(&mut self) {
        self.buffer.truncate(self.flow.max);
        self.flow.queued_to = self.buffer.end();
    }

    /// Schedules a FIN after all written data.
    pub(crate) fn close(&mut self) {
        if !self.closing {
            self.closing = true;
            self.flow.queued_to = self.buffer.end() + 1;
        }
    }

    /// Whether [`Sender::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Whether the planned segment ends with the last written byte.
    pub(crate) fn is_last(&self, plan: &Plan) -> bool {
        plan.start + plan.len as u64 == self.buffer.end()
    }

    /// Whether the FIN was sent and acknowledged.
    pub(crate) fn fin_acknowledged(&self) -> bool {
        self.closing && self.flow.una > self.buffer.end()
    }

    /// Highest offset that an acknowledgement may have: the highest offset sent, or the byte of a
    /// zero-window probe.
    pub(crate) fn highest_acceptable(&self) -> u64 {
        if self.probes > 0 {
            self.flow
                .max
                .max((self.flow.una + 1).min(self.flow.queued_to))
        } else {
            self.flow.max
        }
    }

    /// Largest window ever advertised by the peer (RFC 5961 §5.2, MAX.SND.WND).
    pub(crate) fn widest_window(&self) -> u64 {
        self.widest_window
    }

    /// Sets the window of the peer, counted in bytes from `SND.UNA`.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.flow.window_edge = self.flow.una + window;
        self.widest_window = self.widest_window.max(window);
    }

    /// Whether neither data nor a FIN was sent. The sender then needs no acknowledgements, except
    /// for their ECN marks.
    pub(crate) fn has_sent_nothing(&self) -> bool {
        self.flow.max == FIRST
    }

    /// Whether all written data is acknowledged and no probe is pending.
    pub(crate) fn is_idle(&self) -> bool {
        self.flow.una == self.flow.queued_to && !self.probe_owed && self.persist_at.is_none()
    }

    /// Processes an acknowledgement between `SND.UNA` and [`Sender::highest_acceptable`].
    pub(crate) fn handle_ack(
        &mut self,
        now: Nanos,
        ack: &Ack<'_>,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let advanced = ack.to - self.flow.una;
        let flightsize_before = self.flow.flightsize();
        // The acknowledgement of a FIN must not increase the window, because a FIN is not data (RFC
        // 5681 §3.1).
        let end = self.buffer.end();
        let data = ack.to.min(end) - self.flow.una.min(end);
        // RFC 5681 §2: data is outstanding, the segment has none, the window is unchanged.
        let duplicate = advanced == 0
            && flightsize_before > 0
            && ack.bare
            && self.flow.una + ack.window == self.flow.window_edge;
        if advanced > 0 {
            self.advance(now, ack.to, stats, trace);
        }
        let (twice, blocks) = match self.flow.spurious.reads_duplicates() {
            true => spurious::duplicate_of(ack.to, ack.blocks),
            false => (None, ack.blocks),
        };
        let seen = Acknowledgement {
            moment: self.moment(now),
            advanced,
            duplicate,
            blocks,
        };
        let outcome = self.recovery.on_ack(&mut self.flow, &seen);
        self.after(now, &outcome, stats, trace);
        let marks = match ack.accurate {
            None => Marks::of_echo(ack.marked, data),
            Some(report) => self.read_counters(report, advanced, outcome.delivered, stats),
        };
        let marked = marks.packets > 0 || marks.bytes > 0;
        let rtt = self.measure(now, ack, advanced, &outcome, trace);
        // Without SACK, duplicates report marks (RFC 9768) before the marked data is acknowledged.
        if data > 0 || outcome.newly_sacked > 0 || marks.bytes > 0 {
            let limited = self.growth_needs_full_cwnd()
                && flightsize_before + self.flow.mss <= self.flow.control.cwnd();
            // "The TCP source should not increase cwnd in response to the receipt of an ECN-Echo
            // ACK" (RFC 3168 §6.1.2).
            let echo = marked && self.flow.ecn.answers();
            let flightsize = self.flow.flightsize();
            let delivery = self.flow.delivery.on_ack(now, data, flightsize);
            let latest = self.latest_sent(ack);
            self.flow.control.on_ack(&AckSample {
                now,
                bytes_acked: data,
                segments_acked: data.div_ceil(self.flow.mss) as u32,
                cumulative_advanced: data > 0 && !limited && !echo,
                marked,
                bytes_marked: marks.bytes,
                flightsize_before,
                flightsize_after: flightsize,
                in_recovery: outcome.in_recovery,
                rtt,
                latest_rtt: latest.map(|sent_at| now.saturating_sub(sent_at)),
                srtt: self.rto.srtt(),
                delivery,
                rate: self.recovery.rate_sample(rtt),
            });
            if self.flow.control.limits_itself() {
                self.recovery.on_app_limited();
            }
        }
        let seen = Acknowledgement {
            duplicate: duplicate || outcome.duplicate,
            ..seen
        };
        self.judge_reduction(ack, marked, &seen, twice, stats, trace);
        if marked {
            self.answer_marks(now, flightsize_before, stats, trace);
        }
        if self.flow.flightsize() == 0 {
            self.retransmit_at = None;
        } else if outcome.entered || (advanced > 0 && outcome.restart_timer) {
            self.retransmit_at = Some(now + self.rto.rto());
        }
        self.trace_windows(now, trace);
    }

    /// Advances the cumulative acknowledgement point to `to`.
    fn advance(&mut self, now: Nanos, to: u64, stats: &mut Stats, trace: &mut Trace) {
        stats.bytes_acknowledged +=
            to.min(self.buffer.end()) - self.flow.una.min(self.buffer.end());
        self.flow.una = to;
        self.flow.max = self.flow.max.max(to);
        self.flow.nxt = self.flow.nxt.max(to);
        self.buffer.release(to);
        self.timeouts = 0;
        (self.probes, self.probe_owed, self.persist_at) = (0, false, None);
        trace.record(now, Probe::CumulativeAck, 0, self.number(to));
    }

    /// Updates counters and trace with the effect of an acknowledgement on loss recovery.
    fn after(&mut self, now: Nanos, outcome: &Outcome, stats: &mut Stats, trace: &mut Trace) {
        if outcome.duplicate {
            stats.duplicate_acknowledgements += 1;
            trace.record(now, Probe::DuplicateAck, 0, self.number(self.flow.una));
        }
        if trace.wants(Probe::Pipe) {
            trace.record(now, Probe::Pipe, 0, self.recovery.pipe(&self.flow) as f64);
        }
        if outcome.entered {
            stats.fast_retransmits += 1;
            self.timing = None;
            trace.record(now, Probe::FastRetransmit, 0, self.number(self.flow.una));
        }
        if outcome.end_backoff {
            self.rto.end_backoff();
        }
    }

    /// Send time of the newest segment that this acknowledgement reports as received; `None` unless
    /// the controller requires it.
    fn latest_sent(&mut self, ack: &Ack<'_>) -> Option<Nanos> {
        if !self.flow.control.wants_latest_rtt() {
            self.sent_times.clear();
            return None;
        }
        self.sent_times.on_ack(ack.to, ack.blocks)
    }

    /// Updates the RTO if this acknowledgement measures a round-trip time, and returns that time.
    fn measure(
        &mut self,
        now: Nanos,
        ack: &Ack<'_>,
        advanced: u64,
        outcome: &Outcome,
        trace: &mut Trace,
    ) -> Option<Nanos> {
        if advanced == 0 {
            return None;
        }
        let sent_at = if self.timestamps {
            ack.echoed?
        } else {
            let (behind, sent_at) = self.timing?;
            if !outcome.sample || self.flow.una < behind {
                return None;
            }
            self.timing = None;
            sent_at
        };
        self.rto.sample(now, sent_at);
        self.trace_rto(now, trace);
        Some(now.saturating_sub(sent_at))
    }

    /// Data of a planned segment, as slices of the send buffer.
    pub(crate) fn data(&self, plan: &Plan) -> impl Iterator<Item = &[u8]> {
        self.buffer.slices(plan.start, plan.len)
    }

    /// Updates the state after the planned segment was sent.
    pub(crate) fn sent(&mut self, now: Nanos, plan: &Plan, stats: &mut Stats, trace: &mut Trace) {
        stats.segments_sent += 1;
        stats.bytes_sent += plan.len as u64;
        self.last_sent = Some(now);
        self.probe_owed = false;
        if plan.probe {
            stats.window_probes += 1;
            return;
        }
        let (start, end) = (plan.start, plan.end());
        let again = start < self.flow.max;
        if again {
            self.flow.spurious.on_sent_again(now, &(start..end));
            stats.segments_retransmitted += 1;
            stats.bytes_retransmitted += plan.len as u64;
            if self.profile.retransmission_cancels_rtt
                && self
                    .timing
                    .is_some_and(|(behind, _)| start < behind && behind <= end)
            {
                self.timing = None;
            }
        }
        if plan.len > 0 {
            let probe = if again {
                Probe::Retransmitted
            } else {
                Probe::Sent
            };
            trace.record(now, probe, 0, self.number(start));
        }
        if self.flow.flightsize() == 0 || self.retransmit_at.is_none() {
            self.retransmit_at = Some(now + self.rto.rto());
        }
        if end > self.flow.max {
            self.flow.max = end;
            if self.timing.is_none() {
                self.timing = Some((end, now));
            }
        }
        if !plan.retransmit {
            self.flow.nxt = self.flow.nxt.max(end);
        }
        self.flow.spurious.on_sent_new(end - start);
        let (bytes, flightsize) = (plan.len as u64, self.flow.flightsize());
        self.flow.control.on_sent(now, bytes, flightsize);
        if self.flow.control.wants_latest_rtt() {
            self.sent_times.on_sent(now, start..end, again);
        }
        self.flow.delivery.on_sent(now, bytes, flightsize);
        self.flow
            .pacer
            .on_sent(now, bytes, &*self.flow.control, self.rto.srtt());
        // The application or Nagle's algorithm, and not the window, limits the sender: less than
        // a segment is unsent.
        let waits = self.flow.queued_to - self.flow.max;
        if waits < self.flow.mss && self.flow.room(0) > 0 {
            self.flow.delivery.on_app_limited();
            self.flow.control.on_app_limited(now);
            self.recovery.on_app_limited();
        }
        let moment = self.moment(now);
        self.recovery
            .on_sent(&mut self.flow, &moment, start..end, plan.retransmit);
        if self.probing && !self.recovery.recovering() {
            self.retransmit_at = Some(now + self.rto.rto()); // RFC 8985 §7.3
            stats.tail_probes += 1;
        }
        self.probing = false;
        trace.record(now, Probe::FlightSize, 0, self.flow.flightsize() as f64);
    }

    /// Restarts the window before sending if the sender was idle for longer than the RTO (RFC 5681
    /// §4.1).
    pub(crate) fn wake(&mut self, now: Nanos, trace: &mut Trace) {
        if self.flow.flightsize() > 0 || self.flow.nxt >= self.flow.queued_to {
            return;
        }
        if let Some(last_sent) = self.last_sent {
            self.flow
                .control
                .on_idle(now, now.saturating_sub(last_sent), self.rto.rto());
            self.trace_windows(now, trace);
        }
    }

    /// Whether pacing and ECN allow a segment to be sent now. A zero-window probe may always be
    /// sent.
    pub(crate) fn may_go(&self, now: Nanos) -> bool {
        let held = self.flow.ecn.held_until().is_some_and(|until| until > now);
        self.probe_owed || (!held && self.flow.pacer.allows(now))
    }

    /// ECN field of the planned segment. Only new data may be ECN-capable. Retransmissions (RFC
    /// 3168 §6.1.5), zero-window probes (§6.1.6), and segments without data (§6.1.4) may not.
    pub(crate) fn ecn_of(&self, plan: &Plan) -> Ecn {
        let new = plan.start >= self.flow.max && plan.len > 0 && !plan.probe;
        if new {
            self.flow.ecn.field()
        } else {
            Ecn::NotEct
        }
    }

    /// Whether the receiver must echo each mark exactly once (RFC 8257 §3.2).
    pub(crate) fn counts_marks(&self) -> bool {
        self.flow.control.counts_marks()
    }

    /// Whether loss recovery is in progress.
    pub(crate) fn recovering(&self) -> bool {
        self.recovery.recovering()
    }
}
