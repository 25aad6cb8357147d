//! Streams on which data was sent or abandoned, for users that track the unsent data of each
//! stream.

use std::collections::BTreeSet;

use super::Sender;

impl Sender {
    /// Starts to record the streams on which data is sent.
    pub(crate) fn report_sent(&mut self) {
        self.sent_streams.get_or_insert_default();
    }

    /// Data of the stream was sent for the first time, or a message of it was abandoned.
    #[inline]
    pub(super) fn note_sent(&mut self, stream: u16) {
        if let Some(streams) = &mut self.sent_streams {
            streams.insert(stream);
        }
    }

    /// Whether streams are recorded that were not reported to the user yet.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent_streams.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The next stream on which data was sent.
    pub(crate) fn next_sent(&mut self) -> Option<u16> {
        self.sent_streams.as_mut().and_then(|it| it.pop_first())
    }
}

/// Streams on which data was sent; `None` if not requested.
pub(super) type SentStreams = Option<Box<BTreeSet<u16>>>;
