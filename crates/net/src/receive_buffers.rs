//! Receive buffers, which are reused when the application has dropped the data.
//!
//! The application gets payload as slices of the receive buffers ("blocks"), so a block is free
//! again only after its last slice was dropped. If a call filled much of its buffer (with a run of
//! packets), the buffer itself is passed on; a single packet is copied to the end of a shared
//! block. A small slice that the application does not read keeps its whole block allocated, and the
//! protocol accounts only for packets, not for blocks. At most [`MAX_BLOCKS_IN_USE`] blocks are in
//! use at a time; beyond this number every packet is copied to separate memory, for which the
//! protocol accounts correctly.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use anabranch_transport::Ecn;
use bytes::{Bytes, BytesMut};
use quinn_udp::{BATCH_SIZE, RecvMeta};

use crate::socket::Socket;

/// Size of a buffer, bytes: the maximum of a UDP datagram or of a GRO run.
const BUFFER: usize = 65_536;
/// Number of buffers per receive call under load.
const BATCH: usize = if BATCH_SIZE < 32 { BATCH_SIZE } else { 32 };
/// Number of buffers per receive call without load: few, because preparing a buffer costs about 80
/// instructions even if it is not used. More than one, because a call that leaves some buffers
/// unused shows that the socket is empty.
const SMALL_BATCH: usize = if BATCH < 4 { BATCH } else { 4 };
/// Number of received bytes from which on the buffer itself is passed on, and the data is not
/// copied.
const HAND_ON: usize = BUFFER / 4;
/// Maximum number of blocks in use by readers, in addition to the block for copies.
const MAX_BLOCKS_IN_USE: usize = 32;

/// Packets of one sender, received by one call.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// The local address.
    pub local: IpAddr,
    /// The sender's IP address, and its UDP port (0 for raw IP).
    pub from: SocketAddr,
    /// ECN field of the IP headers; `NotEct` if the socket does not report it.
    pub ecn: Ecn,
    /// Consecutive packets, each `stride` long except the last, which may be shorter.
    pub packets: Bytes,
    /// Length of each packet in `packets` except the last, bytes.
    pub stride: usize,
    /// Number of bytes of `packets` that were consumed.
    pub taken: usize,
}

impl Arrival {
    /// The part that was not consumed yet.
    pub(crate) fn left(&self) -> &[u8] {
        &self.packets[self.taken..]
    }
}

/// Outcome of a receive call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReceivedBatch {
    /// Total size of the packets, bytes.
    pub bytes: usize,
    /// Number of datagrams that were dropped because they contain no whole packet.
    pub broken: u64,
}

/// Receives into a set of buffers, and reuses them.
#[derive(Debug)]
pub(crate) struct ReceiveBuffers {
    buffers: Vec<BytesMut>,
    meta: Vec<RecvMeta>,
    /// True if the last call filled at least `SMALL_BATCH` buffers: the next call then gets `BATCH`
    /// buffers.
    busy: bool,
    /// The block to which single packets are copied, and a slice of the first packet in it.
    packed: BytesMut,
    first_packed: Option<Bytes>,
    /// For each block in use, a slice from its start. When no other slice of a block exists, the
    /// block is free again.
    lent: VecDeque<Bytes>,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        Self {
            buffers: (0..SMALL_BATCH).map(|_| BytesMut::zeroed(BUFFER)).collect(),
            meta: vec![RecvMeta::default(); BATCH],
            busy: false,
            packed: BytesMut::new(),
            first_packed: None,
            lent: VecDeque::new(),
        }
    }

    /// Receives from `socket` by one call, and passes the packets to `put`.
    pub(crate) fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &Socket,
        mut put: impl FnMut(Arrival),
    ) -> Poll<io::Result<ReceivedBatch>> {
        let received = match self.busy {
            true => self.fill::<BATCH>(cx, socket),
            false => self.fill::<SMALL_BATCH>(cx, socket),
        };
        let count = ready!(received)?;
        self.expect(count);
        let mut came = ReceivedBatch::default();
        for index in 0..count {
            let meta = self.meta[index];
            let received = &self.buffers[index][..meta.len];
            let Some(packet) = socket.packet_range(received).filter(|it| !it.is_empty()) else {
                came.broken += 1;
                continue;
            };
            came.bytes += packet.len();
            let stride = if socket.receives_batches() {
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

    /// Receives into the first `N` buffers. Returns the number of filled buffers.
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

    /// Adapts the number of buffers of the next call to the number that the last call filled.
    fn expect(&mut self, filled: usize) {
        self.busy = filled >= SMALL_BATCH;
        if self.busy && self.buffers.len() < BATCH {
            let more = BATCH - self.buffers.len();
            self.buffers
                .extend((0..more).map(|_| BytesMut::zeroed(BUFFER)));
        }
    }

    /// The received data as a slice of a block; `None` if no block is available.
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

    /// An empty block: one that is no longer used, or a new one if few blocks are in use; `None` if
    /// `MAX_BLOCKS_IN_USE` blocks are in use.
    fn free_block(&mut self) -> Option<BytesMut> {
        for _ in 0..self.lent.len() {
            match self.lent.pop_front()?.try_into_mut() {
                Ok(mut block) if block.capacity() >= BUFFER => {
                    block.clear();
                    return Some(block);
                }
                // The block is no longer used, but a part of it was split off, so it cannot be
                // reused.
                Ok(_) => {}
                Err(busy) => self.lent.push_back(busy),
            }
        }
        (self.lent.len() < MAX_BLOCKS_IN_USE).then(|| BytesMut::with_capacity(BUFFER))
    }
}
