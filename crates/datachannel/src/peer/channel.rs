//! Handles of data channels.

use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Notify;

use super::shared::{SharedHandle, State};
use crate::channel::{ChannelId, ChannelOptions, Payload};
use crate::channels::SendError;

/// A data channel, which is closed when the handle is dropped.
#[derive(Debug)]
pub struct DataChannel {
    shared: Arc<SharedHandle>,
    id: ChannelId,
    options: ChannelOptions,
    news: Arc<Notify>,
}

impl DataChannel {
    pub(super) fn new(shared: Arc<SharedHandle>, id: ChannelId, options: ChannelOptions) -> Self {
        let news = shared.with(|state| state.inboxes.get(&id).map(|it| Arc::clone(&it.news)));
        Self {
            shared,
            id,
            options,
            news: news.unwrap_or_default(),
        }
    }

    /// Number of the stream: the `id` of the W3C's `RTCDataChannel`.
    pub fn id(&self) -> u16 {
        self.id.stream()
    }

    /// Options of the channel: label, protocol, order, reliability, priority.
    pub fn options(&self) -> &ChannelOptions {
        &self.options
    }

    /// Label of the channel.
    pub fn label(&self) -> &str {
        &self.options.label
    }

    /// Waits until the peer has acknowledged the channel; `false` if the channel was closed before.
    /// A channel that the peer opened counts as acknowledged.
    pub async fn opened(&self) -> bool {
        let id = self.id;
        self.shared
            .wait(&self.news, |state| match state.inboxes.get(&id) {
                Some(inbox) if inbox.opened => Poll::Ready(true),
                Some(inbox) if !inbox.closed => Poll::Pending,
                _ => Poll::Ready(false),
            })
            .await
    }

    /// Queues a message if there is space.
    ///
    /// # Errors
    /// Describes why the message was not accepted.
    pub fn try_send(&self, message: impl Into<Payload>) -> Result<(), SendError> {
        let message = message.into();
        self.shared
            .ask(|state, now| state.connection.send(now, self.id, message))
    }

    /// Queues a message. Waits while there is no space in the channel's queue, or in the queues of
    /// all channels together; waiting channels get space in order.
    ///
    /// # Errors
    /// The channel is closed, or the message is larger than the peer accepts.
    pub async fn send(&self, message: impl Into<Payload>) -> Result<(), SendError> {
        let message = message.into();
        loop {
            match self.try_send(message.clone()) {
                Err(SendError::Full | SendError::ConnectionFull) => self.answered().await,
                result => return result,
            }
        }
    }

    /// Waits until there may be space for a message, or the channel is closed. The caller must try
    /// again, because another task may have been faster.
    async fn answered(&self) {
        let mut woken = false;
        let answers = |state: &mut State| {
            let woken = std::mem::replace(&mut woken, true);
            if woken || state.connection.channels().is_writable_or_closed(self.id) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        };
        self.shared.wait(&self.news, answers).await;
    }

    /// The next message; `None` once the channel is closed. Cancel-safe.
    pub async fn recv(&self) -> Option<Payload> {
        let next = |state: &mut State| state.next_message(self.id);
        self.shared.wait(&self.news, next).await
    }

    /// Number of bytes passed to `send` that are not sent yet.
    pub fn buffered_amount(&self) -> usize {
        self.shared
            .with(|state| state.connection.channels().buffered_amount(self.id))
    }

    /// Number of messages passed to `send` that were abandoned because of the channel's
    /// [`Reliability`](crate::Reliability). Remains available after the channel is closed. If all
    /// of a message was sent, it may still have arrived.
    pub fn abandoned(&self) -> u64 {
        self.shared.with(|state| {
            let inbox = state.inboxes.get(&self.id);
            inbox.map_or(0, |inbox| inbox.abandoned)
        })
    }

    /// Sets the threshold for [`DataChannel::buffered_amount_low`], bytes; 0 by default.
    pub fn set_buffered_amount_low_threshold(&self, bytes: usize) {
        self.shared
            .ask(|state, _| state.connection.set_buffered_amount_low(self.id, bytes));
    }

    /// Waits until [`DataChannel::buffered_amount`] next falls to the threshold, or until the
    /// channel is closed.
    pub async fn buffered_amount_low(&self) {
        let id = self.id;
        let mut before = None;
        self.shared
            .wait(&self.news, |state| match state.inboxes.get(&id) {
                Some(inbox) if !inbox.closed => {
                    let before = *before.get_or_insert(inbox.lows);
                    if inbox.lows > before {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                }
                _ => Poll::Ready(()),
            })
            .await;
    }

    /// Closes the channel after its queued messages are sent. Messages that have arrived can still
    /// be read.
    pub fn close(&self) {
        self.shared
            .ask(|state, now| state.connection.close_channel(now, self.id));
    }

    /// Waits until the channel is closed.
    pub async fn closed(&self) {
        let id = self.id;
        self.shared
            .wait(&self.news, |state| match state.inboxes.get(&id) {
                Some(inbox) if !inbox.closed => Poll::Pending,
                _ => Poll::Ready(()),
            })
            .await;
    }
}

impl Drop for DataChannel {
    fn drop(&mut self) {
        self.shared.ask(|state, now| {
            state.connection.close_channel(now, self.id);
            state.forget(self.id);
        });
    }
}
