//! A play of two endpoints and a stranger, written by arbitrary bytes: honest packets are lost, doubled, altered and
//! replayed, the stranger's are put between them, users send, read, close and begin again, and time passes. Whatever is
//! played, nothing panics, every endpoint falls silent, no timer spins, and no packet draws a storm of answers.

use std::collections::VecDeque;
use std::net::IpAddr;

use anabranch_congestion::sctp_algorithms;
use anabranch_sctp::profile::WhenFull;
use anabranch_sctp::{AssociationId, Config, Endpoint, Icmp, Message, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::Tsn;
use anabranch_wire::chunk::{Chunk, kind};
use anabranch_wire::packet::{Checksum, Packet};
use anabranch_wire::parameter::Parameter;
use bytes::{Bytes, BytesMut};

const PORTS: [u16; 2] = [5_000, 7];
/// Acts of one play; later ones would only repeat.
const MOST_ACTS: usize = 400;
/// Packets in a row after which an endpoint is taken to have run away.
const MOST_PACKETS: usize = 1_000;
/// Packets without DATA that one packet may draw, and their bytes beyond its own.
const MOST_ANSWERS: usize = 48;
const MOST_ANSWER_BYTES: usize = 4_096;
/// What waits on the wire; the oldest is lost beyond it.
const MOST_IN_FLIGHT: usize = 256;

fn address(host: usize, network: u8) -> IpAddr {
    [10, 0, network, 1 + host as u8].into()
}

/// The bytes that write the play.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// What a stranger who reads everything on the wire knows.
#[derive(Default)]
struct Known {
    /// The tag in packets to each host.
    tag_to: [u32; 2],
    /// The last TSN each host sent.
    tsn_of: [u32; 2],
    /// The last cookie each host gave, and the tag it goes with.
    cookie_of: [Option<(u32, Bytes)>; 2],
}

struct Play<'a> {
    script: Script<'a>,
    now: Nanos,
    config: Config,
    endpoints: [Endpoint; 2],
    lives: u8,
    /// Destination, path there, packet.
    wire: VecDeque<(usize, Path, Bytes)>,
    seen: Vec<(usize, Path, Bytes)>,
    known: Known,
    out: BytesMut,
    /// No stranger, nothing altered: packets are only lost, doubled, delayed and replayed.
    honest: bool,
    /// The stranger spoke under a tag that may be right: what only the two ends can know may have been spoilt for ever.
    tampered: bool,
}

/// Plays what `bytes` say.
pub fn play(bytes: &[u8]) {
    let mut script = Script(bytes);
    let choice = script.byte();
    let (config, honest) = (config_of(choice), choice & 0x08 != 0);
    let mut play = Play {
        endpoints: [A, Z].map(|host| endpoint(host, &config, host as u8)),
        script,
        now: SECOND,
        config,
        lives: 2,
        wire: VecDeque::new(),
        seen: Vec::new(),
        known: Known::default(),
        out: BytesMut::new(),
        honest,
        tampered: false,
    };
    play.connect(A);
    for _ in 0..12 {
        play.deliver(0);
    }
    for _ in 0..MOST_ACTS {
        if play.script.0.is_empty() {
            break;
        }
        play.act();
    }
    play.end();
}

const A: usize = 0;
const Z: usize = 1;

fn config_of(choice: u8) -> Config {
    let names = Profile::NAMES;
    let mut profile =
        Profile::by_name(names[usize::from(choice) % names.len()]).expect("its own name");
    profile.rsctp = choice & 0x04 != 0;
    profile.potentially_failed = choice & 0x08 != 0;
    Config {
        congestion: if profile.rsctp {
            sctp_algorithms::by_name("rsctp").expect("a listed algorithm")
        } else {
            &sctp_algorithms::ALGORITHMS[0]
        },
        primary_switch_max_retrans: profile.potentially_failed.then_some(1),
        receive_buffer: if choice & 0x10 == 0 { 65_536 } else { 3_000 },
        send_buffer: 20_000,
        mtu: if choice & 0x20 == 0 { 1_500 } else { 300 },
        data_with_cookie_echo: choice & 0x40 != 0,
        hb_interval: (choice & 0x80 == 0).then_some(2 * SECOND),
        inbound_streams: 20,
        ..Config::new(profile)
    }
}

fn endpoint(host: usize, config: &Config, seed: u8) -> Endpoint {
    let config = Config {
        addresses: vec![address(host, 0), address(host, 1)],
        ..config.clone()
    };
    let mut endpoint = Endpoint::new(config, PORTS[host], [seed; 32]);
    endpoint.listen(true);
    endpoint.set_max_associations(8);
    endpoint
}

impl Play<'_> {
    fn act(&mut self) {
        let act = self.script.byte();
        let host = usize::from(act >> 7);
        match act & 0x1F {
            0..=5 => self.deliver(0),
            6 => {
                let index = usize::from(self.script.byte());
                self.deliver(index);
            }
            7 => drop(self.wire.pop_front()),
            8 => {
                if let Some(shot) = self.wire.front().cloned() {
                    self.wire.push_back(shot);
                }
            }
            9 if !self.honest => self.alter(),
            10 => self.replay(),
            11 => self.pass(u64::from(self.script.0.first().copied().unwrap_or(1)) * MILLISECOND),
            12 => {
                let span = u64::from(self.script.word()) * MILLISECOND;
                self.pass(span);
            }
            13..=15 => self.send(host),
            16 => self.read(host),
            17 => self.close(host),
            18 => self.connect(host),
            19 => self.live_anew(host),
            20 => self.release(host),
            21 => self.init(host),
            22 => self.echo_cookie(host),
            23 => self.router(host),
            _ if self.honest => self.deliver(0),
            _ => self.stranger(host),
        }
    }

    /// Hands over the packet that is `index` from the front of the wire.
    fn deliver(&mut self, index: usize) {
        if self.wire.is_empty() {
            return;
        }
        let index = index % self.wire.len();
        if let Some((to, path, bytes)) = self.wire.remove(index) {
            self.now += MILLISECOND;
            self.hand(to, path, bytes);
        }
    }

    fn hand(&mut self, to: usize, path: Path, bytes: Bytes) {
        let len = bytes.len();
        self.endpoints[to].handle_datagram(self.now, path, Ecn::NotEct, bytes);
        let (answers, answer_bytes) = self.drain(to);
        assert!(answers <= MOST_ANSWERS, "{answers} answers to one packet");
        assert!(
            answer_bytes <= len + MOST_ANSWER_BYTES,
            "{answer_bytes} bytes of answers to {len}"
        );
    }

    /// Takes all that `host` has to send and to tell; how many packets without DATA, and their bytes.
    fn drain(&mut self, host: usize) -> (usize, usize) {
        let mut answers = (0, 0);
        let mut silent = false;
        for _ in 0..MOST_PACKETS {
            let Some(transmit) = self.endpoints[host].poll_transmit(self.now, &mut self.out) else {
                silent = true;
                break;
            };
            let bytes = self.out.split().freeze();
            assert_eq!(bytes.len(), transmit.len);
            let limit = self.config.mtu - 20;
            assert!(bytes.len() <= limit, "{} bytes in a packet", bytes.len());
            self.hold_back(host, transmit.path.remote, &bytes);
            if !self.watch(host, &bytes) {
                answers.0 += 1;
                answers.1 += bytes.len();
            }
            let shot = (1 - host, transmit.path.reversed(), bytes);
            if self.seen.len() < 64 {
                self.seen.push(shot.clone());
            }
            self.wire.push_back(shot);
            if self.wire.len() > MOST_IN_FLIGHT {
                self.wire.pop_front();
            }
        }
        assert!(silent, "endpoint {host} never falls silent");
        while self.endpoints[host].poll_event().is_some() {}
        answers
    }

    /// Learns from a packet of `host`; whether it carries DATA. What this stack sends is sound to the last byte.
    fn watch(&mut self, host: usize, bytes: &Bytes) -> bool {
        let packet = Packet::parse(bytes, Checksum::Verify).expect("a sound packet");
        let mut data = false;
        for raw in packet.chunks() {
            match Chunk::decode(raw.expect("framed")).expect("sound") {
                Chunk::Data(chunk) => {
                    data = true;
                    self.known.tsn_of[host] = chunk.tsn.0;
                }
                Chunk::Init(init) => {
                    self.known.tag_to[host] = init.initiate_tag;
                    self.known.tsn_of[host] = init.initial_tsn.prev().0;
                }
                Chunk::InitAck(ack) => {
                    let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
                        Parameter::StateCookie(cookie) => Some(cookie),
                        _ => None,
                    });
                    self.known.cookie_of[host] = cookie.map(|cookie| (ack.initiate_tag, cookie));
                }
                _ => {}
            }
        }
        if packet.header.verification_tag != 0 {
            self.known.tag_to[1 - host] = packet.header.verification_tag;
        }
        data
    }

    /// Time passes; timers run when they are due.
    fn pass(&mut self, span: Nanos) {
        let until = self.now.saturating_add(span);
        let mut steps = 0;
        loop {
            let due = [A, Z].map(|host| self.endpoints[host].poll_timeout());
            let Some(next) = due.into_iter().flatten().min().filter(|&at| at <= until) else {
                break;
            };
            let moved = next > self.now;
            self.now = self.now.max(next);
            for host in [A, Z] {
                if due[host].is_some_and(|at| at <= self.now) {
                    self.endpoints[host].handle_timeout(self.now);
                    self.drain(host);
                }
            }
            steps = if moved { 0 } else { steps + 1 };
            assert!(steps < 100, "a timer spins at {}", self.now);
        }
        self.now = until;
    }

    fn first(&self, host: usize) -> Option<AssociationId> {
        self.endpoints[host].associations().next()
    }

    fn send(&mut self, host: usize) {
        let (stream, len) = (self.script.byte(), self.script.word());
        let Some(id) = self.first(host) else { return };
        // A profile that drops in silence what finds no room is stuck with a message larger than that.
        let most = match self.config.profile.when_full {
            WhenFull::Silent => self.config.receive_buffer as usize / 4,
            _ => 8_000,
        };
        let message = Message {
            ppid: 1,
            unordered: stream & 0x80 != 0,
            payload: Bytes::from(vec![stream; usize::from(len) % most]),
        };
        if let Some(association) = self.endpoints[host].association_mut(id) {
            let _ = association.send(u16::from(stream) % 12, message);
            assert!(association.buffered() <= 20_000 + 8_000);
        }
        self.drain(host);
    }

    fn read(&mut self, host: usize) {
        let ids: Vec<_> = self.endpoints[host].associations().collect();
        for id in ids {
            if let Some(association) = self.endpoints[host].association_mut(id) {
                while association.poll_message().is_some() {}
            }
        }
        self.drain(host);
    }

    fn close(&mut self, host: usize) {
        let how = self.script.byte();
        let (now, id) = (self.now, self.first(host));
        let Some(association) = id.and_then(|id| self.endpoints[host].association_mut(id)) else {
            return;
        };
        let _ = match how % 4 {
            0 => association.abort(now, Bytes::from(vec![how; 600])),
            _ => association.shutdown(now),
        };
        self.drain(host);
    }

    fn connect(&mut self, host: usize) {
        let peer = [address(1 - host, 0), address(1 - host, 1)];
        let _ = self.endpoints[host].connect(self.now, &peer[..1], PORTS[1 - host]);
        self.drain(host);
    }

    /// The host loses its memory.
    fn live_anew(&mut self, host: usize) {
        self.lives = self.lives.wrapping_add(1);
        self.endpoints[host] = endpoint(host, &self.config, self.lives);
    }

    fn release(&mut self, host: usize) {
        if let Some(id) = self.first(host) {
            self.endpoints[host].release(id);
        }
    }

    /// An honest packet with a byte altered, its checksum made good.
    fn alter(&mut self) {
        self.tampered = true;
        let (at, with) = (self.script.word(), self.script.byte());
        if let Some((_, _, bytes)) = self.wire.front_mut() {
            let mut altered = bytes.to_vec();
            let at = usize::from(at) % altered.len();
            altered[at] ^= with;
            anabranch_wire::checksum::fill(&mut altered);
            *bytes = altered.into();
        }
    }

    fn replay(&mut self) {
        let index = usize::from(self.script.byte());
        if !self.seen.is_empty() {
            let (to, path, bytes) = self.seen[index % self.seen.len()].clone();
            self.hand(to, path, bytes);
        }
    }

    /// Hands `chunks` to `host` as from its peer, or from an address that is not the peer's.
    fn forge(&mut self, host: usize, tag: u32, chunks: &[u8], network: u8) {
        let mut bytes = Vec::with_capacity(12 + chunks.len());
        bytes.extend_from_slice(&PORTS[1 - host].to_be_bytes());
        bytes.extend_from_slice(&PORTS[host].to_be_bytes());
        bytes.extend_from_slice(&tag.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(chunks);
        anabranch_wire::checksum::fill(&mut bytes);
        let path = Path::new(address(host, network & 1), address(1 - host, network));
        self.hand(host, path, bytes.into());
    }

    /// An INIT with parameters of the script.
    fn init(&mut self, host: usize) {
        let (tag, len) = (self.script.byte(), usize::from(self.script.byte()));
        let parameters = self.script.take(len).to_vec();
        let mut chunk = vec![kind::INIT, 0];
        chunk.extend_from_slice(&(20 + parameters.len() as u16).to_be_bytes());
        chunk.extend_from_slice(&[0, 0, 0, tag, 0, 1, 0, 0, 0, 2, 0, 20, 0, 0, 0, 1]);
        chunk.extend_from_slice(&parameters);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        self.forge(host, 0, &chunk, tag % 3);
    }

    /// The last cookie that `host` gave, back to it, with a chunk of the script behind it.
    fn echo_cookie(&mut self, host: usize) {
        let Some((tag, cookie)) = self.known.cookie_of[host].clone() else {
            return;
        };
        let mut chunks = vec![kind::COOKIE_ECHO, 0];
        chunks.extend_from_slice(&(4 + cookie.len() as u16).to_be_bytes());
        chunks.extend_from_slice(&cookie);
        chunks.resize(chunks.len().next_multiple_of(4), 0);
        if self.script.byte() & 1 == 1 && !self.honest {
            self.tampered = true;
            self.add_chunk(host, &mut chunks);
        }
        self.forge(host, tag, &chunks, 0);
    }

    /// An ICMP message to `host` about a packet of its own that was seen, cut and bent as the script says.
    fn router(&mut self, host: usize) {
        let (index, how, word) = (self.script.byte(), self.script.byte(), self.script.word());
        let of_host: Vec<_> = self.seen.iter().filter(|(to, ..)| *to != host).collect();
        if of_host.is_empty() {
            return;
        }
        let (_, path, bytes) = of_host[usize::from(index) % of_host.len()];
        let IpAddr::V4(remote) = path.local else {
            return;
        };
        let mut quoted = vec![0; 20];
        quoted[0] = 0x45;
        quoted[9] = 132;
        quoted[16..20].copy_from_slice(&remote.octets());
        quoted.extend_from_slice(bytes);
        if how & 0x40 != 0 {
            quoted.truncate(usize::from(word) % quoted.len());
        }
        if how & 0x80 != 0
            && let Some(byte) = quoted.get_mut(usize::from(word) % 48)
        {
            *byte ^= how;
        }
        let (kind, code) = [
            (3, 1),
            (3, 4),
            (3, 4),
            (3, 3),
            (3, 2),
            (word as u8 % 5, how % 16),
        ][usize::from(how & 0x3F) % 6];
        let icmp = Icmp {
            v6: false,
            kind,
            code,
            mtu: word.into(),
            quoted: &quoted,
        };
        self.endpoints[host].handle_icmp(self.now, &icmp);
        self.drain(host);
    }

    /// Nothing but HEARTBEATs, their answers and what belongs to no association goes to an address that is not known to be
    /// the peer's (RFC 9260 §5.4).
    fn hold_back(&self, host: usize, remote: IpAddr, bytes: &Bytes) {
        const NEVER: [u8; 5] = [
            kind::DATA,
            kind::SACK,
            kind::SHUTDOWN,
            kind::SHUTDOWN_ACK,
            kind::COOKIE_ECHO,
        ];
        let packet = Packet::parse(bytes, Checksum::Ignore).expect("a packet");
        let ours = |raw: &anabranch_wire::packet::RawChunk| NEVER.contains(&raw.kind);
        if !packet.chunks().flatten().any(|raw| ours(&raw)) {
            return;
        }
        let endpoint = &self.endpoints[host];
        let verified = endpoint.associations().any(|id| {
            let paths = endpoint.association(id).expect("listed").paths();
            let path = paths.find(remote);
            path.is_some_and(|path| paths.get(path).verified)
        });
        assert!(verified, "host {host} trusts {remote}");
    }

    /// Chunks that the stranger makes up, under a tag that may be right.
    fn stranger(&mut self, host: usize) {
        let how = self.script.byte();
        let tag = match how & 7 {
            0 => 0,
            1 => self.known.tag_to[1 - host],
            2 => u32::from(how),
            _ => self.known.tag_to[host],
        };
        let mut chunks = Vec::new();
        for _ in 0..=(how >> 6) {
            self.add_chunk(host, &mut chunks);
        }
        self.tampered |= tag == self.known.tag_to[host] || tag == self.known.tag_to[1 - host];
        self.forge(host, tag, &chunks, (how >> 4) & 3);
    }

    /// Kind, flags, value; the first word may be a TSN near the ones in use.
    fn add_chunk(&mut self, host: usize, chunks: &mut Vec<u8>) {
        let (kind, flags) = (self.script.byte(), self.script.byte());
        let (shape, len) = (self.script.byte(), usize::from(self.script.byte()));
        // Kinds that exist are likelier.
        let kind = if kind < 0xE0 { kind % 16 } else { kind };
        let mut value = self.script.take(len).to_vec();
        let near = i32::from(shape as i8) / 2;
        if shape & 1 == 1 && value.len() >= 4 {
            let base = match kind {
                kind::DATA => self.known.tsn_of[1 - host],
                _ => self.known.tsn_of[host],
            };
            let tsn = Tsn(base.wrapping_add_signed(near));
            value[..4].copy_from_slice(&tsn.0.to_be_bytes());
        }
        if kind == kind::SACK && value.len() >= 12 {
            // As many blocks as there is room for.
            let blocks = ((value.len() - 12) / 4) as u16;
            value[8..10].copy_from_slice(&blocks.to_be_bytes());
            value[10..12].copy_from_slice(&[0, 0]);
        }
        chunks.extend_from_slice(&[kind, flags]);
        let length = if shape == 0xFE {
            3
        } else {
            4 + value.len() as u16
        };
        chunks.extend_from_slice(&length.to_be_bytes());
        chunks.extend_from_slice(&value);
        chunks.resize(chunks.len().next_multiple_of(4), 0);
    }

    /// Once the users close and the wire is honest again everything comes to an end, unless a stranger who knew the tags
    /// interfered: with acknowledgements of what never arrived, say, neither end can know that it waits in vain.
    fn end(&mut self) {
        for _ in 0..200 {
            self.close_all();
            while !self.wire.is_empty() {
                self.deliver(0);
                for host in [A, Z] {
                    self.read(host);
                }
            }
            self.pass(10 * SECOND);
        }
        for host in [A, Z] {
            let ids: Vec<_> = self.endpoints[host].associations().collect();
            for id in ids {
                let association = self.endpoints[host].association(id).expect("listed");
                assert!(
                    association.is_closed() || self.tampered,
                    "{host}: {:?} for ever",
                    association.state()
                );
                self.endpoints[host].release(id);
            }
        }
    }

    /// The users of both ends read all and close.
    fn close_all(&mut self) {
        for host in [A, Z] {
            let ids: Vec<_> = self.endpoints[host].associations().collect();
            assert!(ids.len() <= 9, "{} associations", ids.len());
            for id in ids {
                if let Some(association) = self.endpoints[host].association_mut(id) {
                    while association.poll_message().is_some() {}
                    let _ = association.shutdown(self.now);
                }
            }
            self.drain(host);
        }
    }
}
