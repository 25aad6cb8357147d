//! Buffers that packets are received into, kept and used again.
//!
//! Payload goes to the application as slices of what was received, so a buffer is free again when the last slice is gone.
//! A call that filled much of its buffer (a run of packets at once) hands the buffer itself on; a lone packet is copied out
//! behind others, so that a small slice never keeps a large buffer alive: what is handed on is at least
//! a quarter full.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use anabranch_transport::Ecn;
use bytes::{Bytes, BytesMut};
use quinn_udp::{BATCH_SIZE, RecvMeta};

use crate::socket::Socket;

/// Bytes of a buffer: the largest UDP datagram, or run of them.
const BUFFER: usize = 65_536;
/// Buffers received into by one call.
const BATCH: usize = if BATCH_SIZE < 32 { BATCH_SIZE } else { 32 };
/// Bytes received from which on a buffer is handed on instead of copied from.
const HAND_ON: usize = BUFFER / 4;
/// Buffers handed on that are watched, to be used again.
const MOST_LENT: usize = 64;

/// Packets of one sender that came by one call.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Our address.
    pub local: IpAddr,
    /// The sender's, and its UDP port (0 for raw IP).
    pub from: SocketAddr,
    /// ECN field of their IP headers; `NotEct` where the socket does not tell.
    pub ecn: Ecn,
    /// Packets one after the other, each `stride` long but the last, which may be shorter.
    pub packets: Bytes,
    /// See `packets`.
    pub stride: usize,
}

/// Receives, and keeps the buffers.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffers: Vec<BytesMut>,
    meta: Vec<RecvMeta>,
    /// Where lone packets are copied to.
    packed: BytesMut,
    /// Handed on, oldest first.
    lent: VecDeque<Bytes>,
}

impl Inbox {
    pub fn new() -> Self {
        Self {
            buffers: (0..BATCH).map(|_| BytesMut::zeroed(BUFFER)).collect(),
            meta: vec![RecvMeta::default(); BATCH],
            packed: BytesMut::new(),
            lent: VecDeque::new(),
        }
    }

    /// Receives from `socket` what one call brings, and appends it to `arrivals`. Gives the number of datagrams thrown away
    /// since they are no whole packets.
    pub fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        arrivals: &mut VecDeque<Arrival>,
    ) -> Poll<io::Result<u64>> {
        let count = {
            let mut slices = self
                .buffers
                .iter_mut()
                .map(|buffer| IoSliceMut::new(buffer));
            let mut slices: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| slices.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            match socket.poll_receive(cx, &mut slices, &mut self.meta) {
                Poll::Ready(Ok(count)) => count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        };
        let mut broken = 0;
        for index in 0..count {
            let meta = self.meta[index];
            let received = &self.buffers[index][..meta.len];
            let Some(packet) = socket.packet_within(received).filter(|it| !it.is_empty()) else {
                broken += 1;
                continue;
            };
            let stride = if socket.joins_packets() {
                meta.stride.max(1)
            } else {
                packet.len()
            };
            let packets = self.take(index, packet);
            arrivals.push_back(Arrival {
                local: socket.local_of(&meta),
                from: SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port()),
                ecn: meta
                    .ecn
                    .map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
                packets,
                stride,
            });
        }
        Poll::Ready(Ok(broken))
    }

    fn take(&mut self, index: usize, range: std::ops::Range<usize>) -> Bytes {
        if range.len() < HAND_ON {
            if self.packed.capacity() < range.len() {
                self.packed.reserve(BUFFER);
            }
            self.packed.extend_from_slice(&self.buffers[index][range]);
            return self.packed.split().freeze();
        }
        let fresh = self.free_buffer();
        let filled = std::mem::replace(&mut self.buffers[index], fresh).freeze();
        let packets = filled.slice(range);
        self.lend(filled);
        packets
    }

    /// A buffer nobody reads any more, or a new one.
    fn free_buffer(&mut self) -> BytesMut {
        match self.lent.pop_front().map(Bytes::try_into_mut) {
            Some(Ok(buffer)) => buffer,
            Some(Err(busy)) => {
                self.lent.push_back(busy);
                BytesMut::zeroed(BUFFER)
            }
            None => BytesMut::zeroed(BUFFER),
        }
    }

    fn lend(&mut self, buffer: Bytes) {
        // Beyond the bound the oldest is left to its readers.
        if self.lent.len() == MOST_LENT {
            self.lent.pop_front();
        }
        self.lent.push_back(buffer);
    }
}
