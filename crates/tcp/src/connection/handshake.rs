//! Connection establishment: SYN, SYN-ACK, and negotiation of options (RFC 9293 §3.5, §3.10.7.2,
//! §3.10.7.3).

use anabranch_transport::{Ecn, Nanos, Path};
use anabranch_wire::tcp::{Flags, Header, Options, Segment};

use super::ecn::EcnSupport;
use super::{Connection, Negotiated, SegmentForm};
use crate::event::{Event, Failure};
use crate::state::State;
use crate::tx::Settled;

/// Segment size assumed if the SYN of the peer has no MSS option: 536 bytes, the value for IPv4
/// (RFC 9293 §3.7.1).
const DEFAULT_MSS: u16 = 536;
/// Largest window shift (RFC 7323 §2.3).
const MAX_SHIFT: u8 = 14;

impl Connection {
    /// Smallest window shift with which the whole receive buffer can be advertised.
    fn shift_for_buffer(&self) -> u8 {
        let buffer = self.config.receive_bytes();
        (0..MAX_SHIFT)
            .find(|shift| buffer >> shift <= u64::from(u16::MAX))
            .unwrap_or(MAX_SHIFT)
    }

    /// ECN variant that this end supports.
    pub(super) fn ecn_support(&self) -> EcnSupport {
        match (self.config.profile.ecn, self.config.profile.accurate_ecn) {
            (false, _) => EcnSupport::None,
            (true, false) => EcnSupport::Classic,
            (true, true) => EcnSupport::Accurate,
        }
    }

    /// Options of the SYN of this end. A SYN-ACK carries only those options that the SYN of the
    /// peer carried.
    pub(super) fn syn_options(&mut self, now: Nanos) -> Options {
        let profile = &self.config.profile;
        let answer = self.state == State::SynReceived;
        let scale = if answer {
            self.negotiated.scaled
        } else {
            profile.window_scale
        };
        let stamp = if answer {
            self.negotiated.timestamps
        } else {
            profile.timestamps
        };
        Options {
            maximum_segment_size: Some(self.config.mss),
            window_scale: scale.then(|| self.shift_for_buffer()),
            sack_permitted: if answer {
                self.negotiated.sack
            } else {
                profile.sack
            },
            timestamps: stamp.then(|| self.timestamps(now)),
            accurate_ecn: answer
                .then(|| self.ecn.accurate_mut()?.syn_ack_option())
                .flatten(),
            ..Options::default()
        }
    }

    /// Processes the options of the peer's SYN or SYN-ACK, whose packet had the ECN field `ecn`.
    fn synchronize(&mut self, ecn: Ecn, header: &Header) {
        let support = self.ecn_support();
        self.ecn.on_syn(header.flags, ecn, support);
        let (profile, options) = (&self.config.profile, &header.options);
        let scaled = profile.window_scale && options.window_scale.is_some();
        let timestamps = profile.timestamps && options.timestamps.is_some();
        self.negotiated = Negotiated {
            sack: profile.sack && options.sack_permitted,
            timestamps,
            form: if self.ecn.accurate_mut().is_some() {
                SegmentForm::Variable
            } else if timestamps {
                SegmentForm::Timestamps
            } else {
                SegmentForm::Plain
            },
            scaled,
            local_shift: if scaled { self.shift_for_buffer() } else { 0 },
            peer_shift: if scaled {
                options.window_scale.unwrap_or(0).min(MAX_SHIFT)
            } else {
                0
            },
            mss: options
                .maximum_segment_size
                .unwrap_or(DEFAULT_MSS)
                .clamp(1, self.config.mss.max(1)),
        };
        self.peer_isn = header.sequence_number.0;
        self.recent_timestamp = options.timestamps.map(|timestamps| timestamps.value);
        self.receiver.synchronize();
        let largest = u64::from(u16::MAX) << self.negotiated.local_shift;
        self.receiver.settle(self.full_segment(), largest);
    }

    /// Number of data bytes in a full segment. Timestamps reduce it, because they need 12 bytes of
    /// each segment (RFC 6691 §2).
    fn full_segment(&self) -> u64 {
        let stamp_length = if self.negotiated.timestamps { 12 } else { 0 };
        let mss = u64::from(self.negotiated.mss);
        mss.saturating_sub(stamp_length).max(1)
    }

    /// Completes the handshake. `window` is the window of the peer in bytes; it is not scaled if it
    /// was advertised in a SYN.
    pub(super) fn establish(&mut self, now: Nanos, window: u64) {
        let settled = Settled {
            mss: self.full_segment(),
            sack: self.negotiated.sack,
            timestamps: self.negotiated.timestamps,
            ecn: self.ecn.settled(),
            window,
            syn_lost: self.syns_sent > 1,
        };
        self.sender.establish(now, &settled, &mut self.trace);
        if settled.ecn.syn_marked {
            let window = self.sender.flow.control.cwnd();
            self.sender
                .answer_marks(now, window, &mut self.stats, &mut self.trace);
        }
        self.syn_owed = false;
        self.state = if self.sender.is_closing() {
            State::FinWait1
        } else {
            State::Established
        };
        self.events.push_back(Event::Connected);
    }

    /// Processes a segment in LISTEN (RFC 9293 §3.10.7.2).
    pub(super) fn receive_in_listen(&mut self, path: Path, ecn: Ecn, segment: &Segment) {
        let header = &segment.header;
        if header.flags.contains(Flags::RST) {
            return;
        }
        if header.flags.contains(Flags::ACK) || !header.flags.contains(Flags::SYN) {
            self.stats.dropped.suspicious += 1;
            if header.flags.contains(Flags::ACK) {
                self.answer_with_reset(path, segment);
            }
            return;
        }
        self.path = Some(path);
        self.ports.remote = header.source_port;
        self.synchronize(ecn, header);
        self.state = State::SynReceived;
        self.syn_owed = true;
    }

    /// Processes a segment in SYN-SENT (RFC 9293 §3.10.7.3). Data in a SYN is ignored, because the
    /// peer retransmits it.
    pub(super) fn receive_in_syn_sent(
        &mut self,
        now: Nanos,
        path: Path,
        ecn: Ecn,
        segment: &Segment,
    ) {
        let header = &segment.header;
        let flags = header.flags;
        let acknowledges = flags.contains(Flags::ACK);
        if acknowledges && header.acknowledgment_number.0 != self.isn.wrapping_add(1) {
            self.stats.dropped.bad_acknowledgement += 1;
            if !flags.contains(Flags::RST) {
                self.answer_with_reset(path, segment);
            }
            return;
        }
        if flags.contains(Flags::RST) {
            if acknowledges && self.ecn.retries_without() {
                self.syn_owed = true;
            } else if acknowledges {
                self.fail(Failure::Refused);
            }
            return;
        }
        if !flags.contains(Flags::SYN) {
            self.stats.dropped.suspicious += 1;
            return;
        }
        self.synchronize(ecn, header);
        if acknowledges {
            self.window_from = (0, 1);
            self.establish(now, u64::from(header.window));
            self.receiver.acks_mut().demand();
            if self.ecn.accurate_mut().is_some() {
                self.early_ack = Some(self.handshake_ack(now));
            }
        } else {
            // Simultaneous open (RFC 9293 §3.5, figure 8).
            self.state = State::SynReceived;
            self.syn_owed = true;
        }
    }

    /// Handles the retransmission timer of a SYN or SYN-ACK.
    pub(super) fn syn_timeout(&mut self, now: Nanos) {
        if !self.sender.retransmission_due(now) {
            return;
        }
        if self.sender.syn_timeout() {
            self.fail(Failure::TimedOut);
        } else {
            self.syn_owed = true;
        }
    }
}
