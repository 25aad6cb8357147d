//! Authenticated chunks (RFC 4895): an AUTH chunk authenticates all chunks after it in its packet
//! by an HMAC.
//!
//! - In INIT or INIT ACK, each end lists the chunk types that it accepts only if authenticated, and
//!   sends a random number. Both ends compute the key of the association ([`association_key`]) from
//!   these parameters and a shared secret ([`SharedKeys`], empty by default).
//! - This module does not send or receive packets: the association ([`crate::association`]) calls
//!   it to find out which chunks must be authenticated, and to sign and verify packets.

mod algorithm;
mod association_key;
mod chunk_types;
mod keys;
mod parameters;

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::Auth;
use bytes::{Bytes, BytesMut};

pub(crate) use algorithm::{Algorithm, HmacKey};
pub use chunk_types::ChunkTypes;
pub use keys::{KeyError, SharedKeys};
pub(crate) use parameters::{AuthParameters, AuthParametersBuilder, RANDOM_LEN};

/// Whether an endpoint offers AUTH (RFC 4895), and whether it requires AUTH of its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication {
    /// AUTH is not offered.
    #[default]
    Off,
    /// AUTH is used if the peer supports it.
    On,
    /// AUTH is used, and associations with peers that do not support AUTH are refused.
    Required,
}

anabranch_settings::spelled!(Authentication: Authentication::Off = "off", Authentication::On = "on",
    Authentication::Required = "required");

/// HMAC algorithm that this end requests from the peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthHmac {
    /// HMAC-SHA-256, or HMAC-SHA-1 (mandatory for all implementations) if the peer supports no
    /// other.
    #[default]
    Sha256,
    /// HMAC-SHA-1 only.
    Sha1,
}

anabranch_settings::spelled!(AuthHmac: AuthHmac::Sha256 = "sha256", AuthHmac::Sha1 = "sha1");

/// AUTH parameters of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NegotiatedAuth {
    /// Parameters in this end's INIT or INIT ACK. They are stored, because the settings may change
    /// before the COOKIE ECHO.
    pub(crate) own: AuthParameters,
    pub(crate) peer: AuthParameters,
}

impl NegotiatedAuth {
    /// Encodes the parameters into a cookie, without any secret (RFC 4895 §6.3).
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        self.own.encode(out);
        self.peer.encode(out);
    }

    /// Decodes parameters encoded by [`NegotiatedAuth::encode`].
    pub(crate) fn decode(body: &mut Bytes) -> Option<Self> {
        Some(Self {
            own: AuthParameters::decode(body)?,
            peer: AuthParameters::decode(body)?,
        })
    }
}

/// Why the chunks after an AUTH chunk are rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthFailure {
    /// The algorithm was not offered.
    Algorithm(u16),
    /// The key does not exist, or the HMAC is wrong.
    Wrong,
}

/// AUTH state of an association whose local end offers AUTH.
#[derive(Debug)]
pub(crate) struct Authenticator {
    own: AuthParameters,
    /// Chunk types that this end accepts only if authenticated.
    demanded: ChunkTypes,
    keys: SharedKeys,
    agreed: Option<Agreed>,
}

/// Additional state if the peer has also offered AUTH.
struct Agreed {
    peer: AuthParameters,
    /// Chunk types that the peer accepts only if authenticated.
    demanded: ChunkTypes,
    /// HMAC algorithm of sent packets.
    algorithm: Algorithm,
    /// Association keys, by identifier, for each HMAC algorithm in use.
    keyed: Vec<(u16, HmacKey)>,
    /// Identifier of the key that the peer used last.
    peers_key: Option<u16>,
    /// Whether the remaining chunks of the current packet were authenticated together with the
    /// preceding COOKIE ECHO.
    vouched: bool,
}

impl std::fmt::Debug for Agreed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agreed")
            .field("demanded", &self.demanded)
            .field("algorithm", &self.algorithm)
            .field("peers_key", &self.peers_key)
            .finish_non_exhaustive()
    }
}

impl Authenticator {
    /// State of an end that offers `own` in its INIT or INIT ACK.
    pub(crate) fn new(own: AuthParameters, keys: SharedKeys) -> Self {
        Self {
            demanded: own.demanded(),
            own,
            keys,
            agreed: None,
        }
    }

    /// State of an association whose ends offered `own` and `peer`.
    pub(crate) fn agreed(own: AuthParameters, peer: &AuthParameters, keys: SharedKeys) -> Self {
        let mut this = Self::new(own, keys);
        this.agreed = Some(Agreed {
            // ASCONF and ASCONF-ACK are always sent authenticated, even if the peer does not list
            // them (RFC 5061 §4.1).
            demanded: peer.demanded().and(&[kind::ASCONF, kind::ASCONF_ACK]),
            algorithm: peer.algorithm(),
            peer: peer.clone(),
            keyed: Vec::new(),
            peers_key: None,
            vouched: false,
        });
        this.take_keys_in();
        this
    }

    /// Random number of this end.
    pub(crate) fn random(&self) -> [u8; RANDOM_LEN] {
        self.own.random
    }

    pub(crate) fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Whether both ends use AUTH.
    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed.is_some()
    }

    /// Records that the peer does not offer AUTH.
    pub(crate) fn disagree(&mut self) {
        self.agreed = None;
    }

    /// Chunk types that this end accepts only if authenticated; empty if the peer does not support
    /// AUTH.
    pub(crate) fn demanded(&self) -> ChunkTypes {
        let agreed = self.agreed.is_some();
        if agreed {
            self.demanded
        } else {
            ChunkTypes::default()
        }
    }

    /// Chunk types that the peer accepts only if authenticated.
    pub(crate) fn peer_demands(&self) -> ChunkTypes {
        let agreed = self.agreed.as_ref();
        agreed.map(|it| it.demanded).unwrap_or_default()
    }

    /// Changes the shared keys, and recomputes the association keys derived from them.
    pub(crate) fn change_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        change(&mut self.keys)?;
        self.take_keys_in();
        Ok(())
    }

    /// Computes the association shared keys (RFC 4895 §6.1).
    fn take_keys_in(&mut self) {
        let Some(agreed) = &mut self.agreed else {
            return;
        };
        let (ours, peers) = (self.own.vector(), agreed.peer.vector());
        let mut algorithms: Vec<Algorithm> = self.own.algorithms().collect();
        if !algorithms.contains(&agreed.algorithm) {
            algorithms.push(agreed.algorithm);
        }
        agreed.keyed.clear();
        for (id, secret) in self.keys.iter() {
            let key = association_key::association_key(secret, &ours, &peers);
            let keyed = algorithms.iter().map(|it| (id, HmacKey::new(*it, &key)));
            agreed.keyed.extend(keyed);
        }
    }

    /// AUTH chunk with an empty HMAC, which [`Authenticator::sign`] fills in; `None` if the peer
    /// does not support AUTH.
    pub(crate) fn blank(&self, key: u16) -> Option<Auth> {
        let agreed = self.agreed.as_ref()?;
        let zeros = &[0; Algorithm::MAX_LEN][..agreed.algorithm.len()];
        Some(Auth {
            shared_key_id: key,
            hmac_id: agreed.algorithm.id(),
            hmac: Bytes::from_static(zeros),
        })
    }

    /// Length of an AUTH chunk in bytes.
    pub(crate) fn chunk_len(&self) -> usize {
        let agreed = self.agreed.as_ref();
        agreed.map_or(0, |it| {
            (Auth::HEADER + it.algorithm.len()).next_multiple_of(4)
        })
    }

    /// Computes the HMAC of the AUTH chunk at the start of `packet` (RFC 4895 §6.2) with this key.
    pub(crate) fn sign(&self, key: u16, packet: &mut [u8]) {
        let Some(agreed) = &self.agreed else { return };
        let Some(keyed) = agreed.keyed(key, agreed.algorithm) else {
            return debug_assert!(false, "it is one of the keys");
        };
        let hmac = keyed.sign(&[packet]);
        let len = agreed.algorithm.len();
        packet[Auth::HEADER..Auth::HEADER + len].copy_from_slice(&hmac[..len]);
    }

    /// Verifies the HMAC of `auth` over `covered`, the packet from the AUTH chunk on (RFC 4895
    /// §6.3). Returns the key identifier if it differs from the key that the peer used before.
    pub(crate) fn verify(
        &mut self,
        auth: &Auth,
        covered: &[u8],
    ) -> Result<Option<u16>, AuthFailure> {
        let Some(agreed) = &mut self.agreed else {
            return Err(AuthFailure::Wrong);
        };
        let offered =
            Algorithm::of(auth.hmac_id).filter(|it| self.own.algorithms().any(|own| own == *it));
        let Some(algorithm) = offered else {
            return Err(AuthFailure::Algorithm(auth.hmac_id));
        };
        let keyed = agreed.keyed(auth.shared_key_id, algorithm);
        let end = Auth::HEADER + auth.hmac.len();
        let (Some(keyed), Some(header), Some(behind)) =
            (keyed, covered.get(..Auth::HEADER), covered.get(end..))
        else {
            return Err(AuthFailure::Wrong);
        };
        let zeros = &[0; Algorithm::MAX_LEN][..algorithm.len()];
        if auth.hmac.len() != zeros.len() || !keyed.verify(&[header, zeros, behind], &auth.hmac) {
            return Err(AuthFailure::Wrong);
        }
        let former = agreed.peers_key.replace(auth.shared_key_id);
        let changed = former.is_some_and(|former| former != auth.shared_key_id);
        Ok(changed.then_some(auth.shared_key_id))
    }

    /// Marks the remaining chunks of the current packet as authenticated, because its AUTH chunk
    /// was already verified.
    pub(crate) fn vouch(&mut self) {
        if let Some(agreed) = &mut self.agreed {
            agreed.vouched = true;
        }
    }

    /// Returns and clears the mark set by [`Authenticator::vouch`].
    pub(crate) fn take_vouched(&mut self) -> bool {
        let agreed = self.agreed.as_mut();
        agreed.is_some_and(|it| std::mem::take(&mut it.vouched))
    }
}

impl Agreed {
    fn keyed(&self, id: u16, algorithm: Algorithm) -> Option<&HmacKey> {
        let mut all = self.keyed.iter();
        let found = all.find(|(known, keyed)| *known == id && keyed.algorithm() == algorithm);
        found.map(|(_, keyed)| keyed)
    }
}

#[cfg(test)]
mod tests;
