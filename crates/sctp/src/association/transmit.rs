//! Packet assembly: control chunks first, then the SACK, then DATA (RFC 9260 §6.10).

use std::collections::VecDeque;

use anabranch_transport::{Ecn, Nanos, Probe, Transmit};
use anabranch_wire::cause::{Cause, Causes};
use anabranch_wire::chunk::{
    Abort, CookieAck, CookieEcho, ErrorChunk, Heartbeat, Shutdown, ShutdownAck, ShutdownComplete,
};
use anabranch_wire::extension::ReConfig;
use anabranch_wire::packet::{CHUNK_HEADER, CommonHeader, PacketBuilder};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::tlv::HEADER;
use anabranch_wire::{Encode, Tsn};
use bytes::{Bytes, BytesMut};

use super::{Association, LastChunk, Reply};
use crate::handshake;
use crate::path::{PathId, mtu};
use crate::rx::Receiver;
use crate::state::{EstablishedState, State, Tcb};

/// Maximum number of transmissions of a COOKIE ECHO bundled with DATA.
const MAX_LADEN: u32 = 2;

impl Association {
    /// Appends the next packet of any kind to `out`. Returns `None` if no packet may be sent now.
    #[inline(never)]
    pub(super) fn poll_any(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if self.parting.is_some() {
            return self.write_parting(out);
        }
        let next = self.write_next(now, out);
        if next.is_none() {
            self.tx.taken_out();
        }
        next
    }

    #[inline(always)]
    fn write_next(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        // Only the INIT is sent before the peer's tag is known.
        if let State::CookieWait(wait) = &self.state {
            let due = wait.init.due;
            return due.then(|| self.write_init(now, out));
        }
        if self.waits_for_cookie_ack() {
            return None;
        }
        loop {
            self.give_up_due(now);
            let plain = self.is_plain();
            if !plain && self.asconf_due() {
                if let Some(transmit) = self.write_asconf(now, out) {
                    return Some(transmit);
                }
                continue;
            }
            if !plain && self.is_mute() {
                return None;
            }
            let data = if plain {
                self.tx.wants_to_send(now, &self.paths)
            } else {
                self.data_destination(now)
            };
            let control = if plain {
                self.owes_sack().then_some(self.sack_path)
            } else {
                self.next_control_destination()
            };
            let Some(path) = control.or(data) else {
                if plain && self.probes_nothing(now) {
                    return None;
                }
                return self.write_probe(now, out);
            };
            let len = if plain {
                self.write_plain(now, path, data, out)
            } else {
                self.write_packet(now, path, data, out)
            };
            if len > 0 {
                let ecn = self.take_field();
                let entry = self.paths.get(path);
                return Some(Transmit {
                    path: entry.path,
                    len,
                    ecn,
                    may_fragment: len > entry.max_packet + self.paths.reserved(),
                });
            }
            // The packet stayed empty. Try again if a reply was dropped because it exceeds the
            // packet size of the path, so that other control chunks may be due, or if a tail loss
            // probe was dropped because its data has been abandoned. In all other cases a retry
            // would also leave the packet empty.
            if !self.tx.drops_probe() && self.next_control_destination().is_none() {
                return self.write_probe(now, out);
            }
        }
    }

    /// Writes a path probe, if one is due.
    #[inline(never)]
    fn write_probe(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        if let Some(path) = self.heartbeat_due(now) {
            return Some(self.write_heartbeat(now, path, out));
        }
        let probe = self.pmtu_probe_due(now)?;
        Some(self.write_pmtu_probe(now, probe, out))
    }

    /// Whether the COOKIE ECHO was sent and no other packet can be sent before the COOKIE ACK.
    fn waits_for_cookie_ack(&self) -> bool {
        let State::Active(Tcb { stage, .. }) = &self.state else {
            return false;
        };
        matches!(stage, EstablishedState::CookieEchoed(echoed) if !echoed.echo.due)
            && self.replies.is_empty()
            && self.cookie_ack.is_none()
            && self.pending_control.are_none()
            && !self.owes_sack()
            && !self.tx.is_partially_reliable()
    }

    /// Whether only DATA, a SACK or a path probe can be due: no handshake, shutdown or reply is
    /// pending.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.state.is_established()
            && self.replies.is_empty()
            && self.cookie_ack.is_none()
            && !self.owes_extension_chunk()
            && self.pending_control.are_none()
    }

    pub(super) fn transmit(&self, path: PathId, len: usize) -> Transmit {
        Transmit {
            path: self.paths.get(path).path,
            len,
            ecn: Ecn::NotEct,
            may_fragment: false,
        }
    }

    pub(super) fn header(&self, verification_tag: u32) -> CommonHeader {
        CommonHeader {
            source_port: self.local_port,
            destination_port: self.remote_port,
            verification_tag,
        }
    }

    /// Common header of a packet to the peer, whose verification tag is known.
    #[inline]
    pub(super) fn header_to_peer(&self) -> CommonHeader {
        let tag = match &self.state {
            State::Active(known) => known.peer.tag,
            _ => 0,
        };
        self.header(tag)
    }

    /// Destination of the next packet with DATA, if DATA may be sent.
    fn data_destination(&self, now: Nanos) -> Option<PathId> {
        if self.may_send_data() {
            self.tx.wants_to_send(now, &self.paths)
        } else {
            None
        }
    }

    fn next_control_destination(&self) -> Option<PathId> {
        if let Some(retry) = self.state.retry().filter(|retry| retry.due) {
            return Some(retry.path);
        }
        // In COOKIE-WAIT only the INIT is sent, because the peer's tag is unknown.
        if self.is_closed() || matches!(self.state, State::CookieWait(_)) {
            return None;
        }
        let reply = self.replies.front().map(Reply::to);
        self.cookie_ack
            .or(reply)
            .or_else(|| self.request_destination())
            .or_else(|| self.extension_destination())
            .or_else(|| (self.owes_sack() && !self.is_held()).then_some(self.sack_path))
    }

    pub(super) fn may_send_data(&self) -> bool {
        self.state.sends_data() && !self.is_held()
    }

    /// Writes a packet with a SACK, DATA, or both to `path`, for an association that [is
    /// plain](Self::is_plain).
    #[inline(never)] // a handshake needs none of it
    fn write_plain(
        &mut self,
        now: Nanos,
        path: PathId,
        data: Option<PathId>,
        out: &mut BytesMut,
    ) -> usize {
        let limit = self.paths.get(path).max_packet;
        let mut packet = PacketBuilder::new(out, self.header_to_peer(), limit);
        self.push_sack(now, path, data, &mut packet);
        let key = match data == Some(path) {
            true => self.push_data(now, path, false, &mut packet),
            false => None,
        };
        self.seal_filled(key, packet, self.checksum_mode.wanted(false))
    }

    /// Writes one packet to `path` with the chunks that are due on it; returns its length, or 0.
    #[inline(always)]
    fn write_packet(
        &mut self,
        now: Nanos,
        path: PathId,
        data: Option<PathId>,
        out: &mut BytesMut,
    ) -> usize {
        let entry = self.paths.get(path);
        let (limit, rto) = (entry.max_packet, entry.rto.rto());
        let room = self.room_for_auth();
        let mut packet = PacketBuilder::new(out, self.header_to_peer(), limit - room);
        let echoed = self.push_cookie_echo(now, path, rto, &mut packet);
        self.push_cookie_ack(now, path, &mut packet);
        if !self.replies.is_empty() {
            self.push_replies(now, path, &mut packet);
        }
        if !self.pending_control.are_none() {
            self.push_request(now, path, &mut packet);
        }
        if self.owes_extension_chunk() {
            self.push_extension_chunks(now, path, &mut packet);
        }
        self.push_late_sack(now, path, data, &mut packet);
        if room > 0 {
            self.release_room(room, &mut packet);
        }
        let data = if echoed && self.takes_data_along() {
            self.tx.wants_to_send(now, &self.paths)
        } else {
            data
        };
        let key = match data == Some(path) {
            true => self.push_late_data(now, path, &mut packet),
            false => None,
        };
        self.seal_filled(key, packet, self.checksum_mode.wanted(echoed))
    }

    /// Whether DATA is bundled with the COOKIE ECHO that was just written (RFC 9260 §5.1 C). If two
    /// such packets were unanswered, they may have been too large for the path, so the next COOKIE
    /// ECHO is sent without DATA.
    #[inline(never)]
    fn takes_data_along(&self) -> bool {
        let echo = self.state.retry();
        self.config.data_with_cookie_echo && echo.is_none_or(|it| it.retransmissions < MAX_LADEN)
    }

    /// Adds DATA after control chunks; during a handshake there is usually none.
    #[inline(never)]
    fn push_late_data(
        &mut self,
        now: Nanos,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) -> Option<u16> {
        let last = matches!(self.state.stage(), Some(EstablishedState::ShutdownPending));
        self.push_data(now, path, last, packet)
    }

    /// Adds as much DATA as fits, and returns the AUTH key of its messages. `last`: the user sends
    /// no more data.
    #[inline(always)]
    fn push_data(
        &mut self,
        now: Nanos,
        path: PathId,
        last: bool,
        packet: &mut PacketBuilder<'_>,
    ) -> Option<u16> {
        self.push_cwr(packet);
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        tx.set_finishing(last);
        let before = tx.never_marked();
        let chunks = tx.fill(now, path, packet, &mut self.paths, &mut self.trace);
        let key = if chunks > 0 { tx.packet_key() } else { None };
        self.note_written(chunks, before);
        if chunks > 0 {
            self.note_data_sent();
        }
        key
    }

    /// Adds the COOKIE ECHO, which must be the first chunk of its packet, and an ERROR about
    /// unrecognized parameters of the INIT ACK (RFC 9260 §5.1 C).
    fn push_cookie_echo(
        &mut self,
        now: Nanos,
        path: PathId,
        rto: Nanos,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(EstablishedState::CookieEchoed(echoed)) = self.state.stage_mut() else {
            return false;
        };
        if !echoed.echo.due || echoed.echo.path != path {
            return false;
        }
        // The cookie is moved instead of cloned, because the reference count of a clone costs more
        // than the copy into the packet.
        let echo = CookieEcho {
            cookie: std::mem::take(&mut echoed.cookie),
        };
        // An INIT ACK and its cookie may be longer than a packet (RFC 9260 §3.3.3). The cookie is
        // returned complete, and IP fragments it.
        packet.make_room(echo.encoded_len());
        let pushed = packet.push(&echo);
        echoed.cookie = echo.cookie;
        if pushed.is_err() {
            // The cookie is too long for any IP packet. T1-cookie then ends the association.
            echoed.echo.sent(now, rto);
            return false;
        }
        if !echoed.unrecognized.is_empty() {
            report(&echoed.unrecognized, packet);
        }
        echoed.echo.sent(now, rto);
        true
    }

    /// Adds a COOKIE ACK, and a HEARTBEAT if the address is not verified (RFC 9260 §5.4).
    fn push_cookie_ack(&mut self, now: Nanos, path: PathId, packet: &mut PacketBuilder<'_>) {
        if self.cookie_ack != Some(path) || packet.push(&CookieAck).is_err() {
            return;
        }
        self.cookie_ack = None;
        if !self.paths.get(path).is_verified() {
            self.push_heartbeat(now, path, packet);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_heartbeat(&mut self, now: Nanos, path: PathId, packet: &mut PacketBuilder<'_>) {
        let info = self.send_heartbeat(now, path);
        let heartbeat = Heartbeat { info };
        // A COOKIE ACK and a HEARTBEAT fit into any packet.
        if packet.push(&heartbeat).is_ok() {
            self.count_heartbeat(now, path, heartbeat.encoded_len());
        }
    }

    /// Counts a HEARTBEAT that was sent. `bytes` includes all headers if it was alone in its
    /// packet.
    fn count_heartbeat(&mut self, now: Nanos, path: PathId, bytes: usize) {
        self.control.heartbeats += 1;
        self.count_heartbeat_bytes(now, path, bytes);
    }

    fn count_heartbeat_bytes(&mut self, now: Nanos, path: PathId, bytes: usize) {
        self.control.heartbeat_bytes += bytes as u64;
        self.trace
            .record(now, Probe::HeartbeatBytes, path.0.into(), bytes as f64);
    }

    /// Length in bytes of the headers before the first chunk of a packet to `path`.
    fn headers(&self, path: PathId) -> usize {
        let remote = self.paths.get(path).path.remote;
        mtu::ip_header(remote) + self.config.encapsulation + mtu::COMMON_HEADER
    }

    #[inline(never)]
    fn push_replies(&mut self, now: Nanos, path: PathId, packet: &mut PacketBuilder<'_>) {
        while let Some(reply) = self.replies.front() {
            let alone = packet.is_empty();
            let pushed = match reply {
                Reply::HeartbeatAck { to, copy } if *to == path => packet.push(copy),
                Reply::Error { to, causes } if *to == path => packet.push(&ErrorChunk {
                    causes: causes.clone(),
                }),
                Reply::AsconfAck { to, ack } if *to == path => packet.push(ack),
                Reply::ReConfig { to, parameters } if *to == path => packet.push(&ReConfig {
                    parameters: parameters.clone(),
                }),
                _ => return,
            };
            if pushed.is_err() && !packet.is_empty() {
                return;
            }
            let sent = self
                .replies
                .change(VecDeque::pop_front)
                .flatten()
                .filter(|_| pushed.is_ok());
            if let Some(Reply::HeartbeatAck { copy, .. }) = sent {
                let headers = if alone { self.headers(path) } else { 0 };
                let bytes = headers + copy.encoded_len();
                self.control.heartbeat_acks += 1;
                self.count_heartbeat_bytes(now, path, bytes);
            }
        }
    }

    /// Adds a SACK after control chunks, and SHUTDOWN or SHUTDOWN ACK.
    #[inline(always)]
    fn push_late_sack(
        &mut self,
        now: Nanos,
        path: PathId,
        data: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
    ) {
        let State::Active(Tcb { stage, .. }) = &self.state else {
            return;
        };
        // Usually neither a SACK nor a shutdown is due.
        let tells = |rx: &Receiver| rx.sack_due() || rx.sack_useful();
        if self.rx.as_deref().is_some_and(tells) || stage.is_shutting_down() {
            self.push_sack_and_end(now, path, data, packet);
        }
    }

    #[inline(never)]
    fn push_sack_and_end(
        &mut self,
        now: Nanos,
        path: PathId,
        data: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
    ) {
        self.push_sack(now, path, data, packet);
        self.push_end(now, path, packet);
    }

    /// Adds the SACK that is due, or one that is useful together with DATA (RFC 9260 §6.2).
    #[inline(always)]
    fn push_sack(
        &mut self,
        now: Nanos,
        path: PathId,
        data: Option<PathId>,
        packet: &mut PacketBuilder<'_>,
    ) {
        if path != self.sack_path {
            return;
        }
        let (State::Active(Tcb { stage, .. }), Some(rx)) = (&mut self.state, &mut self.rx) else {
            return;
        };
        if let EstablishedState::ShutdownSent(closing) = stage
            && closing.retry.due
            && closing.retry.path == path
            && rx.point_says_all()
        {
            return rx.point_told(); // by the SHUTDOWN of this packet (RFC 9260 §9.2)
        }
        if !(rx.sack_due() || (rx.sack_useful() && data == Some(path))) {
            return;
        }
        self.push_ecne(packet);
        if let Some(rx) = &mut self.rx {
            // If the packet is full, the SACK stays due for the next packet.
            let _ = rx.push_sack(now, packet, &mut self.trace);
        }
    }

    /// Adds SHUTDOWN or SHUTDOWN ACK.
    fn push_end(&mut self, now: Nanos, path: PathId, packet: &mut PacketBuilder<'_>) {
        let rto = self.paths.get(path).rto.rto();
        let cumulative_tsn_ack = Tsn(self.cumulative_tsn());
        let State::Active(Tcb { stage, .. }) = &mut self.state else {
            return;
        };
        let (closing, pushed) = match stage {
            EstablishedState::ShutdownSent(closing) if closing.retry.due => {
                (closing, packet.push(&Shutdown { cumulative_tsn_ack }))
            }
            EstablishedState::ShutdownAckSent(closing) if closing.retry.due => {
                (closing, packet.push(&ShutdownAck))
            }
            _ => return,
        };
        if closing.retry.path == path && pushed.is_ok() {
            closing.retry.sent(now, rto);
        }
    }

    /// Writes an INIT, alone in its packet and with tag 0 (RFC 9260 §6.10, §8.5.1 A).
    fn write_init(&mut self, now: Nanos, out: &mut BytesMut) -> Transmit {
        let own = self.own();
        let (header, vital) = (self.header(0), self.checksum_mode.wanted(true));
        let (mut path, mut preservative) = (PathId(0), None);
        if let State::CookieWait(wait) = &self.state {
            (path, preservative) = (wait.init.path, wait.cookie_preservative);
        }
        let entry = self.paths.get(path);
        if let State::CookieWait(wait) = &mut self.state {
            wait.init.sent(now, entry.rto.rto());
        }
        let init = handshake::init(&self.config, own, entry.path.remote, preservative);
        let mut packet = PacketBuilder::new(out, header, entry.max_packet);
        // The length of the parameters is limited to far less than any MTU.
        let _ = packet.push(&init);
        Transmit {
            len: packet.finish(vital),
            path: entry.path,
            ecn: Ecn::NotEct,
            may_fragment: false,
        }
    }

    /// Writes a HEARTBEAT into a separate packet, because DATA must not be sent to an unverified
    /// address.
    fn write_heartbeat(&mut self, now: Nanos, path: PathId, out: &mut BytesMut) -> Transmit {
        let info = self.send_heartbeat(now, path);
        let mut packet =
            PacketBuilder::new(out, self.header_to_peer(), self.paths.get(path).max_packet);
        let _ = packet.push(&Heartbeat { info });
        let len = self.seal(packet, self.checksum_mode.wanted(false));
        let headers = self.headers(path) - mtu::COMMON_HEADER;
        self.count_heartbeat(now, path, headers + len);
        self.transmit(path, len)
    }

    #[cold]
    #[inline(never)]
    fn write_parting(&mut self, out: &mut BytesMut) -> Option<Transmit> {
        let parting = self.parting.take()?;
        let path = match parting.chunk {
            LastChunk::Abort(_) => self.paths.choose_for_new_data(),
            LastChunk::ShutdownComplete(to) => to,
        };
        let mut packet = PacketBuilder::new(
            out,
            self.header(parting.peer_tag),
            self.paths.get(path).max_packet,
        );
        let pushed = match &parting.chunk {
            LastChunk::Abort(causes) => packet
                .push(&Abort {
                    tag_reflected: false,
                    causes: causes.clone(),
                })
                .or_else(|_| {
                    packet.push(&Abort {
                        tag_reflected: false,
                        causes: Causes::empty(),
                    })
                }),
            LastChunk::ShutdownComplete(_) => packet.push(&ShutdownComplete {
                tag_reflected: false,
            }),
        };
        debug_assert!(pushed.is_ok(), "a bare chunk fits any packet");
        let len = self.seal(packet, self.checksum_mode.wanted(false));
        Some(self.transmit(path, len))
    }
}

/// Adds an ERROR with those unrecognized parameters that fit next to the COOKIE ECHO.
#[cold]
#[inline(never)]
fn report(unrecognized: &[Bytes], packet: &mut PacketBuilder<'_>) {
    let room = packet.room().saturating_sub(CHUNK_HEADER + HEADER) / 4 * 4;
    let parameters = Parameters::from_bytes(joined(unrecognized, room));
    if !parameters.is_empty() {
        let causes = Causes::of(&[Cause::UnrecognizedParameters { parameters }]);
        let _ = packet.push(&ErrorChunk { causes });
    }
}

/// Concatenates as many parameters as fit into `room` bytes. Each is padded except the last, whose
/// padding belongs to the chunk (RFC 9260 §3.2).
fn joined(parameters: &[Bytes], room: usize) -> Bytes {
    let mut joined = BytesMut::new();
    for parameter in parameters {
        let start = joined.len().next_multiple_of(4);
        if start + parameter.len() <= room {
            joined.resize(start, 0);
            joined.extend_from_slice(parameter);
        }
    }
    joined.freeze()
}
