//! A packet of new DATA alone, from a sender of which nothing else is asked.
//!
//! While nothing waits to be sent again, nothing is watched or given up, and nobody records what is common, most questions that a packet raises have their
//! answer before they are asked. What is done here is what [`Sender::fill`] would do, no less; where any answer is another, that does it.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::PacketBuilder;
use anabranch_wire::chunk::Data;

use super::outstanding::Outgoing;
use super::{MOST_OUTSTANDING, Sender};
use crate::association::UNCOMMON;
use crate::path::{PathId, Paths};

impl Sender {
    /// Whether [`Sender::fill_plainly`] may be called for the path that [`Sender::wants_to_send`] has just named.
    #[inline]
    pub fn is_plain(&self, trace: &Trace) -> bool {
        trace.wants_only(UNCOMMON)
            && !self.outstanding.takes_a_look()
            && self.abandoning.is_none()
            && self.receipts.is_none()
            && self.watch.is_none()
            && !self.interleaving
            && !self.queue.has_courses()
    }

    /// As [`Sender::fill`], where all that may go is new DATA, in chunks of that type, and nobody looks: see [`Sender::is_plain`].
    #[inline(always)]
    pub fn fill_plainly(
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
        // Idle time may shrink the window, and a closed window is probed.
        if entry.decay_at.is_some_and(|due| now >= due)
            || rwnd_counts.bytes(length) > self.peer_rwnd
        {
            return self.fill(now, id, packet, paths, trace);
        }
        self.keys.begin_packet();
        let was_quiet = self.in_flight_for_window() == 0;
        let begins = self.outstanding.next_tsn();
        let (mut length, mut count) = (length, 0);
        let at = packet.len();
        let (mut user_data, mut rwnd_sent, mut cwnd_sent) = (0, 0, 0);
        loop {
            let rwnd = rwnd_counts.bytes(length);
            if length == 0
                || self.outstanding.len() >= MOST_OUTSTANDING
                || packet.room() < (length + self.header).next_multiple_of(4)
                || rwnd > self.peer_rwnd
            {
                break;
            }
            self.send_plainly(now, id, length, count == 0, packet);
            self.peer_rwnd -= rwnd;
            user_data += length as u64;
            rwnd_sent += rwnd;
            cwnd_sent += self.profile.cwnd_counts.bytes(length);
            count += 1;
            if !self.bundling {
                break;
            }
            length = self.next_piece(most, packet.room(), true);
        }
        if count == 0 {
            return 0;
        }
        self.statistics.chunks_sent += count as u64;
        self.statistics.bytes_sent += user_data;
        self.rwnd_in_flight += rwnd_sent;
        let carried = packet.len() - at; // whole chunks with their padding
        entry.carried.count_all(count as u32, carried as u64);
        entry.flightsize += cwnd_sent;
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
        self.note_packet(now, cwnd_sent, entry);
        count
    }

    /// The next chunk goes into the packet.
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
        let tsn = self.outstanding.next_tsn();
        self.last_data_at = packet.len();
        let chunk = self
            .outstanding
            .push(Outgoing::first(fragment, id, now, begins_packet));
        let pushed = packet.push(&chunk.to_data(tsn));
        debug_assert!(pushed.is_ok(), "the room was asked for");
    }
}
