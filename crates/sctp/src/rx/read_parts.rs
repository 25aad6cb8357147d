//! Reading of parts: the next of all streams, or of one.

use std::collections::VecDeque;

use super::message::{ReceivedMessage, ReceivedPart};
use super::ready_queue::Deliverable;
use super::{Receiver, TooLong};
use crate::lazy_box::LazyBox;

/// Complete messages of key management, and their bytes as the window counts them.
pub(super) type KeyMessages = LazyBox<VecDeque<(ReceivedPart, u64)>>;

impl Receiver {
    /// Whether [`Receiver::poll_part`] has none.
    #[inline(always)]
    pub(crate) fn has_no_part(&self) -> bool {
        self.has_nothing() && self.assembly.has_none()
    }

    /// The next message for the application, or a part of one that exceeds the receive buffer or
    /// [`Config::partial_delivery_point`](crate::Config::partial_delivery_point). Taking it frees
    /// the receive buffer, and makes a SACK due if that opens a closed window.
    pub fn poll_part(&mut self) -> Option<ReceivedPart> {
        self.assembly.give_back().or_else(|| self.take_first())
    }

    /// Number of events before the first readable entry; `None` if there is none.
    #[inline]
    pub(crate) fn preceding_events(&self) -> Option<u32> {
        self.ready.first().map(|it| it.preceding)
    }

    /// Like [`Self::preceding_events`], for `stream` alone.
    pub(crate) fn preceding_events_on(&self, stream: u16) -> Option<u32> {
        self.ready.first_on(stream).map(|it| it.preceding)
    }

    /// Like [`Receiver::poll_part`], for `stream` alone.
    pub fn poll_part_on(&mut self, stream: u16) -> Option<ReceivedPart> {
        if let Some(part) = self.assembly.take(stream) {
            return Some(part);
        }
        self.take_first_on(stream)
    }

    /// Like [`Receiver::poll_message`], for `stream` alone.
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

    /// Keeps complete messages of key management apart from those of the user.
    pub(crate) fn expect_key_messages(&mut self, expected: bool) {
        self.key_messages = expected.then(KeyMessages::default);
    }

    /// Whether [`Self::poll_key_message`] has one.
    pub(crate) fn has_key_messages(&self) -> bool {
        (self.key_messages.as_ref()).is_some_and(|it| it.has_any())
    }

    /// The next message of key management.
    pub(crate) fn poll_key_message(&mut self) -> Option<ReceivedMessage> {
        let (part, bytes) = (self.key_messages.as_mut()?.change(|it| it.pop_front())).flatten()?;
        self.is_taken(&part, bytes);
        Some(part.into_message())
    }

    /// An entry with `bytes`, as the window counts them, was taken out of the queue and is no
    /// longer buffered.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, part: &ReceivedPart, bytes: u64) {
        let (length, chunks) = (part.payload.len(), part.payload.chunks());
        self.is_read(part.stream, bytes, length, chunks);
    }

    /// Data of a stream in `chunks`, `bytes` as the window counts them and `length` of user data,
    /// is no longer buffered.
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
