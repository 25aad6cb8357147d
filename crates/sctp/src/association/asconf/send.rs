//! Requests of this side: ASCONF, its T-4 timer, and the ASCONF-ACK (RFC 5061 §5.1).

use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos, Transmit};
use anabranch_wire::Encode;
use anabranch_wire::cause::Cause;
use anabranch_wire::chunk::{CookieAck, kind};
use anabranch_wire::extension::{AsconfAck, ExtensionCause};
use anabranch_wire::packet::PacketBuilder;
use anabranch_wire::tlv::TlvList;
use bytes::BytesMut;

use super::super::{Association, ControlTask, Reply};
use crate::address::is_unicast;
use crate::asconf::{
    AddressChange, AddressChangeError, AddressChangeOutcome, AsconfSender, MAX_REQUESTS,
};
use crate::discard::{DiscardCounts, DiscardReason};
use crate::event::{CloseReason, Event, Violation};

impl Association {
    /// Requests changes of this side's addresses from the peer, in this order and in one chunk (RFC
    /// 5061 §5.1); at most ten changes. [`Event::AddressChanged`] reports each outcome when the
    /// peer has responded. Requests of later calls wait until then.
    ///
    /// A removed address stops being used as a source at once; an added address is used only after
    /// the peer has agreed. If one call removes the last address and adds another, only the ASCONF
    /// is sent until the peer has agreed; then data in flight is retransmitted. A path whose source
    /// address changes is reset to the RTO and cwnd of a new path.
    ///
    /// # Errors
    /// See [`AddressChangeError`]. After an error no change was requested.
    pub fn change_addresses(
        &mut self,
        now: Nanos,
        changes: &[AddressChange],
    ) -> Result<(), AddressChangeError> {
        self.judge_changes(changes)?;
        let own = self.local_addresses();
        let asking = self.asking_mut();
        let asking = asking.ok_or(AddressChangeError::NotNegotiated)?;
        if !asking.has_begun() {
            asking.begin(own);
        }
        asking.request(changes.to_vec());
        self.advance_address_changes();
        self.settle_sources(now);
        Ok(())
    }

    /// Local addresses after all requests have been performed.
    pub fn requested_addresses(&self) -> Vec<IpAddr> {
        match self.asconf_sender() {
            Some(asking) if asking.has_begun() => asking.afterwards(),
            _ => self.local_addresses(),
        }
    }

    /// Checks whether `changes` can be requested now.
    fn judge_changes(&self, changes: &[AddressChange]) -> Result<(), AddressChangeError> {
        if !self.state.sends_data() {
            return Err(AddressChangeError::NotEstablished);
        }
        let asking = self
            .asconf_sender()
            .ok_or(AddressChangeError::NotNegotiated)?;
        if changes.len() > MAX_REQUESTS {
            let most = MAX_REQUESTS;
            return Err(AddressChangeError::TooMany { most });
        }
        if !asking.has_room(changes.len()) {
            let most = AsconfSender::MAX_PENDING_REQUESTS;
            return Err(AddressChangeError::TooMany { most });
        }
        let mut after = self.requested_addresses();
        if after.is_empty() {
            return Err(AddressChangeError::Unknown);
        }
        for change in changes {
            let address = change.address();
            if !asking.is_understood(change) {
                return Err(AddressChangeError::NotUnderstood);
            }
            let there = after.contains(&address);
            match change.adds() {
                Some(_) if !is_unicast(address) => {
                    return Err(AddressChangeError::NotUnicast(address));
                }
                Some(_) if there => return Err(AddressChangeError::Exists(address)),
                Some(_) if !self.reaches_peer(&[address]) => {
                    return Err(AddressChangeError::Family(address));
                }
                None if !there => return Err(AddressChangeError::NoSuchAddress(address)),
                _ => {}
            }
            change.apply(&mut after);
            if !self.reaches_peer(&after) {
                return Err(AddressChangeError::LastAddress(address));
            }
        }
        Ok(())
    }

    fn asconf_sender(&self) -> Option<&AsconfSender> {
        Some(&self.address_changes()?.sender)
    }

    pub(super) fn asking_mut(&mut self) -> Option<&mut AsconfSender> {
        Some(&mut self.address_changes_mut()?.sender)
    }

    /// Sends queued requests to the peer, if no ASCONF is outstanding.
    fn advance_address_changes(&mut self) {
        if !self.may_send_asconf() {
            return;
        }
        let path = self.paths.choose_for_new_data();
        let Some(asking) = self.asking_mut() else {
            return;
        };
        let failed = asking.launch(path);
        let due = asking.retry().is_some_and(|it| it.due);
        if due {
            self.pending_control.set(ControlTask::Asconf);
        }
        self.tell_failed(failed);
    }

    /// Whether an ASCONF must be sent now.
    #[cold]
    pub(in crate::association) fn asconf_due(&self) -> bool {
        self.pending_control.has(ControlTask::Asconf) && self.may_send_asconf()
    }

    /// Writes the ASCONF that is due into a separate packet, after its AUTH, because it may need a
    /// source address that no other chunk may use yet.
    #[cold]
    pub(in crate::association) fn write_asconf(
        &mut self,
        now: Nanos,
        out: &mut BytesMut,
    ) -> Option<Transmit> {
        self.pending_control.clear(ControlTask::Asconf);
        let (wished, way) = (self.asconf_sender()?.retry()?.path, self.way_of_asconf());
        let (id, path) = way.unwrap_or_else(|| (wished, self.paths.get(wished).path));
        let rto = self.paths.get(id).rto.rto();
        let retry = self.asking_mut()?.retry_mut()?;
        retry.path = id;
        retry.sent(now, rto);
        // If no source address is available, retry at the next expiration of T-4.
        way?;
        let asconfs: Vec<_> = self
            .asconf_sender()?
            .flights()
            .map(|it| it.asconf.clone())
            .collect();
        let limit = self.paths.get(id).max_packet - self.room_for_auth();
        let mut packet = PacketBuilder::new(out, self.header_to_peer(), limit);
        // A long ASCONF may exceed a very small path MTU; IP then fragments the packet.
        let all: usize = asconfs.iter().map(Encode::encoded_len).sum();
        packet.make_room(CookieAck.encoded_len() + all);
        self.push_cookie_ack_before(&mut packet);
        for asconf in &asconfs {
            let _ = packet.push(asconf);
        }
        if self.is_mute() {
            self.push_answers(&mut packet);
        }
        let len = self.seal(packet, self.checksum_mode.wanted(false));
        self.control.rare().asconfs += 1;
        Some(Transmit {
            path,
            len,
            ecn: Ecn::NotEct,
            may_fragment: len > self.paths.get(id).max_packet + self.paths.reserved(),
        })
    }

    /// Adds a COOKIE ACK before an ASCONF while no other chunks may be sent. The peer accepts no
    /// ASCONF before a COOKIE ACK (RFC 9260 §5.1 E), and the first COOKIE ACK may have been lost.
    /// Usually a COOKIE ECHO triggers the COOKIE ACK. If the ASCONF was retransmitted and no SACK
    /// was received so far, the COOKIE ACK is sent even without a COOKIE ECHO, because the peer may
    /// send its COOKIE ECHO to an address that no longer exists. An established peer discards the
    /// COOKIE ACK (§5.2.5).
    fn push_cookie_ack_before(&mut self, packet: &mut PacketBuilder<'_>) {
        if !self.is_mute() {
            return;
        }
        let asked = self.cookie_ack.take().is_some();
        let retry = self.asconf_sender().and_then(AsconfSender::retry);
        let in_vain = retry.is_some_and(|it| it.retransmissions > 0);
        if asked || (in_vain && self.tx.statistics().sacks == 0) {
            let _ = packet.push(&CookieAck);
        }
    }

    /// Adds the ASCONF-ACKs for the peer's ASCONFs to a packet that contains an ASCONF. From an
    /// address that the peer has not accepted, a response can be sent only together with an ASCONF
    /// (RFC 5061 §5.3 F1). Such a response may be necessary, because the peer may also have no
    /// usable address left.
    fn push_answers(&mut self, packet: &mut PacketBuilder<'_>) {
        let waits = |reply: &Reply| match reply {
            Reply::AsconfAck { ack, .. } => packet.push(ack).is_err(),
            _ => true,
        };
        self.replies.change(|it| it.retain(waits));
    }

    /// Schedules a retransmission of the ASCONF together with a response to the peer's ASCONF,
    /// because a response cannot be sent alone while no other chunks may be sent.
    pub(super) fn answer_beside_asconf(&mut self) {
        let flying = self.asconf_sender().is_some_and(|it| it.retry().is_some());
        if self.is_mute() && flying {
            self.pending_control.set(ControlTask::Asconf);
        }
    }

    /// Expiration time of T-4.
    #[inline]
    pub(in crate::association) fn asconf_deadline(&self) -> Option<Nanos> {
        let retry = self.asconf_sender()?.retry()?;
        retry
            .deadline
            .filter(|_| !retry.due && self.may_send_asconf())
    }

    /// Handles the expiration of T-4: counts an error of the path and of the association, and
    /// retransmits the same chunk, over another path if possible (RFC 5061 §5.1 B1 to B5).
    pub(in crate::association) fn handle_asconf_timeout(&mut self, now: Nanos) {
        let Some(path) = self
            .asconf_sender()
            .and_then(AsconfSender::retry)
            .map(|it| it.path)
        else {
            return;
        };
        self.count_path_error(now, path);
        self.count_association_error();
        if self.is_closed() {
            return;
        }
        self.back_off(now, path);
        let next = self.paths.alternate_to(path);
        let Some(failed) = self.asking_mut().map(|it| it.again(next)) else {
            return;
        };
        self.pending_control.set(ControlTask::Asconf);
        self.tell_failed(failed);
        self.settle_sources(now);
    }

    /// Processes an ASCONF-ACK (RFC 5061 §5.1 A5 to A8). An ASCONF-ACK with a serial number that
    /// was never used, while no ASCONF is outstanding, is illegal (§4.3.4, §5.3 F0).
    pub(in crate::association) fn on_asconf_ack(
        &mut self,
        now: Nanos,
        ack: &AsconfAck,
        discards: &mut DiscardCounts,
    ) {
        let Some(asking) = self.asconf_sender() else {
            return discards.count(DiscardReason::WrongState);
        };
        let Some(retry) = asking.retry().copied() else {
            discards.count(DiscardReason::BadAsconf);
            let ahead = ack.serial.wrapping_sub(asking.next_serial());
            if ahead < 1 << 31 {
                self.refuse_asconf_ack();
            }
            return;
        };
        if !asking.expects(ack.serial) {
            return discards.count(DiscardReason::BadAsconf);
        }
        self.error_count = 0;
        let outcomes = self.asking_mut().map(|it| it.settle(ack));
        if self.asconf_sender().is_none_or(|it| it.retry().is_none()) {
            self.pending_control.clear(ControlTask::Asconf);
        }
        for (change, outcome) in outcomes.unwrap_or_default() {
            self.events
                .push_back(Event::AddressChanged { change, outcome });
        }
        self.settle_sources(now);
        if !self.paths.get(retry.path).disowned {
            // The RTT is not measured if the source address of the path changed in the meantime.
            if let Some(sent) = retry.sent_once_at {
                let rtt = now.saturating_sub(sent);
                let entry = self.paths.get_mut(retry.path);
                entry.measure_rtt(now, retry.path, rtt, &mut self.trace);
            }
            if self.paths.get(retry.path).verified {
                self.revive_path(now, retry.path);
            }
        }
        self.advance_address_changes();
        if self.pending_control.has(ControlTask::Asconf) {
            self.settle_sources(now);
        }
        self.advance_shutdown(now);
    }

    fn refuse_asconf_ack(&mut self) {
        let causes = TlvList::of(&[ExtensionCause::IllegalAsconfAck]);
        let cause = TlvList::<Cause>::from_bytes(causes.as_bytes().clone());
        if let Some(Ok(cause)) = cause.iter().next() {
            let violation = Violation::Protocol("illegal ASCONF-ACK");
            self.abort_with(cause, CloseReason::PeerViolation(violation));
        }
    }

    /// Processes the peer's report of an unrecognized `chunk`. If this is the outstanding ASCONF,
    /// no further ASCONFs are sent (RFC 5061 §5.1 A9).
    pub(in crate::association) fn on_unrecognized_chunk(&mut self, now: Nanos, chunk: &[u8]) {
        let retry = self.asconf_sender().and_then(AsconfSender::retry);
        let unanswered = retry.is_some_and(|it| it.deadline.is_some());
        if unanswered && chunk.first() == Some(&kind::ASCONF) {
            self.end_address_changes(true);
            self.settle_sources(now);
        }
    }

    /// Cancels all outstanding and queued address changes.
    pub(in crate::association) fn give_up_address_changes(&mut self) {
        self.end_address_changes(false);
    }

    fn end_address_changes(&mut self, forever: bool) {
        let Some(asking) = self.asking_mut() else {
            return;
        };
        let open = asking.give_up(forever);
        self.pending_control.clear(ControlTask::Asconf);
        self.tell_failed(open);
    }

    fn tell_failed(&mut self, changes: Vec<AddressChange>) {
        let outcome = AddressChangeOutcome::Failed;
        let told = changes.into_iter();
        let told = told.map(|change| Event::AddressChanged { change, outcome });
        self.events.extend(told);
    }
}
