//! SACK timing: after every second packet, after a delay, or immediately (RFC 9260 §6.2, §6.7).

use anabranch_transport::Nanos;

use crate::compact_option::OptionalNanos;
use crate::config::Config;

/// Decides when a SACK is due.
#[derive(Debug, Default)]
pub(super) struct SackPolicy {
    /// Number of packets with DATA per SACK; 1 if SACKs are not delayed.
    frequency: u32,
    delay: Nanos,
    due: bool,
    deadline: OptionalNanos,
    /// Number of packets with DATA since the last SACK.
    packets: u32,
    /// Whether the current packet contains DATA (`saw_data`), and whether this DATA must be
    /// acknowledged immediately (`at_once`).
    saw_data: bool,
    at_once: bool,
    /// Whether the current packet contains duplicate DATA, or DATA after the very first chunk, and
    /// the profile does not restart the count for such packets.
    repeated: bool,
    /// Whether the current packet starts with the very first DATA, and the profile counts the other
    /// chunks in it.
    began: bool,
    /// Whether the very first DATA is the only chunk in the packet so far.
    first_alone: bool,
    duplicates_reset: bool,
    /// Whether a gap causes an immediate SACK even if a later chunk of the same packet fills it.
    gaps_by_chunk: bool,
    /// Whether a gap causes an immediate SACK.
    gaps_at_once: bool,
    /// Whether a chunk that fills the last gap causes an immediate SACK.
    filled_at_once: bool,
}

impl SackPolicy {
    #[inline(always)]
    pub fn new(config: &Config) -> Self {
        let gaps_at_once = !(config.cmt && config.cmt_delayed_ack);
        Self {
            frequency: if config.delayed_sack {
                config.sack_frequency
            } else {
                1
            },
            delay: config.sack_delay,
            duplicates_reset: config.profile.duplicates_reset_delayed_sack,
            gaps_by_chunk: gaps_at_once && !config.profile.duplicates_reset_delayed_sack,
            gaps_at_once,
            filled_at_once: gaps_at_once && config.profile.sack_when_gap_fills,
            ..Self::default()
        }
    }

    /// Applies new SACK settings. A pending SACK is not delayed further.
    pub fn set(&mut self, config: &Config) {
        let new = Self::new(config);
        (self.frequency, self.delay) = (new.frequency, new.delay);
        self.due |= self.packets >= self.frequency;
    }

    /// Records that the current packet contains DATA to be acknowledged.
    pub fn saw_data(&mut self) {
        self.saw_data = true;
        self.first_alone = false;
        self.repeated |= self.began;
    }

    /// Records that the current packet contains the very first DATA, which is acknowledged
    /// immediately (RFC 9260 §5.1).
    pub fn saw_first(&mut self) {
        let alone = !self.saw_data;
        self.at_once();
        self.began = !self.duplicates_reset;
        self.first_alone = self.began && alone;
    }

    /// Requests a SACK at the end of the current packet.
    pub fn at_once(&mut self) {
        self.saw_data = true;
        self.first_alone = false;
        self.at_once = true;
    }

    /// Records that the current packet contains duplicate DATA (RFC 9260 §6.2). ns-2.35
    /// acknowledges the very first DATA (`first`) whenever it arrives, and never counts it.
    pub fn saw_duplicate(&mut self, first: bool) {
        if first && !self.duplicates_reset {
            return self.saw_first();
        }
        self.at_once();
        self.repeated = !self.duplicates_reset;
    }

    /// Records a gap after a chunk of the current packet; a later chunk of the packet may fill it.
    pub fn saw_gap(&mut self) {
        self.at_once |= self.gaps_by_chunk;
    }

    /// Ends the current packet: decides whether a SACK is due, or delayed.
    pub fn packet_end(&mut self, now: Nanos, has_gaps: bool) {
        if !std::mem::take(&mut self.saw_data) {
            return;
        }
        let at_once = std::mem::take(&mut self.at_once);
        let has_gaps = has_gaps && self.gaps_at_once;
        let uncounted = std::mem::take(&mut self.first_alone);
        self.packets += u32::from(!uncounted);
        self.repeated |= uncounted;
        self.repeated &= !has_gaps && self.packets < self.frequency;
        self.due |= at_once || has_gaps || self.packets >= self.frequency;
        let waits = self.packets > 0 && (!self.due || self.repeated);
        if waits && self.deadline.is_none() {
            self.deadline = OptionalNanos::some(now + self.delay);
        }
    }

    /// Requests a SACK because the receiver window has opened.
    pub fn demand(&mut self) {
        self.due = true;
    }

    /// Handles the end of the delay at `now`.
    pub fn handle_timer(&mut self, now: Nanos) {
        if self.deadline.has_come(now) {
            self.due = true;
        }
    }

    /// Whether a packet that fills the last gap is acknowledged immediately.
    pub fn answers_filled_gaps(&self) -> bool {
        self.filled_at_once
    }

    /// Number of packets that a SACK sent now acknowledges, for the flags of the SACK; `None` if
    /// SACKs do not report this number.
    pub fn packets_to_report(&self) -> Option<u32> {
        (!self.gaps_at_once).then_some(self.packets)
    }

    pub fn due(&self) -> bool {
        self.due
    }

    /// Whether received data is not acknowledged yet, so that a SACK may be bundled with another
    /// packet.
    pub fn waiting(&self) -> bool {
        self.due || self.packets > 0
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline.get().filter(|_| !self.due)
    }

    /// Records that a SACK was sent.
    pub fn sent(&mut self) {
        self.due = false;
        self.began = false;
        if !std::mem::take(&mut self.repeated) {
            self.deadline = OptionalNanos::NONE;
            self.packets = 0;
        }
    }
}
