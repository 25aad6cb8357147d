//! The receiving half of a connection: the window, the text put in order, and when to acknowledge.

mod acknowledge;
pub(crate) mod reassembly;

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_transport::{Nanos, Probe, ProbeSet, Trace};
use bytes::Bytes;

use crate::profile::Profile;
use crate::stats::Stats;

use acknowledge::{Acknowledger, InOrder};
use reassembly::{Insertion, Reassembly};

/// Text out of order is held in at most one piece for each so many bytes of the window, and a few more.
const BYTES_PER_PIECE: u64 = 128;

/// Probes of which text that is next, and dropped as it comes, leaves no sample.
const COMMON: ProbeSet = ProbeSet::ALL
    .without(Probe::Received)
    .without(Probe::Delivered)
    .without(Probe::Buffered);

/// Variables and timers of the receive direction. Offsets count from the peer's initial sequence number.
#[derive(Debug)]
pub(crate) struct Receiver {
    queue: Reassembly,
    /// In order, not yet read.
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// Text is dropped as soon as it is in order.
    discard: bool,
    /// Size of the receive buffer, bytes.
    buffer: u64,
    /// Behind the last byte that the advertised window takes; never moves back.
    edge: u64,
    /// Offset of the peer's FIN, once seen.
    fin: Option<u64>,
    /// Bytes of text in a full segment.
    mss: u64,
    acks: Acknowledger,
    /// What came twice, for the next acknowledgement, if such is reported (RFC 2883).
    twice: Option<Range<u64>>,
    reports_twice: bool,
}

/// What became of a segment's text and FIN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The peer's FIN is reached: everything it sent has arrived.
    pub finished: bool,
}

impl Receiver {
    /// A receiver whose buffer holds `buffer` bytes.
    pub fn new(profile: &Profile, buffer: u64, mss: u64) -> Self {
        let pieces = (buffer / BYTES_PER_PIECE) as usize + 16;
        Self {
            queue: Reassembly::new(0, profile.sack_blocks_remembered as usize, pieces),
            ready: VecDeque::new(),
            ready_bytes: 0,
            discard: false,
            buffer,
            edge: 0,
            fin: None,
            mss,
            acks: Acknowledger::new(profile, mss),
            twice: None,
            reports_twice: profile.dsack,
        }
    }

    /// The peer's SYN came: its first byte is next.
    pub fn synchronize(&mut self) {
        self.queue.skip_one();
        self.edge = self.queue.next() + self.buffer;
    }

    /// What the handshake settled: a full segment has `mss` bytes of text, its options not counted, and at most `largest_window` can be
    /// advertised.
    pub fn settle(&mut self, mss: u64, largest_window: u64) {
        self.mss = mss;
        self.acks.settle(mss);
        self.buffer = self.buffer.min(largest_window);
        self.edge = self.edge.min(self.queue.next() + self.buffer);
    }

    /// Drops text as soon as it is in order, as a sink does.
    pub fn set_discard(&mut self, discard: bool) {
        self.discard = discard;
    }

    /// `RCV.NXT`.
    pub fn next(&self) -> u64 {
        self.queue.next()
    }

    /// `RCV.WND`: bytes from [`Receiver::next`] to the advertised edge.
    pub fn window(&self) -> u64 {
        self.edge - self.queue.next()
    }

    /// Bytes held: in order and not read, or beyond a hole.
    pub fn held(&self) -> u64 {
        self.ready_bytes + self.queue.waiting_bytes()
    }

    /// Bytes in order and not read.
    pub fn readable(&self) -> u64 {
        self.ready_bytes
    }

    /// Next text in order. The window may have opened enough to tell the peer (RFC 9293 §3.8.6.2.2).
    pub fn read(&mut self) -> Option<Bytes> {
        let bytes = self.ready.pop_front()?;
        self.ready_bytes -= bytes.len() as u64;
        let opening =
            (self.queue.next() + self.buffer - self.ready_bytes).saturating_sub(self.edge);
        if self.fin.is_none() && opening >= (2 * self.mss).min(self.buffer / 2).max(1) {
            self.acks.demand();
        }
        self.acks.on_read(self.ready_bytes);
        Some(bytes)
    }

    /// Moves the advertised edge to what the buffer takes, but not by less than a segment or half the buffer, for an
    /// acknowledgement that is about to go; it then is no longer due. Returns the window to advertise, bytes.
    pub fn acknowledge(&mut self) -> u64 {
        let open_to = self.queue.next() + self.buffer.saturating_sub(self.ready_bytes);
        if open_to >= self.edge + self.mss.min(self.buffer / 2).max(1) {
            self.edge = open_to;
        }
        self.acks.acknowledged();
        self.window()
    }

    /// Takes the text at the offset `start`, and whether the FIN follows it. Text outside the window is cut off.
    pub fn handle_text(
        &mut self,
        now: Nanos,
        start: u64,
        mut text: Bytes,
        fin: bool,
        stats: &mut Stats,
        trace: &mut Trace,
    ) -> Arrival {
        let end = start + text.len() as u64;
        let limit = self.edge.min(self.fin.unwrap_or(u64::MAX));
        if fin && end <= limit.max(self.queue.next()) && self.fin.is_none() {
            self.fin = Some(end);
        }
        let kept_end = end.min(limit).max(start);
        text.truncate((kept_end - start) as usize);
        if !text.is_empty() {
            self.insert(now, start, text, stats, trace);
        }
        if fin {
            self.acks.demand();
        }
        let finished = self.fin == Some(self.queue.next());
        if finished {
            self.queue.skip_one();
            self.edge = self.edge.max(self.queue.next());
            self.acks.demand();
        }
        Arrival { finished }
    }

    /// As [`Receiver::handle_text`], if the text is next and as long as `length`, is dropped as it comes, and raises no question. Whether it
    /// was taken.
    #[inline(always)]
    pub fn take_plain_text(
        &mut self,
        now: Nanos,
        length: u64,
        stats: &mut Stats,
        trace: &Trace,
    ) -> bool {
        if !self.discard
            || self.fin.is_some()
            || length > self.window()
            || self.acks.adapts()
            || !trace.wants_only(COMMON)
            || !self.queue.pass_next(length)
        {
            return false;
        }
        stats.bytes_delivered += length;
        self.acks.in_order_plainly(now, length);
        true
    }

    fn insert(
        &mut self,
        now: Nanos,
        start: u64,
        text: Bytes,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let mss = self.mss;
        let number = || (start.saturating_sub(1) / mss) as f64;
        let range = start..start + text.len() as u64;
        let ready_before = self.ready.len();
        let (length, window) = (range.end - range.start, self.window());
        // What is next and is dropped anyway goes through no queue.
        let passed = match self.discard {
            true => self.queue.pass(&range),
            false => None,
        };
        let insertion = passed.unwrap_or_else(|| self.queue.insert(start, text, &mut self.ready));
        match insertion {
            Insertion::InOrder { filled, was_gap } => {
                if trace.wants(Probe::Received) {
                    trace.record(now, Probe::Received, 0, number());
                }
                trace.record(now, Probe::Delivered, 0, filled as f64);
                stats.bytes_delivered += filled;
                if self.discard {
                    self.ready.truncate(ready_before);
                } else {
                    self.ready_bytes += filled;
                }
                let text = InOrder {
                    length,
                    filled,
                    was_gap,
                    window,
                    window_kept: self.buffer.saturating_sub(self.ready_bytes) >= window,
                };
                self.acks.in_order(now, &text);
                if self.discard {
                    self.acks.on_read(0);
                }
                trace.record(now, Probe::Buffered, 0, self.held() as f64);
                return;
            }
            Insertion::OutOfOrder => {
                trace.record(now, Probe::Received, 0, number());
                stats.out_of_order_received += 1;
            }
            Insertion::Duplicate => {
                stats.duplicates_received += 1;
                trace.record(now, Probe::Duplicate, 0, number());
                self.twice = self.reports_twice.then_some(range);
                self.acks.repeated(window);
            }
            Insertion::Refused => stats.dropped.no_room += 1,
        }
        self.acks.demand();
    }

    /// Text that lies before the window came again at the offset `start`.
    pub fn note_duplicate(
        &mut self,
        now: Nanos,
        start: u64,
        len: u64,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        stats.duplicates_received += 1;
        self.twice = self.reports_twice.then_some(start..start + len);
        self.acks.repeated(self.window());
        let number = (start.saturating_sub(1) / self.mss) as f64;
        trace.record(now, Probe::Duplicate, 0, number);
    }

    /// The rules of acknowledging.
    pub fn acks(&self) -> &Acknowledger {
        &self.acks
    }

    /// As [`Receiver::acks`], to tell them what happens.
    pub fn acks_mut(&mut self) -> &mut Acknowledger {
        &mut self.acks
    }

    /// Whether there is a block for a SACK option.
    #[inline]
    pub fn has_sack_blocks(&self) -> bool {
        self.twice.is_some() || self.queue.has_sack_blocks()
    }

    /// The blocks for a SACK option: what came twice, once (RFC 2883 §4), then what waits, most recent first; if what came twice lies in
    /// one of these, that one first.
    pub fn sack_blocks(&mut self) -> impl Iterator<Item = Range<u64>> + '_ {
        let twice = self.twice.take();
        let around = twice.clone().and_then(|it| {
            let mut blocks = self.queue.sack_blocks();
            blocks.find(|block| block.start <= it.start && it.end <= block.end)
        });
        let skip = around.clone();
        let rest = self.queue.sack_blocks();
        let rest = rest.filter(move |block| skip.as_ref() != Some(block));
        twice.into_iter().chain(around).chain(rest)
    }
}
