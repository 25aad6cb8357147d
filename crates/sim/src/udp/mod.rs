//! UDP agents for cross traffic: real headers (RFC 768), numbered and stamped datagrams.

mod header;
mod sink;
mod source;
pub mod tunnel;

pub use sink::{UdpSink, UdpSinkStats};
pub use source::{UdpSource, UdpSourceConfig};

/// What each datagram carries before its padding: its number and the time of its sending, 8 bytes each.
const STAMP: usize = 16;

#[cfg(test)]
mod tests;
