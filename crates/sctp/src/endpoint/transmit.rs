//! Transmission of an endpoint's packets: stateless replies, then the packets of each association,
//! round robin.

use std::ops::ControlFlow;

use anabranch_transport::{Ecn, Nanos, Transmit};
use bytes::{Bytes, BytesMut};

use super::Endpoint;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::pr_sctp::SendOptions;
use crate::transmit::{TransmitOptions, UdpTransmit};
use crate::tx::SendError;

impl Endpoint {
    /// Writes all packets that may be sent now: first stateless replies, then the packets of each
    /// association, or of one ([`TransmitOptions::association`]). One call is faster than a call
    /// per packet, because checks are not repeated. `each` is called after each packet was appended
    /// to `out`, and may remove it from there. After [`ControlFlow::Break`] the remaining packets
    /// wait for the next call.
    ///
    /// Returns `true` if no output is left: all packets were written, and the selected association,
    /// if any, has no event.
    #[inline]
    pub fn poll_transmit_batch(
        &mut self,
        now: Nanos,
        options: TransmitOptions,
        out: &mut BytesMut,
        mut each: impl FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
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

    /// Whether neither stateless replies nor associations have packets to send.
    #[inline]
    pub(super) fn has_nothing_to_send(&self) -> bool {
        self.replies.is_empty() && self.table.next_to_transmit().is_none()
    }

    /// Next packet that may be sent now.
    #[inline(never)] // keeps its stack frame out of the empty case
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
        mut each: impl FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) -> bool {
        let now = self.at(now);
        while let Some(answer) = self.replies.pop() {
            out.extend_from_slice(&answer.packet);
            let transmit = Transmit {
                path: answer.path,
                len: answer.packet.len(),
                ecn: Ecn::NotEct,
                may_fragment: answer.packet.len() > self.config.max_packet(answer.path.remote),
            };
            let outgoing = UdpTransmit {
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

    /// Like [`Association::send`]; `None` if the association does not exist. The caller should
    /// drain `poll_transmit` afterwards. Unlike after [`Endpoint::association_mut`], the
    /// association is polled again only if the message may change its output. The message cannot
    /// change the output if earlier messages are still waiting for cwnd.
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
        // A message with a priority may cause other messages to be abandoned.
        let waits = options.stream.is_some()
            && association.sends_plainly(options)
            && association.waits_for_room();
        let sent = association.send(now, payload, options);
        if !waits {
            self.table.touch(slot);
        }
        Some(sent)
    }

    /// Writes the packets of one association only. Returns `true` if all of them were written and
    /// the association has no new output for its user.
    #[inline(never)]
    fn poll_association(
        &mut self,
        now: Nanos,
        id: AssociationId,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut impl FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
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

    /// Writes the packets of the association in `slot`. After [`ControlFlow::Break`], the value is
    /// `true` if no packet is left.
    #[inline(always)]
    fn poll_slot(
        &mut self,
        now: Nanos,
        slot: u32,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut impl FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) -> ControlFlow<bool> {
        let Some(association) = self.table.get_mut(slot) else {
            return ControlFlow::Continue(());
        };
        let flow = association.poll_transmit_batch(now, unsummed, out, &mut *each);
        if flow == ControlFlow::Break(false) {
            return flow;
        }
        association.note_sending();
        let (deadline, has_news) = (association.deadline(), association.has_news());
        let ended = association.is_closed();
        if has_news {
            self.table.note_output(slot);
        }
        self.timers.set(slot, deadline);
        if ended {
            self.retire(now, slot);
        }
        flow
    }

    /// Removes a closed association from the lookup tables, and remembers its tag for some time.
    pub(super) fn retire(&mut self, now: Nanos, slot: u32) {
        let past = match self.table.get(slot) {
            Some(it) => Some((it.local_tag(), it.late_data_until(now))),
            None => {
                (self.table.view(slot)).map(|it| (it.local_tag, it.late_data_until.unwrap_or(0)))
            }
        };
        if let Some((tag, late_until)) = past {
            let life = self.config.valid_cookie_life;
            self.retired.make().retire(now, tag, life, late_until);
        }
        self.table.remove_keys(slot);
    }
}
