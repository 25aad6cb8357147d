//! The secrets of a handshake. dimpl exports only keys for SRTP, so the master secret is captured
//! when dimpl derives record keys from it.

use std::cell::RefCell;

use dimpl::CryptoError;
use dimpl::crypto::{CryptoProvider, HashAlgorithm, HmacProvider, rust_crypto};
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::{Sha256, Sha384};
use zeroize::Zeroizing;

use crate::suite::Suite;

/// The label of the exporter (RFC 6083 §5).
const EXPORTER: &[u8] = b"EXPORTER_DTLS_OVER_SCTP";
/// The label for deriving record keys (RFC 5246 §6.3).
const KEY_EXPANSION: &[u8] = b"key expansion";
const RANDOM: usize = 32;
const MASTER: usize = 48;

thread_local! {
    /// Secrets that were captured during the current call of dimpl on this thread.
    static SEEN: RefCell<Option<Secrets>> = const { RefCell::new(None) };
}

/// HMAC implementation that captures the secrets when record keys are derived.
#[derive(Debug)]
struct Watching;
static WATCHING: Watching = Watching;

impl HmacProvider for Watching {
    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        if let Some(randoms) = data.strip_prefix(KEY_EXPANSION)
            && let Some(secrets) = Secrets::new(hash, key, randoms)
        {
            SEEN.set(Some(secrets));
        }
        let provider = rust_crypto::default_provider();
        provider.hmac_provider.hmac(hash, key, data, out)
    }
}

/// Cryptography for dimpl, from which [`during`] captures the secrets.
pub(super) fn provider() -> CryptoProvider {
    let mut provider = rust_crypto::default_provider();
    provider.hmac_provider = &WATCHING;
    provider
}

/// Calls `work`, and returns the secrets that a handshake has agreed on during this call, if any.
pub(super) fn during<T>(work: impl FnOnce() -> T) -> (T, Option<Secrets>) {
    SEEN.take();
    let result = work();
    (result, SEEN.take())
}

/// The master secret, and the randoms of both ends.
pub(super) struct Secrets {
    suite: Suite,
    master: Zeroizing<[u8; MASTER]>,
    client: [u8; RANDOM],
    server: [u8; RANDOM],
}

impl Secrets {
    /// `randoms` contains the server's random, then the client's (RFC 5246 §6.3).
    pub(super) fn new(hash: HashAlgorithm, master: &[u8], randoms: &[u8]) -> Option<Self> {
        let suite = match hash {
            HashAlgorithm::SHA256 => Suite::Aes128Gcm,
            HashAlgorithm::SHA384 => Suite::Aes256Gcm,
            _ => return None,
        };
        let (server, client) = randoms.split_at_checked(RANDOM)?;
        Some(Self {
            suite,
            master: Zeroizing::new(master.try_into().ok()?),
            client: client.try_into().ok()?,
            server: server.try_into().ok()?,
        })
    }

    pub(super) fn suite(&self) -> Suite {
        self.suite
    }

    /// The endpoint pair shared key for AUTH (RFC 6083 §4.8), exported without a context (RFC 5705
    /// §4).
    pub(super) fn shared_key(&self) -> Zeroizing<[u8; 64]> {
        let mut key = Zeroizing::new([0; 64]);
        self.expand(EXPORTER, [&self.client, &self.server], &mut *key);
        key
    }

    /// Derives the keys for records of the client and of the server, followed by the implicit parts
    /// of their nonces (RFC 5246 §6.3, RFC 5288 §3).
    pub(super) fn keys(&self, out: &mut [u8]) {
        self.expand(KEY_EXPANSION, [&self.server, &self.client], out);
    }

    /// The PRF of TLS 1.2 (RFC 5246 §5).
    fn expand(&self, label: &[u8], randoms: [&[u8; RANDOM]; 2], out: &mut [u8]) {
        let seed = [label, randoms[0], randoms[1]].concat();
        match self.suite {
            Suite::Aes256Gcm => prf::<Hmac<Sha384>>(&self.master[..], &seed, out),
            _ => prf::<Hmac<Sha256>>(&self.master[..], &seed, out),
        }
    }
}

fn prf<M: Mac + KeyInit>(secret: &[u8], seed: &[u8], out: &mut [u8]) {
    let mac = |parts: &[&[u8]]| {
        let mut mac = <M as Mac>::new_from_slice(secret).expect("any length");
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes()
    };
    let mut a = mac(&[seed]);
    let size = a.len();
    for piece in out.chunks_mut(size) {
        piece.copy_from_slice(&mac(&[&a, seed])[..piece.len()]);
        a = mac(&[&a]);
    }
}
