//! Bundling of DATA into a packet: retransmissions first, then new chunks as permitted by cwnd, the
//! peer's window and Max.Burst (RFC 9260 §6.1, §6.10).

use anabranch_transport::{Nanos, Probe, Trace};
use anabranch_wire::chunk::Data;
use anabranch_wire::{PacketBuilder, Tsn};

use super::outstanding::{ChunkState, OutstandingChunk};
use super::{MAX_OUTSTANDING, Probing, Sender, trace_window, window};
use crate::compact_option::OptionalNanos;
use crate::path::{PathEntry, PathId, Paths};
use crate::profile::{Counts, MaxBurst};

/// Maximum number of marked chunks for other paths that are skipped while more chunks for a packet
/// are searched.
const MAX_PASSED_OVER: u32 = 64;
/// Minimum user data in bytes of a first fragment that fills the remaining space of a packet.
const MIN_BEGINNING: usize = 64;

impl Sender {
    /// Adds DATA chunks for path `id`, which [`Sender::wants_to_send`] has just returned, to a
    /// packet. Returns their number. No chunk is added if no data may be sent, or if the next chunk
    /// does not fit; the caller should then send the packet and call again.
    #[inline(never)]
    pub fn fill(
        &mut self,
        now: Nanos,
        id: PathId,
        packet: &mut PacketBuilder<'_>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> usize {
        let decayed = self.decay_if_idle(now, id, paths, trace);
        self.keys.begin_packet();
        let flight_before = paths.get(id).flightsize;
        let was_quiet = self.in_flight_for_window() == 0;
        let forward = self.optional_recovery.is_some() && self.path_for_f_rto(paths) == Some(id);
        let again = if !forward
            && self.outstanding.first_marked().is_some()
            && self.wants_to_send(now, paths) == Some(id)
        {
            self.fill_retransmissions(now, id, packet, paths, trace)
        } else {
            0
        };
        let room_for_new =
            again == 0 || (self.profile.bundle_new_with_retransmissions && self.bundling);
        let may_be_new = || {
            forward
                || self.outstanding.first_marked().is_none()
                || self.nothing_goes_again_on(id, paths)
        };
        let new = if room_for_new && may_be_new() {
            let known = again == 0 && !decayed || forward || self.probe_due() == Some(id);
            self.fill_new(now, id, again > 0, known, packet, paths, trace)
        } else {
            0
        };
        if new > 0 {
            self.queue.packet_ended();
            if forward {
                self.sent_for_f_rto();
            }
        }
        if again + new > 0 {
            if self.profile.sack_immediately && self.wants_sack_at_once(now, was_quiet, paths) {
                packet.set_flags(self.last_data_at, Data::IMMEDIATE);
            }
            self.in_use.record(now, trace);
            let entry = paths.get_mut(id);
            if new > 0 {
                entry.last_sent = now;
            }
            let bytes = entry.flightsize - flight_before;
            self.note_packet(now, bytes, entry);
            self.trace_flight(now, id, entry, trace);
            if self.optional_recovery.is_some() {
                self.note_filled(now, id, (again, new), bytes, paths);
            }
        }
        again + new
    }

    /// Updates the path for a sent packet with `bytes` bytes of DATA, as cwnd counts them.
    #[inline(always)]
    pub(super) fn note_packet(&self, now: Nanos, bytes: u64, entry: &mut PathEntry) {
        if entry.t3_deadline.is_none() {
            entry.start_t3(now); // RFC 9260 §6.3.2 R1
        }
        entry.decay_at = OptionalNanos::some(now + entry.rto.rto());
        entry.cc.on_sent(now, bytes, entry.flightsize);
        entry.delivery.on_sent(now, bytes, entry.flightsize);
        if let Some(pacer) = &mut entry.pacer {
            pacer.on_sent(now, bytes, &*entry.cc, entry.rto.srtt());
        }
        if self.queue.is_empty() && entry.has_room() {
            entry.delivery.on_app_limited();
            entry.cc.on_app_limited(now);
        }
    }

    /// Reduces cwnd if the path was idle. Returns whether cwnd may have changed.
    fn decay_if_idle(
        &mut self,
        now: Nanos,
        id: PathId,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> bool {
        let entry = paths.get_mut(id);
        if !entry.decay_at.has_come(now) {
            return false;
        }
        let before = window(entry);
        entry.decay(now, self.profile.idle_decay);
        trace_window(now, id, entry, before, trace);
        true
    }

    fn fill_retransmissions(
        &mut self,
        now: Nanos,
        id: PathId,
        packet: &mut PacketBuilder<'_>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> usize {
        let mut count = 0;
        let mut passed_over = 0;
        let mut next = self.first_to_go_again(id, paths);
        while let Some(tsn) = next {
            if self.forbids(now, tsn).is_some() {
                // This chunk may not be retransmitted. Its message is abandoned later, once this
                // TSN is the lowest marked one.
                next = self.outstanding.next_marked(tsn.next());
                continue;
            }
            if self.retransmission_path(tsn, paths) == Some(id) {
                let Some(chunk) = self.outstanding.get(tsn) else {
                    break;
                };
                if !self.keys.join(self.keys.of(tsn), count == 0) {
                    break;
                }
                // The path MTU has decreased since the message was fragmented. The chunk is sent
                // alone, and IP fragments the packet (RFC 9260 §6.9).
                let length = (chunk.fragment.user_data.len() + self.header).next_multiple_of(4);
                if packet.is_empty() && length > packet.room() {
                    packet.make_room(length);
                }
                let at = packet.len();
                let pushed = if self.interleaving {
                    packet.push(&chunk.to_i_data(tsn))
                } else {
                    packet.push(&chunk.to_data(tsn))
                };
                if pushed.is_err() {
                    break;
                }
                self.last_data_at = at;
                self.retransmitted(now, tsn, id, count == 0, paths);
                trace.record(now, Probe::Retransmitted, id.0.into(), self.number(tsn));
                count += 1;
                if !self.bundling {
                    break;
                }
            } else {
                passed_over += 1;
                if passed_over == MAX_PASSED_OVER {
                    break;
                }
            }
            next = self.outstanding.next_marked(tsn.next());
        }
        if count > 0 {
            let waits = self.profile.retransmissions_wait_for_sack || self.examines_timeout();
            if self.one_packet && waits {
                self.gate_closed = true;
            }
            self.one_packet = false;
            self.count_burst_of_retransmission();
        }
        count
    }

    /// Updates a marked chunk that was added to a packet for path `id`: it is in flight again, and
    /// T3-rtx covers it.
    fn retransmitted(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        id: PathId,
        begins_packet: bool,
        paths: &mut Paths,
    ) {
        let Some(chunk) = self.outstanding.get_mut(tsn) else {
            return;
        };
        let (length, from) = (chunk.fragment.user_data.len(), chunk.path);
        self.in_use.on_retransmission(now);
        self.statistics.rare().chunks_retransmitted += 1;
        self.statistics.rare().bytes_retransmitted += length as u64;
        chunk.transmissions += 1;
        chunk.sent_at = now;
        chunk.begins_packet = begins_packet;
        chunk.moved |= from != id;
        self.outstanding.move_to(tsn, id);
        self.outstanding.set_state(tsn, ChunkState::InFlight);
        self.count_reports_again(tsn);
        let (bytes, rwnd) = (
            self.profile.cwnd_counts.bytes(length),
            self.profile.rwnd_counts.bytes(length),
        );
        self.rwnd_marked -= rwnd;
        self.rwnd_in_flight += rwnd;
        if !self.profile.flight_counts_marked {
            self.peer_rwnd = self.peer_rwnd.saturating_sub(rwnd); // RFC 9260 §6.2.1 B
        }

        let old = paths.get_mut(from);
        old.marked_bytes -= bytes;
        if old.timed == Some(tsn) {
            old.timed = None; // Karn's rule
        }
        if self.profile.retransmission_cancels_rtt {
            for (_, entry) in paths.iter_mut() {
                entry.timed = entry.timed.filter(|timed| timed.lt(tsn)); // RFC 9260 §6.3.1 C5
            }
        }
        let old = paths.get_mut(from);
        let bound = old.earliest.unwrap_or(tsn);
        let was_earliest = if from == id {
            self.outstanding.earliest_on(from, bound) == Some(tsn)
        } else {
            self.outstanding
                .earliest_on(from, bound)
                .is_none_or(|earliest| tsn.lt(earliest))
        };
        if was_earliest && old.t3_deadline.is_some() {
            // The timer follows the earliest outstanding chunk (RFC 9260 §7.2.4 (4), §6.3.2).
            if from != id && old.flightsize + old.marked_bytes == 0 {
                if !self.profile.flight_counts_marked {
                    old.t3_deadline = None;
                    old.earliest = None;
                }
            } else if old.flightsize > 0 || self.profile.fast_retransmit_restarts_idle_t3 {
                old.start_t3(now);
            }
        }
        let new = paths.get_mut(id);
        new.carried.count(length);
        let before_all = new.earliest.is_none_or(|earliest| tsn.lt(earliest));
        if from != id && before_all {
            new.start_t3(now);
        }
        if before_all {
            new.earliest = Some(tsn);
        }
        new.flightsize += bytes;
        if self.optional_recovery.is_some() {
            self.note_sent_again(now, tsn, id, paths);
        }
    }

    /// Counts a retransmission in the burst. Under ns-2.35's rule, retransmissions may exceed the
    /// burst limit by one.
    fn count_burst_of_retransmission(&mut self) {
        match self.profile.max_burst_applies {
            MaxBurst::Off => {}
            MaxBurst::EachSack => self.burst.packets += 1,
            MaxBurst::AfterFastRetransmit if self.burst.armed => {
                if !std::mem::replace(&mut self.burst.retransmitting, true) {
                    self.burst.packets = 0;
                }
                if self.burst.packets >= self.profile.max_burst {
                    self.burst.armed = false;
                    self.gate_closed = self.outstanding.first_marked().is_some();
                }
                self.burst.packets += 1;
                // The count continues until new data is sent, which does not happen while chunks
                // are marked.
                self.burst.carried = self.timed_out || self.outstanding.first_marked().is_some();
            }
            MaxBurst::AfterFastRetransmit => {}
        }
    }

    /// Adds new chunks to a packet for path `id`. `shared`: the packet contains retransmissions.
    /// `known`: it was already checked that new data may be sent on `id`.
    #[expect(clippy::too_many_arguments, reason = "one step of fill")]
    fn fill_new(
        &mut self,
        now: Nanos,
        id: PathId,
        shared: bool,
        known: bool,
        packet: &mut PacketBuilder<'_>,
        paths: &mut Paths,
        trace: &mut Trace,
    ) -> usize {
        let mut count = 0;
        let may_go = || self.takes_new(id, paths) && self.may_send_new(now, id, paths);
        debug_assert!(
            !known || may_go() || self.probe_due() == Some(id) || self.examines_timeout(),
            "that was asked"
        );
        if !known && !may_go() {
            return 0;
        }
        let most = self.most_user_data(paths);
        let begins = self.outstanding.next_tsn();
        let mut sent = Sent::default();
        loop {
            if self.queue.has_routes() && !self.joins(id, count == 0 && !shared, paths) {
                break;
            }
            let length = self.next_piece(most, packet.room(), count > 0);
            if count > 0 && self.next_is_over(now) {
                break;
            }
            let rwnd = self.profile.rwnd_counts.bytes(length);
            let fits_window = rwnd <= self.peer_rwnd;
            let first = count == 0 && !shared; // allowed by may_send_new, if only as a probe
            if length == 0
                || self.outstanding.len() >= MAX_OUTSTANDING
                || packet.room() < (length + self.header).next_multiple_of(4)
                || !(fits_window || first)
            {
                break;
            }
            if !fits_window {
                self.statistics.rare().window_probes += 1;
                self.probe = Some(Probing {
                    tsn: self.outstanding.next_tsn(),
                    answered: false,
                });
            }
            self.send_new(now, id, length, first, packet, trace);
            self.peer_rwnd = self.peer_rwnd.saturating_sub(rwnd);
            sent.user_data += length as u64;
            sent.rwnd += rwnd;
            sent.cwnd += self.profile.cwnd_counts.bytes(length);
            sent.carried += Counts::PaddedChunk.bytes(length);
            count += 1;
            if !self.bundling {
                break;
            }
        }
        if count > 0 {
            self.statistics.chunks_sent += count as u64;
            self.statistics.bytes_sent += sent.user_data;
            self.rwnd_in_flight += sent.rwnd;
            let entry = paths.get_mut(id);
            entry.carried.count_all(count as u32, sent.carried);
            entry.flightsize += sent.cwnd;
            entry.earliest.get_or_insert(begins);
            entry.timed.get_or_insert(begins); // RFC 9260 §6.3.1 C4
        }
        if count > 0 && !shared {
            self.count_burst(now, id, paths);
        }
        count
    }

    /// Length in bytes of the user data of the next chunk, at most `most`, for a packet with `room`
    /// bytes left. `behind`: other chunks precede it. If a message must be fragmented anyway, its
    /// first fragment may be shorter, so that this fragment fills the packet.
    #[inline(always)]
    pub(super) fn next_piece(&self, most: usize, room: usize, behind: bool) -> usize {
        let length = self.queue.next_len(most);
        let left = room.saturating_sub(self.header);
        let fills = self.pack_messages && behind && self.bundling && length > left;
        if fills && left >= MIN_BEGINNING && self.queue.next_len(usize::MAX) > most {
            return left;
        }
        length
    }

    #[inline]
    pub(super) fn count_burst(&mut self, now: Nanos, id: PathId, paths: &Paths) {
        if self.burst.message_given && now > self.burst.began {
            self.burst.restart(now);
        }
        self.burst.packets += 1;
        let full = self.burst.packets >= self.profile.max_burst;
        // Under ns-2.35's rule the burst limit applies once: after it has blocked a packet, it no
        // longer applies.
        if self.burst.armed
            && full
            && self.path_allows_new(id, paths)
            && self.fits_peer_window(paths)
        {
            self.burst.stopped = self.profile.max_burst_applies == MaxBurst::AfterFastRetransmit;
            self.burst.armed = false;
        }
    }

    fn send_new(
        &mut self,
        now: Nanos,
        id: PathId,
        length: usize,
        begins_packet: bool,
        packet: &mut PacketBuilder<'_>,
        trace: &mut Trace,
    ) {
        let Some(fragment) = self.queue.pop(length, || self.in_use.take_turn()) else {
            return;
        };
        if fragment.ends_several() {
            self.outstanding.will_end(self.queue.take_whole());
        }
        self.note_sent(fragment.stream);
        let tsn = self.outstanding.next_tsn();
        let chunk = OutstandingChunk::first(fragment, id, now, begins_packet);
        self.last_data_at = packet.len();
        let chunk = self.outstanding.push(chunk);
        let pushed = if self.interleaving {
            packet.push(&chunk.to_i_data(tsn))
        } else {
            packet.push(&chunk.to_data(tsn))
        };
        debug_assert!(pushed.is_ok(), "the room was asked for");
        self.keys.note(tsn, self.outstanding.cumulative_point());
        if self.pr_sctp.is_some() || self.receipts.is_some() {
            self.note_terms(tsn);
        }
        trace.record(now, Probe::Sent, id.0.into(), self.number(tsn));
    }
}

/// Sums over the new chunks of a packet.
#[derive(Clone, Copy, Default)]
struct Sent {
    user_data: u64,
    /// Bytes as the receiver window counts them.
    rwnd: u64,
    cwnd: u64,
    /// Bytes of complete chunks with header and padding.
    carried: u64,
}
