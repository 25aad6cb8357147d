//! The numbers of algorithms that have any of their own, beside the protocol's.

use crate::binomial::BinomialParameters;
use crate::rsctp::RsctpParameters;
use crate::westwood_rate::RateParameters;

/// What a spec may set of the algorithms; an algorithm reads its own part only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Of `binomial`.
    pub binomial: BinomialParameters,
    /// The estimate that `westwood` sets its windows by.
    pub westwood_rate: RateParameters,
    /// Of `rsctp`.
    pub rsctp: RsctpParameters,
}

impl Default for Tuning {
    /// SQRT, the estimate of Westwood+, and the numbers of RSCTP's paper.
    fn default() -> Self {
        Self {
            binomial: BinomialParameters::SQRT,
            westwood_rate: RateParameters::WESTWOOD_PLUS,
            rsctp: RsctpParameters::default(),
        }
    }
}
