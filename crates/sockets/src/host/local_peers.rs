//! Synchronous behavior for peers on this machine.
//!
//! Linux processes a packet over the loopback interface before the sending call returns: a
//! non-blocking `connect` returns EINPROGRESS with the association already established, and after
//! SCTP_EOF an association is closed. Programs rely on it, so such calls wait here, at most for
//! [`MAX_WAIT`].

use std::net::IpAddr;
use std::time::Duration;

use super::bind::source;
use super::socket::Socket;

/// Timeout if the other end does not answer.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// Delay from establishment until the association reaches the listening socket at the other end.
const ACCEPT_DELAY: Duration = Duration::from_millis(1);

/// Poll interval for an association that is closing.
const POLL_INTERVAL: Duration = Duration::from_micros(500);

/// Whether that address is one of this machine.
fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || source(address) == Some(address)
}

/// Waits until `done` completes if the peer is on this machine.
pub(super) async fn settle<T>(peer: IpAddr, done: impl Future<Output = T>) {
    if is_here(peer) && tokio::time::timeout(MAX_WAIT, done).await.is_ok() {
        tokio::time::sleep(ACCEPT_DELAY).await;
    }
}

/// Waits until an association that its program ended is closed, if its peer is on this machine.
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
