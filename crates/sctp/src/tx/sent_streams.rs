//! The streams of which data was sent or abandoned, for a user who keeps account of what waits for each.

use std::collections::BTreeSet;

use super::Sender;

impl Sender {
    /// Notes of which streams data is sent from now on.
    pub(crate) fn report_sent(&mut self) {
        self.sent_streams.get_or_insert_default();
    }

    /// Data of the stream is sent for the first time, or a message of it was abandoned.
    #[inline]
    pub(super) fn note_sent(&mut self, stream: u16) {
        if let Some(streams) = &mut self.sent_streams {
            streams.insert(stream);
        }
    }

    /// Whether data of some stream was sent, of which the user was not told.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent_streams.as_ref().is_some_and(|it| !it.is_empty())
    }

    /// The next stream of which data was sent.
    pub(crate) fn next_sent(&mut self) -> Option<u16> {
        self.sent_streams.as_mut().and_then(|it| it.pop_first())
    }
}

/// Streams of which data was sent; `None`: nobody asks.
pub(super) type SentStreams = Option<Box<BTreeSet<u16>>>;
