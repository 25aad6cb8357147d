//! The core on tokio: each connection has its own UDP socket and task.

mod channel;
mod driver;
mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use thiserror::Error;
use tokio::net::UdpSocket;

use crate::channel::ChannelOptions;
use crate::channels::OpenError;
use crate::close::Closed;
use crate::config::Config;
use crate::connection::{AcceptError, Connection, RandomSeed};
use crate::identity::Identity;
use shared::{Shared, SharedHandle, State};

pub use channel::DataChannel;

/// Reasons for which a connection cannot be created.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The offer was not accepted.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The socket could not be bound.
    #[error("cannot bind {address}: {error}")]
    Socket {
        /// Address of the socket.
        address: SocketAddr,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The system provided no random bytes.
    #[error("no random bytes: {0}")]
    Random(String),
}

/// A connection with a peer. The connection is closed when the handle and all channels are dropped.
#[derive(Debug)]
pub struct PeerConnection {
    shared: Arc<SharedHandle>,
}

impl PeerConnection {
    /// Accepts an offer of a peer, and returns the answer. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The offer contains no valid data channel section, or the socket cannot be opened.
    pub async fn accept(offer: &str, config: Config) -> Result<(Self, String), BindError> {
        let address = SocketAddr::new(config.address, config.port);
        let failed = |error| BindError::Socket { address, error };
        let socket = UdpSocket::bind(address).await.map_err(failed)?;
        let bound = socket.local_addr().map_err(failed)?;
        let identity = Identity::new(random()?).map_err(AcceptError::from)?;
        let origin = start();
        let (connection, answer) = Connection::accept(
            offer,
            &config,
            &identity,
            &RandomSeed::new(random()?),
            bound,
            (origin, 0),
        )?;
        let shared = Arc::new(Shared::new(connection, origin));
        tokio::spawn(driver::drive(socket, Arc::clone(&shared)));
        let shared = Arc::new(SharedHandle(shared));
        Ok((Self { shared }, answer))
    }

    /// Opens a channel, which can be used immediately, even before the connection is established.
    ///
    /// # Errors
    /// The channel cannot be opened.
    pub fn open(&self, options: ChannelOptions) -> Result<DataChannel, OpenError> {
        let id = self.shared.open(options.clone())?;
        Ok(DataChannel::new(Arc::clone(&self.shared), id, options))
    }

    /// The next channel that the peer opened; `None` once the connection ended. Cancel-safe.
    pub async fn incoming(&self) -> Option<DataChannel> {
        let (id, options) = self
            .shared
            .wait(&self.shared.news.incoming, State::next_incoming)
            .await?;
        Some(DataChannel::new(Arc::clone(&self.shared), id, options))
    }

    /// Waits until the connection is established.
    ///
    /// # Errors
    /// The connection ended before it was established.
    pub async fn connected(&self) -> Result<(), Closed> {
        let news = &self.shared.news.connected;
        self.shared.wait(news, State::connected).await
    }

    /// Waits until the connection ends, and returns the reason.
    pub async fn closed(&self) -> Closed {
        let news = &self.shared.news.closed;
        self.shared.wait(news, State::reason).await
    }

    /// Ends the connection. Queued messages are lost.
    pub fn close(&self) {
        self.shared.close();
    }

    /// Counters of discarded input by reason.
    pub fn discards(&self) -> Vec<(crate::DiscardReason, u64)> {
        self.shared.with(|state| {
            let connection = &state.connection;
            let own = connection.discards().iter();
            own.chain(connection.channels().discards().iter()).collect()
        })
    }

    /// Whether both ends support I-DATA (RFC 8260), so that a large message does not delay messages
    /// of other channels. `false` until connected.
    pub fn is_interleaving(&self) -> bool {
        self.shared.with(|state| state.connection.is_interleaving())
    }

    /// Whether this end sends packets without SCTP's checksum, because the peer relies on DTLS to
    /// detect damaged packets (RFC 9653 §6).
    pub fn sends_zero_checksums(&self) -> bool {
        self.shared
            .with(|state| state.connection.sends_zero_checksums())
    }

    /// SCTP statistics of this connection, once it is established.
    pub fn statistics(&self) -> Option<anabranch_sctp::stats::AssociationStatistics> {
        self.shared.with(|state| state.connection.statistics())
    }
}

/// The instant of a connection's time 0, which is now.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the edge that has a clock"
)]
fn start() -> Instant {
    Instant::now()
}

fn random() -> Result<[u8; 32], BindError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| BindError::Random(error.to_string()))?;
    Ok(bytes)
}
