//! Reading of parts and messages, from all streams or from one.

use std::collections::VecDeque;

use super::message::{ReceivedMessage, ReceivedPart};
use super::ready_queue::Deliverable;
use super::{Receiver, TooLong};
use crate::lazy_box::LazyBox;

/// Queue of complete key management messages, with the bytes for which they count in the window.
pub(super) type KeyMessages = LazyBox<VecDeque<(ReceivedPart, u64)>>;

impl Receiver {
    /// Whether [`Receiver::poll_part`] would return `None`.
    #[inline(always)]
    pub(crate) fn has_no_part(&self) -> bool {
        self.has_nothing() && self.assembly.has_none()
    }

    /// Returns the next message, or the next part of a message that exceeds the receive buffer or
    /// [`Config::partial_delivery_point`](crate::Config::partial_delivery_point). Frees the space
    /// of the returned data in the receive buffer. If this opens a closed window, a SACK becomes
    /// due.
    pub fn poll_part(&mut self) -> Option<ReceivedPart> {
        self.assembly.give_back().or_else(|| self.take_first())
    }

    /// Number of events before the first readable message or part; `None` if there is none.
    #[inline]
    pub(crate) fn preceding_events(&self) -> Option<u32> {
        self.ready.first().map(|it| it.preceding)
    }

    /// Like [`Self::preceding_events`], for data of `stream` only.
    pub(crate) fn preceding_events_on(&self, stream: u16) -> Option<u32> {
        self.ready.first_on(stream).map(|it| it.preceding)
    }

    /// Like [`Receiver::poll_part`], for data of `stream` only.
    pub fn poll_part_on(&mut self, stream: u16) -> Option<ReceivedPart> {
        if let Some(part) = self.assembly.take(stream) {
            return Some(part);
        }
        self.take_first_on(stream)
    }

    /// Like [`Receiver::poll_message`], for messages of `stream` only.
    pub(crate) fn poll_message_on(
        &mut self,
        stream: u16,
    ) -> Result<Option<ReceivedMessage>, TooLong> {
        while let Some(part) = self.take_first_on(stream) {
            if let Some(message) = self.whole_or_assembled(part)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    fn take_first_on(&mut self, stream: u16) -> Option<ReceivedPart> {
        if self.ready.is_empty() && self.window.to_advertise() == 0 {
            self.relieve_reader();
        }
        let delivered = self.statistics.messages;
        let Deliverable { part, bytes, .. } = self.ready.take_first_on(stream, delivered)?;
        self.is_taken(&part, bytes);
        Some(part)
    }

    /// Sets whether complete key management messages are separated from the user's messages.
    pub(crate) fn expect_key_messages(&mut self, expected: bool) {
        if expected != self.key_messages.is_some() {
            self.key_messages = expected.then(KeyMessages::default);
        }
    }

    /// Whether [`Self::poll_key_message`] would return a message.
    pub(crate) fn has_key_messages(&self) -> bool {
        (self.key_messages.as_ref()).is_some_and(|it| it.has_any())
    }

    /// Next key management message.
    pub(crate) fn poll_key_message(&mut self) -> Option<ReceivedMessage> {
        let (part, bytes) = (self.key_messages.as_mut()?.change(|it| it.pop_front())).flatten()?;
        self.is_taken(&part, bytes);
        Some(part.into_message())
    }

    /// Accounts for a part that was removed from the ready queue; `bytes` is the number of bytes
    /// for which it counted in the window.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, part: &ReceivedPart, bytes: u64) {
        let (length, chunks) = (part.payload.len(), part.payload.chunks());
        self.is_read(part.stream, bytes, length, chunks);
    }

    /// Accounts for data of a stream that is no longer buffered: `chunks` chunks with `length`
    /// bytes of user data, which counted for `bytes` bytes in the window.
    #[inline(always)]
    pub(super) fn is_read(&mut self, stream: u16, bytes: u64, length: usize, chunks: usize) {
        self.window.uncount(bytes);
        self.window.forget(length, chunks);
        self.held.free(stream, bytes);
        if self.window.update_is_worth_a_sack() {
            self.sack.demand();
        }
    }
}
