//! UDP agents for cross traffic: datagrams with real headers (RFC 768), sequence numbers and time
//! stamps.

mod header;
mod sink;
mod source;
pub mod tunnel;

pub use sink::{UdpSink, UdpSinkStats};
pub use source::{UdpSource, UdpSourceConfig};

/// Length of the stamp at the start of each payload, bytes: 8 for the sequence number and 8 for the
/// sending time.
const STAMP: usize = 16;

#[cfg(test)]
mod tests;
