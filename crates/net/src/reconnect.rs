//! A client that reconnects after failures.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anabranch_sctp::CloseReason;
use thiserror::Error;

use crate::association::Association;
use crate::endpoint::{ConnectOptions, Endpoint};
use crate::error::{AssociationError, ConnectError};
use crate::peer::Peer;
use crate::random::fraction;
use crate::runtime::Timer;

/// Why a client has no association at present: see [`ReconnectPolicy::is_final`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConnectionFailure {
    /// An attempt failed.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The association has ended.
    #[error("the association ended: {0}")]
    Closed(CloseReason),
}

impl ConnectionFailure {
    /// Returns true if reconnecting cannot help or needs a decision of the application: the peer
    /// cannot be addressed, it redirects to another peer, or this side has aborted the association
    /// or closed its endpoint.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Closed(reason) => *reason == CloseReason::AbortedHere,
            Self::Connect(error) => match error {
                ConnectError::Association(AssociationError(reason)) => {
                    *reason == CloseReason::AbortedHere
                }
                ConnectError::Name { .. } => false,
                _ => true,
            },
        }
    }
}

/// Timing and limits of a [`ReconnectingClient`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReconnectPolicy {
    /// The delay after the first failure; 500 ms by default. Each consecutive failure doubles the
    /// delay.
    pub first_delay: Duration,
    /// Maximum delay; 30 s by default.
    pub max_delay: Duration,
    /// The random fraction of each delay, 0 to 1. By default it is 0.5: the client waits for a
    /// random time between half of the delay and the full delay. It should be larger than 0, so
    /// that the clients of a restarted server do not all connect at the same time.
    pub jitter: f64,
    /// The client ends after this number of consecutive failures, at least 1. `None`, the default:
    /// never.
    pub max_failures: Option<u32>,
    /// An association that lasts at least this long resets the count of consecutive failures; 10 s
    /// by default. The end of a shorter association increases the count, so that delays grow if a
    /// peer accepts and then aborts each time.
    pub stable_after: Duration,
    /// Decides whether a failure ends the client; [`ConnectionFailure::is_permanent`] by default. A
    /// graceful shutdown by either side is [`ConnectionFailure::Closed`] with
    /// [`CloseReason::Shutdown`], and by default the client reconnects, because a server that is
    /// restarted also shuts its associations down. To end a client, drop it.
    pub is_final: fn(&ConnectionFailure) -> bool,
}

/// Maximum of all delays, one year, so that adding a delay to a time cannot overflow.
const MAX_DELAY: Duration = Duration::from_secs(365 * 86_400);

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
            jitter: 0.5,
            max_failures: None,
            stable_after: Duration::from_secs(10),
            is_final: ConnectionFailure::is_permanent,
        }
    }
}

impl ReconnectPolicy {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The delay after this number of consecutive failures; `random` is a random number from 0 to
    /// 1.
    fn delay(&self, failures: u32, random: f64) -> Duration {
        let doublings = failures.saturating_sub(1).min(31);
        let longest = self.first_delay.saturating_mul(1 << doublings);
        let jitter = self.jitter.clamp(0.0, 1.0);
        let longest = longest.min(self.max_delay).min(MAX_DELAY);
        longest.mul_f64(1.0 - jitter * random)
    }

    /// Returns true if the client should end after this failure, the last of `failures` consecutive
    /// ones.
    fn ends(&self, failures: u32, failure: &ConnectionFailure) -> bool {
        self.max_failures.is_some_and(|most| failures >= most) || (self.is_final)(failure)
    }
}

/// An event of a [`ReconnectingClient`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReconnectEvent {
    /// An attempt starts.
    Connecting {
        /// Number of the attempt since the last success, counted from 1.
        attempt: u32,
    },
    /// The association is established.
    Connected(Association),
    /// An attempt failed, or the association has ended; the next attempt follows.
    Failed {
        /// The error of the attempt, or the reason why the association ended.
        failure: ConnectionFailure,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// An attempt failed, or the association has ended, and the policy ends the client.
    Ended(ConnectionFailure),
}

/// A client that maintains an association with a peer: if an attempt fails or the association ends,
/// it reconnects by a [`ReconnectPolicy`]. The client makes progress only while one of its methods
/// is awaited, because it has no task.
///
/// ```no_run
/// use anabranch_net::{
///     Config, Endpoint, Peer, ReconnectEvent, ReconnectPolicy, ReconnectingClient, SendOptions,
/// };
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let endpoint = Endpoint::bind(Config::default())?;
/// let peer = Peer::from(("peer.example", 3868));
/// let mut client = ReconnectingClient::new(endpoint, peer, ReconnectPolicy::default());
/// while let Some(event) = client.next_event().await {
///     match event {
///         ReconnectEvent::Connected(association) => {
///             // Its own task: this one waits for its end.
///             tokio::spawn(async move {
///                 while let Ok(Some(message)) = association.recv().await {
///                     println!("{} bytes", message.bytes.len());
///                 }
///             });
///         }
///         ReconnectEvent::Failed { failure, retry_in } => {
///             println!("{failure}; again in {retry_in:?}");
///         }
///         ReconnectEvent::Ended(failure) => return Err(failure.into()),
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
///
/// The client keeps a clone of the association. Dropping the client aborts a pending attempt, and
/// shuts down the association if there are no other handles.
pub struct ReconnectingClient {
    endpoint: Endpoint,
    peer: Peer,
    policy: ReconnectPolicy,
    options: ConnectOptions,
    /// Number of consecutive failures.
    failures: u32,
    state: State,
}

enum State {
    /// The next attempt should start now.
    Due,
    Connecting(Pin<Box<dyn Future<Output = Result<Association, ConnectError>> + Send>>),
    Connected {
        association: Association,
        since: Instant,
    },
    Waiting(Pin<Box<dyn Timer>>),
    Ended(ConnectionFailure),
}

impl ReconnectingClient {
    /// Creates a client that connects `endpoint` to `peer`. It connects when
    /// [`ReconnectingClient::next_event`] or [`ReconnectingClient::association`] is awaited.
    pub fn new(endpoint: Endpoint, peer: impl Into<Peer>, policy: ReconnectPolicy) -> Self {
        Self {
            endpoint,
            peer: peer.into(),
            policy,
            options: ConnectOptions::default(),
            failures: 0,
            state: State::Due,
        }
    }

    /// Returns a copy that connects with these options.
    #[must_use]
    pub fn with_options(mut self, options: ConnectOptions) -> Self {
        self.options = options;
        self
    }

    /// The endpoint on which the client connects.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The next event; `None` after [`ReconnectEvent::Ended`]. While an association is established,
    /// this waits for its end.
    ///
    /// Cancel-safe: if the future is dropped, no event is lost, and the next call continues.
    pub async fn next_event(&mut self) -> Option<ReconnectEvent> {
        loop {
            let failure = match &mut self.state {
                State::Ended(_) => return None,
                State::Due => {
                    self.state = State::Connecting(self.attempt());
                    let attempt = self.failures.saturating_add(1);
                    return Some(ReconnectEvent::Connecting { attempt });
                }
                State::Waiting(timer) => {
                    timer.as_mut().await;
                    self.state = State::Due;
                    continue;
                }
                State::Connecting(attempt) => match attempt.as_mut().await {
                    Ok(association) => {
                        self.state = State::Connected {
                            association: association.clone(),
                            since: self.endpoint.runtime().now(),
                        };
                        return Some(ReconnectEvent::Connected(association));
                    }
                    Err(error) => ConnectionFailure::Connect(error),
                },
                State::Connected { association, since } => {
                    let reason = association.closed().await;
                    let now = self.endpoint.runtime().now();
                    if now.saturating_duration_since(*since) >= self.policy.stable_after {
                        self.failures = 0;
                    }
                    ConnectionFailure::Closed(reason)
                }
            };
            return Some(self.fail(failure));
        }
    }

    /// The established association. Reconnects if necessary; the events of these attempts are not
    /// returned. If the association is shutting down, this method waits for its end, because such
    /// an association accepts no messages.
    ///
    /// Cancel-safe: if the future is dropped, the next call continues.
    ///
    /// # Errors
    /// The failure after which the client has ended.
    pub async fn association(&mut self) -> Result<Association, ConnectionFailure> {
        loop {
            match &self.state {
                State::Connected { association, .. } if association.is_established() => {
                    return Ok(association.clone());
                }
                State::Ended(failure) => return Err(failure.clone()),
                _ => drop(self.next_event().await),
            }
        }
    }

    fn attempt(&self) -> Pin<Box<dyn Future<Output = Result<Association, ConnectError>> + Send>> {
        let (endpoint, peer) = (self.endpoint.clone(), self.peer.clone());
        let options = self.options.clone();
        Box::pin(async move { endpoint.connect_with(peer, options).await })
    }

    fn fail(&mut self, failure: ConnectionFailure) -> ReconnectEvent {
        self.failures = self.failures.saturating_add(1);
        if self.policy.ends(self.failures, &failure) {
            self.state = State::Ended(failure.clone());
            return ReconnectEvent::Ended(failure);
        }
        let retry_in = self.policy.delay(self.failures, fraction());
        let runtime = self.endpoint.runtime();
        self.state = State::Waiting(runtime.timer(runtime.now() + retry_in));
        ReconnectEvent::Failed { failure, retry_in }
    }
}

impl fmt::Debug for ReconnectingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectingClient")
            .field("peer", &self.peer)
            .field("failures", &self.failures)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_jitter_shortens_them() {
        let policy = ReconnectPolicy::default();
        let delays = [1, 2, 3, 6, 7, 100].map(|failures| policy.delay(failures, 0.0).as_millis());
        assert_eq!(delays, [500, 1_000, 2_000, 16_000, 30_000, 30_000]);
        assert_eq!(policy.delay(1, 1.0), Duration::from_millis(250));
        assert_eq!(policy.delay(1, 0.5), Duration::from_millis(375));
        let exact = policy.with(|it| it.jitter = 0.0);
        assert_eq!(exact.delay(2, 1.0), Duration::from_secs(1));
        let never =
            exact.with(|it| (it.first_delay, it.max_delay) = (Duration::MAX, Duration::MAX));
        assert_eq!(never.delay(1, 1.0), MAX_DELAY);
    }

    #[test]
    fn a_failure_that_no_attempt_can_cure_is_permanent() {
        let connect = |reason| ConnectionFailure::Connect(AssociationError(reason).into());
        let name = ConnectError::Name {
            name: "peer".to_owned(),
            why: "no answer".to_owned(),
        };
        for (failure, permanent) in [
            (connect(CloseReason::NoAnswer), false),
            (connect(CloseReason::AbortedByPeer { cause: None }), false),
            (connect(CloseReason::AbortedHere), true),
            (name.into(), false),
            (ConnectError::NoUdpPort.into(), true),
            (ConnectError::Redirected(Peer::new([], 7)).into(), true),
            (ConnectionFailure::Closed(CloseReason::Shutdown), false),
            (
                ConnectionFailure::Closed(CloseReason::PeerUnreachable),
                false,
            ),
            (ConnectionFailure::Closed(CloseReason::AbortedHere), true),
        ] {
            assert_eq!(failure.is_permanent(), permanent, "{failure}");
        }
        let policy = ReconnectPolicy::default().with(|it| it.max_failures = Some(3));
        let failure = connect(CloseReason::NoAnswer);
        assert!(!policy.ends(2, &failure) && policy.ends(3, &failure));
    }
}
