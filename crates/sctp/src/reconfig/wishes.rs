//! What is wished and not asked yet.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::streams::Streams;
use crate::work;

/// Batches that are looked at in vain at a time: a peer can bring thousands to wait, and sending goes on with each packet of its own. Where no more
/// wait, all are looked at.
const LOOKS: usize = 128;

/// How far sending has come: the last TSN that the peer has acknowledged, the next, and the messages that wait. While it is the same, no
/// reset that waited becomes ready.
pub(crate) type Course = (Tsn, Tsn, usize);

/// Streams to be reset outwards together.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub(crate) streams: Streams,
    /// So many of them have sent all that was given before the wish.
    pub(crate) through: usize,
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
    /// So many of them, from the first on, were not ready when sending had come so far: they are not looked at again until it goes on.
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

    /// Streams are to be reset outwards; `answers`: the request of the peer's that asks for it.
    pub(crate) fn add(&mut self, streams: Streams, answers: Option<u32>) {
        // Where many wait they change their places, and what answers a request has to be the last.
        let answers = answers.filter(|_| self.outgoing.len() < LOOKS);
        self.outgoing.push_back(Batch {
            streams,
            through: 0,
            answers,
            barrier: None,
        });
    }

    /// The peer's request `number`, the last that came, has been answered otherwise. Those before it have been, or are asked.
    pub(crate) fn answer_no_more(&mut self, number: u32) {
        if let Some(last) = self.outgoing.back_mut() {
            last.answers = last.answers.filter(|&it| it != number);
        }
    }

    /// How many from the first on are known not to be ready.
    fn seen(&mut self, course: Course) -> usize {
        let all = self.outgoing.len();
        match self.unready.take() {
            None => 0,
            Some((seen, before)) if before == course => seen.min(all),
            // Others have their turn.
            Some((seen, _)) if all > LOOKS => {
                self.outgoing.rotate_left(seen.min(all));
                0
            }
            Some(_) => 0,
        }
    }

    /// Streams to be reset outwards now: those for which `is_ready`, at most `most` if they are listed. What answers a request of the
    /// peer's goes alone. Where many wait, only some are looked at.
    pub(crate) fn take_ready(
        &mut self,
        most: usize,
        course: Course,
        mut is_ready: impl FnMut(&mut Batch) -> bool,
    ) -> Option<Batch> {
        let seen = self.seen(course);
        let until = match self.outgoing.len() {
            few if few <= LOOKS => few,
            many => many.min(seen + LOOKS),
        };
        work::count(until - seen);
        let Some(first) = (self.outgoing.range_mut(seen..until)).position(&mut is_ready) else {
            self.unready = Some((until, course));
            return None;
        };
        let mut rest = self.outgoing.split_off(seen + first);
        self.unready = Some((seen + first, course));
        let mut taken: Option<Batch> = None;
        let mut listed = Vec::new();
        let mut looks = 0;
        let left = &mut self.outgoing;
        while looks < LOOKS
            && let Some(mut batch) = rest.pop_front()
        {
            work::count(1);
            let ready = is_ready(&mut batch);
            match &taken {
                None if ready => {
                    listed.extend(batch.streams.some().unwrap_or_default());
                    taken = Some(batch);
                }
                Some(taken) if ready && taken.goes_with(&batch, most, listed.len()) => {
                    listed.extend(batch.streams.some().unwrap_or_default());
                }
                _ => {
                    looks += 1;
                    left.push_back(batch);
                }
            }
        }
        left.append(&mut rest);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::draws;

    fn of(stream: u16) -> Streams {
        Streams::of([stream].into_iter())
    }

    /// All that wait are looked at.
    fn taken_by_walking(
        waiting: &mut Vec<Batch>,
        most: usize,
        is_ready: impl Fn(&Batch) -> bool,
    ) -> Option<Vec<u16>> {
        let first = waiting.iter().position(&is_ready)?;
        let mut listed = waiting[first].streams.told();
        let mut left = waiting[..first].to_vec();
        for batch in &waiting[first + 1..] {
            if is_ready(batch) && waiting[first].goes_with(batch, most, listed.len()) {
                listed.extend(batch.streams.told());
            } else {
                left.push(batch.clone());
            }
        }
        *waiting = left;
        listed.sort_unstable();
        Some(listed)
    }

    /// Against a walk of all, where no more wait than are looked at.
    #[test]
    fn few_go_as_if_all_were_looked_at() {
        let mut random = draws(7);
        for _ in 0..200 {
            let (mut wishes, mut stream, mut now) = (Wishes::default(), 0, 0);
            let most = 1 + random(40) as usize;
            let mut waiting = Vec::new();
            for _ in 0..200 {
                let more = random(4).min((LOOKS - wishes.outgoing.len()) as u32);
                for _ in 0..more {
                    wishes.add(of(stream), (random(20) == 0).then_some(1));
                    waiting.extend(wishes.outgoing.back().cloned());
                    stream += 1;
                }
                now += random(2);
                // Each is ready in its time, and from then on.
                let ready = |it: &Batch| it.streams.told()[0] % 60 < now as u16;
                let course = (Tsn(now), Tsn(0), 0);
                let taken = wishes.take_ready(most, course, |it| ready(it));
                let taken = taken.map(|it| it.streams.told());
                assert_eq!(taken, taken_by_walking(&mut waiting, most, ready));
            }
        }
    }

    /// Each of thousands has its turn, and no packet looks at more than some.
    #[test]
    fn of_many_some_are_looked_at_each_time_and_none_is_forgotten() {
        let mut wishes = Wishes::default();
        (0..2_000).for_each(|stream| wishes.add(of(stream), Some(1)));
        assert!(
            wishes
                .outgoing
                .iter()
                .skip(LOOKS)
                .all(|it| it.answers.is_none())
        );
        wishes.outgoing.iter_mut().for_each(|it| it.answers = None);
        let mut seen = vec![0; 2_000];
        for at in 0..32 {
            work::take();
            // Sending goes on, or it does not.
            let course = (Tsn(at / 2), Tsn(0), 0);
            let taken = wishes.take_ready(700, course, |it| {
                seen[usize::from(it.streams.told()[0])] += 1;
                false
            });
            assert!(taken.is_none() && work::take() <= LOOKS as u64);
        }
        assert!(seen.iter().all(|&it| it > 0), "{seen:?}");
        let mut gone = Vec::new();
        for at in 0.. {
            work::take();
            let course = (Tsn(100 + at), Tsn(0), 0);
            let ready = |it: &mut Batch| it.streams.told()[0] % 50 <= at as u16;
            if let Some(taken) = wishes.take_ready(700, course, ready) {
                gone.extend(taken.streams.told());
                let most = 2 * LOOKS + taken.streams.listed();
                assert!(work::take() <= most as u64);
            }
            if wishes.outgoing.is_empty() {
                break;
            }
            assert!(at < 200, "{} left", wishes.outgoing.len());
        }
        gone.sort_unstable();
        assert!(gone.into_iter().eq(0..2_000));
    }
}
