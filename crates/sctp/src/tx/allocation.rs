//! How many of the negotiated streams a sender uses now, for senders that leave the choice of a stream to the stack.

use anabranch_transport::Nanos;

/// Decides how many streams are in use.
pub trait StreamAllocation: std::fmt::Debug + Send {
    /// Streams in use at `now`: 1 to `negotiated`.
    fn in_use(&mut self, now: Nanos, negotiated: u16) -> u16;
}

/// Always the same number of streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed(
    /// How many; as many as were negotiated if that is less.
    pub u16,
);

impl StreamAllocation for Fixed {
    fn in_use(&mut self, _now: Nanos, negotiated: u16) -> u16 {
        self.0.clamp(1, negotiated.max(1))
    }
}

/// Hands out the streams in use in turn, one for each message.
#[derive(Debug)]
pub struct StreamTurns {
    allocation: Box<dyn StreamAllocation>,
    next: u16,
}

impl StreamTurns {
    /// Turns over the streams that `allocation` puts in use.
    pub fn new(allocation: Box<dyn StreamAllocation>) -> Self {
        Self {
            allocation,
            next: 0,
        }
    }

    /// The stream for the next message.
    pub fn next(&mut self, now: Nanos, negotiated: u16) -> u16 {
        let in_use = self
            .allocation
            .in_use(now, negotiated)
            .clamp(1, negotiated.max(1));
        let stream = if self.next < in_use { self.next } else { 0 };
        self.next = stream + 1;
        stream
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_the_streams_in_use() {
        let mut turns = StreamTurns::new(Box::new(Fixed(3)));
        assert_eq!([(); 7].map(|()| turns.next(0, 10)), [0, 1, 2, 0, 1, 2, 0]);
        let mut few = StreamTurns::new(Box::new(Fixed(3)));
        assert_eq!([(); 4].map(|()| few.next(0, 2)), [0, 1, 0, 1]);
        let mut all = StreamTurns::new(Box::new(Fixed(u16::MAX)));
        assert_eq!(
            (0..65_536u32).map(|_| all.next(0, u16::MAX)).last(),
            Some(0)
        );
    }
}
