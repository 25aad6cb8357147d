//! When to acknowledge: every second packet, after a delay, or at once (RFC 9260 §6.2, §6.7).

use anabranch_transport::Nanos;

use crate::config::Config;
use crate::maybe::Maybe;

/// Decides when a SACK is due.
#[derive(Debug)]
pub(super) struct SackPolicy {
    /// Packets with DATA that a SACK waits for; 1 where none is delayed.
    frequency: u32,
    delay: Nanos,
    due: bool,
    deadline: Maybe,
    /// Packets with DATA since the last SACK.
    packets: u32,
    /// The packet at hand held DATA, or DATA that must be answered at once.
    saw_data: bool,
    at_once: bool,
    /// The packet at hand repeats DATA, or holds more than the first, and the profile does not let that start the count anew.
    repeated: bool,
    /// The packet at hand began with the first DATA, and the profile counts what else it holds.
    began: bool,
    /// And it holds nothing else so far.
    first_alone: bool,
    duplicates_reset: bool,
    /// A gap that a later chunk of its packet fills is one, too.
    gaps_by_chunk: bool,
    /// A gap is answered at once.
    gaps_at_once: bool,
    /// And so is what fills the last one.
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
            due: false,
            deadline: Maybe::NONE,
            packets: 0,
            saw_data: false,
            at_once: false,
            repeated: false,
            began: false,
            first_alone: false,
            duplicates_reset: config.profile.duplicates_reset_delayed_sack,
            gaps_by_chunk: gaps_at_once && !config.profile.duplicates_reset_delayed_sack,
            gaps_at_once,
            filled_at_once: gaps_at_once && config.profile.sack_when_gap_fills,
        }
    }

    /// SACKs are to be sent by other settings. What waits is not put off.
    pub fn set(&mut self, config: &Config) {
        let new = Self::new(config);
        (self.frequency, self.delay) = (new.frequency, new.delay);
        self.due |= self.packets >= self.frequency;
    }

    /// The packet at hand holds DATA that a SACK will answer.
    pub fn saw_data(&mut self) {
        self.saw_data = true;
        self.first_alone = false;
        self.repeated |= self.began;
    }

    /// The packet at hand holds the first DATA, which is answered at once (RFC 9260 §5.1).
    pub fn saw_first(&mut self) {
        let alone = !self.saw_data;
        self.at_once();
        self.began = !self.duplicates_reset;
        self.first_alone = self.began && alone;
    }

    /// A SACK must go with the end of the packet at hand.
    pub fn at_once(&mut self) {
        self.saw_data = true;
        self.first_alone = false;
        self.at_once = true;
    }

    /// The packet at hand holds DATA that had arrived before (RFC 9260 §6.2). ns-2.35 answers the `first` DATA whenever it comes, and
    /// never counts it.
    pub fn saw_duplicate(&mut self, first: bool) {
        if first && !self.duplicates_reset {
            return self.saw_first();
        }
        self.at_once();
        self.repeated = !self.duplicates_reset;
    }

    /// There is a gap behind a chunk of the packet at hand; another chunk may fill it.
    pub fn saw_gap(&mut self) {
        self.at_once |= self.gaps_by_chunk;
    }

    /// The packet at hand has been read.
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
            self.deadline = Maybe::some(now + self.delay);
        }
    }

    /// A SACK is due for another reason: the window opened.
    pub fn demand(&mut self) {
        self.due = true;
    }

    /// The delay is over at `now`, if it is.
    pub fn handle_timer(&mut self, now: Nanos) {
        if self.deadline.has_come(now) {
            self.due = true;
        }
    }

    /// Whether a packet that fills the last gap is answered at once.
    pub fn answers_filled_gaps(&self) -> bool {
        self.filled_at_once
    }

    /// Packets that a SACK answers now; `None` where SACKs do not say.
    pub fn packets_to_tell(&self) -> Option<u32> {
        (!self.gaps_at_once).then_some(self.packets)
    }

    pub fn due(&self) -> bool {
        self.due
    }

    /// Whether data waits for an acknowledgement, due or not: it may ride on a packet that goes anyway.
    pub fn waiting(&self) -> bool {
        self.due || self.packets > 0
    }

    pub fn deadline(&self) -> Option<Nanos> {
        self.deadline.get().filter(|_| !self.due)
    }

    /// A SACK went.
    pub fn sent(&mut self) {
        self.due = false;
        self.began = false;
        if !std::mem::take(&mut self.repeated) {
            self.deadline = Maybe::NONE;
            self.packets = 0;
        }
    }
}
