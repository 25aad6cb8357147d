//! What data channels ask of an association: the seam between the two.

use anabranch_sctp::{Association, ReconfigError, Reconfiguration, SendOptions};
use anabranch_transport::Nanos;
use bytes::Bytes;

/// A message for the association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outgoing {
    /// Its stream.
    pub stream: u16,
    /// Its Payload Protocol Identifier.
    pub ppid: u32,
    /// It may overtake others.
    pub unordered: bool,
    /// When it is given up (RFC 3758 §4.1); `None`: never.
    pub deadline: Option<Nanos>,
    /// How often it is sent again before it is given up (RFC 7496 §3.1); `None`: for ever.
    pub max_retransmits: Option<u32>,
    /// The user data; not empty.
    pub payload: Bytes,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// There is no room now.
    Full,
    /// There never will be.
    Closing,
}

/// The association does not speak RE-CONFIG, or the peer does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoReset;

/// An association, as channels use it.
pub trait Carrier {
    /// Bytes of user data taken for the stream and not yet sent. What is taken for one stream is sent in that order.
    fn buffered(&self, stream: u16) -> usize;

    /// What is sent of the stream beside others is in proportion to this (RFC 8831 §6.4, RFC 8260 §3.6).
    fn set_weight(&mut self, stream: u16, weight: u16);

    /// Takes a message.
    ///
    /// # Errors
    /// It was not taken.
    fn send(&mut self, now: Nanos, message: Outgoing) -> Result<(), Refused>;

    /// Resets the stream outwards once all that was given for it is acknowledged (RFC 8831 §6.7).
    ///
    /// # Errors
    /// It cannot.
    fn reset(&mut self, stream: u16) -> Result<(), NoReset>;
}

impl Carrier for Association {
    fn buffered(&self, stream: u16) -> usize {
        self.buffered_on(stream)
    }

    fn set_weight(&mut self, stream: u16, weight: u16) {
        self.set_stream_value(stream, weight);
    }

    fn send(&mut self, now: Nanos, message: Outgoing) -> Result<(), Refused> {
        let Outgoing {
            stream,
            ppid,
            unordered,
            deadline,
            max_retransmits,
            payload,
        } = message;
        // Without effect where the peer does not speak PR-SCTP: then what was given is tried until it arrives.
        let options = SendOptions::on(stream)
            .with_ppid(ppid)
            .with_unordered(unordered)
            .with_lifetime(deadline.map(|deadline| deadline.saturating_sub(now)))
            .with_max_retransmits(max_retransmits);
        Self::send(self, now, payload, &options).map_err(|error| match error {
            anabranch_sctp::SendError::BufferFull => Refused::Full,
            _ => Refused::Closing,
        })
    }

    fn reset(&mut self, stream: u16) -> Result<(), NoReset> {
        // The time matters to a reset of the association alone.
        match self.reconfigure(0, &Reconfiguration::reset_outgoing([stream])) {
            // The peer has asked for it, too.
            Ok(()) | Err(ReconfigError::AlreadyInProgress) => Ok(()),
            Err(_) => Err(NoReset),
        }
    }
}
