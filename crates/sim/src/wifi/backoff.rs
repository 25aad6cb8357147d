//! Backoff of a station: the number of idle slots left, and the contention window for the next
//! draw.

use anabranch_transport::Nanos;
use rand_core::RngCore;
use rand_pcg::Pcg32;

use super::frame::StationId;
use super::parameters::{BackoffRange, WifiParameters};

/// Contention window and backoff counter (IEEE 802.11-1999 §9.2.4, §9.2.5.2).
///
/// Slots are not simulated individually: the time at which counting starts is recorded, and the
/// elapsed slots are computed when a carrier interrupts the count.
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
    /// The last slot ends before the station can detect the carrier, so the station transmits.
    TooLate,
    /// The count is frozen until the medium is idle again.
    Frozen,
    /// No slots were being counted.
    Idle,
}

impl Backoff {
    pub(super) fn new(parameters: &WifiParameters, rng: Pcg32) -> Self {
        Self {
            window: parameters.cw_min,
            slots: 0,
            drawn: false,
            counting_from: None,
            rng,
        }
    }

    /// Whether a backoff was drawn whose slots have not elapsed at `now`.
    pub(super) fn in_progress(&self, now: Nanos, parameters: &WifiParameters) -> bool {
        self.drawn
            && self
                .counting_from
                .is_none_or(|from| from + self.span(parameters) > now)
    }

    /// Whether a backoff was drawn that has not yet been followed by a transmission.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn
    }

    /// Whether the time is known from which slots are counted.
    pub(super) fn is_counting(&self) -> bool {
        self.counting_from.is_some()
    }

    /// Draws a new backoff; counting starts with [`count_from`](Self::count_from).
    pub(super) fn draw(&mut self, parameters: &WifiParameters) {
        let choices = match parameters.backoff_range {
            BackoffRange::ThroughWindow => self.window + 1,
            BackoffRange::BelowWindow => self.window,
        };
        self.slots = below(&mut self.rng, choices);
        self.drawn = true;
        self.counting_from = None;
    }

    /// Discards the drawn backoff.
    pub(super) fn clear(&mut self) {
        self.slots = 0;
        self.drawn = false;
        self.counting_from = None;
    }

    /// Stops the counting of slots, so that [`Self::count_from`] can start it again.
    pub(super) fn stop(&mut self) {
        self.counting_from = None;
    }

    /// Counts slots from `from` on, because the medium is idle, unless counting has already
    /// started. Returns the time at which the last slot ends.
    pub(super) fn count_from(&mut self, from: Nanos, parameters: &WifiParameters) -> Nanos {
        *self.counting_from.get_or_insert(from) + self.span(parameters)
    }

    /// Handles a carrier that begins at `now`. `pending`: the station has a frame to transmit.
    pub(super) fn interrupt(
        &mut self,
        now: Nanos,
        pending: bool,
        parameters: &WifiParameters,
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

    /// Doubles the contention window after a failed attempt, up to `cw_max`.
    pub(super) fn widen(&mut self, parameters: &WifiParameters) {
        self.window = (self.window * 2 + 1).min(parameters.cw_max);
    }

    /// Resets the contention window to `cw_min`, because a packet was delivered or dropped.
    pub(super) fn reset(&mut self, parameters: &WifiParameters) {
        self.window = parameters.cw_min;
    }

    fn span(&self, parameters: &WifiParameters) -> Nanos {
        u64::from(self.slots) * parameters.slot
    }
}

/// Random stream of the backoffs of `station`. State and increment of the generator are both
/// hashed, because generators whose increments differ by little produce shifted copies of one
/// sequence, and stations would then draw the same values.
pub(super) fn backoff_stream(seed: u64, station: StationId) -> Pcg32 {
    // Output function of SplitMix64.
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
    // Lemire's multiplication method; the few low products that would bias the result are rejected.
    let unfair = bound.wrapping_neg() % bound;
    loop {
        let product = u64::from(rng.next_u32()) * u64::from(bound);
        if product as u32 >= unfair {
            return (product >> 32) as u32;
        }
    }
}
