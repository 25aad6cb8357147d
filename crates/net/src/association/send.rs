//! Sending of messages, with or without a receipt.

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

/// Size of the largest message that is sent in the caller's task, bytes. The driver sends larger
/// messages, because the caller can continue meanwhile; for small ones waking the driver costs more
/// than packing them.
const MAX_INLINE_SEND: usize = 4_096;

/// Maximum number of messages and of bytes that are queued before the lock of the endpoint is
/// released for other tasks.
const MAX_MESSAGES_UNDER_LOCK: usize = 128;
const MAX_BYTES_UNDER_LOCK: usize = 64 * 1024;

/// A message to be queued.
struct PendingMessage<'a> {
    now: Nanos,
    bytes: Bytes,
    options: &'a SendOptions,
}

/// Function that queues a message, and returns a value for the sender (for example the receipt). A
/// trait and not a function pointer, so that the compiler inlines each function.
trait Queue<T>:
    Fn(&mut Protocol, &mut Receipts, PendingMessage<'_>) -> Result<T, Refusal> + Copy
{
}

impl<T, F: Fn(&mut Protocol, &mut Receipts, PendingMessage<'_>) -> Result<T, Refusal> + Copy>
    Queue<T> for F
{
}

/// Reason why a message was not queued; the caller keeps the message.
enum QueueError {
    /// The send buffer has no space for the message at present. The value is the size of the
    /// message, bytes.
    Full(usize),
    Error(SendError),
}

impl From<SendError> for QueueError {
    fn from(error: SendError) -> Self {
        Self::Error(error)
    }
}

/// Queues messages of an association while the lock of its endpoint is held.
struct SendContext<'a> {
    association: &'a mut Protocol,
    receipts: &'a mut Receipts,
    /// Send buffer, bytes. All unacknowledged messages together may use up to twice this size.
    send_buffer: usize,
    /// The current time, or 0 if the time has no effect on the message.
    now: Nanos,
    /// True after a message was queued.
    queued: bool,
}

impl SendContext<'_> {
    /// Queues the message, and takes it out of `bytes`. If it could not be queued, `bytes` is
    /// unchanged.
    fn put<T>(
        &mut self,
        bytes: &mut Option<Bytes>,
        options: &SendOptions,
        queue: impl Queue<T>,
    ) -> Result<T, QueueError> {
        let association = &mut *self.association;
        let size = bytes.as_ref().map_or(0, Bytes::len);
        if is_full(association, size, self.send_buffer) && !association.is_closed() {
            return Err(QueueError::Full(size));
        }
        // A message that may be refused is cloned, because a refused message is returned to the
        // sender. Other messages are not cloned, because a clone costs an update of the reference
        // count.
        let kept = match association.send_buffer().accepts(options.stream, size) {
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
            Refusal::BufferFull => QueueError::Full(size),
            Refusal::NoSuchStream { stream, streams } => {
                SendError::NoSuchStream { stream, streams }.into()
            }
            Refusal::Empty => SendError::Empty.into(),
            Refusal::Closing => SendError::Closing.into(),
            other => SendError::Refused(other).into(),
        })
    }
}

/// Returns true if a message of `size` bytes has to wait because too much memory is in use. It
/// waits if the total would exceed twice the send buffer, and either messages are still unsent or
/// more than the send buffer is unacknowledged. Therefore even a message larger than the limit can
/// be sent.
pub(crate) fn is_full(association: &Protocol, size: usize, send_buffer: usize) -> bool {
    let held = association.send_buffer().used();
    held + size > 2 * send_buffer && (held > send_buffer || association.send_buffer().unsent() > 0)
}

/// Removes a receipt number that the caller may have set, because receipt numbers are assigned
/// here.
fn without_number(options: SendOptions) -> SendOptions {
    options.with_receipt(None)
}

/// Queues a message without a receipt.
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

/// Queues a message with a receipt, which is returned.
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
    /// Queues a message with `options`, and waits while the send buffer is full. By default the
    /// message is sent in order on stream 0; [`SendOptions::on`] selects another stream. With the
    /// stream `None`, the allocation policy (`sctp.stream_allocation`) selects the stream.
    ///
    /// A message counts as sent when it is queued; [`Association::shutdown`] waits until everything
    /// has arrived. Messages of one task on one stream arrive in the order of the calls.
    ///
    /// Cancel-safe: if the future is dropped before it is ready, the message was not queued.
    ///
    /// # Errors
    /// The stream does not exist, the message is empty or too large, or the association is closing
    /// or closed.
    pub async fn send(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.send_on(bytes.into(), without_number(options), without_receipt)
            .await
    }

    /// Like [`Association::send`], with a receipt: a future that completes when the peer has
    /// acknowledged the message, or with an error if that can no longer happen ([`Receipt`]). The
    /// peer may delay its acknowledgement by 200 ms; `options` with `immediate` request an
    /// immediate acknowledgement.
    ///
    /// The association stores a receipt with its message until the message is acknowledged or
    /// abandoned. Messages without a receipt cause no such cost.
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
    /// Cancel-safe: if this future is dropped before it is ready, the message was not queued. If
    /// the receipt is dropped, the message is still sent.
    ///
    /// # Errors
    /// The errors of [`Association::send`].
    pub async fn send_with_receipt(
        &self,
        bytes: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<Receipt, SendError> {
        self.send_on(bytes.into(), without_number(options), with_receipt)
            .await
    }

    /// Queues `messages` in order, and waits while the send buffer is full. Like
    /// [`Association::send`] for each message, but the fixed cost of a call (the lock of the
    /// endpoint, the lookup of the association) is shared by all messages. Use it for several
    /// messages at once, in particular small ones.
    ///
    /// Queued messages are removed from `messages`.
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
    /// Cancel-safe: if the future is dropped before it is ready, `messages` contains the messages
    /// that were not queued.
    ///
    /// # Errors
    /// The errors of [`Association::send`]. The error concerns the first message that remains in
    /// `messages`; all messages before it were queued.
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
                    Err(QueueError::Full(_)) => return Poll::Pending,
                    Err(QueueError::Error(error)) => return Poll::Ready(Err(error)),
                }
            }
        };
        if let Poll::Ready(done) = attempt() {
            return done;
        }
        self.once_there_is_room(attempt).await
    }

    /// Sends on `stream`. The first attempt is made immediately, because the buffer usually has
    /// space and the future then need not store the message.
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

    /// Repeats `attempt` whenever the send buffer may have space, until `attempt` returns a result.
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

    /// Queues a message if the send buffer has space for it now.
    ///
    /// # Errors
    /// The errors of [`Association::send`]. If the send buffer is full, the error contains the
    /// message.
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
            QueueError::Full(_) => TrySendError::Full(bytes.unwrap_or_default()),
            QueueError::Error(error) => error.into(),
        })
    }

    /// Queues messages in order until `MAX_MESSAGES_UNDER_LOCK` or `MAX_BYTES_UNDER_LOCK` is
    /// reached. Queued messages are removed from `messages`.
    fn queue_some(
        &self,
        messages: &mut VecDeque<Bytes>,
        options: &SendOptions,
    ) -> Result<(), QueueError> {
        let most = self.shared.max_message_size;
        self.with_send_context(options, |context| {
            let mut room = MAX_BYTES_UNDER_LOCK;
            for _ in 0..MAX_MESSAGES_UNDER_LOCK {
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

    /// Runs `put` under the lock to queue messages with these options. A small message is sent
    /// immediately if no data is queued before it.
    fn with_send_context<T>(
        &self,
        options: &SendOptions,
        put: impl FnOnce(&mut SendContext<'_>) -> Result<T, QueueError>,
    ) -> Result<T, QueueError> {
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
        // If no data is queued or in flight, the message is sent immediately, because waiting to
        // bundle it with other data would only add delay.
        let idle = association.send_buffer().unsent() == 0 && association.send_buffer().used() == 0;
        // Reads the clock only if the time has an effect, which is rare.
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
        let little = association.send_buffer().unsent() <= MAX_INLINE_SEND;
        if let Err(QueueError::Full(size)) = done {
            state.wait_writable(self.id, size);
        }
        if queued && idle && little {
            self.send_at_once(guard, now);
        } else if queued {
            state.wake_driver();
        }
        done
    }

    /// Sends the queued messages in the task of the caller, because that costs less than waking the
    /// driver. The driver is woken only for remaining work: packets that the socket did not accept,
    /// its timer, or events.
    fn send_at_once(&self, mut guard: StateGuard<'_>, now: Nanos) {
        let state: &mut EndpointState = &mut guard;
        let may = state.driver_sleeps && state.observer.is_none();
        let Some(mut io) = may.then(|| self.shared.driver_shared.try_io()).flatten() else {
            return state.wake_driver();
        };
        if !gather_one(state, self.id, now, &mut io) {
            state.wake_driver();
        }
        // The system call is made after the lock of the endpoint is released.
        drop(guard);
        if !io.try_flush() {
            self.shared.lock().wake_driver();
        }
    }
}
