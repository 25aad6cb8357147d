//! Replaces random values of a stack by values derived from a seed: verification tags, initial TSNs
//! and cookies. The values are replaced in sent packets and restored in received ones. Ports are
//! translated as well, because a stack always uses the same two.
//!
//! The peer receives and returns the replaced values. The values of the peer itself are not changed
//! here.

use std::ops::Range;

use anabranch_wire::checksum;
use anabranch_wire::chunk::kind;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::adapter::PORT;
use crate::event::Event;
use crate::tsn_seen::SeenTsns;

/// Length of the common header (RFC 9260 §3.1).
const COMMON: usize = 12;
/// Length of INIT and INIT ACK without parameters (RFC 9260 §3.3.2).
const INIT: usize = 20;
/// Parameter type of a state cookie (RFC 9260 §3.3.3.1).
const COOKIE: u16 = 7;
/// T bit of ABORT and SHUTDOWN COMPLETE: the verification tag is reflected (RFC 9260 §8.5.1).
const REFLECTED: u8 = 1;
/// Number of handshakes whose numbers are remembered. Several are needed because each retransmitted
/// INIT may be answered with other numbers.
const MAX_HANDSHAKES: usize = 16;

/// Verification tag of this end inside the stack and on the wire, and the offset of its TSNs.
#[derive(Clone, Copy, Debug)]
struct Identity {
    inside: u32,
    outside: u32,
    /// Offset added to the TSNs of sent packets.
    shift: u32,
    /// First TSN on the wire.
    first: u32,
}

/// Translates between the numbers that the stack uses and those on the wire.
#[derive(Debug)]
pub(crate) struct TagRewriter {
    rng: Pcg64Mcg,
    ports: [u16; 2],
    /// Identities, newest last.
    identities: Vec<Identity>,
    /// The identity to which the peer has responded.
    current: Option<Identity>,
    /// Cookies: as created by the stack, and as sent on the wire.
    cookies: Vec<[Vec<u8>; 2]>,
    sent: Option<SeenTsns>,
    received: Option<SeenTsns>,
}

impl TagRewriter {
    /// Creates a translator. Packets on the wire have these ports, the local port first.
    pub fn new(ports: [u16; 2], seed: [u8; 32]) -> Self {
        let mut half = [0; 16];
        half.copy_from_slice(&seed[..16]);
        Self {
            rng: Pcg64Mcg::from_seed(half),
            ports,
            identities: Vec::new(),
            current: None,
            cookies: Vec::new(),
            sent: None,
            received: None,
        }
    }

    /// Translates a packet that the stack sends, and reports each event in it to the closure.
    pub fn outward(&mut self, packet: &mut [u8], tell: &mut impl FnMut(Event)) {
        if packet.len() < COMMON {
            return;
        }
        put16(packet, 0, self.ports[0]);
        put16(packet, 2, self.ports[1]);
        for chunk in chunks(packet) {
            let (of, flags) = (packet[chunk.start], packet[chunk.start + 1]);
            match of {
                kind::INIT | kind::INIT_ACK if chunk.len() >= INIT => {
                    self.introduce(packet, chunk);
                }
                kind::DATA | kind::I_DATA if chunk.len() >= 8 => {
                    let tsn = self.shift_out(packet, chunk.start + 4);
                    if let Some(sent) = &mut self.sent {
                        let (number, first) = sent.note(tsn);
                        tell(match first {
                            true => Event::Sent(number),
                            false => Event::Repeated(number),
                        });
                    }
                }
                kind::FORWARD_TSN | kind::I_FORWARD_TSN if chunk.len() >= 8 => {
                    self.shift_out(packet, chunk.start + 4);
                }
                kind::ABORT | kind::SHUTDOWN_COMPLETE if flags & REFLECTED != 0 => {
                    let tag = get32(packet, 4);
                    let own = self.identities.iter().rev().find(|it| it.inside == tag);
                    if let Some(own) = own {
                        put32(packet, 4, own.outside);
                    }
                }
                _ => {}
            }
        }
        checksum::fill(packet);
    }

    /// Translates a received packet for the stack, and reports each event in it to the closure. The
    /// caller must have verified the checksum if that is required.
    pub fn inward(&mut self, packet: &mut [u8], tell: &mut impl FnMut(Event)) {
        if packet.len() < COMMON {
            return;
        }
        put16(packet, 0, PORT);
        put16(packet, 2, PORT);
        let tag = get32(packet, 4);
        let own = self.identities.iter().rev().find(|it| it.outside == tag);
        if let Some(own) = own.copied() {
            put32(packet, 4, own.inside);
            self.become_known_as(own);
        }
        for chunk in chunks(packet) {
            match packet[chunk.start] {
                kind::INIT | kind::INIT_ACK if chunk.len() >= INIT => {
                    let first = get32(packet, chunk.start + 16);
                    if self.received.as_ref().is_none_or(|it| it.first() != first) {
                        self.received = Some(SeenTsns::new(first));
                    }
                }
                kind::DATA | kind::I_DATA if chunk.len() >= 8 => {
                    let tsn = get32(packet, chunk.start + 4);
                    if let Some(received) = &mut self.received {
                        let (number, first) = received.note(tsn);
                        tell(match first {
                            true => Event::Received(number),
                            false => Event::Duplicate(number),
                        });
                    }
                }
                kind::SACK | kind::SHUTDOWN if chunk.len() >= 8 => {
                    let shift = self.current.map_or(0, |it| it.shift);
                    let at = chunk.start + 4;
                    put32(packet, at, get32(packet, at).wrapping_sub(shift));
                }
                kind::COOKIE_ECHO => {
                    let bytes = &mut packet[chunk.start + 4..chunk.end];
                    let known = self.cookies.iter().find(|[_, it]| it[..] == *bytes);
                    if let Some([inside, _]) = known {
                        bytes.copy_from_slice(inside);
                    }
                }
                _ => {}
            }
        }
        checksum::fill(packet);
    }

    /// Replaces the tag and the initial TSN in an INIT or INIT ACK of this end.
    fn introduce(&mut self, packet: &mut [u8], chunk: Range<usize>) {
        let (tag, tsn) = (chunk.start + 4, chunk.start + 16);
        let inside = get32(packet, tag);
        let known = self.identities.iter().find(|it| it.inside == inside);
        let own = known.copied().unwrap_or_else(|| {
            let first = self.rng.next_u32();
            let own = Identity {
                inside,
                // 0 is not a valid tag.
                outside: self.rng.next_u32().max(1),
                shift: first.wrapping_sub(get32(packet, tsn)),
                first,
            };
            if self.identities.len() == MAX_HANDSHAKES {
                self.identities.remove(0);
            }
            self.identities.push(own);
            own
        });
        put32(packet, tag, own.outside);
        put32(packet, tsn, own.first);
        if self.current.is_none() {
            self.become_known_as(own);
        }
        let mut at = chunk.start + INIT;
        while at + 4 <= chunk.end {
            let (of, length) = (get16(packet, at), usize::from(get16(packet, at + 2)));
            let end = at + length;
            if length < 4 || end > chunk.end {
                break;
            }
            if of == COOKIE {
                self.bake(&mut packet[at + 4..end]);
            }
            at += length.next_multiple_of(4);
        }
    }

    /// Replaces a cookie of the stack by one that is derived from the seed.
    fn bake(&mut self, cookie: &mut [u8]) {
        let inside = cookie.to_vec();
        let known = self.cookies.iter().find(|[it, _]| *it == inside);
        if let Some([_, outside]) = known {
            cookie.copy_from_slice(outside);
            return;
        }
        self.rng.fill_bytes(cookie);
        if self.cookies.len() == MAX_HANDSHAKES {
            self.cookies.remove(0);
        }
        self.cookies.push([inside, cookie.to_vec()]);
    }

    /// Uses the TSNs of this identity from now on.
    fn become_known_as(&mut self, own: Identity) {
        if self.current.is_none_or(|it| it.inside != own.inside) {
            self.current = Some(own);
            self.sent = Some(SeenTsns::new(own.first));
        }
    }

    /// Translates a TSN in a packet that is sent, and returns the translated TSN.
    fn shift_out(&self, packet: &mut [u8], at: usize) -> u32 {
        let shift = self.current.map_or(0, |it| it.shift);
        let tsn = get32(packet, at).wrapping_add(shift);
        put32(packet, at, tsn);
        tsn
    }
}

/// Ranges of the chunks in a packet without padding, up to the first incomplete one.
fn chunks(packet: &[u8]) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), COMMON);
    while at + 4 <= packet.len() {
        let length = usize::from(get16(packet, at + 2));
        if length < 4 || at + length > packet.len() {
            break;
        }
        found.push(at..at + length);
        at += length.next_multiple_of(4);
    }
    found
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

fn put32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
}
