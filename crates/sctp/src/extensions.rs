//! What is spoken beyond RFC 9260 where both ends offer it.

use anabranch_wire::parameter::Parameter;
use anabranch_wire::tlv::TlvWriter;

use crate::profile::Profile;

/// What an end offers, or both agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extensions {
    /// Explicit congestion notification (RFC 4960 Appendix A).
    pub(crate) ecn: bool,
    /// RSCTP (ho2008 §3).
    pub(crate) rsctp: bool,
}

impl Extensions {
    /// What an endpoint of that profile offers.
    pub(crate) fn of(profile: &Profile) -> Self {
        Self {
            ecn: profile.ecn,
            rsctp: profile.rsctp,
        }
    }

    /// What both offer.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            ecn: self.ecn && other.ecn,
            rsctp: self.rsctp && other.rsctp,
        }
    }

    /// Adds the parameters of INIT or INIT ACK that say so; each is four bytes.
    pub(crate) fn push(self, parameters: &mut TlvWriter) {
        if self.ecn {
            let _ = parameters.push(&Parameter::EcnCapable);
        }
        if self.rsctp {
            let _ = parameters.push(&Parameter::Rsctp);
        }
    }

    /// As a byte of a cookie.
    pub(crate) fn bits(self) -> u8 {
        u8::from(self.rsctp) | u8::from(self.ecn) << 1
    }

    /// What [`Extensions::bits`] wrote.
    pub(crate) fn from_bits(bits: u8) -> Option<Self> {
        let extensions = Self {
            ecn: bits & 2 != 0,
            rsctp: bits & 1 != 0,
        };
        (extensions.bits() == bits).then_some(extensions)
    }
}
