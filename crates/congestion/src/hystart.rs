//! HyStart++ (RFC 9406): ends the initial slow start when the delay increases, before a queue
//! overflows.

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use crate::fractional_window::FractionalWindow;
use crate::round_counter::{RoundDelays, RoundRtts};
use crate::{AckSample, WindowControl};

// Constants of RFC 9406 §4.3.
const MIN_RTT_THRESH: Nanos = 4 * MILLISECOND;
const MAX_RTT_THRESH: Nanos = 16 * MILLISECOND;
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// Conservative slow start (§4.2).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    /// Minimum round-trip time of the round in which conservative slow start began, nanoseconds.
    baseline: Nanos,
    rounds: u32,
}

/// HyStart++ for the slow start of a base. The base determines the growth per acknowledgement, so L
/// of RFC 9406 is that of the base.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    delays: RoundDelays,
    /// Round-trip times of the last round.
    last: RoundRtts,
    conservative: Option<Conservative>,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
    done: bool,
}

impl HyStart {
    /// Records that `bytes` bytes were sent.
    pub fn on_sent(&mut self, bytes: u64) {
        self.delays.on_sent(bytes);
    }

    /// Disables HyStart++ after a loss or a mark, because it applies only to the initial slow start
    /// (§4.3).
    pub fn end(&mut self) {
        self.done = true;
    }

    /// Whether HyStart has been disabled.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Processes an acknowledgement in slow start. The base has already processed it; its window
    /// before was `before` bytes.
    pub fn on_ack<B: WindowControl>(&mut self, ack: &AckSample, before: f64, base: &mut B) {
        if self.done {
            return;
        }
        let ended = self.delays.on_ack(ack);
        if self.conservative.is_some() {
            let grown = (base.cwnd_exact() - before).max(0.0);
            base.set_cwnd(before + self.fraction.earn(grown / CSS_GROWTH_DIVISOR));
        }
        match ended {
            Some(seen) => self.next_round(seen, base),
            None => self.judge(),
        }
    }

    fn next_round<B: WindowControl>(&mut self, seen: RoundRtts, base: &mut B) {
        self.last = seen;
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
            if conservative.rounds >= CSS_ROUNDS {
                base.set_ssthresh(base.cwnd_exact());
                self.done = true;
            }
        }
    }

    /// Checks whether the delay of the current round has increased, or has decreased again in
    /// conservative slow start.
    fn judge(&mut self) {
        let current = self.delays.current();
        let Some(least) = current.least.filter(|_| current.count >= N_RTT_SAMPLE) else {
            return;
        };
        match self.conservative {
            Some(conservative) if least < conservative.baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last.least else {
                    return;
                };
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if least >= last + threshold {
                    self.conservative = Some(Conservative {
                        baseline: least,
                        rounds: 0,
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
