//! An association as its user holds it.

mod authentication;
mod negotiated;
mod output;
mod reconfig;
mod send;
mod settings;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_sctp::{
    AddressChange, AddressChangeError, Association as Protocol, AssociationId, CloseReason,
    MessageBytes, ReceivedMessage,
};
use bytes::Bytes;

use crate::deferred_wakeups::Signals;
use crate::endpoint_state::{EndpointShared, EndpointState, Phase};
use crate::error::{AddressError, AssociationError};
use crate::message::{Message, MessagePart};
use crate::status::Status;
use crate::waiters::Place;

/// An SCTP association. Clones are handles of the same association and may be used from different tasks: one sends, one
/// receives, one looks at events.
///
/// When the last handle is dropped the association is shut down: what was sent still arrives if the peer takes it within
/// [`Config::linger`](crate::Config::linger), what comes is thrown away. [`Association::shutdown`] waits as long as it takes.
pub struct Association {
    shared: Arc<EndpointShared>,
    signals: Arc<Signals>,
    id: AssociationId,
    /// It is not up yet, and nobody knows of it but a future that may be dropped.
    attempt: bool,
}

pub use output::Output;

impl Association {
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
        Self {
            shared,
            signals,
            id,
            attempt: true,
        }
    }

    /// Its name among those of its endpoint.
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

    /// The peer's SCTP port.
    pub fn peer_port(&self) -> u16 {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map_or(0, |it| it.status().remote_port)
    }

    /// The local and remote address of the primary path.
    fn addresses(&self) -> (IpAddr, IpAddr) {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        let none = IpAddr::from(std::net::Ipv4Addr::UNSPECIFIED);
        association.map_or((none, none), |it| {
            let path = it.paths().get(it.paths().primary()).path();
            (path.local, path.remote)
        })
    }

    /// The span `association` (with its `id`) that everything logged of it is within: for what an application logs, too, as
    /// `serve(association).instrument(span)`.
    pub fn span(&self) -> tracing::Span {
        let state = self.shared.lock();
        let entry = state.entries.get(&self.id);
        entry.map_or_else(tracing::Span::none, |entry| entry.span.clone())
    }

    /// The next message; `None` when the association was shut down gracefully and everything is read.
    ///
    /// One that is larger than the receive buffer is put together as it comes, up to
    /// [`Config::max_message_size`](crate::Config::max_message_size); a larger one ends the association with
    /// [`CloseReason::MessageTooLong`], and is to be read by [`Association::recv_part`].
    ///
    /// Cancel-safe: if the future is dropped, no message is lost.
    ///
    /// # Errors
    /// The association ended otherwise, after what had arrived was read.
    pub async fn recv(&self) -> Result<Option<Message>, AssociationError> {
        // Outside the lock: pieces may have to be put together.
        Ok(self.next_read(Self::poll_message).await?.map(Message::from))
    }

    /// The next message, if there is one now.
    pub fn try_recv(&self) -> Option<Message> {
        let message = self.poll_message(&mut self.shared.lock());
        message.and_then(|it| it.ok().flatten()).map(Message::from)
    }

    /// As [`Association::recv`], but what is there, up to `most` messages: they are put behind what `into` holds, and the future gives how many
    /// they are. It waits until there is one, and not for more. What a call costs by itself (the endpoint's lock, a look at the
    /// association) is paid once for all of them.
    ///
    /// 0 where the association was shut down gracefully and everything is read, and where `most` is 0.
    ///
    /// ```no_run
    /// # async fn count(association: anabranch_net::Association) -> Result<usize, anabranch_net::AssociationError> {
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
    /// As [`Association::recv`].
    pub async fn recv_many(
        &self,
        into: &mut Vec<Message>,
        most: usize,
    ) -> Result<usize, AssociationError> {
        if most == 0 {
            return Ok(0);
        }
        let before = into.len();
        // One in pieces is put together when others may have the lock again, and is the last.
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

    /// The next message, or part of a message whose end has not come yet (RFC 9260 §6.9): for messages larger than one wants
    /// to hold. A message comes in parts if it is larger than the receive buffer or than
    /// `sctp.partial_delivery_point`; all others come as one part that `begins` and `ends`.
    ///
    /// Parts of one message come in order, and nothing else of its stream between them; but messages and parts of other
    /// streams may. Several tasks that call this at once get parts of the same message.
    ///
    /// `None` when the association was shut down gracefully and everything is read. Where the peer begins again in the
    /// midst of a message, its next part never comes, and
    /// [`Event::PartialDeliveryAborted`](crate::Event::PartialDeliveryAborted) tells.
    ///
    /// Cancel-safe: if the future is dropped, no part is lost. May be mixed with [`Association::recv`], which skips the rest
    /// of a message whose beginning was read here.
    ///
    /// # Errors
    /// The association ended otherwise, after what had arrived was read: a message whose end has not come will not.
    pub async fn recv_part(&self) -> Result<Option<MessagePart>, AssociationError> {
        self.next_read(Self::poll_part).await
    }

    /// As [`Association::recv_part`], of `stream` alone: what comes on other streams waits for others, in the receive buffer that all
    /// streams share. `None` when the association was shut down gracefully and everything of `stream` is read.
    ///
    /// Cancel-safe: if the future is dropped, no part is lost.
    ///
    /// # Errors
    /// As [`Association::recv_part`].
    pub(crate) async fn recv_part_on(
        &self,
        stream: u16,
    ) -> Result<Option<MessagePart>, AssociationError> {
        self.next_read(|it, state| it.poll_read(state, |it| Self::poll_part_on(it, stream)))
            .await
    }

    /// The next message or part of `stream`, if there is one now.
    pub(crate) fn try_recv_part_on(&self, stream: u16) -> Option<MessagePart> {
        let mut state = self.shared.lock();
        let part = self.poll_read(&mut state, |it| Self::poll_part_on(it, stream));
        part.and_then(|result| result.ok().flatten())
    }

    /// The largest message that may be sent, bytes.
    pub(crate) fn max_message_size(&self) -> usize {
        self.shared.max_message_size
    }

    /// Waits until there may be room to send a message of `size` bytes: the driver is asked, and tells at once where there is.
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

    /// Waits until `poll` has something to say.
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
                // What comes from now on ends the round.
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

    /// What the protocol has to read, or that nothing more will come.
    fn poll_read<T>(
        &self,
        state: &mut EndpointState,
        read: impl FnOnce(&mut Protocol) -> Option<T>,
    ) -> Option<Result<Option<T>, AssociationError>> {
        let received = match state.endpoint.association_mut(self.id) {
            Some(association) => {
                let received = read(association);
                // The peer believed the window closed, and it is open again; or what came was too long.
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

    /// Closes gracefully (RFC 9260 §9.2): everything sent is still delivered, nothing more can be. Gives when both sides
    /// are done. Messages that arrive meanwhile stay readable.
    ///
    /// How long that takes is up to the peer: one that acknowledges what it gets, but keeps its receive window shut, keeps
    /// this end waiting without bound; see [`Association::shutdown_with_timeout`].
    ///
    /// Cancel-safe: if the future is dropped, the association goes on closing.
    ///
    /// # Errors
    /// The association ended otherwise: what was sent last may not have arrived.
    pub async fn shutdown(&self) -> Result<(), AssociationError> {
        self.start_shutdown(None);
        match self.closed().await {
            CloseReason::Shutdown => Ok(()),
            reason => Err(AssociationError(reason)),
        }
    }

    /// As [`Association::shutdown`], but for so long at most: then the association is aborted, the peer is told so, and what
    /// it has not acknowledged is lost. A peer that is silent, or keeps its receive window shut, cannot hold it open.
    ///
    /// Cancel-safe: if the future is dropped, the association goes on closing, and the bound holds.
    ///
    /// # Errors
    /// As [`Association::shutdown`]; [`CloseReason::ShutdownTimeout`] where the time was over.
    pub async fn shutdown_with_timeout(&self, limit: Duration) -> Result<(), AssociationError> {
        self.start_shutdown(Some(limit));
        self.shutdown().await
    }

    /// Begins to close gracefully, as [`Association::shutdown`] or
    /// [`Association::shutdown_with_timeout`] does, and waits for nothing. Of several limits the one
    /// that ends first counts.
    pub fn start_shutdown(&self, limit: Option<Duration>) {
        let now = self.shared.now();
        self.shared.lock().shut_down(self.id, now, limit);
    }

    /// Takes back the messages of which nothing was sent yet; returns how many. A message of which a part was sent is sent to
    /// its end.
    pub fn cancel_unsent(&self) -> usize {
        let mut state = self.shared.lock();
        let withdrawn = state.association(self.id).map(Protocol::withdraw_unsent);
        state.wake_driver();
        withdrawn.unwrap_or(0)
    }

    /// Ends the association at once, telling the peer `reason`, of which 512 bytes are sent at most (RFC 9260 §9.1). What is
    /// queued or unacknowledged is lost.
    pub fn abort(&self, reason: impl Into<Bytes>) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        if let Some(association) = state.association(self.id) {
            // Refused only where it is closed already.
            let _ = association.abort(now, reason.into());
            state.wake_driver();
        }
    }

    /// Why the association ended, once it has.
    ///
    /// Cancel-safe: nothing depends on the future.
    pub async fn closed(&self) -> CloseReason {
        match self.next_phase(None).await {
            Some(Phase::Closed(reason)) => reason,
            // Not forgotten while it is held.
            _ => CloseReason::Shutdown,
        }
    }

    /// Whether it has not ended.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.shared.lock();
        let entry = state.entries.get(&self.id);
        entry.is_some_and(|it| !matches!(it.phase, Phase::Closed(_)))
    }

    /// Waits until it is up.
    pub(crate) async fn established(&self) -> Result<(), AssociationError> {
        let phase = self.next_phase(Some(Phase::Opening)).await;
        match phase {
            Some(Phase::Closed(reason)) => Err(AssociationError(reason)),
            _ => Ok(()),
        }
    }

    /// Waits until the phase is another than `from`; without one, until it is closed.
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

    /// Makes the peer's address `address` the one that new data goes to; `false` if the peer has no such address.
    pub fn set_primary(&self, address: IpAddr) -> bool {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let done = state
            .association(self.id)
            .is_some_and(|association| association.set_primary(now, address));
        state.wake_driver();
        done
    }

    /// Requests changes of this host's addresses in the association (ASCONF, RFC 5061; the settings
    /// `address_changes` and `authentication`), in one chunk: to replace the only address, it is
    /// added and removed by one call. [`AddressChange::PeerPrimary`] asks the peer to send to one of
    /// them first. A socket is opened for a new address if the endpoint is bound to addresses; that
    /// of a removed address stays open, for others.
    /// [`Event::AddressChanged`](crate::Event::AddressChanged) reports that the peer has agreed or refused; until then
    /// nothing else is sent from a new address.
    ///
    /// # Errors
    /// A socket cannot be opened, or the association cannot have the change: an address that it has
    /// already, does not have, or its last. Nothing is requested then.
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

    /// Live figures.
    pub fn status(&self) -> Option<Status> {
        let state = self.shared.lock();
        let association = state.endpoint.association(self.id);
        association.map(|it| Status::of(it, self.shared.max_message_size))
    }
}

/// Somebody who reads, and leaves its place when it is dropped.
struct Reader<'a> {
    association: &'a Association,
    place: Place,
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
            // Refused only where it is closed already.
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
