//! Abandoned unordered messages whose fragments may still be in the network (RFC 8260 §2.3.1).
//!
//! A late fragment of an ordered message is recognized, because its message number is below the
//! next expected number of the stream. Unordered messages have no expected number, so a late
//! fragment would start a message that is never completed. This message would occupy the buffer
//! forever, and would prevent a reset of its stream.

use std::collections::BTreeMap;

/// Maximum number of remembered streams, so that a peer cannot exhaust memory. Further streams
/// replace others.
const MAX_STREAMS: usize = 256;
/// Distance at which a number is forgotten, because numbers wrap around and later messages would
/// appear to precede it.
const FAR: u32 = 1 << 30;

/// Number of the last abandoned unordered message of each stream. A sender completes or abandons a
/// message before it starts the next one of the stream (RFC 8260 §2.2.2), so all earlier messages
/// are abandoned or complete, too.
#[derive(Debug, Default)]
pub(in crate::rx) struct AbandonedMessages {
    last: BTreeMap<u16, u32>,
}

impl AbandonedMessages {
    /// Records that the unordered messages of `stream` up to `mid` are abandoned.
    pub fn note(&mut self, stream: u16, mid: u32) {
        if self.has(stream, mid) {
            return;
        }
        self.last.insert(stream, mid);
        if self.last.len() > MAX_STREAMS {
            self.last.pop_first();
        }
    }

    /// Whether the message with this number was abandoned.
    pub fn has(&mut self, stream: u16, mid: u32) -> bool {
        let Some(last) = self.last.get(&stream) else {
            return false;
        };
        let ahead = mid.wrapping_sub(*last);
        if (FAR..=u32::MAX / 2).contains(&ahead) {
            self.last.remove(&stream);
        }
        ahead == 0 || ahead > u32::MAX / 2
    }

    /// Forgets the numbers of these streams, which restart at 0; `None` means all streams.
    pub fn restart(&mut self, streams: Option<&[u16]>) {
        match streams {
            Some(streams) => streams.iter().for_each(|it| {
                self.last.remove(it);
            }),
            None => self.last.clear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_up_to_the_last_abandoned_one_are_abandoned_across_the_wrap() {
        let mut gone = AbandonedMessages::default();
        assert!(!gone.has(3, 0));
        gone.note(3, u32::MAX);
        gone.note(3, 1);
        gone.note(3, u32::MAX);
        let has = [u32::MAX - 1, u32::MAX, 0, 1, 2, FAR].map(|mid| gone.has(3, mid));
        assert_eq!(has, [true, true, true, true, false, false]);
        assert!(!gone.has(4, 1), "another stream's");
        gone.restart(Some(&[3]));
        assert!(!gone.has(3, 0));
        gone.note(5, 1);
        gone.restart(None);
        assert!(!gone.has(5, 1));
    }

    /// None of 2^31 later messages must be mistaken for an abandoned message.
    #[test]
    fn a_last_that_is_far_behind_is_forgotten() {
        let mut gone = AbandonedMessages::default();
        gone.note(0, 7);
        for step in 0..16_u32 {
            assert!(
                !gone.has(0, step.wrapping_mul(1 << 29).wrapping_add(8)),
                "{step}"
            );
        }
    }

    #[test]
    fn few_streams_are_remembered() {
        let mut gone = AbandonedMessages::default();
        (0..=u16::MAX).for_each(|stream| gone.note(stream, 0));
        assert_eq!(gone.last.len(), MAX_STREAMS);
    }
}
