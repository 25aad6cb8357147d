//! Sending: messages are queued with the protocol, with a receipt or without.

use std::collections::VecDeque;
use std::task::Poll;

use anabranch_sctp::{Association as Protocol, SendError as Refusal, SendOptions};
use anabranch_transport::Nanos;
use bytes::Bytes;

use super::Association;
use crate::endpoint_driver::gather_one;
use crate::endpoint_state::{EndpointState, StateGuard};
use crate::error::{SendError, TrySendError};
use crate::receipt::{Receipt, Receipts};

/// Bytes of the largest message that is sent in the caller's task: what takes longer to put into packets than to wake the driver is the
/// driver's, beside which the caller may go on.
const MOST_AT_ONCE: usize = 4_096;

/// Messages, and bytes, that are queued before others may have the lock of the endpoint.
const MOST_UNDER_LOCK: usize = 128;
const BYTES_UNDER_LOCK: usize = 64 * 1024;

/// A message to be queued.
struct PendingMessage<'a> {
    now: Nanos,
    bytes: Bytes,
    options: &'a SendOptions,
}

/// Queues a message, and gives what its sender gets. Each way is a piece of its own with all that calls it.
trait Queue<T>:
    Fn(&mut Protocol, &mut Receipts, PendingMessage<'_>) -> Result<T, Refusal> + Copy
{
}

impl<T, F: Fn(&mut Protocol, &mut Receipts, PendingMessage<'_>) -> Result<T, Refusal> + Copy>
    Queue<T> for F
{
}

/// Why a message was not queued, which its sender still has.
enum Unsent {
    /// There is no room for its bytes now, which are so many.
    Full(usize),
    Error(SendError),
}

impl From<SendError> for Unsent {
    fn from(error: SendError) -> Self {
        Self::Error(error)
    }
}

/// Where messages are given to an association, under the lock of its endpoint.
struct SendContext<'a> {
    association: &'a mut Protocol,
    receipts: &'a mut Receipts,
    /// Twice that all its messages may hold until they are acknowledged, bytes.
    send_buffer: usize,
    /// Told only where it matters.
    now: Nanos,
    /// Something was queued.
    queued: bool,
}

impl SendContext<'_> {
    /// Queues the message, which is taken if it is.
    fn put<T>(
        &mut self,
        bytes: &mut Option<Bytes>,
        options: &SendOptions,
        queue: impl Queue<T>,
    ) -> Result<T, Unsent> {
        let association = &mut *self.association;
        let size = bytes.as_ref().map_or(0, Bytes::len);
        if is_full(association, size, self.send_buffer) && !association.is_closed() {
            return Err(Unsent::Full(size));
        }
        // What may be refused is kept for its sender. To count another reference costs, and most are taken.
        let kept = match association.takes(options.stream, size) {
            true => None,
            false => bytes.clone(),
        };
        let message = PendingMessage {
            now: self.now,
            bytes: bytes.take().unwrap_or_default(),
            options,
        };
        let queued = queue(association, self.receipts, message);
        match queued {
            Ok(_) => self.queued = true,
            Err(_) => *bytes = kept,
        }
        queued.map_err(|refusal| match refusal {
            Refusal::BufferFull => Unsent::Full(size),
            Refusal::NoSuchStream { stream, streams } => {
                SendError::NoSuchStream { stream, streams }.into()
            }
            Refusal::Empty => SendError::Empty.into(),
            Refusal::Closing => SendError::Closing.into(),
            other => SendError::Refused(other).into(),
        })
    }
}

/// Whether a message of `size` has to wait, since messages hold too much until they are acknowledged: twice the send buffer with it, or where
/// nothing else is queued, the send buffer without it. So one that is larger than that is sent, too.
pub(crate) fn is_full(association: &Protocol, size: usize, send_buffer: usize) -> bool {
    let held = association.held_to_send();
    held + size > 2 * send_buffer && (held > send_buffer || association.buffered() > 0)
}

/// Whether there is a receipt, and its number, is decided here.
fn without_number(options: SendOptions) -> SendOptions {
    options.with_receipt(None)
}

/// Without a receipt.
#[inline]
fn without_receipt(
    association: &mut Protocol,
    _: &mut Receipts,
    message: PendingMessage<'_>,
) -> Result<(), Refusal> {
    let PendingMessage {
        now,
        bytes,
        options,
    } = message;
    association.send(now, bytes, options)
}

/// With a receipt.
fn with_receipt(
    association: &mut Protocol,
    receipts: &mut Receipts,
    message: PendingMessage<'_>,
) -> Result<Receipt, Refusal> {
    let PendingMessage {
        now,
        bytes,
        options,
    } = message;
    let number = receipts.next_number();
    association.send(now, bytes, &options.with_receipt(Some(number)))?;
    Ok(receipts.open())
}

impl Association {
    /// Queues a message as `options` say, and waits while the send buffer is full: on stream 0 and in
    /// order by default, on another by [`SendOptions::on`], or with the stream `None` on whichever of
    /// the streams in use has its turn (`sctp.allocation`).
    ///
    /// A message counts as sent when it is queued; [`Association::shutdown`] waits until everything
    /// has arrived. Messages of one task on one stream arrive in the order of the calls.
    ///
    /// Cancel-safe: if the future is dropped before it is ready, the message was not queued.
    ///
    /// # Errors
    /// No such stream, an empty or too large message, or the association is closing or closed.
    pub async fn send(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.send_on(bytes.into(), without_number(options), without_receipt)
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
    /// let receipt = association.send_with_receipt("a record", options).await?;
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
    pub async fn send_with_receipt(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        self.send_on(bytes.into(), without_number(options), with_receipt)
            .await
    }

    /// Queues `messages`, the first of them first, and waits while the send buffer is full. As [`Association::send`] for each of
    /// them, but what a call costs by itself (the endpoint's lock, a look at the association) is paid once for many: for who has
    /// several messages at hand, above all small ones.
    ///
    /// What is queued is taken out of `messages`.
    ///
    /// ```no_run
    /// use std::collections::VecDeque;
    ///
    /// use anabranch_net::{Association, SendError, SendOptions};
    /// use bytes::Bytes;
    ///
    /// # async fn forward(association: Association, records: Vec<Bytes>) -> Result<(), SendError> {
    /// let mut records = VecDeque::from(records);
    /// association.send_all(&mut records, SendOptions::default()).await?;
    /// assert!(records.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Cancel-safe: if the future is dropped before it is ready, `messages` has those that were not queued.
    ///
    /// # Errors
    /// As [`Association::send`]; the message that it is about is the first of `messages` then, and those before it were queued.
    pub async fn send_all(
        &self,
        messages: &mut VecDeque<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let options = without_number(options);
        let mut attempt = || {
            loop {
                match self.queue_some(messages, &options) {
                    Ok(()) if messages.is_empty() => return Poll::Ready(Ok(())),
                    Ok(()) => {}
                    Err(Unsent::Full(_)) => return Poll::Pending,
                    Err(Unsent::Error(error)) => return Poll::Ready(Err(error)),
                }
            }
        };
        if let Poll::Ready(done) = attempt() {
            return done;
        }
        self.once_there_is_room(attempt).await
    }

    /// Tries now: mostly there is room, and no future has to be made of the message that waits for some.
    #[inline]
    async fn send_on<T>(
        &self,
        bytes: Bytes,
        options: SendOptions,
        queue: impl Queue<T>,
    ) -> Result<T, SendError> {
        let mut bytes = match self.try_send_on(bytes, &options, queue) {
            Ok(queued) => return Ok(queued),
            Err(TrySendError::Error(error)) => return Err(error),
            Err(TrySendError::Full(given_back)) => Some(given_back),
        };
        self.once_there_is_room(|| {
            let Some(given) = bytes.take() else {
                return Poll::Pending;
            };
            match self.try_send_on(given, &options, queue) {
                Ok(queued) => Poll::Ready(Ok(queued)),
                Err(TrySendError::Error(error)) => Poll::Ready(Err(error)),
                Err(TrySendError::Full(given_back)) => {
                    bytes = Some(given_back);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Tries each time that there may be room to send.
    async fn once_there_is_room<T>(&self, mut attempt: impl FnMut() -> Poll<T>) -> T {
        loop {
            let mut notified = std::pin::pin!(self.signals.writable.notified());
            notified.as_mut().enable();
            if let Poll::Ready(done) = attempt() {
                return done;
            }
            notified.await;
        }
    }

    /// Queues a message if there is room for it now.
    ///
    /// # Errors
    /// As [`Association::send`]; or the send buffer is full, and the message is given back.
    pub fn try_send(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), TrySendError> {
        self.try_send_on(bytes.into(), &without_number(options), without_receipt)
    }

    fn try_send_on<T>(
        &self,
        bytes: Bytes,
        options: &SendOptions,
        queue: impl Queue<T>,
    ) -> Result<T, TrySendError> {
        let (size, most) = (bytes.len(), self.shared.max_message_size);
        if size > most {
            return Err(SendError::TooLarge { size, most }.into());
        }
        let mut bytes = Some(bytes);
        let queued =
            self.with_send_context(options, |context| context.put(&mut bytes, options, queue));
        queued.map_err(|unsent| match unsent {
            Unsent::Full(_) => TrySendError::Full(bytes.unwrap_or_default()),
            Unsent::Error(error) => error.into(),
        })
    }

    /// Queues messages, the first of them first, as many as are queued under one lock. What is queued is taken out of `messages`.
    fn queue_some(
        &self,
        messages: &mut VecDeque<Bytes>,
        options: &SendOptions,
    ) -> Result<(), Unsent> {
        let most = self.shared.max_message_size;
        self.with_send_context(options, |context| {
            let mut room = BYTES_UNDER_LOCK;
            for _ in 0..MOST_UNDER_LOCK {
                let Some(bytes) = messages.pop_front() else {
                    break;
                };
                let size = bytes.len();
                room = room.saturating_sub(size);
                let mut bytes = Some(bytes);
                let queued = match size > most {
                    true => Err(SendError::TooLarge { size, most }.into()),
                    false => context.put(&mut bytes, options, without_receipt),
                };
                if queued.is_err() {
                    if let Some(refused) = bytes {
                        messages.push_front(refused);
                    }
                    return queued;
                }
                if room == 0 {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Lets `put` queue messages that are sent so under the lock; what was queued goes at once where that is small and nothing is before it.
    fn with_send_context<T>(
        &self,
        options: &SendOptions,
        put: impl FnOnce(&mut SendContext<'_>) -> Result<T, Unsent>,
    ) -> Result<T, Unsent> {
        let mut guard = self.shared.lock();
        let state: &mut EndpointState = &mut guard;
        if state.stopped {
            return Err(SendError::Closing.into());
        }
        let send_buffer = state.endpoint.config().send_buffer;
        let association = state.endpoint.association_mut(self.id);
        let (Some(association), Some(entry)) = (association, state.entries.get_mut(&self.id))
        else {
            return Err(SendError::Closing.into());
        };
        // Nothing is on the way and nothing waits: what is queued now leaves at once, alone, so that nothing is gained by a wait for more.
        let idle = association.buffered() == 0 && association.held_to_send() == 0;
        // Most messages need no look at the clock.
        let now = match idle || association.has_lifetime(options) {
            true => self.shared.now(),
            false => 0,
        };
        let mut context = SendContext {
            association,
            receipts: &mut entry.receipts,
            send_buffer,
            now,
            queued: false,
        };
        let done = put(&mut context);
        let queued = context.queued;
        let little = association.buffered() <= MOST_AT_ONCE;
        if let Err(Unsent::Full(size)) = done {
            state.wait_writable(self.id, size);
        }
        if queued && idle && little {
            self.send_at_once(guard, now);
        } else if queued {
            state.wake_driver();
        }
        done
    }

    /// Sends what was just queued in the task of the caller, which costs less than to wake the driver for it. That is woken where it has to
    /// do more: to send what the socket does not take, to set its timer, to tell what happened.
    fn send_at_once(&self, mut guard: StateGuard<'_>, now: Nanos) {
        let state: &mut EndpointState = &mut guard;
        let may = state.driver_sleeps && state.observer.is_none();
        let Some(mut io) = may.then(|| self.shared.driver_shared.try_io()).flatten() else {
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
