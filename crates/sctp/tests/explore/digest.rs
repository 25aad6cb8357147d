//! Digest of a world: two worlds that differ only in their time and in their random tags, TSNs and
//! nonces have the same digest.
//!
//! The digest is computed from the `Debug` output of endpoints and packets, so that no state is
//! omitted by mistake. Settings, counters that do not affect decisions, and generator states are
//! omitted intentionally. Times are relative to the current time. A random number is replaced by
//! its order of appearance, and a number close to a random number by the distance between the two.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

use anabranch_wire::chunk::Chunk;
use anabranch_wire::packet::{Checksum, Packet};

use super::world::{BEGIN, Seen, World};

/// Fields that are omitted, with their values.
const SKIPPED: [&str; 13] = [
    "config: ",
    "profile: ",
    "discards: ",
    "statistics: ",
    "control: ",
    "final_sent: ",
    "trace: ",
    "random: ",
    "jar: ",
    "generation: ",
    "latest: ",
    "last: ",
    "free: ",
];
/// Numbers below this are written unchanged.
const SMALL: u64 = 1 << 17;
/// Durations that are whole milliseconds are written unchanged.
const MILLISECOND: u64 = 1_000_000;
/// TSNs within this distance are considered part of the same sequence.
const NEAR: u32 = 4_096;
/// Length of the signature at the end of a cookie, and the format that [`Canon::cookie`] parses.
const MAC: usize = 32;
const COOKIE_FORMAT: u8 = 3;

/// Writes canonical text to a hash.
pub struct Canon {
    now: u64,
    rows: Vec<u32>,
    nonces: Vec<u64>,
    hasher: DefaultHasher,
    /// The hashed text, for debugging.
    pub text: Option<String>,
}

impl Canon {
    pub fn new(now: u64) -> Self {
        Self {
            now,
            rows: Vec::new(),
            nonces: Vec::new(),
            hasher: DefaultHasher::new(),
            text: None,
        }
    }

    fn put(&mut self, text: &str) {
        self.hasher.write(text.as_bytes());
        if let Some(all) = &mut self.text {
            all.push_str(text);
        }
    }

    fn put_tagged(&mut self, tag: u8, number: u64) {
        self.hasher.write_u8(tag);
        self.hasher.write_u64(number);
        if let Some(all) = &mut self.text {
            write!(all, "{}{number}", char::from(tag)).expect("a string");
        }
    }

    pub fn number(&mut self, number: u64) {
        if number < SMALL || number == u64::MAX || number == u64::from(u32::MAX) {
            self.put_tagged(b'=', number);
        } else if (BEGIN / 2..2 * BEGIN).contains(&number) {
            self.put_tagged(b'@', number.wrapping_sub(self.now));
        } else if number.is_multiple_of(MILLISECOND) {
            self.put_tagged(b'=', number);
        } else if let Ok(number) = u32::try_from(number) {
            let near = |row: &u32| {
                let off = number.wrapping_sub(*row);
                !(NEAR..=u32::MAX - NEAR).contains(&off)
            };
            let place = self.rows.iter().position(near).unwrap_or_else(|| {
                self.rows.push(number);
                self.rows.len() - 1
            });
            let off = number.wrapping_sub(self.rows[place]);
            self.put_tagged(b'#', place as u64);
            self.put_tagged(b'+', off.into());
        } else {
            let known = self.nonces.iter().position(|it| *it == number);
            let place = known.unwrap_or_else(|| {
                self.nonces.push(number);
                self.nonces.len() - 1
            });
            self.put_tagged(b'n', place as u64);
        }
    }

    /// Canonicalizes `Debug` output.
    pub fn debug(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let (mut at, mut plain) = (0, 0);
        while at < bytes.len() {
            let byte = bytes[at];
            if byte.is_ascii_digit() && (at == 0 || !bytes[at - 1].is_ascii_alphanumeric()) {
                self.put(&text[plain..at]);
                let end = at + text[at..].bytes().take_while(u8::is_ascii_digit).count();
                match text[at..end].parse() {
                    Ok(number) => self.number(number),
                    Err(_) => self.put(&text[at..end]),
                }
                (at, plain) = (end, end);
            } else if byte == b'b' && bytes.get(at + 1) == Some(&b'"') {
                self.put(&text[plain..at]);
                let (blob, end) = unescape(bytes, at + 2);
                self.blob(&blob);
                (at, plain) = (end, end);
            } else if byte == b' '
                && let Some(name) = SKIPPED.iter().find(|it| text[at + 1..].starts_with(**it))
            {
                self.put(&text[plain..at]);
                at = after_value(bytes, at + 1 + name.len());
                plain = at;
            } else {
                at += 1;
            }
        }
        self.put(&text[plain..]);
    }

    /// Hashes bytes that an endpoint has created: a cookie, the Heartbeat Info, or a message.
    fn blob(&mut self, blob: &[u8]) {
        match blob {
            [COOKIE_FORMAT, body @ ..] if blob.len() > 80 => self.cookie(body),
            // Heartbeat Info: path and nonce.
            [path, nonce @ ..] if nonce.len() == 8 => {
                self.put_tagged(b'p', (*path).into());
                self.number(u64::from_be_bytes(nonce.try_into().expect("eight")));
            }
            _ => {
                self.put_tagged(b'b', blob.len() as u64);
                self.hasher.write(blob);
            }
        }
    }

    /// Hashes all fields of a cookie except its signature.
    fn cookie(&mut self, body: &[u8]) {
        let word = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four"));
        let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        self.number(long(0));
        self.number(long(8));
        // Ports come first, then tags, Tie-Tags, TSNs and the window.
        self.hasher.write(&body[16..20]);
        for place in 0..7 {
            self.number(word(20 + 4 * place).into());
        }
        self.hasher.write(&body[48..body.len() - MAC]);
    }

    fn packet(&mut self, seen: &Seen) {
        let packet = Packet::parse(&seen.bytes, Checksum::Ignore).expect("sound");
        self.put_tagged(b'>', seen.to as u64);
        self.number(packet.header.verification_tag.into());
        let mut text = format!("{:?} ", seen.path);
        for raw in packet.chunks() {
            let chunk = Chunk::decode(raw.expect("framed")).expect("sound");
            write!(text, "{chunk:?}; ").expect("a string");
        }
        self.debug(&text);
    }

    pub fn finish(self) -> u64 {
        self.hasher.finish()
    }
}

/// Decodes a `b"..."` literal whose contents start at `at`; returns the bytes and the end position.
fn unescape(bytes: &[u8], mut at: usize) -> (Vec<u8>, usize) {
    let mut blob = Vec::new();
    while bytes[at] != b'"' {
        if bytes[at] != b'\\' {
            blob.push(bytes[at]);
            at += 1;
            continue;
        }
        let hex = |at: usize| char::from(bytes[at]).to_digit(16).expect("a hex digit") as u8;
        let (byte, len) = match bytes[at + 1] {
            b'x' => (hex(at + 2) << 4 | hex(at + 3), 4),
            b'n' => (b'\n', 2),
            b'r' => (b'\r', 2),
            b't' => (b'\t', 2),
            b'0' => (0, 2),
            other => (other, 2),
        };
        blob.push(byte);
        at += len;
    }
    (blob, at + 1)
}

/// End of the value that starts at `at`: the position of the next comma or bracket.
fn after_value(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0_u32;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' | b'(' => depth += 1,
            b'}' | b']' | b')' if depth == 0 => return at,
            b'}' | b']' | b')' => depth -= 1,
            b',' if depth == 0 => return at,
            b'b' if bytes.get(at + 1) == Some(&b'"') => {
                at = unescape(bytes, at + 2).1;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    at
}

/// Digest of the world; `rest` is additional state of the search.
pub fn digest(world: &World, rest: &[u8]) -> u64 {
    canon(world, rest, Canon::new(world.now)).finish()
}

/// Canonical text of a world, for debugging.
pub fn text(world: &World) -> String {
    let mut canon_ = Canon::new(world.now);
    canon_.text = Some(String::new());
    canon(world, &[], canon_).text.expect("kept")
}

fn canon(world: &World, rest: &[u8], mut canon: Canon) -> Canon {
    canon.hasher.write(rest);
    let mut text = String::with_capacity(16_384);
    for end in &world.ends {
        text.clear();
        write!(text, "{end:?}").expect("a string");
        canon.debug(&text);
    }
    canon.put_tagged(b'c', world.cut.into());
    // Include sent and received messages, and the end of each association, because the verdict
    // depends on them.
    for life in world.lives.iter().filter(|it| !it.broken) {
        if life.closed.is_some() && life.sent.is_empty() {
            continue;
        }
        text.clear();
        write!(text, "{} {:?} {:?};", life.host, life.sent, life.closed).expect("a string");
        canon.debug(&text);
    }
    for got in &world.got {
        text.clear();
        let mut sorted = got.clone();
        sorted.sort_unstable();
        write!(text, "{sorted:?};").expect("a string");
        canon.debug(&text);
    }
    let mut packets: Vec<_> = world.seen.iter().map(|it| (shape(it), it)).collect();
    packets.sort_by(|one, other| one.0.cmp(&other.0));
    packets.iter().for_each(|(_, seen)| canon.packet(seen));
    canon
}

/// Chunk types and lengths of a packet, without its random numbers.
fn shape(seen: &Seen) -> (usize, Vec<(u8, usize)>) {
    let packet = Packet::parse(&seen.bytes, Checksum::Ignore).expect("sound");
    let chunks = packet.chunks().flatten();
    let shapes = chunks.map(|raw| (raw.kind, raw.value().len()));
    (seen.to, shapes.collect())
}
