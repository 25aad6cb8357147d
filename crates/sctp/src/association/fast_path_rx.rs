//! The common packets that arrive: a SACK, and DATA in order or behind a gap.
//!
//! They are taken by ways of their own, which ask less: of the association once a packet, and of the receiver once for all its chunks. What
//! is done is what [`Association::handle_chunks`] would do, no less; where any answer is another, that does it.

use anabranch_transport::{Nanos, Path};
use anabranch_wire::chunk::{Sack, kind};
use anabranch_wire::packet::{Chunks, Frame};

use super::Association;
use crate::discard::{Discard, Discards};
use crate::path::PathId;
use crate::rx::Next;
use crate::state::{Known, Stage, State};

/// How much of a packet was common.
pub(crate) enum FastPath<'a> {
    /// All of it: it has been taken.
    Whole,
    /// What comes before `frame`; `behind`: that is something.
    Until {
        frame: Frame<'a>,
        rest: Chunks<'a>,
        behind: bool,
    },
}

impl Association {
    /// Takes the chunks of an admitted packet that came over `path`, `first`, which is DATA or a SACK, and then `rest`, as far as they are
    /// common ones.
    #[inline(always)]
    pub(crate) fn try_fast_path<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'a>,
        rest: Chunks<'a>,
        discards: &mut Discards,
    ) -> FastPath<'a> {
        if self.is_common() {
            if first.kind == kind::DATA {
                return self.take_common_data(now, path, first, rest, false, discards);
            }
            if first.flags == 0 && self.take_common_sack(now, first) {
                return self.take_behind_sack(now, path, rest, discards);
            }
        }
        FastPath::Until {
            frame: first,
            rest,
            behind: false,
        }
    }

    /// Takes what comes behind a SACK, as [`Self::try_fast_path`] does.
    #[inline(always)]
    fn take_behind_sack<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        mut rest: Chunks<'a>,
        discards: &mut Discards,
    ) -> FastPath<'a> {
        match rest.next_frame() {
            None => {}
            Some(Ok(frame)) => {
                self.sack_taken = true;
                if frame.kind == kind::DATA {
                    return self.take_common_data(now, path, frame, rest, true, discards);
                }
                return FastPath::Until {
                    frame,
                    rest,
                    behind: true,
                };
            }
            Some(Err(_)) => discards.count(Discard::ChunkLength),
        }
        // The SACK was that of the only path: data goes where it went.
        self.tell_readable();
        FastPath::Whole
    }

    /// Whether packets may be common ones: the association is up, and no extension has a say in DATA or SACKs.
    #[inline(always)]
    fn is_common(&self) -> bool {
        let State::Known(Known {
            stage: Stage::Established,
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

    /// Takes the DATA `first` and what comes behind it. `behind`: there was a chunk before them.
    #[inline(never)]
    fn take_common_data<'a>(
        &mut self,
        now: Nanos,
        path: Path,
        first: Frame<'a>,
        mut rest: Chunks<'a>,
        behind: bool,
        discards: &mut Discards,
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
        let (taken, next) = rx.take_run(now, first, &mut rest, from, &self.trace);
        match next {
            Next::End => {}
            Next::Broken => discards.count(Discard::ChunkLength),
            Next::Other(frame) => {
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

    /// Takes a SACK; whether it was a common one.
    #[inline(always)]
    fn take_common_sack(&mut self, now: Nanos, frame: Frame<'_>) -> bool {
        debug_assert_eq!(frame.kind, kind::SACK, "or it is DATA");
        let Ok(sack) = Sack::read(&frame) else {
            return false;
        };
        let (paths, trace) = (&mut self.paths, &mut self.trace);
        let tx = self.tx.make(&self.config, self.local_initial_tsn);
        let outcome = match tx.handle_common_sack(now, &sack, paths, trace) {
            None => tx.handle_gap_sack(now, &sack, paths, trace),
            common => common,
        };
        let Some(outcome) = outcome else {
            return false;
        };
        self.note_acknowledged(now, &outcome);
        true
    }
}
