//! Connecting: associations that this endpoint starts.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sctp::{AssociationState, CloseReason, RestartKeys};

use super::Endpoint;
use crate::association::Association;
use crate::endpoint_state::{AssociationEntry, Phase};
use crate::error::{AssociationError, ConnectError};
use crate::happy_eyeballs::{self, HappyEyeballsTiming, Resolve};
use crate::peer::Peer;
use crate::runtime::within;

/// Options of [`Endpoint::connect_with`].
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Timeout of the attempt. `None`: [`Config::connect_timeout`](crate::Config::connect_timeout).
    pub timeout: Option<Duration>,
    /// Resolver for peers that are given by name. `None`: the resolver of the system.
    pub resolver: Option<Arc<dyn Resolve>>,
    /// The delays between attempts at the addresses of a name.
    pub happy_eyeballs: HappyEyeballsTiming,
    /// Keys with which this end restarts an earlier association of the endpoint's port under the
    /// DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4). Keys must be used once. Without
    /// effect for a peer that is given by name, and if the DTLS chunk is not offered.
    pub restart_keys: Option<RestartKeys>,
}

impl ConnectOptions {
    /// Returns a copy with this timeout; [`Duration::MAX`]: only Max.Init.Retransmits limits the
    /// attempt.
    #[must_use]
    pub fn with_timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl std::fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("timeout", &self.timeout)
            .field("happy_eyeballs", &self.happy_eyeballs)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Starts an association and waits until it is established, at most for
    /// [`Config::connect_timeout`](crate::Config::connect_timeout). Messages may be sent as soon as
    /// this returns.
    ///
    /// A peer is an address and an SCTP port, several addresses, or a name and a port:
    ///
    /// ```no_run
    /// # use anabranch_net::{ConnectError, Endpoint};
    /// # async fn run(endpoint: Endpoint) -> Result<(), ConnectError> {
    /// let by_address = endpoint.connect(([192, 0, 2, 1], 3868)).await?;
    /// let by_name = endpoint.connect(("peer.example", 3868)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The addresses of a name are sorted (RFC 6724 §6), the families alternate, and an attempt at
    /// the next address starts when the previous one has failed or has lasted `attempt_delay` (RFC
    /// 8305). Each attempt uses one address, because a peer with several addresses lists them
    /// itself in INIT ACK (RFC 9260 §5.1.2). Only one attempt at a time proceeds beyond INIT ACK,
    /// so that a host with several of the addresses does not take the later attempt for a restart
    /// (RFC 9260 §5.2.4).
    ///
    /// Cancel-safe: if the future is dropped, the attempt is aborted.
    ///
    /// # Errors
    /// The peer cannot be addressed, refuses the association, redirects to another peer, or does
    /// not answer in time ([`CloseReason::NoAnswer`], or [`CloseReason::NoCookieAck`] if it
    /// answered INIT).
    pub async fn connect(&self, peer: impl Into<Peer>) -> Result<Association, ConnectError> {
        self.connect_with(peer, ConnectOptions::default()).await
    }

    /// Like [`Endpoint::connect`], with another limit, resolver or timing of attempts.
    ///
    /// # Errors
    /// The errors of [`Endpoint::connect`].
    pub async fn connect_with(
        &self,
        peer: impl Into<Peer>,
        options: ConnectOptions,
    ) -> Result<Association, ConnectError> {
        let peer = peer.into();
        let limit = options.timeout.unwrap_or(self.shared.connect_timeout);
        let runtime = &**self.runtime();
        if peer.name.is_some() {
            let by_name = self.connect_by_name(&peer, &options);
            let connected = within(runtime, limit, by_name).await;
            return connected.unwrap_or_else(|| Err(timed_out(AssociationState::CookieWait)));
        }
        let attempt = self.start_attempt(&peer, None, options.restart_keys.as_ref())?;
        let up = within(runtime, limit, attempt.established()).await;
        if up.is_none() {
            let state = attempt.status().map(|it| it.state);
            return Err(timed_out(state.unwrap_or(AssociationState::Closed)));
        }
        Self::finish(attempt).await
    }

    /// Connects to a peer by its name. Returns the association that was established first, or the
    /// error of the last attempt.
    async fn connect_by_name(
        &self,
        peer: &Peer,
        options: &ConnectOptions,
    ) -> Result<Association, ConnectError> {
        let name = peer.name.as_deref().unwrap_or_default();
        let (resolver, timing) = (options.resolver.as_deref(), options.happy_eyeballs);
        let (runtime, local) = (&**self.runtime(), self.local_addresses());
        let race = self.next_attempt_group();
        let attempt = |address: IpAddr| {
            let begun = self.start_attempt(&peer.at(address), Some(race), None);
            async move { Self::finish(begun?).await }
        };
        let (won, why) =
            happy_eyeballs::connect(runtime, name, resolver, timing, local, attempt).await;
        won.unwrap_or_else(|| {
            Err(ConnectError::Name {
                name: name.to_owned(),
                why: why.map_or_else(|| "it has no address here".to_owned(), |it| it.to_string()),
            })
        })
    }

    /// Waits until the attempt `association` is established or has failed.
    async fn finish(association: Association) -> Result<Association, ConnectError> {
        match association.established().await {
            Ok(()) => Ok(association),
            Err(error) => {
                let reason = association.status().and_then(|it| it.abort_reason);
                Err(match Peer::of_redirect(&reason.unwrap_or_default()) {
                    Some(peer) => ConnectError::Redirected(peer),
                    None => error.into(),
                })
            }
        }
    }

    /// A new number for a group of attempts of which only one should succeed.
    fn next_attempt_group(&self) -> u64 {
        let mut state = self.shared.lock();
        state.races += 1;
        state.races
    }

    /// Starts an attempt; `race` is the number of its attempt group, if any. `restart`: the keys
    /// with which it restarts an earlier association.
    fn start_attempt(
        &self,
        peer: &Peer,
        race: Option<u64>,
        restart: Option<&RestartKeys>,
    ) -> Result<Association, ConnectError> {
        let mut state = self.shared.lock();
        if state.stopped {
            return Err(AssociationError(CloseReason::AbortedHere).into());
        }
        for &address in &peer.addresses {
            let mut local = self.shared.local.iter();
            if !local.any(|local| local.is_ipv4() == address.is_ipv4()) {
                return Err(ConnectError::Family(address));
            }
        }
        let now = self.shared.now();
        let udp_port = self.shared.carrier.port_of_peer(peer.udp_port);
        let udp_port = udp_port.ok_or(ConnectError::NoUdpPort)?;
        let (to, port) = (&peer.addresses, peer.port);
        let options = anabranch_sctp::ConnectOptions::over_udp(udp_port).with_race(race);
        let id = state.endpoint.connect_with(now, to, port, options)?;
        if let (Some(keys), Some(association)) = (restart, state.endpoint.association_mut(id)) {
            association.protection_mut().restart_with(keys);
        }
        let entry = AssociationEntry::new(Phase::Opening, 1, self.shared.span_of(id));
        let signals = Arc::clone(&entry.signals);
        state.entries.insert(id, entry);
        state.watch(id);
        state.wake_driver();
        drop(state);
        Ok(Association::attempt(Arc::clone(&self.shared), signals, id))
    }
}

/// The error of an attempt that was in state `state` when its timeout expired.
fn timed_out(state: AssociationState) -> ConnectError {
    AssociationError(CloseReason::unanswered(state)).into()
}
