//! Structs of the socket options of the DTLS chunk, in the layout of C
//! (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4).

use anabranch_net::sctp::DtlsStatistics;
use anabranch_net::sctp::dtls::{KeyId, KeyMaterial, Suite};

use super::{CLIENT, REQUIRED, RESTART, SERVER};

/// struct sctp_dtls_config without the association: flags, and identifiers of key management
/// methods.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct DtlsConfig {
    pub flags: u16,
    pub methods: Vec<u8>,
}

fn short(value: &[u8], at: usize) -> Option<u16> {
    let bytes = value.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

fn word(value: &[u8], at: usize) -> Option<u32> {
    let bytes = value.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

fn long(value: &[u8], at: usize) -> Option<u64> {
    let bytes = value.get(at..at + 8)?.try_into().ok()?;
    Some(u64::from_ne_bytes(bytes))
}

impl DtlsConfig {
    /// Number of bytes before the identifiers.
    const HEADER: usize = 8;

    pub(in crate::host) fn encode(&self, named: &[u8]) -> Vec<u8> {
        let count = self.methods.len() as u16;
        [
            named,
            &self.flags.to_ne_bytes(),
            &count.to_ne_bytes(),
            &self.methods,
        ]
        .concat()
    }

    pub(in crate::host) fn decode(value: &[u8]) -> Option<Self> {
        let (flags, count) = (short(value, 4)?, usize::from(short(value, 6)?));
        // A longer value is accepted, because a struct in C may end with padding.
        let methods = value.get(Self::HEADER..Self::HEADER + count)?.to_vec();
        Some(Self { flags, methods })
    }

    /// Whether all flags are known, methods have a role, each method occurs once, and the DTLS
    /// chunk is not required without a method.
    pub(in crate::host) fn is_consistent(&self) -> bool {
        let Self { flags, methods } = self;
        let known = flags & !(CLIENT | SERVER | RESTART | REQUIRED) == 0;
        let mut distinct = methods.clone();
        distinct.sort_unstable();
        distinct.dedup();
        known
            && match methods.is_empty() {
                true => *flags == 0,
                false => flags & (CLIENT | SERVER) != 0 && distinct.len() == methods.len(),
            }
    }
}

/// struct sctp_assoc_value without the association.
pub(in crate::host) struct AssocValue(pub u32);

impl AssocValue {
    pub(in crate::host) fn encode(&self, named: &[u8]) -> Vec<u8> {
        [named, &self.0.to_ne_bytes()].concat()
    }

    pub(in crate::host) fn decode(value: &[u8]) -> Option<Self> {
        (value.len() == 8)
            .then(|| word(value, 4))
            .flatten()
            .map(Self)
    }
}

/// struct sctp_dtls_keys without the association.
pub(in crate::host) struct DtlsKeys {
    pub id: KeyId,
    pub keys: KeyMaterial,
}

impl DtlsKeys {
    /// Number of bytes before the keys.
    const HEADER: usize = 24;

    /// # Errors
    /// EINVAL: a length is wrong; EOPNOTSUPP: the cipher suite is not supported.
    pub(in crate::host) fn decode(value: &[u8]) -> Result<Self, i32> {
        let wrong = libc::EINVAL;
        let &[_, _, _, _, first, second, ..] = value else {
            return Err(wrong);
        };
        let id = KeyId {
            restart: short(value, 6).ok_or(wrong)? != 0,
            epoch: long(value, 8).ok_or(wrong)?,
        };
        let mut rest = value.get(Self::HEADER..).ok_or(wrong)?;
        let mut next = |at| {
            let length = usize::from(short(value, at)?);
            let (part, others) = rest.split_at_checked(length)?;
            rest = others;
            Some(part)
        };
        let [key, iv, sequence_key] = [next(16), next(18), next(20)].map(|it| it.ok_or(wrong));
        // Further bytes are accepted, because a struct in C may end with padding.
        let suite = Suite::of_code([first, second]).ok_or(libc::EOPNOTSUPP)?;
        let keys = KeyMaterial::new(suite, key?, iv?, sequence_key?).map_err(|_| wrong)?;
        Ok(Self { id, keys })
    }
}

/// struct sctp_dtls_keys_id without the association.
pub(in crate::host) struct DtlsKeysId(pub KeyId);

impl DtlsKeysId {
    pub(in crate::host) fn decode(value: &[u8]) -> Option<Self> {
        if value.len() != 16 {
            return None;
        }
        Some(Self(KeyId {
            restart: word(value, 4)? != 0,
            epoch: long(value, 8)?,
        }))
    }
}

/// struct sctp_dtls_kmp with the bytes of a DTLS Key Management Parameter.
pub(in crate::host) fn parameter(named: &[u8], bytes: &[u8]) -> Vec<u8> {
    [named, &(bytes.len() as u32).to_ne_bytes(), bytes].concat()
}

/// struct sctp_dtls_stats.
pub(in crate::host) fn statistics(named: &[u8], counters: &DtlsStatistics) -> Vec<u8> {
    let mut out = [named, &[0; 4]].concat();
    for counter in [
        counters.dropped_unprotected,
        counters.aead_failures,
        counters.received_protected,
        counters.sent_protected,
    ] {
        out.extend(counter.to_ne_bytes());
    }
    out
}
