//! Parser of records and handshake fragments, which runs before any other processing (RFC 6347
//! §4.1, §4.2.2).

use bytes::Bytes;

/// Content types of records (RFC 6347 §4.1).
pub(super) mod kind {
    pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const DATA: u8 = 23;
}

const HEADER: usize = 13;
/// Size of the header of a handshake message or fragment, bytes.
const MESSAGE_HEADER: usize = 12;
/// Maximum size of a handshake message, bytes: ten times the certificate chain of a browser.
pub(super) const MAX_MESSAGE: usize = 8 << 10;

/// A record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    pub kind: u8,
    pub epoch: u16,
    pub fragment: &'a [u8],
    /// The whole record, including its header.
    pub whole: &'a [u8],
}

/// Parses the records of a datagram. Ends with `None` at an invalid record: an unknown type or
/// version, or a length beyond the datagram.
pub(super) fn records(mut datagram: &[u8]) -> impl Iterator<Item = Option<Record<'_>>> {
    std::iter::from_fn(move || {
        if datagram.is_empty() {
            return None;
        }
        let Some((record, rest)) = record(datagram) else {
            datagram = &[];
            return Some(None);
        };
        datagram = rest;
        // DTLS 1.0 or 1.2: a record's version may be lower than the negotiated one.
        let version = matches!(record.whole[1..3], [0xFE, 0xFF | 0xFD]);
        let known = (kind::CHANGE_CIPHER_SPEC..=kind::DATA).contains(&record.kind);
        Some(Some(record).filter(|_| version && known))
    })
}

fn record(datagram: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let &[
        kind,
        _,
        _,
        epoch_0,
        epoch_1,
        _,
        _,
        _,
        _,
        _,
        _,
        length_0,
        length_1,
        ..,
    ] = datagram
    else {
        return None;
    };
    let end = HEADER + usize::from(u16::from_be_bytes([length_0, length_1]));
    let (whole, rest) = datagram.split_at_checked(end)?;
    let record = Record {
        kind,
        epoch: u16::from_be_bytes([epoch_0, epoch_1]),
        fragment: &whole[HEADER..],
        whole,
    };
    Some((record, rest))
}

/// A fragment of a handshake message.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandshakeFragment<'a> {
    pub kind: u8,
    pub number: u16,
    /// Length of the complete message, bytes.
    pub length: usize,
    pub offset: usize,
    pub bytes: &'a [u8],
}

/// Decodes a three-byte integer.
pub(super) fn number_of_3(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |all, &byte| all << 8 | usize::from(byte))
}

/// Parses the handshake fragments in a record. Ends with `None` at an invalid fragment.
pub(super) fn pieces(mut fragment: &[u8]) -> impl Iterator<Item = Option<HandshakeFragment<'_>>> {
    std::iter::from_fn(move || {
        if fragment.is_empty() {
            return None;
        }
        let Some((piece, rest)) = piece(fragment) else {
            fragment = &[];
            return Some(None);
        };
        fragment = rest;
        Some(Some(piece))
    })
}

fn piece(fragment: &[u8]) -> Option<(HandshakeFragment<'_>, &[u8])> {
    let (header, rest) = fragment.split_at_checked(MESSAGE_HEADER)?;
    let length = number_of_3(&header[1..4]);
    let offset = number_of_3(&header[6..9]);
    let (bytes, rest) = rest.split_at_checked(number_of_3(&header[9..12]))?;
    // An empty fragment is useless, unless the message is empty.
    let sound = length <= MAX_MESSAGE
        && offset + bytes.len() <= length
        && bytes.is_empty() == (length == 0);
    let piece = HandshakeFragment {
        kind: header[0],
        number: u16::from_be_bytes([header[4], header[5]]),
        length,
        offset,
        bytes,
    };
    sound.then_some((piece, rest))
}

/// Encodes an unencrypted record that contains one fragment; `count` is the record's sequence
/// number.
pub(super) fn encode(piece: &HandshakeFragment<'_>, count: u64) -> Vec<u8> {
    let three = |number: usize| {
        let [.., a, b, c] = number.to_be_bytes();
        [a, b, c]
    };
    let mut fragment = vec![piece.kind];
    fragment.extend(three(piece.length));
    fragment.extend(piece.number.to_be_bytes());
    fragment.extend(three(piece.offset));
    fragment.extend(three(piece.bytes.len()));
    fragment.extend(piece.bytes);
    encode_record(kind::HANDSHAKE, &fragment, count)
}

/// Encodes an unencrypted record; `count` is its sequence number.
pub(super) fn encode_record(kind: u8, fragment: &[u8], count: u64) -> Vec<u8> {
    let mut record = vec![kind, 0xFE, 0xFD, 0, 0];
    record.extend(&count.to_be_bytes()[2..]);
    // The length fits 16 bits, because a message has at most 8 KiB.
    record.extend(
        u16::try_from(fragment.len())
            .unwrap_or_default()
            .to_be_bytes(),
    );
    record.extend(fragment);
    record
}

/// Renumbers the unencrypted records of the datagram, starting at `next`, so that the records of
/// two engines appear to come from one.
pub(super) fn renumbered(datagram: &[u8], next: &mut u64) -> Bytes {
    let mut out = datagram.to_vec();
    let mut at = 0;
    while let Some((record, _)) = datagram.get(at..).and_then(record) {
        if record.epoch == 0 {
            out[at + 5..at + 11].copy_from_slice(&next.to_be_bytes()[2..]);
            *next += 1;
        }
        at += record.whole.len();
    }
    out.into()
}
