//! Records of DTLS 1.2 with AES-GCM (RFC 6347 §4.1, RFC 5288) in epoch 1. There is no replay window
//! (RFC 6083 §3.3), because SCTP delivers each message once, in any order.

use super::CLOSE_NOTIFY;
use super::secrets::Secrets;
use crate::material::{IV_LEN, KeyMaterial};
use crate::record::cipher::Aead;
use crate::record::{MAX_CONTENT, TAG};

/// Size of the header before the fragment, bytes.
pub(super) const HEADER: usize = 13;
/// Size of the explicit part of a nonce, bytes.
const EXPLICIT: usize = 8;
/// Size that a record adds to its content, bytes.
pub const OVERHEAD: usize = HEADER + EXPLICIT + TAG;
/// Version number of DTLS 1.2.
const VERSION: [u8; 2] = [0xFE, 0xFD];
/// First sequence number of user data. Lower numbers belong to dimpl, for the Finished message.
const FIRST: u64 = 1 << 16;
/// Epoch 1, in the bits above the sequence number.
const EPOCH: u64 = 1 << 48;

/// Content types (RFC 5246 §6.2.1).
pub(super) mod content_type {
    pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const APPLICATION_DATA: u8 = 23;
}

/// Content type and epoch of the only record in `message`.
pub(super) fn header_of(message: &[u8]) -> Option<(u8, u16)> {
    let header: &[u8; HEADER] = message.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
    let epoch = u16::from_be_bytes([header[3], header[4]]);
    (header[1] == VERSION[0] && message.len() == HEADER + length).then_some((header[0], epoch))
}

/// Splits a datagram into its records.
pub(super) fn split(mut datagram: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some(header) = datagram.first_chunk::<HEADER>() {
        let length = HEADER + usize::from(u16::from_be_bytes([header[11], header[12]]));
        let (record, rest) = datagram.split_at(length.min(datagram.len()));
        records.push(record.to_vec());
        datagram = rest;
    }
    records
}

/// The keys for one direction.
struct Direction {
    aead: Aead,
    implicit: [u8; IV_LEN - EXPLICIT],
}

impl Direction {
    fn nonce(&self, explicit: [u8; EXPLICIT]) -> [u8; IV_LEN] {
        let mut nonce = [0; IV_LEN];
        nonce[..IV_LEN - EXPLICIT].copy_from_slice(&self.implicit);
        nonce[IV_LEN - EXPLICIT..].copy_from_slice(&explicit);
        nonce
    }
}

/// Additional data: epoch and sequence number, type, version and the length of the content (RFC
/// 5246 §6.2.3.3).
fn additional(number: [u8; 8], kind: u8, content: usize) -> [u8; HEADER] {
    let mut data = [0; HEADER];
    data[..8].copy_from_slice(&number);
    data[8..11].copy_from_slice(&[kind, VERSION[0], VERSION[1]]);
    data[11..].copy_from_slice(&(content as u16).to_be_bytes());
    data
}

/// The keys for both directions of a connection.
pub(super) struct Records {
    sealing: Direction,
    opening: Direction,
    next: u64,
    most: u64,
}

impl Records {
    pub(super) fn new(secrets: &Secrets, is_client: bool) -> Option<Self> {
        let suite = secrets.suite();
        let size = suite.key_len();
        let mut block = zeroize::Zeroizing::new([0; 2 * (32 + IV_LEN - EXPLICIT)]);
        let block = &mut block[..2 * (size + IV_LEN - EXPLICIT)];
        secrets.keys(block);
        let (keys, ivs) = block.split_at(2 * size);
        let direction = |at: usize| {
            let key = &keys[at * size..][..size];
            // The same key serves as placeholder for the sequence number key, because DTLS 1.2 does
            // not encrypt sequence numbers.
            let material = KeyMaterial::new(suite, key, &[0; IV_LEN], key).ok()?;
            let implicit = ivs[at * 4..][..4].try_into().ok()?;
            let aead = Aead::new(&material);
            Some(Direction { aead, implicit })
        };
        let own = usize::from(!is_client);
        Some(Self {
            sealing: direction(own)?,
            opening: direction(1 - own)?,
            next: FIRST,
            most: FIRST + suite.most_sealed(),
        })
    }

    /// Uses all sequence numbers except the one for close_notify.
    #[cfg(test)]
    pub(super) fn exhaust(&mut self) {
        self.next = self.most - 1;
    }

    /// Seals `content` as a record. `None` if the key has sealed the maximum number of records.
    pub(super) fn seal(&mut self, kind: u8, content: &[u8]) -> Option<Vec<u8>> {
        // The last sequence number is reserved for close_notify.
        let last = u64::from((kind, content) != (content_type::ALERT, &CLOSE_NOTIFY[..]));
        if self.next + last >= self.most {
            return None;
        }
        let number = (EPOCH | self.next).to_be_bytes();
        self.next += 1;
        let mut record = Vec::with_capacity(OVERHEAD + content.len());
        record.extend([kind, VERSION[0], VERSION[1]]);
        record.extend(number);
        record.extend(((EXPLICIT + content.len() + TAG) as u16).to_be_bytes());
        record.extend(number);
        record.extend(content);
        record.resize(OVERHEAD + content.len(), 0);
        let (inner, tag) = record[HEADER + EXPLICIT..].split_at_mut(content.len());
        let additional = additional(number, kind, content.len());
        let nonce = self.sealing.nonce(number);
        self.sealing.aead.seal(&nonce, &additional, inner, tag);
        Some(record)
    }

    /// Opens a record of epoch 1; returns its content.
    pub(super) fn open(&self, record: &[u8]) -> Option<Vec<u8>> {
        let header: &[u8; HEADER] = record.first_chunk()?;
        let (explicit, sealed) = record[HEADER..].split_first_chunk::<EXPLICIT>()?;
        let content = sealed.len().checked_sub(TAG)?;
        if content > MAX_CONTENT || header[1..3] != VERSION {
            return None;
        }
        let (inner, tag) = sealed.split_at(content);
        let mut inner = inner.to_vec();
        let number = *header[3..].first_chunk::<8>()?;
        let additional = additional(number, header[0], content);
        let nonce = self.opening.nonce(*explicit);
        let authentic = self.opening.aead.open(&nonce, &additional, &mut inner, tag);
        authentic.then_some(inner)
    }
}
