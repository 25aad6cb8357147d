//! The cipher suites (RFC 8446 §B.4) and their limits (RFC 9147 §4.5.3).

/// A cipher suite of TLS 1.3 that DTLS may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Suite {
    /// TLS_AES_128_GCM_SHA256, which every implementation must support
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.1.1).
    #[default]
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    Chacha20Poly1305,
}

impl Suite {
    /// All suites, in order of preference.
    pub const ALL: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305];

    /// Identifier in the TLS cipher suite registry.
    pub const fn code(self) -> [u8; 2] {
        match self {
            Suite::Aes128Gcm => [0x13, 0x01],
            Suite::Aes256Gcm => [0x13, 0x02],
            Suite::Chacha20Poly1305 => [0x13, 0x03],
        }
    }

    /// The suite with this identifier, if it is supported.
    pub fn of_code(code: [u8; 2]) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }

    /// Name in the TLS cipher suite registry.
    pub const fn name(self) -> &'static str {
        match self {
            Suite::Aes128Gcm => "TLS_AES_128_GCM_SHA256",
            Suite::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Suite::Chacha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
        }
    }

    /// Size of the record payload key and of the sequence number key, bytes.
    pub const fn key_len(self) -> usize {
        match self {
            Suite::Aes128Gcm => 16,
            Suite::Aes256Gcm | Suite::Chacha20Poly1305 => 32,
        }
    }

    /// Maximum number of records that may be sealed with one key. AES-GCM: 2^24.5, so that the
    /// advantage of an attacker stays below 2^-57 (RFC 8446 §5.5). ChaCha20-Poly1305: 2^48, the
    /// number of sequence numbers (RFC 9147 §4.2.1).
    pub const fn most_sealed(self) -> u64 {
        match self {
            Suite::Aes128Gcm | Suite::Aes256Gcm => 23_726_566,
            Suite::Chacha20Poly1305 => 1 << 48,
        }
    }

    /// Maximum number of records that may fail authentication with one key: 2^36 (RFC 9147 §4.5.3).
    pub const fn most_forged(self) -> u64 {
        1 << 36
    }

    /// Returns true if secrets of this suite are expanded with SHA-384 instead of SHA-256.
    pub(crate) const fn is_sha384(self) -> bool {
        matches!(self, Suite::Aes256Gcm)
    }
}
