//! Explicit congestion notification (RFC 3168): the two bits of the IP header with which routers
//! mark packets instead of dropping them.

/// The ECN field of an IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Bits 00: the transport does not use ECN. A router drops packets instead of marking them.
    #[default]
    NotEct = 0b00,
    /// Bits 01: the transport uses ECN. Since RFC 8311 these bits identify L4S.
    Ect1 = 0b01,
    /// Bits 10: the transport uses ECN. RFC 3168 recommends these bits to senders.
    Ect0 = 0b10,
    /// Bits 11: congestion experienced. A router has marked the packet.
    Ce = 0b11,
}

impl Ecn {
    /// The two bits of this field in the traffic class.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// The field whose value is in the low two bits of a traffic class (IPv6) or TOS byte (IPv4).
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b00 => Self::NotEct,
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a router may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// The field after a router has marked the packet. This is CE, but [`Ecn::NotEct`] does not
    /// change (RFC 3168 §5).
    #[must_use]
    pub const fn marked(self) -> Self {
        match self {
            Self::NotEct => Self::NotEct,
            _ => Self::Ce,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_are_those_of_figure_1_of_rfc_3168() {
        for (bits, field) in [
            (0, Ecn::NotEct),
            (1, Ecn::Ect1),
            (2, Ecn::Ect0),
            (3, Ecn::Ce),
        ] {
            assert_eq!(Ecn::from_bits(bits), field);
            assert_eq!(field.bits(), bits);
            // The upper six bits are the DSCP.
            assert_eq!(Ecn::from_bits(bits | 0b1011_1000), field);
        }
        assert_eq!(Ecn::NotEct.marked(), Ecn::NotEct);
        assert_eq!(Ecn::Ect1.marked(), Ecn::Ce);
    }
}
