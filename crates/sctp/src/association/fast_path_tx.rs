//! Fast path for packets that contain only DATA or only a SACK.
//! The fast path makes fewer checks. The packets are the same as those of
//! [`Association::poll_any`].

use std::ops::ControlFlow;

use anabranch_transport::{Ecn, Nanos, Transmit};
use anabranch_wire::packet::PacketBuilder;
use bytes::BytesMut;

use super::Association;
use crate::path::{PathId, Paths};
use crate::rx::Receiver;
use crate::transmit::UdpTransmit;

impl Association {
    /// Appends all packets that may be sent now to `out`, and passes each to `each`. If `each`
    /// returns [`ControlFlow::Break`], the remaining packets wait for the next call; the returned
    /// `Break(true)` means that no packet is left, and `Break(false)` that packets may be left.
    /// `unsummed`: the receiver of the packets can compute the checksums.
    pub(crate) fn poll_transmit_batch(
        &mut self,
        now: Nanos,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut dyn FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) -> ControlFlow<bool> {
        loop {
            if self.has_fast_path_packets() && self.poll_fast_path(now, unsummed, out, each)? {
                return ControlFlow::Continue(());
            }
            let Some(transmit) = self.poll_any(now, out) else {
                return ControlFlow::Continue(());
            };
            let outgoing = UdpTransmit {
                udp_port: self.paths.udp_port_to(transmit.path.remote),
                transmit,
                unsummed: false,
            };
            each(outgoing, out).map_break(|()| false)?;
        }
    }

    /// Whether all packets that can be due are packets of the fast path.
    #[inline(always)]
    fn has_fast_path_packets(&self) -> bool {
        self.parting.is_none() && !self.tx.is_partially_reliable() && self.is_plain()
    }

    /// Like [`Self::poll_transmit_batch`], for fast path packets only. Returns `Continue(true)` if
    /// no other packet is due. `Break(true)`, after `each` has stopped the output, means that no
    /// packet is left, which saves the caller another call.
    #[inline(always)]
    fn poll_fast_path(
        &mut self,
        now: Nanos,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut dyn FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) -> ControlFlow<bool, bool> {
        let data = self.tx.wants_to_send(now, &self.paths);
        match (self.owes_sack(), data) {
            (false, None) => {}
            (false, Some(_)) if self.writes_data_alone() => {
                match self.write_run(now, data, unsummed, out, each) {
                    ControlFlow::Continue(true) => {}
                    ControlFlow::Continue(false) => return ControlFlow::Continue(false),
                    ControlFlow::Break(sends) => {
                        return ControlFlow::Break(!sends && self.is_done(now));
                    }
                }
            }
            (true, None) if self.writes_sack_alone() => {
                let path = self.sack_path;
                let Some(len) = self.write_sack(now, path, out) else {
                    return ControlFlow::Continue(false);
                };
                if give(&self.paths, path, len, false, out, each).is_break() {
                    return ControlFlow::Break(self.is_done(now));
                }
            }
            _ => return ControlFlow::Continue(false),
        }
        // If the deadline of path probes is unknown, compute it now, because the fast computation
        // of the next deadline (`plain_deadline`) needs it.
        if self.probes_at == 0 && self.paths.len() == 1 {
            self.probes_deadline();
        }
        ControlFlow::Continue(self.is_done(now))
    }

    /// Whether no other packet is due, after all DATA and SACKs were sent.
    #[inline(always)]
    fn is_done(&mut self, now: Nanos) -> bool {
        let is_done = self.probes_nothing(now);
        if is_done {
            self.tx.taken_out();
        }
        is_done
    }

    /// Whether the sender is blocked, so that a further queued message changes neither the next
    /// packets nor their times.
    #[inline]
    pub(crate) fn waits_for_room(&self) -> bool {
        self.tx.waits_for_room(&self.paths)
    }

    /// Whether the next packet of an association that [is plain](Self::is_plain) contains only
    /// DATA: no SACK is bundled, no extension is involved, and tracing is disabled.
    #[inline]
    fn writes_data_alone(&self) -> bool {
        !self.rx.as_deref().is_some_and(Receiver::sack_useful)
            && self.marks.is_none()
            && self.rsctp.is_none()
            && self.auth.is_none()
            && self.dtls.is_none()
            && self.tx.get().is_some_and(|tx| tx.is_plain(&self.trace))
    }

    /// Writes DATA packets until no path may send one; the first packet goes to `next`. The
    /// conditions of the fast path are not checked again, because sending DATA does not change
    /// them. Returns `Continue(false)` if a packet stayed empty. The value of
    /// [`ControlFlow::Break`] states whether more DATA can be sent.
    #[inline(never)] // the caller's state leaves too few registers for it
    fn write_run(
        &mut self,
        now: Nanos,
        mut next: Option<PathId>,
        unsummed: bool,
        out: &mut BytesMut,
        each: &mut dyn FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
    ) -> ControlFlow<bool, bool> {
        let (header, sum) = (self.header_to_peer(), self.checksum_mode.wanted(false));
        let unsummed = unsummed && sum;
        let Some(tx) = self.tx.get_mut() else {
            return ControlFlow::Continue(false);
        };
        let (paths, trace) = (&mut self.paths, &mut self.trace);
        while let Some(path) = next {
            let mut packet = PacketBuilder::new(out, header, paths.get(path).max_packet);
            tx.set_finishing(false);
            if tx.fill_fast_path(now, path, &mut packet, paths, trace) == 0 {
                return ControlFlow::Continue(false);
            }
            let len = packet.finish(sum && !unsummed);
            if give(paths, path, len, unsummed, out, each).is_break() {
                let sends = !tx.waits_for_room(paths) && tx.wants_to_send(now, paths).is_some();
                return ControlFlow::Break(sends);
            }
            next = tx.wants_to_send(now, paths);
        }
        ControlFlow::Continue(true)
    }

    /// Whether the next packet of an association that [is plain](Self::is_plain) contains only a
    /// SACK: no DATA can be sent, no extension is involved, and tracing is disabled.
    #[inline]
    fn writes_sack_alone(&self) -> bool {
        let Some(rx) = &self.rx else {
            return false;
        };
        self.marks.is_none()
            && self.auth.is_none()
            && self.dtls.is_none()
            && rx.sack_is_untraced(&self.trace)
    }

    /// Writes a packet that contains only a SACK.
    #[inline(always)]
    fn write_sack(&mut self, now: Nanos, path: PathId, out: &mut BytesMut) -> Option<usize> {
        let (limit, header) = (self.paths.get(path).max_packet, self.header_to_peer());
        let Some(rx) = &mut self.rx else {
            return None;
        };
        let mut packet = PacketBuilder::new(out, header, limit);
        if rx.sack_is_cumulative_only() {
            rx.push_plain_sack(&mut packet).ok()?;
        } else {
            rx.push_sack(now, &mut packet, &mut self.trace).ok()?;
        }
        Some(packet.finish(self.checksum_mode.wanted(false)))
    }
}

/// Passes a packet of `len` bytes for `path` to `each`.
#[inline(always)]
fn give(
    paths: &Paths,
    path: PathId,
    len: usize,
    unsummed: bool,
    out: &mut BytesMut,
    each: &mut dyn FnMut(UdpTransmit, &mut BytesMut) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let outgoing = UdpTransmit {
        transmit: Transmit {
            path: paths.get(path).path,
            len,
            ecn: Ecn::NotEct,
            may_fragment: false,
        },
        udp_port: paths.udp_port_of(path),
        unsummed,
    };
    each(outgoing, out)
}
