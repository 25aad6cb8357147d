//! Association states in which packets are expensive to process, and the packets for each of these
//! states.

use anabranch_sctp::SendOptions;
use anabranch_wire::chunk::kind;
use bytes::Bytes;

use super::victim::*;

/// Space for chunks in a packet, in bytes.
pub const ROOM: usize = 1_480;
/// Number of messages in flight.
pub const IN_FLIGHT: u32 = 12_000;
/// Number of packets per attack.
pub const PACKETS: u32 = 100;

pub const RE_CONFIG: u8 = kind::RE_CONFIG;

/// Fills a packet with copies of a chunk.
pub fn filled(chunk: &[u8]) -> Vec<u8> {
    chunk.repeat((ROOM / chunk.len()).max(1))
}

pub fn packets(victim: &Victim, of: impl FnMut(u32) -> Vec<u8>) -> Vec<Bytes> {
    let tag = victim.tag;
    (0..PACKETS).map(of).map(|it| packet(tag, &it)).collect()
}

/// Packets of `each` requests. The endpoint processes at most 16 requests per packet, so the next
/// packet starts with the seventeenth request, and request numbers stay consecutive.
pub fn requests(victim: &Victim, each: u32, request: impl Fn(u32) -> Vec<u8>) -> Vec<Bytes> {
    packets(victim, |at| {
        (0..each).flat_map(|it| request(16 * at + it)).collect()
    })
}

pub fn same(victim: Victim, chunks: Vec<u8>) -> (Victim, Vec<Bytes>) {
    let all = packets(&victim, |_| chunks.clone());
    (victim, all)
}

pub fn plain() -> Victim {
    Victim::new(&offer(&[kind::FORWARD_TSN, RE_CONFIG]), |_| {})
}

pub fn interleaving() -> Victim {
    let chunks = [
        kind::FORWARD_TSN,
        kind::I_FORWARD_TSN,
        RE_CONFIG,
        kind::I_DATA,
    ];
    Victim::new(&offer(&chunks), |it| it.interleaving = true)
}

/// Delivers `count` messages of one byte that are not read, on streams in round-robin order. The
/// next TSN then has the offset `count` from the first TSN.
pub fn unread(victim: &mut Victim, count: u32, streams: u16) {
    victim.says_all((0..count).map(|at| {
        data(
            at,
            (at % u32::from(streams)) as u16,
            (at / u32::from(streams)) as u16,
            "BE",
        )
    }));
}

/// Delivers `count` messages that cannot be read, because TSN 0 is missing.
pub fn waiting(victim: &mut Victim, count: u32, streams: u16) {
    victim.says_all((1..=count).map(|at| {
        data(
            at,
            (at % u32::from(streams)) as u16,
            1 + (at / u32::from(streams)) as u16,
            "BE",
        )
    }));
}

/// Delivers `count` messages such that every second TSN is missing, including the first.
pub fn gaps(victim: &mut Victim, count: u32) {
    victim.says_all((0..count).map(|at| data(1 + 2 * at, 1, 1 + at as u16, "BE")));
}

/// Lets the victim send `count` messages of `length` bytes, on streams in round-robin order. None
/// is acknowledged.
pub fn sent(mut victim: Victim, count: u32, length: usize, options: &SendOptions) -> Victim {
    let mut given = 0;
    loop {
        while victim.sends((given % 1_000) as u16, length, options) {
            given += 1;
            if given % 8_000 == 0 {
                break;
            }
        }
        victim.goes_out();
        let sent = victim.highest.wrapping_sub(victim.origin).wrapping_add(1);
        if sent - victim.acknowledged >= count {
            return victim;
        }
        // Acknowledge data first, so that cwnd grows.
        victim.acknowledged = sent;
        victim.says(&victim.sack(sent, &[], &[]));
    }
}

/// Delivers all packets, and returns them for a second delivery. Effects that occur once, such as
/// allocations, are then not measured.
pub fn once_more((mut victim, all): (Victim, Vec<Bytes>)) -> (Victim, Vec<Bytes>) {
    all.iter().for_each(|it| victim.hears(it));
    (victim, all)
}

/// RE-CONFIG chunk that requests a reset of the victim's outbound streams (`incoming`) or of the
/// peer's. An empty list means all streams.
pub fn reset(incoming: bool, number: u32, streams: &[u16]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(number).to_be_bytes());
    if !incoming {
        value.extend([0; 4]);
        value.extend(FIRST.wrapping_sub(1).to_be_bytes());
    }
    streams.iter().for_each(|it| value.extend(it.to_be_bytes()));
    chunk(
        RE_CONFIG,
        0,
        &parameter(if incoming { 14 } else { 13 }, &value),
    )
}

pub fn address_of(number: u32) -> [u8; 4] {
    [10, 1, (number >> 8) as u8, number as u8]
}

/// ASCONF from the peer's address with these parameters.
pub fn asconf(serial: u32, parameters: &[u8]) -> Vec<u8> {
    let mut value = Vec::new();
    value.extend(FIRST.wrapping_add(serial).to_be_bytes());
    value.extend(parameter(5, &[10, 0, 0, 1]));
    value.extend(parameters);
    chunk(kind::ASCONF, 0, &value)
}

pub fn asked(kind: u16, correlation: u32, address: [u8; 4]) -> Vec<u8> {
    let mut value = correlation.to_be_bytes().to_vec();
    value.extend(parameter(5, &address));
    parameter(kind, &value)
}

pub fn changing() -> Victim {
    let chunks = [kind::FORWARD_TSN, RE_CONFIG, kind::ASCONF, kind::ASCONF_ACK];
    Victim::new(&offer(&chunks), |it| {
        it.profile.asconf_without_auth = true;
        it.address_changes = true;
    })
}

/// HEARTBEAT ACK, or another chunk, with a body of `length` bytes.
pub fn body(kind: u8, length: usize) -> Vec<u8> {
    chunk(kind, 0, &vec![0; length])
}

/// Attack in which every packet is a restart of the peer.
pub fn restarts(mut victim: Victim, parameters: &[u8]) -> (Victim, Vec<Bytes>) {
    let bytes = victim.begins(parameters);
    victim.restarts = Some(parameters.to_vec());
    let all = (0..PACKETS).map(|_| vec![0; bytes].into()).collect();
    (victim, all)
}

/// FORWARD TSNs, each of which abandons one more partially delivered message.
pub fn endless(victim: &Victim, from: u32) -> Vec<Bytes> {
    packets(victim, |at| {
        let tsn = from + 2 * at;
        let mut chunks = sized_data(tsn, 3, at as u16, "B", 600);
        chunks.extend(forward_tsn(tsn + 1, &[(3, at as u16)]));
        chunks
    })
}
