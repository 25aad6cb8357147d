//! Hand-made AUTH: computes the key of an association from its INIT and INIT ACK, and signs
//! packets. Implemented independently of the stack, so that the two check each other.

use super::*;
use hmac::{Hmac, Mac};

/// AUTH parameters of an INIT or INIT ACK, in order and without padding.
pub fn vector_of(packet: &Bytes) -> Vec<u8> {
    let mut found = [const { Vec::new() }; 3];
    let mut at = 12 + 20;
    while at + 4 <= packet.len() {
        let kind = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let length = usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]));
        if (0x8002..=0x8004).contains(&kind) {
            found[usize::from(kind - 0x8002)] = packet[at..at + length].to_vec();
        }
        at += length.next_multiple_of(4);
    }
    found.concat()
}

/// Signs packets with the key of an association, like either end of it.
#[derive(Clone)]
pub struct Signer {
    key: Vec<u8>,
    pub key_id: u16,
    pub hmac_id: u16,
}

impl Signer {
    /// Signer for two ends whose INIT and INIT ACK were `one` and `other`, and which share `secret`
    /// as key `key_id`.
    pub fn new(one: &Bytes, other: &Bytes, secret: &[u8], key_id: u16) -> Self {
        let mut vectors = [vector_of(one), vector_of(other)];
        // Both vectors start with 0x80, so the longer vector is the larger number.
        vectors.sort_by_key(|it| (it.len(), it.clone()));
        Self {
            key: [secret, &vectors[0][..], &vectors[1][..]].concat(),
            key_id,
            hmac_id: 3,
        }
    }

    /// Signer for the ends whose INIT and INIT ACK were sent in `world`.
    pub fn of(world: &World, secret: &[u8], key_id: u16) -> Self {
        Self::new(
            &world.shot(A, "INIT"),
            &world.shot(Z, "INIT ACK"),
            secret,
            key_id,
        )
    }

    fn hmac(&self, covered: &[u8]) -> Vec<u8> {
        if self.hmac_id == 1 {
            let mut mac = Hmac::<sha1::Sha1>::new_from_slice(&self.key).expect("any");
            mac.update(covered);
            return mac.finalize().into_bytes().to_vec();
        }
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(&self.key).expect("any");
        mac.update(covered);
        mac.finalize().into_bytes().to_vec()
    }

    /// AUTH chunk followed by `chunks`.
    pub fn sign(&self, chunks: &[u8]) -> Vec<u8> {
        let len: usize = if self.hmac_id == 1 { 20 } else { 32 };
        let mut bytes = vec![15, 0, 0, 8 + len as u8];
        bytes.extend(self.key_id.to_be_bytes());
        bytes.extend(self.hmac_id.to_be_bytes());
        bytes.resize(8 + len, 0);
        bytes.extend_from_slice(chunks);
        let hmac = self.hmac(&bytes);
        bytes[8..8 + len].copy_from_slice(&hmac);
        bytes
    }

    /// Whether the AUTH in `packet` is valid.
    pub fn is_right(&self, packet: &Bytes) -> bool {
        let mut at = 12;
        while packet[at] != 15 {
            at += usize::from(u16::from_be_bytes([packet[at + 2], packet[at + 3]]))
                .next_multiple_of(4);
        }
        let end = at + usize::from(packet[at + 3]);
        let mut covered = packet[at..].to_vec();
        covered[8..end - at].fill(0);
        self.hmac(&covered) == packet[at + 8..end]
    }
}
