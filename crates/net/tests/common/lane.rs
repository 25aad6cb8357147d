//! One direction of a link in memory.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use anabranch_net::ReceivedPacket;
use bytes::Bytes;

/// Queue of packets in one direction of a link.
#[derive(Default)]
pub struct Lane(Mutex<Carried>);

#[derive(Default)]
struct Carried {
    packets: VecDeque<Bytes>,
    receiver: Option<Waker>,
}

impl Lane {
    /// Sends a packet.
    pub fn push(&self, packet: &[u8]) {
        let receiver = {
            let mut carried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            carried.packets.push_back(Bytes::copy_from_slice(packet));
            carried.receiver.take()
        };
        receiver.into_iter().for_each(Waker::wake);
    }

    /// Receives the next packet, with the sender `from`.
    pub fn poll_pop(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
        from: SocketAddr,
    ) -> Poll<io::Result<ReceivedPacket>> {
        let mut carried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(packet) = carried.packets.pop_front() else {
            carried.receiver = Some(cx.waker().clone());
            return Poll::Pending;
        };
        buffer[..packet.len()].copy_from_slice(&packet);
        Poll::Ready(Ok(ReceivedPacket::new(packet.len(), from)))
    }
}

/// The local and the remote address of one side of a link.
pub fn ends(side: usize) -> (SocketAddr, SocketAddr) {
    let at = |last: usize| SocketAddr::from(([10, 0, 0, last as u8], 9_899));
    (at(side + 1), at(2 - side))
}
