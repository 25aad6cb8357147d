//! Task of a connection, with its socket and timer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::time::Instant;

use super::shared::Shared;

/// Maximum size of a datagram, bytes.
const MAX_DATAGRAM: usize = 65_535;
/// Maximum number of datagrams that are received before other work is done.
const BURST: usize = 64;
/// Number of consecutive errors after which the socket is not polled for some time, and that time.
const MAX_ERRORS: u32 = 16;
const PAUSE: Duration = Duration::from_millis(100);
/// A duration longer than any timeout.
const FAR_FUTURE: Duration = Duration::from_secs(86_400);

/// Drives the connection until it has ended and its last datagram was sent.
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
                // A single error refers to a datagram that was sent to an unreachable address;
                // timers handle the loss. A socket that returns only errors, because its interface
                // is gone or the system has no memory, should be polled rarely.
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

/// Sends pending datagrams. Returns the time of the next call, or `None` after the end of the
/// connection.
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
            // A datagram that the system rejects is treated as lost in the network.
            let _ = socket.send_to(&datagram, to).await;
        }
        if over {
            return None;
        }
        if none {
            return Some(at.unwrap_or_else(|| Instant::now() + FAR_FUTURE));
        }
    }
}
