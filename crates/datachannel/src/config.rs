//! What can be set about a connection.

use std::net::IpAddr;

/// Settings of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// The address that the socket is bound to, and that the answer offers as host candidate. 127.0.0.1 at first.
    pub address: IpAddr,
    /// The UDP port; 0: any. 0 at first.
    pub port: u16,
    /// The largest message that is taken, bytes, told in the answer (RFC 8841 §6.1). A larger one ends the connection.
    /// 262,144 at first, as browsers have it.
    pub max_message: usize,
    /// The most that a channel's queue holds, bytes; `send` waits, and `try_send` refuses beyond it. At least 64, what an empty message
    /// counts. 16 MiB at first.
    pub max_buffered: usize,
    /// The most that the queues of all channels hold together, bytes, with 64 for each message; `send` waits, and `try_send` refuses
    /// beyond it. At least 1. 64 MiB at first.
    pub max_buffered_total: usize,
    /// The most channels at a time. 1,024 at first.
    pub max_channels: usize,
    /// Whether I-DATA (RFC 8260) is offered: with a peer that speaks it, a large message delays none of another channel. On at first.
    pub interleaving: bool,
}

impl Config {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The first setting that is out of its range: its name, what it is, and the least.
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
