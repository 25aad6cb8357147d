//! Transmit fast path for packets that contain only new DATA.
//! If no retransmission is pending, no optional recovery algorithm or partial reliability is in
//! use, and tracing is disabled, most checks are not needed. The result must equal that of
//! [`Sender::fill`], which handles all other cases.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::PacketBuilder;
use anabranch_wire::chunk::Data;

use super::outstanding::OutstandingChunk;
use super::{MAX_OUTSTANDING, Sender};
use crate::fast_path::FAST_PATH_PROBES;
use crate::path::{PathId, Paths};
use crate::profile::Summed;

impl Sender {
    /// Whether [`Sender::fill_fast_path`] may be called for the path that [`Sender::wants_to_send`]
    /// has just returned.
    #[inline]
    pub fn is_plain(&self, trace: &Trace) -> bool {
        trace.wants_only(FAST_PATH_PROBES)
            && !self.outstanding.takes_a_look()
            && self.pr_sctp.is_none()
            && self.receipts.is_none()
            && self.sent_streams.is_none()
            && self.optional_recovery.is_none()
            && !self.interleaving
            && !self.queue.has_routes()
    }

    /// Whether a further message cannot be sent now, because earlier messages are queued and cwnd
    /// of the only path is full.
    #[inline]
    pub fn waits_for_room(&self, paths: &Paths) -> bool {
        !self.queue.is_empty()
            && paths.len() == 1
            && self.optional_recovery.is_none()
            && self.cmt.is_none()
            && self.pr_sctp.is_none()
            && !paths.get(PathId(0)).has_room()
    }

    /// Like [`Sender::fill`], if only new DATA can be sent, and tracing is disabled; see
    /// [`Sender::is_plain`].
    #[inline(always)]
    pub fn fill_fast_path(
        &mut self,
        now: Nanos,
        id: PathId,
        packet: &mut PacketBuilder<'_>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> usize {
        debug_assert!(self.is_plain(trace), "that was asked");
        let most = self.most_user_data(paths);
        let entry = paths.get_mut(id);
        let rwnd_counts = self.profile.rwnd_counts;
        let length = self.next_piece(most, packet.room(), false);
        // Use the slow path if cwnd may have to be reduced because the path was idle, or if the
        // peer's window is too small for the chunk.
        if entry.decay_at.has_come(now) || rwnd_counts.bytes(length) > self.peer_rwnd {
            return self.fill(now, id, packet, paths, trace);
        }
        self.keys.begin_packet();
        let was_quiet = self.in_flight_for_window() == 0;
        let begins = self.outstanding.next_tsn();
        let mut sent = Summed::default();
        if !self.bundling || self.fill_single_chunks(now, id, most, &mut sent, packet) {
            self.fill_fragments(now, id, most, &mut sent, packet);
        }
        if sent.count == 0 {
            return 0;
        }
        self.statistics.chunks_sent += u64::from(sent.count);
        self.statistics.bytes_sent += sent.user_data;
        self.rwnd_in_flight += rwnd_counts.of_all(sent);
        let cwnd = self.profile.cwnd_counts.of_all(sent);
        let entry = paths.get_mut(id);
        entry.carried.count_all(sent.count, sent.padded);
        entry.flightsize += cwnd;
        entry.earliest.get_or_insert(begins);
        entry.timed.get_or_insert(begins); // RFC 9260 §6.3.1 C4
        self.count_burst(now, id, paths);
        self.queue.packet_ended();
        if self.profile.sack_immediately && self.wants_sack_at_once(now, was_quiet, paths) {
            packet.set_flags(self.last_data_at, Data::IMMEDIATE);
        }
        self.in_use.record(now, trace);
        let entry = paths.get_mut(id);
        entry.last_sent = now;
        self.note_packet(now, cwnd, entry);
        sent.count as usize
    }

    /// Adds unfragmented messages to the packet, while all queued messages belong to one stream.
    /// Returns whether the slow path may be able to add more chunks.
    #[inline(always)]
    fn fill_single_chunks(
        &mut self,
        now: Nanos,
        id: PathId,
        most: usize,
        sent: &mut Summed,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(mut run) = self.queue.single_chunk_run() else {
            return true;
        };
        let rwnd_counts = self.profile.rwnd_counts;
        while let Some(length) = run.next_len() {
            let rwnd = rwnd_counts.bytes(length);
            if length > most
                || self.outstanding.len() >= MAX_OUTSTANDING
                || packet.room() < (length + self.header).next_multiple_of(4)
                || rwnd > self.peer_rwnd
            {
                break;
            }
            let Some(fragment) = run.take() else {
                break;
            };
            let (tsn, at) = (self.outstanding.next_tsn(), packet.len());
            let chunk = OutstandingChunk::first(fragment, id, now, sent.count == 0);
            let pushed = packet.push(&self.outstanding.push(chunk).to_data(tsn));
            debug_assert!(pushed.is_ok(), "the room was asked for");
            self.last_data_at = at;
            self.peer_rwnd -= rwnd;
            sent.add(length);
        }
        run.end(most)
    }

    /// Adds chunks of any kind to the packet, one by one.
    #[inline(always)]
    fn fill_fragments(
        &mut self,
        now: Nanos,
        id: PathId,
        most: usize,
        sent: &mut Summed,
        packet: &mut PacketBuilder<'_>,
    ) {
        loop {
            let length = self.next_piece(most, packet.room(), sent.count > 0);
            let rwnd = self.profile.rwnd_counts.bytes(length);
            if length == 0
                || self.outstanding.len() >= MAX_OUTSTANDING
                || packet.room() < (length + self.header).next_multiple_of(4)
                || rwnd > self.peer_rwnd
            {
                return;
            }
            self.send_plainly(now, id, length, sent.count == 0, packet);
            self.peer_rwnd -= rwnd;
            sent.add(length);
            if !self.bundling {
                return;
            }
        }
    }

    /// Adds the next chunk to the packet.
    #[inline(always)]
    fn send_plainly(
        &mut self,
        now: Nanos,
        id: PathId,
        length: usize,
        begins_packet: bool,
        packet: &mut PacketBuilder<'_>,
    ) {
        let Some(fragment) = self.queue.pop_here(length, || self.in_use.take_turn()) else {
            return;
        };
        if fragment.ends_several() {
            self.outstanding.will_end(self.queue.take_whole());
        }
        let tsn = self.outstanding.next_tsn();
        self.last_data_at = packet.len();
        let chunk =
            self.outstanding
                .push(OutstandingChunk::first(fragment, id, now, begins_packet));
        let pushed = packet.push(&chunk.to_data(tsn));
        debug_assert!(pushed.is_ok(), "the room was asked for");
    }
}
