//! Minimum filter over a time window.

use anabranch_transport::Nanos;

/// Minimum of the measurements in the last one to two spans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMin {
    span: Nanos,
    since: Nanos,
    current: Nanos,
    before: Nanos,
}

impl WindowedMin {
    /// Creates a filter without measurements.
    pub(super) const fn new(span: Nanos) -> Self {
        Self {
            span,
            since: 0,
            current: Nanos::MAX,
            before: Nanos::MAX,
        }
    }

    /// Adds the measurement `value` at `now`.
    pub(super) fn measure(&mut self, now: Nanos, value: Nanos) {
        let age = now.saturating_sub(self.since);
        if age >= self.span {
            self.before = if age < 2 * self.span {
                self.current
            } else {
                Nanos::MAX
            };
            (self.since, self.current) = (now, Nanos::MAX);
        }
        self.current = self.current.min(value);
    }

    /// Minimum of the measurements; `None` if there are none.
    pub(super) fn least(&self) -> Option<Nanos> {
        let least = self.current.min(self.before);
        (least != Nanos::MAX).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_minima_are_forgotten_after_one_to_two_spans() {
        let mut least = WindowedMin::new(100);
        assert_eq!(least.least(), None);
        for (at, value, expected) in [
            (0, 7, 7),
            (50, 9, 7),
            (120, 8, 7),  // the previous span had 7
            (230, 10, 8), // now the previous span has 8
            (600, 12, 12),
            (800, 20, 20), // two whole spans later
        ] {
            least.measure(at, value);
            assert_eq!(least.least(), Some(expected), "at {at}");
        }
    }
}
