//! Associations that a command starts, with repeated attempts.

use std::time::Duration;

use anabranch_net::sctp::Violation;
use anabranch_net::{AssociationError, CloseReason, ConnectError, ConnectOptions, Endpoint, Peer};
use tokio::time::Instant;

use super::bind::Bound;
use super::connection::Connection;
use crate::failure::Failure;

/// Maximum number of SCTP ports to try, because other hosts with the same address (behind a NAT)
/// may use a port.
const MAX_PORTS: usize = 32;

/// Time for which connecting to a closed UDP port is repeated, because a script may start a server
/// just before its client.
const STARTING: Duration = Duration::from_secs(3);
/// Interval of attempts while the peer's port is closed.
const AGAIN: Duration = Duration::from_millis(50);

/// Cause code of the ABORT of a peer that requires AUTH (RFC 4895).
const MISSING_MANDATORY_PARAMETER: u16 = 2;
/// Cause code of the ABORT of a peer that requires the DTLS chunk.
const MISSING_DTLS_CHUNK_SUPPORT: u16 = 100;

/// Starts an association with the peer `host` within `limit`, and performs the handshake of RFC
/// 6083 if the options require it.
pub async fn connect(
    bound: &mut Bound,
    number: usize,
    host: &str,
    peer: &Peer,
    limit: Duration,
) -> Result<Connection, ConnectFailure> {
    let (begun, mut ports) = (Instant::now(), 1);
    loop {
        let endpoint = &bound.endpoints[number];
        let left = limit.saturating_sub(begun.elapsed());
        let options = ConnectOptions::default().with_timeout(left);
        match endpoint.connect_with(peer.clone(), options).await {
            Ok(association) => {
                let left = limit.saturating_sub(begun.elapsed());
                let secured = Connection::client(association, bound.secure.clone(), left).await;
                return secured.map_err(|error| ConnectFailure {
                    failure: Failure::Net(format!("{host}: {error}")),
                    refused: false,
                });
            }
            // Another host with this address uses the SCTP port, so the next attempt uses another
            // one.
            Err(error)
                if error.is_port_collision() && ports < MAX_PORTS && bound.is_drawn(number) =>
            {
                ports += 1;
                bound.draw_again(number).map_err(|failure| ConnectFailure {
                    failure,
                    refused: false,
                })?;
            }
            Err(ConnectError::Association(AssociationError(CloseReason::ProtocolUnreachable)))
                if begun.elapsed() + AGAIN < limit.min(STARTING) =>
            {
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => {
                let is_rfc6083 = bound.secure.is_some();
                return Err(unconnected(endpoint, host, peer, &error, is_rfc6083));
            }
        }
    }
}

/// Error of a failed attempt.
pub struct ConnectFailure {
    pub failure: Failure,
    /// True if the peer refused this association; it may accept others.
    pub refused: bool,
}

impl From<ConnectFailure> for Failure {
    fn from(unconnected: ConnectFailure) -> Self {
        unconnected.failure
    }
}

/// A hint for the user, for errors without an answer of a server.
fn is_a_server_there(endpoint: &Endpoint) -> String {
    let place = match endpoint.udp_port() {
        0 => "with --carrier ip",
        _ => "at the UDP port of --peer-udp-port",
    };
    format!("; is a server there, {place}?")
}

fn unconnected(
    endpoint: &Endpoint,
    host: &str,
    peer: &Peer,
    error: &ConnectError,
    is_rfc6083: bool,
) -> ConnectFailure {
    let hint = match error {
        ConnectError::Association(AssociationError(CloseReason::AbortedByPeer { cause: None })) => {
            format!(
                "; nobody accepts associations at SCTP port {} there",
                peer.port
            )
        }
        ConnectError::Association(AssociationError(CloseReason::NoAnswer)) => {
            let discards = endpoint.statistics().discards;
            let heard = match discards.total() {
                0 => String::new(),
                _ => format!(" (packets came, and were discarded: {discards})"),
            };
            format!("{heard}{}", is_a_server_there(endpoint))
        }
        ConnectError::Association(AssociationError(CloseReason::ProtocolUnreachable)) => {
            is_a_server_there(endpoint)
        }
        ConnectError::Association(AssociationError(CloseReason::AbortedByPeer {
            cause: Some(MISSING_MANDATORY_PARAMETER),
        })) => "; does the peer require --security rfc6083, or --set authentication=required?".to_owned(),
        ConnectError::Association(AssociationError(CloseReason::AbortedByPeer {
            cause: Some(MISSING_DTLS_CHUNK_SUPPORT),
        })) => "; the peer requires the DTLS chunk: --psk-file, or --tls-cert without --security rfc6083".to_owned(),
        ConnectError::Association(AssociationError(CloseReason::PeerViolation(
            Violation::NoAuth,
        ))) if is_rfc6083 => {
            "; does the server have --security rfc6083?".to_owned()
        }
        _ => String::new(),
    };
    let refused = matches!(
        error,
        ConnectError::Association(AssociationError(CloseReason::AbortedByPeer { .. }))
    );
    ConnectFailure {
        failure: Failure::Net(format!("{host}: {error}{hint}")),
        refused,
    }
}
