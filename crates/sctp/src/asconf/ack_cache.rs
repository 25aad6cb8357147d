//! Cached responses to the peer's ASCONF chunks (RFC 5061 §5.2).

use std::collections::VecDeque;

use bytes::Bytes;

/// Number of responses cached for retransmitted ASCONFs. A few suffice, because a peer has only one
/// outstanding ASCONF, or a few that it sends in one packet (RFC 5061 §5.2 E3, E6).
const KEPT: usize = 4;

/// Classification of a received ASCONF by its serial number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SerialClass {
    /// The next expected ASCONF.
    Next,
    /// The ASCONF was already answered, with these response parameters.
    Answered(Bytes),
    /// The serial number is too old, or leaves a gap in the sequence.
    Strange,
}

/// Next expected serial number of the peer's ASCONFs, and cached responses to earlier ASCONFs.
#[derive(Debug)]
pub(crate) struct AsconfAckCache {
    expected: u32,
    acks: VecDeque<(u32, Bytes)>,
}

impl AsconfAckCache {
    /// Empty cache. Serial numbers start at the peer's initial TSN `peers` (RFC 5061 §5.1).
    pub(crate) fn new(peers: u32) -> Self {
        Self {
            expected: peers,
            acks: VecDeque::new(),
        }
    }

    pub(crate) fn judge(&self, serial: u32) -> SerialClass {
        if serial == self.expected {
            return SerialClass::Next;
        }
        let mut answers = self.acks.iter();
        let answered = answers.find(|(known, _)| *known == serial);
        answered.map_or(SerialClass::Strange, |(_, it)| {
            SerialClass::Answered(it.clone())
        })
    }

    /// Records that the expected ASCONF was answered with `parameters`.
    pub(crate) fn answered(&mut self, parameters: Bytes) {
        if self.acks.len() == KEPT {
            self.acks.pop_front();
        }
        self.acks.push_back((self.expected, parameters));
        self.expected = self.expected.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_answers_are_kept_and_serials_wrap() {
        let mut changes = AsconfAckCache::new(u32::MAX - 1);
        for answer in 0..6_u8 {
            let serial = (u32::MAX - 1).wrapping_add(answer.into());
            assert_eq!(changes.judge(serial), SerialClass::Next);
            assert_eq!(changes.judge(serial.wrapping_add(1)), SerialClass::Strange);
            changes.answered(Bytes::copy_from_slice(&[answer]));
            let kept = Bytes::copy_from_slice(&[answer]);
            assert_eq!(changes.judge(serial), SerialClass::Answered(kept));
        }
        assert_eq!(changes.judge(u32::MAX), SerialClass::Strange, "forgotten");
        assert_eq!(
            changes.judge(0),
            SerialClass::Answered(Bytes::from_static(&[2]))
        );
    }
}
