//! Peers on this machine. With Linux, what goes over the loopback interface is dealt with before the call that sends it returns: a non-blocking
//! `connect` gives EINPROGRESS, and the association is up; what SCTP_EOF ends is over. Programs rely on it, so that such calls wait here, and no longer than [`MOST`].

use std::net::IpAddr;
use std::time::Duration;

use super::bind::source;
use super::socket::Socket;

/// The longest wait, where the other end does not answer.
const MOST: Duration = Duration::from_millis(100);
/// What the socket that listens takes to be told of an association, once the other end has it.
const TOLD: Duration = Duration::from_millis(1);

/// Between two looks at an association that is to end.
const LOOK: Duration = Duration::from_micros(500);

/// Whether that address is this machine's.
fn is_here(address: IpAddr) -> bool {
    address.is_loopback() || source(address) == Some(address)
}

/// Waits until `done`, where the peer is on this machine.
pub async fn settle<T>(peer: IpAddr, done: impl Future<Output = T>) {
    if is_here(peer) && tokio::time::timeout(MOST, done).await.is_ok() {
        tokio::time::sleep(TOLD).await;
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
