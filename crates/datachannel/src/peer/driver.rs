//! The task of a connection: its socket and its timer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::shared::Shared;

/// The largest datagram there can be.
const MAX_DATAGRAM: usize = 65_535;
/// Datagrams that are taken at a time, before anything else has its turn.
const BURST: usize = 64;
/// Errors in a row after which a socket is left alone for a while, and how long.
const MAX_ERRORS: u32 = 16;
const PAUSE: Duration = Duration::from_millis(100);
/// Longer than anybody waits.
const NEVER: Duration = Duration::from_secs(86_400);

/// Runs until the connection ended and its last datagram went.
pub(super) async fn drive(socket: UdpSocket, shared: Arc<Shared>) {
    let wake = shared.wake();
    let mut buffer = vec![0; MAX_DATAGRAM];
    let mut errors = 0;
    loop {
        let Some(deadline) = turn(&socket, &shared).await else {
            return;
        };
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                // An error tells of a datagram that was sent to nobody; timers see to that. A socket that gives nothing else, since its interface is gone
                // or the system has no memory, is asked seldom.
                errors = match received {
                    Ok(_) => 0,
                    Err(_) => errors + 1,
                };
                if errors > MAX_ERRORS {
                    tokio::time::sleep(PAUSE.min(deadline.duration_since(Instant::now()))).await;
                }
                if let Ok((length, from)) = received {
                    take(&shared, &buffer[..length], from);
                    for _ in 1..BURST {
                        let Ok((length, from)) = socket.try_recv_from(&mut buffer) else { break };
                        take(&shared, &buffer[..length], from);
                    }
                }
            }
            () = tokio::time::sleep_until(deadline) => {
                shared.change(|state, now| state.connection.handle_timeout(now));
            }
            () = wake.notified() => {}
        }
    }
}

fn take(shared: &Shared, datagram: &[u8], from: SocketAddr) {
    shared.change(|state, now| state.connection.handle_datagram(now, from, datagram));
}

/// Sends what there is; gives when to look again, or `None` when it is over.
async fn turn(socket: &UdpSocket, shared: &Shared) -> Option<Instant> {
    loop {
        let (datagrams, next, over) = shared.change(|state, _| {
            let datagrams: Vec<(SocketAddr, Bytes)> =
                std::iter::from_fn(|| state.connection.poll_transmit()).collect();
            let next = state.connection.poll_timeout();
            (datagrams, next, state.connection.is_closed())
        });
        let at = next.map(|at| Instant::from_std(shared.instant(at)));
        let none = datagrams.is_empty();
        for (to, datagram) in datagrams {
            // One that the system does not take is one that the path lost.
            let _ = socket.send_to(&datagram, to).await;
        }
        if over {
            return None;
        }
        if none {
            return Some(at.unwrap_or_else(|| Instant::now() + NEVER));
        }
    }
}
