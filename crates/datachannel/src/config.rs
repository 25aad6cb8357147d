//! Configuration of a connection.

use std::net::IpAddr;

/// Configuration of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Address to which the socket is bound, and which the answer offers as host candidate. Default
    /// 127.0.0.1.
    pub address: IpAddr,
    /// UDP port; 0 selects a free port. Default 0.
    pub port: u16,
    /// Maximum size of received messages, bytes, announced in the answer (RFC 8841 §6.1). A larger
    /// message ends the connection. Default 262,144, like browsers.
    pub max_message: usize,
    /// Maximum size of a channel's queue, bytes. If it is exceeded, `send` waits and `try_send`
    /// fails. At least 64, because an empty message counts as 64. Default 16 MiB.
    pub max_buffered: usize,
    /// Maximum total size of the queues of all channels, bytes, including 64 for each message. If
    /// it is exceeded, `send` waits and `try_send` fails. At least 1. Default 64 MiB.
    pub max_buffered_total: usize,
    /// Maximum number of open channels. Default 1,024.
    pub max_channels: usize,
    /// Whether I-DATA (RFC 8260) is offered: if the peer supports it too, a large message does not
    /// delay messages of other channels. Default on.
    pub interleaving: bool,
}

impl Config {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The first setting that is out of range: name, value, minimum.
    pub(crate) fn wrong(&self) -> Option<(&'static str, usize, usize)> {
        [
            ("max_buffered", self.max_buffered, 64),
            ("max_buffered_total", self.max_buffered_total, 1),
        ]
        .into_iter()
        .find(|(_, found, least)| found < least)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            address: IpAddr::from([127, 0, 0, 1]),
            port: 0,
            max_message: 256 << 10,
            max_buffered: 16 << 20,
            max_buffered_total: 64 << 20,
            max_channels: 1_024,
            interleaving: true,
        }
    }
}
