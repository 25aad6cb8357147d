//! The core on tokio: a connection with a UDP socket of its own and a task that owns it.

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
use crate::connection::{AcceptError, Connection, Secret};
use crate::identity::Identity;
use shared::{Held, Shared, State};

pub use channel::DataChannel;

/// Why a connection was not made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BindError {
    /// The offer was not accepted.
    #[error(transparent)]
    Accept(#[from] AcceptError),
    /// The socket could not be bound.
    #[error("cannot bind {address}: {error}")]
    Socket {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        error: std::io::Error,
    },
    /// The system gives no random bytes.
    #[error("no random bytes: {0}")]
    Random(String),
}

/// A connection with a peer. Dropping it, and every channel of it, closes it.
#[derive(Debug)]
pub struct PeerConnection {
    shared: Arc<Held>,
}

impl PeerConnection {
    /// Accepts the offer of a peer, and gives the answer for it. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// The offer is no offer of data channels, or there is no socket.
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
            &Secret::new(random()?),
            bound,
            (origin, 0),
        )?;
        let shared = Arc::new(Shared::new(connection, origin));
        tokio::spawn(driver::drive(socket, Arc::clone(&shared)));
        let shared = Arc::new(Held(shared));
        Ok((Self { shared }, answer))
    }

    /// Opens a channel. It can be used at once, also before the connection is up.
    ///
    /// # Errors
    /// It cannot be opened.
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

    /// Waits until channels can be used.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn connected(&self) -> Result<(), Closed> {
        let news = &self.shared.news.connected;
        self.shared.wait(news, State::connected).await
    }

    /// Waits until the connection ends, and says why.
    pub async fn closed(&self) -> Closed {
        let news = &self.shared.news.closed;
        self.shared.wait(news, State::reason).await
    }

    /// Ends the connection. What is queued is lost.
    pub fn close(&self) {
        self.shared.close();
    }

    /// What was thrown away of what arrived, by reason, and how often.
    pub fn discards(&self) -> Vec<(crate::Discard, u64)> {
        self.shared.with(|state| {
            let connection = &state.connection;
            let own = connection.discards().iter();
            own.chain(connection.channels().discards().iter()).collect()
        })
    }

    /// Whether a large message holds up none of another channel: both ends speak I-DATA (RFC 8260). `false` until connected.
    pub fn is_interleaving(&self) -> bool {
        self.shared.with(|state| state.connection.is_interleaving())
    }

    /// Whether this side's packets go without SCTP's checksum, since the peer lets DTLS find damaged ones (RFC 9653 §6).
    pub fn sends_zero_checksums(&self) -> bool {
        self.shared
            .with(|state| state.connection.sends_zero_checksums())
    }

    /// What SCTP counts of this connection, once it is connected.
    pub fn statistics(&self) -> Option<anabranch_sctp::stats::AssociationStatistics> {
        self.shared.with(|state| state.connection.statistics())
    }
}

/// The instant that a connection counts its time from.
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
