//! Extensions in fuzz cases: users who request resets and more streams and send messages with
//! options, and a peer that sends valid and invalid chunks of the extensions.

use anabranch_sctp::{Config, Reconfiguration, SendOptions, ZeroChecksum};
use anabranch_transport::time::MILLISECOND;
use anabranch_wire::Tsn;
use anabranch_wire::chunk::kind;

use super::Scenario;

/// Chunk types of extensions.
pub(super) const KINDS: [u8; 8] = [
    kind::I_DATA,
    kind::RE_CONFIG,
    kind::FORWARD_TSN,
    kind::I_FORWARD_TSN,
    kind::ASCONF,
    kind::ASCONF_ACK,
    kind::AUTH,
    kind::I_DATA,
];

/// Applies settings according to the third byte of a case.
pub(super) fn set(config: &mut Config, extremes: u8) {
    config.partial_reliability = extremes & 0x10 != 0;
    config.interleaving = extremes & 0x20 != 0;
    config.reconfiguration = extremes & 0x40 != 0;
    if extremes & 0x80 != 0 {
        config.zero_checksum = ZeroChecksum::Dtls;
    }
}

/// Whether any extension is offered.
pub(super) fn any(config: &Config) -> bool {
    config.partial_reliability
        || config.interleaving
        || config.reconfiguration
        || config.zero_checksum != ZeroChecksum::Off
}

/// Random options for a message of `len` bytes.
pub(super) fn terms(config: &Config, len: u16) -> SendOptions {
    let options = SendOptions::new();
    if !config.partial_reliability {
        return options;
    }
    match len % 5 {
        0 => options.with_lifetime(Some(u64::from(len % 97) * MILLISECOND)),
        1 => options.with_max_retransmits(Some(u32::from(len % 3))),
        2 => options.with_priority(Some(u32::from(len % 4))),
        _ => options,
    }
}

/// Appends a chunk or parameter: the two bytes of `head`, a length field, and `value`.
fn put(out: &mut Vec<u8>, head: [u8; 2], value: &[u8]) {
    out.extend_from_slice(&head);
    out.extend_from_slice(&(4 + value.len() as u16).to_be_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

impl Scenario<'_> {
    /// Lets a user request a reset or more streams.
    pub(super) fn wish(&mut self, host: usize) {
        let (what, of) = (self.script.byte(), self.script.byte());
        let now = self.now;
        let Some(id) = self.endpoints[host].associations().next() else {
            return;
        };
        let Some(association) = self.endpoints[host].association_mut(id) else {
            return;
        };
        let streams: Vec<u16> = (0..u16::from(of & 3))
            .map(|at| at * 3 + u16::from(of >> 5))
            .collect();
        // Such requests fail without the extension, or if one is outstanding.
        let _ = match what % 8 {
            0..=3 => association.reconfigure(0, &Reconfiguration::reset_outgoing(&streams[..])),
            4 | 5 => {
                association.reconfigure(0, &Reconfiguration::request_incoming_reset(&streams[..]))
            }
            6 => association.reconfigure(
                0,
                &Reconfiguration::add_streams(u16::from(of & 1), u16::from(of >> 1 & 1)),
            ),
            _ => association.reconfigure(now, &Reconfiguration::ResetAssociation),
        };
        self.drain(host);
    }

    /// Lets a malicious peer send chunks of the extensions: well-formed chunks with numbers close
    /// to those in use, and malformed chunks.
    pub(super) fn extend(&mut self, host: usize) {
        let (how, near, count) = (self.script.byte(), self.script.byte(), self.script.byte());
        self.tampered = true;
        let mut chunks = Vec::new();
        for turn in 0..=count % 24 {
            let near = i32::from((near as i8) / 8) + i32::from(turn);
            let tsn = Tsn(self.known.tsn_of[1 - host].wrapping_add_signed(near));
            match how & 7 {
                0..=2 => self.put_i_data(&mut chunks, tsn, turn),
                3 => self.put_forward(&mut chunks, tsn, kind::FORWARD_TSN, 4),
                4 => self.put_forward(&mut chunks, tsn, kind::I_FORWARD_TSN, 8),
                _ => self.put_re_config(&mut chunks, 1 - host, near),
            }
            if chunks.len() > 1_000 {
                break;
            }
        }
        let tag = self.known.tag_to[host];
        if how & 0x80 == 0 {
            self.forge(host, tag, &chunks, 0);
        } else {
            self.forge_without_checksum(host, tag, &chunks);
        }
    }

    fn put_i_data(&mut self, chunks: &mut Vec<u8>, tsn: Tsn, turn: u8) {
        let (flags, stream, len) = (self.script.byte(), self.script.byte(), self.script.byte());
        let mut value = tsn.0.to_be_bytes().to_vec();
        value.extend_from_slice(&[0, stream % 24, 0, 0]);
        value.extend_from_slice(&[0, 0, 0, flags >> 5]);
        value.extend_from_slice(&[0, 0, 0, turn % (1 + (stream >> 5))]);
        value.resize(value.len() + usize::from(len), 0xDD);
        put(chunks, [kind::I_DATA, flags & 0x0F], &value);
    }

    /// Appends a FORWARD TSN or I-FORWARD-TSN. `each`: size in bytes of the entry for a stream.
    fn put_forward(&mut self, chunks: &mut Vec<u8>, tsn: Tsn, kind: u8, each: usize) {
        let len = usize::from(self.script.byte() % 64);
        let mut value = tsn.0.to_be_bytes().to_vec();
        value.extend_from_slice(self.script.take(len));
        if len & 1 == 0 {
            // Complete entries with existing streams.
            value.resize(4 + (value.len() - 4) / each * each, 0);
            value[4..].chunks_mut(each).for_each(|entry| entry[0] = 0);
        }
        put(chunks, [kind, 0], &value);
    }

    /// Appends a RE-CONFIG of `from`; `near` is the distance of its request number from the
    /// expected one.
    fn put_re_config(&mut self, chunks: &mut Vec<u8>, from: usize, near: i32) {
        let (what, of) = (self.script.byte(), self.script.byte());
        let request = self.known.request_of[from]
            .wrapping_add_signed(near)
            .to_be_bytes();
        let answered = self.known.request_of[1 - from].to_be_bytes();
        let mut value = Vec::new();
        let parameter = match what % 7 {
            0 => {
                value.extend_from_slice(&request);
                value.extend_from_slice(&answered);
                let last = self.known.tsn_of[from].wrapping_add_signed(i32::from(of as i8) / 4);
                value.extend_from_slice(&last.to_be_bytes());
                (0..of & 3).for_each(|at| value.extend_from_slice(&[0, at * 7 + (of >> 4)]));
                13
            }
            1 => {
                value.extend_from_slice(&request);
                (0..of & 3).for_each(|at| value.extend_from_slice(&[0, at + (of >> 4)]));
                14
            }
            2 => {
                value.extend_from_slice(&request);
                15
            }
            3 => {
                value.extend_from_slice(&answered);
                value.extend_from_slice(&u32::from(of % 9).to_be_bytes());
                if of & 0x40 != 0 {
                    value.extend_from_slice(&self.known.tsn_of[from].to_be_bytes());
                    value.extend_from_slice(&self.known.tsn_of[1 - from].to_be_bytes());
                }
                16
            }
            4 | 5 => {
                value.extend_from_slice(&request);
                value.extend_from_slice(&[of & 0x80, of, 0, 0]);
                17 + what % 7 - 4
            }
            // Arbitrary bytes.
            _ => {
                let any = self.script.take(usize::from(of % 40));
                value.extend_from_slice(any);
                13 + of % 8
            }
        };
        let mut parameters = Vec::new();
        put(&mut parameters, [0, parameter], &value);
        put(chunks, [kind::RE_CONFIG, 0], &parameters);
    }
}
