//! Delayed acknowledgements as Linux has them, by its manual (tcp(7), ip-sysctl) and by Sarolahti and Kuznetsov, "Congestion Control in Linux TCP"
//! (USENIX 2002): quick at the beginning and after a pause, then delayed by a time that follows the gaps between segments.
//!
//! Not done: acknowledgements that are held back for up to a millisecond while text is missing (`tcp_comp_sack_delay_ns`), and two quick ones after a mark (ECN).

use anabranch_transport::Nanos;

use crate::profile::LONGEST_ADAPTED as LONGEST;

/// The most quick acknowledgements in a row.
const MOST_QUICK: u64 = 16;
/// Bytes of text that a full segment has before one has come; shorter ones are never taken for full.
const LEAST_FULL: u64 = 536;

/// See the module.
#[derive(Debug)]
pub(super) struct Adaptive {
    /// The shortest delay.
    least: Nanos,
    /// How long an acknowledgement is delayed; none before the first text.
    ato: Option<Nanos>,
    last_arrival: Nanos,
    /// Acknowledgements that are not delayed.
    quick: u64,
    /// Bytes of text in the peer's full segments, as far as seen.
    full: u64,
    /// The last segment that had less, but could be a full one.
    last_short: u64,
    /// Segments with less since the last acknowledgement.
    small: u32,
    /// This end answers what it receives.
    answers: bool,
    srtt: Option<Nanos>,
    rto: Nanos,
}

impl Adaptive {
    pub fn new(least: Nanos) -> Self {
        Self {
            least,
            ato: None,
            last_arrival: 0,
            quick: 0,
            full: LEAST_FULL,
            last_short: 0,
            small: 0,
            answers: false,
            srtt: None,
            rto: Nanos::MAX,
        }
    }

    pub fn hear_times(&mut self, srtt: Option<Nanos>, rto: Nanos) {
        (self.srtt, self.rto) = (srtt, rto);
    }

    /// Text of `length` bytes came in order, while the window was `window` bytes.
    pub fn on_text(&mut self, now: Nanos, length: u64, window: u64) {
        self.measure(length);
        let gap = now - self.last_arrival;
        match self.ato {
            None => {
                self.ato = Some(self.least);
                self.quicken(window);
            }
            Some(ato) if gap <= self.least / 2 => self.ato = Some(ato / 2 + self.least / 2),
            Some(ato) if gap < ato => self.ato = Some((ato / 2 + gap).min(self.rto)),
            Some(_) if gap > self.rto => self.quicken(window),
            Some(_) => {}
        }
        self.last_arrival = now;
    }

    /// Two segments of one size in a row show that the peer's full ones have it.
    fn measure(&mut self, length: u64) {
        let repeated = length >= LEAST_FULL && length == self.last_short;
        if length >= self.full || repeated {
            self.full = length;
        } else {
            self.last_short = length;
            self.small += 1;
        }
    }

    /// One quick acknowledgement for each second segment that the window takes.
    fn quicken(&mut self, window: u64) {
        let most = match window / (2 * self.full) {
            0 => 2,
            pairs => pairs.min(MOST_QUICK),
        };
        self.quick = self.quick.max(most);
    }

    /// The peer sends what is here: it needs to know soon.
    pub fn begin_quick(&mut self, window: u64) {
        self.quicken(window);
        self.answers = false;
        self.ato = Some(self.least);
    }

    pub fn is_quick(&self) -> bool {
        self.quick > 0 && !self.answers
    }

    pub fn full_segment(&self) -> u64 {
        self.full
    }

    /// Small segments are acknowledged once they are read, while this end does not answer; two of them always.
    pub fn answers_small(&self) -> bool {
        self.small > 1 || self.small == 1 && !self.answers
    }

    /// What an acknowledgement is delayed by now.
    pub fn delay(&self) -> Nanos {
        let ato = self.ato.unwrap_or(self.least);
        if ato <= self.least {
            return ato;
        }
        let most = self.srtt.map_or(LONGEST, |srtt| srtt.max(self.least));
        ato.min(most).min(LONGEST)
    }

    pub fn on_acknowledged(&mut self) {
        self.small = 0;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = Some(self.least);
            }
        }
    }

    /// Text that goes soon after text came is an answer.
    pub fn on_text_sent(&mut self, now: Nanos) {
        if self.ato.is_some_and(|ato| now - self.last_arrival < ato) {
            self.answers = true;
        }
    }

    /// The delay has passed. Where an answer was expected, it is no more; else the delay was too short for a second segment.
    pub fn on_timeout(&mut self) {
        let ato = self.ato.unwrap_or(self.least);
        self.ato = Some(match std::mem::take(&mut self.answers) {
            true => self.least,
            false => ato.saturating_mul(2).min(self.rto),
        });
    }
}
