//! Delayed acknowledgements as in Linux: quick at the start and after a pause, and otherwise with a
//! delay that adapts to the gaps between segments. Sources are its manual (tcp(7), ip-sysctl) and
//! Sarolahti and Kuznetsov, "Congestion Control in Linux TCP" (USENIX 2002).
//!
//! Two rules are not implemented: Linux holds acknowledgements back for up to a millisecond while
//! data is missing (`tcp_comp_sack_delay_ns`), and sends two quick acknowledgements after an ECN
//! mark.

use anabranch_transport::Nanos;

use crate::profile::MAX_ADAPTIVE_DELAY as LONGEST;

/// Maximum number of consecutive quick acknowledgements.
const MAX_QUICK_ACKS: u64 = 16;
/// Assumed data bytes of a full segment before one has arrived. Shorter segments never count as
/// full.
const MIN_FULL_SEGMENT: u64 = 536;

/// State of the adaptive rules that the module describes.
#[derive(Debug)]
pub(super) struct Adaptive {
    /// Lower bound of the delay, and its initial value.
    least: Nanos,
    /// Current delay of an acknowledgement (ato in Linux); `None` before the first data.
    ato: Option<Nanos>,
    last_arrival: Nanos,
    /// Remaining number of acknowledgements without delay.
    quick: u64,
    /// Data bytes in a full segment of the peer, as observed so far.
    full: u64,
    /// Data bytes of the last segment shorter than `full`; the peer's full segments may have this
    /// size.
    last_short: u64,
    /// Number of segments shorter than `full` since the last acknowledgement.
    small: u32,
    /// This end recently replied to the data that it received.
    answers: bool,
    srtt: Option<Nanos>,
    rto: Nanos,
}

impl Adaptive {
    pub(super) fn new(least: Nanos) -> Self {
        Self {
            least,
            ato: None,
            last_arrival: 0,
            quick: 0,
            full: MIN_FULL_SEGMENT,
            last_short: 0,
            small: 0,
            answers: false,
            srtt: None,
            rto: Nanos::MAX,
        }
    }

    pub(super) fn update_times(&mut self, srtt: Option<Nanos>, rto: Nanos) {
        (self.srtt, self.rto) = (srtt, rto);
    }

    /// Processes `length` bytes received in order, which arrived when the window was `window`
    /// bytes.
    pub(super) fn on_data(&mut self, now: Nanos, length: u64, window: u64) {
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

    /// Updates the observed size of the peer's full segments; two consecutive segments of equal
    /// size show it.
    fn measure(&mut self, length: u64) {
        let repeated = length >= MIN_FULL_SEGMENT && length == self.last_short;
        if length >= self.full || repeated {
            self.full = length;
        } else {
            self.last_short = length;
            self.small += 1;
        }
    }

    /// Allows one quick acknowledgement for each pair of segments that fits in the window, but at
    /// least 2 and at most 16.
    fn quicken(&mut self, window: u64) {
        let most = match window / (2 * self.full) {
            0 => 2,
            pairs => pairs.min(MAX_QUICK_ACKS),
        };
        self.quick = self.quick.max(most);
    }

    /// Starts quick acknowledgements, because the peer retransmits data that was already received
    /// and should learn this without delay.
    pub(super) fn begin_quick(&mut self, window: u64) {
        self.quicken(window);
        self.answers = false;
        self.ato = Some(self.least);
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.answers
    }

    pub(super) fn full_segment(&self) -> u64 {
        self.full
    }

    /// Whether an acknowledgement is due as soon as the received small segments are read. A single
    /// small segment waits while this end replies to requests; two small segments never wait.
    pub(super) fn answers_small(&self) -> bool {
        self.small > 1 || self.small == 1 && !self.answers
    }

    /// Current acknowledgement delay.
    pub(super) fn delay(&self) -> Nanos {
        let ato = self.ato.unwrap_or(self.least);
        if ato <= self.least {
            return ato;
        }
        let most = self.srtt.map_or(LONGEST, |srtt| srtt.max(self.least));
        ato.min(most).min(LONGEST)
    }

    pub(super) fn on_acknowledged(&mut self) {
        self.small = 0;
        if self.quick > 0 {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = Some(self.least);
            }
        }
    }

    /// Records that data is sent. Data sent soon after data was received counts as a reply.
    pub(super) fn on_data_sent(&mut self, now: Nanos) {
        if self.ato.is_some_and(|ato| now - self.last_arrival < ato) {
            self.answers = true;
        }
    }

    /// Handles an expired delay. If this end was expected to reply, it no longer is. Otherwise no
    /// second segment arrived within the delay, so the delay is doubled.
    pub(super) fn on_timeout(&mut self) {
        let ato = self.ato.unwrap_or(self.least);
        self.ato = Some(match std::mem::take(&mut self.answers) {
            true => self.least,
            false => ato.saturating_mul(2).min(self.rto),
        });
    }
}
