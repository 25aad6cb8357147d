//! Reading parts: the next of all streams, or of one.

use super::Receiver;
use super::delivery::Readable;
use super::message::ReceivedPart;

impl Receiver {
    /// The next message for the application, or part of one that is too long for the receive buffer, or longer than
    /// [`Config::partial_delivery_point`](crate::Config::partial_delivery_point). Taking it frees the receive buffer, and makes a SACK due if the window had
    /// been closed and is open again.
    pub fn poll_part(&mut self) -> Option<ReceivedPart> {
        self.assembly.give_back().or_else(|| self.read())
    }

    fn read(&mut self) -> Option<ReceivedPart> {
        self.is_read()?;
        self.ready.pop_front().map(|readable| readable.part)
    }

    /// As [`Receiver::poll_part`], of `stream` alone.
    pub fn poll_part_on(&mut self, stream: u16) -> Option<ReceivedPart> {
        if let Some(part) = self.assembly.take(stream) {
            return Some(part);
        }
        if self.ready.is_empty() && self.window.to_advertise() == 0 {
            self.relieve_reader();
        }
        let of_stream = |readable: &Readable| readable.part.stream == stream;
        let place = self.ready.iter().position(of_stream)?;
        if place == 0 {
            return self.read();
        }
        self.is_taken(place);
        self.ready.remove(place).map(|readable| readable.part)
    }

    /// What can be read at that place of the queue is held no longer.
    #[inline(always)]
    pub(super) fn is_taken(&mut self, place: usize) {
        let Some(Readable { part, bytes, .. }) = self.ready.get(place) else {
            return;
        };
        let (length, chunks) = (part.payload.len(), part.payload.chunks());
        self.window.uncount(*bytes);
        self.window.forget(length, chunks);
        self.held.free(part.stream, *bytes);
        if self.window.update_is_worth_a_sack() {
            self.sack.demand();
        }
    }
}
