//! Segment output. Priority: RST, SYN, data, pure acknowledgement.

use anabranch_transport::time::MILLISECOND;
use anabranch_transport::{Ecn, Nanos, Path, Probe, Transmit};
use anabranch_wire::SeqNumber;
use anabranch_wire::tcp::{Flags, Header, MAX_OPTIONS, Options, SackBlock, Segment, Timestamps};
use bytes::BytesMut;

use super::Connection;
use super::accurate_ecn::AccurateReceiver;
use crate::state::State;
use crate::tx::Plan;

/// Option space reserved for two SACK blocks, bytes; these have precedence over an AccECN option
/// (RFC 9768 §3.2.3.3).
const RESERVED_FOR_SACK: usize = 4 + 2 * 8;

impl Connection {
    #[inline(never)] // keeps its stack frame out of the fast path
    pub(super) fn transmit(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if let Some((path, header)) = self.reset.take() {
            return Some(self.write_out(&header, path, Ecn::NotEct, None, out));
        }
        let path = self.path?;
        if self.syn_owed {
            return Some(self.send_syn(now, path, out));
        }
        if let Some(header) = self.early_ack.take() {
            self.stats.acknowledgements_sent += 1;
            return Some(self.write_out(&header, path, Ecn::NotEct, None, out));
        }
        let mut held = false;
        // The sender of an end that only receives is always idle here.
        if self.state.sends() && !self.sender.is_idle() {
            self.sender.wake(now, &mut self.trace);
            match self.sender.plan() {
                Some(plan) if self.sender.may_go(now) => {
                    let transmit = self.send_data(now, path, &plan, out);
                    // If the next segment waits only for the congestion window, polls can be
                    // skipped until an acknowledgement arrives.
                    self.quiet = self.sender.waits_for_room();
                    return Some(transmit);
                }
                Some(_) => held = true,
                None => self.sender.rest(now),
            }
        }
        if self.receiver.acks().is_due() && self.state.is_synchronized() {
            self.stats.acknowledgements_sent += 1;
            let at = self.sender.flow.max;
            return Some(self.write_segment(now, path, Ecn::NotEct, (at, Flags::ACK), None, out));
        }
        self.quiet = !held;
        None
    }

    fn send_syn(&mut self, now: Nanos, path: Path, out: &mut BytesMut) -> Transmit {
        self.syn_owed = false;
        self.syns_sent += 1;
        if self.syns_sent > 1 {
            self.stats.syn_retransmissions += 1;
        }
        self.sender.syn_sent(now);
        let answer = self.state == State::SynReceived;
        let flags = if answer {
            Flags::SYN | Flags::ACK | self.ecn.syn_ack_flags()
        } else {
            let support = self.ecn_support();
            Flags::SYN | self.ecn.syn_flags(self.syns_sent, support)
        };
        let mut header = self.bare_header(0, flags);
        header.options = self.syn_options(now);
        header.window = if answer {
            self.acknowledged_to = self.receiver.next();
            header.acknowledgment_number = self.acknowledgment_number();
            self.receiver.acknowledge().min(u64::from(u16::MAX)) as u16
        } else {
            self.config.receive_bytes().min(u64::from(u16::MAX)) as u16
        };
        self.write_out(&header, path, Ecn::NotEct, None, out)
    }

    fn send_data(&mut self, now: Nanos, path: Path, plan: &Plan, out: &mut BytesMut) -> Transmit {
        let mut flags = Flags::ACK;
        if plan.fin {
            flags = flags | Flags::FIN;
        }
        if plan.len > 0 && self.sender.is_last(plan) {
            flags = flags | Flags::PSH;
        }
        let ecn = self.sender.ecn_of(plan);
        if ecn.is_capable() && self.sender.flow.ecn.on_sent(plan.len as u64) {
            flags = flags | Flags::CWR;
        }
        if plan.len > 0 {
            self.receiver.acks_mut().on_data_sent(now);
        }
        let transmit = self.write_segment(now, path, ecn, (plan.start, flags), Some(plan), out);
        self.sender
            .sent(now, plan, &mut self.stats, &mut self.trace);
        transmit
    }

    /// Writes a segment of a synchronized connection, with data or as a pure acknowledgement.
    /// `begin` holds the offset and the flags of the segment.
    #[inline]
    fn write_segment(
        &mut self,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        begin: (u64, Flags),
        plan: Option<&Plan>,
        out: &mut BytesMut,
    ) -> Transmit {
        if let Some(transmit) = self.write_fast_path(now, path, ecn, begin, plan, out) {
            return transmit;
        }
        let (offset, flags) = begin;
        let header = self.header(now, offset, flags, plan.map_or(0, |it| it.len));
        self.write_out(&header, path, ecn, plan, out)
    }

    /// Header of a segment of a synchronized connection. The segment carries an acknowledgement, so
    /// none is due afterwards.
    #[inline(never)]
    pub(super) fn header(&mut self, now: Nanos, offset: u64, flags: Flags, data: usize) -> Header {
        let window = self.receiver.acknowledge();
        self.trace
            .record(now, Probe::AdvertisedRwnd, 0, window as f64);
        self.acknowledged_to = self.receiver.next();
        let echo = match self.ecn.accurate_mut() {
            Some(accurate) => accurate.report(),
            None => self.ecn.echo(),
        };
        let mut header = self.bare_header(offset, flags | echo);
        header.acknowledgment_number = self.acknowledgment_number();
        header.window = (window >> self.negotiated.local_shift).min(u64::from(u16::MAX)) as u16;
        header.options = self.options(now, data);
        header
    }

    /// Header of the acknowledgement of a SYN-ACK that accepted accurate ECN. Its flags report the
    /// ECN field of the SYN-ACK (RFC 9768 §3.2.2.1).
    pub(super) fn handshake_ack(&mut self, now: Nanos) -> Header {
        let mut header = self.ack_without_sack_blocks(now);
        if let Some(accurate) = self.ecn.accurate_mut() {
            header.flags = Flags::ACK | accurate.handshake_flags();
        }
        header
    }

    /// Header of a pure acknowledgement without SACK blocks.
    pub(super) fn ack_without_sack_blocks(&mut self, now: Nanos) -> Header {
        let mut header = self.header(now, self.sender.flow.max, Flags::ACK, 0);
        header.options.sack_blocks.truncate(0);
        header
    }

    fn bare_header(&self, offset: u64, flags: Flags) -> Header {
        Header {
            source_port: self.ports.local,
            destination_port: self.ports.remote,
            sequence_number: SeqNumber(self.isn.wrapping_add(offset as u32)),
            flags,
            ..Header::default()
        }
    }

    pub(super) fn acknowledgment_number(&self) -> SeqNumber {
        SeqNumber(self.peer_isn.wrapping_add(self.receiver.next() as u32))
    }

    /// Options of a segment with `data` bytes: timestamps if negotiated, and as many SACK blocks as
    /// fit (RFC 2018 §3).
    fn options(&mut self, now: Nanos, data: usize) -> Options {
        let mut options = Options::default();
        if self.negotiated.timestamps {
            options.timestamps = Some(self.timestamps(now));
        }
        // A segment full of data has no space for further options (RFC 6691). SACK blocks and
        // counters wait for the next segment with space; no segment is sent only for them.
        let mut spare = (self.sender.flow.mss as usize).saturating_sub(data);
        let blocks = self.negotiated.sack && self.receiver.has_sack_blocks();
        if let Some(accurate) = self.ecn.accurate_mut() {
            let reserved = if blocks { RESERVED_FOR_SACK } else { 0 };
            spare = add_counters(accurate, &mut options, data > 0, [spare, reserved]);
        }
        if blocks {
            let fit = options.sack_blocks_that_fit().min(if data == 0 {
                usize::MAX
            } else {
                spare.saturating_sub(4) / 8
            });
            let isn = self.peer_isn;
            let number = |offset: u64| SeqNumber(isn.wrapping_add(offset as u32));
            for block in self.receiver.sack_blocks().take(fit) {
                let block = SackBlock {
                    left: number(block.start),
                    right: number(block.end),
                };
                if options.sack_blocks.push(block).is_err() {
                    break;
                }
            }
        }
        options
    }

    /// Timestamp option with the current value of the timestamp clock, which ticks in milliseconds
    /// (RFC 7323 §5.4).
    pub(super) fn timestamps(&self, now: Nanos) -> Timestamps {
        Timestamps {
            value: (now / MILLISECOND) as u32,
            echo_reply: self.recent_timestamp.unwrap_or(0),
        }
    }

    #[inline(never)]
    fn write_out(
        &mut self,
        header: &Header,
        path: Path,
        ecn: Ecn,
        plan: Option<&Plan>,
        out: &mut BytesMut,
    ) -> Transmit {
        let addresses = (path.local, path.remote);
        let checksum = self.config.checksum;
        let len = match plan {
            Some(plan) => header.encode(out, addresses, checksum, self.sender.data(plan)),
            None => header.encode(out, addresses, checksum, None),
        };
        Transmit {
            path,
            len,
            ecn,
            may_fragment: false,
        }
    }

    /// Schedules a RST for the peer of this connection (RFC 9293 §3.10.5).
    pub(super) fn schedule_reset(&mut self) {
        if let Some(path) = self.path {
            let mut header = self.bare_header(self.sender.flow.max, Flags::RST | Flags::ACK);
            header.acknowledgment_number = self.acknowledgment_number();
            self.reset = Some((path, header));
        }
    }

    /// Schedules a RST in response to a segment that does not belong to the connection (RFC 9293
    /// §3.10.7.1).
    pub(super) fn answer_with_reset(&mut self, path: Path, segment: &Segment) {
        let asked = &segment.header;
        let mut header = Header {
            source_port: asked.destination_port,
            destination_port: asked.source_port,
            flags: Flags::RST,
            ..Header::default()
        };
        if asked.flags.contains(Flags::ACK) {
            header.sequence_number = asked.acknowledgment_number;
        } else {
            header.flags = Flags::RST | Flags::ACK;
            header.acknowledgment_number = asked.sequence_number.add(segment.sequence_len());
        }
        self.reset = Some((path, header));
    }
}

/// Adds the AccECN option to `options`, if it fits and leaves `reserved` bytes free. A segment
/// without data may use the whole option space of the header, and a segment with data may use
/// `spare` bytes. Returns how many of the `spare` bytes remain.
#[cold]
#[inline(never)]
fn add_counters(
    accurate: &mut AccurateReceiver,
    options: &mut Options,
    has_data: bool,
    [spare, reserved]: [usize; 2],
) -> usize {
    let before = options.encoded_len();
    let all = MAX_OPTIONS - before;
    let room = if has_data { all.min(spare) } else { all };
    options.accurate_ecn = accurate.option(room.saturating_sub(reserved), has_data);
    spare.saturating_sub(options.encoded_len() - before)
}
