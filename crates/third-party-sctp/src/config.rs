//! Configuration common to all third-party stacks.

use anabranch_settings::{Kind, settings};

/// Length of the common header and the DATA chunk header, bytes.
const HEADERS: usize = 12 + 16;

settings! {
    /// Configuration of both ends of an association of a third-party stack. All other settings have
    /// the default of the stack.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Config {
        /// Maximum size of an IP packet. The stacks do not discover the path MTU.
        mtu: u16 = 1500, Kind::Bytes { least: 576, most: 8192 }, "RFC 9260 §7.3";
        /// Size of the receive buffer, which is the window that is advertised and the size of the
        /// largest message.
        receive_buffer: u32 = 1 << 20, Kind::Bytes { least: 1500, most: 1 << 30 }, "RFC 9260 §5.1";
        /// Number of streams to request and to allow. The stream of a transfer is the transfer's
        /// number modulo this number.
        streams: u16 = 1, Kind::Count { least: 1, most: 1024 }, "RFC 9260 §5.1.1";
        /// Whether messages may be delivered in another order than they were sent.
        unordered: bool = false, Kind::Flag, "RFC 9260 §6.6";
    }
    beside {}
}

impl Config {
    /// Maximum length of an SCTP packet if the IP header has `ip` bytes.
    pub fn packet(&self, ip: u16) -> usize {
        usize::from(self.mtu - ip)
    }

    /// Number of user data bytes in a chunk that fills a packet. Chunk lengths are multiples of
    /// four.
    pub fn fragment(&self, ip: u16) -> usize {
        (self.packet(ip) - HEADERS) & !3
    }
}
