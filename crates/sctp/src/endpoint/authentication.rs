//! Packets that start with an AUTH chunk and whose association is not known yet (RFC 4895 §6.3).

use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Auth, Extension};
use anabranch_wire::packet::{Chunks, Frame, Packet};

use super::{Arrival, Endpoint};
use crate::association::Association;
use crate::authentication::{Authenticator, NegotiatedAuth, SharedKeys};
use crate::cookie::Cookie;
use crate::discard::DiscardReason;

/// AUTH chunk before a COOKIE ECHO, and the bytes that it covers.
pub(super) struct VerifiedAuth<'a> {
    chunk: Auth,
    covered: &'a [u8],
}

impl<'a> VerifiedAuth<'a> {
    /// Decodes the AUTH chunk; `None` if it is malformed.
    pub(super) fn of(auth: Frame<'a>) -> Option<Self> {
        match Extension::decode(auth.to_raw()) {
            Ok(Extension::Auth(chunk)) => Some(Self {
                chunk,
                covered: auth.to_end(),
            }),
            _ => None,
        }
    }
}

impl Endpoint {
    /// Processes a packet that starts with an AUTH chunk, if AUTH is offered. If a COOKIE ECHO
    /// follows, its cookie contains the AUTH parameters for the verification.
    pub(super) fn on_auth(
        &mut self,
        arrival: Arrival,
        first: Frame<'_>,
        chunks: Chunks<'_>,
        packet: &Packet<'_>,
    ) {
        let mut rest = chunks.clone();
        match rest.next_frame() {
            Some(Ok(second)) if second.kind == kind::COOKIE_ECHO => {
                if arrival.without && !packet.is_intact() {
                    return self.discards.count(DiscardReason::ZeroChecksum);
                }
                let Some(verified_auth) = VerifiedAuth::of(first) else {
                    return self.discards.count(DiscardReason::BadAuth);
                };
                self.on_cookie_echo(arrival, second.value(), rest, Some(verified_auth));
            }
            _ => self.dispatch(arrival, first, chunks, packet),
        }
    }

    /// Whether a COOKIE ECHO with `cookie` may be accepted. The AUTH is verified with the
    /// parameters of the established association, or else with those of the cookie, because before
    /// the establishment only the cookie contains the peer's parameters.
    #[inline(always)]
    pub(super) fn admits_cookie(
        &mut self,
        existing: Option<u32>,
        cookie: &Cookie,
        verified_auth: Option<&VerifiedAuth<'_>>,
    ) -> Result<(), DiscardReason> {
        // Most associations do not use AUTH.
        if existing.is_none() && cookie.auth.is_none() && verified_auth.is_none() {
            return Ok(());
        }
        self.admits_by_auth(existing, cookie, verified_auth)
    }

    #[cold]
    #[inline(never)]
    fn admits_by_auth(
        &mut self,
        existing: Option<u32>,
        cookie: &Cookie,
        verified_auth: Option<&VerifiedAuth<'_>>,
    ) -> Result<(), DiscardReason> {
        let association = existing.and_then(|slot| self.table.get_mut(slot));
        auth_admits(association, &self.config.auth_keys, cookie, verified_auth)
    }
}

/// Implementation of [`Endpoint::admits_cookie`]; `keys` are the keys of the endpoint.
pub(super) fn auth_admits(
    association: Option<&mut Association>,
    keys: &SharedKeys,
    cookie: &Cookie,
    verified_auth: Option<&VerifiedAuth<'_>>,
) -> Result<(), DiscardReason> {
    if let Some(association) = &association
        && association.refuses_clear_cookie()
    {
        return Err(DiscardReason::Unprotected);
    }
    let of_cookie = |auth: &NegotiatedAuth| {
        let known = association.as_ref().and_then(|it| it.auth_keys());
        let keys = known.unwrap_or(keys).clone();
        Authenticator::agreed(auth.own.clone(), &auth.peer, keys)
    };
    let mut of_cookie = cookie.auth.as_deref().map(of_cookie);
    let up = association.filter(|it| !it.is_being_set_up());
    let up = up.filter(|it| it.is_authenticated());
    let Some(verified_auth) = verified_auth else {
        let demanded = match (&up, &of_cookie) {
            (Some(up), _) => up.local_auth_chunks(),
            (None, Some(auth)) => auth.demanded(),
            (None, None) => return Ok(()),
        };
        let refused = demanded.has(kind::COOKIE_ECHO);
        return if refused {
            Err(DiscardReason::Unauthenticated)
        } else {
            Ok(())
        };
    };
    let proved = match (up, &mut of_cookie) {
        (Some(up), _) => up.prove(&verified_auth.chunk, verified_auth.covered),
        (None, Some(auth)) => auth
            .verify(&verified_auth.chunk, verified_auth.covered)
            .map(|_| ()),
        // Without AUTH, the AUTH chunk is an unknown chunk, and the rest of the packet is discarded
        // (RFC 9260 §3.2).
        (None, None) => return Err(DiscardReason::UnknownChunk),
    };
    proved.map_err(|_| DiscardReason::BadAuth)
}
