//! Synchronous behavior of calls for peers on this machine.
//!
//! Linux processes a packet over the loopback interface before the sending call returns: a
//! non-blocking `connect` returns EINPROGRESS with the association already established, and after
//! SCTP_EOF an association is closed. Programs rely on that, so the host delays the answers of such
//! calls, by at most [`MAX_WAIT`].

use std::net::IpAddr;
use std::time::Duration;

use super::bind::source;
use super::socket::Socket;

/// Maximum wait, if the other end does not answer.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Time that an established association needs until the listening socket at the other end has it.
const ACCEPT_DELAY: Duration = Duration::from_millis(1);

/// Interval at which a closing association is checked.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Whether the address belongs to this machine.
fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || source(address) == Some(address)
}

/// If the peer is on this machine, waits until `done` completes.
pub(super) async fn settle<T>(peer: IpAddr, done: impl Future<Output = T>) {
    if is_here(peer) && tokio::time::timeout(MAX_WAIT, done).await.is_ok() {
        tokio::time::sleep(ACCEPT_DELAY).await;
    }
}

/// If the peer is on this machine, waits until an association that the program has ended is closed.
pub(super) async fn settle_end(socket: &Socket, number: u32) {
    let Some(assoc) = socket.assoc(number) else {
        return;
    };
    let Some(peer) = assoc.peers().first().copied() else {
        return;
    };
    let over = async {
        while socket.assoc(number).is_some() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    settle(peer.ip(), over).await;
}
