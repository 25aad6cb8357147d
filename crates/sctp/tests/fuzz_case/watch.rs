//! Checks of memory, work, answers and final states, during a fuzz case and at its end.

use std::net::IpAddr;

use anabranch_sctp::{AssociationId, Endpoint, ZeroChecksum, work_counter};
use anabranch_transport::Transport;
use anabranch_transport::time::SECOND;
use anabranch_wire::checksum;
use anabranch_wire::chunk::{Chunk, kind};
use anabranch_wire::extension::{Extension, ReConfigParameter};
use anabranch_wire::packet::{Checksum, Packet, RawChunk};
use anabranch_wire::parameter::Parameter;
use bytes::{Bytes, BytesMut};

use super::{A, Scenario, Z};

/// Maximum number of packets without DATA that one packet may cause, and maximum of their bytes
/// beyond its length.
const MAX_ANSWERS: usize = 48;
const MAX_ANSWER_BYTES: usize = 4_096;
/// Maximum memory as a multiple of the configured buffers.
const BUFFERS: usize = 2;
/// Maximum memory of an association in addition to its buffers, in bytes: its state, and 320
/// chunks, for which the smallest receive buffer has space (`MIN_CHUNKS` in `rx/window.rs`).
const ASSOCIATION: usize = 96 << 10;
/// Number of tables of an association with a value per stream (`stream_table.rs`): numbers of sent
/// data, of received data, of I-DATA, of reassembled messages, scheduling, policies, and deferred
/// data.
const STREAM_TABLES: usize = 8;
/// Page directory of such a table: it has 16 bytes for each page of 64 streams, up to the page of
/// the highest stream in use.
const PAGE: (usize, usize) = (64, 16);
/// Maximum memory of an endpoint in addition to its associations, in bytes.
const ENDPOINT: usize = 64 << 10;
/// Maximum number of steps per byte, received or sent.
const STEPS_PER_BYTE: u64 = 4;
/// Maximum number of steps per packet and per timer, independent of their content.
const STEPS_PER_CALL: u64 = 100;

/// Data that an on-path attacker has observed.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Verification tag of packets to each host.
    pub tag_to: [u32; 2],
    /// Last TSN sent by each host.
    pub tsn_of: [u32; 2],
    /// Number of the next RE-CONFIG request of each host.
    pub request_of: [u32; 2],
    /// Cumulative TSN that acknowledges each host's data.
    pub acked_of: [u32; 2],
    /// Initiate tag and cookie in the last INIT ACK of each host.
    pub cookie_of: [Option<(u32, Bytes)>; 2],
    /// Number of packets observed so far.
    pub packets: u32,
}

impl Known {
    /// Records the contents of a packet of `host`; returns whether it contains DATA. Panics if a
    /// part of the packet is invalid, because this stack must not send such a packet.
    pub(super) fn learn(&mut self, host: usize, bytes: &Bytes, zero: ZeroChecksum) -> bool {
        let without = zero != ZeroChecksum::Off && checksum::is_zero(bytes);
        let checksum = if without {
            Checksum::Ignore
        } else {
            Checksum::Verify
        };
        let packet = Packet::parse(bytes, checksum).expect("a sound packet");
        let mut data = false;
        self.packets += 1;
        for raw in packet.chunks() {
            match Chunk::decode(raw.expect("framed")).expect("sound") {
                Chunk::Data(chunk) => {
                    data = true;
                    self.tsn_of[host] = chunk.tsn.0;
                }
                Chunk::Sack(sack) => self.acked_of[1 - host] = sack.cumulative_tsn_ack.0,
                Chunk::Init(init) => {
                    self.tag_to[host] = init.initiate_tag;
                    self.begin(host, init.initial_tsn.prev().0);
                }
                Chunk::InitAck(ack) => {
                    let cookie = ack.parameters.iter().flatten().find_map(|it| match it {
                        Parameter::StateCookie(cookie) => Some(cookie),
                        _ => None,
                    });
                    self.cookie_of[host] = cookie.map(|cookie| (ack.initiate_tag, cookie));
                    self.begin(host, ack.initial_tsn.prev().0);
                }
                Chunk::Unknown(raw) => data |= self.learn_extension(host, raw),
                _ => {}
            }
        }
        if packet.header.verification_tag != 0 {
            self.tag_to[1 - host] = packet.header.verification_tag;
        }
        data
    }

    /// Records the contents of an extension chunk.
    fn learn_extension(&mut self, host: usize, raw: RawChunk) -> bool {
        match Extension::decode(raw).expect("sound") {
            Extension::IData(chunk) => {
                self.tsn_of[host] = chunk.tsn.0;
                return true;
            }
            Extension::ReConfig(chunk) => {
                for parameter in chunk.parameters.iter().flatten() {
                    match parameter {
                        ReConfigParameter::OutgoingSsnReset { request, .. }
                        | ReConfigParameter::IncomingSsnReset { request, .. }
                        | ReConfigParameter::SsnTsnReset { request }
                        | ReConfigParameter::AddOutgoingStreams { request, .. }
                        | ReConfigParameter::AddIncomingStreams { request, .. } => {
                            self.request_of[host] = request.wrapping_add(1);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        false
    }

    fn begin(&mut self, host: usize, before_first: u32) {
        self.request_of[host] = before_first.wrapping_add(1);
        self.tsn_of[host] = before_first;
        self.acked_of[host] = before_first;
    }
}

/// Number and size of the packets without DATA that one packet has caused.
#[derive(Default)]
pub(super) struct Answers {
    packets: usize,
    bytes: usize,
}

impl Answers {
    pub(super) fn count(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes;
    }

    /// Asserts that the counted packets, all caused by one packet of `len` bytes, are few and not
    /// much longer than it.
    pub(super) fn check(&self, len: usize) {
        let Self { packets, bytes } = *self;
        assert!(packets <= MAX_ANSWERS, "{packets} answers to one packet");
        assert!(
            bytes <= len + MAX_ANSWER_BYTES,
            "{bytes} bytes of answers to {len}"
        );
    }
}

/// Measurement of heap memory and steps.
pub(super) struct Meter {
    held: Option<fn() -> usize>,
    before: usize,
    /// Number of steps permitted so far for the bytes and calls, and number of steps made.
    allowed: u64,
    taken: u64,
}

impl Meter {
    pub(super) fn new(held: Option<fn() -> usize>) -> Self {
        work_counter::take();
        Self {
            held,
            before: held.map_or(0, |held| held()),
            allowed: 10_000,
            taken: 0,
        }
    }

    /// Accounts for a delivered packet of `len` bytes.
    pub(super) fn begin(&mut self, len: usize) {
        self.allowed += STEPS_PER_CALL + STEPS_PER_BYTE * len as u64;
    }

    pub(super) fn begin_timer(&mut self) {
        self.allowed += STEPS_PER_CALL;
    }

    /// Accounts for a sent packet of `len` bytes, whose data will be acknowledged or retransmitted
    /// later.
    pub(super) fn sent(&mut self, len: usize) {
        self.allowed += STEPS_PER_BYTE * len as u64;
    }

    /// Checks that the number of steps is proportional to the bytes.
    pub(super) fn check(&mut self, what: &str) {
        self.taken += work_counter::take();
        let Self { taken, allowed, .. } = self;
        assert!(taken <= allowed, "{what}: {taken} steps of {allowed}");
    }
}

/// Transmissions and retransmissions of an association, by cause.
pub(super) struct Sending {
    id: AssociationId,
    again: u64,
    timeouts: u64,
    /// Amount of sent data, which is the maximum that can be outstanding.
    sent: u64,
    acknowledged: u64,
}

impl Sending {
    /// Values of all associations of an endpoint.
    pub(super) fn all(endpoint: &Endpoint) -> Vec<Self> {
        let of = |id| {
            let association = endpoint.association(id)?;
            let stats = association.stats().sender;
            Some(Self {
                id,
                again: stats.chunks_retransmitted,
                timeouts: stats.timeouts,
                sent: stats.chunks_sent,
                acknowledged: stats
                    .chunks_sent
                    .saturating_sub(association.status().outstanding_chunks as u64),
            })
        };
        endpoint.associations().filter_map(of).collect()
    }

    /// Checks the difference between two points in time between which no packet arrived.
    pub(super) fn check(before: &[Self], after: &[Self]) {
        for late in after {
            let Some(early) = before.iter().find(|it| it.id == late.id) else {
                continue;
            };
            let outstanding = late.sent.saturating_sub(early.acknowledged);
            let again = late.again.saturating_sub(early.again);
            let reasons = 2 + late.timeouts.saturating_sub(early.timeouts);
            assert!(
                again <= reasons * outstanding,
                "{again} chunks sent again of {outstanding}, while nothing arrived"
            );
        }
    }
}

impl Scenario<'_> {
    pub(super) fn check_memory_if(&mut self, wanted: bool) {
        if wanted {
            self.check_memory();
        }
    }

    /// Drops all packets in flight, so that all remaining memory belongs to the endpoints. Asserts
    /// that this memory is within a limit that depends on the sizes of their buffers.
    pub(super) fn check_memory(&mut self) {
        let Some(held) = self.meter.held else { return };
        self.wire = Default::default();
        self.seen = Vec::new();
        self.late = Vec::new();
        self.out = BytesMut::new();
        let held = held().saturating_sub(self.meter.before);
        let directory = |streams: u16| usize::from(streams).div_ceil(PAGE.0) * PAGE.1;
        let (mut associations, mut tables) = (0, 0);
        for host in [A, Z] {
            let endpoint = &self.endpoints[host];
            for association in endpoint
                .associations()
                .filter_map(|id| endpoint.association(id))
            {
                let streams = association
                    .status()
                    .inbound_streams
                    .max(association.status().outbound_streams);
                associations += 1;
                tables += STREAM_TABLES * directory(streams);
            }
        }
        let buffers = self.config.receive_buffer as usize + self.config.send_buffer;
        let bound = associations * (BUFFERS * buffers + ASSOCIATION)
            + tables
            + 2 * ENDPOINT
            + self.ledger.held();
        assert!(
            held <= bound,
            "{held} bytes held by {associations} associations, {bound} allowed"
        );
    }

    /// Checks that only HEARTBEATs, HEARTBEAT ACKs and stateless replies are sent to an address
    /// that is not known to be the peer's (RFC 9260 §5.4).
    pub(super) fn hold_back(&self, host: usize, remote: IpAddr, bytes: &Bytes) {
        const FORBIDDEN: [u8; 8] = [
            kind::DATA,
            kind::SACK,
            kind::SHUTDOWN,
            kind::SHUTDOWN_ACK,
            kind::COOKIE_ECHO,
            kind::I_DATA,
            kind::FORWARD_TSN,
            kind::I_FORWARD_TSN,
        ];
        let packet = Packet::parse(bytes, Checksum::Ignore).expect("a packet");
        let ours = |raw: &anabranch_wire::packet::RawChunk| FORBIDDEN.contains(&raw.kind);
        if !packet.chunks().flatten().any(|raw| ours(&raw)) {
            return;
        }
        let endpoint = &self.endpoints[host];
        let verified = endpoint.associations().any(|id| {
            let paths = endpoint.association(id).expect("listed").paths();
            let path = paths.find(remote);
            path.is_some_and(|path| paths.get(path).is_known())
        });
        assert!(verified, "host {host} trusts {remote}");
    }

    /// Ends the case: the users close, and the network becomes reliable. All associations must then
    /// close, unless an attacker who knew the verification tags has interfered. This attacker may
    /// have acknowledged data that never arrived, so that both ends wait forever; the users then
    /// abort. Afterwards no more packets may be sent.
    pub(super) fn end(&mut self) {
        for _ in 0..200 {
            self.close_all(false);
            while !self.wire.is_empty() {
                self.deliver(0);
                for host in [A, Z] {
                    self.read(host);
                }
            }
            self.pass(10 * SECOND);
        }
        if self.tampered {
            self.close_all(true);
        } else {
            self.ledger.check();
        }
        for host in [A, Z] {
            let ids: Vec<_> = self.endpoints[host].associations().collect();
            for id in ids {
                let association = self.endpoints[host].association(id).expect("listed");
                let state = association.state();
                assert!(association.is_closed(), "{host}: {state:?} for ever");
                assert!(self.endpoints[host].release(id), "{host}: not released");
            }
            let endpoint = &mut self.endpoints[host];
            assert_eq!(endpoint.poll_timeout(), None, "host {host} waits");
            let sent = endpoint.poll_transmit(self.now, &mut self.out);
            assert_eq!(sent, None, "host {host} speaks");
        }
    }

    /// Lets the users of both ends read all data, and close or abort.
    fn close_all(&mut self, abort: bool) {
        for host in [A, Z] {
            self.read(host);
            let ids: Vec<_> = self.endpoints[host].associations().collect();
            assert!(ids.len() <= 9, "{} associations", ids.len());
            for id in ids {
                if let Some(association) = self.endpoints[host].association_mut(id) {
                    let _ = match abort {
                        true => association.abort(self.now, Bytes::new()),
                        false => association.shutdown(self.now, None),
                    };
                }
            }
            self.drain(host);
        }
    }
}
