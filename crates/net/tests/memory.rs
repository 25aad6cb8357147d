//! Memory that peers can make a server use if its application reads nothing, measured by a counting
//! allocator. The limit is twice the buffers of all associations plus the receive blocks of the
//! sockets.

mod common;

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use anabranch_net::{Association, Carrier, Config, Endpoint, SendOptions, TrySendError};
use anabranch_wire::chunk::{Chunk, CookieEcho, Data, GapAckBlock, Init, OutgoingSack, kind};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::{Ssn, Tsn};
use anabranch_wire::{Checksum, Encode, Packet};
use bytes::{Bytes, BytesMut};
use cap::Cap;
use common::{LOOPBACK, bounded};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

const PORT: u16 = 5001;
const PEERS: u16 = 8;
const RECEIVE_BUFFER: u32 = 256 << 10;
const SEND_BUFFER: usize = 64 << 10;
/// Maximum size of the receive blocks in use, 64 KiB each, and of the packets in the receive queue,
/// bytes.
const BLOCKS: usize = (34 << 16) + (4 << 20);
/// Maximum size of the state of an association, including gap ack blocks and the numbers of 2,048
/// streams, bytes.
const FIXED: usize = 48 << 10;
const FIRST: u32 = 1_000;
/// Interval after which a peer repeats a packet without an answer, because an attack may have
/// filled the server's socket.
const AGAIN: Duration = Duration::from_millis(500);
/// Number of repetitions after which the test counts as hanging.
const TRIES: u32 = 1_200;

/// A peer that is implemented by the test.
struct Peer {
    socket: UdpSocket,
    state: UdpSocketState,
    server: SocketAddr,
    port: u16,
    tag: u32,
    sent: u32,
    /// The server's first TSN.
    theirs: Tsn,
    /// Received packets that were not examined yet.
    received: VecDeque<Bytes>,
}

fn message(offset: u32, stream_id: u16, ssn: u32, bytes: usize) -> Data {
    Data {
        tsn: Tsn(FIRST + offset),
        stream_id,
        ssn: Ssn(ssn as u16),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from(vec![7; bytes]),
    }
}

fn fragment(offset: u32, bytes: usize) -> Data {
    Data {
        beginning: false,
        ending: false,
        ..message(offset, 0, 0, bytes)
    }
}

impl Peer {
    fn connect(server: SocketAddr, port: u16, tag: u32) -> Self {
        let socket = UdpSocket::bind((LOOPBACK, 0)).expect("loopback");
        let state = UdpSocketState::new((&socket).into()).expect("a UDP socket");
        socket.set_nonblocking(false).expect("a UDP socket");
        socket.set_read_timeout(Some(AGAIN)).expect("a UDP socket");
        let mut peer = Self {
            socket,
            state,
            server,
            port,
            tag: 0,
            sent: 0,
            theirs: Tsn(0),
            received: VecDeque::new(),
        };
        peer.begin(tag);
        peer
    }

    /// Establishes an association, or restarts it.
    fn begin(&mut self, tag: u32) {
        let init = Init {
            initiate_tag: tag,
            a_rwnd: 1 << 20,
            outbound_streams: 65_535,
            inbound_streams: 65_535,
            initial_tsn: Tsn(FIRST),
            parameters: Parameters::of(&[]),
        };
        self.tag = 0;
        let init = self.packet(&[&init], 0);
        let ack = self.answer_to(&init, |chunk| match chunk {
            Chunk::InitAck(ack) => Some(ack),
            _ => None,
        });
        let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
        let cookie = cookie.expect("a cookie");
        (self.theirs, self.tag) = (ack.initial_tsn, ack.initiate_tag);
        let echo = self.packet(&[&CookieEcho { cookie }], 0);
        self.answer_to(&echo, |chunk| {
            matches!(chunk, Chunk::CookieAck).then_some(())
        });
    }

    /// Sends a packet, and repeats it until it is answered; returns the answer.
    fn answer_to<T>(&mut self, packet: &[u8], answers: impl Fn(Chunk) -> Option<T>) -> T {
        for _ in 0..TRIES {
            self.put(packet);
            // Answers to earlier packets may arrive first.
            while self.receives() {
                if let Some(answer) = answers(self.answer()) {
                    return answer;
                }
            }
        }
        panic!("nobody answers");
    }

    /// The first chunk of the next received packet.
    fn answer(&mut self) -> Chunk {
        assert!((0..TRIES).any(|_| self.receives()), "nobody says anything");
        let packet = self.received.pop_front().expect("a packet");
        let packet = Packet::parse(&packet, Checksum::Verify).expect("a whole packet");
        let first = packet.chunks().next().expect("a chunk");
        Chunk::decode(first.expect("a whole chunk")).expect("that can be read")
    }

    /// If no received packet is left, waits some time for a packet or a run of packets (GRO).
    /// Returns true if there is one.
    fn receives(&mut self) -> bool {
        if !self.received.is_empty() {
            return true;
        }
        let mut buffer = vec![0; 65_536];
        let mut meta = [RecvMeta::default()];
        let mut slices = [IoSliceMut::new(&mut buffer)];
        match self
            .state
            .recv((&self.socket).into(), &mut slices, &mut meta)
        {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
            came => assert_eq!(came.expect("an answer"), 1),
        }
        let run = Bytes::copy_from_slice(&buffer[..meta[0].len]);
        let packets = (0..run.len()).step_by(meta[0].stride.max(1));
        let end = |start: usize| run.len().min(start + meta[0].stride);
        self.received
            .extend(packets.map(|start| run.slice(start..end(start))));
        true
    }

    fn packet(&self, chunks: &[&dyn Encode], padding: usize) -> Vec<u8> {
        let mut out = BytesMut::new();
        out.extend_from_slice(&self.port.to_be_bytes());
        out.extend_from_slice(&PORT.to_be_bytes());
        out.extend_from_slice(&self.tag.to_be_bytes());
        // The checksum is filled in below.
        out.extend_from_slice(&[0; 4]);
        chunks.iter().for_each(|chunk| chunk.encode(&mut out));
        if padding > 0 {
            out.extend_from_slice(&[kind::PAD, 0]);
            out.extend_from_slice(&((4 + padding) as u16).to_be_bytes());
            out.resize(out.len() + padding, 0);
        }
        anabranch_wire::checksum::fill(&mut out);
        out.to_vec()
    }

    fn put(&mut self, packets: &[u8]) {
        self.put_run(packets, None);
    }

    /// Sends a run of packets of `segment` bytes each. Pauses now and then, so that the server
    /// keeps up.
    fn put_run(&mut self, packets: &[u8], segment: Option<usize>) {
        let transmit = Transmit {
            destination: self.server,
            ecn: None,
            contents: packets,
            segment_size: segment,
            src_ip: None,
        };
        self.state
            .try_send((&self.socket).into(), &transmit)
            .expect("loopback takes it");
        self.sent += 1;
        if self.sent.is_multiple_of(8) {
            std::thread::sleep(Duration::from_micros(300));
        }
    }

    fn send(&mut self, chunks: &[Data], padding: usize) {
        let chunks: Vec<&dyn Encode> = chunks.iter().map(|it| it as &dyn Encode).collect();
        self.put(&self.packet(&chunks, padding));
    }

    fn send_all(&mut self, mut chunks: impl Iterator<Item = Data>) {
        loop {
            let some: Vec<Data> = chunks.by_ref().take(70).collect();
            if some.is_empty() {
                return;
            }
            self.send(&some, 0);
        }
    }
}

type Attack = (&'static str, fn(&mut Peer));

const ATTACKS: &[Attack] = &[
    (
        "256-byte messages behind a hole in datagrams of 16 KiB",
        |it| {
            (1..1_500).for_each(|at| it.send(&[message(at, 0, at, 256)], 16_384));
        },
    ),
    ("256-byte messages, one in each run of 40 packets", |it| {
        for at in 1..500 {
            let mut run = it.packet(&[&message(at, 0, at, 256)], 1_100);
            let segment = run.len();
            for _ in 1..40 {
                run.extend(it.packet(&[], segment - 16));
            }
            it.put_run(&run, Some(segment));
        }
    }),
    (
        "messages of 1,200 bytes, one in each run of 40 packets",
        |it| {
            for at in 0..200 {
                let mut run = it.packet(&[&message(at, 0, at, 1_200)], 0);
                let segment = run.len();
                for _ in 1..40 {
                    run.extend(it.packet(&[], segment - 16));
                }
                it.put_run(&run, Some(segment));
            }
        },
    ),
    ("1-byte messages, unread", |it| {
        it.send_all((0..30_000).map(|at| message(at, 0, at, 1)));
    }),
    ("1-byte fragments, last first", |it| {
        it.send_all((1..30_000).rev().map(|at| fragment(at, 1)));
    }),
    ("lone 1-byte fragments", |it| {
        it.send_all((1..30_000).map(|at| fragment(2 * at, 1)));
    }),
    ("a waiting message on each of 2,048 streams", |it| {
        it.send_all((0..20_000).map(|at| message(at, at as u16 % 2_048, 1 + at / 2_048, 10)));
    }),
    ("sixteen restarts with unread data", |it| {
        for life in 0..16 {
            it.send_all((0..5_000).map(|at| message(at, 0, at, 100)));
            it.begin(90_000 + life);
        }
    }),
];

/// Binds an endpoint that accepts associations; returns it with its address.
fn serve() -> (Endpoint, SocketAddr) {
    let mut config = Config::server(PORT);
    config.carrier = Carrier::Encapsulated {
        port: 0,
        peer_port: 0,
    };
    config.addresses = vec![LOOPBACK];
    config.sctp.receive_buffer = RECEIVE_BUFFER;
    config.sctp.send_buffer = SEND_BUFFER;
    let endpoint = Endpoint::bind(config).expect("loopback");
    let server = SocketAddr::new(LOOPBACK, endpoint.udp_port());
    (endpoint, server)
}

/// Sends messages of this size until the send buffer is full. Without an acknowledgement, exactly
/// as many must be accepted as twice the send buffer holds, even if that takes some time.
async fn fill(association: &Association, size: usize) {
    // The last message is accepted if its bytes fit without the per-message overhead.
    let most = (2 * SEND_BUFFER - size) / (size + 192) + 1;
    let put = || association.try_send(vec![7; size], SendOptions::default());
    for number in 0..most {
        // The queue of unsent messages holds fewer than `most` messages, and messages leave it when
        // they are sent.
        loop {
            match put() {
                Ok(()) => break,
                Err(TrySendError::Full(_)) => tokio::task::yield_now().await,
                Err(error) => panic!("{number} of {most}: {error}"),
            }
        }
    }
    let one_more = put();
    assert!(
        matches!(one_more, Err(TrySendError::Full(_))),
        "{one_more:?}"
    );
}

/// The peer acknowledges nothing: for messages of one byte the per-message overhead counts too.
fn small_messages_unsent() {
    bounded(async {
        let (endpoint, server) = serve();
        let before = HEAP.allocated();
        let connecting = tokio::task::spawn_blocking(move || Peer::connect(server, 20_000, 70_000));
        let association = endpoint.accept().await.expect("an association");
        let peer = connecting.await.expect("the peer connects");
        fill(&association, 1).await;
        let held = HEAP.allocated().saturating_sub(before);
        let sum = RECEIVE_BUFFER as usize + SEND_BUFFER;
        println!(
            "1-byte messages to send: {held} bytes, {:.2} of the buffers",
            held as f64 / sum as f64
        );
        assert!(held < 2 * sum + FIXED, "{held} bytes for buffers of {sum}");
        drop(peer);
    });
}

/// The peer acknowledges by gap ack blocks everything except the first chunk: no message is queued,
/// but the sender must still wait.
fn reported_and_never_acknowledged() {
    bounded(async {
        let (endpoint, server) = serve();
        let connecting = tokio::task::spawn_blocking(move || Peer::connect(server, 20_000, 70_000));
        let association = endpoint.accept().await.expect("an association");
        let mut peer = connecting.await.expect("the peer connects");
        let reporting = tokio::task::spawn_blocking(move || {
            // The first TSN is taken from the INIT ACK and not from the first DATA chunk read here,
            // because the packet with the COOKIE ACK may already have contained DATA, which
            // `answer` does not return.
            let (first, mut highest) = (peer.theirs.0, 0);
            loop {
                let data = match peer.answer() {
                    Chunk::Data(data) => data,
                    Chunk::Abort(_) => return,
                    _ => continue,
                };
                highest = highest.max(data.tsn.0.wrapping_sub(first));
                let block = GapAckBlock {
                    start: 2,
                    end: highest as u16 + 1,
                };
                let sack = OutgoingSack {
                    cumulative_tsn_ack: Tsn(first.wrapping_sub(1)),
                    a_rwnd: 1 << 24,
                    gap_blocks: std::iter::repeat_n(block, usize::from(highest > 0)),
                    duplicates: &[],
                };
                let sack = peer.packet(&[&sack], 0);
                peer.put(&sack);
            }
        });
        fill(&association, 1_000).await;
        association.abort("seen enough");
        reporting.await.expect("the peer hears of the end");
    });
}

#[test]
fn no_attack_on_a_server_holds_more_than_twice_its_buffers() {
    small_messages_unsent();
    reported_and_never_acknowledged();
    for (name, attack) in ATTACKS {
        bounded(async {
            let (endpoint, server) = serve();
            tokio::task::yield_now().await;
            let before = HEAP.allocated();
            let attack = *attack;
            let most = tokio::task::spawn_blocking(move || {
                let mut most = 0;
                let mut peers = Vec::new();
                for number in 0..PEERS {
                    let mut peer =
                        Peer::connect(server, 20_000 + number, 70_000 + u32::from(number));
                    attack(&mut peer);
                    // Memory stays allocated while messages are buffered.
                    for _ in 0..20 {
                        std::thread::sleep(Duration::from_millis(2));
                        most = most.max(HEAP.allocated().saturating_sub(before));
                    }
                    peers.push(peer);
                }
                most
            });
            let most = most.await.expect("the attack ends");
            let mut associations = 0;
            while let Ok(Ok(_)) =
                tokio::time::timeout(Duration::from_millis(10), endpoint.accept()).await
            {
                associations += 1;
            }
            assert!(
                associations >= usize::from(PEERS) / 2,
                "{associations} stood it"
            );
            let sum = usize::from(PEERS) * (RECEIVE_BUFFER as usize + SEND_BUFFER);
            println!(
                "{name}: {most} bytes, {:.2} of the buffers",
                most as f64 / sum as f64
            );
            assert!(
                most < 2 * sum + usize::from(PEERS) * FIXED + BLOCKS,
                "{name}: {most} bytes for buffers of {sum}"
            );
        });
    }
}
