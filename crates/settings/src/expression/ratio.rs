//! Exact fractions, which are the numbers of expressions.

use std::cmp::Ordering;

/// A fraction in lowest terms. Every operation is exact; it returns `None` if the result does not
/// fit into 128 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    numerator: i128,
    /// Denominator, above 0.
    denominator: i128,
}

impl Ratio {
    /// Creates a fraction; `None` if the denominator is 0.
    pub fn new(numerator: i128, denominator: i128) -> Option<Self> {
        if denominator == 0 {
            return None;
        }
        let common = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let common = i128::try_from(common).ok()?;
        let (numerator, denominator) = (numerator / common, denominator / common);
        if denominator < 0 {
            return Some(Self {
                numerator: numerator.checked_neg()?,
                denominator: denominator.checked_neg()?,
            });
        }
        Some(Self {
            numerator,
            denominator,
        })
    }

    /// Creates a fraction that is an integer.
    pub const fn whole(number: i128) -> Self {
        Self {
            numerator: number,
            denominator: 1,
        }
    }

    /// Parses a decimal number such as `0.015`, `1_000` or `1e-9` exactly.
    pub fn decimal(text: &str) -> Option<Self> {
        let text = text.replace('_', "");
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text.as_str(), 0),
        };
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{before}{after}");
        let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        let sign = digits.strip_prefix(['-', '+']).unwrap_or(&digits);
        if sign.is_empty() || !is_number(sign) || !is_number(after) {
            return None;
        }
        let places = i32::try_from(after.len()).ok()?;
        let scale = exponent.checked_sub(places)?;
        let power = 10_i128.checked_pow(scale.unsigned_abs())?;
        let digits: i128 = digits.parse().ok()?;
        match scale < 0 {
            true => Self::new(digits, power),
            false => digits.checked_mul(power).map(Self::whole),
        }
    }

    /// Sum of two fractions.
    pub fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        let below = self.denominator.checked_mul(other.denominator)?;
        Self::new(left.checked_add(right)?, below)
    }

    /// Negative of the fraction.
    pub fn negative(self) -> Option<Self> {
        Some(Self {
            numerator: self.numerator.checked_neg()?,
            ..self
        })
    }

    /// Product of two fractions. Factors are reduced before the multiplication, so that
    /// intermediate results stay small.
    pub fn times(self, other: Self) -> Option<Self> {
        let left = Self::new(self.numerator, other.denominator)?;
        let right = Self::new(other.numerator, self.denominator)?;
        Self::new(
            left.numerator.checked_mul(right.numerator)?,
            left.denominator.checked_mul(right.denominator)?,
        )
    }

    /// Reciprocal of the fraction; `None` for 0.
    pub fn inverse(self) -> Option<Self> {
        Self::new(self.denominator, self.numerator)
    }

    /// Compares two fractions; `None` if an intermediate result does not fit into 128 bits.
    pub fn compare(self, other: Self) -> Option<Ordering> {
        let left = self.numerator.checked_mul(other.denominator)?;
        Some(left.cmp(&other.numerator.checked_mul(self.denominator)?))
    }

    /// Whether the fraction is below 0.
    pub fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// Whether the fraction is 0.
    pub fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// The fraction as an integer, if it is one.
    pub fn as_whole(self) -> Option<i128> {
        (self.denominator == 1).then_some(self.numerator)
    }

    /// Largest integer that is not above the fraction.
    pub fn floor(self) -> i128 {
        self.numerator.div_euclid(self.denominator)
    }

    /// Smallest integer that is not below the fraction.
    pub fn ceil(self) -> i128 {
        self.floor() + i128::from(self.denominator != 1)
    }

    /// Nearest integer; a half is rounded up.
    pub fn round(self) -> i128 {
        let (floor, rest) = (self.floor(), self.numerator.rem_euclid(self.denominator));
        floor + i128::from(rest >= self.denominator - rest)
    }

    /// Nearest 64-bit float if numerator and denominator have up to 53 bits; otherwise the error is
    /// at most a few units in the last place. The result is the same on every platform, because
    /// IEEE 754 requires that two conversions and a division are each rounded correctly.
    pub fn real(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Ratio {
        Ratio::decimal(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(ratio("0.015"), Ratio::new(3, 200).expect("a fraction"));
        assert_eq!(ratio("1e-9").times(ratio("1e9")), Some(Ratio::whole(1)));
        assert_eq!(ratio("1_000.5"), Ratio::new(2001, 2).expect("a fraction"));
        let sum = ratio("0.1").plus(ratio("0.2"));
        assert_eq!(sum, Some(ratio("0.3")));
        assert_eq!(ratio("0.3").real().to_bits(), 0.3_f64.to_bits());
        for wrong in ["", ".", "-", "1.2.3", "1e", "0x1", "1e99", "1.-5", "e5"] {
            assert_eq!(Ratio::decimal(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn halves_are_rounded_up() {
        let rounded = |text: &str| {
            let number = ratio(text);
            (number.floor(), number.round(), number.ceil())
        };
        assert_eq!(rounded("2.5"), (2, 3, 3));
        assert_eq!(rounded("2.49"), (2, 2, 3));
        assert_eq!(rounded("-2.5"), (-3, -2, -2));
        assert_eq!(rounded("7"), (7, 7, 7));
    }

    #[test]
    fn overflows_give_no_number() {
        let large = Ratio::whole(i128::MAX);
        assert_eq!(large.plus(Ratio::whole(1)), None);
        assert_eq!(large.times(Ratio::whole(2)), None);
        assert_eq!(Ratio::whole(0).inverse(), None);
        assert_eq!(Ratio::whole(i128::MIN).negative(), None);
    }
}
