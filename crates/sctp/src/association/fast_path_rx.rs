//! Fast path for received packets that consist of a SACK, of DATA in order or after a gap, or both.
//! The fast path checks the association once per packet, and the receiver once for all chunks. The
//! effect is exactly that of [`Association::handle_chunks`], which processes all other packets.

use anabranch_transport::{Nanos, Path};
use anabranch_wire::chunk::{Sack, kind};
use anabranch_wire::packet::{Chunks, Frame};

use super::Association;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::path::PathId;
use crate::rx::ReceiveOutcome;
use crate::state::{EstablishedState, State, Tcb};

/// Part of a packet that the fast path has processed.
pub(crate) enum FastPath<'a> {
    /// The whole packet.
    Whole,
    /// All chunks before `frame`, which needs the slow path. `behind`: there is at least one such
    /// chunk.
    Until {
        frame: Frame<'a>,
        rest: Chunks<'a>,
        behind: bool,
    },
}

impl Association {
    /// Processes chunks of a packet received over `path`, whose verification tag was checked, until
    /// a chunk needs the slow path. `first` is DATA or a SACK, and `rest` are the chunks after it.
    #[inline(always)]
    pub(crate) fn try_fast_path<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'a>,
        rest: Chunks<'a>,
        discards: &mut DiscardCounts,
    ) -> FastPath<'a> {
        if self.is_fast_path() {
            if first.kind == kind::DATA {
                return self.take_fast_path_data(now, path, first, rest, false, discards);
            }
            if first.flags == 0 && self.take_fast_path_sack(now, first) {
                return self.take_behind_sack(now, path, rest, discards);
            }
        }
        FastPath::Until {
            frame: first,
            rest,
            behind: false,
        }
    }

    /// Processes the chunks after a SACK, like [`Self::try_fast_path`].
    #[inline(always)]
    fn take_behind_sack<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        mut rest: Chunks<'a>,
        discards: &mut DiscardCounts,
    ) -> FastPath<'a> {
        match rest.next_frame() {
            None => {}
            Some(Ok(frame)) => {
                self.sack_taken = true;
                if frame.kind == kind::DATA {
                    return self.take_fast_path_data(now, path, frame, rest, true, discards);
                }
                return FastPath::Until {
                    frame,
                    rest,
                    behind: true,
                };
            }
            Some(Err(_)) => discards.count(DiscardReason::ChunkLength),
        }
        // With one path, a SACK cannot change the destination of data.
        self.tell_readable();
        FastPath::Whole
    }

    /// Whether the fast path can be used: the association is established, and no extension affects
    /// DATA or SACKs.
    #[inline(always)]
    fn is_fast_path(&self) -> bool {
        let State::Active(Tcb {
            stage: EstablishedState::Established,
            reconfig: None,
            ..
        }) = &self.state
        else {
            return false;
        };
        self.auth.is_none()
            && self.dtls.is_none()
            && self.marks.is_none()
            && self.rsctp.is_none()
            && !self.tx.is_interleaving()
    }

    /// Processes the DATA `first` and the chunks after it. `behind`: other chunks of the packet
    /// precede `first`.
    #[inline(never)]
    fn take_fast_path_data<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'a>,
        mut rest: Chunks<'a>,
        behind: bool,
        discards: &mut DiscardCounts,
    ) -> FastPath<'a> {
        let only = self.paths.len() == 1;
        let from = if only {
            PathId(0)
        } else {
            self.acknowledging_path(path)
        };
        let Some(rx) = &mut self.rx else {
            return FastPath::Until {
                frame: first,
                rest,
                behind,
            };
        };
        self.sack_path = from;
        // The SACK before the DATA may have caused events, which precede the new messages.
        rx.note_events(self.events.count());
        let (taken, next) = rx.take_run(now, first, &mut rest, &self.trace);
        match next {
            ReceiveOutcome::End => {}
            ReceiveOutcome::Broken => discards.count(DiscardReason::ChunkLength),
            ReceiveOutcome::Other(frame) => {
                self.data_taken = taken > 0;
                return FastPath::Until {
                    frame,
                    rest,
                    behind: behind || taken > 0,
                };
            }
        }
        rx.on_packet_end(now);
        let readable = rx.has_message();
        if !only {
            self.note_data_path(now);
        }
        if readable {
            self.tell_of_messages();
        }
        FastPath::Whole
    }

    /// Processes a SACK; returns `false` if the slow path must process it.
    #[inline(always)]
    fn take_fast_path_sack(&mut self, now: Nanos, frame: Frame<'_>) -> bool {
        debug_assert_eq!(frame.kind, kind::SACK, "or it is DATA");
        let Ok(sack) = Sack::read(&frame) else {
            return false;
        };
        let (paths, trace) = (&mut self.paths, &mut self.trace);
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        let outcome = match tx.handle_fast_path_sack(now, &sack, paths, trace) {
            None => tx.handle_fast_path_gap_sack(now, &sack, paths, trace),
            common => common,
        };
        let Some(outcome) = outcome else {
            return false;
        };
        self.note_acknowledged(now, &outcome);
        true
    }
}
