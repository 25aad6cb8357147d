//! Binomial congestion control (D. Bansal and H. Balakrishnan, "Binomial Congestion Control
//! Algorithms", INFOCOM 2001). A window of `w` units grows by `alpha / w^k` per round trip without
//! loss, and is reduced by `beta w^l` at a loss.
//!
//! With `k + l = 1` and a suitable `alpha` the algorithm is TCP-friendly. `k = 0, l = 1` is the
//! rule of TCP; `k = l = 1/2` is named SQRT, and `k = 1, l = 0` IIAD. Slow start, the loss window
//! after a timeout, and the conditions for growth are those of the base.

use anabranch_settings::{Datum, Kind, SettingValue};
use anabranch_transport::Nanos;
use thiserror::Error;

use crate::algorithm::{Algorithm, Property, Requirement};
use crate::fractional_window::FractionalWindow;
use crate::{AckSample, CongestionControl, LossCause, WindowControl};

/// Declaration of the algorithm `binomial`.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "binomial",
    about: "cwnd grows by alpha/cwnd^k per round trip and falls by beta cwnd^l at a loss (Bansal and Balakrishnan 2001)",
    only: None,
    needs: Requirement::Nothing,
    properties: &[Property::OwnFloor],
    make: &|base, numbers| Box::new(Binomial::new(base, numbers.get())),
};

/// An exponent that is a multiple of 1/2. Such powers need only the square root, which is exact to
/// the last bit on every machine. With other powers the result of a run would depend on the
/// mathematics library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exponent {
    halves: i8,
}

impl Exponent {
    /// The exponent 1/2: the square root.
    pub const HALF: Self = Self { halves: 1 };
    /// Description of the allowed exponents, for messages.
    pub const ALLOWED: &'static str = "a multiple of 0.5 from -1 to 4";

    /// Creates the exponent `halves` / 2; `None` if `halves` is outside -2..=8.
    pub const fn from_halves(halves: i8) -> Option<Self> {
        match halves {
            -2..=8 => Some(Self { halves }),
            _ => None,
        }
    }

    /// Creates an exponent; `None` if the value is not allowed.
    pub fn from_value(value: f64) -> Option<Self> {
        let halves = value * 2.0;
        // The cast saturates, and turns NaN into 0, so the comparison also rejects NaN.
        (f64::from(halves as i8) == halves)
            .then(|| Self::from_halves(halves as i8))
            .flatten()
    }

    /// The value of the exponent.
    pub fn value(self) -> f64 {
        f64::from(self.halves) / 2.0
    }

    /// `base` to the power of this exponent.
    fn power(self, base: f64) -> f64 {
        let size = self.halves.unsigned_abs();
        let mut power = if size % 2 == 1 { base.sqrt() } else { 1.0 };
        for _ in 0..size / 2 {
            power *= base;
        }
        if self.halves < 0 { 1.0 / power } else { power }
    }
}

impl SettingValue for Exponent {
    const KIND: Kind = Kind::Number {
        least: -1.0,
        most: 4.0,
        above: false,
        step: 0.5,
    };

    fn from_datum(datum: &Datum) -> Option<Self> {
        Self::from_value(datum.number()?)
    }

    fn to_datum(&self) -> Datum {
        Datum::Real(self.value())
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        self.value().plainly_fits(kind)
    }
}

/// Parameters of [`Binomial`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BinomialParameters {
    k: Exponent,
    l: Exponent,
    alpha: f64,
    beta: f64,
}

/// Reason why parameters are invalid.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum BinomialError {
    /// `k` or `l` is not an allowed exponent.
    #[error("{name} = {found} is not {allowed}", allowed = Exponent::ALLOWED)]
    Exponent {
        /// Name of the parameter: `k` or `l`.
        name: &'static str,
        /// Value of the parameter.
        found: f64,
    },
    /// `alpha` or `beta` is out of range.
    #[error("{name} = {found} is not above 0 and at most {most}")]
    Factor {
        /// Name of the parameter: `alpha` or `beta`.
        name: &'static str,
        /// Value of the parameter.
        found: f64,
        /// Maximum value.
        most: f64,
    },
}

impl Default for BinomialParameters {
    /// [`BinomialParameters::SQRT`].
    fn default() -> Self {
        Self::SQRT
    }
}

impl BinomialParameters {
    /// `k = l = 1/2`, alpha 1, beta 1/2.
    pub const SQRT: Self = Self {
        k: Exponent { halves: 1 },
        l: Exponent { halves: 1 },
        alpha: 1.0,
        beta: 0.5,
    };
    /// `k = 1, l = 0`, alpha 1, beta 1/2: inverse increase, additive decrease.
    pub const IIAD: Self = Self {
        k: Exponent { halves: 2 },
        l: Exponent { halves: 0 },
        ..Self::SQRT
    };
    /// `k = 0, l = 1`, alpha 1, beta 1/2: additive increase, multiplicative decrease, which is the
    /// rule of TCP.
    pub const AIMD: Self = Self {
        k: Exponent { halves: 0 },
        l: Exponent { halves: 2 },
        ..Self::SQRT
    };

    /// Creates parameters that satisfy the conditions of [`Self::new`].
    pub const fn of(k: Exponent, l: Exponent, alpha: f64, beta: f64) -> Self {
        Self { k, l, alpha, beta }
    }

    /// Checks and creates parameters.
    ///
    /// # Errors
    /// `k` or `l` is not [allowed](Exponent::ALLOWED), `alpha` is not above 0 and at most 1000, or
    /// `beta` is not above 0 and at most 1.
    pub fn new(k: f64, l: f64, alpha: f64, beta: f64) -> Result<Self, BinomialError> {
        let exponent = |name, found| {
            Exponent::from_value(found).ok_or(BinomialError::Exponent { name, found })
        };
        let factor = |name, found: f64, most| {
            if found > 0.0 && found <= most {
                Ok(found)
            } else {
                Err(BinomialError::Factor { name, found, most })
            }
        };
        Ok(Self {
            k: exponent("k", k)?,
            l: exponent("l", l)?,
            alpha: factor("alpha", alpha, 1000.0)?,
            beta: factor("beta", beta, 1.0)?,
        })
    }
}

/// Controller of a binomial algorithm, with the slow start of `Base`.
#[derive(Clone, Debug)]
pub struct Binomial<Base> {
    base: Base,
    parameters: BinomialParameters,
    /// Growth that has not been applied yet, because windows are whole bytes.
    fraction: FractionalWindow,
}

impl<Base: WindowControl> Binomial<Base> {
    /// Creates a controller for a new path.
    pub fn new(base: Base, parameters: BinomialParameters) -> Self {
        Self {
            base,
            parameters,
            fraction: FractionalWindow::default(),
        }
    }

    fn units(&self, bytes: f64) -> f64 {
        bytes / self.base.unit().max(1) as f64
    }
}

impl<Base: WindowControl> CongestionControl for Binomial<Base> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, flightsize: u64) {
        self.base.on_sent(now, bytes, flightsize);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let avoiding = !self.base.in_slow_start();
        let before = self.base.cwnd_exact();
        self.base.on_ack(ack);
        let grown = self.base.cwnd_exact() - before;
        if avoiding && grown > 0.0 {
            // The base grows by one unit per round trip, from which the growth of the algorithm is
            // derived.
            let BinomialParameters { k, alpha, .. } = self.parameters;
            let earned = grown * alpha / k.power(self.units(before).max(1.0));
            self.base.set_cwnd(before + self.fraction.earn(earned));
        }
    }

    fn on_ecn(&mut self, now: Nanos, flightsize: u64) {
        let before = self.cwnd_exact();
        self.on_loss(now, LossCause::FastRetransmit, flightsize);
        self.base.cap_cwnd(before);
    }

    fn on_loss(&mut self, now: Nanos, cause: LossCause, flightsize: u64) {
        let before = self.base.cwnd_exact();
        let ssthresh = self.base.ssthresh();
        self.base.on_loss(now, cause, flightsize);
        self.fraction.clear();
        let unit = self.base.unit() as f64;
        if cause == LossCause::Timeout && before <= unit && self.base.ssthresh() == ssthresh {
            return; // the base ignores a repeated timeout
        }
        let BinomialParameters { l, beta, .. } = self.parameters;
        let left = before - beta * l.power(self.units(before)) * unit;
        self.base.reduce_to(left, cause);
    }

    rest_of_base!();

    fn name(&self) -> &'static str {
        "binomial"
    }
}

#[cfg(test)]
mod tests;
