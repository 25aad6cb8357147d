//! Segment arrival (RFC 9293 §3.10.7).

use std::ops::Range;

use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos, Path, Probe};
use anabranch_wire::tcp::{Flags, SackBlocks, Segment, SegmentError};
use anabranch_wire::{Checksum, SeqNumber};
use bytes::Bytes;

use super::Connection;
use crate::event::{Event, Failure};
use crate::rx::reassembly::MAX_BLOCKS;
use crate::state::State;
use crate::tx::Ack;
use crate::tx::accurate_ecn::AccurateReport;

/// Minimum interval between two challenge ACKs of a connection.
const CHALLENGE_INTERVAL: Nanos = 500 * MILLISECOND;

/// Converts a sequence number to the offset closest to `near`; `None` if this would be before the
/// initial sequence number.
fn offset(number: SeqNumber, initial: u32, near: u64) -> Option<u64> {
    let expected = initial.wrapping_add(near as u32);
    near.checked_add_signed(i64::from(number.0.wrapping_sub(expected) as i32))
}

impl Connection {
    pub(super) fn receive(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        self.stats.segments_received += 1;
        self.quiet = false;
        if !self.receive_fast_path(now, path, ecn, &datagram) {
            self.receive_any(now, path, ecn, datagram);
        }
    }

    #[inline(never)]
    fn receive_any(&mut self, now: Nanos, path: Path, ecn: Ecn, datagram: Bytes) {
        let check = if self.config.checksum {
            Checksum::Verify
        } else {
            Checksum::Ignore
        };
        let segment = match Segment::parse_owned(datagram, (path.remote, path.local), check) {
            Ok(segment) => segment,
            Err(SegmentError::BadChecksum) => return self.stats.dropped.checksum += 1,
            Err(_) => return self.stats.dropped.malformed += 1,
        };
        let header = &segment.header;
        let known = self
            .path
            .is_none_or(|known| known == path && header.source_port == self.ports.remote);
        if header.destination_port != self.ports.local || !known {
            self.stats.dropped.misdirected += 1;
            return;
        }
        match self.state {
            State::Closed => {
                self.stats.dropped.closed += 1;
                if !header.flags.contains(Flags::RST) {
                    self.answer_with_reset(path, &segment);
                }
            }
            State::Listen => self.receive_in_listen(path, ecn, &segment),
            State::SynSent => self.receive_in_syn_sent(now, path, ecn, &segment),
            _ => self.receive_synchronized(now, path, ecn, segment),
        }
    }

    /// Processes a segment in a state other than CLOSED, LISTEN and SYN-SENT (RFC 9293 §3.10.7.4).
    #[inline(always)]
    fn receive_synchronized(&mut self, now: Nanos, path: Path, ecn: Ecn, segment: Segment) {
        let start = offset(
            segment.header.sequence_number,
            self.peer_isn,
            self.receiver.next(),
        );
        let flags = segment.header.flags;
        if self.has_old_timestamp(&segment) && !flags.contains(Flags::RST) {
            self.stats.dropped.old_timestamp += 1;
            self.object(now, segment.sequence_len());
            return;
        }
        let Some(start) = start.filter(|&start| self.is_acceptable(start, &segment)) else {
            self.refuse(now, start, ecn, &segment);
            return;
        };
        if flags.contains(Flags::RST) {
            self.receive_reset(now, start);
            return;
        }
        // A SYN in this state is an attack or an old duplicate, or the peer has restarted. A
        // challenge ACK lets a genuine peer respond with a RST (RFC 5961 §4).
        if flags.contains(Flags::SYN) || !flags.contains(Flags::ACK) {
            self.stats.dropped.suspicious += 1;
            if flags.contains(Flags::SYN) {
                self.object(now, 0);
            }
            return;
        }
        if self.receive_ack(now, start, path, &segment) {
            self.note_timestamp(start, &segment);
            self.count_field(now, ecn, &segment);
            self.receive_data(now, start, ecn, segment);
        }
    }

    /// First check: whether the start or the end of the segment is in the receive window.
    fn is_acceptable(&self, start: u64, segment: &Segment) -> bool {
        let (next, window) = (self.receiver.next(), self.receiver.window());
        let end = start + u64::from(segment.sequence_len());
        let inside = |at: u64| next <= at && at < next + window;
        if end == start {
            inside(start) || start == next
        } else {
            window > 0 && (inside(start) || inside(end - 1))
        }
    }

    /// Answers a segment outside the receive window with an acknowledgement. If the receive window
    /// is closed, the acknowledgement field of the segment is still processed.
    fn refuse(&mut self, now: Nanos, start: Option<u64>, ecn: Ecn, segment: &Segment) {
        let flags = segment.header.flags;
        if flags.contains(Flags::RST) {
            self.stats.dropped.outside_window += 1;
            return;
        }
        let old = start.filter(|&start| start < self.receiver.next());
        match old.filter(|_| !segment.payload.is_empty()) {
            Some(start) => {
                let (stats, trace) = (&mut self.stats, &mut self.trace);
                let len = segment.payload.len() as u64;
                self.receiver.note_duplicate(now, start, len, stats, trace);
            }
            None => self.stats.dropped.outside_window += 1,
        }
        if self.state == State::TimeWait && flags.contains(Flags::FIN) {
            self.enter_time_wait(now);
        }
        if self.state == State::SynReceived && flags.contains(Flags::SYN) && start == Some(0) {
            // The ECN flags of a repeated SYN are processed, because a peer whose SYN was not
            // answered retries without ECN.
            let support = self.ecn_support();
            if !self.ecn.on_syn_again(flags, ecn, support) {
                self.schedule_reset();
                self.fail_handshake();
                return;
            }
            // The timer of this end retransmits the SYN-ACK. A SYN-ACK of the peer belongs to a
            // simultaneous open and also acknowledges this end's SYN.
            if let (Some(path), true) = (self.path, flags.contains(Flags::ACK)) {
                self.receive_ack(now, 0, path, segment);
            }
            return;
        }
        self.object(now, segment.sequence_len());
        if start == Some(0)
            && flags.contains(Flags::SYN | Flags::ACK)
            && self.ecn.on_syn_ack_again(flags, ecn)
        {
            self.early_ack = Some(self.handshake_ack(now));
        }
        let at_closed_window = start == Some(self.receiver.next()) && self.receiver.window() == 0;
        if let Some(path) = self.path
            && at_closed_window
            && flags.contains(Flags::ACK)
            && !flags.contains(Flags::SYN)
        {
            self.receive_ack(now, self.receiver.next(), path, segment);
        }
    }

    /// Sends an acknowledgement in response to a segment that cannot be accepted. Responses to
    /// segments without data are rate-limited, because two ends that reject each other's
    /// acknowledgements would answer each other forever, and an attacker could provoke traffic (RFC
    /// 5961 §7).
    fn object(&mut self, now: Nanos, sequence_len: u32) {
        if sequence_len == 0 {
            if self.next_challenge > now {
                return;
            }
            self.next_challenge = now + CHALLENGE_INTERVAL;
        }
        self.receiver.acks_mut().demand();
    }

    /// Processes a RST. It takes effect only if its sequence number is exactly the next expected
    /// one; any other number in the window causes a challenge ACK (RFC 5961 §3).
    fn receive_reset(&mut self, now: Nanos, start: u64) {
        if start != self.receiver.next() {
            self.stats.dropped.suspicious += 1;
            self.object(now, 0);
        } else if self.state == State::SynReceived {
            self.fail_handshake();
        } else if self.state == State::TimeWait {
            self.shut();
        } else {
            self.fail(Failure::Reset);
        }
    }

    /// Ends a handshake in SYN-RECEIVED. After a passive open this end listens again.
    fn fail_handshake(&mut self) {
        if self.passive {
            self.listen_again();
        } else {
            self.fail(Failure::Refused);
        }
    }

    /// Fifth check: processes the acknowledgement field of a segment. Returns whether the remaining
    /// parts of the segment should be processed.
    fn receive_ack(&mut self, now: Nanos, start: u64, path: Path, segment: &Segment) -> bool {
        let header = &segment.header;
        let una = self.sender.flow.una;
        let to = offset(header.acknowledgment_number, self.isn, una);
        let window = u64::from(header.window) << self.negotiated.peer_shift;
        if self.state == State::SynReceived {
            if to != Some(1) {
                self.stats.dropped.bad_acknowledgement += 1;
                self.answer_with_reset(path, segment);
                return false;
            }
            self.window_from = (start, 1);
            if segment.sequence_len() == 0 && header.options.sack_blocks.is_empty() {
                self.ecn.on_ack_of_syn_ack(header.flags);
            }
            self.establish(
                now,
                if header.flags.contains(Flags::SYN) {
                    u64::from(header.window)
                } else {
                    window
                },
            );
            return true;
        }
        let oldest = una.saturating_sub(self.sender.widest_window());
        let Some(to) = to.filter(|to| (oldest..=self.sender.highest_acceptable()).contains(to))
        else {
            self.stats.dropped.bad_acknowledgement += 1;
            self.object(now, 0);
            return false;
        };
        if to < una || !self.state.sends() {
            return true;
        }
        let has_counters = self.ecn.accurate_mut().is_some();
        let accurate = has_counters.then(|| self.accurate_report(segment));
        let marked = !has_counters && header.flags.contains(Flags::ECE);
        // The sender needs the acknowledgement only if it has sent data, if the segment reports
        // marks, or if the trace records the pipe.
        if marked || !self.sender.has_sent_nothing() || self.trace.wants(Probe::Pipe) {
            let (blocks, count) = self.offsets(&header.options.sack_blocks);
            let echoed = self.echoed(now, segment);
            let ack = Ack {
                to,
                window,
                bare: segment.sequence_len() == 0,
                blocks: &blocks[..count],
                echoed,
                marked,
                accurate: accurate.as_ref(),
            };
            self.sender
                .handle_ack(now, &ack, &mut self.stats, &mut self.trace);
        }
        if self.window_from <= (start, to) {
            self.window_from = (start, to);
            self.sender.set_window(window);
        }
        if self.sender.fin_acknowledged() {
            self.own_fin_acknowledged(now);
        }
        true
    }

    /// Returns the counters of marks in a segment of a peer in AccECN mode (RFC 9768).
    #[cold]
    #[inline(never)]
    fn accurate_report(&self, segment: &Segment) -> AccurateReport {
        let options = &segment.header.options;
        let newer = match (self.recent_timestamp, options.timestamps) {
            (Some(recent), Some(stamp)) if self.negotiated.timestamps => {
                stamp.value.wrapping_sub(recent) as i32 > 0
            }
            _ => false,
        };
        AccurateReport {
            ace: segment.header.flags.ace(),
            option: options.accurate_ecn,
            newer,
        }
    }

    /// Counts the ECN field of an acceptable packet, if this end is in AccECN mode (RFC 9768 §3.2).
    #[inline]
    fn count_field(&mut self, now: Nanos, ecn: Ecn, segment: &Segment) {
        if self.ecn.accurate_mut().is_some() {
            self.count_field_accurately(now, ecn, segment);
        }
    }

    #[cold]
    #[inline(never)]
    fn count_field_accurately(&mut self, now: Nanos, ecn: Ecn, segment: &Segment) {
        let has_unacknowledged_data = self.receiver.acks().is_owed();
        let data = segment.payload.len() as u64;
        let must_acknowledge = (self.ecn.accurate_mut())
            .is_some_and(|it| it.receive(ecn, data, has_unacknowledged_data));
        if !must_acknowledge {
            return;
        }
        if segment.sequence_len() > 0 || has_unacknowledged_data {
            self.receiver.acks_mut().demand();
        } else if self.state.is_synchronized() && self.early_ack.is_none() {
            // SACK blocks are omitted, because the peer thereby distinguishes an acknowledgement of
            // acknowledgements from a duplicate (§3.2.2.5.1).
            self.early_ack = Some(self.ack_without_sack_blocks(now));
        }
    }

    fn own_fin_acknowledged(&mut self, now: Nanos) {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => {
                self.shut();
                self.events.push_back(Event::Closed);
            }
            _ => {}
        }
    }

    /// Converts the valid SACK blocks to ranges of offsets.
    fn offsets(&self, blocks: &SackBlocks) -> ([Range<u64>; MAX_BLOCKS], usize) {
        let mut ranges = [const { 0..0 }; MAX_BLOCKS];
        let mut count = 0;
        if self.negotiated.sack && !blocks.is_empty() {
            let una = self.sender.flow.una;
            for block in blocks.iter() {
                let (left, right) = (
                    offset(block.left, self.isn, una),
                    offset(block.right, self.isn, una),
                );
                if let (Some(left), Some(right)) = (left, right)
                    && left < right
                    && let Some(slot) = ranges.get_mut(count)
                {
                    *slot = left..right;
                    count += 1;
                }
            }
        }
        (ranges, count)
    }

    /// Send time of the segment whose timestamp the peer echoes, with a precision of one
    /// millisecond (RFC 7323 §4).
    fn echoed(&self, now: Nanos, segment: &Segment) -> Option<Nanos> {
        let echo = segment
            .header
            .options
            .timestamps
            .filter(|_| self.negotiated.timestamps)?
            .echo_reply;
        let ago = ((now / MILLISECOND) as u32).wrapping_sub(echo);
        now.checked_sub(u64::from(ago) * MILLISECOND)
    }

    /// Whether the timestamp of the segment is older than the last valid one (RFC 7323 §5.3 R1).
    fn has_old_timestamp(&self, segment: &Segment) -> bool {
        match (self.recent_timestamp, segment.header.options.timestamps) {
            (Some(recent), Some(stamp)) if self.negotiated.timestamps => {
                (stamp.value.wrapping_sub(recent) as i32) < 0
            }
            _ => false,
        }
    }

    /// Records the timestamp to echo: that of the segment with the next byte to be acknowledged
    /// (RFC 7323 §4.3).
    fn note_timestamp(&mut self, start: u64, segment: &Segment) {
        if let Some(stamp) = segment.header.options.timestamps
            && self.negotiated.timestamps
            && start <= self.acknowledged_to
        {
            self.recent_timestamp = Some(stamp.value);
        }
    }

    /// Seventh and eighth checks: processes the data and the FIN of a segment.
    fn receive_data(&mut self, now: Nanos, start: u64, ecn: Ecn, segment: Segment) {
        let fin = segment.header.flags.contains(Flags::FIN);
        if segment.payload.is_empty() && !fin {
            return;
        }
        self.stats.marks_received += u64::from(ecn == Ecn::Ce);
        if !self.sender.counts_marks() {
            self.ecn.receive_data(segment.header.flags, ecn);
        } else if self.ecn.changes_echo(ecn) {
            self.acknowledge_before_echo_changes(now);
            self.ecn.toggle_echo();
        }
        if !self.state.receives() {
            self.receiver.acks_mut().demand();
            if fin && self.state == State::TimeWait {
                self.enter_time_wait(now);
            }
            return;
        }
        if self.receiver.acks().adapts() {
            let (srtt, rto) = (self.sender.rto.srtt(), self.sender.rto.rto());
            self.receiver.acks_mut().update_times(srtt, rto);
        }
        let (stats, trace) = (&mut self.stats, &mut self.trace);
        let arrival = self
            .receiver
            .handle_data(now, start, segment.payload, fin, stats, trace);
        if arrival.finished {
            self.peer_finished(now);
        }
    }

    /// Sends a delayed acknowledgement now if the arriving packet is marked differently from the
    /// data that the acknowledgement covers, because its echo applies to all of that data.
    fn acknowledge_before_echo_changes(&mut self, now: Nanos) {
        if self.receiver.acks().is_owed() {
            self.early_ack = Some(self.header(now, self.sender.flow.max, Flags::ACK, 0));
        }
    }

    fn peer_finished(&mut self, now: Nanos) {
        self.events.push_back(Event::PeerClosed);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }
}
