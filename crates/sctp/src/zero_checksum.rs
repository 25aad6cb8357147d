//! Packets without a checksum, where the lower layer finds errors (RFC 9653).
//!
//! - Who announces the parameter takes packets whose checksum is zero. Here it is in an INIT whenever the setting is on, and in an
//!   INIT ACK where the INIT had it.
//! - Who hears it from the peer, and knows the same method, sends such packets: all but those with INIT or COOKIE ECHO, and answers
//!   to packets out of the blue.

use anabranch_wire::extension::{InitParameter, edmid};

use crate::config::{Config, ZeroChecksum};
use crate::extension::Extension;

/// Announced where the setting `zero_checksum` names the method.
pub(crate) static ZERO_CHECKSUM: Extension = Extension {
    wanted: |config| config.zero_checksum == ZeroChecksum::Dtls,
    parameter: || {
        let edmid = edmid::DTLS;
        let method = InitParameter::ZeroChecksumAcceptable { edmid };
        method.to_parameter().ok()
    },
    chunks: &[],
};

/// An association's checksums.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums {
    /// Checksums are computed and verified at all.
    computed: bool,
    /// The peer takes packets without one.
    peer_accepts: bool,
    /// The peer was told that such are taken here.
    announced: bool,
}

impl Sums {
    /// `begins`: an INIT goes out from here.
    pub(crate) fn new(config: &Config, begins: bool) -> Self {
        Self {
            computed: config.checksum,
            peer_accepts: false,
            announced: begins && !config.bare_init && (ZERO_CHECKSUM.wanted)(config),
        }
    }

    /// The handshake is done; `both`: both ends announced the method.
    pub(crate) fn settle(&mut self, both: bool) {
        self.peer_accepts = both;
        self.announced |= both;
    }

    /// Whether a packet gets its CRC32c; `vital`: it has an INIT or COOKIE ECHO (RFC 9653 §5.2).
    #[inline]
    pub(crate) fn wanted(self, vital: bool) -> bool {
        self.computed && (vital || !self.peer_accepts)
    }

    /// Whether packets without one are taken (RFC 9653 §5.3).
    pub(crate) fn accepts_zero(self) -> bool {
        self.announced
    }

    /// Whether packets go out without one.
    pub(crate) fn sends_zero(self) -> bool {
        self.peer_accepts
    }
}
