//! Conformance scripts. A tester sends hand-made packets to the endpoint under test and checks
//! every answer. The scripts follow the test purposes of ETSI TS 102 369, which are named at each
//! test. If a test purpose differs from RFC 9260, the RFC applies, because it is newer.

mod association;
mod bundles;
mod data;
mod duplicates;
mod termination;

use crate::common::*;

use anabranch_sctp::profile::PositiveTime;
use anabranch_sctp::{Association, AssociationId, AssociationState, Config, DiscardReason};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Nanos, Path};
use anabranch_wire::chunk::{
    Abort, Chunk, CookieEcho, Data, ErrorChunk, Heartbeat, Init, InitAck, Sack, Shutdown,
    ShutdownComplete,
};
use anabranch_wire::parameter::{Parameter, Parameters};
use anabranch_wire::serial::{Ssn, Tsn};
use anabranch_wire::{Cause, Causes};
use bytes::Bytes;

/// Verification tag of packets that are sent to the tester.
const TESTERS_TAG: u32 = 0x7E57;
/// First TSN of the tester.
const TESTERS_TSN: u32 = 100;

/// Configuration with timeouts from 100 ms that double up to 800 ms, and without HEARTBEATs.
fn quick() -> Config {
    Config::default().with(|it| {
        it.profile.rto_initial = PositiveTime(100 * MILLISECOND);
        it.rto_min = 100 * MILLISECOND;
        it.rto_max = 800 * MILLISECOND;
        it.heartbeat_interval = None;
    })
}

struct Script {
    world: World,
    /// Verification tag of packets to the endpoint under test; set once the tag is known.
    tag: u32,
    /// First TSN of the endpoint under test.
    first: Tsn,
    cookie: Bytes,
    /// Number of packets that the script has already checked.
    seen: usize,
}

fn init() -> Init {
    Init {
        initiate_tag: TESTERS_TAG,
        a_rwnd: 100_000,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(TESTERS_TSN),
        parameters: Parameters::empty(),
    }
}

fn init_with(parameters: &[Parameter]) -> Init {
    Init {
        parameters: Parameters::of(parameters),
        ..init()
    }
}

fn cookie() -> Parameter {
    Parameter::StateCookie(Bytes::from_static(b"crumbles"))
}

fn init_ack_with(parameters: &[Parameter]) -> Chunk {
    Chunk::InitAck(InitAck(init_with(parameters)))
}

fn data(offset: u32, flags: &str, length: usize) -> Chunk {
    data_on(0, offset, offset as u16, flags, length)
}

fn data_on(stream_id: u16, offset: u32, ssn: u16, flags: &str, length: usize) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(TESTERS_TSN).add(offset),
        stream_id,
        ssn: Ssn(ssn),
        ppid: 0,
        unordered: flags.contains('U'),
        beginning: flags.contains('B'),
        ending: flags.contains('E'),
        immediate: flags.contains('I'),
        user_data: vec![7; length].into(),
    })
}

fn shutdown(cumulative_tsn_ack: Tsn) -> Chunk {
    Chunk::Shutdown(Shutdown { cumulative_tsn_ack })
}

fn shutdown_complete(tag_reflected: bool) -> Chunk {
    Chunk::ShutdownComplete(ShutdownComplete { tag_reflected })
}

fn abort(tag_reflected: bool) -> Chunk {
    Chunk::Abort(Abort {
        tag_reflected,
        causes: Causes::empty(),
    })
}

fn error(cause: Cause) -> Chunk {
    Chunk::Error(ErrorChunk {
        causes: Causes::of(&[cause]),
    })
}

fn heartbeat(info: &'static [u8]) -> Chunk {
    Chunk::Heartbeat(Heartbeat {
        info: Bytes::from_static(info),
    })
}

/// Encodes a SACK. The gap blocks are offsets from the cumulative TSN.
fn sack_bytes(cumulative: Tsn, a_rwnd: u32, gaps: &[(u16, u16)], duplicates: &[Tsn]) -> Vec<u8> {
    let length = 16 + 4 * (gaps.len() + duplicates.len());
    let mut bytes = vec![3, 0, 0, length as u8];
    bytes.extend_from_slice(&cumulative.0.to_be_bytes());
    bytes.extend_from_slice(&a_rwnd.to_be_bytes());
    for count in [gaps.len() as u16, duplicates.len() as u16] {
        bytes.extend_from_slice(&count.to_be_bytes());
    }
    for &(start, end) in gaps {
        bytes.extend_from_slice(&start.to_be_bytes());
        bytes.extend_from_slice(&end.to_be_bytes());
    }
    for tsn in duplicates {
        bytes.extend_from_slice(&tsn.0.to_be_bytes());
    }
    bytes
}

/// Encodes a chunk.
fn raw(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let length = (4 + value.len()) as u16;
    let mut bytes = vec![kind, flags];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

impl Script {
    /// Creates a script in which the endpoint listens and has no association.
    fn listening(config: Config) -> Self {
        let mut world = World::with_configs(Config::default(), config);
        world.fate = Box::new(|_| Fate::Drop);
        Self {
            world,
            tag: 0,
            first: Tsn(0),
            cookie: Bytes::new(),
            seen: 0,
        }
    }

    /// Creates a script in which the endpoint connects to the tester, and the tester has not
    /// answered the INIT yet.
    fn calling(config: Config) -> Self {
        Self::calling_at(config, &[address(A, 0)])
    }

    fn calling_at(config: Config, remote: &[std::net::IpAddr]) -> Self {
        let mut script = Self::listening(config);
        let now = script.world.now;
        let called = script.world.endpoints[Z].connect(now, remote, PORT_A);
        called.expect("nobody is known");
        script.world.drain(Z);
        let Chunk::Init(init) = script.expect("INIT").remove(0) else {
            panic!("no INIT")
        };
        (script.tag, script.first) = (init.initiate_tag, init.initial_tsn);
        script
    }

    /// Creates a script in which the endpoint connects and has sent its COOKIE ECHO.
    fn cookie_echoed(config: Config) -> Self {
        let mut script = Self::calling(config);
        script.say(&[&init_ack_with(&[cookie()])]);
        script.expect("COOKIE ECHO");
        script
    }

    /// Creates a script in which the endpoint has connected to the tester, and the association is
    /// established.
    fn called(config: Config) -> Self {
        let mut script = Self::cookie_echoed(config);
        script.say(&[&Chunk::CookieAck]);
        script.expect_nothing();
        assert_eq!(script.state(), AssociationState::Established);
        script
    }

    /// Creates a script in which the tester has connected to the endpoint, and the association is
    /// established.
    fn accepted(config: Config) -> Self {
        let mut script = Self::listening(config);
        script.ask(init());
        script.echo();
        script.expect("COOKIE ACK");
        script
    }

    /// Sends an INIT of the tester and returns the INIT ACK.
    fn ask(&mut self, init: Init) -> Init {
        self.say_under(0, &[&Chunk::Init(init)]);
        let Chunk::InitAck(ack) = self.expect("INIT ACK").remove(0) else {
            panic!("no INIT ACK")
        };
        (self.tag, self.first) = (ack.initiate_tag, ack.initial_tsn);
        let found = ack.parameters.iter().flatten().find_map(|it| match it {
            Parameter::StateCookie(cookie) => Some(cookie),
            _ => None,
        });
        self.cookie = found.expect("a cookie");
        ack.0
    }

    fn cookie_echo(&self) -> Chunk {
        Chunk::CookieEcho(CookieEcho {
            cookie: self.cookie.clone(),
        })
    }

    fn echo(&mut self) {
        let echo = self.cookie_echo();
        self.say(&[&echo]);
    }

    fn say(&mut self, chunks: &[&Chunk]) {
        self.say_under(self.tag, chunks);
    }

    fn say_under(&mut self, tag: u32, chunks: &[&Chunk]) {
        self.world.inject(Z, packet(A, tag, chunks));
    }

    fn say_raw(&mut self, chunks: &[u8]) {
        self.world.inject(Z, raw_packet(A, self.tag, chunks));
    }

    fn sack(&mut self, acknowledged: u32, a_rwnd: u32, gaps: &[(u16, u16)]) {
        let cumulative = self.first.add(acknowledged).prev();
        self.say_raw(&sack_bytes(cumulative, a_rwnd, gaps, &[]));
    }

    /// Asserts that the endpoint has answered at once with exactly one packet, and that this packet
    /// has these chunks.
    fn expect(&mut self, chunks: &str) -> Vec<Chunk> {
        let found = self.expect_one(chunks);
        self.expect_nothing();
        found
    }

    /// Asserts that the next packet has these chunks.
    fn expect_one(&mut self, chunks: &str) -> Vec<Chunk> {
        let shot = self.world.shots.get(self.seen);
        let shot = shot.unwrap_or_else(|| panic!("no {chunks}: {:#?}", self.world.story));
        assert_eq!(shot.chunks, chunks, "{:#?}", self.world.story);
        self.seen += 1;
        chunks_of(&shot.bytes)
    }

    fn expect_nothing(&self) {
        let more: Vec<_> = self.world.shots[self.seen..].iter().collect();
        assert!(more.is_empty(), "{more:#?}");
    }

    /// Asserts that the endpoint sends nothing for the time `span`, and then a packet with these
    /// chunks.
    fn expect_after(&mut self, span: Nanos, chunks: &str) -> Vec<Chunk> {
        let due = self.world.now + span;
        self.world.run_until(due - 1);
        self.expect_nothing();
        self.world.run_until(due);
        self.expect(chunks)
    }

    fn wait(&mut self, span: Nanos) {
        self.world.run_for(span);
    }

    /// Asserts that the next packet is sent within the time `span`, and that it has these chunks.
    fn expect_within(&mut self, span: Nanos, chunks: &str) -> Vec<Chunk> {
        let until = self.world.now + span;
        while self.world.shots.len() == self.seen && self.world.step(until) {}
        self.expect(chunks)
    }

    fn id(&self) -> AssociationId {
        self.world.only_association(Z)
    }

    fn associations(&self) -> usize {
        self.world.endpoints[Z].associations().count()
    }

    fn association(&mut self) -> &mut Association {
        let id = self.id();
        self.world.endpoints[Z].association_mut(id).expect("known")
    }

    fn state(&self) -> AssociationState {
        self.world.state(Z, self.id())
    }

    fn send(&mut self, length: usize) {
        let id = self.id();
        self.world.send(Z, id, 0, vec![5; length]);
    }

    fn close(&mut self) {
        let id = self.id();
        self.world.shutdown(Z, id);
    }

    /// Lengths of all messages that can be read.
    fn read(&mut self) -> Vec<usize> {
        let id = self.id();
        let messages = self.world.receive_all(Z, id);
        messages.iter().map(|it| it.payload.len()).collect()
    }

    fn discarded(&self, reason: DiscardReason) -> u64 {
        self.world.endpoints[Z].discards().of(reason)
    }

    /// The peer closes the association gracefully. It acknowledges this number of chunks.
    fn tear_down(&mut self, received: u32) {
        let acknowledged = self.first.add(received).prev();
        self.say(&[&shutdown(acknowledged)]);
        self.expect("SHUTDOWN ACK");
        self.say(&[&shutdown_complete(false)]);
        self.expect_nothing();
        assert_eq!(self.state(), AssociationState::Closed);
    }

    /// RFC 9260 §8.4, rule 8: asserts that the association no longer exists.
    fn is_gone(&mut self) {
        self.say(&[&heartbeat(b"12345")]);
        let Chunk::Abort(abort) = self.expect("ABORT").remove(0) else {
            panic!("no ABORT")
        };
        let last = &self.world.shots[self.seen - 1];
        assert_eq!(header_of(&last.bytes).verification_tag, self.tag);
        assert!(abort.tag_reflected);
    }
}

/// Cumulative TSN, window, gap blocks and duplicates of a SACK.
fn sack_of(chunks: &[Chunk]) -> (u32, u32, Vec<(u16, u16)>, Vec<u32>) {
    let sack: &Sack = chunks
        .iter()
        .find_map(|it| match it {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        })
        .expect("a SACK");
    let gaps = sack.gap_blocks().map(|it| (it.start, it.end)).collect();
    let offset = |tsn: Tsn| tsn.0.wrapping_sub(TESTERS_TSN);
    let duplicates = sack.duplicates().map(offset).collect();
    let next = offset(sack.cumulative_tsn_ack).wrapping_add(1);
    (next, sack.a_rwnd, gaps, duplicates)
}

/// Offset, flags and length of each DATA chunk.
fn data_of(script: &Script, chunks: &[Chunk]) -> Vec<(u32, String, usize)> {
    let of = |chunk: &Chunk| match chunk {
        Chunk::Data(data) => {
            let bits = [
                ('B', data.beginning),
                ('E', data.ending),
                ('U', data.unordered),
            ];
            let flags = bits.iter().filter(|(_, set)| *set).map(|(bit, _)| *bit);
            let offset = data.tsn.0.wrapping_sub(script.first.0);
            Some((offset, flags.collect(), data.user_data.len()))
        }
        _ => None,
    };
    chunks.iter().filter_map(of).collect()
}
