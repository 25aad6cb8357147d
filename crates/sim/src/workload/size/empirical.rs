//! Empirical size distributions.

use anabranch_settings::{Kind, KindEntry, kind};

use super::{BYTES, Sizes};
use crate::error::BuildError;
use crate::rng::{Probability, Rng};

/// Value kind of a fraction above 0.
const SHARE: Kind = Kind::Number {
    least: 0.0,
    most: 1.0,
    above: true,
    step: 0.0,
};

kind! {
    /// The parameters of [`Empirical`].
    struct EmpiricalConfig {
        /// Sizes, each with the share of transfers that are not larger than it. Sizes and shares
        /// increase, and the last share is 1: `[["1 kB", 0.5], ["10 kB", 0.9], ["1 MB", 1]]`.
        cdf: Vec<(u64, f64)>, Kind::List(&Kind::Tuple(&[BYTES, SHARE]));
        /// Also draw sizes between two listed ones, uniformly distributed. Off: draw only listed
        /// sizes.
        interpolate: bool = true, Kind::Flag;
    }
    /// Empirical distribution: a list of sizes, each with the share of transfers that are not
    /// larger than it.
    pub(super) static ENTRY: KindEntry<Box<dyn Sizes>> =
        "empirical", |config, ()| Ok(Box::new(Empirical::new(&config.cdf, config.interpolate)?));
}

/// Empirical size distribution, drawn by inversion in integers.
#[derive(Clone, Debug)]
pub struct Empirical {
    /// Steps of the distribution: a size in bytes, and the fraction of sizes that are not larger
    /// than it.
    steps: Vec<(u64, Probability)>,
    interpolate: bool,
}

impl Empirical {
    /// The distribution with the steps `cdf`: sizes in bytes, each with the fraction of sizes that
    /// are not larger than it. With `interpolate`, sizes between two steps are drawn, too.
    ///
    /// # Errors
    /// [`BuildError::Workload`] if sizes or fractions do not increase, a size is 0, or the last
    /// fraction is not 1.
    pub fn new(cdf: &[(u64, f64)], interpolate: bool) -> Result<Self, BuildError> {
        let rises = cdf
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1);
        if !rises || cdf.first().is_none_or(|&(size, _)| size == 0) {
            return Err(BuildError::Workload(
                "sizes above 0 B that rise, as their shares do",
            ));
        }
        let steps = cdf
            .iter()
            .map(|&(size, share)| Ok((size, Probability::new(share)?)));
        let steps: Vec<_> = steps.collect::<Result<_, BuildError>>()?;
        if steps
            .last()
            .is_none_or(|&(_, share)| share != Probability::ALWAYS)
        {
            return Err(BuildError::Workload(
                "a last size that no transfer exceeds: its share is 1",
            ));
        }
        Ok(Self { steps, interpolate })
    }
}

impl Sizes for Empirical {
    fn draw(&mut self, rng: &mut Rng) -> u64 {
        let at = rng.bits() >> 11;
        let index = self
            .steps
            .partition_point(|&(_, share)| share.whole() <= at);
        let (size, share) = self.steps[index.min(self.steps.len() - 1)];
        let Some(&(below, begin)) = index.checked_sub(1).and_then(|last| self.steps.get(last))
        else {
            return size;
        };
        if !self.interpolate {
            return size;
        }
        // The interpolated size is between `below` (exclusive) and `size` (inclusive).
        let (part, whole) = (at - begin.whole(), share.whole() - begin.whole());
        let step = u128::from(size - below) * u128::from(part) / u128::from(whole);
        below + 1 + step as u64
    }

    fn range(&self) -> [u64; 2] {
        let last = self.steps.len() - 1;
        [self.steps[0].0, self.steps[last].0]
    }
}
