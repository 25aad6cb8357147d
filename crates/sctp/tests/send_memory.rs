//! Tests of the memory that a peer can make a sender use, measured by a counting allocator. The
//! memory should be limited by the size of the buffers, whatever the peer reports, and should be
//! used only for a limited time.

mod common;

use anabranch_sctp::{AssociationId, Config, Endpoint, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::chunk::{Chunk, CookieEcho, HeartbeatAck, kind};
use anabranch_wire::parameter::Parameter;
use bytes::{Bytes, BytesMut};
use cap::Cap;
use common::{A, PORT_Z, Z, address, chunks_of, packet, raw_packet};

#[global_allocator]
static HEAP: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

/// All tests measure the same heap, so they run one at a time.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

const SEND_BUFFER: usize = 256 << 10;
const RECEIVE_BUFFER: u32 = 64 << 10;
const BOTH: usize = SEND_BUFFER + RECEIVE_BUFFER as usize;
/// Memory of an association independent of its buffers, including the current packets.
const FIXED: usize = 128 << 10;
const TAG: u32 = 7_001;
/// Window that the peer advertises. It is larger than all data, so that only cwnd and the limits of
/// the sender itself apply.
const WINDOW: u32 = 16 << 20;

/// An endpoint that sends all data of its user, and a hand-made peer that sends arbitrary reports.
struct Siege {
    z: Endpoint,
    id: AssociationId,
    tag: u32,
    now: Nanos,
    before: usize,
    most: usize,
    /// TSN before the first one, and highest TSN that was sent.
    origin: u32,
    highest: u32,
    /// Whether the peer answers HEARTBEATs. This keeps the association alive (RFC 9260 §8.1).
    answers: bool,
}

/// Encodes a chunk. The length of `value` must be a multiple of four.
fn chunk(kind: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, 0];
    bytes.extend((4 + value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes
}

impl Siege {
    fn new(change: impl FnOnce(&mut Config)) -> Self {
        let config = Config::default().with(|it| {
            it.addresses = vec![address(Z, 0)];
            it.receive_buffer = RECEIVE_BUFFER;
            it.send_buffer = SEND_BUFFER;
            change(it);
        });
        let mut z = Endpoint::new(config, PORT_Z, [2; 32]).expect("settings that can be used");
        z.listen(true);
        let before = HEAP.allocated();
        let now = SECOND;
        let mut init = Vec::new();
        init.extend(TAG.to_be_bytes());
        init.extend(WINDOW.to_be_bytes());
        init.extend([0, 10, 0, 10, 0, 0, 3, 232]);
        init.extend([0xC0, 0, 0, 4]); // Forward-TSN-Supported
        let path = Path::new(address(Z, 0), address(A, 0));
        let mut out = BytesMut::new();
        let greeting = raw_packet(A, 0, &chunk(kind::INIT, &init));
        z.handle_datagram(now, path, Ecn::NotEct, greeting);
        let answer = z.poll_transmit(now, &mut out).expect("an answer");
        let answer = chunks_of(&out.split_to(answer.len).freeze()).swap_remove(0);
        let Chunk::InitAck(ack) = answer else {
            panic!("{answer:?}")
        };
        let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
        let cookie = cookie.expect("a cookie");
        let echo = packet(
            A,
            ack.initiate_tag,
            &[&Chunk::CookieEcho(CookieEcho { cookie })],
        );
        z.handle_datagram(now, path, Ecn::NotEct, echo);
        let id = z.associations().next().expect("an association");
        let origin = ack.initial_tsn.0.wrapping_sub(1);
        Self {
            z,
            id,
            tag: ack.initiate_tag,
            now,
            before,
            most: 0,
            origin,
            highest: origin,
            answers: true,
        }
    }

    fn hear(&mut self, chunk: &[u8]) {
        let path = Path::new(address(Z, 0), address(A, 0));
        let packet = raw_packet(A, self.tag, chunk);
        self.z.handle_datagram(self.now, path, Ecn::NotEct, packet);
        self.go_out();
    }

    /// Sends all packets of the endpoint to the peer.
    fn go_out(&mut self) {
        let mut out = BytesMut::new();
        let mut asked = Vec::new();
        while let Some(transmit) = self.z.poll_transmit(self.now, &mut out) {
            for chunk in chunks_of(&out.split_to(transmit.len).freeze()) {
                match chunk {
                    Chunk::Data(data) => {
                        let ahead = data.tsn.0.wrapping_sub(self.origin);
                        let before = self.highest.wrapping_sub(self.origin);
                        self.highest = self.origin.wrapping_add(ahead.max(before));
                    }
                    Chunk::Heartbeat(heartbeat) if self.answers => asked.push(heartbeat.info),
                    _ => {}
                }
            }
        }
        while self.z.poll_event().is_some() {}
        drop(out);
        self.most = self.most.max(HEAP.allocated().saturating_sub(self.before));
        for info in asked {
            let answer = Chunk::HeartbeatAck(HeartbeatAck { info });
            let path = Path::new(address(Z, 0), address(A, 0));
            let answer = packet(A, self.tag, &[&answer]);
            self.z.handle_datagram(self.now, path, Ecn::NotEct, answer);
        }
    }

    /// Advances the time and runs timers.
    fn wait(&mut self, span: Nanos) {
        let until = self.now + span;
        while let Some(at) = self.z.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.z.handle_timeout(self.now);
            self.go_out();
        }
        self.now = until;
    }

    /// The user sends messages of `bytes` bytes while the send buffer accepts them.
    fn offer(&mut self, bytes: usize, options: Option<&SendOptions>) {
        let now = self.now;
        while let Some(association) = self.z.association_mut(self.id) {
            let payload = Bytes::from(vec![7; bytes]);
            let options = options.copied().unwrap_or_default();
            if association.send(now, payload, &options).is_err() {
                break;
            }
        }
        self.go_out();
    }

    /// SACK whose cumulative TSN has the offset `passed`. Its gap block reports all TSNs from the
    /// second one after that up to the offset `last`.
    fn sack(&mut self, passed: u32, last: u32) {
        let mut value = Vec::new();
        value.extend(self.origin.wrapping_add(passed).to_be_bytes());
        value.extend(WINDOW.to_be_bytes());
        let end = last.saturating_sub(passed).min(65_535) as u16;
        value.extend([0, u8::from(end >= 2), 0, 0]);
        if end >= 2 {
            value.extend([0, 2]);
            value.extend(end.to_be_bytes());
        }
        self.hear(&chunk(kind::SACK, &value));
    }

    fn sent(&self) -> u32 {
        self.highest.wrapping_sub(self.origin)
    }

    fn is_open(&self) -> bool {
        let association = self.z.association(self.id);
        association.is_some_and(|it| !it.is_closed())
    }

    /// Buffered data reported by the association.
    fn told(&self) -> usize {
        self.z
            .association(self.id)
            .map_or(0, |it| it.send_buffer().used())
    }
}

/// The peer reports all chunks in gap blocks except the first one, which it never acknowledges.
fn all_but_the_first(siege: &mut Siege, bytes: usize, rounds: u32) {
    for _ in 0..rounds {
        siege.offer(bytes, None);
        siege.wait(5 * MILLISECOND);
        siege.sack(0, siege.sent());
    }
}

#[test]
fn memory_of_data_reported_by_gap_blocks_is_bounded() {
    let _turn = TURN.lock();
    for (mtu, bytes) in [
        (1_500, 1_400),
        (1_500, 100),
        (9_000, 8_800),
        (1_500, 60_000),
    ] {
        let mut siege = Siege::new(|it| it.mtu = mtu);
        all_but_the_first(&mut siege, bytes, 600);
        assert!(siege.is_open());
        let (held, told) = (HEAP.allocated() - siege.before, siege.told());
        println!("{bytes}: {} at most, {held} held, {told} told", siege.most);
        // A small message needs more memory than its payload. `SendBuffer::used` includes this
        // memory.
        let beside = SEND_BUFFER / bytes * 192;
        assert!(
            siege.most < 2 * BOTH + beside + FIXED,
            "{bytes}: {}",
            siege.most
        );
        assert!(held < told + FIXED, "{bytes}: {held} held, {told} told");
        // After the first chunk has arrived, the sender should continue to send.
        let sent = siege.sent();
        siege.sack(sent, sent);
        siege.wait(5 * MILLISECOND);
        assert!(siege.sent() > sent, "{bytes}");
    }
}

/// The memory should also be limited if the peer acknowledges promptly until cwnd is large, and
/// then stops.
#[test]
fn memory_of_data_in_flight_is_bounded() {
    let _turn = TURN.lock();
    let mut siege = Siege::new(|_| {});
    for _ in 0..500 {
        siege.offer(1_400, None);
        siege.wait(5 * MILLISECOND);
        siege.sack(siege.sent(), 0);
    }
    siege.offer(1_400, None);
    siege.wait(5 * MILLISECOND);
    siege.offer(1_400, None);
    let held = HEAP.allocated() - siege.before;
    assert!(siege.most < 2 * BOTH + FIXED, "{}", siege.most);
    assert!(held < siege.told() + FIXED);
    // The sender should use all memory that the send buffer permits.
    assert!(siege.told() > SEND_BUFFER + RECEIVE_BUFFER as usize);
}

/// The memory of abandoned messages should be released, even if the peer never acknowledges them.
#[test]
fn abandoned_messages_are_freed() {
    let _turn = TURN.lock();
    let mut siege = Siege::new(|it| it.partial_reliability = true);
    let options = SendOptions::default()
        .with_lifetime(Some(50 * MILLISECOND))
        .with_max_retransmits(Some(0));
    for _ in 0..3_000 {
        siege.offer(1_400, Some(&options));
        siege.wait(10 * MILLISECOND);
        siege.sack(0, siege.sent());
        if !siege.is_open() {
            break;
        }
    }
    println!("given up: {} at most, {} told", siege.most, siege.told());
    assert!(siege.most < 2 * BOTH + FIXED, "{}", siege.most);
}

/// The peer reports the last TSN in a gap block, withdraws the report, and repeats this. Because
/// this is no progress, the association should end as it would with a silent peer.
#[test]
fn giving_and_taking_back_keeps_no_association_alive() {
    let _turn = TURN.lock();
    let mut siege = Siege::new(|_| {});
    siege.answers = false;
    all_but_the_first(&mut siege, 1_400, 300);
    let began = siege.now;
    let mut taken = false;
    while siege.is_open() && siege.now < began + 3_600 * SECOND {
        siege.offer(1_400, None);
        siege.wait(400 * MILLISECOND);
        let sent = siege.sent();
        siege.sack(0, if taken { sent } else { sent - 1 });
        taken = !taken;
    }
    assert!(!siege.is_open(), "an hour later");
}
