//! Serial numbers: counters that wrap around, compared as in RFC 1982.
//!
//! They do not implement `Ord`, because "less than" is not transitive for numbers that wrap around.
//! If two numbers differ by exactly half of the range, neither is less or greater than the other
//! one (RFC 1982 §3.2), and all four comparisons are false.

macro_rules! serial {
    ($(#[$doc:meta])* $name:ident($int:ty, $signed:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub $int);

        impl $name {
            /// Whether this number comes before `other`.
            #[inline]
            pub const fn lt(self, other: Self) -> bool {
                other.gt(self)
            }

            /// Whether this number comes before `other` or equals it.
            #[inline]
            pub const fn le(self, other: Self) -> bool {
                self.0 == other.0 || self.lt(other)
            }

            /// Whether this number comes after `other`.
            #[inline]
            pub const fn gt(self, other: Self) -> bool {
                (self.0.wrapping_sub(other.0) as $signed) > 0
            }

            /// Whether this number comes after `other` or equals it.
            #[inline]
            pub const fn ge(self, other: Self) -> bool {
                self.0 == other.0 || self.gt(other)
            }

            /// Number of steps from `earlier` forward to this number, with wraparound.
            #[inline]
            pub const fn distance_from(self, earlier: Self) -> $int {
                self.0.wrapping_sub(earlier.0)
            }

            /// The next number.
            #[inline]
            pub const fn next(self) -> Self {
                Self(self.0.wrapping_add(1))
            }

            /// The previous number.
            #[inline]
            pub const fn prev(self) -> Self {
                Self(self.0.wrapping_sub(1))
            }

            /// The number that follows after `n` steps, with wraparound.
            #[inline]
            pub const fn add(self, n: $int) -> Self {
                Self(self.0.wrapping_add(n))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

serial!(
    /// Transmission Sequence Number of a DATA chunk (RFC 9260 §1.6).
    Tsn(u32, i32)
);
serial!(
    /// Stream Sequence Number of an ordered message (RFC 9260 §1.6).
    Ssn(u16, i16)
);
serial!(
    /// Message Identifier (RFC 8260 §2.1).
    Mid(u32, i32)
);
serial!(
    /// Fragment Sequence Number (RFC 8260 §2.1).
    Fsn(u32, i32)
);
serial!(
    /// Sequence number of a byte in a TCP connection (RFC 9293 §3.4).
    SeqNumber(u32, i32)
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_round_the_wrap() {
        assert!(Tsn(u32::MAX).lt(Tsn(0)));
        assert!(Tsn(0).gt(Tsn(u32::MAX)));
        assert!(Tsn(0xFFFF_FFF0).le(Tsn(0x10)));
        assert!(Ssn(65_535).lt(Ssn(0)));
        assert!(!Ssn(0).lt(Ssn(65_535)));
        assert!(Ssn(0).ge(Ssn(65_535)));
    }

    #[test]
    fn equal_numbers() {
        for n in [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
            assert!(!Tsn(n).lt(Tsn(n)) && !Tsn(n).gt(Tsn(n)));
            assert!(Tsn(n).le(Tsn(n)) && Tsn(n).ge(Tsn(n)));
        }
    }

    #[test]
    fn half_a_circle_apart_nothing_holds() {
        for n in [0, 1, 0x7FFF_FFFF, 0x8000_0000, u32::MAX] {
            let (a, b) = (Tsn(n), Tsn(n).add(0x8000_0000));
            assert!(!a.lt(b) && !a.gt(b) && !a.le(b) && !a.ge(b), "{a} {b}");
            assert!(a.lt(Tsn(n).add(0x7FFF_FFFF)));
            assert!(a.gt(Tsn(n).add(0x8000_0001)));
        }
    }

    /// RFC 1982 §5.2 gives its examples for 8 bits; these are scaled by 256 to 16 bits.
    #[test]
    fn rfc_1982_examples_scaled() {
        assert!(Ssn(1 << 8).gt(Ssn(0)));
        assert!(Ssn(44 << 8).gt(Ssn(0)));
        assert!(Ssn(100 << 8).gt(Ssn(44 << 8)));
        assert!(Ssn(200 << 8).gt(Ssn(100 << 8)));
        assert!(Ssn(255 << 8).gt(Ssn(200 << 8)));
        assert!(Ssn(0).gt(Ssn(255 << 8)));
        assert!(Ssn(100 << 8).gt(Ssn(255 << 8)));
        assert!(Ssn(0).gt(Ssn(200 << 8)));
        assert!(Ssn(44 << 8).gt(Ssn(200 << 8)));
    }

    #[test]
    fn steps() {
        assert_eq!(Tsn(u32::MAX).next(), Tsn(0));
        assert_eq!(Tsn(0).prev(), Tsn(u32::MAX));
        assert_eq!(Ssn(65_530).add(10), Ssn(4));
        assert_eq!(Tsn(3).distance_from(Tsn(0xFFFF_FFFE)), 5);
        assert_eq!(Ssn(3).distance_from(Ssn(0xFFFE)), 5);
    }
}
