//! What is wished and not asked yet.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::streams::Streams;

/// Streams to be reset outwards together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) streams: Streams,
    /// The request of the peer's that this answers (RFC 6525 §5.1.2 A4).
    pub(crate) answers: Option<u32>,
    /// The last TSN of what was given before the wish, once all of it was sent.
    pub(crate) barrier: Option<Tsn>,
}

/// What the user wished, or the peer, and what the peer is not asked yet.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) outgoing: VecDeque<Batch>,
    pub(crate) incoming: VecDeque<Streams>,
    /// All numbers are to begin anew.
    pub(crate) association: bool,
    /// Streams to be added.
    pub(crate) add_outgoing: u16,
    pub(crate) add_incoming: u16,
}

impl Wishes {
    /// Whether there are none.
    pub(crate) fn are_none(&self) -> bool {
        self.outgoing.is_empty()
            && self.incoming.is_empty()
            && !self.association
            && self.add_outgoing == 0
            && self.add_incoming == 0
    }

    /// The peer's request `number` has been answered otherwise.
    pub(crate) fn answer_no_more(&mut self, number: u32) {
        for batch in &mut self.outgoing {
            batch.answers = batch.answers.filter(|&it| it != number);
        }
    }

    /// Streams to be reset outwards now: those for which `is_ready`, at most `most` if they are listed. What answers a request of the
    /// peer's goes alone.
    pub(crate) fn take_ready(
        &mut self,
        most: usize,
        mut is_ready: impl FnMut(&mut Batch) -> bool,
    ) -> Option<Batch> {
        let mut taken: Option<Batch> = None;
        let mut left = VecDeque::new();
        for mut batch in self.outgoing.drain(..) {
            let ready = is_ready(&mut batch);
            match &mut taken {
                None if ready => taken = Some(batch),
                Some(taken) if ready && taken.answers.is_none() && batch.answers.is_none() => {
                    if let Err(streams) = taken.streams.join(batch.streams, most) {
                        left.push_back(Batch { streams, ..batch });
                    }
                }
                _ => left.push_back(batch),
            }
        }
        self.outgoing = left;
        taken
    }

    /// Streams that the peer is to be asked to reset now, at most `most` if they are listed.
    pub(crate) fn take_incoming(&mut self, most: usize) -> Option<Streams> {
        if self.incoming.front()?.listed() > most {
            return None;
        }
        let mut taken = self.incoming.pop_front()?;
        while let Some(next) = self.incoming.pop_front() {
            if let Err(next) = taken.join(next, most) {
                self.incoming.push_front(next);
                break;
            }
        }
        Some(taken)
    }
}
