//! What a stack is given: the settings that all of them have.

use anabranch_settings::{Kind, settings};

/// Of the common header and of that of a DATA chunk.
const HEADERS: usize = 12 + 16;

settings! {
    /// Configuration of both ends of an association of a foreign stack. What is not here has the stack's own default.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Largest IP packet. None of the stacks searches for a larger one.
        mtu: u16 = 1500, Kind::Bytes { least: 576, most: 8192 }, "RFC 9260 §7.3";
        /// Receive buffer: the window that is advertised, and the largest message.
        receive_buffer: u32 = 1 << 20, Kind::Bytes { least: 1500, most: 1 << 30 }, "RFC 9260 §5.1";
        /// Streams that are asked for and allowed. A transfer has the stream of its number modulo this.
        streams: u16 = 1, Kind::Count { least: 1, most: 1024 }, "RFC 9260 §5.1.1";
        /// Messages may overtake one another.
        unordered: bool = false, Kind::Flag, "RFC 9260 §6.6";
    }
    beside {}
}

impl Config {
    /// The longest SCTP packet inside an IP packet with a header of `ip` bytes.
    pub fn packet(&self, ip: u16) -> usize {
        usize::from(self.mtu - ip)
    }

    /// The user data of one chunk that fills a packet; chunks end at a multiple of four.
    pub fn fragment(&self, ip: u16) -> usize {
        (self.packet(ip) - HEADERS) & !3
    }
}
