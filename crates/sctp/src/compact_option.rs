//! Optional numbers that need no extra tag word, for fields that every association and path has.

use std::fmt;

/// Optional time or byte count. `u64::MAX` represents `None`, because no clock reaches it and no
/// window is that large. A timer set to `u64::MAX` never expires, which is equivalent to no timer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct OptionalNanos(u64);

impl OptionalNanos {
    pub(crate) const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    pub(crate) const fn some(number: u64) -> Self {
        Self(number)
    }

    #[inline(always)]
    pub(crate) fn get(self) -> Option<u64> {
        (self != Self::NONE).then_some(self.0)
    }

    /// The number, or [`u64::MAX`] for none, so that the minimum of several times can be computed.
    #[inline(always)]
    pub(crate) const fn or_never(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(crate) fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether a time is set and has been reached at `now`.
    #[inline(always)]
    pub(crate) fn has_come(self, now: u64) -> bool {
        self.0 <= now && !self.is_none()
    }
}

impl Default for OptionalNanos {
    fn default() -> Self {
        Self::NONE
    }
}

impl From<Option<u64>> for OptionalNanos {
    #[inline(always)]
    fn from(number: Option<u64>) -> Self {
        number.map_or(Self::NONE, Self::some)
    }
}

impl fmt::Debug for OptionalNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_there_or_not_in_the_space_of_one() {
        assert_eq!(size_of::<OptionalNanos>(), size_of::<u64>());
        for number in [None, Some(0), Some(7), Some(u64::MAX - 1)] {
            let maybe = OptionalNanos::from(number);
            assert_eq!(maybe.get(), number);
            assert_eq!(maybe.is_none(), number.is_none());
            assert_eq!(maybe.or_never(), number.unwrap_or(u64::MAX));
            for now in [0, 6, 7, 8, u64::MAX] {
                assert_eq!(maybe.has_come(now), number.is_some_and(|at| at <= now));
            }
            assert_eq!(format!("{maybe:?}"), format!("{number:?}"));
        }
        assert_eq!(OptionalNanos::default().get(), None);
        assert_eq!(OptionalNanos::some(u64::MAX).get(), None);
    }
}
