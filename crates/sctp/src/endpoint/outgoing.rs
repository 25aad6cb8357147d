//! What an endpoint sends: answers that belong to no association, then each association in turn.

use std::ops::ControlFlow;

use anabranch_transport::{Ecn, Nanos, Transmit};
use bytes::{Bytes, BytesMut};

use super::Endpoint;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::outgoing::{Outgoing, TransmitOptions};
use crate::partial::SendOptions;
use crate::tx::SendError;

impl Endpoint {
    /// All packets that may be sent now, in one call, because what does not change between them is then asked once: first answers that belong to
    /// no association, then those of each association in turn, or of one ([`TransmitOptions::association`]). `each` gets every packet when it
    /// has been appended to `out`, and may take it from there; after [`ControlFlow::Break`] the rest is left to the next call.
    ///
    /// Gives whether nothing is left: all was given, and the association that was asked alone has no event.
    pub fn poll_transmit_batch(
        &mut self,
        now: Nanos,
        options: TransmitOptions,
        out: &mut BytesMut,
        mut each: impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) -> bool {
        let TransmitOptions {
            association,
            defer_checksums,
        } = options;
        match association {
            None => self.poll_each(now, defer_checksums, out, each),
            Some(id) => self.poll_association(now, id, defer_checksums, out, &mut each),
        }
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
    ) -> bool {
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
                return false;
            }
        }
        while let Some(slot) = self.table.next_to_transmit() {
            let flow = self.poll_slot(now, slot, unsummed, out, &mut each);
            if flow != ControlFlow::Break(false) {
                self.table.transmitted();
            }
            if flow.is_break() {
                return false;
            }
        }
        true
    }

    /// As [`Association::send`]; `None` if there is no such association. Afterwards drain `poll_transmit`. Unlike after
    /// [`Endpoint::association_mut`], the association is polled again only if the message may change what it sends: not if others wait
    /// before it for room in the congestion window.
    #[inline]
    pub fn send(
        &mut self,
        now: Nanos,
        id: AssociationId,
        payload: Bytes,
        options: &SendOptions,
    ) -> Option<Result<(), SendError>> {
        let slot = self.table.slot_of(id)?;
        let association = self.table.get_mut(slot)?;
        // Others may be abandoned for one that has a priority.
        let waits = association.plain_stream(options).is_some() && association.waits_for_room();
        let sent = association.send(now, payload, options);
        if !waits {
            self.table.touch(slot);
        }
        Some(sent)
    }

    /// What one association has to send, whatever the others have. Whether all of it is in `out`, and nothing is to be told.
    fn poll_association(
        &mut self,
        now: Nanos,
        id: AssociationId,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut impl FnMut(Outgoing, &mut BytesMut) -> ControlFlow<()>,
    ) -> bool {
        let now = self.at(now);
        let Some(slot) = self.table.slot_of(id) else {
            return false;
        };
        if self.poll_slot(now, slot, unsummed, out, each) == ControlFlow::Break(false) {
            return false;
        }
        if self.table.next_to_transmit() == Some(slot) {
            self.table.transmitted();
        }
        let association = self.table.get(slot);
        !association.is_some_and(Association::has_news)
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
        association.note_sending();
        let (deadline, tells) = (association.deadline(), association.has_news());
        let ended = association.is_closed();
        if tells {
            self.table.tells(slot);
        }
        self.timers.set(slot, deadline);
        if ended {
            self.retire(now, slot);
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
