//! Endpoints: an SCTP port with its associations on real sockets.

mod addresses;
mod backlog;
mod bind;
mod connect;
mod incoming;
mod settings;

pub use backlog::BacklogPermit;
pub use bind::BindOptions;
pub use connect::ConnectOptions;
pub use incoming::Incoming;

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sctp::AssociationId;
use bytes::Bytes;

use crate::association::Association;
use crate::config::{Carrier, Config};
use crate::deferred_wakeups::DeferredWakeups;
use crate::endpoint_driver::EndpointDriver;
use crate::endpoint_state::{EndpointShared, EndpointState, Phase};
use crate::error::{AcceptError, BindError};
use crate::observer::Observer;
use crate::random::secret;
use crate::resume::Resuming;
use crate::runtime::{Runtime, within};
use crate::shared_sockets::SharedSockets;
use crate::status::EndpointStatistics;
use settings::DerivedSettings;

/// An SCTP endpoint (RFC 9260 §1.2): an SCTP port with its addresses and associations. Clones refer
/// to the same endpoint.
///
/// When the last handle is dropped, no more associations are accepted, and associations that wait
/// to be accepted are shut down. Associations with handles continue; those without handles are
/// closed within [`Config::linger`].
#[derive(Debug)]
pub struct Endpoint {
    shared: Arc<EndpointShared>,
    port: u16,
    /// True if the application accepts or refuses each association ([`Config::undecided`]).
    decides: bool,
}

impl Endpoint {
    fn join(
        sockets: &SharedSockets,
        config: Config,
        observer: Option<Box<dyn Observer>>,
    ) -> Result<Self, BindError> {
        let driver_shared = sockets.driver_shared();
        let addresses = match config.addresses.is_empty() {
            true => driver_shared.addresses.clone(),
            false => config.addresses.clone(),
        };
        let config = Config {
            carrier: driver_shared.carrier,
            addresses,
            ..config
        };
        config.check()?;
        driver_shared.check(&config.addresses)?;
        let secret = secret()?;
        let reservation = driver_shared.reserve(config.port, &config.addresses)?;
        let port = reservation.port;
        let linger = config.linger;
        let undecided = config.undecided;
        let (max_message_size, connect_timeout) = (config.max_message_size, config.connect_timeout);
        let resume_cache = config.resume_cache.clone();
        let (backlog, accepts) = (config.backlog, config.accept);
        let mut endpoint =
            protocol(config, port, secret).inspect_err(|_| driver_shared.release(&reservation))?;
        if let Some(shard_handle) = &driver_shared.shard_handle {
            let addresses = &endpoint.config().addresses;
            let peers = shard_handle
                .peers()
                .shard(shard_handle.number(), port, addresses);
            endpoint.set_shard(Some(peers));
        }
        let resuming = resume_cache.map(|cache| Box::new(Resuming::new(cache)));
        let mut state = EndpointState {
            resuming,
            backlog,
            undecided,
            accepts,
            endpoint,
            entries: Default::default(),
            waiting: Default::default(),
            kept: 0,
            races: 0,
            dropped: Vec::new(),
            linger,
            driver: None,
            driver_sleeps: false,
            driver_comes: None,
            deferred: DeferredWakeups::default(),
            handles: 1,
            stopped: false,
            closed: false,
            observer,
            foreign: 0,
            statistics: EndpointStatistics::default(),
        };
        state.listen();
        let shared = Arc::new(EndpointShared::new(
            state,
            Arc::clone(driver_shared),
            reservation,
            max_message_size,
            connect_timeout,
            tracing::info_span!("endpoint", port),
        ));
        match sockets.join(EndpointDriver::new(Arc::clone(&shared))) {
            true => {
                tracing::info!(parent: &shared.span, local = ?shared.local, "endpoint bound");
                Ok(Self {
                    shared,
                    port,
                    decides: undecided > 0,
                })
            }
            false => Err(BindError::Stopped),
        }
    }

    /// The runtime that drives the endpoint.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        self.shared.clock.runtime()
    }

    /// The SCTP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The tracing span `endpoint` (with its SCTP `port`), which contains all log entries about
    /// this endpoint and the spans of its associations.
    pub fn span(&self) -> &tracing::Span {
        &self.shared.span
    }

    /// The local addresses with their UDP ports (0 over raw IP); an unspecified address means all
    /// addresses of its family.
    pub fn local_addresses(&self) -> &[SocketAddr] {
        &self.shared.local
    }

    /// The local UDP port; 0 over raw IP.
    pub fn udp_port(&self) -> u16 {
        self.shared.local.first().map_or(0, SocketAddr::port)
    }

    /// Enables or disables associations that peers start. Associations that wait to be accepted
    /// continue to wait.
    pub fn listen(&self, accept: bool) {
        let mut state = self.shared.lock();
        (state.accepts, state.closed) = (accept, false);
        state.listen();
        drop(state);
        self.shared.acceptable.notify_one();
    }

    /// Stops accepting associations from peers, and ends associations that wait to be accepted.
    pub fn refuse(&self) {
        let mut state = self.shared.lock();
        (state.accepts, state.closed) = (false, true);
        state.listen();
        drop_waiting(&mut state, self.shared.now());
        state.wake_driver();
    }

    /// Waits for the next association that a peer has started.
    ///
    /// Cancel-safe: if the future is dropped, the association waits for the next call.
    ///
    /// # Errors
    /// [`AcceptError::NotListening`]: the endpoint does not accept associations
    /// ([`Config::accept`], [`Endpoint::listen`]); [`AcceptError::Closed`]: the endpoint was closed
    /// or is draining;
    /// [`AcceptError::Stopped`]: the task of the endpoint has ended.
    pub async fn accept(&self) -> Result<Association, AcceptError> {
        if self.decides {
            return self.accept_all().await;
        }
        self.acceptable(|it| it.try_accept(false)).await
    }

    /// Calls `take` whenever an association may have arrived, until it returns a result.
    async fn acceptable<T>(
        &self,
        take: impl Fn(&Self) -> Result<Option<T>, AcceptError>,
    ) -> Result<T, AcceptError> {
        loop {
            if let Some(taken) = take(self)? {
                return Ok(taken);
            }
            // `Notify` stores a permit if an association arrives between the check and the wait.
            self.shared.acceptable.notified().await;
        }
    }

    /// Accepts an association if one waits. If `keeps` is true, the association counts towards the
    /// backlog also after this call.
    fn try_accept(&self, keeps: bool) -> Result<Option<Association>, AcceptError> {
        let mut state = self.shared.lock();
        state.check_accepts()?;
        let Some(id) = state.waiting.pop_front() else {
            return Ok(None);
        };
        state.kept += usize::from(keeps);
        state.listen();
        let more = !state.waiting.is_empty();
        let signals = state.entries.get_mut(&id).map(|entry| {
            entry.handles = 1;
            Arc::clone(&entry.signals)
        });
        if more {
            state.deferred.notify_acceptable();
        }
        Ok(signals.map(|signals| Association::held(Arc::clone(&self.shared), signals, id)))
    }

    /// Stops accepting, and shuts down every association, whether it has handles or not. Returns
    /// when all have ended.
    ///
    /// Cancel-safe: if the future is dropped, the associations continue to close.
    pub async fn close(&self) {
        self.close_all(None).await;
    }

    /// Takes an endpoint out of service: it accepts no more associations ([`Endpoint::refuse`]),
    /// and established associations continue until their users or peers end them. Returns `true`
    /// when no association is open any more, and `false` if `patience` expires first;
    /// [`Endpoint::close_with_timeout`] should then shut down the remaining associations.
    /// Associations that this side starts meanwhile do not count.
    ///
    /// Cancel-safe: if the future is dropped, the endpoint continues to refuse new associations.
    pub async fn drain(&self, patience: Duration) -> bool {
        self.refuse();
        self.shared.acceptable.notify_one();
        let ids: Vec<AssociationId> = self.shared.lock().entries.keys().copied().collect();
        let all_ended = async {
            for id in ids {
                self.ended(id).await;
            }
        };
        let ended = within(&**self.runtime(), patience, all_ended).await;
        ended.is_some()
    }

    /// Like [`Endpoint::close`], with a timeout: associations that are not closed by then are
    /// aborted.
    ///
    /// Cancel-safe: if the future is dropped, the associations continue to close, and the timeout
    /// remains in effect.
    pub async fn close_with_timeout(&self, limit: Duration) {
        self.close_all(Some(limit)).await;
    }

    async fn close_all(&self, within: Option<Duration>) {
        let ids: Vec<AssociationId> = {
            let mut state = self.shared.lock();
            (state.accepts, state.closed) = (false, true);
            state.listen();
            let now = self.shared.now();
            let ids: Vec<AssociationId> = state.entries.keys().copied().collect();
            for &id in &ids {
                state.shut_down(id, now, within);
            }
            drop_waiting(&mut state, now);
            state.wake_driver();
            ids
        };
        self.shared.acceptable.notify_one();
        for id in ids {
            self.ended(id).await;
        }
    }

    /// Waits until the association `id` is closed.
    fn ended(&self, id: AssociationId) -> impl Future<Output = ()> + '_ {
        let signals = {
            let state = self.shared.lock();
            state
                .entries
                .get(&id)
                .map(|entry| Arc::clone(&entry.signals))
        };
        async move {
            let Some(signals) = signals else { return };
            loop {
                let mut notified = std::pin::pin!(signals.phase.notified());
                notified.as_mut().enable();
                {
                    let state = self.shared.lock();
                    match state.entries.get(&id).map(|entry| &entry.phase) {
                        None | Some(Phase::Closed(_)) => return,
                        _ => {}
                    }
                }
                notified.await;
            }
        }
    }

    /// Waits until the endpoint has no associations. A closed association counts as long as it has
    /// handles.
    pub async fn wait_idle(&self) {
        loop {
            let mut notified = std::pin::pin!(self.shared.idle.notified());
            notified.as_mut().enable();
            {
                let state = self.shared.lock();
                if state.entries.is_empty() || state.stopped {
                    return;
                }
            }
            notified.await;
        }
    }

    /// Counters of the endpoint. Work that the driver is doing at present may not be counted yet.
    pub fn statistics(&self) -> EndpointStatistics {
        // Does not wait if the driver has locked the sockets, because the driver publishes their
        // counters in its next run.
        let io = self.shared.driver_shared.idle_io();
        let mut guard = self.shared.lock();
        let state: &mut EndpointState = &mut guard;
        if let Some(io) = io {
            io.publish(state.foreign, &mut state.statistics);
            io.publish_failures(&mut state.statistics);
        }
        EndpointStatistics {
            discards: state.endpoint.discards().clone(),
            ..state.statistics.clone()
        }
    }

    /// Aborts every association immediately; each ABORT carries `reason`.
    pub fn abort(&self, reason: &'static str) {
        let mut state = self.shared.lock();
        let now = self.shared.now();
        let ids: Vec<AssociationId> = state.entries.keys().copied().collect();
        for id in ids {
            if let Some(association) = state.association(id) {
                // `abort` fails only if the association is closed already.
                let _ = association.abort(now, Bytes::from_static(reason.as_bytes()));
            }
        }
        state.wake_driver();
    }
}

/// Closes the associations that wait to be accepted.
fn drop_waiting(state: &mut EndpointState, now: u64) {
    while let Some(id) = state.waiting.pop_front() {
        state.close_without_handles(id, now);
    }
    // Peers that wait for a decision of the application are refused.
    state.endpoint.decide_incoming(state.undecided);
}

impl Clone for Endpoint {
    fn clone(&self) -> Self {
        self.shared.lock().handles += 1;
        Self {
            shared: Arc::clone(&self.shared),
            port: self.port,
            decides: self.decides,
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.handles -= 1;
        if state.handles == 0 {
            state.accepts = false;
            state.listen();
            let now = self.shared.now();
            drop_waiting(&mut state, now);
            state.wake_driver();
        }
    }
}

/// Creates the protocol core's endpoint from the settings.
fn protocol(
    config: Config,
    port: u16,
    secret: [u8; 32],
) -> Result<anabranch_sctp::Endpoint, BindError> {
    let derived = DerivedSettings {
        addresses: config.own_addresses(),
        encapsulation: config.carrier.overhead(),
        max_message: config.max_message_size,
        resumes: config.resume_cache.is_some(),
    };
    let sctp = config.sctp.with(|it| derived.apply(it));
    let mut endpoint = anabranch_sctp::Endpoint::new(sctp, port, secret)
        .map_err(|error| BindError::Config(error.to_string()))?;
    endpoint.set_max_associations(config.max_associations);
    endpoint.decide_incoming(config.undecided);
    // Over UDP all SCTP ports of a socket belong to this process, so packets to unknown ports are
    // answered. Over raw IP other processes may own them.
    endpoint.answer_unknown_ports(config.carrier != Carrier::Ip);
    Ok(endpoint)
}

#[cfg(test)]
mod tests {
    use std::task::{Wake, Waker};

    use super::*;

    struct Counted;

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {}
    }

    /// A waker must not be cloned under the lock, because cloning it may run any code.
    #[tokio::test]
    async fn no_waker_is_cloned_where_the_state_is_locked() {
        let config = Config::default().with(|it| {
            it.addresses = vec![std::net::Ipv4Addr::LOCALHOST.into()];
            it.carrier = Carrier::Encapsulated {
                port: 0,
                peer_port: 0,
            };
        });
        let endpoint = Endpoint::bind(config).expect("loopback");
        let counted = Arc::new(Counted);
        let waker = Waker::from(Arc::clone(&counted));
        let mut own = Some(waker.clone());
        for _ in 0..2 {
            let mut state = endpoint.shared.lock();
            let before = Arc::strong_count(&counted);
            state.park(&waker, &mut own, None);
            assert_eq!(Arc::strong_count(&counted), before);
            let known = state.driver.as_ref();
            assert!(own.is_none() && known.is_some_and(|it| it.will_wake(&waker)));
        }
    }
}
