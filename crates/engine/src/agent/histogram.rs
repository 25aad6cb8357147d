//! Histogram of weighted values, for percentiles of any quantity.

use std::collections::BTreeMap;

/// Maximum number of distinct values that are kept without rounding.
const MAX_VALUES: usize = 1 << 16;
/// Bits of the mantissa that are kept when values are rounded, which is a precision of 1 part
/// in 2048.
const BITS: u32 = 11;

/// Distribution of values with weights. Up to 65,536 distinct values are kept exactly. Beyond that,
/// all values are rounded down to 12 significant bits (0.05 %), so that memory does not grow with
/// the length of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Weights of the values. The keys are the values, mapped to integers of the same order.
    weights: BTreeMap<u64, f64>,
    rounded: bool,
    count: u64,
    weight: f64,
    /// Sum of the values times their weights.
    sum: f64,
}

/// Maps a number to an integer with the same order.
fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

fn value_at(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 {
        place & !(1 << 63)
    } else {
        !place
    })
}

fn round(place: u64) -> u64 {
    place & (u64::MAX << (52 - BITS))
}

impl Histogram {
    /// Adds a value with a weight; ignored if the value is not finite or the weight is not
    /// positive.
    pub fn add(&mut self, value: f64, weight: f64) {
        if !value.is_finite() || weight.is_nan() || weight <= 0.0 {
            return;
        }
        self.count += 1;
        self.weight += weight;
        self.sum += value * weight;
        // Adding 0.0 turns -0.0 into 0.0, because both zeros should count as one value.
        let place = place(value + 0.0);
        let place = if self.rounded { round(place) } else { place };
        *self.weights.entry(place).or_default() += weight;
        if self.weights.len() > MAX_VALUES && !self.rounded {
            self.round();
        }
    }

    fn round(&mut self) {
        self.rounded = true;
        for (place, weight) in std::mem::take(&mut self.weights) {
            *self.weights.entry(round(place)).or_default() += weight;
        }
    }

    /// Adds all values of another distribution.
    pub fn merge(&mut self, other: &Self) {
        if other.rounded && !self.rounded {
            self.round();
        }
        for (&place, weight) in &other.weights {
            let place = if self.rounded { round(place) } else { place };
            *self.weights.entry(place).or_default() += weight;
        }
        self.count += other.count;
        self.weight += other.weight;
        self.sum += other.sum;
        if self.weights.len() > MAX_VALUES && !self.rounded {
            self.round();
        }
    }

    /// Number of values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Weighted mean of the values; `None` without values.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.weight)
    }

    /// Smallest value at which the cumulative weight reaches the fraction `share` (0 to 1) of the
    /// total. This is the inverse of the empirical distribution, without interpolation. `None`
    /// without values.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let total: f64 = self.weights.values().sum();
        // The tolerance is necessary because sums of weights have rounding errors.
        let wanted = total * share * (1.0 - 1e-12);
        let mut below = 0.0;
        let mut last = None;
        for (&place, weight) in &self.weights {
            below += weight;
            last = Some(value_at(place));
            if below >= wanted {
                break;
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = f64>) -> Histogram {
        let mut distribution = Histogram::default();
        values
            .into_iter()
            .for_each(|value| distribution.add(value, 1.0));
        distribution
    }

    #[test]
    fn quantiles_are_values_that_came() {
        let ten = of((1..=10).map(f64::from));
        let quantiles = [0.0, 0.1, 0.5, 0.51, 0.9, 0.95, 1.0].map(|share| ten.quantile(share));
        assert_eq!(quantiles, [1.0, 1.0, 5.0, 6.0, 9.0, 10.0, 10.0].map(Some));
        assert_eq!((ten.mean(), ten.count()), (Some(5.5), 10));
        assert_eq!(of([f64::NAN]).quantile(0.5), None);
    }

    #[test]
    fn values_weigh_by_the_time_they_stood() {
        let mut distribution = Histogram::default();
        distribution.add(-3.0, 9.0);
        distribution.add(8.0, 1.0);
        distribution.add(1.0, 0.0);
        let quantiles = [0.5, 0.9, 0.91].map(|share| distribution.quantile(share));
        assert_eq!(quantiles, [-3.0, -3.0, 8.0].map(Some));
        assert_eq!(distribution.mean(), Some(-1.9));
    }

    #[test]
    fn many_values_are_rounded_and_the_memory_stays() {
        let values = || (0..200_000).map(|n| 1.0 + f64::from(n) / 1e5);
        let many = of(values());
        assert!(many.weights.len() <= 2 * (1 << BITS) + 2);
        for share in [0.1, 0.5, 0.999] {
            let exact = 1.0 + 2.0 * share;
            let found = many.quantile(share).unwrap_or(0.0);
            assert!((found / exact - 1.0).abs() < 6e-4, "{share}: {found}");
        }
        let mut merged = of([1.0]);
        merged.merge(&many);
        assert_eq!(merged.count(), 200_001);
    }
}
