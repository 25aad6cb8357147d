//! Malicious peer that has completed the handshake. The peer knows all tags, and its chunks are
//! well-formed.

use std::net::IpAddr;

use anabranch_transport::Path;
use anabranch_wire::Tsn;
use anabranch_wire::chunk::kind;

use super::{Scenario, address};

/// Whether [`Scenario::camp`] connects from this address, which belongs to no host.
pub(super) fn is_elsewhere(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.octets()[1] == 66)
}

/// DATA chunk with `flags` (E 1, B 2, U 4) and `len` bytes.
fn put_data(chunks: &mut Vec<u8>, tsn: Tsn, stream: u16, ssn: u16, flags: u8, len: usize) {
    chunks.extend_from_slice(&[kind::DATA, flags]);
    chunks.extend_from_slice(&(16 + len as u16).to_be_bytes());
    chunks.extend_from_slice(&tsn.0.to_be_bytes());
    chunks.extend_from_slice(&stream.to_be_bytes());
    chunks.extend_from_slice(&ssn.to_be_bytes());
    chunks.extend_from_slice(&[0; 4]);
    chunks.resize(chunks.len() + len, 0xDD);
    chunks.resize(chunks.len().next_multiple_of(4), 0);
}

fn put_sack(chunks: &mut Vec<u8>, cumulative: Tsn, a_rwnd: u32, blocks: &[(u16, u16)]) {
    chunks.extend_from_slice(&[kind::SACK, 0]);
    chunks.extend_from_slice(&(16 + 4 * blocks.len() as u16).to_be_bytes());
    chunks.extend_from_slice(&cumulative.0.to_be_bytes());
    chunks.extend_from_slice(&a_rwnd.to_be_bytes());
    chunks.extend_from_slice(&(blocks.len() as u16).to_be_bytes());
    chunks.extend_from_slice(&[0, 0]);
    for (start, end) in blocks {
        chunks.extend_from_slice(&start.to_be_bytes());
        chunks.extend_from_slice(&end.to_be_bytes());
    }
}

impl Scenario<'_> {
    /// Delivers SACKs that report data by Gap Ack Blocks and renege on it, one SACK or many per
    /// packet.
    pub(super) fn swing(&mut self, host: usize) {
        let (how, count) = (self.script.byte(), 1 + self.script.byte() % 64);
        self.tampered = true;
        let point = self.known.acked_of[host];
        let in_flight = self.known.tsn_of[host].wrapping_sub(point);
        if in_flight == 0 || in_flight > 30_000 {
            return;
        }
        let ahead = u32::from(how & 7).min(in_flight);
        let (cumulative, left) = (Tsn(point.wrapping_add(ahead)), (in_flight - ahead) as u16);
        let all = [(2, left.max(2))];
        // Every second chunk, as many as a SACK can report.
        let every_other: Vec<_> = (2..=left).step_by(2).take(300).map(|at| (at, at)).collect();
        let a_rwnd = [1 << 20, 0, 1_500, u32::MAX][usize::from(how >> 6)];
        let mut chunks = Vec::new();
        for turn in 0..count {
            let blocks: &[_] = match (turn % 2, how & 8) {
                (0, _) => &[],
                (_, 0) if left >= 2 => &all,
                _ => &every_other,
            };
            put_sack(&mut chunks, cumulative, a_rwnd, blocks);
            if how & 0x10 == 0 || chunks.len() > 1_000 {
                let packet = std::mem::take(&mut chunks);
                self.forge(host, self.known.tag_to[host], &packet, 0);
            }
        }
        if !chunks.is_empty() {
            self.forge(host, self.known.tag_to[host], &chunks, 0);
        }
        self.known.acked_of[host] = cumulative.0;
        self.check_memory_if(how & 0x20 != 0);
    }

    /// Delivers small chunks in a chosen order, on any stream.
    pub(super) fn fragments(&mut self, host: usize) {
        let (how, size) = (self.script.byte(), self.script.byte());
        let (count, stream) = (1 + self.script.word() % 1_024, self.script.word());
        let padding = usize::from(self.script.byte()) * 4;
        self.tampered = true;
        let base = Tsn(self.known.tsn_of[1 - host]);
        let len = if size < 0xC0 { 1 } else { usize::from(size) };
        let mut chunks = Vec::new();
        for turn in 0..count {
            let offset = match how & 7 {
                // Orders in which the peer sends TSNs: ascending; descending; from both ends
                // alternately; every second TSN; descending in pairs; each TSN twice.
                0 => turn + 1,
                1 | 2 => count - turn,
                3 if turn % 2 == 0 => turn / 2 + 1,
                3 => count - turn / 2,
                4 => 2 * turn + 2,
                5 => (count - turn) ^ 1,
                6 => turn / 2 + 1,
                // The first TSN is always missing.
                _ => turn + 2,
            };
            let tsn = base.add(offset.into());
            let (flags, stream, ssn) = match how >> 4 & 7 {
                // The chunks are the fragments of one message, or complete messages (of one stream,
                // of many streams, or unordered), or first fragments of different messages.
                0 | 1 => (u8::from(offset == count) | u8::from(offset == 1) << 1, 0, 0),
                2 => (3, stream % 10, offset),
                3 => (3, offset.wrapping_mul(stream | 1), 1),
                4 => (3, offset.wrapping_mul(stream | 1), 0),
                5 => (7, stream, 0),
                6 => (2, 0, offset),
                _ => (0, 0, 0),
            };
            put_data(&mut chunks, tsn, stream, ssn, flags, len);
            if chunks.len() + 16 + len > 1_200 || padding > 0 {
                if padding > 0 {
                    chunks.extend_from_slice(&[kind::PAD, 0]);
                    chunks.extend_from_slice(&(4 + padding as u16).to_be_bytes());
                    chunks.resize(chunks.len() + padding, 0);
                }
                let packet = std::mem::take(&mut chunks);
                self.forge(host, self.known.tag_to[host], &packet, 0);
            }
        }
        if !chunks.is_empty() {
            self.forge(host, self.known.tag_to[host], &chunks, 0);
        }
        self.check_memory_if(how & 8 != 0);
    }

    /// Lets an attacker connect from its own address, list other addresses, including those of the
    /// two hosts, complete the handshake, and send data.
    pub(super) fn camp(&mut self, host: usize) {
        let (how, place) = (self.script.byte(), self.script.byte());
        self.tampered = true;
        let own: IpAddr = [10, 66, place, how].into();
        let mut listed = vec![own];
        for other in 0..how & 7 {
            let it: IpAddr = match other {
                0 => address(1 - host, 0),
                1 => address(1 - host, 1),
                2 => address(host, 0),
                _ => [10, 66, place ^ other, how].into(),
            };
            listed.push(it);
        }
        let length = 20 + 8 * listed.len() as u16;
        let mut init = vec![kind::INIT, 0];
        init.extend_from_slice(&length.to_be_bytes());
        init.extend_from_slice(&[0, 1, place, how, 0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF]);
        init.extend_from_slice(&[0xFF, 0xFF, 0xFF, 0xF0]);
        for it in listed {
            let IpAddr::V4(it) = it else { continue };
            init.extend_from_slice(&[0, 5, 0, 8]);
            init.extend_from_slice(&it.octets());
        }
        let path = Path::new(address(host, 0), own);
        let known = self.known.clone();
        self.known.cookie_of[host] = None;
        self.forge_over(host, path, 0, &init);
        let answer = std::mem::replace(&mut self.known, known).cookie_of[host].take();
        let Some((tag, cookie)) = answer else {
            return;
        };
        let mut chunks = vec![kind::COOKIE_ECHO, 0];
        chunks.extend_from_slice(&(4 + cookie.len() as u16).to_be_bytes());
        chunks.extend_from_slice(&cookie);
        chunks.resize(chunks.len().next_multiple_of(4), 0);
        for number in 0..how >> 5 {
            let tsn = Tsn(0xFFFF_FFF0).add(number.into());
            put_data(&mut chunks, tsn, 0, number.into(), 3, 1);
        }
        let known = self.known.clone();
        self.forge_over(host, path, tag, &chunks);
        self.known = known;
    }
}
