//! Handles of associations, for sending, receiving and closing.

mod authentication;
mod negotiated;
mod output;
mod reconfig;
mod security;
mod send;
mod settings;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_sctp::{
    AddressChange, AddressChangeError, Association as Protocol, AssociationId, AssociationState,
    CloseReason, MessageBytes, ReceivedMessage,
};
use bytes::Bytes;

use crate::deferred_wakeups::Signals;
use crate::endpoint_state::{EndpointShared, EndpointState, Phase};
use crate::error::{AddressError, AssociationError};
use crate::message::{Message, MessagePart};
use crate::status::Status;
use crate::waiters::WaiterPlace;

/// An SCTP association. Clones refer to the same association and may be used from different tasks:
/// for example one task sends, one receives, and one reads events.
///
/// When the last handle is dropped, the association is shut down: queued messages still arrive if
/// the peer takes them within [`Config::linger`](crate::Config::linger); arriving messages are
/// discarded. [`Association::shutdown`] waits without a limit.
pub struct Association {
    shared: Arc<EndpointShared>,
    signals: Arc<Signals>,
    id: AssociationId,
    /// True until the association is established. Until then a `connect` future owns the only
    /// handle, and may be dropped at any time.
    attempt: bool,
}

pub use output::Output;

impl Association {
    #[cfg(feature = "rfc6083")]
    pub(crate) fn runtime(&self) -> &Arc<dyn crate::runtime::Runtime> {
        self.shared.clock.runtime()
    }

    pub(crate) fn held(
        shared: Arc<EndpointShared>,
        signals: Arc<Signals>,
        id: AssociationId,
    ) -> Self {
        Self {
            shared,
            signals,
            id,
            attempt: false,
        }
    }

    pub(crate) fn attempt(
        shared: Arc<EndpointShared>,
        signals: Arc<Signals>,
        id: AssociationId,
    ) -> Self {
        let mut association = Self::held(shared, signals, id);
        association.attempt = true;
        association
    }

    /// Identifier within the endpoint.
    pub fn id(&self) -> AssociationId {
        self.id
    }

    /// The primary address of the peer, and its SCTP port. After a failover data may go to another
    /// address: [`Status::in_use`].
    pub fn peer_addr(&self) -> SocketAddr {
        let (addresses, port) = (self.addresses().1, self.peer_port());
        SocketAddr::new(addresses, port)
    }

    /// The address of this host on the primary path, unspecified if the system chooses it, and the
    /// SCTP port of the endpoint.
    pub fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.addresses().0, self.shared.reservation.port)
    }

    fn peer_port(&self) -> u16 {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map_or(0, |it| it.status().remote_port)
    }

    /// The local and remote IP address of the primary path.
    fn addresses(&self) -> (IpAddr, IpAddr) {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        let none = IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED);
        association.map_or((none, none), |it| {
            let path = it.paths().get(it.paths().primary()).path();
            (path.local, path.remote)
        })
    }

    /// The tracing span `association` (with its `id`), which contains all log entries about this
    /// association. An application may log within it too: `serve(association).instrument(span)`.
    pub fn span(&self) -> tracing::Span {
        let state = self.shared.lock();
        let entry = state.entries.get(&self.id);
        entry.map_or_else(tracing::Span::none, |entry| entry.span.clone())
    }

    /// The next message; `None` if the association was shut down gracefully and every message was
    /// read.
    ///
    /// A message that is larger than the receive buffer is assembled while it arrives, up to
    /// [`Config::max_message_size`](crate::Config::max_message_size); a larger message ends the
    /// association with [`CloseReason::MessageTooLong`], and should be read by
    /// [`Association::recv_part`].
    ///
    /// Cancel-safe: if the future is dropped, no message is lost.
    ///
    /// # Errors
    /// The association was aborted or has failed. Messages that had arrived before are returned
    /// first.
    pub async fn recv(&self) -> Result<Option<Message>, AssociationError> {
        // Converts outside the lock, because the conversion may assemble fragments.
        Ok(self.next_read(Self::poll_message).await?.map(Message::from))
    }

    /// The next message, or `None` if none can be read at present.
    pub fn try_recv(&self) -> Option<Message> {
        let message = self.poll_message(&mut self.shared.lock());
        message.and_then(|it| it.ok().flatten()).map(Message::from)
    }

    /// Like [`Association::recv`], but receives all messages that are available, up to `most`:
    /// appends the messages to `into` and returns their number. Waits until there is at least one
    /// message. All messages share the fixed cost of a call (the lock of the endpoint, the lookup
    /// of the association).
    ///
    /// Returns 0 if the association was shut down gracefully and every message was read, or if
    /// `most` is 0.
    ///
    /// ```no_run
    /// # use anabranch_net::{Association, AssociationError};
    /// # async fn count(association: Association) -> Result<usize, AssociationError> {
    /// let (mut messages, mut bytes) = (Vec::new(), 0);
    /// while association.recv_many(&mut messages, 64).await? > 0 {
    ///     bytes += messages.drain(..).map(|it| it.bytes.len()).sum::<usize>();
    /// }
    /// # Ok(bytes)
    /// # }
    /// ```
    ///
    /// Cancel-safe: if the future is dropped, no message is lost.
    ///
    /// # Errors
    /// The same errors as [`Association::recv`].
    pub async fn recv_many(
        &self,
        into: &mut Vec<Message>,
        most: usize,
    ) -> Result<usize, AssociationError> {
        if most == 0 {
            return Ok(0);
        }
        let before = into.len();
        // A fragmented message ends the batch, because its fragments are assembled after the lock
        // is released.
        let mut pieces = None;
        let received = self.next_read(|it, state| {
            it.poll_read(state, |protocol| {
                while into.len() - before < most
                    && let Some(message) = protocol.poll_message()
                {
                    match message.payload {
                        MessageBytes::One(_) => into.push(message.into()),
                        MessageBytes::Many(_) => {
                            pieces = Some(message);
                            break;
                        }
                    }
                }
                (pieces.is_some() || into.len() > before).then_some(())
            })
        });
        received.await?;
        into.extend(pieces.map(Message::from));
        Ok(into.len() - before)
    }

    /// The next message, or part of a message whose end has not arrived yet (RFC 9260 §6.9): use it
    /// for messages that should not be buffered whole. A message is delivered in parts if it is
    /// larger than the receive buffer or than `sctp.partial_delivery_point`; all others are
    /// delivered as one part that `begins` and `ends`.
    ///
    /// Parts of one message are delivered in order. Between the parts no other data of the same
    /// stream is delivered, but messages and parts of other streams may be. If several tasks call
    /// this method at the same time, each gets parts of the same message.
    ///
    /// `None` if the association was shut down gracefully and everything was read. If the peer
    /// restarts in the middle of a message, the remaining parts never arrive, and
    /// [`Event::PartialDeliveryAborted`](crate::Event::PartialDeliveryAborted) reports it.
    ///
    /// Cancel-safe: if the future is dropped, no part is lost. May be mixed with
    /// [`Association::recv`], which skips the remaining parts of a message whose beginning
    /// `recv_part` has returned.
    ///
    /// # Errors
    /// The association was aborted or has failed. Parts that had arrived before are returned first;
    /// the end of an incomplete message will not arrive.
    pub async fn recv_part(&self) -> Result<Option<MessagePart>, AssociationError> {
        self.next_read(Self::poll_part).await
    }

    /// Like [`Association::recv_part`], but for `stream` only: messages of other streams stay in
    /// the receive buffer, which all streams share. `None` if the association was shut down
    /// gracefully and every message of `stream` was read.
    ///
    /// Cancel-safe: if the future is dropped, no part is lost.
    ///
    /// # Errors
    /// The errors of [`Association::recv_part`].
    pub(crate) async fn recv_part_on(
        &self,
        stream: u16,
    ) -> Result<Option<MessagePart>, AssociationError> {
        self.next_read(|it, state| it.poll_read(state, |it| Self::poll_part_on(it, stream)))
            .await
    }

    /// The next message or part of `stream`, or `None` if none can be read at present.
    pub(crate) fn try_recv_part_on(&self, stream: u16) -> Option<MessagePart> {
        let mut state = self.shared.lock();
        let part = self.poll_read(&mut state, |it| Self::poll_part_on(it, stream));
        part.and_then(|result| result.ok().flatten())
    }

    /// Maximum size of a message that may be sent, bytes.
    pub(crate) fn max_message_size(&self) -> usize {
        self.shared.max_message_size
    }

    /// Waits until the send buffer may have space for a message of `size` bytes. Requests a
    /// notification from the driver; if there is space already, the notification comes immediately.
    pub(crate) async fn room(&self, size: usize) {
        let mut notified = std::pin::pin!(self.signals.writable.notified());
        notified.as_mut().enable();
        {
            let mut guard = self.shared.lock();
            let state: &mut EndpointState = &mut guard;
            if state.stopped || !state.entries.contains_key(&self.id) {
                return;
            }
            state.wait_writable(self.id, size);
        }
        notified.await;
    }

    /// Calls `poll` whenever data may be readable, until it returns a result.
    async fn next_read<T>(
        &self,
        mut poll: impl FnMut(&Self, &mut EndpointState) -> Option<T>,
    ) -> T {
        let mut reader = Reader {
            association: self,
            place: None,
        };
        std::future::poll_fn(move |cx| {
            let readers = &self.signals.readers;
            let mut waker = None;
            loop {
                let (result, round) = {
                    let mut state = self.shared.lock();
                    (poll(self, &mut state), readers.round())
                };
                if let Some(result) = result {
                    readers.leave(&mut reader.place);
                    return Poll::Ready(result);
                }
                // If data arrives after `round` was read, the round ends, so `wait` fails and the
                // loop polls again.
                let known = waker.take().unwrap_or_else(|| cx.waker().clone());
                match readers.wait(&mut reader.place, round, known) {
                    Ok(()) => return Poll::Pending,
                    Err(given_back) => waker = Some(given_back),
                }
            }
        })
        .await
    }

    fn poll_message(
        &self,
        state: &mut EndpointState,
    ) -> Option<Result<Option<ReceivedMessage>, AssociationError>> {
        self.poll_read(state, Protocol::poll_message)
    }

    fn poll_part(
        &self,
        state: &mut EndpointState,
    ) -> Option<Result<Option<MessagePart>, AssociationError>> {
        self.poll_read(state, |it| {
            let part = it.poll_part()?;
            Some(MessagePart::new(part, it.cumulative_tsn()))
        })
    }

    /// The next message that can be read, or the end of the association; `None` if there is
    /// neither.
    fn poll_read<T>(
        &self,
        state: &mut EndpointState,
        read: impl FnOnce(&mut Protocol) -> Option<T>,
    ) -> Option<Result<Option<T>, AssociationError>> {
        let received = match state.endpoint.association_mut(self.id) {
            Some(association) => {
                let received = read(association);
                // The driver should send a SACK that opens a closed window, or an ABORT for a
                // message that was too long.
                if association.sack_due() || (received.is_none() && association.is_closed()) {
                    state.wake_driver();
                }
                received
            }
            None => None,
        };
        if received.is_some() {
            return Some(Ok(received));
        }
        match state.entries.get(&self.id).map(|entry| &entry.phase) {
            Some(Phase::Closed(CloseReason::Shutdown)) | None => Some(Ok(None)),
            Some(Phase::Closed(reason)) => Some(Err(AssociationError(reason.clone()))),
            Some(_) => None,
        }
    }

    /// Closes gracefully (RFC 9260 §9.2): queued data is still delivered, and no further message
    /// can be sent. Returns when both sides have finished. Messages that arrive meanwhile stay
    /// readable.
    ///
    /// The duration depends on the peer: a peer that acknowledges data but keeps its receive window
    /// closed delays the shutdown without a bound; see [`Association::shutdown_with_timeout`].
    ///
    /// Cancel-safe: if the future is dropped, the association continues to close.
    ///
    /// # Errors
    /// The association was aborted or has failed: the last messages may not have arrived.
    pub async fn shutdown(&self) -> Result<(), AssociationError> {
        self.start_shutdown(None);
        match self.closed().await {
            CloseReason::Shutdown => Ok(()),
            reason => Err(AssociationError(reason)),
        }
    }

    /// Like [`Association::shutdown`], with a timeout: after `limit` the association is aborted,
    /// the peer gets an ABORT, and unacknowledged messages are lost. Therefore a peer that is
    /// silent or keeps its receive window closed cannot keep the association open.
    ///
    /// Cancel-safe: if the future is dropped, the association continues to close, and the timeout
    /// remains in effect.
    ///
    /// # Errors
    /// The errors of [`Association::shutdown`]; [`CloseReason::ShutdownTimeout`] if the timeout
    /// expired.
    pub async fn shutdown_with_timeout(&self, limit: Duration) -> Result<(), AssociationError> {
        self.start_shutdown(Some(limit));
        self.shutdown().await
    }

    /// Starts a graceful close, like [`Association::shutdown`] or
    /// [`Association::shutdown_with_timeout`], without waiting. If several limits are set, the
    /// earliest one applies.
    pub fn start_shutdown(&self, limit: Option<Duration>) {
        let now = self.shared.now();
        self.shared.lock().shut_down(self.id, now, limit);
    }

    /// Removes from the send queue all messages of which no chunk was sent, and returns their
    /// number. Messages that were sent in part are completed.
    pub fn cancel_unsent(&self) -> usize {
        let mut state = self.shared.lock();
        let withdrawn = state.association(self.id).map(Protocol::cancel_unsent);
        state.wake_driver();
        withdrawn.unwrap_or(0)
    }

    /// Ends the association immediately with an ABORT that carries `reason`, of which at most 512
    /// bytes are sent (RFC 9260 §9.1). Queued and unacknowledged messages are lost.
    pub fn abort(&self, reason: impl Into<Bytes>) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        if let Some(association) = state.association(self.id) {
            // `abort` fails only if the association is closed already.
            let _ = association.abort(now, reason.into());
            state.wake_driver();
        }
    }

    /// Applies the setting `drain_timeout` (`true`), although the shutdown is not requested yet.
    #[cfg(feature = "rfc6083")]
    pub(crate) fn expect_drain(&self, drains: bool) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        if let Some(association) = state.association(self.id) {
            association.expect_drain(now, drains);
            state.wake_driver();
        }
    }

    /// Waits until the association has ended, and returns the reason.
    ///
    /// Cancel-safe: the future has no side effects.
    pub async fn closed(&self) -> CloseReason {
        match self.next_phase(None).await {
            Some(Phase::Closed(reason)) => reason,
            // Not reached: the entry of an association exists as long as one of its handles.
            _ => CloseReason::Shutdown,
        }
    }

    /// Returns true if the association is established and neither side has started to close it.
    pub(crate) fn is_established(&self) -> bool {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.is_some_and(|it| it.state() == AssociationState::Established)
    }

    /// Waits until the association is established.
    pub(crate) async fn established(&self) -> Result<(), AssociationError> {
        let phase = self.next_phase(Some(Phase::Opening)).await;
        match phase {
            Some(Phase::Closed(reason)) => Err(AssociationError(reason)),
            _ => Ok(()),
        }
    }

    /// Waits until the phase differs from `from`, or, if `from` is `None`, until the association is
    /// closed.
    async fn next_phase(&self, from: Option<Phase>) -> Option<Phase> {
        loop {
            let mut notified = std::pin::pin!(self.signals.phase.notified());
            notified.as_mut().enable();
            {
                let state = self.shared.lock();
                let phase = &state.entries.get(&self.id)?.phase;
                let done = match &from {
                    Some(from) => phase != from,
                    None => matches!(phase, Phase::Closed(_)),
                };
                if done {
                    return Some(phase.clone());
                }
            }
            notified.await;
        }
    }

    /// Makes the peer's address `address` the primary path, to which new data is sent; `false` if
    /// the peer has no such address.
    pub fn set_primary(&self, address: IpAddr) -> bool {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let done = state
            .association(self.id)
            .is_some_and(|association| association.set_primary(now, address));
        state.wake_driver();
        done
    }

    /// Requests changes of this host's addresses in the association (ASCONF, RFC 5061; requires the
    /// settings `address_changes` and `authentication`), in one ASCONF chunk. To replace the only
    /// address, add and remove in one call, because the last address cannot be removed.
    /// [`AddressChange::PeerPrimary`] requests that the peer uses one of the addresses as primary.
    /// A socket is opened for a new address if the endpoint is bound to addresses; the socket of a
    /// removed address stays open, because other associations may use it.
    /// [`Event::AddressChanged`](crate::Event::AddressChanged) reports that the peer has agreed or
    /// refused; until then no other packets are sent from a new address.
    ///
    /// # Errors
    /// A socket could not be opened, or the change is invalid: the address to add is present
    /// already, the address to remove is not present, or it is the last one. After an error no
    /// change has been requested.
    pub fn change_addresses(&self, changes: &[AddressChange]) -> Result<(), AddressError> {
        for change in changes {
            if let AddressChange::Add(address) | AddressChange::AddSource(address) = *change {
                let opened = self.shared.driver_shared.open_for(address);
                opened.map_err(|error| AddressError::Socket(Arc::new(error)))?;
            }
        }
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let association = association.ok_or(AddressChangeError::NotEstablished)?;
        association.change_addresses(now, changes)?;
        state.wake_driver();
        Ok(())
    }

    /// Current state and counters; `None` if the association no longer exists.
    pub fn status(&self) -> Option<Status> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map(|it| Status::of(it, self.shared.max_message_size))
    }
}

/// A waiting reader, which leaves the queue of readers when dropped.
struct Reader<'a> {
    association: &'a Association,
    place: WaiterPlace,
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.association.signals.readers.leave(&mut self.place);
    }
}

impl Clone for Association {
    fn clone(&self) -> Self {
        if let Some(entry) = self.shared.lock().entries.get_mut(&self.id) {
            entry.handles += 1;
        }
        Self::held(Arc::clone(&self.shared), Arc::clone(&self.signals), self.id)
    }
}

impl Drop for Association {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        let opening = state
            .entries
            .get(&self.id)
            .is_some_and(|entry| entry.phase == Phase::Opening);
        if self.attempt
            && opening
            && let Some(association) = state.association(self.id)
        {
            // `abort` fails only if the association is closed already.
            let _ = association.abort(now, Bytes::new());
        }
        state.drop_handle(self.id, now);
    }
}

impl fmt::Debug for Association {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Association")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
