//! Fast path of an established connection. It handles three cases: data that is next in order at an
//! end that only receives, acknowledgements of new data, and outgoing segments without options
//! other than timestamps.
//!
//! The results must be the same as those of [`receive`](super::receive) and
//! [`transmit`](super::transmit), which handle every segment for which a condition of the fast path
//! is not met.

use anabranch_transport::{Ecn, Nanos, Path, Probe, Transmit};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{FastHeader, Flags, HEADER, is_intact};
use bytes::BytesMut;

use super::{Connection, SegmentForm};
use crate::state::State;
use crate::tx::Plan;

impl Connection {
    /// Processes a segment if the fast path applies; returns whether it did.
    #[inline(always)]
    pub(super) fn receive_fast_path(
        &mut self,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        datagram: &[u8],
    ) -> bool {
        let Some(header) = FastHeader::read(datagram) else {
            return false;
        };
        if self.state != State::Established
            || header.source_port != self.ports.remote
            || header.destination_port != self.ports.local
            || header.sequence_number != self.acknowledgment_number()
            || self.negotiated.form != SegmentForm::Plain
            || self.path != Some(path)
            || (self.config.checksum && !is_intact(datagram, (path.remote, path.local)))
        {
            return false;
        }
        let una = self.sender.flow.una;
        let acknowledged = SeqNumber(self.isn.wrapping_add(una as u32));
        let advanced = (header.acknowledgment_number.0).wrapping_sub(acknowledged.0);
        if u64::from(advanced) > self.sender.flow.flightsize() {
            return false;
        }
        let (start, to) = (self.receiver.next(), una + u64::from(advanced));
        let data = datagram.len() - HEADER;
        let (stats, trace) = (&mut self.stats, &mut self.trace);
        let is_taken = if data == 0 {
            self.sender.fast_path_ack(now, to, stats, trace)
        } else {
            // Conditions: the segment acknowledges no new data, and no packet was marked so far.
            advanced == 0
                && self.sender.has_sent_nothing()
                && ecn == Ecn::NotEct
                && self.ecn.echo() == Flags::NONE
                && !trace.wants(Probe::Pipe)
                && self.receiver.fast_path_data(now, data as u64, stats, trace)
        };
        if is_taken && self.window_from <= (start, to) {
            self.window_from = (start, to);
            let window = u64::from(header.window) << self.negotiated.peer_shift;
            self.sender.set_window(window);
        }
        is_taken
    }

    /// Writes a segment if it has no options but timestamps, and its data is contiguous. `begin`
    /// holds the offset and the flags of the segment.
    #[inline(always)]
    pub(super) fn write_fast_path(
        &mut self,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        (offset, flags): (u64, Flags),
        plan: Option<&Plan>,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        let form = self.negotiated.form;
        if form == SegmentForm::Variable || self.receiver.has_sack_blocks() {
            return None;
        }
        let data = match plan {
            Some(plan) => self.sender.contiguous_data(plan)?,
            None => &[],
        };
        let window = self.receiver.acknowledge();
        self.trace
            .record(now, Probe::AdvertisedRwnd, 0, window as f64);
        self.acknowledged_to = self.receiver.next();
        let header = FastHeader {
            source_port: self.ports.local,
            destination_port: self.ports.remote,
            sequence_number: SeqNumber(self.isn.wrapping_add(offset as u32)),
            acknowledgment_number: self.acknowledgment_number(),
            flags: flags | self.ecn.echo(),
            window: (window >> self.negotiated.local_shift).min(u64::from(u16::MAX)) as u16,
        };
        let addresses = (path.local, path.remote);
        let checksum = self.config.checksum;
        let len = if form == SegmentForm::Plain {
            header.encode(out, addresses, checksum, [], data)
        } else {
            let options = self.timestamps(now).aligned();
            header.encode(out, addresses, checksum, options, data)
        };
        Some(Transmit {
            path,
            len,
            ecn,
            may_fragment: false,
        })
    }
}
