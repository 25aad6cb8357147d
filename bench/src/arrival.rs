//! Chunks with one byte of data in orders that an attacker may choose, and an endpoint that
//! receives them.

use std::error::Error;
use std::net::IpAddr;

use anabranch_sctp::{Config, Endpoint};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Path, Transport};
use anabranch_wire::chunk::{Chunk, CookieEcho, Data, Init};
use anabranch_wire::packet::{CommonHeader, PacketBuilder};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::{Ssn, Tsn};
use anabranch_wire::{Checksum, Packet};
use bytes::{Bytes, BytesMut};

const PORT: u16 = 5000;
const FIRST: u32 = 1000;
/// Maximum number of messages that may wait in a stream: almost half of the range of stream
/// sequence numbers.
const MAX_WAITING: u32 = 32_000;

/// A chunk with one byte of user data.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// TSN relative to the first one.
    offset: u32,
    stream: u16,
    ssn: u16,
    unordered: bool,
    beginning: bool,
    ending: bool,
}

impl Piece {
    fn message(offset: u32, stream: u16, ssn: u32) -> Self {
        Self {
            offset,
            stream,
            ssn: ssn as u16,
            unordered: false,
            beginning: true,
            ending: true,
        }
    }

    fn unordered(offset: u32) -> Self {
        Self {
            unordered: true,
            ..Self::message(offset, 0, 0)
        }
    }

    /// A fragment of a message of `count` fragments; all fragments belong to this message.
    fn fragment(offset: u32, count: u32) -> Self {
        Self {
            beginning: offset == 0,
            ending: offset + 1 == count,
            ..Self::message(offset, 0, 0)
        }
    }

    fn chunk(self) -> Chunk {
        Chunk::Data(Data {
            tsn: Tsn(FIRST + self.offset),
            stream_id: self.stream,
            ssn: Ssn(self.ssn),
            ppid: 0,
            unordered: self.unordered,
            beginning: self.beginning,
            ending: self.ending,
            immediate: false,
            user_data: Bytes::from_static(b"x"),
        })
    }
}

/// Name of an arrival order, and a function that returns about the given number of chunks in this
/// order.
pub type ArrivalOrder = (&'static str, fn(u32) -> Vec<Piece>);

/// All arrival orders. The first is that of a normal peer.
pub const ORDERS: &[ArrivalOrder] = &[
    ("messages in order", |n| {
        (0..n).map(|at| Piece::message(at, 0, at)).collect()
    }),
    ("messages, last first", |n| {
        let n = n.min(MAX_WAITING);
        (1..n).rev().map(|at| Piece::message(at, 0, at)).collect()
    }),
    ("messages, at random", |n| {
        let n = n.min(MAX_WAITING);
        let places = shuffled(n - 1).into_iter();
        places.map(|at| Piece::message(at + 1, 0, at + 1)).collect()
    }),
    ("messages, numbers outside in", |n| {
        let n = n.min(MAX_WAITING);
        let numbers = outside_in(n).into_iter().zip(0..);
        numbers
            .map(|(ssn, at)| Piece::message(at, 0, ssn + 1))
            .collect()
    }),
    ("messages, every other missing", |n| {
        (1..n / 2).map(|at| Piece::message(2 * at, 0, at)).collect()
    }),
    ("messages, each stream waits", |n| {
        (0..n).map(|at| Piece::message(at, at as u16, 1)).collect()
    }),
    ("messages, two streams alternately", |n| {
        let n = n.min(MAX_WAITING);
        (0..n)
            .map(|at| Piece::message(at, (at % 2) as u16, n - at))
            .collect()
    }),
    ("unordered, every other missing", |n| {
        (1..n / 2).map(|at| Piece::unordered(2 * at)).collect()
    }),
    ("unordered, every other, last first", |n| {
        (1..n / 2)
            .rev()
            .map(|at| Piece::unordered(2 * at))
            .collect()
    }),
    ("unordered, outside in", |n| {
        let places = outside_in(n / 2 - 1).into_iter();
        places.map(|at| Piece::unordered(2 * at + 2)).collect()
    }),
    ("unordered, at random", |n| {
        let places = shuffled(n - 1).into_iter();
        places.map(|at| Piece::unordered(at + 1)).collect()
    }),
    ("fragments in order", |n| {
        (0..n).map(|at| Piece::fragment(at, n)).collect()
    }),
    ("fragments, last first", |n| {
        (1..n).rev().map(|at| Piece::fragment(at, n)).collect()
    }),
    ("fragments, at random", |n| {
        let places = shuffled(n - 1).into_iter();
        places.map(|at| Piece::fragment(at + 1, n)).collect()
    }),
    ("fragments, lone ones outside in", |n| {
        let places = outside_in(n / 2 - 1).into_iter();
        places
            .map(|at| Piece::fragment(2 * at + 2, 2 * n))
            .collect()
    }),
    ("fragments, pairs joined to a long run", |n| {
        let late = (n / 2..n).chain((2..n / 2).rev().map(|at| at ^ 1));
        late.map(|at| Piece::fragment(at, n)).collect()
    }),
    ("fragments, every other and then between", |n| {
        let places = (1..n).step_by(2).chain((2..n).step_by(2));
        places.map(|at| Piece::fragment(at, n)).collect()
    }),
    ("fragments, runs joined by halves", |n| {
        let size = n.next_power_of_two() / 2;
        let bits = size.trailing_zeros();
        // Bit-reversed order, in which each chunk joins two contiguous runs of equal length.
        let order = (1..size).map(|at| at.reverse_bits() >> (32 - bits));
        order
            .rev()
            .map(|at| Piece::fragment(at, size + 1))
            .collect()
    }),
];

fn outside_in(n: u32) -> Vec<u32> {
    (0..n / 2).flat_map(|at| [at, n - 1 - at]).collect()
}

fn shuffled(n: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n).collect();
    let mut state = 1u64;
    for at in (1..order.len()).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (state >> 33) as usize % (at + 1));
    }
    order
}

/// An endpoint with an association, and the packets that will arrive at it.
#[derive(Debug)]
pub struct Flood {
    endpoint: Endpoint,
    path: Path,
    packets: Vec<Bytes>,
    out: BytesMut,
}

impl Flood {
    /// Packs `per_packet` chunks into each packet. The endpoint has a buffer of 64 MiB, so that it
    /// accepts all chunks.
    ///
    /// # Errors
    /// The endpoint does not complete the handshake.
    pub fn new(pieces: &[Piece], per_packet: usize) -> Result<Self, Box<dyn Error>> {
        let [here, there]: [IpAddr; 2] = [[10, 0, 0, 2].into(), [10, 0, 0, 1].into()];
        let config = Config::default().with(|it| {
            it.addresses = vec![here];
            it.receive_buffer = 64 << 20;
            it.inbound_streams = 65_535;
        });
        let mut flood = Self {
            endpoint: Endpoint::new(config, PORT, [2; 32])?,
            path: Path::new(here, there),
            packets: Vec::new(),
            out: BytesMut::new(),
        };
        flood.endpoint.listen(true);
        let tag = flood.connect()?;
        let packets = pieces.chunks(per_packet);
        flood.packets = packets
            .map(|some| packet(tag, some.iter().map(|it| it.chunk())))
            .collect();
        Ok(flood)
    }

    fn connect(&mut self) -> Result<u32, Box<dyn Error>> {
        let init = Chunk::Init(Init {
            initiate_tag: 7,
            a_rwnd: 1 << 20,
            outbound_streams: 65_535,
            inbound_streams: 65_535,
            initial_tsn: Tsn(FIRST),
            parameters: Parameters::of(&[]),
        });
        self.say(SECOND, packet(0, [init].into_iter()));
        let answer = self.out.split().freeze();
        let answer = Packet::parse(&answer, Checksum::Verify).map_err(|_| "no packet")?;
        let first = answer.chunks().next().ok_or("no chunk")?;
        let Ok(Chunk::InitAck(ack)) = Chunk::decode(first.map_err(|_| "broken")?) else {
            return Err("no INIT ACK".into());
        };
        let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
        let cookie = cookie.ok_or("no cookie")?;
        let echo = Chunk::CookieEcho(CookieEcho { cookie });
        self.say(SECOND, packet(ack.initiate_tag, [echo].into_iter()));
        self.out.clear();
        Ok(ack.initiate_tag)
    }

    fn say(&mut self, now: u64, packet: Bytes) {
        self.endpoint
            .handle_datagram(now, self.path, Ecn::NotEct, packet);
        while self.endpoint.poll_transmit(now, &mut self.out).is_some() {}
    }

    /// Number of packets.
    pub fn packets(&self) -> usize {
        self.packets.len()
    }

    /// Keeps only the first `count` packets.
    pub fn truncate(&mut self, count: usize) {
        self.packets.truncate(count);
    }

    /// Total size of the packets, bytes.
    pub fn bytes(&self) -> usize {
        self.packets.iter().map(Bytes::len).sum()
    }

    /// Delivers all packets at intervals of a microsecond, and reads all available messages.
    ///
    /// # Errors
    /// The association failed.
    pub fn run(mut self) -> Result<(), Box<dyn Error>> {
        let id = self
            .endpoint
            .associations()
            .next()
            .ok_or("no association")?;
        let packets = std::mem::take(&mut self.packets);
        for (at, packet) in packets.into_iter().enumerate() {
            self.say(SECOND + at as u64 * MILLISECOND / 1000, packet);
            self.out.clear();
            while self.endpoint.poll_event().is_some() {}
            let association = self.endpoint.association_mut(id).ok_or("gone")?;
            while association.poll_message().is_some() {}
        }
        let association = self.endpoint.association(id).ok_or("gone")?;
        let taken = association.stats().receiver;
        if association.is_closed() || taken.dropped_full + taken.refused > 0 {
            return Err(format!("{:?} {taken:?}", association.close_reason()).into());
        }
        Ok(())
    }
}

fn packet(tag: u32, chunks: impl Iterator<Item = Chunk>) -> Bytes {
    let header = CommonHeader {
        source_port: PORT,
        destination_port: PORT,
        verification_tag: tag,
    };
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, header, 65_000);
    for chunk in chunks {
        // Cannot fail, because the packet has space for these few small chunks.
        let _ = builder.push(&chunk);
    }
    builder.finish(true);
    out.freeze()
}
