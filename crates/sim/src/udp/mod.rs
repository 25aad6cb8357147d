//! UDP agents for cross traffic: real headers (RFC 768), numbered and stamped datagrams.

mod header;
mod sink;
mod source;
pub mod tunnel;

pub use sink::{UdpSink, UdpSinkStats};
pub use source::{UdpSource, UdpSourceConfig};

/// Bytes before the padding of each datagram: its sequence number and its sending time, 8 bytes
/// each.
const STAMP: usize = 16;

#[cfg(test)]
mod tests;
