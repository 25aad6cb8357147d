//! On-path attacker who reads all packets. It alters, replays and forges packets, and sends ICMP
//! messages like a router.

use std::net::IpAddr;

use anabranch_sctp::Icmp;
use anabranch_transport::Path;
use anabranch_wire::Tsn;
use anabranch_wire::chunk::kind;

use super::{PORTS, Scenario, address, extensions};

impl Scenario<'_> {
    /// Alters one byte of a valid packet, and corrects its checksum.
    pub(super) fn alter(&mut self) {
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

    pub(super) fn replay(&mut self) {
        let index = usize::from(self.script.byte());
        if !self.seen.is_empty() {
            let (to, path, bytes) = self.seen[index % self.seen.len()].clone();
            self.hand(to, path, bytes);
        }
    }

    /// Replays up to eight old packets, whose associations may be gone.
    pub(super) fn replay_late(&mut self) {
        let (first, count) = (self.script.byte(), self.script.byte() % 8);
        for index in usize::from(first)..=usize::from(first) + usize::from(count) {
            if !self.late.is_empty() {
                let (to, path, bytes) = self.late[index % self.late.len()].clone();
                self.hand(to, path, bytes);
            }
        }
    }

    /// Delivers `chunks` to `host`, with its peer or a foreign address as the source.
    pub(super) fn forge(&mut self, host: usize, tag: u32, chunks: &[u8], network: u8) {
        let path = Path::new(address(host, network & 1), address(1 - host, network));
        self.forge_over(host, path, tag, chunks);
    }

    /// Delivers `chunks` to `host` over `path`.
    pub(super) fn forge_over(&mut self, host: usize, path: Path, tag: u32, chunks: &[u8]) {
        let mut bytes = Vec::with_capacity(12 + chunks.len());
        bytes.extend_from_slice(&PORTS[1 - host].to_be_bytes());
        bytes.extend_from_slice(&PORTS[host].to_be_bytes());
        bytes.extend_from_slice(&tag.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(chunks);
        anabranch_wire::checksum::fill(&mut bytes);
        self.hand(host, path, bytes.into());
    }

    /// Like [`Self::forge`], with a zero checksum (RFC 9653).
    pub(super) fn forge_without_checksum(&mut self, host: usize, tag: u32, chunks: &[u8]) {
        let mut bytes = PORTS[1 - host].to_be_bytes().to_vec();
        bytes.extend_from_slice(&PORTS[host].to_be_bytes());
        bytes.extend_from_slice(&tag.to_be_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(chunks);
        let path = Path::new(address(host, 0), address(1 - host, 0));
        self.hand(host, path, bytes.into());
    }

    /// Delivers an INIT with parameters from the script.
    pub(super) fn init(&mut self, host: usize) {
        let (tag, len) = (self.script.byte(), usize::from(self.script.byte()));
        let parameters = self.script.take(len).to_vec();
        let mut chunk = vec![kind::INIT, 0];
        chunk.extend_from_slice(&(20 + parameters.len() as u16).to_be_bytes());
        chunk.extend_from_slice(&[0, 0, 0, tag, 0, 1, 0, 0, 0, 2, 0, 20, 0, 0, 0, 1]);
        chunk.extend_from_slice(&parameters);
        chunk.resize(chunk.len().next_multiple_of(4), 0);
        self.forge(host, 0, &chunk, tag % 3);
    }

    /// Returns the last cookie of `host` to it, followed by a chunk from the script.
    pub(super) fn echo_cookie(&mut self, host: usize) {
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

    /// Sends an ICMP message to `host` about one of its packets, truncated and altered according to
    /// the script.
    pub(super) fn router(&mut self, host: usize) {
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

    /// Delivers forged chunks with a tag that may be valid.
    pub(super) fn stranger(&mut self, host: usize) {
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

    /// Appends a chunk with type, flags and value; the first word of the value may be a TSN close
    /// to those in use.
    fn add_chunk(&mut self, host: usize, chunks: &mut Vec<u8>) {
        let (kind, flags) = (self.script.byte(), self.script.byte());
        let (shape, len) = (self.script.byte(), usize::from(self.script.byte()));
        // Make existing chunk types more likely.
        let kind = match kind {
            0..0xC0 => kind % 16,
            0xC0..0xE0 => extensions::KINDS[usize::from(kind % 8)],
            _ => kind,
        };
        let mut value = self.script.take(len).to_vec();
        let near = i32::from(shape as i8) / 2;
        if shape & 1 == 1 && value.len() >= 4 {
            let base = match kind {
                kind::DATA | kind::I_DATA | kind::FORWARD_TSN | kind::I_FORWARD_TSN => {
                    self.known.tsn_of[1 - host]
                }
                _ => self.known.tsn_of[host],
            };
            let tsn = Tsn(base.wrapping_add_signed(near));
            value[..4].copy_from_slice(&tsn.0.to_be_bytes());
        }
        if kind == kind::SACK && value.len() >= 12 {
            // Number of Gap Ack Blocks that fit.
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
}
