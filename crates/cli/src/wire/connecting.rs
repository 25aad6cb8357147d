//! Associations that a command begins.

use std::time::Duration;

use anabranch_net::{Association, CloseReason, ConnectError, Endpoint, Lost, Peer};

use super::Bound;
use crate::failure::Failure;

/// SCTP ports that are tried where other hosts with this address have the same ones.
const MAX_PORTS: usize = 32;

/// Begins an association with the peer that `host` named, within `limit`.
pub async fn connect(
    bound: &mut Bound,
    number: usize,
    host: &str,
    peer: &Peer,
    limit: Duration,
) -> Result<Association, Unconnected> {
    for _ in 1..MAX_PORTS {
        match bound.endpoints[number]
            .connect_within(peer.clone(), limit)
            .await
        {
            Ok(association) => return Ok(association),
            // Another host with this address has the port.
            Err(error) if error.is_port_collision() => {
                bound.draw_again(number).map_err(|failure| Unconnected {
                    failure,
                    refused: false,
                })?;
            }
            Err(error) => return Err(unconnected(&bound.endpoints[number], host, peer, &error)),
        }
    }
    let endpoint = &bound.endpoints[number];
    let last = endpoint.connect_within(peer.clone(), limit).await;
    last.map_err(|error| unconnected(endpoint, host, peer, &error))
}

/// Why there is no association.
pub struct Unconnected {
    pub failure: Failure,
    /// The peer refused it: others may be accepted.
    pub refused: bool,
}

impl From<Unconnected> for Failure {
    fn from(unconnected: Unconnected) -> Self {
        unconnected.failure
    }
}

fn unconnected(endpoint: &Endpoint, host: &str, peer: &Peer, error: &ConnectError) -> Unconnected {
    let hint = match error {
        ConnectError::Lost(Lost(CloseReason::AbortedByPeer { cause: None })) => {
            format!(
                "; nobody accepts associations at SCTP port {} there",
                peer.port
            )
        }
        ConnectError::Lost(Lost(CloseReason::NoAnswer)) => {
            let discards = endpoint.statistics().discards;
            let heard = match discards.total() {
                0 => String::new(),
                _ => format!(" (packets came, and were discarded: {discards})"),
            };
            let place = match endpoint.udp_port() {
                0 => "with --carrier ip",
                _ => "at the UDP port of --peer-udp-port",
            };
            format!("{heard}; is a server there, {place}?")
        }
        _ => String::new(),
    };
    let refused = matches!(
        error,
        ConnectError::Lost(Lost(CloseReason::AbortedByPeer { .. }))
    );
    Unconnected {
        failure: Failure::Wire(format!("{host}: {error}{hint}")),
        refused,
    }
}
