//! Buffers that packets are received into, kept and used again.
//!
//! Payload goes to the application as slices of what was received, so a block is free again when the last slice is gone.
//! A call that filled much of its buffer (a run of packets at once) hands the buffer itself on; a lone packet is copied
//! to a block behind others. A small slice that nobody reads keeps its whole block alive, and the protocol knows
//! nothing of blocks, only of packets. So no more than [`MOST_LENT`] are out at a time: while they are, every packet is
//! copied to memory of its own, which the protocol accounts for.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use anabranch_transport::Ecn;
use bytes::{Bytes, BytesMut};
use quinn_udp::{BATCH_SIZE, RecvMeta};

use crate::socket::Socket;

/// Bytes of a buffer: the largest UDP datagram, or run of them.
const BUFFER: usize = 65_536;
/// Buffers received into by one call while much comes.
const BATCH: usize = if BATCH_SIZE < 32 { BATCH_SIZE } else { 32 };
/// And while little comes: to lay out a buffer costs some 80 instructions, used or not. More than one, so that a call which leaves some
/// empty tells that nothing is left.
const FEW: usize = if BATCH < 4 { BATCH } else { 4 };
/// Bytes received from which on a buffer is handed on instead of copied from.
const HAND_ON: usize = BUFFER / 4;
/// Blocks of which something is still read, beside the one that lone packets are being copied to.
const MOST_LENT: usize = 32;

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
    /// Bytes of `packets` that were taken.
    pub taken: usize,
}

impl Arrival {
    /// What was not taken yet.
    pub(crate) fn left(&self) -> &[u8] {
        &self.packets[self.taken..]
    }
}

/// What a call came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedBatch {
    /// Bytes of packets.
    pub bytes: usize,
    /// Datagrams thrown away since they are no whole packets.
    pub broken: u64,
}

/// Receives, and keeps the buffers.
#[derive(Debug)]
pub(crate) struct ReceiveBuffers {
    buffers: Vec<BytesMut>,
    meta: Vec<RecvMeta>,
    /// The last call filled all its buffers, or more than few: the next one has many.
    busy: bool,
    /// Where lone packets are copied to, and a slice of the first of them.
    packed: BytesMut,
    first_packed: Option<Bytes>,
    /// Slices of blocks handed on, from the block's beginning.
    lent: VecDeque<Bytes>,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        Self {
            buffers: (0..FEW).map(|_| BytesMut::zeroed(BUFFER)).collect(),
            meta: vec![RecvMeta::default(); BATCH],
            busy: false,
            packed: BytesMut::new(),
            first_packed: None,
            lent: VecDeque::new(),
        }
    }

    /// Receives from `socket` what one call brings, and gives `put` the packets.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        mut put: impl FnMut(Arrival),
    ) -> Poll<io::Result<ReceivedBatch>> {
        let received = match self.busy {
            true => self.fill::<BATCH>(cx, socket),
            false => self.fill::<FEW>(cx, socket),
        };
        let count = ready!(received)?;
        self.expect(count);
        let mut came = ReceivedBatch::default();
        for index in 0..count {
            let meta = self.meta[index];
            let received = &self.buffers[index][..meta.len];
            let Some(packet) = socket.packet_within(received).filter(|it| !it.is_empty()) else {
                came.broken += 1;
                continue;
            };
            came.bytes += packet.len();
            let stride = if socket.joins_packets() {
                meta.stride.max(1)
            } else {
                packet.len()
            };
            let local = socket.local_of(&meta);
            let from = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
            let ecn = meta
                .ecn
                .map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
            let arrival = |packets: Bytes, stride| Arrival {
                local,
                from,
                ecn,
                packets,
                stride,
                taken: 0,
            };
            match self.take(index, packet.clone()) {
                Some(packets) => put(arrival(packets, stride)),
                None => {
                    let packets = self.buffers[index][packet].chunks(stride);
                    packets.for_each(|it| put(arrival(Bytes::copy_from_slice(it), stride)));
                }
            }
        }
        Poll::Ready(Ok(came))
    }

    /// Receives into the first `N` buffers. Gives how many were filled.
    fn fill<const N: usize>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
    ) -> Poll<io::Result<usize>> {
        let mut buffers = self.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; N] = std::array::from_fn(|_| {
            let buffer = buffers.next().map(|it| &mut it[..]);
            IoSliceMut::new(buffer.unwrap_or_default())
        });
        socket.poll_receive(cx, &mut slices, &mut self.meta)
    }

    /// The last call filled so many buffers: sees to it that the next one has enough.
    fn expect(&mut self, filled: usize) {
        self.busy = filled >= FEW;
        if self.busy && self.buffers.len() < BATCH {
            let more = BATCH - self.buffers.len();
            self.buffers
                .extend((0..more).map(|_| BytesMut::zeroed(BUFFER)));
        }
    }

    /// What was received, as a slice of a block; `None`: there is no block for it.
    fn take(&mut self, index: usize, range: std::ops::Range<usize>) -> Option<Bytes> {
        if range.len() < HAND_ON {
            return self.pack(index, range);
        }
        let mut fresh = self.free_block()?;
        fresh.resize(BUFFER, 0);
        let filled = std::mem::replace(&mut self.buffers[index], fresh).freeze();
        let packets = filled.slice(range);
        self.lent.push_back(filled);
        Some(packets)
    }

    fn pack(&mut self, index: usize, range: std::ops::Range<usize>) -> Option<Bytes> {
        if self.packed.capacity() < range.len() {
            self.packed = BytesMut::new();
            self.lent.extend(self.first_packed.take());
            self.packed = self.free_block()?;
        }
        self.packed.extend_from_slice(&self.buffers[index][range]);
        let packet = self.packed.split().freeze();
        if self.first_packed.is_none() {
            self.first_packed = Some(packet.clone());
        }
        Some(packet)
    }

    /// A block nobody reads any more, or a new one if few are out, empty; `None` if too many are.
    fn free_block(&mut self) -> Option<BytesMut> {
        for _ in 0..self.lent.len() {
            match self.lent.pop_front()?.try_into_mut() {
                Ok(mut block) if block.capacity() >= BUFFER => {
                    block.clear();
                    return Some(block);
                }
                // Nobody reads it, and it is not whole any more.
                Ok(_) => {}
                Err(busy) => self.lent.push_back(busy),
            }
        }
        (self.lent.len() < MOST_LENT).then(|| BytesMut::with_capacity(BUFFER))
    }
}
