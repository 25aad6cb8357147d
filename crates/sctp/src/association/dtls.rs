//! DTLS chunk of an association: seals and opens packets, and runs the key management
//! ([`crate::dtls_chunk`], draft-ietf-tsvwg-sctp-dtls-chunk-04 §5).

use anabranch_dtls::record::HEADER;
use anabranch_dtls::{KeyId, KeyManagementAction, OpenError};
use anabranch_transport::{Nanos, Path};
use anabranch_wire::chunk::kind;
use anabranch_wire::extension::{Dtls, PPID_DTLS_KEY_MANAGEMENT};
use anabranch_wire::packet::{Chunks, Frame, PacketBuilder};
use anabranch_wire::serial::Tsn;
use bytes::{Bytes, BytesMut};

use super::Association;
use crate::cookie::Cookie;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::dtls_chunk::{DTLS_OVERHEAD, DtlsTerms, Phase, SEALED_BEHIND, SEALED_FRONT};
use crate::event::Event;
use crate::rx::Receiver;
use crate::send_options::SendOptions;

/// Stream of key management messages (draft-porfiri-tsvwg-sctp-dtls-handshake §4).
const KEY_STREAM: u16 = 0;
/// The association is aborted if its keys can seal fewer further packets than this. The ABORT
/// itself must still be sealed.
const MIN_LEFT: u64 = 65_536;
/// Protocol violation reported to a peer that sends user data without protection.
const CLEAR_DATA: &str = "user data that is not protected";

impl Association {
    /// Whether the user must not send a message yet, because it would not be protected. A user that
    /// is the key management sends key management messages at any time after the handshake, and
    /// other messages as soon as there are keys to send.
    pub(super) fn waits_for_keys(&self, ppid: Option<u32>) -> bool {
        let Some(dtls) = &self.dtls else { return false };
        let by_user = dtls.method.is_none() && dtls.phase == Phase::Keying;
        let is_allowed = ppid == Some(PPID_DTLS_KEY_MANAGEMENT) || dtls.contexts.seals();
        !(dtls.requires_protection() || by_user && is_allowed)
    }

    /// Whether events must be withheld from the user, because keys are being negotiated and
    /// [`Event::Established`] has not been pushed.
    #[inline]
    pub(super) fn withholds_events(&self) -> bool {
        let Some(dtls) = &self.dtls else { return false };
        dtls.phase == Phase::Keying && dtls.method.is_some() && !self.is_closed()
    }

    /// Applies the negotiated `terms`; `None` if the DTLS chunk is not used.
    #[inline(always)]
    pub(super) fn settle_dtls(&mut self, terms: Option<&DtlsTerms>) {
        if terms.is_some() || self.dtls.is_some() {
            self.settle_dtls_of(terms);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_dtls_of(&mut self, terms: Option<&DtlsTerms>) {
        let former = self.dtls.take();
        let Some(terms) = terms else {
            return self.paths.reserve(0);
        };
        let seed = self.random.draw(|it| it.key());
        let mut dtls = self.config.dtls_chunk([0; 32], seed);
        dtls.agree(terms);
        if let Some(former) = former {
            dtls.random = former.random;
            dtls.inherit(*former);
        }
        let manages_keys = dtls.method.is_some();
        self.dtls = Some(Box::new(dtls));
        if let Some(rx) = &mut self.rx {
            // The receiver exists already if an extension needs it before the first DATA.
            rx.expect_key_messages(manages_keys);
        }
        self.slow_send = true;
        self.paths.reserve(DTLS_OVERHEAD);
    }

    /// Starts the key management of an established association. Returns whether
    /// [`Event::Established`] can be reported now.
    #[cold]
    #[inline(never)]
    pub(super) fn start_keys(&mut self, now: Nanos) -> bool {
        let Some(dtls) = &mut self.dtls else {
            return true;
        };
        let protected = dtls.start(now);
        if dtls.method.is_none()
            && let Some(agreement) = dtls.agreement()
        {
            let agreement = Box::new(agreement.clone());
            self.events.push_back(Event::KeysRequired(agreement));
        }
        self.manage_keys(now);
        protected
    }

    /// Seals a packet. A packet that cannot be sealed is dropped, and the returned length is 0.
    #[cold]
    #[inline(never)]
    pub(super) fn seal_in_dtls(&mut self, mut packet: PacketBuilder<'_>, checksum: bool) -> usize {
        let Some(dtls) = &mut self.dtls else {
            return packet.finish(checksum);
        };
        if !dtls.contexts.seals() {
            return packet.finish(checksum);
        }
        if !dtls.seal(packet.enclose(SEALED_FRONT, SEALED_BEHIND)) {
            return 0;
        }
        packet.finish(checksum)
    }

    /// Number of bytes by which sealing enlarges a packet.
    pub(super) fn sealing_len(&self) -> usize {
        let seals = self.dtls.as_ref().is_some_and(|it| it.contexts.seals());
        if seals { DTLS_OVERHEAD } else { 0 }
    }

    /// Whether a packet whose first chunk is `kind` must be discarded because it is not protected.
    #[inline]
    pub(super) fn refuses_unprotected(&self, kind: u8) -> bool {
        let Some(dtls) = &self.dtls else { return false };
        !dtls.is_opened() && !dtls.admits_clear(kind)
    }

    /// Whether a COOKIE ECHO must be discarded because it is not protected.
    pub(crate) fn refuses_clear_cookie(&self) -> bool {
        self.refuses_unprotected(kind::COOKIE_ECHO)
    }

    /// Whether `cookie` must not restart the association. The peer may be authentic, but the cookie
    /// may describe an association without the DTLS chunk, because an attacker changed the INIT.
    pub(crate) fn refuses_restart(&self, cookie: &Cookie) -> bool {
        self.dtls.as_ref().is_some_and(|it| {
            it.refuses_restart() || it.requires_protection() && cookie.dtls.is_none()
        })
    }

    /// Whether this end is restarting the association with saved restart keys.
    pub(super) fn restarts_with_keys(&self) -> bool {
        self.dtls.as_ref().is_some_and(|it| it.restarts())
    }

    /// Whether DTLS chunks can be processed: the DTLS chunk was negotiated, or this end is
    /// restarting the association with restart keys.
    pub(crate) fn key_agreement_or_restart(&self) -> bool {
        let dtls = self.dtls.as_ref();
        dtls.is_some_and(|it| it.agreement().is_some() || it.contexts.opens_restarts())
    }

    /// Opens a DTLS chunk. Returns its chunks, preceded by the common header of the packet.
    pub(crate) fn open_dtls(&mut self, header: &[u8], chunk: &Dtls) -> Result<Bytes, OpenError> {
        let dtls = self.dtls.as_mut().ok_or(OpenError::NoKey)?;
        // The common header overwrites the end of the record header, so that the chunks need not be
        // moved.
        let front = header.len() - HEADER;
        let mut packet = BytesMut::with_capacity(front + chunk.record.len());
        packet.resize(front, 0);
        packet.extend_from_slice(&chunk.record);
        let content = dtls.open(chunk.restart, &mut packet[front..])?;
        packet[..header.len()].copy_from_slice(header);
        packet.truncate(front + content.end);
        Ok(packet.freeze())
    }

    /// Keys that opened the current packet.
    pub(crate) fn opened_by(&self) -> Option<KeyId> {
        self.dtls.as_ref()?.opened_by()
    }

    /// Continues to process a packet that `keys` opened, until [`Self::end_dtls`].
    pub(crate) fn resume_opened(&mut self, keys: KeyId) {
        if let Some(dtls) = &mut self.dtls {
            dtls.resume_packet(keys);
        }
    }

    /// Marks the packet of a DTLS chunk as processed.
    pub(crate) fn end_dtls(&mut self) {
        if let Some(dtls) = &mut self.dtls {
            dtls.end_packet();
        }
    }

    /// Counts a packet that was discarded because it is not protected.
    pub(crate) fn count_unprotected(&mut self, discards: &mut DiscardCounts) {
        discards.count(DiscardReason::Unprotected);
        if let Some(dtls) = &mut self.dtls {
            dtls.dropped_unprotected += 1;
        }
    }

    /// Like [`Association::handle_chunks`], if the DTLS chunk is offered or used.
    pub(super) fn take_protected(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'_>,
        rest: Chunks<'_>,
        behind: bool,
        discards: &mut DiscardCounts,
    ) {
        if self.refuses_unprotected(first.kind) {
            return self.count_unprotected(discards);
        }
        if !self.look_at_chunks(first, rest.clone(), discards) {
            return;
        }
        if let Some(dtls) = &mut self.dtls {
            dtls.now = now;
        }
        self.take_chunks(now, path, first, rest, behind, discards);
        self.manage_keys(now);
    }

    /// Checks that all chunks of a packet are protected as required, before any of them is
    /// processed. Returns `false` if the packet must be discarded.
    fn look_at_chunks(
        &mut self,
        first: Frame<'_>,
        mut rest: Chunks<'_>,
        discards: &mut DiscardCounts,
    ) -> bool {
        let Some(dtls) = &mut self.dtls else {
            return true;
        };
        let keyed = dtls.phase == Phase::Keying && dtls.had_opening_keys();
        let clear = !dtls.is_opened();
        let mut next = Some(first);
        while let Some(frame) = next {
            if frame.kind == kind::DTLS && dtls.agreement().is_some() {
                discards.count(DiscardReason::BundledDtls);
                return false;
            }
            if clear && !dtls.admits_clear(frame.kind) {
                self.count_unprotected(discards);
                return false;
            }
            if matches!(frame.kind, kind::DATA | kind::I_DATA) {
                // The peer has keys, so new data must be protected. Retransmissions of known data
                // are still acknowledged.
                if keyed && clear && !self.rx.as_ref().is_some_and(|rx| is_known(frame, rx)) {
                    self.count_unprotected(discards);
                    return false;
                }
            }
            next = rest.next_frame().and_then(Result::ok);
        }
        true
    }

    /// Passes messages to the key management and executes its requests.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_keys(&mut self, now: Nanos) {
        self.take_key_messages(now);
        let Some(dtls) = &mut self.dtls else { return };
        dtls.now = now;
        if dtls.rekeys()
            && let Some(method) = &mut dtls.method
        {
            method.rekey(now);
        }
        if dtls.contexts.left_to_seal() < MIN_LEFT {
            return self.refuse_protocol("the keys are exhausted");
        }
        while let Some(action) = self.next_key_action() {
            self.apply(action);
            if self.is_closed() {
                return;
            }
        }
        self.send_key_messages();
    }

    /// Whether unprotected user data is buffered although there are no keys yet. An authentic peer
    /// does not send such data, because it waits for the answer to its key management message.
    fn holds_clear_data(&self) -> bool {
        let Some(dtls) = &self.dtls else { return false };
        let keyless = dtls.phase == Phase::Keying && dtls.contexts.newest_opening().is_none();
        keyless && self.rx.as_ref().is_some_and(|it| !it.holds_nothing())
    }

    fn next_key_action(&mut self) -> Option<KeyManagementAction> {
        self.dtls.as_mut()?.method.as_mut()?.poll()
    }

    fn apply(&mut self, action: KeyManagementAction) {
        if matches!(action, KeyManagementAction::InstallOpening(..)) && self.holds_clear_data() {
            // The user could not distinguish buffered unprotected data from protected data.
            return self.refuse_protocol(CLEAR_DATA);
        }
        let Some(dtls) = &mut self.dtls else { return };
        let installed = match action {
            KeyManagementAction::Send(message) => {
                dtls.outbox.push_back(message.into());
                Ok(())
            }
            KeyManagementAction::InstallOpening(id, keys) => dtls.install_opening(id, &keys),
            KeyManagementAction::InstallSealing(id, keys) => {
                let installed = dtls.install_sealing(id, &keys);
                if id.restart && dtls.restart_keys().is_some_and(|it| it.epoch == id.epoch) {
                    self.events.push_back(Event::RestartKeys);
                }
                installed
            }
            KeyManagementAction::Remove(id) => {
                dtls.remove(id);
                Ok(())
            }
            KeyManagementAction::Authenticated(identity) => {
                dtls.identity = Some(identity.clone());
                self.events
                    .push_back(Event::PeerAuthenticated(Box::new(identity)));
                Ok(())
            }
            KeyManagementAction::Protect => {
                self.protection_mut().require();
                Ok(())
            }
            KeyManagementAction::Fail(why) => return self.refuse_protocol(why),
            _ => Ok(()),
        };
        if installed.is_err() {
            self.refuse_protocol("key management installed keys of a wrong epoch");
        }
    }

    /// Passes received key management messages to the key management method, ahead of all other
    /// buffered messages.
    pub(super) fn take_key_messages(&mut self, now: Nanos) {
        let (Some(dtls), Some(rx)) = (&mut self.dtls, &mut self.rx) else {
            return;
        };
        let delayed = dtls.delays_messages(self.tx.is_drained());
        let Some(method) = &mut dtls.method else {
            return;
        };
        while !delayed && let Some(message) = rx.poll_key_message() {
            method.handle_message(now, &message.payload.into_bytes());
        }
        let keyless = dtls.phase == Phase::Keying && dtls.contexts.newest_opening().is_none();
        if keyless
            && rx
                .next_ppid()
                .is_some_and(|it| it != PPID_DTLS_KEY_MANAGEMENT)
        {
            // Unprotected data must not reach the user.
            self.rx = None;
            self.refuse_protocol(CLEAR_DATA);
        }
    }

    /// Whether the user may read messages. First removes key management messages from the receiver.
    #[cold]
    #[inline(never)]
    pub(super) fn may_read(&mut self) -> bool {
        let Some(dtls) = &self.dtls else { return true };
        let now = dtls.now;
        if self.rx.as_ref().is_some_and(|it| it.has_key_messages()) {
            self.manage_keys(now);
        }
        !self.withholds_events()
    }

    fn send_key_messages(&mut self) {
        while let Some(payload) = self.dtls.as_mut().and_then(|it| it.outbox.pop_front()) {
            let options = SendOptions::on(KEY_STREAM).with_ppid(PPID_DTLS_KEY_MANAGEMENT);
            // The message has no lifetime, so the time passed here has no effect.
            let sent = self.sender().send(0, Bytes::clone(&payload), &options);
            if sent.is_err() {
                // The send buffer is full, so the message waits. Each SACK triggers another attempt
                // to send it.
                if let Some(dtls) = &mut self.dtls {
                    dtls.outbox.push_front(payload);
                }
                return;
            }
        }
    }

    /// Next deadline of the key management.
    pub(super) fn key_deadline(&self) -> Option<Nanos> {
        let method = self.dtls.as_ref()?.method.as_ref()?;
        method.poll_timeout()
    }

    /// Handles the expiration of [`Self::key_deadline`].
    pub(super) fn handle_key_timeout(&mut self, now: Nanos) {
        if let Some(method) = self.dtls.as_mut().and_then(|it| it.method.as_mut()) {
            method.handle_timeout(now);
            self.manage_keys(now);
        }
    }
}

/// Whether this DATA or I-DATA chunk is a duplicate: its TSN is not above the cumulative TSN.
fn is_known(frame: Frame<'_>, rx: &Receiver) -> bool {
    let tsn = frame.value().first_chunk().copied().map(u32::from_be_bytes);
    tsn.is_some_and(|it| Tsn(it).le(rx.cumulative_tsn()))
}
