//! Packets without a checksum, if the lower layer detects errors (RFC 9653).
//!
//! - An end that sends the parameter accepts packets with a zero checksum. The parameter is sent in
//!   every INIT if the setting is on, and in an INIT ACK if the INIT contained it.
//! - An end that receives the parameter and supports the same method sends packets with a zero
//!   checksum, except packets with INIT or COOKIE ECHO and answers to out of the blue packets.

use anabranch_wire::extension::{InitParameter, edmid};

use crate::config::{Config, ZeroChecksum};
use crate::extension_descriptor::Extension;

/// The extension for a zero checksum, offered if the setting `zero_checksum` selects a method.
pub(crate) static ZERO_CHECKSUM: Extension = Extension {
    wanted: |config| config.zero_checksum == ZeroChecksum::Dtls,
    parameter: || {
        let edmid = edmid::DTLS;
        let method = InitParameter::ZeroChecksumAcceptable { edmid };
        method.to_parameter().ok()
    },
    chunks: &[],
};

/// Checksum mode of an association.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChecksumMode {
    /// Whether checksums are computed and verified at all.
    computed: bool,
    /// Whether the peer accepts packets without a checksum.
    peer_accepts: bool,
    /// Whether this end has announced that it accepts packets without a checksum.
    announced: bool,
}

impl ChecksumMode {
    /// Initial mode. `begins`: this end sends the INIT.
    pub(crate) fn new(config: &Config, begins: bool) -> Self {
        Self {
            computed: config.checksum,
            peer_accepts: false,
            announced: begins && !config.minimal_init && (ZERO_CHECKSUM.wanted)(config),
        }
    }

    /// Completes the handshake. `both`: both ends announced the method.
    pub(crate) fn settle(&mut self, both: bool) {
        self.peer_accepts = both;
        self.announced |= both;
    }

    /// Whether a packet needs its CRC32c. `vital`: it contains an INIT or COOKIE ECHO (RFC 9653
    /// §5.2).
    #[inline]
    pub(crate) fn wanted(self, vital: bool) -> bool {
        self.computed && (vital || !self.peer_accepts)
    }

    /// Whether packets without a checksum are accepted (RFC 9653 §5.3).
    pub(crate) fn accepts_zero(self) -> bool {
        self.announced
    }

    /// Whether packets are sent without a checksum.
    pub(crate) fn sends_zero(self) -> bool {
        self.peer_accepts
    }
}
