//! What is wished and not asked yet.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::streams::Streams;
use crate::work;

/// How far sending has come: the last TSN that the peer has acknowledged, the next, and the messages that wait. While it is the same, no
/// reset that waited becomes ready.
pub(crate) type Course = (Tsn, Tsn, usize);

/// Streams to be reset outwards together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) streams: Streams,
    /// The request of the peer's that this answers (RFC 6525 §5.1.2 A4).
    pub(crate) answers: Option<u32>,
    /// The last TSN of what was given before the wish, once all of it was sent.
    pub(crate) barrier: Option<Tsn>,
}

impl Batch {
    /// Whether `more` may be asked for together with this one, of which so many streams are `listed`, and at most `most` may be.
    fn goes_with(&self, more: &Self, most: usize, listed: usize) -> bool {
        let alone = |it: &Self| it.answers.is_some() || it.streams.some().is_none();
        !alone(self) && !alone(more) && listed + more.streams.listed() <= most
    }
}

/// What the user wished, or the peer, and what the peer is not asked yet.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    pub(crate) outgoing: VecDeque<Batch>,
    /// So many of them, from the first on, were not ready when sending had come so far: they are not looked at again until it goes on. A
    /// peer can bring thousands to wait.
    unready: Option<(usize, Course)>,
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

    /// The peer's request `number`, the last that came, has been answered otherwise. Those before it have been, or are asked.
    pub(crate) fn answer_no_more(&mut self, number: u32) {
        if let Some(last) = self.outgoing.back_mut() {
            last.answers = last.answers.filter(|&it| it != number);
        }
    }

    /// Streams to be reset outwards now: those for which `is_ready`, at most `most` if they are listed. What answers a request of the
    /// peer's goes alone.
    pub(crate) fn take_ready(
        &mut self,
        most: usize,
        course: Course,
        mut is_ready: impl FnMut(&mut Batch) -> bool,
    ) -> Option<Batch> {
        let unready = self.unready.take().filter(|it| it.1 == course);
        let seen = unready.map_or(0, |it| it.0.min(self.outgoing.len()));
        work::count(self.outgoing.len() - seen);
        let Some(first) = self.outgoing.range_mut(seen..).position(&mut is_ready) else {
            self.unready = Some((self.outgoing.len(), course));
            return None;
        };
        let rest = self.outgoing.split_off(seen + first);
        self.unready = Some((seen + first, course));
        work::count(rest.len());
        let mut taken: Option<Batch> = None;
        let mut listed = Vec::new();
        let left = &mut self.outgoing;
        for mut batch in rest {
            let ready = is_ready(&mut batch);
            match &taken {
                None if ready => {
                    listed.extend(batch.streams.some().unwrap_or_default());
                    taken = Some(batch);
                }
                Some(taken) if ready && taken.goes_with(&batch, most, listed.len()) => {
                    listed.extend(batch.streams.some().unwrap_or_default());
                }
                _ => left.push_back(batch),
            }
        }
        let taken = taken?;
        Some(Batch {
            streams: Streams::of(listed.into_iter()),
            ..taken
        })
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
