//! What an association gives its user.

use crate::event::Event;
use crate::rx::{ReceivedMessage, ReceivedPart};

/// What an association gives its user ([`Association::poll_output`](crate::Association::poll_output)), in the order of delivery.
/// Exhaustive: a user that does not know an output fails to compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A whole message (RFC 9260 §11.1.7).
    Message(ReceivedMessage),
    /// A part of a message that does not come whole (RFC 9260 §6.9).
    MessagePart(ReceivedPart),
    /// Something happened.
    Event(Event),
    /// There is room to send, for which the user waited ([`Association::wait_writable`](crate::Association::wait_writable)), or the
    /// association is closed.
    Writable,
    /// Data of the stream was sent for the first time, or was abandoned ([`Association::report_sent`](crate::Association::report_sent)).
    Sent {
        /// The stream.
        stream: u16,
    },
}

const MESSAGES: u8 = 1;
const PARTS: u8 = 2;
const EVENTS: u8 = 4;
const RECEIPTS: u8 = 8;
const WRITABLE: u8 = 16;
const SENT: u8 = 32;

/// Which outputs a reader of an association takes. All else waits for other readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    outputs: u8,
    stream: Option<u16>,
}

impl Interest {
    /// Whole messages: what comes in parts is put together, up to [`Config::max_message`](crate::Config::max_message).
    pub const MESSAGES: Self = Self::of(MESSAGES);
    /// Messages, and parts of those that do not come whole.
    pub const PARTS: Self = Self::of(PARTS);
    /// Events, with receipts.
    pub const EVENTS: Self = Self::of(EVENTS | RECEIPTS);
    /// [`Event::Receipt`].
    pub const RECEIPTS: Self = Self::of(RECEIPTS);
    /// [`Output::Writable`].
    pub const WRITABLE: Self = Self::of(WRITABLE);
    /// [`Output::Sent`].
    pub const SENT: Self = Self::of(SENT);

    const fn of(outputs: u8) -> Self {
        Self {
            outputs,
            stream: None,
        }
    }

    /// These outputs and `others`.
    pub const fn and(self, others: Self) -> Self {
        Self {
            outputs: self.outputs | others.outputs,
            ..self
        }
    }

    /// These outputs without `others`.
    pub const fn without(self, others: Self) -> Self {
        Self {
            outputs: self.outputs & !others.outputs,
            ..self
        }
    }

    /// Of messages those of `stream` alone. Events come then that are before all that waits, and
    /// [`Event::PartialDeliveryAborted`] of that stream.
    pub const fn on(self, stream: u16) -> Self {
        Self {
            stream: Some(stream),
            ..self
        }
    }

    pub(crate) const fn stream(self) -> Option<u16> {
        self.stream
    }

    pub(crate) const fn messages(self) -> bool {
        self.outputs & MESSAGES != 0
    }

    pub(crate) const fn parts(self) -> bool {
        self.outputs & PARTS != 0
    }

    pub(crate) const fn events(self) -> bool {
        self.outputs & EVENTS != 0
    }

    pub(crate) const fn receipts(self) -> bool {
        self.outputs & RECEIPTS != 0
    }

    pub(crate) const fn writable(self) -> bool {
        self.outputs & WRITABLE != 0
    }

    pub(crate) const fn sent(self) -> bool {
        self.outputs & SENT != 0
    }
}
