//! Parameters of algorithms, in addition to the parameters of the protocol.

use std::any::{Any, TypeId};

use crate::algorithm::ParameterLookup;
use crate::bbr::BbrParameters;
use crate::bbr1::Bbr1Parameters;
use crate::binomial::BinomialParameters;
use crate::cubic::CubicParameters;
use crate::rsctp::RsctpParameters;
use crate::westwood_rate::RateParameters;

/// Parameters of all algorithms that a spec can set; each algorithm uses only its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AlgorithmParameters {
    /// Parameters of `bbr`.
    pub bbr: BbrParameters,
    /// Parameters of `bbr1`.
    pub bbr1: Bbr1Parameters,
    /// Parameters of `binomial`.
    pub binomial: BinomialParameters,
    /// Parameters of `cubic`.
    pub cubic: CubicParameters,
    /// Parameters of the rate estimate of `westwood`.
    pub westwood_rate: RateParameters,
    /// Parameters of `rsctp`.
    pub rsctp: RsctpParameters,
}

impl Default for AlgorithmParameters {
    /// BBR with the values of the drafts, the binomial algorithm SQRT, CUBIC with all options of
    /// RFC 9438, the rate estimate of Westwood+, and RSCTP with the values of its paper.
    fn default() -> Self {
        Self {
            bbr: BbrParameters::default(),
            bbr1: Bbr1Parameters::default(),
            binomial: BinomialParameters::default(),
            cubic: CubicParameters::default(),
            westwood_rate: RateParameters::default(),
            rsctp: RsctpParameters::default(),
        }
    }
}

impl ParameterLookup for AlgorithmParameters {
    fn find(&self, of: TypeId) -> Option<&dyn Any> {
        let all: [&dyn Any; 6] = [
            &self.bbr,
            &self.bbr1,
            &self.binomial,
            &self.cubic,
            &self.westwood_rate,
            &self.rsctp,
        ];
        all.into_iter().find(|numbers| (**numbers).type_id() == of)
    }
}
