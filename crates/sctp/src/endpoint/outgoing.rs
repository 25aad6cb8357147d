//! What an endpoint sends: answers that belong to no association, then each association in turn.

use std::ops::ControlFlow;

#[cfg(doc)]
use anabranch_transport::Transport;
use anabranch_transport::{Ecn, Nanos, Transmit};
use bytes::BytesMut;

use super::Endpoint;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::outgoing::Outgoing;
use crate::tx::{Message, SendError};

impl Endpoint {
    /// As [`Transport::poll_transmit`], and says which UDP port the packet goes to.
    pub fn poll_outgoing(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Outgoing> {
        let mut first = None;
        self.poll_all(now, out, |outgoing, _| {
            first = Some(outgoing);
            ControlFlow::Break(())
        });
        first
    }

    /// All packets that may be sent now, in one call: what does not change between them is asked once. `each` is told of every
    /// packet when it has been appended to `out`, and may take it from there; after [`ControlFlow::Break`] the rest is left to the
    /// next call.
    pub fn poll_all(
        &mut self,
        now: Nanos,
        out: &mut BytesMut,
        each: impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) {
        self.poll_each(now, false, out, each);
    }

    /// As [`Endpoint::poll_all`], but packets may lack their checksum ([`Outgoing::unsummed`]). Who gathers many packets before they are sent
    /// computes it for less at the end: a processor has to wait for bytes that it has only just written.
    pub fn poll_all_unsummed(
        &mut self,
        now: Nanos,
        out: &mut BytesMut,
        each: impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) {
        self.poll_each(now, true, out, each);
    }

    /// Whether neither answers nor associations are to be asked.
    #[inline]
    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.answers.is_empty() && self.table.next_to_transmit().is_none()
    }

    /// The next packet that may be sent now.
    #[inline(never)] // Where there is none, nothing need be made room for.
    pub(super) fn poll_one(&mut self, now: Nanos, out: &mut BytesMut) -> Option<Transmit> {
        let mut first = None;
        self.poll_each(now, false, out, |outgoing, _| {
            first = Some(outgoing.transmit);
            ControlFlow::Break(())
        });
        first
    }

    #[inline(always)]
    pub(super) fn poll_each(
        &mut self,
        now: Nanos,
        unsummed: bool,
        out: &mut BytesMut,
        mut each: impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) {
        let now = self.at(now);
        while let Some(answer) = self.answers.pop() {
            out.extend_from_slice(&answer.packet);
            let transmit = Transmit {
                path: answer.path,
                len: answer.packet.len(),
                ecn: Ecn::NotEct,
                may_fragment: answer.packet.len() > self.config.max_packet(answer.path.remote),
            };
            let outgoing = Outgoing {
                transmit,
                udp_port: answer.udp_port,
                unsummed: false,
            };
            if each(outgoing, out).is_break() {
                return;
            }
        }
        while let Some(slot) = self.table.next_to_transmit() {
            let flow = self.poll_slot(now, slot, unsummed, out, &mut each);
            if flow != ControlFlow::Break(false) {
                self.table.transmitted();
            }
            if flow.is_break() {
                return;
            }
        }
    }

    /// Hands an association a message for a stream, as [`Association::send`]; `None` where there is none of that name. Afterwards drain
    /// `poll_transmit`. Unlike after [`Endpoint::association_mut`], the association is asked again only where the message may change
    /// what it sends: not where others wait before it for room in the congestion window.
    pub fn send(
        &mut self,
        id: AssociationId,
        stream: u16,
        message: Message,
    ) -> Option<Result<(), SendError>> {
        let slot = self.table.slot_of(id)?;
        let association = self.table.get_mut(slot)?;
        let waits = association.waits_for_room();
        let sent = association.send(stream, message);
        if !waits {
            self.table.touch(slot);
        }
        Some(sent)
    }

    /// Whether [`Endpoint::poll_event`] may have something to tell: it was not asked since something came, or an association was used.
    #[inline]
    pub fn may_tell(&self) -> bool {
        self.table.next_to_tell().is_some()
    }

    /// As [`Endpoint::poll_all`], of one association, whatever the others have to send: for a caller that has just given it a message. `None`
    /// where there is none of that name; else whether all that it may send now is in `out`, and it has nothing to tell.
    pub fn poll_all_of(
        &mut self,
        id: AssociationId,
        now: Nanos,
        out: &mut BytesMut,
        mut each: impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) -> Option<bool> {
        let now = self.at(now);
        let slot = self.table.slot_of(id)?;
        if self.poll_slot(now, slot, false, out, &mut each) == ControlFlow::Break(false) {
            return Some(false);
        }
        if self.table.next_to_transmit() == Some(slot) {
            self.table.transmitted();
        }
        let association = self.table.get(slot);
        Some(!association.is_some_and(Association::has_events) && !self.has_room_to_tell())
    }

    /// What one association has to send. What comes back with [`ControlFlow::Break`] says whether it is known that there is no more.
    #[inline(always)]
    fn poll_slot(
        &mut self,
        now: Nanos,
        slot: u32,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) -> ControlFlow<bool> {
        let Some(association) = self.table.get_mut(slot) else {
            return ControlFlow::Continue(());
        };
        let flow = association.poll_all(now, unsummed, out, &mut *each);
        if flow == ControlFlow::Break(false) {
            return flow;
        }
        let (deadline, tells) = (association.deadline(), association.has_events());
        let ended = association.is_closed();
        if tells {
            self.table.tells(slot);
        }
        self.timers.set(slot, deadline);
        if ended {
            self.retire(now, slot);
        }
        if self.rooms.has_any() {
            self.look_for_room(slot);
        }
        flow
    }

    /// Packets of the peer's find a closed association no more; its tag is remembered for a while.
    pub(super) fn retire(&mut self, now: Nanos, slot: u32) {
        if let Some(association) = self.table.get(slot) {
            let (tag, life) = (association.local_tag(), self.config.valid_cookie_life);
            let late_until = association.late_data_until(now);
            self.retired.make().retire(now, tag, life, late_until);
        }
        self.table.detach(slot);
    }
}
