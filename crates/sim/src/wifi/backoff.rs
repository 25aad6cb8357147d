//! Backoff of a station: number of idle slots left, and the contention window of the next draw.

use anabranch_transport::Nanos;
use rand_core::RngCore;
use rand_pcg::Pcg32;

use super::frame::StationId;
use super::parameters::{BackoffRange, Parameters};

/// Contention window and backoff counter (IEEE 802.11-1999 §9.2.4, §9.2.5.2).
///
/// Slots are not simulated one by one: the start of counting is recorded while the medium is idle,
/// and the elapsed slots are computed when a carrier interrupts the count.
#[derive(Clone, Debug)]
pub(super) struct Backoff {
    window: u32,
    slots: u32,
    drawn: bool,
    counting_from: Option<Nanos>,
    rng: Pcg32,
}

/// Effect of a carrier on the backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupted {
    /// The last slot ends before the station can detect the carrier, so that it transmits.
    TooLate,
    /// The count is frozen.
    Frozen,
    /// No slots were being counted.
    Idle,
}

impl Backoff {
    pub(super) fn new(parameters: &Parameters, rng: Pcg32) -> Self {
        Self {
            window: parameters.cw_min,
            slots: 0,
            drawn: false,
            counting_from: None,
            rng,
        }
    }

    /// Whether a drawn backoff has not expired at `now`.
    pub(super) fn in_progress(&self, now: Nanos, parameters: &Parameters) -> bool {
        self.drawn
            && self
                .counting_from
                .is_none_or(|from| from + self.span(parameters) > now)
    }

    /// Whether a backoff was drawn that no transmission has used.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// Whether slots are being counted, or will be from a known time.
    pub(super) fn is_counting(&self) -> bool {
        self.counting_from.is_some()
    }

    /// Draws a new backoff; counting starts with [`count_from`](Self::count_from).
    pub(super) fn draw(&mut self, parameters: &Parameters) {
        let choices = match parameters.backoff_range {
            BackoffRange::ThroughWindow => self.window + 1,
            BackoffRange::BelowWindow => self.window,
        };
        self.slots = below(&mut self.rng, choices);
        self.drawn = true;
        self.counting_from = None;
    }

    /// Discards the backoff.
    pub(super) fn clear(&mut self) {
        self.slots = 0;
        self.drawn = false;
        self.counting_from = None;
    }

    /// Stops counting, so that it can be started again.
    pub(super) fn stop(&mut self) {
        self.counting_from = None;
    }

    /// The medium is idle: slots are counted from `from` on, unless counting has already started.
    /// Returns the end of the last slot.
    pub(super) fn count_from(&mut self, from: Nanos, parameters: &Parameters) -> Nanos {
        *self.counting_from.get_or_insert(from) + self.span(parameters)
    }

    /// A carrier begins at `now`, at a station that has (`pending`) or does not have a frame to
    /// transmit.
    pub(super) fn interrupt(
        &mut self,
        now: Nanos,
        pending: bool,
        parameters: &Parameters,
    ) -> Interrupted {
        let Some(from) = self.counting_from else {
            return Interrupted::Idle;
        };
        let noticed = now + parameters.cca_time;
        let over = from + self.span(parameters) <= noticed;
        if over && pending {
            return Interrupted::TooLate;
        }
        if over {
            self.clear();
        } else {
            self.slots -= (noticed.saturating_sub(from) / parameters.slot) as u32;
            self.counting_from = None;
        }
        Interrupted::Frozen
    }

    /// An attempt failed: doubles the window, up to `cw_max`.
    pub(super) fn widen(&mut self, parameters: &Parameters) {
        self.window = (self.window * 2 + 1).min(parameters.cw_max);
    }

    /// A packet was delivered or dropped: resets the window to `cw_min`.
    pub(super) fn reset(&mut self, parameters: &Parameters) {
        self.window = parameters.cw_min;
    }

    fn span(&self, parameters: &Parameters) -> Nanos {
        u64::from(self.slots) * parameters.slot
    }
}

/// Random stream of the backoffs of `station`. State and increment are both scattered, because
/// generators whose increments differ by little are shifted copies of one sequence, and stations
/// would draw the same values.
pub(super) fn backoff_stream(seed: u64, station: StationId) -> Pcg32 {
    // SplitMix64.
    let scatter = |value: u64| {
        let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    let state = scatter(scatter(seed) ^ u64::from(station.0));
    Pcg32::new(state, scatter(state))
}

/// Uniform integer from 0 to `bound - 1`; `bound` must not be 0.
fn below(rng: &mut Pcg32, bound: u32) -> u32 {
    // Lemire's multiplication; the few low products that would favour some results are rejected.
    let unfair = bound.wrapping_neg() % bound;
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        if product as u32 >= unfair {
            return (product >> 32) as u32;
        }
    }
}
