//! Sending: messages are queued with the protocol, with a receipt or without.

use std::sync::MutexGuard;

use anabranch_sctp::{Association as Protocol, SendError as Refusal, SendOptions};
use anabranch_transport::Nanos;
use bytes::Bytes;

use super::Association;
use crate::error::{SendError, TrySendError};
use crate::port::gather_one;
use crate::receipt::{Receipt, Receipts};
use crate::shared::State;

/// Bytes of the largest message that is sent in the caller's task: what takes longer to put into packets than to wake the driver is the
/// driver's, beside which the caller may go on.
const MOST_AT_ONCE: usize = 4_096;

/// A message to be queued.
struct Given<'a> {
    now: Nanos,
    stream: Option<u16>,
    bytes: Bytes,
    options: &'a SendOptions,
}

/// Queues a message, and gives what its sender gets.
type Queue<T> = fn(&mut Protocol, &mut Receipts, Given<'_>) -> Result<T, Refusal>;

/// Without a receipt.
fn not_asked(
    association: &mut Protocol,
    _: &mut Receipts,
    message: Given<'_>,
) -> Result<(), Refusal> {
    let Given {
        now,
        stream,
        bytes,
        options,
    } = message;
    association.send_with(now, stream, bytes, options)
}

/// With a receipt.
fn asked(
    association: &mut Protocol,
    receipts: &mut Receipts,
    message: Given<'_>,
) -> Result<Receipt, Refusal> {
    let Given {
        now,
        stream,
        bytes,
        options,
    } = message;
    let number = receipts.next_number();
    association.send_for_receipt(now, stream, bytes, options, number)?;
    Ok(receipts.open())
}

impl Association {
    /// Queues a message on `stream`, and waits while the send buffer is full.
    ///
    /// A message counts as sent when it is queued; [`Association::shutdown`] tells when everything has arrived. Messages of
    /// one task on one stream arrive in the order of the calls.
    ///
    /// Cancel-safe: if the future is dropped before it is ready, the message was not queued.
    ///
    /// # Errors
    /// No such stream, an empty or too large message, or the association is closing or closed.
    pub async fn send(
        &self,
        stream: u16,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.send_on(Some(stream), bytes.into(), options, not_asked)
            .await
    }

    /// As [`Association::send`], on whichever of the streams in use has its turn; how many are in use is the business of
    /// the stream allocation (`sctp.allocation`).
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send_spread(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.send_on(None, bytes.into(), options, not_asked).await
    }

    /// As [`Association::send`]; the peer is asked to acknowledge the message at once (the I bit, RFC 9260 §6.1), for which it
    /// may else wait 200 ms.
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send_immediate(
        &self,
        stream: u16,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let options = options.with_immediate(true);
        self.send_on(Some(stream), bytes.into(), options, not_asked)
            .await
    }

    /// As [`Association::send`], with a receipt: a future that gives when the peer has acknowledged the message, or why it will not
    /// ([`Receipt`]). The peer may delay its acknowledgement by 200 ms; `options` with `immediate` ask it not to.
    ///
    /// A receipt is kept with the association until the message is acknowledged or given up, beside the message. Messages
    /// that were sent without one cost nothing for it.
    ///
    /// ```no_run
    /// use anabranch_net::{Association, SendOptions};
    ///
    /// # async fn store(association: Association) -> Result<(), Box<dyn std::error::Error>> {
    /// let options = SendOptions::default().with_immediate(true);
    /// let receipt = association.send_for_receipt(0, "a record", options).await?;
    /// // Queued. Other messages may be sent meanwhile.
    /// receipt.await?;
    /// // The peer has it.
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel-safe: if this future is dropped before it is ready, the message was not queued. If the receipt is dropped, the message is sent
    /// all the same, and nobody is told.
    ///
    /// # Errors
    /// As [`Association::send`].
    pub async fn send_for_receipt(
        &self,
        stream: u16,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        self.send_on(Some(stream), bytes.into(), options, asked)
            .await
    }

    async fn send_on<T>(
        &self,
        stream: Option<u16>,
        bytes: Bytes,
        options: SendOptions,
        queue: Queue<T>,
    ) -> Result<T, SendError> {
        let mut bytes = match self.try_send_on(stream, bytes, options, queue) {
            Err(TrySendError::Full(bytes)) => bytes,
            Err(TrySendError::Error(error)) => return Err(error),
            Ok(queued) => return Ok(queued),
        };
        loop {
            let mut notified = std::pin::pin!(self.signals.writable.notified());
            notified.as_mut().enable();
            bytes = match self.try_send_on(stream, bytes, options, queue) {
                Err(TrySendError::Full(bytes)) => bytes,
                Err(TrySendError::Error(error)) => return Err(error),
                Ok(queued) => return Ok(queued),
            };
            notified.await;
        }
    }

    /// Queues a message on `stream` if there is room for it now.
    ///
    /// # Errors
    /// As [`Association::send`]; or the send buffer is full, and the message is given back.
    pub fn try_send(
        &self,
        stream: u16,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), TrySendError> {
        self.try_send_on(Some(stream), bytes.into(), options, not_asked)
    }

    /// As [`Association::send_for_receipt`], if there is room for the message now.
    ///
    /// # Errors
    /// As [`Association::try_send`].
    pub fn try_send_for_receipt(
        &self,
        stream: u16,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, TrySendError> {
        self.try_send_on(Some(stream), bytes.into(), options, asked)
    }

    fn try_send_on<T>(
        &self,
        stream: Option<u16>,
        bytes: Bytes,
        options: SendOptions,
        queue: Queue<T>,
    ) -> Result<T, TrySendError> {
        let (size, most) = (bytes.len(), self.shared.max_message_size);
        if size > most {
            return Err(SendError::TooLarge { size, most }.into());
        }
        let mut guard = self.shared.lock();
        let state: &mut State = &mut guard;
        if state.stopped {
            return Err(SendError::Closing.into());
        }
        let config = state.endpoint.config();
        let most_held = 2 * config.send_buffer;
        let now = self.shared.now();
        let association = state.endpoint.association_mut(self.id);
        let (Some(association), Some(entry)) = (association, state.entries.get_mut(&self.id))
        else {
            return Err(SendError::Closing.into());
        };
        // Nothing is on the way and nothing waits: what is queued now leaves at once, alone, so that nothing is gained by a wait for more.
        let idle = association.buffered() == 0 && association.outstanding_chunks() == 0;
        let no_room = association.buffered() > 0 && association.held_to_send() + size > most_held;
        // The bytes are a counted reference: to keep one costs next to nothing, and they are given back where full.
        let queued = if no_room && !association.is_closed() {
            Err(Refusal::BufferFull)
        } else {
            let message = Given {
                now,
                stream,
                bytes: bytes.clone(),
                options: &options,
            };
            queue(association, &mut entry.receipts, message)
        };
        match queued {
            Ok(queued) => {
                if idle && size <= MOST_AT_ONCE {
                    self.send_at_once(guard, now);
                } else {
                    state.wake_driver();
                }
                Ok(queued)
            }
            Err(Refusal::BufferFull) => {
                state.ask_for_room(self.id);
                Err(TrySendError::Full(bytes))
            }
            Err(Refusal::NoSuchStream { stream, streams }) => {
                Err(SendError::NoSuchStream { stream, streams }.into())
            }
            Err(Refusal::Empty) => Err(SendError::Empty.into()),
            Err(Refusal::Closing) => Err(SendError::Closing.into()),
            Err(other) => Err(SendError::Refused(other).into()),
        }
    }

    /// Sends what was just queued in the task of the caller, which costs less than to wake the driver for it. That is woken where it has to
    /// do more: to send what the socket does not take, to set its timer, to tell what happened.
    fn send_at_once(&self, mut guard: MutexGuard<'_, State>, now: Nanos) {
        let state: &mut State = &mut guard;
        let may = state.driver_sleeps && state.observer.is_none();
        let Some(mut io) = may.then(|| self.shared.ground.try_io()).flatten() else {
            return state.wake_driver();
        };
        if !gather_one(state, self.id, now, &mut io) {
            state.wake_driver();
        }
        // The call of the system is made without the endpoint's lock.
        drop(guard);
        if !io.try_flush() {
            self.shared.lock().wake_driver();
        }
    }
}
