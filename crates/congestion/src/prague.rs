//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): a variant of DCTCP for paths over the
//! Internet. The reduction of the window is proportional to the fraction of its bytes that were
//! marked. The dependence on the round-trip time is reduced: a flow with less than 25 ms grows and
//! responds like a flow with 25 ms.
//!
//! The receiver must report each mark, which is possible in two ways. The first is AccECN (RFC
//! 9768), which RFC 9331 §4.2 requires for TCP, and which the switch `accurate_ecn` enables. The
//! second is a DCTCP receiver, so that both ends must use this congestion control. Revision 04
//! (July 2024) is the latest that was found. It expired in January 2025, and no adopted draft was
//! found. Slow start, and the response to losses and timeouts, are those of the base. The draft
//! requires pacing, for which the setting `pacing` must be set.

use anabranch_transport::{Nanos, time};

use crate::algorithm::{Algorithm, Protocol, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::round_counter::RoundCounter;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `prague`. It is for TCP only, like DCTCP.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "prague",
    about: "as `dctcp`, but below 25 ms independent of the round-trip time; for L4S, with `l4s` and `pacing` (draft-briscoe-iccrg-prague-congestion-control-04)",
    only: Some(Protocol::Tcp),
    needs: Requirement::Nothing,
    properties: &[],
    make: &|base, _| Box::new(Prague::new(base)),
};

/// Weight of a new fraction in the mean of the marked fraction.
const GAIN: f64 = 1.0 / 16.0;
/// Minimum virtual round-trip time (§2.4.4), nanoseconds.
const VIRTUAL_RTT: Nanos = 25 * time::MILLISECOND;

/// Controller of Prague, with the slow start of `Base`.
#[derive(Clone, Debug)]
pub struct Prague<Base> {
    base: Base,
    rounds: RoundCounter,
    /// Mean of the marked fraction (alpha), 0 to 1; it is 1 until the first mark.
    share: f64,
    /// Whether a mark has been reported.
    marks_seen: bool,
    /// Bytes acknowledged since the last update of the mean, and the number of them that were
    /// marked.
    acked: u64,
    marked: u64,
    /// Whether a round trip has ended since the last update of the mean, and the time of that
    /// update.
    round_ended: bool,
    updated: Nanos,
    srtt: Nanos,
    /// Time of the last reduction in response to marks, nanoseconds.
    reduced: Option<Nanos>,
    fraction: FractionalWindow,
}

impl<Base: WindowControl> Prague<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base) -> Self {
        Self {
            base,
            rounds: RoundCounter::default(),
            share: 1.0,
            marks_seen: false,
            acked: 0,
            marked: 0,
            round_ended: false,
            updated: 0,
            srtt: 0,
            reduced: None,
            fraction: FractionalWindow::default(),
        }
    }

    /// Estimate of the marked fraction, 0 to 1.
    pub fn share(&self) -> f64 {
        self.share
    }

    fn virtual_rtt(&self) -> Nanos {
        self.srtt.max(VIRTUAL_RTT)
    }

    /// Updates the mean, if a round trip and a virtual round-trip time have passed since the last
    /// update.
    fn update_share(&mut self, ack: &AckSample) {
        self.acked += ack.bytes_acked;
        self.marked += ack.bytes_marked;
        self.marks_seen |= ack.marked;
        self.round_ended |= self.rounds.ended(ack);
        let due = ack.now.saturating_sub(self.updated) >= self.virtual_rtt();
        if !self.round_ended || !due || self.acked == 0 {
            return;
        }
        if self.marks_seen {
            let seen = (self.marked as f64 / self.acked as f64).min(1.0);
            self.share = (1.0 - GAIN) * self.share + GAIN * seen;
        }
        (self.acked, self.marked, self.round_ended) = (0, 0, false);
        self.updated = ack.now;
    }
}

impl<Base: WindowControl> CongestionControl for Prague<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.rounds.on_sent(bytes);
        self.base.on_sent(now, bytes, flightsize);
    }

    /// Unmarked bytes increase the window by a segment per round trip, times the square of the
    /// ratio of the round-trip time to the virtual one. Only operations are used that IEEE 754
    /// rounds correctly, so the result is the same on every platform.
    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(srtt) = ack.srtt {
            self.srtt = srtt;
        }
        self.update_share(ack);
        let slow_start = self.base.in_slow_start();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if slow_start || grown <= 0.0 {
            return;
        }
        let ratio = self.srtt as f64 / self.virtual_rtt() as f64;
        let earned = match ack.marked {
            true => 0.0,
            false => self.fraction.earn(grown * ratio * ratio),
        };
        self.base.set_cwnd(before + earned);
    }

    /// Reduces the window at most once per virtual round-trip time.
    fn on_ecn(&mut self, now: Nanos, _flightsize: u64) {
        let since = self.reduced.map(|last| now.saturating_sub(last));
        if since.is_some_and(|since| since < self.virtual_rtt()) {
            return;
        }
        self.reduced = Some(now);
        let window = self.base.cwnd_exact();
        let left = window * (1.0 - self.share / 2.0);
        self.base.reduce_to(left, LossCause::FastRetransmit);
        self.base.cap_cwnd(window);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        self.fraction.clear();
        self.base.on_loss(now, cause, flightsize);
    }

    fn counts_marks(&self) -> bool {
        true
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        ALGORITHM.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};

    const MS: Nanos = time::MILLISECOND;

    fn control() -> Prague<TcpNewReno> {
        Prague::new(TcpNewReno::new(TcpNewRenoConfig {
            segment: 1000,
            initial_window: 10.0,
            initial_ssthresh: 10.0,
            restart_window: None,
            growth: Growth::PerAck,
            halving_basis: HalvingBasis::FlightSize,
            integer_halving: false,
            cwnd_floor: true,
            whole_segments: false,
        }))
    }

    /// Runs a round of ten segments that ends at `now`, with this round-trip time. The first
    /// `marked` segments were marked.
    fn round(it: &mut Prague<TcpNewReno>, now: Nanos, rtt: Nanos, marked: usize) {
        for segment in 0..10 {
            it.on_sent(now, 1000, 10_000);
            it.on_ack(&AckSample {
                now,
                bytes_acked: 1000,
                segments_acked: 1,
                cumulative_advanced: true,
                flightsize_before: 10_000,
                flightsize_after: 9000,
                marked: segment < marked,
                bytes_marked: if segment < marked { 1000 } else { 0 },
                srtt: Some(rtt),
                ..AckSample::default()
            });
        }
    }

    /// Each of the ten acknowledgements of a round adds one segment divided by the window. The
    /// window is 10.95 segments after the first round and 11.4 on average during the second, which
    /// therefore adds 10 / 11.4 = 0.88. At 5 ms a round adds only 1/25 of 10 / 10.06, so that the
    /// five rounds of 25 ms add a fifth of a segment.
    #[test]
    fn short_round_trips_grow_as_one_of_25_ms() {
        let growth = |rtt: Nanos| {
            let mut it = control();
            round(&mut it, rtt, rtt, 0);
            let before = it.cwnd_exact();
            round(&mut it, 2 * rtt, rtt, 0);
            it.cwnd_exact() - before
        };
        for rtt in [25 * MS, 100 * MS] {
            assert!((870.0..=890.0).contains(&growth(rtt)), "{}", growth(rtt));
        }
        let short = growth(5 * MS);
        assert!((39.0..=40.0).contains(&short), "{short}");
    }

    /// Marked bytes do not increase the window.
    #[test]
    fn marked_bytes_do_not_count() {
        let mut it = control();
        round(&mut it, 50 * MS, 50 * MS, 0);
        let before = it.cwnd_exact();
        round(&mut it, 100 * MS, 50 * MS, 10);
        assert_eq!(it.cwnd_exact(), before);
    }

    /// The mean is 1 until the first mark, which therefore halves the window. After that, a new
    /// fraction has a weight of 1/16 per 25 ms, although a round trip takes 5 ms. A second report
    /// of marks within 25 ms has no effect.
    #[test]
    fn the_response_is_one_for_each_virtual_round_trip() {
        let mut it = control();
        round(&mut it, 5 * MS, 5 * MS, 0);
        assert_eq!(it.share(), 1.0);
        let before = it.cwnd_exact();
        it.on_ecn(10 * MS, 10_000);
        assert_eq!(it.cwnd_exact(), before / 2.0);
        let half = it.cwnd_exact();
        it.on_ecn(34 * MS, 5000);
        assert_eq!(it.cwnd_exact(), half);
        // In 25 ms there are five round trips, each with one mark in ten segments: a fraction of
        // 1/10, which enters the mean once.
        let updates = |it: &mut Prague<TcpNewReno>, from: Nanos| {
            let mut shares = vec![it.share()];
            for trip in 0..15 {
                round(it, from + trip * 5 * MS, 5 * MS, 1);
                shares.push(it.share());
            }
            shares.dedup();
            shares
        };
        let shares = updates(&mut it, 40 * MS);
        assert!((3..=5).contains(&shares.len()), "{shares:?}");
        let first = shares[1];
        let least = 1.0 - GAIN;
        assert!((least..least + 0.02).contains(&first), "{shares:?}");
    }
}
