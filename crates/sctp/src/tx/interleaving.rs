//! Sender side of interleaving: type and size of chunks with user data ([`crate::interleaving`]).

use anabranch_wire::extension::IData;

use super::Sender;
use crate::mtu::DATA_HEADER;
use crate::path::Paths;

impl Sender {
    /// Sets whether messages are interleaved, because both ends support I-DATA. Called before any
    /// data is sent.
    pub(crate) fn set_interleaving(&mut self, spoken: bool) {
        if self.outstanding.is_empty() {
            self.interleaving = spoken;
            self.header = if spoken { IData::HEADER } else { DATA_HEADER };
            self.queue.set_interleaving(spoken);
        }
    }

    /// Whether messages are interleaved.
    pub(crate) fn is_interleaving(&self) -> bool {
        self.interleaving
    }

    /// Sets the scheduler value of a stream.
    pub(crate) fn set_stream_value(&mut self, stream: u16, value: u16) {
        self.queue.set_value(stream, value);
    }

    /// Maximum length in bytes of the user data of a new chunk.
    #[inline]
    pub(crate) fn most_user_data(&self, paths: &Paths) -> usize {
        paths.max_user_data() + DATA_HEADER - self.header
    }
}
