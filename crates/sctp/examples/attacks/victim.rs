//! Victim of the attacks: an endpoint with an association, whose peer can send any packet.

use std::error::Error;
use std::net::IpAddr;

use anabranch_sctp::{Association, AssociationId, Config, Endpoint, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::checksum;
use anabranch_wire::chunk::kind;
use bytes::{Bytes, BytesMut};

const PORT: u16 = 5000;
/// First TSN and verification tag of the peer.
pub const FIRST: u32 = 1000;
const TAG: u32 = 7;
const WINDOW: u32 = 16 << 20;
/// Length of the common header in bytes.
const HEADER: usize = 12;

pub struct Victim {
    pub endpoint: Endpoint,
    id: Option<AssociationId>,
    pub tag: u32,
    pub now: Nanos,
    pub path: Path,
    /// First TSN of the victim.
    pub origin: u32,
    /// Highest TSN that the victim has sent.
    pub highest: u32,
    /// Number of the victim's TSNs that the peer has acknowledged.
    pub acknowledged: u32,
    out: BytesMut,
    /// Number of bytes that the victim has sent.
    pub sent: usize,
    /// Parameters of the peer's INITs, if every packet of the attack is a restart.
    pub restarts: Option<Vec<u8>>,
    /// Number of restarts of the peer.
    life: u32,
    /// Whether the association may be closed at the end.
    pub may_end: bool,
}

/// Chunk with type, flags and value, padded.
pub fn chunk(kind: u8, flags: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind, flags];
    bytes.extend((4 + value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Parameter with type and value, padded.
pub fn parameter(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(kind.to_be_bytes());
    bytes.extend((4 + value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Packet with this tag.
pub fn packet(tag: u32, chunks: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(HEADER + chunks.len());
    bytes.extend_from_slice(&PORT.to_be_bytes());
    bytes.extend_from_slice(&PORT.to_be_bytes());
    bytes.extend_from_slice(&tag.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(chunks);
    checksum::fill(&mut bytes);
    bytes.freeze()
}

/// INIT with additional parameters.
pub fn init(parameters: &[u8]) -> Vec<u8> {
    init_of(0, parameters)
}

/// INIT of the peer after `life` restarts.
fn init_of(life: u32, parameters: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend((TAG + life).to_be_bytes());
    value.extend(WINDOW.to_be_bytes());
    value.extend([0xFF; 4]);
    value.extend(FIRST.to_be_bytes());
    value.extend(parameters);
    chunk(kind::INIT, 0, &value)
}

/// INIT parameters that announce partial reliability and list these chunk types as supported
/// extensions.
pub fn offer(chunks: &[u8]) -> Vec<u8> {
    let mut all = parameter(0xC000, &[]);
    all.extend(parameter(0x8008, chunks));
    all
}

impl Victim {
    /// Victim with an association whose peer sent these parameters in its INIT.
    pub fn new(parameters: &[u8], change: impl FnOnce(&mut Config)) -> Self {
        let [here, there]: [IpAddr; 2] = [[10, 0, 0, 2].into(), [10, 0, 0, 1].into()];
        let config = Config::default().with(|it| {
            it.addresses = vec![here];
            it.receive_buffer = 4 << 20;
            it.send_buffer = 4 << 20;
            it.inbound_streams = 65_535;
            it.outbound_streams = 65_535;
            it.partial_reliability = true;
            it.reconfiguration = true;
            // These settings permit thousands of messages in flight.
            it.profile.max_burst = 1_000_000;
            it.profile.abc_limit = 1_000;
            change(it);
        });
        let mut victim = Self {
            endpoint: Endpoint::new(config, PORT, [2; 32]).expect("settings"),
            id: None,
            tag: 0,
            now: SECOND,
            path: Path::new(here, there),
            origin: 0,
            highest: 0,
            acknowledged: 0,
            out: BytesMut::new(),
            sent: 0,
            restarts: None,
            life: 0,
            may_end: false,
        };
        victim.endpoint.listen(true);
        victim.begins(parameters);
        victim.id = victim.endpoint.associations().next();
        victim
    }

    /// Connects or restarts the peer, with these parameters in its INIT. Returns the number of
    /// bytes that the peer sends.
    pub fn begins(&mut self, parameters: &[u8]) -> usize {
        let init = packet(0, &init_of(self.life, parameters));
        self.life += 1;
        let answer = self.answer(&init);
        let number = |at: usize| {
            u32::from_be_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]])
        };
        self.tag = number(16);
        self.origin = number(28);
        self.highest = self.origin.wrapping_sub(1);
        let echo = chunk(kind::COOKIE_ECHO, 0, &cookie_of(&answer));
        let echo = packet(self.tag, &echo);
        self.takes(&echo);
        init.len() + echo.len()
    }

    /// Delivers `packet`, and returns the first packet with which the victim answers.
    fn answer(&mut self, packet: &Bytes) -> Bytes {
        self.endpoint
            .handle_datagram(self.now, self.path, Ecn::NotEct, packet.clone());
        let mut out = BytesMut::new();
        let sent = self.endpoint.poll_transmit(self.now, &mut out);
        let first = sent.map(|it| out.split_to(it.len).freeze());
        self.goes_out();
        first.unwrap_or_default()
    }

    /// Delivers a packet, or the two packets of a restart, and discards the output.
    pub fn hears(&mut self, packet: &Bytes) {
        if let Some(parameters) = self.restarts.take() {
            self.begins(&parameters);
            self.restarts = Some(parameters);
        } else {
            self.takes(packet);
        }
    }

    /// Like [`Self::hears`]. Returns the number of one-time operations that the packet caused:
    /// messages delivered, acknowledged or abandoned, plus one per hundred bytes sent.
    pub fn does(&mut self, packet: &Bytes) -> u64 {
        let before = self.stands();
        self.sent = 0;
        self.hears(packet);
        let sent = self.sent as u64 / 100;
        match (before, self.stands()) {
            (Some(before), Some(after)) => {
                let came = u64::from(after.0.wrapping_sub(before.0)).min(1 << 16);
                sent + came + before.1.saturating_sub(after.1)
            }
            // The association was closed and has released all its messages.
            (Some(before), None) => sent + before.1,
            _ => sent,
        }
    }

    /// Cumulative TSN of received data, and approximate number of small messages that are queued or
    /// unacknowledged; `None` if the association is closed.
    fn stands(&self) -> Option<(u32, u64)> {
        let association = self.endpoint.association(self.id?)?;
        // A buffered message of one byte uses about 200 bytes.
        let waiting = association.send_buffer().used() / 200;
        let lives = association.close_reason().is_none();
        lives.then(|| (association.cumulative_tsn(), waiting as u64))
    }

    fn takes(&mut self, packet: &Bytes) {
        self.now += MILLISECOND / 10;
        self.endpoint
            .handle_datagram(self.now, self.path, Ecn::NotEct, packet.clone());
        self.goes_out();
    }

    /// Delivers these chunks to the victim in one packet.
    pub fn says(&mut self, chunks: &[u8]) {
        self.hears(&packet(self.tag, chunks));
    }

    /// Delivers all chunks, several per packet.
    pub fn says_all(&mut self, chunks: impl Iterator<Item = Vec<u8>>) {
        let mut body = Vec::new();
        for chunk in chunks {
            if body.len() + chunk.len() > 1_480 {
                self.says(&std::mem::take(&mut body));
            }
            body.extend(chunk);
        }
        if !body.is_empty() {
            self.says(&body);
        }
    }

    pub fn goes_out(&mut self) {
        while self
            .endpoint
            .poll_transmit(self.now, &mut self.out)
            .is_some()
        {
            note_data(&self.out, &mut self.highest);
            self.sent += self.out.len();
            self.out.clear();
        }
        while self.endpoint.poll_event().is_some() {}
    }

    /// Advances the time and runs all timers.
    pub fn waits(&mut self, time: Nanos) {
        let until = self.now + time;
        while let Some(at) = self.endpoint.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.endpoint.handle_timeout(self.now);
            self.goes_out();
        }
        self.now = until;
    }

    pub fn association(&mut self) -> &mut Association {
        let id = self.id.expect("it was made");
        self.endpoint.association_mut(id).expect("it is up")
    }

    /// Sends a message of the victim's user. Returns whether it was accepted.
    pub fn sends(&mut self, stream: u16, length: usize, options: &SendOptions) -> bool {
        let payload = Bytes::from(vec![7; length]);
        let now = self.now;
        self.association()
            .send(now, payload, &options.with_stream(Some(stream)))
            .is_ok()
    }

    /// Checks that the association is not closed.
    ///
    /// # Errors
    /// The association is closed.
    pub fn still_lives(&self) -> Result<(), Box<dyn Error>> {
        let association = self.id.and_then(|id| self.endpoint.association(id));
        let why = association.and_then(|it| it.close_reason());
        if self.may_end || (association.is_some() && why.is_none()) {
            return Ok(());
        }
        Err(format!("it is gone: {why:?}").into())
    }

    /// SACK up to TSN offset `up_to`, with Gap Ack Blocks and duplicates.
    pub fn sack(&self, up_to: u32, blocks: &[(u16, u16)], duplicates: &[u32]) -> Vec<u8> {
        let mut value = Vec::new();
        value.extend(
            self.origin
                .wrapping_sub(1)
                .wrapping_add(up_to)
                .to_be_bytes(),
        );
        value.extend(WINDOW.to_be_bytes());
        value.extend((blocks.len() as u16).to_be_bytes());
        value.extend((duplicates.len() as u16).to_be_bytes());
        for (start, end) in blocks {
            value.extend(start.to_be_bytes());
            value.extend(end.to_be_bytes());
        }
        duplicates
            .iter()
            .for_each(|it| value.extend(it.to_be_bytes()));
        chunk(kind::SACK, 0, &value)
    }
}

/// Extracts the cookie from a packet that starts with an INIT ACK.
fn cookie_of(answer: &[u8]) -> Vec<u8> {
    let mut at = HEADER + 20;
    while at + 4 <= answer.len() {
        let kind = u16::from_be_bytes([answer[at], answer[at + 1]]);
        let length = usize::from(u16::from_be_bytes([answer[at + 2], answer[at + 3]]));
        if kind == 7 {
            return answer[at + 4..at + length].to_vec();
        }
        at += length.next_multiple_of(4);
    }
    Vec::new()
}

/// Updates `highest` with the TSNs of DATA and I-DATA in a packet.
fn note_data(packet: &[u8], highest: &mut u32) {
    let mut at = HEADER;
    while at + 8 <= packet.len() {
        let length = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        if packet[at] == kind::DATA || packet[at] == kind::I_DATA {
            let tsn = u32::from_be_bytes([
                packet[at + 4],
                packet[at + 5],
                packet[at + 6],
                packet[at + 7],
            ]);
            if (tsn.wrapping_sub(*highest) as i32) > 0 {
                *highest = tsn;
            }
        }
        at += length.max(4).next_multiple_of(4);
    }
}

/// DATA of one byte with TSN offset, stream and stream sequence number; flags: `B`eginning,
/// `E`nding, `U`nordered.
pub fn data(offset: u32, stream: u16, ssn: u16, flags: &str) -> Vec<u8> {
    sized_data(offset, stream, ssn, flags, 1)
}

pub fn sized_data(offset: u32, stream: u16, ssn: u16, flags: &str, length: usize) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(offset).to_be_bytes());
    value.extend(stream.to_be_bytes());
    value.extend(ssn.to_be_bytes());
    value.extend([0; 4]);
    value.resize(value.len() + length, 7);
    chunk(kind::DATA, flags_of(flags), &value)
}

/// I-DATA of one byte: TSN offset, stream, message and fragment number.
pub fn i_data(offset: u32, stream: u16, (mid, fsn): (u32, u32), flags: &str) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(offset).to_be_bytes());
    value.extend(stream.to_be_bytes());
    value.extend([0; 2]);
    value.extend(mid.to_be_bytes());
    value.extend(fsn.to_be_bytes());
    value.push(7);
    chunk(kind::I_DATA, flags_of(flags), &value)
}

fn flags_of(flags: &str) -> u8 {
    let bit = |letter: char, bit: u8| if flags.contains(letter) { bit } else { 0 };
    bit('E', 1) | bit('B', 2) | bit('U', 4)
}

/// FORWARD TSN with the new cumulative TSN `to`, which lists streams with their last abandoned
/// stream sequence numbers.
pub fn forward_tsn(to: u32, skipped: &[(u16, u16)]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(to).to_be_bytes());
    for (stream, ssn) in skipped {
        value.extend(stream.to_be_bytes());
        value.extend(ssn.to_be_bytes());
    }
    chunk(kind::FORWARD_TSN, 0, &value)
}

/// I-FORWARD-TSN with streams, unordered flags and message identifiers.
pub fn i_forward_tsn(to: u32, skipped: &[(u16, bool, u32)]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(to).to_be_bytes());
    for (stream, unordered, mid) in skipped {
        value.extend(stream.to_be_bytes());
        value.extend(u16::from(*unordered).to_be_bytes());
        value.extend(mid.to_be_bytes());
    }
    chunk(kind::I_FORWARD_TSN, 0, &value)
}
