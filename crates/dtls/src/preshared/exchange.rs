//! An agreement on keys: transcript hash, MACs, and key derivation.

use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use super::PresharedSettings;
use crate::key_schedule::expand_label;
use crate::management::Role;
use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::Suite;

/// Size of a random number, bytes.
pub(super) const RANDOM: usize = 32;
/// Size of a MAC, bytes.
pub(super) const MAC: usize = 32;

/// Random number generator of an association, with its seed.
pub(super) struct RandomNumbers {
    seed: Zeroizing<[u8; 32]>,
    drawn: u64,
}

impl std::fmt::Debug for RandomNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RandomNumbers").finish_non_exhaustive()
    }
}

impl RandomNumbers {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self {
            seed: Zeroizing::new(seed),
            drawn: 0,
        }
    }

    pub(super) fn draw(&mut self) -> [u8; RANDOM] {
        self.drawn += 1;
        mac(&*self.seed, &[b"random", &self.drawn.to_be_bytes()])
    }
}

/// State of an agreement on the keys of one epoch.
pub(super) struct Exchange {
    pub(super) epoch: u64,
    suite: Suite,
    secret: Zeroizing<Vec<u8>>,
    /// Hash of the messages that were exchanged so far.
    transcript: Sha256,
    /// Both DTLS Key Management Parameters, as input of the key derivation.
    parameters: Vec<u8>,
    /// The secret from which all keys are derived; `None` until both random numbers are known.
    derived: Option<Zeroizing<[u8; 32]>>,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange")
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}

impl Exchange {
    pub(super) fn new(
        settings: &PresharedSettings,
        epoch: u64,
        client_random: [u8; RANDOM],
        client_parameter: &[u8],
        server_parameter: &[u8],
    ) -> Self {
        let parameters = [client_parameter, server_parameter].concat();
        let mut transcript = Sha256::new();
        transcript.update(epoch.to_be_bytes());
        transcript.update(settings.suite.code());
        transcript.update([u8::from(settings.restart)]);
        // The input is unambiguous, because each parameter contains its length.
        transcript.update(&parameters);
        transcript.update(client_random);
        Self {
            epoch,
            suite: settings.suite,
            secret: settings.secret.clone(),
            transcript,
            parameters,
            derived: None,
        }
    }

    /// Sets the server's random number, and derives the keys.
    fn derive(&mut self, server_random: [u8; RANDOM]) {
        self.transcript.update(server_random);
        let salt = self.transcript.clone().finalize();
        let (prk, _) = Hkdf::<Sha256>::extract(Some(&salt), &self.secret);
        self.derived = Some(Zeroizing::new(prk.into()));
    }

    fn mac_of(&self, who: &str) -> [u8; MAC] {
        let none = Zeroizing::new([0; 32]);
        let derived = self.derived.as_ref().unwrap_or(&none);
        let mut key = Zeroizing::new([0; 32]);
        expand_label(Suite::Aes128Gcm, &**derived, who, &[], &mut *key);
        mac(&*key, &[&self.transcript.clone().finalize()])
    }

    /// Sets the server's random number; returns the server's MAC.
    pub(super) fn answer(&mut self, server_random: [u8; RANDOM]) -> [u8; MAC] {
        self.derive(server_random);
        self.mac_of("server finished")
    }

    /// Sets the server's random number; returns true if the MAC proves that the server has the
    /// secret.
    pub(super) fn is_answer(&mut self, server_random: [u8; RANDOM], mac: &[u8; MAC]) -> bool {
        self.derive(server_random);
        self.mac_of("server finished").ct_eq(mac).into()
    }

    /// The MAC of the client.
    pub(super) fn finished(&self) -> [u8; MAC] {
        self.mac_of("client finished")
    }

    /// Returns true if the MAC proves that the client has the secret.
    pub(super) fn is_finished(&self, mac: &[u8; MAC]) -> bool {
        self.finished().ct_eq(mac).into()
    }

    /// The sealing keys of `sender`. The context of each key contains its direction, whether it is
    /// for a restart, its type (key, sequence number key or initialization vector), and the DTLS
    /// Key Management Parameters of both ends (draft-porfiri-tsvwg-sctp-dtls-handshake §5.2).
    pub(super) fn export(&self, sender: Role, restart: bool) -> KeyMaterial {
        let [mut key, mut sequence_key] =
            [(); 2].map(|()| Zeroizing::new(vec![0; self.suite.key_len()]));
        let mut iv = [0; IV_LEN];
        self.export_one(sender, restart, 0, &mut key);
        self.export_one(sender, restart, 1, &mut sequence_key);
        self.export_one(sender, restart, 2, &mut iv);
        KeyMaterial::new(self.suite, &key, &iv, &sequence_key).expect("as long as the suite says")
    }

    fn export_one(&self, sender: Role, restart: bool, kind: u8, out: &mut [u8]) {
        let none = Zeroizing::new([0; 32]);
        let derived = self.derived.as_ref().unwrap_or(&none);
        let direction = u8::from(sender == Role::Server);
        let context = Sha256::new()
            .chain_update([direction, u8::from(restart), kind])
            .chain_update(&self.parameters)
            .finalize();
        // Uses SHA-256 regardless of the hash of the suite, because the secret is no longer than
        // the output of SHA-256.
        expand_label(
            Suite::Aes128Gcm,
            &**derived,
            "sctp dtls chunk",
            &context,
            out,
        );
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; MAC] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length is a key");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
