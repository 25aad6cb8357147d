//! What to do with a chunk or parameter of unknown type.

/// What the two high bits of an unrecognised type ask for (RFC 9260 §3.2 for chunks, §3.2.1 for parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAction {
    /// Process nothing further: no later chunk of this packet, or no later parameter of this chunk. Otherwise skip this
    /// one and go on.
    pub stop: bool,
    /// Report it to the peer: a chunk in an ERROR with the cause Unrecognized Chunk Type; a parameter of an INIT in an
    /// Unrecognized Parameter of the INIT ACK, elsewhere in an ERROR with the cause Unrecognized Parameters.
    pub report: bool,
}

impl UnknownAction {
    /// For a chunk of type `kind`.
    #[inline]
    pub const fn of_chunk(kind: u8) -> Self {
        Self {
            stop: kind & 0x80 == 0,
            report: kind & 0x40 != 0,
        }
    }

    /// For a parameter of type `kind`.
    #[inline]
    pub const fn of_parameter(kind: u16) -> Self {
        Self::of_chunk((kind >> 8) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_high_bits() {
        let action = |stop, report| UnknownAction { stop, report };
        assert_eq!(UnknownAction::of_chunk(0x3F), action(true, false));
        assert_eq!(UnknownAction::of_chunk(0x40), action(true, true));
        assert_eq!(UnknownAction::of_chunk(0x80), action(false, false));
        assert_eq!(UnknownAction::of_chunk(0xC1), action(false, true));
        assert_eq!(UnknownAction::of_parameter(0x3FFF), action(true, false));
        assert_eq!(UnknownAction::of_parameter(0x7FFF), action(true, true));
        assert_eq!(UnknownAction::of_parameter(0x8000), action(false, false));
        assert_eq!(UnknownAction::of_parameter(0xC000), action(false, true));
    }
}
