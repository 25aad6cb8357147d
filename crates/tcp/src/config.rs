//! What a connection is given besides its profile.

use anabranch_congestion::tcp_algorithms::{self, Algorithm};
use anabranch_congestion::tuning::Tuning;
use anabranch_transport::Nanos;
use anabranch_transport::time::SECOND;

use crate::profile::Profile;

/// Configuration of one end.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The choices among texts and implementations.
    pub profile: Profile,
    /// The congestion control algorithm; see [`tcp_algorithms::ALGORITHMS`].
    pub congestion: &'static Algorithm,
    /// The numbers of algorithms that have their own.
    pub tuning: Tuning,
    /// Largest segment this end takes and sends, bytes without headers (RFC 9293 §3.7.1): 1 to 65495.
    pub mss: u16,
    /// Receive buffer, bytes; at most 65535 of it are offered unless both ends scale their windows, and 2^30 at all.
    pub receive_buffer: u32,
    /// Bytes that [`Connection::write`](crate::Connection::write) takes and holds until they are acknowledged.
    pub send_buffer: u64,
    /// Compute and verify checksums. A simulation that never corrupts may do without.
    pub checksum: bool,
    /// Where the edges of a coarse clock lie, below `profile.clock_tick`; no matter where that is 0.
    pub clock_phase: Nanos,
    /// How long TIME-WAIT lasts, two maximum segment lifetimes (RFC 9293 §3.4.2): 240 s.
    pub time_wait: Nanos,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            profile: Profile::default(),
            congestion: &tcp_algorithms::ALGORITHMS[0],
            tuning: Tuning::default(),
            mss: 1460,
            receive_buffer: 65_535,
            send_buffer: 1 << 20,
            checksum: true,
            clock_phase: 0,
            time_wait: 240 * SECOND,
        }
    }
}

impl Config {
    /// The default configuration with another profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }
}
