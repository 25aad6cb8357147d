//! Incoming associations on which the application has to decide.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anabranch_sctp::{self as sctp, Refusal};
use bytes::Bytes;

use super::Endpoint;
use crate::association::Association;
use crate::endpoint_state::{AssociationEntry, EndpointShared, Phase};
use crate::error::AcceptError;
use crate::peer::Peer;

/// An association that a peer has requested, and that the application should accept, refuse or
/// redirect: see [`Endpoint::incoming`].
///
/// Dropping this value refuses the association without a reason.
#[derive(Debug)]
pub struct Incoming {
    shared: Arc<EndpointShared>,
    told: sctp::Incoming,
    decided: bool,
}

impl Endpoint {
    /// Waits for the next peer that requests an association, if the application decides on incoming
    /// associations ([`Config::undecided`](crate::Config::undecided)).
    ///
    /// At INIT no state is kept (RFC 9260 §5.1.3). A peer is returned after its COOKIE ECHO has
    /// arrived, because that verifies its address. Until the decision the peer gets no answer: its
    /// `connect` waits, and it retransmits COOKIE ECHO when T1-cookie expires. Only the first such
    /// packet is buffered. Peers beyond `undecided` get no answer either, and retransmit. A peer's
    /// cookie is valid for 60 s (`sctp.valid_cookie_life`): afterwards the peer can no longer be
    /// accepted.
    ///
    /// ```no_run
    /// # use anabranch_net::{Config, Endpoint, Peer};
    /// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    /// let endpoint = Endpoint::bind(Config::server(5001).with(|it| it.undecided = 64))?;
    /// loop {
    ///     let incoming = endpoint.incoming().await?;
    ///     if !incoming.peer_addr().ip().is_loopback() {
    ///         incoming.refuse("only from this host");
    ///         continue;
    ///     }
    ///     let association = incoming.accept()?;
    ///     println!("{} streams", association.status().map_or(0, |it| it.outstrms));
    /// }
    /// # }
    /// ```
    ///
    /// Cancel-safe: if the future is dropped, the peer waits for the next call.
    ///
    /// # Errors
    /// The endpoint does not accept associations ([`Config::accept`](crate::Config::accept)), or
    /// its task has ended. If `undecided` is 0, this method never returns a peer, because the
    /// endpoint accepts all peers for [`Endpoint::accept`].
    pub async fn incoming(&self) -> Result<Incoming, AcceptError> {
        self.acceptable(Self::try_incoming).await
    }

    fn try_incoming(&self) -> Result<Option<Incoming>, AcceptError> {
        let mut state = self.shared.lock();
        state.check_accepts()?;
        let told = state.endpoint.poll_incoming();
        if state.endpoint.has_incoming() {
            state.deferred.notify_acceptable();
        }
        Ok(told.map(|told| Incoming {
            shared: Arc::clone(&self.shared),
            told,
            decided: false,
        }))
    }

    /// Waits for the next association, and accepts it from any peer.
    pub(super) async fn accept_all(&self) -> Result<Association, AcceptError> {
        loop {
            match self.incoming().await?.accept() {
                // This peer's cookie has expired, but the next peer may still be valid.
                Err(AcceptError::Gone) => {}
                decided => return decided,
            }
        }
    }
}

impl Incoming {
    /// The source address of the peer's COOKIE ECHO, which is verified, and the peer's SCTP port.
    pub fn peer_addr(&self) -> SocketAddr {
        let address = self.told.addresses.first().copied();
        SocketAddr::new(address.unwrap_or(self.told.local), self.told.port)
    }

    /// The peer's addresses, that of [`Incoming::peer_addr`] first. The peer's other addresses are
    /// not verified.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.told.addresses
    }

    /// The source UDP port of the peer's COOKIE ECHO; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.told.udp_port
    }

    /// The local address to which the peer sent its COOKIE ECHO, and the SCTP port of the endpoint.
    pub fn local_addr(&self) -> SocketAddr {
        SocketAddr::new(self.told.local, self.shared.reservation.port)
    }

    /// Number of streams that this side may send on, 1 to 65,535.
    pub fn outbound_streams(&self) -> u16 {
        self.told.outbound_streams
    }

    /// Number of streams that the peer may send on, 1 to 65,535.
    pub fn inbound_streams(&self) -> u16 {
        self.told.inbound_streams
    }

    /// Accepts the peer: the association is established immediately, and COOKIE ACK is sent to the
    /// peer. DATA bundled with its COOKIE ECHO can be read immediately.
    ///
    /// # Errors
    /// See [`AcceptError`]. If the peer's cookie has expired, the association is not established,
    /// and the peer may connect again.
    pub fn accept(mut self) -> Result<Association, AcceptError> {
        self.decided = true;
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        if state.stopped {
            return Err(AcceptError::Stopped);
        }
        let accepted = self.told.accept(shared.now(), &mut state.endpoint);
        state.wake_driver();
        let id = accepted.map_err(|_| AcceptError::Gone)?;
        let entry = AssociationEntry::new(Phase::Up, 1, shared.span_of(id));
        let signals = Arc::clone(&entry.signals);
        state.entries.insert(id, entry);
        state.watch(id);
        drop(state);
        Ok(Association::held(shared, signals, id))
    }

    /// Refuses the association with a reason for the peer's application: an ABORT with the cause
    /// User-Initiated Abort (RFC 9260 §3.3.10.12), of which at most 512 bytes are sent. The peer's
    /// `connect` fails with [`CloseReason::AbortedByPeer`](crate::CloseReason::AbortedByPeer).
    pub fn refuse(self, reason: impl Into<Bytes>) {
        self.refuse_with(Refusal::Reason(reason.into()));
    }

    /// Refuses the association with another error cause.
    pub fn refuse_with(mut self, refusal: Refusal) {
        self.decide_against(&refusal);
    }

    /// Refuses the association, and names another peer to which the client should connect instead.
    ///
    /// SCTP has no redirection: RFC 9260 has no chunk or cause for it, and an INIT ACK that lists
    /// addresses of another host would make that host part of this association. Therefore the peer
    /// is refused with the cause User-Initiated Abort, whose reason belongs to the upper layers
    /// (RFC 9260 §3.3.10.12). The reason names the other peer:
    /// `redirect 192.0.2.1,2001:db8::1 port 5001 udp 9899`. [`Endpoint::connect`] returns such a
    /// reason as [`ConnectError::Redirected`](crate::ConnectError::Redirected) and does not follow
    /// it; a peer on another stack is refused, and its log shows the text. At most eight addresses
    /// are named.
    ///
    /// To pass the peer to another task of this process no redirection is needed: send the
    /// `Incoming`, or the accepted association, to that task.
    pub fn redirect(self, to: &Peer) {
        self.refuse(to.to_redirect());
    }

    fn decide_against(&mut self, refusal: &Refusal) {
        if std::mem::replace(&mut self.decided, true) {
            return;
        }
        let mut state = self.shared.lock();
        // An error means that the peer is gone, and it then needs no refusal.
        let _ = self.told.refuse(&mut state.endpoint, refusal);
        state.wake_driver();
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.decide_against(&Refusal::Plain);
    }
}
