//! Fast path for received packets: a SACK, and DATA in order or after a gap.
//!
//! The fast path makes fewer checks: of the association once per packet, and of the receiver once
//! for all chunks. The effect is exactly that of [`Association::handle_chunks`], which processes
//! all other cases.

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
    /// All of it.
    Whole,
    /// The chunks before `frame`; `behind`: there is at least one.
    Until {
        frame: Frame<'a>,
        rest: Chunks<'a>,
        behind: bool,
    },
}

impl Association {
    /// Processes the chunks of an admitted packet received over `path`, `first`, which is DATA or a
    /// SACK, and then `rest`, as far as the fast path applies.
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
        // There is only one path, so the destination of data is unchanged.
        self.tell_readable();
        FastPath::Whole
    }

    /// Whether the fast path applies: the association is established, and no extension is involved
    /// in DATA or SACKs.
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

    /// Processes the DATA `first` and the chunks after it. `behind`: there was a chunk before them.
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
        // A SACK before the DATA may have caused events.
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

    /// Processes a SACK; returns whether the fast path applies.
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
