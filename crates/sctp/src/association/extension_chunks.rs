//! Chunks that RFC 9260 does not define: chunks of negotiated extensions, and unknown chunk types.

use anabranch_transport::{Nanos, Path};
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::encode::padded;
use anabranch_wire::extension::Extension;
use anabranch_wire::packet::{CHUNK_HEADER, COMMON_HEADER, PacketBuilder, RawChunk};
use anabranch_wire::tlv;
use bytes::{Bytes, BytesMut};

use super::{Association, Reply};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::path::PathId;
use crate::state::{EstablishedState, State};

impl Association {
    /// Processes a chunk of a negotiated extension, or of an unknown type.
    pub(super) fn on_extension_chunk(
        &mut self,
        now: Nanos,
        path: Path,
        raw: RawChunk,
        discards: &mut DiscardCounts,
    ) -> bool {
        let spoken = match &self.state {
            State::Active(known) => known.extensions.take_chunk(raw.kind),
            _ => false,
        };
        if !spoken {
            return self.on_unknown(path, &raw, discards);
        }
        match Extension::decode(raw) {
            Ok(Extension::ForwardTsn(forward)) => {
                let from = self.paths.find(path.remote).unwrap_or(self.sack_path);
                let from = self.paths.verified(from);
                self.on_forward_tsn(now, from, &forward, discards);
            }
            Ok(Extension::ReConfig(chunk)) => self.on_re_config(now, path, &chunk, discards),
            Ok(chunk @ (Extension::IData(_) | Extension::IForwardTsn(_))) => {
                self.on_interleaved(now, path, chunk, discards);
            }
            Ok(Extension::Asconf(asconf)) => self.on_asconf(now, path, &asconf, discards),
            Ok(Extension::AsconfAck(ack)) => self.on_asconf_ack(now, &ack, discards),
            // AUTH was processed before the other chunks of its packet.
            Ok(Extension::Auth(_)) => {}
            Ok(_) => discards.count(DiscardReason::WrongState),
            Err(_) => discards.count(DiscardReason::ChunkFields),
        }
        true
    }

    /// Whether an extension chunk is due that is neither a reply nor a retransmission.
    #[inline(always)]
    pub(super) fn owes_extension_chunk(&self) -> bool {
        self.tx.forward_due()
    }

    /// Destination of the first extension chunk that is due, if it can be sent now.
    pub(super) fn extension_destination(&self) -> Option<PathId> {
        self.forward_destination()
    }

    /// Adds the extension chunks that are due on `path` to a packet, after the control chunks and
    /// before SACK and DATA.
    #[inline(never)]
    pub(super) fn push_extension_chunks(
        &mut self,
        now: Nanos,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) {
        self.push_forward_tsn(now, path, packet);
    }

    fn on_unknown(&mut self, path: Path, raw: &RawChunk, discards: &mut DiscardCounts) -> bool {
        discards.count(DiscardReason::UnknownChunk);
        let action = raw.action();
        // Before the COOKIE ACK, no packet may follow the COOKIE ECHO (RFC 9260 §5.1 C).
        if action.report
            && !matches!(self.state.stage(), Some(EstablishedState::CookieEchoed(_)))
            && let Some(to) = self.paths.find(path.remote)
        {
            if !self.may_reply() {
                discards.count(DiscardReason::RateLimited);
                return !action.stop;
            }
            let to = self.paths.verified(to);
            let chunk = reported(raw.whole(), self.paths.get(to).max_packet);
            let causes = Causes::of(&[Cause::UnrecognizedChunkType { chunk }]);
            self.reply(Reply::Error { to, causes }, discards);
        }
        !action.stop
    }
}

/// Unrecognized chunk for an ERROR in a packet of at most `most` bytes: complete and padded, or
/// truncated with its length adjusted.
fn reported(chunk: &Bytes, most: usize) -> Bytes {
    let room = most.saturating_sub(COMMON_HEADER + CHUNK_HEADER + tlv::HEADER) / 4 * 4;
    let mut whole = BytesMut::from(&chunk[..chunk.len().min(room)]);
    if whole.len() < chunk.len() {
        let length = whole.len() as u16;
        whole[2..CHUNK_HEADER].copy_from_slice(&length.to_be_bytes());
    }
    whole.resize(padded(whole.len()), 0);
    whole.freeze()
}
