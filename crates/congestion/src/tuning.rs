//! The numbers of algorithms that have any of their own, beside the protocol's.

use std::any::{Any, TypeId};

use crate::algorithm::Numbers;
use crate::bbr1::Bbr1Parameters;
use crate::binomial::BinomialParameters;
use crate::cubic::CubicParameters;
use crate::rsctp::RsctpParameters;
use crate::westwood_rate::RateParameters;

/// What a spec may set of the algorithms; an algorithm reads its own part only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tuning {
    /// Of `bbr1`.
    pub bbr1: Bbr1Parameters,
    /// Of `binomial`.
    pub binomial: BinomialParameters,
    /// Of `cubic`.
    pub cubic: CubicParameters,
    /// The estimate that `westwood` sets its windows by.
    pub westwood_rate: RateParameters,
    /// Of `rsctp`.
    pub rsctp: RsctpParameters,
}

impl Default for Tuning {
    /// SQRT, CUBIC with all of RFC 9438, the estimate of Westwood+, and the numbers of RSCTP's paper.
    fn default() -> Self {
        Self {
            bbr1: Bbr1Parameters::default(),
            binomial: BinomialParameters::default(),
            cubic: CubicParameters::default(),
            westwood_rate: RateParameters::default(),
            rsctp: RsctpParameters::default(),
        }
    }
}

impl Numbers for Tuning {
    fn find(&self, of: TypeId) -> Option<&dyn Any> {
        let all: [&dyn Any; 5] = [
            &self.bbr1,
            &self.binomial,
            &self.cubic,
            &self.westwood_rate,
            &self.rsctp,
        ];
        all.into_iter().find(|numbers| (**numbers).type_id() == of)
    }
}
