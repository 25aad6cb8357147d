//! Step functions of time, for example the rate or the delay of a link, or the probability of a
//! loss.

use anabranch_settings::{Datum, Kind, SettingValue};
use anabranch_transport::{Nanos, time};

use crate::error::BuildError;

/// A value as a function of time: a constant, or a step function, which may be periodic.
///
/// ```
/// use anabranch_sim::StepFunction;
///
/// // 10 Mbit/s, then 2 Mbit/s from 1 s on.
/// let _step = StepFunction::steps(10_000_000, [(1_000_000_000, 2_000_000)])?;
/// // The same again every 3 s.
/// let _saw = StepFunction::steps(10_000_000, [(1_000_000_000, 2_000_000)])?
///     .repeating(3_000_000_000)?;
/// # Ok::<(), anabranch_sim::BuildError>(())
/// ```
///
/// The simulator opens no files: a caller that has a trace file should read it into such a list.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFunction<T> {
    first: T,
    /// Each value applies from its time in nanoseconds until the time of the next entry. Times
    /// increase strictly and are above 0.
    steps: Vec<(Nanos, T)>,
    period: Option<Nanos>,
}

impl<T: Copy> StepFunction<T> {
    /// A function that always has the value `value`.
    pub const fn constant(value: T) -> Self {
        Self {
            first: value,
            steps: Vec::new(),
            period: None,
        }
    }

    /// A function that begins with `first`, and has the value of each step from its time until the
    /// next step. A step at time 0 replaces `first`.
    ///
    /// # Errors
    /// [`BuildError::Schedule`] if the times do not increase.
    pub fn steps(
        first: T,
        steps: impl IntoIterator<Item = (Nanos, T)>,
    ) -> Result<Self, BuildError> {
        let mut steps: Vec<_> = steps.into_iter().collect();
        if !steps.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(BuildError::Schedule);
        }
        let mut first = first;
        if let Some(&(0, value)) = steps.first() {
            first = value;
            steps.remove(0);
        }
        Ok(Self {
            first,
            steps,
            period: None,
        })
    }

    /// Repeats the steps from each multiple of `period`.
    ///
    /// # Errors
    /// [`BuildError::Schedule`] if a step is not before the end of the period.
    pub fn repeating(mut self, period: Nanos) -> Result<Self, BuildError> {
        let last = self.steps.last().map_or(0, |step| step.0);
        if period <= last {
            return Err(BuildError::Schedule);
        }
        self.period = Some(period);
        Ok(self)
    }

    /// The first value, and the later values, each with the time in nanoseconds from which it
    /// applies.
    pub fn changes(&self) -> (T, &[(Nanos, T)]) {
        (self.first, &self.steps)
    }

    /// The period in nanoseconds, if the steps repeat.
    pub fn period(&self) -> Option<Nanos> {
        self.period
    }

    /// Converts all values by `of`.
    ///
    /// # Errors
    /// The errors of `of`.
    pub fn try_map<U, E>(&self, of: impl Fn(T) -> Result<U, E>) -> Result<StepFunction<U>, E> {
        let steps = self.steps.iter();
        Ok(StepFunction {
            first: of(self.first)?,
            steps: steps
                .map(|(at, value)| Ok((*at, of(*value)?)))
                .collect::<Result<_, E>>()?,
            period: self.period,
        })
    }

    /// The value, if the function is constant.
    pub fn as_constant(&self) -> Option<T> {
        self.steps.is_empty().then_some(self.first)
    }

    /// All values, in the order of time.
    pub fn values(&self) -> impl Iterator<Item = T> + '_ {
        std::iter::once(self.first).chain(self.steps.iter().map(|step| step.1))
    }
}

impl<T: Copy> From<T> for StepFunction<T> {
    fn from(value: T) -> Self {
        Self::constant(value)
    }
}

impl StepFunction<u64> {
    /// Rate, in bits per second, of a trace of delivery opportunities as recorded by mahimahi. At
    /// each of `times` one packet of `size` bytes can leave, and the trace repeats after its last
    /// time. The opportunities within a millisecond are spread evenly over it.
    ///
    /// # Errors
    /// [`BuildError::Schedule`] if the times decrease, or if the last time is 0 or missing.
    pub fn opportunities(
        times: impl IntoIterator<Item = Nanos>,
        size: usize,
    ) -> Result<Self, BuildError> {
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for at in times {
            // A packet that leaves at the end of a millisecond was sent during it.
            let bin = at.div_ceil(time::MILLISECOND).max(1) - 1;
            match counts.last_mut() {
                Some((last, _)) if *last > bin => return Err(BuildError::Schedule),
                Some((last, count)) if *last == bin => *count += 1,
                _ => counts.push((bin, 1)),
            }
        }
        let Some(&(last, _)) = counts.last() else {
            return Err(BuildError::Schedule);
        };
        let mut steps = Vec::new();
        let mut next = 0;
        for (bin, count) in counts {
            if bin > next {
                steps.push((next * time::MILLISECOND, 0));
            }
            steps.push((bin * time::MILLISECOND, count * size as u64 * 8_000));
            next = bin + 1;
        }
        Self::steps(0, steps)?.repeating((last + 1) * time::MILLISECOND)
    }
}

/// Form in specs: a value, or `{ steps = [["0 s", VALUE], ...], repeat = "20 s" }`. The first step
/// must be at 0.
impl<T: SettingValue + Copy> SettingValue for StepFunction<T> {
    const KIND: Kind = Kind::StepFunction(&T::KIND);

    fn from_datum(datum: &Datum) -> Option<Self> {
        let Datum::Table(_) = datum else {
            return T::from_datum(datum).map(Self::constant);
        };
        let steps = datum.key("steps")?.items().iter();
        let steps: Vec<(Nanos, T)> = steps.map(SettingValue::from_datum).collect::<Option<_>>()?;
        let &(0, first) = steps.first()? else {
            return None;
        };
        let values = Self::steps(first, steps).ok()?;
        match datum.key("repeat") {
            Some(period) => values.repeating(period.whole()?).ok(),
            None => Some(values),
        }
    }

    fn to_datum(&self) -> Datum {
        if let Some(value) = self.as_constant() {
            return value.to_datum();
        }
        let first = std::iter::once((0, self.first));
        let steps = first.chain(self.steps.iter().copied());
        let steps = steps.map(|step| step.to_datum()).collect();
        let period = self.period.map(Datum::Whole);
        let period = period.map(|period| ("repeat".to_owned(), period));
        let steps = ("steps".to_owned(), Datum::List(steps));
        Datum::Table([Some(steps), period].into_iter().flatten().collect())
    }
}

/// Evaluates a step function at non-decreasing times.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<T> {
    values: StepFunction<T>,
    /// Start of the current period, nanoseconds.
    origin: Nanos,
    /// Number of steps of the current period that have begun.
    begun: usize,
}

impl<T: Copy> Cursor<T> {
    pub fn new(values: StepFunction<T>) -> Self {
        Self {
            values,
            origin: 0,
            begun: 0,
        }
    }

    /// Value at `now`, and the time of the next change ([`Nanos::MAX`] if there is none). `now`
    /// must not be before that of the previous call.
    pub fn at(&mut self, now: Nanos) -> (T, Nanos) {
        if let Some(period) = self.values.period
            && now - self.origin >= period
        {
            self.origin = now - now % period;
            self.begun = 0;
        }
        let since = now - self.origin;
        let steps = &self.values.steps;
        while steps.get(self.begun).is_some_and(|step| step.0 <= since) {
            self.begun += 1;
        }
        let value = match self.begun {
            0 => self.values.first,
            begun => steps[begun - 1].1,
        };
        let end = steps.get(self.begun).map(|step| step.0);
        let until = end.or(self.values.period.filter(|_| !steps.is_empty()));
        let until = until.map_or(Nanos::MAX, |until| self.origin.saturating_add(until));
        (value, until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::MILLISECOND as MS;

    #[test]
    fn steps_begin_at_their_times_and_repeat() {
        let values = StepFunction::steps('a', [(10, 'b'), (20, 'c')]).unwrap();
        let mut once = Cursor::new(values.clone());
        let seen: Vec<_> = [0, 9, 10, 19, 20, 1000]
            .map(|now| once.at(now))
            .into_iter()
            .collect();
        let never = Nanos::MAX;
        assert_eq!(
            seen,
            [
                ('a', 10),
                ('a', 10),
                ('b', 20),
                ('b', 20),
                ('c', never),
                ('c', never)
            ]
        );
        let mut again = Cursor::new(values.repeating(25).unwrap());
        let seen: Vec<_> = [24, 25, 35, 49, 50, 1_000_000, 1_000_012]
            .map(|now| again.at(now))
            .into_iter()
            .collect();
        assert_eq!(
            seen,
            [
                ('c', 25),
                ('a', 35),
                ('b', 45),
                ('c', 50),
                ('a', 60),
                ('a', 1_000_010),
                ('b', 1_000_020)
            ]
        );
    }

    #[test]
    fn steps_out_of_order_are_refused() {
        assert!(StepFunction::steps(0, [(5, 1), (5, 2)]).is_err());
        assert!(
            StepFunction::steps(0, [(5, 1)])
                .unwrap()
                .repeating(5)
                .is_err()
        );
        let first = StepFunction::steps(0, [(0, 7)]).unwrap();
        assert_eq!(first.as_constant(), Some(7));
        assert_eq!(
            StepFunction::steps(0, [(1, 7)]).unwrap().as_constant(),
            None
        );
        assert!(StepFunction::opportunities([], 1500).is_err());
        assert!(StepFunction::opportunities([2 * MS, MS], 1500).is_err());
    }

    #[test]
    fn opportunities_are_a_rate_for_each_millisecond() {
        // Two packets leave in the first millisecond, none in the second, and one in the third;
        // then the trace repeats.
        let trace = StepFunction::opportunities([MS, MS, 3 * MS], 1500).unwrap();
        let mut cursor = Cursor::new(trace);
        assert_eq!(cursor.at(0), (24_000_000, MS));
        assert_eq!(cursor.at(MS), (0, 2 * MS));
        assert_eq!(cursor.at(2 * MS), (12_000_000, 3 * MS));
        assert_eq!(cursor.at(3 * MS), (24_000_000, 4 * MS));
    }
}
