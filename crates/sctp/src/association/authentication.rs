//! AUTH of an association: accepted chunks of a packet, and authentication of sent packets
//! ([`crate::authentication`], RFC 4895 §6).

use anabranch_transport::Path;
use anabranch_wire::cause::Causes;
use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Auth, Extension, ExtensionCause};
use anabranch_wire::packet::{Checksum, Chunks, Frame, Packet, PacketBuilder};
use anabranch_wire::tlv::TlvList;
use bytes::{Bytes, BytesMut};

use super::{Association, Reply};
use crate::authentication::{
    AuthFailure, Authenticator, ChunkTypes, KeyError, NegotiatedAuth, SharedKeys,
};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::Event;

/// Chunk types of packets that contain only data and acknowledgments.
const PLAIN: [u8; 5] = [kind::DATA, kind::I_DATA, kind::SACK, kind::ECNE, kind::CWR];

impl Association {
    /// Whether both ends offered AUTH (RFC 4895), this side because of the setting
    /// [`Config::authentication`](crate::Config::authentication).
    pub(crate) fn is_authenticated(&self) -> bool {
        self.auth.as_ref().is_some_and(|auth| auth.is_agreed())
    }

    /// Chunk types that this side accepts only if authenticated (SCTP_LOCAL_AUTH_CHUNKS, RFC 6458
    /// §8.2.4).
    pub(crate) fn local_auth_chunks(&self) -> ChunkTypes {
        let auth = self.auth.as_ref();
        auth.map(|auth| auth.demanded()).unwrap_or_default()
    }

    /// Chunk types that the peer accepts only if authenticated (SCTP_PEER_AUTH_CHUNKS, RFC 6458
    /// §8.2.3).
    pub(crate) fn peer_auth_chunks(&self) -> ChunkTypes {
        let auth = self.auth.as_ref();
        auth.map(|auth| auth.peer_demands()).unwrap_or_default()
    }

    /// Keys shared with the peer, if AUTH is offered.
    pub fn auth_keys(&self) -> Option<&SharedKeys> {
        self.auth.as_ref().map(|auth| auth.keys())
    }

    /// Changes the keys shared with the peer (SCTP_AUTH_KEY, SCTP_AUTH_ACTIVE_KEY,
    /// SCTP_AUTH_DEACTIVATE_KEY and SCTP_AUTH_DELETE_KEY, RFC 6458 §8.1.18, §8.3.3 to §8.3.5), at
    /// any time. Packets are authenticated with the active key when they are assembled, so a
    /// deactivated key is no longer used.
    ///
    /// To change keys during an association, both ends add the new key by [`SharedKeys::set`], and
    /// then both select it by [`SharedKeys::activate`]. When [`Event::PeerAuthKey`] has reported
    /// that the peer uses the new key, they remove the old key by [`SharedKeys::delete`].
    ///
    /// # Errors
    /// AUTH is not offered, or the error of `change`.
    pub fn change_auth_keys(
        &mut self,
        change: impl FnOnce(&mut SharedKeys) -> Result<(), KeyError>,
    ) -> Result<(), KeyError> {
        let auth = self.auth.as_mut().ok_or(KeyError::NotNegotiated)?;
        auth.change_keys(change)
    }

    /// Applies the negotiated AUTH parameters; `None` if AUTH was not negotiated.
    #[inline(always)]
    pub(super) fn settle_auth(&mut self, terms: Option<&NegotiatedAuth>) {
        if terms.is_some() || self.auth.is_some() || self.paths.reserved() > 0 {
            self.settle_auth_of(terms);
        }
    }

    /// Before a restart with AUTH: stores the endpoint's `keys` if the association has none,
    /// because AUTH was off when it was created. The COOKIE ECHO was verified with these keys.
    pub(crate) fn take_auth_keys(&mut self, terms: Option<&NegotiatedAuth>, keys: &SharedKeys) {
        if let (Some(terms), None) = (terms, &self.auth) {
            let auth = Authenticator::new(terms.own.clone(), keys.clone());
            self.auth = Some(Box::new(auth));
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_auth_of(&mut self, terms: Option<&NegotiatedAuth>) {
        match terms {
            Some(terms) => {
                let former = self.auth.take();
                let keys =
                    former.map_or_else(|| self.config.auth_keys.clone(), |it| it.keys().clone());
                let auth = Authenticator::agreed(terms.own.clone(), &terms.peer, keys);
                self.auth = Some(Box::new(auth));
            }
            None => {
                if let Some(auth) = &mut self.auth {
                    auth.disagree();
                }
            }
        }
        // If any packet may need an AUTH, all packets reserve space for it.
        let all = self.peer_auth_chunks().has_any(&PLAIN);
        let reserved = if all { self.auth_len() } else { 0 };
        self.paths.reserve(reserved);
    }

    /// Length of an AUTH in bytes.
    fn auth_len(&self) -> usize {
        self.auth.as_ref().map_or(0, |auth| auth.chunk_len())
    }

    /// Authenticator of the association, if both ends support AUTH.
    pub(crate) fn authenticator(&mut self) -> Option<&mut Authenticator> {
        self.auth.as_deref_mut().filter(|auth| auth.is_agreed())
    }

    /// Chunks of the current packet that may be accepted: chunks that need no authentication, and
    /// chunks authenticated by a valid AUTH (RFC 4895 §6.3). If some chunks are rejected, the
    /// accepted ones are copied into `kept` as a separate packet.
    pub(super) fn admitted<'a>(
        &mut self,
        path: Path,
        first: Frame<'a>,
        rest: Chunks<'a>,
        kept: &'a mut Option<Bytes>,
        discards: &mut DiscardCounts,
    ) -> Option<(Frame<'a>, Chunks<'a>)> {
        let demanded = self
            .authenticator()
            .map(|auth| (auth.take_vouched(), auth.demanded()));
        let Some((false, demanded)) = demanded else {
            return Some((first, rest));
        };
        let mut left = BytesMut::from(first.common_header());
        let mut dropped = false;
        let mut vouched = false;
        let mut frames = rest.clone();
        let mut next = Some(first);
        while let Some(frame) = next {
            if frame.kind == kind::AUTH {
                if vouched || !self.is_proved(path, frame, discards) {
                    // A second AUTH is invalid (RFC 4895 §4.1). The chunks after an invalid AUTH
                    // are discarded.
                    discards.count(DiscardReason::BadAuth);
                    dropped = true;
                    break;
                }
                vouched = true;
            } else if demanded.has(frame.kind) && !vouched {
                discards.count(DiscardReason::Unauthenticated);
                dropped = true;
            } else {
                left.extend_from_slice(frame.padded());
            }
            // An unreadable chunk ends the loop here; it is counted when the accepted chunks are
            // processed.
            next = frames.next_frame().and_then(Result::ok);
        }
        if !dropped {
            return Some((first, rest));
        }
        let packet = kept.insert(left.freeze());
        let mut chunks = Packet::parse(packet, Checksum::Ignore).ok()?.chunks();
        let first = chunks.next_frame()?.ok()?;
        Some((first, chunks))
    }

    /// Whether `frame` is a valid AUTH for the chunks after it.
    fn is_proved(&mut self, path: Path, frame: Frame<'_>, discards: &mut DiscardCounts) -> bool {
        let Ok(Extension::Auth(chunk)) = Extension::decode(frame.to_raw()) else {
            return false;
        };
        match self.prove(&chunk, frame.to_end()) {
            Ok(()) => true,
            Err(AuthFailure::Wrong) => false,
            Err(AuthFailure::Algorithm(hmac_id)) => {
                let cause = ExtensionCause::UnsupportedHmac { hmac_id };
                let causes = Causes::from_bytes(TlvList::of(&[cause]).as_bytes().clone());
                if let Some(to) = self.paths.find(path.remote) {
                    let to = self.paths.verified(to);
                    self.reply(Reply::Error { to, causes }, discards);
                }
                false
            }
        }
    }

    /// Verifies `chunk` over `covered`, and reports a key that the peer has not used before.
    pub(crate) fn prove(&mut self, chunk: &Auth, covered: &[u8]) -> Result<(), AuthFailure> {
        let auth = self.authenticator().ok_or(AuthFailure::Wrong)?;
        if let Some(key_id) = auth.verify(chunk, covered)? {
            self.events.push_back(Event::PeerAuthKey { key_id });
        }
        Ok(())
    }

    /// Bytes to reserve for an AUTH before the control chunks of a packet.
    pub(super) fn room_for_auth(&self) -> usize {
        match &self.auth {
            Some(auth) if self.paths.reserved() == 0 && !auth.peer_demands().is_empty() => {
                auth.chunk_len()
            }
            _ => 0,
        }
    }

    /// Releases the `room` reserved for an AUTH to data, if no control chunk in the packet needs
    /// it.
    pub(super) fn release_room(&self, room: usize, packet: &mut PacketBuilder<'_>) {
        let demands = self.peer_auth_chunks();
        if room > 0 && packet.find(|kind| demands.has(kind)).is_none() {
            packet.raise_limit(room);
        }
    }

    /// Length of an AUTH in bytes if the peer requires it for one of `kinds`, else 0.
    pub(super) fn auth_len_for(&self, kinds: &[u8]) -> usize {
        let demanded = self.peer_auth_chunks().has_any(kinds);
        if demanded { self.auth_len() } else { 0 }
    }

    /// Completes a packet: inserts an AUTH before the first chunk that the peer accepts only if
    /// authenticated. Returns the packet's length.
    #[inline(always)]
    pub(super) fn seal(&mut self, packet: PacketBuilder<'_>, checksum: bool) -> usize {
        self.seal_by(None, packet, checksum)
    }

    /// Like [`Self::seal_by`], but returns 0 for an empty packet.
    #[inline(always)]
    pub(super) fn seal_filled(
        &mut self,
        key: Option<u16>,
        packet: PacketBuilder<'_>,
        checksum: bool,
    ) -> usize {
        if packet.is_empty() {
            return 0;
        }
        self.seal_by(key, packet, checksum)
    }

    /// Like [`Self::seal`], with the AUTH key `key` chosen by the user.
    #[inline(always)]
    pub(super) fn seal_by(
        &mut self,
        key: Option<u16>,
        packet: PacketBuilder<'_>,
        checksum: bool,
    ) -> usize {
        match &self.auth {
            None if self.dtls.is_some() => self.seal_in_dtls(packet, checksum),
            None => packet.finish(checksum),
            Some(auth) => signed(auth, key, packet).finish(checksum),
        }
    }
}

#[cold]
#[inline(never)]
fn signed<'a>(
    auth: &Authenticator,
    key: Option<u16>,
    mut packet: PacketBuilder<'a>,
) -> PacketBuilder<'a> {
    let demands = auth.peer_demands();
    if demands.is_empty() {
        return packet;
    }
    let at = packet.find(|kind| demands.has(kind));
    // If the chosen key was deleted, use the active key.
    let key = key.filter(|key| auth.keys().has(*key));
    let key = key.unwrap_or_else(|| auth.keys().active());
    if let (Some(at), Some(chunk)) = (at, auth.blank(key)) {
        packet.insert(at, &chunk);
        auth.sign(key, packet.written_from(at));
    }
    packet
}
