//! Authenticated chunks (RFC 4895): an AUTH chunk vouches by an HMAC for all that follows it in its packet.
//!
//! - Each end says in INIT or INIT ACK which types of chunks it takes only so, and gives a random number. From both ends' words and
//!   a secret that they share ([`SharedKeys`], empty at first) each computes the key of the association ([`vector`]).
//! - Here is what it consists of, without packets: the association ([`crate::association`]) asks what must be authenticated, and has
//!   packets signed and verified.

mod algorithm;
mod chunk_types;
mod keys;
mod offer;
mod vector;

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::Auth;
use bytes::{BufMut, Bytes, BytesMut};

pub(crate) use algorithm::{Algorithm, Keyed};
pub use chunk_types::ChunkTypes;
pub use keys::{KeyError, SharedKeys};
pub(crate) use offer::{AuthOffer, Collected, RANDOM_LEN, take_random};

/// Whether an endpoint speaks AUTH.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Authentication {
    /// Not at all.
    #[default]
    Off,
    /// With peers that do.
    On,
    /// Associations with peers that do not are refused.
    Required,
}

anabranch_settings::spelled!(Authentication: Authentication::Off = "off", Authentication::On = "on",
    Authentication::Required = "required");

/// The HMAC algorithm that a peer is asked to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuthHmac {
    /// HMAC-SHA-256; HMAC-SHA-1, which each end must know, where the peer knows no other.
    #[default]
    Sha256,
    /// HMAC-SHA-1 alone.
    Sha1,
}

anabranch_settings::spelled!(AuthHmac: AuthHmac::Sha256 = "sha256", AuthHmac::Sha1 = "sha1");

/// What both ends have said: this end's random number, and what the peer offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AuthTerms {
    pub(crate) random: [u8; RANDOM_LEN],
    pub(crate) peer: AuthOffer,
}

impl AuthTerms {
    /// Writes them to a cookie, without any secret (RFC 4895 §6.3).
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&self.random);
        self.peer.encode(out);
    }

    /// Reads what [`AuthTerms::encode`] wrote.
    pub(crate) fn decode(body: &mut Bytes) -> Option<Self> {
        Some(Self {
            random: take_random(body)?,
            peer: AuthOffer::decode(body)?,
        })
    }
}

/// Why the chunks behind an AUTH are not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unproved {
    /// Its algorithm was not offered.
    Algorithm(u16),
    /// There is no such key, or the HMAC is wrong.
    Wrong,
}

/// What an association keeps of it while this end offers it.
#[derive(Debug)]
pub(crate) struct Authenticator {
    own: AuthOffer,
    /// What this end takes only if it is authenticated.
    demanded: ChunkTypes,
    keys: SharedKeys,
    agreed: Option<Agreed>,
}

/// What it keeps once the peer has offered it, too.
struct Agreed {
    peer: AuthOffer,
    /// What the peer takes only if it is authenticated.
    demanded: ChunkTypes,
    /// For what is sent.
    algorithm: Algorithm,
    /// The keys of the association, for each algorithm that is used.
    keyed: Vec<(u16, Keyed)>,
    /// The key that the peer used last.
    peers_key: Option<u16>,
    /// What comes next of the packet at hand was authenticated with the COOKIE ECHO before it.
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
    /// That of an end which offers `own` in its INIT or INIT ACK.
    pub(crate) fn new(own: AuthOffer, keys: SharedKeys) -> Self {
        Self {
            demanded: own.demanded(),
            own,
            keys,
            agreed: None,
        }
    }

    /// That of an association whose ends offer `own` and what `peer` says.
    pub(crate) fn agreed(own: AuthOffer, peer: &AuthOffer, keys: SharedKeys) -> Self {
        let mut this = Self::new(own, keys);
        this.agreed = Some(Agreed {
            // ASCONF and its answer go authenticated, whatever the peer lists (RFC 5061 §4.1).
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

    /// This end's random number.
    pub(crate) fn random(&self) -> [u8; RANDOM_LEN] {
        self.own.random
    }

    pub(crate) fn keys(&self) -> &SharedKeys {
        &self.keys
    }

    /// Whether both ends use it.
    pub(crate) fn is_agreed(&self) -> bool {
        self.agreed.is_some()
    }

    /// The peer does not offer it.
    pub(crate) fn disagree(&mut self) {
        self.agreed = None;
    }

    /// What this end takes only if it is authenticated; none where the peer does not speak AUTH.
    pub(crate) fn demanded(&self) -> ChunkTypes {
        let agreed = self.agreed.is_some();
        if agreed {
            self.demanded
        } else {
            ChunkTypes::default()
        }
    }

    /// What the peer takes only if it is authenticated.
    pub(crate) fn peer_demands(&self) -> ChunkTypes {
        let agreed = self.agreed.as_ref();
        agreed.map(|it| it.demanded).unwrap_or_default()
    }

    /// Changes the keys, and what is computed from them.
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
            let key = vector::association_key(secret, &ours, &peers);
            let keyed = algorithms.iter().map(|it| (id, Keyed::new(*it, &key)));
            agreed.keyed.extend(keyed);
        }
    }

    /// An AUTH chunk to be filled in by [`Authenticator::sign`]; none where the peer does not speak it.
    pub(crate) fn blank(&self, key: u16) -> Option<Auth> {
        let agreed = self.agreed.as_ref()?;
        let zeros = &[0; Algorithm::LONGEST][..agreed.algorithm.len()];
        Some(Auth {
            shared_key_id: key,
            hmac_id: agreed.algorithm.id(),
            hmac: Bytes::from_static(zeros),
        })
    }

    /// Bytes of an AUTH chunk.
    pub(crate) fn chunk_len(&self) -> usize {
        let agreed = self.agreed.as_ref();
        agreed.map_or(0, |it| {
            (Auth::HEADER + it.algorithm.len()).next_multiple_of(4)
        })
    }

    /// Fills in the HMAC of the AUTH that `packet` begins with (RFC 4895 §6.2), by this key.
    pub(crate) fn sign(&self, key: u16, packet: &mut [u8]) {
        let Some(agreed) = &self.agreed else { return };
        let Some(keyed) = agreed.keyed(key, agreed.algorithm) else {
            return debug_assert!(false, "it is one of the keys");
        };
        let hmac = keyed.sign(&[packet]);
        let len = agreed.algorithm.len();
        packet[Auth::HEADER..Auth::HEADER + len].copy_from_slice(&hmac[..len]);
    }

    /// Whether `auth` vouches for the packet from it on, `covered` (RFC 4895 §6.3). Gives the key's identifier where it is another
    /// than the peer used before.
    pub(crate) fn verify(&mut self, auth: &Auth, covered: &[u8]) -> Result<Option<u16>, Unproved> {
        let Some(agreed) = &mut self.agreed else {
            return Err(Unproved::Wrong);
        };
        let offered =
            Algorithm::of(auth.hmac_id).filter(|it| self.own.algorithms().any(|own| own == *it));
        let Some(algorithm) = offered else {
            return Err(Unproved::Algorithm(auth.hmac_id));
        };
        let keyed = agreed.keyed(auth.shared_key_id, algorithm);
        let end = Auth::HEADER + auth.hmac.len();
        let (Some(keyed), Some(header), Some(behind)) =
            (keyed, covered.get(..Auth::HEADER), covered.get(end..))
        else {
            return Err(Unproved::Wrong);
        };
        let zeros = &[0; Algorithm::LONGEST][..algorithm.len()];
        if auth.hmac.len() != zeros.len() || !keyed.verify(&[header, zeros, behind], &auth.hmac) {
            return Err(Unproved::Wrong);
        }
        let former = agreed.peers_key.replace(auth.shared_key_id);
        let changed = former.is_some_and(|former| former != auth.shared_key_id);
        Ok(changed.then_some(auth.shared_key_id))
    }

    /// The rest of the packet at hand is authenticated, and its AUTH was taken.
    pub(crate) fn vouch(&mut self) {
        if let Some(agreed) = &mut self.agreed {
            agreed.vouched = true;
        }
    }

    /// Whether that is so of the chunks at hand; asked once.
    pub(crate) fn take_vouched(&mut self) -> bool {
        let agreed = self.agreed.as_mut();
        agreed.is_some_and(|it| std::mem::take(&mut it.vouched))
    }
}

impl Agreed {
    fn keyed(&self, id: u16, algorithm: Algorithm) -> Option<&Keyed> {
        let mut all = self.keyed.iter();
        let found = all.find(|(known, keyed)| *known == id && keyed.algorithm() == algorithm);
        found.map(|(_, keyed)| keyed)
    }
}

#[cfg(test)]
mod tests;
