//! Streams on which data was sent or abandoned, for users that track the unsent data of each
//! stream.

use std::collections::BTreeSet;

use super::Sender;

impl Sender {
    /// Starts recording the streams on which data is sent.
    pub(crate) fn report_sent(&mut self) {
        self.sent_streams.get_or_insert_default();
    }

    /// Records that data of the stream was sent for the first time, or that a message on it was
    /// abandoned.
    #[inline]
    pub(super) fn note_sent(&mut self, stream: u16) {
        if let Some(streams) = &mut self.sent_streams {
            streams.insert(stream);
        }
    }

    /// Whether there are recorded streams that were not reported to the user yet.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent_streams.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// Next recorded stream.
    pub(crate) fn next_sent(&mut self) -> Option<u16> {
        self.sent_streams.as_mut().and_then(|it| it.pop_first())
    }
}

/// Recorded streams; `None` if recording was not requested.
pub(super) type SentStreams = Option<Box<BTreeSet<u16>>>;
