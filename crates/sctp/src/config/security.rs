//! Validation of the settings of the DTLS chunk, and the initial state of the chunk.

use super::Config;
use super::validate::{ConfigError, refuse};
use crate::authentication::Authentication;
use crate::dtls_chunk::{DtlsChunk, Security};

/// Maximum size in bytes of an IP packet whose chunks fit into one DTLS record (RFC 9147 §4).
const MAX_MTU: usize = 16_384;

impl Config {
    /// Initial DTLS chunk state of an association that offers the DTLS chunk.
    pub(crate) fn dtls_chunk(&self, random: [u8; 32], seed: [u8; 32]) -> DtlsChunk {
        let window = usize::try_from(self.dtls_replay_window).unwrap_or(usize::MAX);
        let rekey_after = self.dtls_rekey_packets.unwrap_or(u64::MAX);
        DtlsChunk::new(&self.key_methods, window, rekey_after, [random, seed])
    }

    /// Checks that neither AUTH nor dynamic addresses are negotiated with the DTLS chunk
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2), and that packets fit into a record.
    pub(super) fn check_security(&self) -> Result<(), ConfigError> {
        if self.security == Security::Off {
            return Ok(());
        }
        let refused = if self.authentication != Authentication::Off {
            Some("authentication = \"off\" (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.2)")
        } else if self.address_changes {
            Some("address_changes = false: dynamic addresses without AUTH are not implemented")
        } else if self.minimal_init {
            Some("minimal_init = false, because INIT carries the offer")
        } else {
            None
        };
        if let Some(other) = refused {
            let allowed = format!("\"off\", or {other}");
            return Err(refuse("security", format!("{:?}", self.security), allowed));
        }
        if self.mtu > MAX_MTU {
            let allowed = format!("at most {MAX_MTU} B with `security` (RFC 9147 §4)");
            return Err(refuse("mtu", format!("{} B", self.mtu), allowed));
        }
        Ok(())
    }
}
