//! Roles and method of key management (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.1).

use anabranch_dtls::Role;
use anabranch_wire::extension::{DtlsKeyManagement, ExtensionCause};
use anabranch_wire::parameter::kind;
use anabranch_wire::tlv::Tlv;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Why the two offers of the DTLS chunk are incompatible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mismatch {
    /// The peer does not offer the DTLS chunk.
    Missing,
    /// The ends have no common key management method.
    Methods,
    /// Both ends support only the client role, or only the server role.
    Roles,
    /// Both ends support both roles and drew the same tie breaker.
    TieBreaker,
}

impl Mismatch {
    pub(crate) fn cause(self) -> ExtensionCause {
        match self {
            Mismatch::Missing => ExtensionCause::MissingDtlsChunkSupport,
            Mismatch::Methods => ExtensionCause::NoCommonDtlsKeyManagement,
            Mismatch::Roles => ExtensionCause::IncompatibleDtlsRoles,
            Mismatch::TieBreaker => ExtensionCause::DtlsTieBreakerCollision,
        }
    }

    /// Description of the mismatch, for an INIT ACK that is refused.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Mismatch::Missing => "an INIT ACK without the DTLS chunk, which is required here",
            Mismatch::Methods => "an INIT ACK with no key management of the DTLS chunk in common",
            Mismatch::Roles => "an INIT ACK with an incompatible role of the DTLS chunk",
            Mismatch::TieBreaker => "an INIT ACK with the tie breaker of this end",
        }
    }
}

/// Whether the offers are compatible: they have a common method and complementary roles.
pub(crate) fn is_compatible(
    own: &DtlsKeyManagement,
    peer: &DtlsKeyManagement,
) -> Result<(), Mismatch> {
    let common = own.methods.iter().any(|it| peer.methods.contains(it));
    if !common {
        return Err(Mismatch::Methods);
    }
    let complements = (own.client && peer.server) || (own.server && peer.client);
    if complements {
        Ok(())
    } else {
        Err(Mismatch::Roles)
    }
}

/// DTLS Key Management Parameters of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DtlsTerms {
    pub(crate) own: DtlsKeyManagement,
    pub(crate) peer: DtlsKeyManagement,
}

impl DtlsTerms {
    /// Role of this end, and negotiated method.
    pub(crate) fn agree(&self) -> Result<(Role, u8), Mismatch> {
        let Self { own, peer } = self;
        is_compatible(own, peer)?;
        let role = match (
            own.client && peer.server,
            own.server && peer.client,
            own.tie_breaker.cmp(&peer.tie_breaker),
        ) {
            (true, false, _) => Role::Client,
            (false, true, _) => Role::Server,
            // The tie breaker decides only if both ends support both roles.
            (_, _, std::cmp::Ordering::Greater) => Role::Server,
            (_, _, std::cmp::Ordering::Less) => Role::Client,
            (_, _, std::cmp::Ordering::Equal) => return Err(Mismatch::TieBreaker),
        };
        let (server, client) = match role {
            Role::Server => (own, peer),
            Role::Client => (peer, own),
        };
        let mut preferred = server.methods.iter().copied();
        let method = preferred.find(|it| client.methods.contains(it));
        method.map(|it| (role, it)).ok_or(Mismatch::Methods)
    }

    /// Writes the terms to a cookie.
    pub(crate) fn encode(&self, out: &mut BytesMut) {
        for parameter in [&self.own, &self.peer] {
            let whole = parameter.whole();
            out.put_u16(whole.len() as u16);
            out.put_slice(&whole);
        }
    }

    /// Reads the result of [`DtlsTerms::encode`].
    pub(crate) fn decode(body: &mut Bytes) -> Option<Self> {
        let mut parameter = || {
            let length = usize::from(body.try_get_u16().ok()?);
            if length < 4 || length > body.len() {
                return None;
            }
            let whole = body.split_to(length);
            let tlv = Tlv::new(kind::DTLS_KEY_MANAGEMENT, &whole[4..]).ok()?;
            DtlsKeyManagement::decode(tlv).ok()
        };
        Some(Self {
            own: parameter()?,
            peer: parameter()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameter with this tie breaker, these roles (S: server, C: client) and methods.
    fn of(tie_breaker: u32, roles: &str, methods: &'static [u8]) -> DtlsKeyManagement {
        DtlsKeyManagement {
            tie_breaker,
            restart: false,
            server: roles.contains('S'),
            client: roles.contains('C'),
            reserved: 0,
            methods: Bytes::from_static(methods),
        }
    }

    fn agree(own: &DtlsKeyManagement, peer: &DtlsKeyManagement) -> Result<(Role, u8), Mismatch> {
        let (own, peer) = (own.clone(), peer.clone());
        DtlsTerms { own, peer }.agree()
    }

    #[test]
    fn roles_and_method_follow_from_both_parameters() {
        use Mismatch::*;
        use Role::*;
        let both = [
            // If an end supports a single role, that role decides, regardless of the tie breakers.
            (of(9, "C", &[1]), of(1, "SC", &[1]), Ok((Client, 1))),
            (of(1, "S", &[1]), of(9, "SC", &[1]), Ok((Server, 1))),
            (of(9, "C", &[1]), of(1, "S", &[1]), Ok((Client, 1))),
            // If both support both roles, the end with the larger tie breaker is the server.
            (of(2, "SC", &[1]), of(1, "SC", &[1]), Ok((Server, 1))),
            (of(1, "SC", &[1]), of(u32::MAX, "SC", &[1]), Ok((Client, 1))),
            (of(7, "SC", &[1]), of(7, "SC", &[1]), Err(TieBreaker)),
            (of(7, "S", &[1]), of(7, "SC", &[1]), Ok((Server, 1))),
            (of(1, "C", &[1]), of(2, "C", &[1]), Err(Roles)),
            (of(1, "S", &[1]), of(2, "S", &[1]), Err(Roles)),
            (of(1, "", &[1]), of(2, "SC", &[1]), Err(Roles)),
            // The method is the first in the server's list that the client also lists.
            (
                of(2, "SC", &[5, 3, 4]),
                of(1, "SC", &[4, 3]),
                Ok((Server, 3)),
            ),
            (
                of(1, "SC", &[5, 3, 4]),
                of(2, "SC", &[4, 3]),
                Ok((Client, 4)),
            ),
            (of(1, "SC", &[1, 2]), of(2, "SC", &[3]), Err(Methods)),
        ];
        for (own, peer, expected) in both {
            assert_eq!(agree(&own, &peer), expected, "{own:?} {peer:?}");
            // The peer computes the same method, and the opposite role.
            let mirrored = expected.map(|(role, method)| match role {
                Client => (Server, method),
                Server => (Client, method),
            });
            assert_eq!(agree(&peer, &own), mirrored);
        }
    }

    #[test]
    fn a_cookie_carries_the_terms_and_no_other_bytes_are_terms() {
        let terms = DtlsTerms {
            own: of(1, "SC", &[250]),
            peer: DtlsKeyManagement {
                reserved: 0x88,
                ..of(2, "S", &[250, 0, 192])
            },
        };
        let mut out = BytesMut::new();
        terms.encode(&mut out);
        let whole = out.freeze();
        assert_eq!(DtlsTerms::decode(&mut whole.clone()), Some(terms));
        for cut in 0..whole.len() {
            assert_eq!(DtlsTerms::decode(&mut whole.slice(..cut)), None, "{cut}");
        }
    }
}
