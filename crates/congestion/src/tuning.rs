//! The numbers of algorithms that have any of their own, beside the protocol's.

use crate::binomial::BinomialParameters;
use crate::westwood_rate::RateParameters;

/// What a spec may set of the algorithms; an algorithm reads its own part only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Of `binomial`.
    pub binomial: BinomialParameters,
    /// The estimate that `westwood` sets its windows by.
    pub westwood_rate: RateParameters,
}

impl Default for Tuning {
    /// SQRT, and the estimate of Westwood+.
    fn default() -> Self {
        Self {
            binomial: BinomialParameters::SQRT,
            westwood_rate: RateParameters::WESTWOOD_PLUS,
        }
    }
}
