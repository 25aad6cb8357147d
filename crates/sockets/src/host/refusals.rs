//! Associations that are not set up because the ends do not agree on the DTLS chunk. Programs get
//! only an `errno`, so the host reports the reason to its user.

use std::net::SocketAddr;

use anabranch_net::sctp::{DiscardReason, Security};
use anabranch_net::{AssociationError, CloseReason, ConnectError, Endpoint};

use super::HostState;

/// Associations that were refused, by either end, because of the DTLS chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusals {
    /// Number of refused associations.
    pub count: u64,
    /// The reason of the last one.
    pub last: String,
}

/// Error causes of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.3), and the Protocol
/// Violation of a failed key management.
const CAUSES: [u16; 5] = [13, 100, 101, 102, 103];

impl HostState {
    /// Records that the setup of an association with this peer has failed, if the DTLS chunk is the
    /// reason.
    pub(super) fn record_failure(&self, peer: Option<SocketAddr>, error: &ConnectError) {
        let ConnectError::Association(AssociationError(reason)) = error else {
            return;
        };
        let is_it = match reason {
            CloseReason::PeerViolation(_) => true,
            CloseReason::AbortedByPeer { cause } => cause.is_some_and(|it| CAUSES.contains(&it)),
            _ => false,
        };
        if is_it {
            let peer = peer.map_or_else(String::new, |it| format!("{it}: "));
            self.refused(1, &format!("{peer}{error}"));
        }
    }

    /// Records the peers that the endpoint has refused since the last call with this endpoint and
    /// `known`. `known` is kept with the endpoint and not by the task that accepts associations,
    /// because a socket can listen several times at one endpoint.
    pub(super) fn record_refused(&self, endpoint: &Endpoint, known: &mut u64) {
        if self.config.sctp.security == Security::Off {
            return;
        }
        let count = endpoint.statistics().discards.of(DiscardReason::DtlsOffer);
        // The endpoint of a socket may have been replaced by one at another port.
        let more = count.saturating_sub(*known);
        *known = count;
        if more > 0 {
            let port = endpoint.port();
            let what = format!("port {port}: a peer does not offer the same DTLS chunk");
            self.refused(more, &what);
        }
    }

    fn refused(&self, more: u64, why: &str) {
        if self.config.sctp.security == Security::Off {
            return;
        }
        self.refusals.send_modify(|it| {
            it.count += more;
            why.clone_into(&mut it.last);
        });
    }
}
