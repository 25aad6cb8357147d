//! Binding of endpoints: `bind`, `bind_with` and its options.

use std::fmt;

use super::Endpoint;
use crate::config::Config;
use crate::error::BindError;
use crate::observer::Observer;
use crate::shared_sockets::SharedSockets;

/// Options of [`Endpoint::bind_with`]: shared sockets and an observer.
#[derive(Default)]
#[non_exhaustive]
pub struct BindOptions {
    /// Sockets that the endpoint shares with others. `None`: the endpoint opens its own sockets as
    /// its settings specify.
    pub sockets: Option<SharedSockets>,
    /// Observer of every packet and of recorded samples.
    pub observer: Option<Box<dyn Observer>>,
}

impl BindOptions {
    /// Returns a copy with this observer.
    #[must_use]
    pub fn with_observer(mut self, observer: Box<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }
}

impl From<&SharedSockets> for BindOptions {
    fn from(sockets: &SharedSockets) -> Self {
        Self {
            sockets: Some(sockets.clone()),
            observer: None,
        }
    }
}

impl From<Box<dyn Observer>> for BindOptions {
    fn from(observer: Box<dyn Observer>) -> Self {
        Self::default().with_observer(observer)
    }
}

impl fmt::Debug for BindOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BindOptions")
            .field("sockets", &self.sockets)
            .field("observer", &self.observer.is_some())
            .finish()
    }
}

impl Endpoint {
    /// Opens the sockets and starts the endpoint's task on the runtime in `config`, or on the
    /// current runtime if `config` has none.
    ///
    /// # Errors
    /// A setting is invalid, a socket cannot be opened or bound, or there is no runtime.
    pub fn bind(config: Config) -> Result<Self, BindError> {
        Self::bind_with(config, BindOptions::default())
    }

    /// Like [`Endpoint::bind`], with an observer, or on sockets that other endpoints use too:
    ///
    /// ```no_run
    /// use anabranch_net::{Config, Endpoint, SharedSockets};
    ///
    /// # async fn run() -> Result<(), anabranch_net::BindError> {
    /// let sockets = SharedSockets::open(&Config::server(0))?; // UDP port 9899
    /// let echo = Endpoint::bind_with(Config::server(7), &sockets)?;
    /// let discard = Endpoint::bind_with(Config::server(9), &sockets)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// On shared sockets the carrier of `config` is ignored. If `config` lists addresses, only
    /// these are listed to peers; each must be an address of the shared sockets. If the port in
    /// `config` is 0, the endpoint gets a port that is free on these sockets. Endpoints with one
    /// port must have different addresses: a packet goes to the endpoint that has its destination
    /// address.
    ///
    /// # Errors
    /// The errors of [`Endpoint::bind`]; another endpoint has the port at one of the addresses; or
    /// the task of the sockets has ended.
    pub fn bind_with(config: Config, options: impl Into<BindOptions>) -> Result<Self, BindError> {
        let BindOptions { sockets, observer } = options.into();
        let sockets = match sockets {
            Some(sockets) => sockets,
            None => {
                config.check()?;
                SharedSockets::open(&config)?
            }
        };
        Self::join(&sockets, config, observer)
    }
}
