//! Output types: messages and events that an association delivers to its user.

use crate::event::Event;
use crate::rx::{ReceivedMessage, ReceivedPart};

/// Output of an association ([`Association::poll_output`](crate::Association::poll_output)), in the
/// order of delivery. The type is exhaustive, so that a new output causes a compiler error in users
/// that match all outputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Complete message (RFC 9260 §11.1.7).
    Message(ReceivedMessage),
    /// Part of a partially delivered message (RFC 9260 §6.9).
    MessagePart(ReceivedPart),
    /// Event of the association.
    Event(Event),
    /// The send buffer has the space for which the user waited
    /// ([`Association::wait_writable`](crate::Association::wait_writable)), or the association is
    /// closed.
    Writable,
    /// Data of this stream was sent for the first time, or was abandoned. The user must request
    /// this output by [`Association::report_sent`](crate::Association::report_sent).
    Sent {
        /// Stream number.
        stream: u16,
    },
}

const MESSAGES: u8 = 1;
const PARTS: u8 = 2;
const EVENTS: u8 = 4;
const RECEIPTS: u8 = 8;
const WRITABLE: u8 = 16;
const SENT: u8 = 32;

/// Kinds of outputs that one reader of an association wants. Other outputs stay queued for other
/// readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    outputs: u8,
    stream: Option<u16>,
}

impl Interest {
    /// Complete messages: parts are reassembled up to
    /// [`Config::max_message`](crate::Config::max_message).
    pub const MESSAGES: Self = Self::of(MESSAGES);
    /// Complete messages, and parts of partially delivered messages.
    pub const PARTS: Self = Self::of(PARTS);
    /// Events, including receipts.
    pub const EVENTS: Self = Self::of(EVENTS | RECEIPTS);
    /// [`Event::Receipt`]. Without [`Interest::EVENTS`], a receipt is returned even before messages
    /// that became readable earlier.
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

    /// Union of these outputs and `others`.
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

    /// Restricts messages to `stream`. Events that precede all queued messages are also returned,
    /// as well as [`Event::PartialDeliveryAborted`] of this stream.
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
