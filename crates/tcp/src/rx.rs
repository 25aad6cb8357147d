//! Receiving side of a connection: receive window, reassembly, and timing of acknowledgements.

mod delayed_ack;
pub(crate) mod reassembly;

use std::collections::VecDeque;
use std::ops::Range;

use anabranch_transport::{Nanos, Probe, ProbeSet, Trace};
use bytes::Bytes;

use crate::profile::Profile;
use crate::stats::Stats;

use delayed_ack::{Acknowledger, InOrder};
use reassembly::{Insertion, Reassembly};

/// The number of buffered out-of-order slices is limited to one per this number of bytes of the
/// receive buffer, plus a constant.
const BYTES_PER_PIECE: u64 = 128;

/// Probes that record no sample when in-order data is dropped on arrival, so that the fast path
/// need not serve them.
const COMMON: ProbeSet = ProbeSet::ALL
    .without(Probe::Received)
    .without(Probe::Delivered)
    .without(Probe::ReceiveBufferUsed);

/// Variables and timers of the receive direction. Offsets are relative to the initial sequence
/// number of the peer.
#[derive(Debug)]
pub(crate) struct Receiver {
    queue: Reassembly,
    /// Data in order, not yet read.
    ready: VecDeque<Bytes>,
    ready_bytes: u64,
    /// Data is dropped as soon as it is in order, because this end is a sink.
    discard: bool,
    /// Size of the receive buffer, bytes.
    buffer: u64,
    /// Offset after the last byte of the advertised window; it never decreases.
    edge: u64,
    /// Offset of the peer's FIN, once received.
    fin: Option<u64>,
    /// Data bytes in a full segment.
    mss: u64,
    acks: Acknowledger,
    /// Range of data that was received twice; the next acknowledgement reports it as a D-SACK if
    /// enabled (RFC 2883).
    twice: Option<Range<u64>>,
    reports_twice: bool,
}

/// Result of processing the data and FIN of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// The FIN of the peer is next in order: all its data has arrived.
    pub finished: bool,
}

impl Receiver {
    /// Creates a receiver with a buffer of `buffer` bytes.
    pub(crate) fn new(profile: &Profile, buffer: u64, mss: u64) -> Self {
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

    /// Records the SYN of the peer. The sequence number of the SYN counts as received, so the first
    /// data byte is next.
    pub(crate) fn synchronize(&mut self) {
        self.queue.skip_one();
        self.edge = self.queue.next() + self.buffer;
    }

    /// Applies the results of the handshake: `mss` is the number of data bytes in a full segment
    /// without options, and `largest_window` is the largest window that can be advertised, bytes.
    pub(crate) fn settle(&mut self, mss: u64, largest_window: u64) {
        self.mss = mss;
        self.acks.settle(mss);
        self.buffer = self.buffer.min(largest_window);
        self.edge = self.edge.min(self.queue.next() + self.buffer);
    }

    /// Sets whether data is dropped as soon as it is in order, as in a sink.
    pub(crate) fn set_discard(&mut self, discard: bool) {
        self.discard = discard;
    }

    /// `RCV.NXT`: offset of the next expected byte.
    pub(crate) fn next(&self) -> u64 {
        self.queue.next()
    }

    /// `RCV.WND`: number of bytes from [`Receiver::next`] to the end of the advertised window.
    pub(crate) fn window(&self) -> u64 {
        self.edge - self.queue.next()
    }

    /// Number of buffered bytes: in order but not read, or after a gap.
    pub(crate) fn held(&self) -> u64 {
        self.ready_bytes + self.queue.waiting_bytes()
    }

    /// Number of bytes that are in order but not read.
    pub(crate) fn readable(&self) -> u64 {
        self.ready_bytes
    }

    /// Removes and returns the next data in order. If this opens the window far enough, a window
    /// update becomes due (RFC 9293 §3.8.6.2.2).
    pub(crate) fn read(&mut self) -> Option<Bytes> {
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

    /// Moves the end of the advertised window to the end of the free buffer, but only in steps of
    /// at least a segment or half the buffer. Must be called for each acknowledgement that is sent,
    /// and cancels one that was due. Returns the window to advertise, bytes.
    pub(crate) fn acknowledge(&mut self) -> u64 {
        let open_to = self.queue.next() + self.buffer.saturating_sub(self.ready_bytes);
        if open_to >= self.edge + self.mss.min(self.buffer / 2).max(1) {
            self.edge = open_to;
        }
        self.acks.acknowledged();
        self.window()
    }

    /// Processes data at offset `start`; the caller also says whether a FIN follows the data. Data
    /// outside the window is cut off.
    pub(crate) fn handle_data(
        &mut self,
        now: Nanos,
        start: u64,
        mut data: Bytes,
        fin: bool,
        stats: &mut Stats,
        trace: &mut Trace,
    ) -> Arrival {
        let end = start + data.len() as u64;
        let limit = self.edge.min(self.fin.unwrap_or(u64::MAX));
        if fin && end <= limit.max(self.queue.next()) && self.fin.is_none() {
            self.fin = Some(end);
        }
        let kept_end = end.min(limit).max(start);
        data.truncate((kept_end - start) as usize);
        if !data.is_empty() {
            self.insert(now, start, data, stats, trace);
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

    /// Fast path of [`Receiver::handle_data`] for `length` bytes that are next in order and are
    /// dropped on arrival. Returns whether the fast path was possible.
    #[inline(always)]
    pub(crate) fn fast_path_data(
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
        self.acks.in_order_fast_path(now, length);
        true
    }

    fn insert(
        &mut self,
        now: Nanos,
        start: u64,
        data: Bytes,
        stats: &mut Stats,
        trace: &mut Trace,
    ) {
        let mss = self.mss;
        let number = || (start.saturating_sub(1) / mss) as f64;
        let range = start..start + data.len() as u64;
        let ready_before = self.ready.len();
        let (length, window) = (range.end - range.start, self.window());
        // Data in order that is dropped on arrival need not be stored in the queue.
        let passed = match self.discard {
            true => self.queue.pass(&range),
            false => None,
        };
        let insertion = passed.unwrap_or_else(|| self.queue.insert(start, data, &mut self.ready));
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
                let data = InOrder {
                    length,
                    filled,
                    was_gap,
                    window,
                    window_kept: self.buffer.saturating_sub(self.ready_bytes) >= window,
                };
                self.acks.in_order(now, &data);
                if self.discard {
                    self.acks.on_read(0);
                }
                trace.record(now, Probe::ReceiveBufferUsed, 0, self.held() as f64);
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

    /// Records a duplicate: data at offset `start`, before the window, was received again.
    pub(crate) fn note_duplicate(
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

    /// Timing of acknowledgements.
    pub(crate) fn acks(&self) -> &Acknowledger {
        &self.acks
    }

    /// Timing of acknowledgements, mutable.
    pub(crate) fn acks_mut(&mut self) -> &mut Acknowledger {
        &mut self.acks
    }

    /// Whether the next acknowledgement should carry a SACK block.
    #[inline]
    pub(crate) fn has_sack_blocks(&self) -> bool {
        self.twice.is_some() || self.queue.has_sack_blocks()
    }

    /// Blocks for the SACK option. A range received twice comes first and is reported once (RFC
    /// 2883 §4); the out-of-order blocks follow, most recent first. If one of these blocks contains
    /// the range received twice, that block is listed directly after the range.
    pub(crate) fn sack_blocks(&mut self) -> impl Iterator<Item = Range<u64>> + '_ {
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
