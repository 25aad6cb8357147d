//! Handling of chunks and parameters of unknown type.

/// How a chunk or parameter of unknown type must be handled, as its two high bits request (RFC 9260
/// §3.2 for chunks, §3.2.1 for parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAction {
    /// Whether processing must stop: later chunks of this packet, or later parameters of this
    /// chunk, must be ignored. Otherwise only the unknown chunk or parameter is skipped.
    pub stop: bool,
    /// Whether the unknown chunk or parameter must be reported to the peer. A chunk is reported in
    /// an ERROR with the cause Unrecognized Chunk Type. A parameter of an INIT is reported in an
    /// Unrecognized Parameter of the INIT ACK, and any other parameter in an ERROR with the cause
    /// Unrecognized Parameters.
    pub report: bool,
}

impl UnknownAction {
    /// Action for a chunk of type `kind`.
    #[inline]
    pub const fn of_chunk(kind: u8) -> Self {
        Self {
            stop: kind & 0x80 == 0,
            report: kind & 0x40 != 0,
        }
    }

    /// Action for a parameter of type `kind`.
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
