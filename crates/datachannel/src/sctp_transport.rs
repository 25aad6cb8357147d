//! Interface between data channels and the association that carries their messages.

use anabranch_sctp::{Association, ReconfigError, Reconfiguration, SendOptions};
use anabranch_transport::Nanos;
use bytes::Bytes;

/// A message that the association should send.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutgoingMessage {
    /// Stream of the message.
    pub stream: u16,
    /// Payload Protocol Identifier of the message.
    pub ppid: u32,
    /// Whether the message may be delivered out of order.
    pub unordered: bool,
    /// Time at which the message is abandoned (RFC 3758 §4.1); `None`: never.
    pub deadline: Option<Nanos>,
    /// Number of retransmissions after which the message is abandoned (RFC 7496 §3.1); `None`:
    /// unlimited.
    pub max_retransmits: Option<u32>,
    /// User data; must not be empty.
    pub payload: Bytes,
}

/// Reasons for which a message is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendRefused {
    /// The send buffer is full at present.
    Full,
    /// The association accepts no more messages.
    Closing,
}

/// Error of [`SctpTransport::reset`]: at least one end does not support RE-CONFIG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReconfigUnavailable;

/// An association as channels use it.
pub trait SctpTransport {
    /// Number of bytes of user data that were accepted for the stream and are not sent yet.
    /// Messages of one stream must be sent in the order in which they were accepted.
    fn buffered(&self, stream: u16) -> usize;

    /// Sets the stream's weight: its bandwidth share relative to other streams (RFC 8831 §6.4, RFC
    /// 8260 §3.6).
    fn set_weight(&mut self, stream: u16, weight: u16);

    /// Queues a message.
    ///
    /// # Errors
    /// Describes why the message was not accepted.
    fn send(&mut self, now: Nanos, message: OutgoingMessage) -> Result<(), SendRefused>;

    /// Resets the outgoing stream once all its data is acknowledged (RFC 8831 §6.7).
    ///
    /// # Errors
    /// RE-CONFIG is not supported.
    fn reset(&mut self, stream: u16) -> Result<(), ReconfigUnavailable>;
}

impl SctpTransport for Association {
    fn buffered(&self, stream: u16) -> usize {
        self.send_buffer().unsent_on(stream)
    }

    fn set_weight(&mut self, stream: u16, weight: u16) {
        self.set_stream_value(stream, weight);
    }

    fn send(&mut self, now: Nanos, message: OutgoingMessage) -> Result<(), SendRefused> {
        let OutgoingMessage {
            stream,
            ppid,
            unordered,
            deadline,
            max_retransmits,
            payload,
        } = message;
        // The limits have no effect if the peer does not support PR-SCTP: messages are then
        // retransmitted until they arrive.
        let options = SendOptions::on(stream)
            .with_ppid(ppid)
            .with_unordered(unordered)
            .with_lifetime(deadline.map(|deadline| deadline.saturating_sub(now)))
            .with_max_retransmits(max_retransmits);
        Self::send(self, now, payload, &options).map_err(|error| match error {
            anabranch_sctp::SendError::BufferFull => SendRefused::Full,
            _ => SendRefused::Closing,
        })
    }

    fn reset(&mut self, stream: u16) -> Result<(), ReconfigUnavailable> {
        // The time is 0, because it has an effect only for a reset of the association.
        match self.reconfigure(0, &Reconfiguration::reset_outgoing([stream])) {
            // The peer has already requested a reset of the stream.
            Ok(()) | Err(ReconfigError::AlreadyInProgress) => Ok(()),
            Err(_) => Err(ReconfigUnavailable),
        }
    }
}
