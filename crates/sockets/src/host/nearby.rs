//! Peers on this machine. Linux handles a packet over the loopback interface before the call returns
//! that sends it: a non-blocking `connect` gives EINPROGRESS, and the association is up; an
//! association is over after SCTP_EOF. Programs rely on it. Such calls therefore wait here, but no
//! longer than [`MAX_WAIT`].

use std::net::IpAddr;
use std::time::Duration;

use super::bind::source;
use super::socket::Socket;

/// The longest wait, where the other end does not answer.
const MAX_WAIT: Duration = Duration::from_millis(100);
/// The time until a listening socket has an association that is up at the other end.
const ANNOUNCED: Duration = Duration::from_millis(1);

/// Between two looks at an association that is to end.
const LOOK: Duration = Duration::from_micros(500);

/// Whether that address is this machine's.
fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || source(address) == Some(address)
}

/// Waits until `done`, where the peer is on this machine.
pub async fn settle<T>(peer: IpAddr, done: impl Future<Output = T>) {
    if is_here(peer) && tokio::time::timeout(MAX_WAIT, done).await.is_ok() {
        tokio::time::sleep(ANNOUNCED).await;
    }
}

/// Waits until the association is over that its program ended, where its peer is on this machine.
pub async fn settle_end(socket: &Socket, number: u32) {
    let Some(link) = socket.link(number) else {
        return;
    };
    let Some(peer) = link.peers().first().copied() else {
        return;
    };
    let over = async {
        while socket.link(number).is_some() {
            tokio::time::sleep(LOOK).await;
        }
    };
    settle(peer.ip(), over).await;
}
