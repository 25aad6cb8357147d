//! Reconfiguration requests that were not sent yet.

use std::collections::VecDeque;

use anabranch_wire::Tsn;

use super::streams::Streams;
use crate::work_counter;

/// Maximum number of batches examined per call. If there are more, the rest is examined in later
/// calls, because a peer can cause thousands of pending batches, and each packet may cause a call.
const MAX_EXAMINED: usize = 128;

/// Sending progress: the last TSN acknowledged by the peer, the next TSN, and the number of queued
/// messages. While these are unchanged, no pending reset becomes ready.
pub(crate) type SendProgress = (Tsn, Tsn, usize);

/// Outgoing streams to be reset together.
#[derive(Clone, Debug)]
pub(crate) struct ResetBatch {
    pub(crate) streams: Streams,
    /// Number of streams in the batch that have sent all messages queued before the request.
    pub(crate) through: usize,
    /// Number of the peer's request to which the reset is the response (RFC 6525 §5.1.2 A4).
    pub(crate) answers: Option<u32>,
    /// Last TSN of the messages queued before the request, once all were sent.
    pub(crate) barrier: Option<Tsn>,
}

impl ResetBatch {
    /// Whether one request may contain the streams of this batch and of `more`. `listed` streams
    /// are already in the request, which may contain at most `most`.
    fn goes_with(&self, more: &Self, most: usize, listed: usize) -> bool {
        let alone = |it: &Self| it.answers.is_some() || it.streams.some().is_none();
        !alone(self) && !alone(more) && listed + more.streams.listed() <= most
    }
}

/// Requests of the user or the peer that were not sent to the peer yet.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pub(crate) outgoing: VecDeque<ResetBatch>,
    /// Number of batches at the front that were found not to be ready, and the sending progress at
    /// that time. They are examined again only after progress.
    unready: Option<(usize, SendProgress)>,
    pub(crate) incoming: VecDeque<Streams>,
    /// Whether the user has requested an association reset.
    pub(crate) association: bool,
    /// Numbers of outgoing and incoming streams to add.
    pub(crate) add_outgoing: u16,
    pub(crate) add_incoming: u16,
}

impl PendingRequests {
    /// Whether no request is pending.
    pub(crate) fn are_none(&self) -> bool {
        self.outgoing.is_empty()
            && self.incoming.is_empty()
            && !self.association
            && self.add_outgoing == 0
            && self.add_incoming == 0
    }

    /// Adds an outgoing reset. `answers`: number of the peer's request that caused the reset.
    pub(crate) fn add(&mut self, streams: Streams, answers: Option<u32>) {
        // With `MAX_EXAMINED` or more batches, the order of the batches may change. Because a batch
        // with `answers` must stay last, `answers` is then omitted.
        let answers = answers.filter(|_| self.outgoing.len() < MAX_EXAMINED);
        self.outgoing.push_back(ResetBatch {
            streams,
            through: 0,
            answers,
            barrier: None,
        });
    }

    /// Records that the peer's last request `number` has received a response, so that the reset
    /// queued for it is no longer its answer. Earlier requests of the peer were already answered,
    /// by a response or by a sent reset.
    pub(crate) fn answer_no_more(&mut self, number: u32) {
        if let Some(last) = self.outgoing.back_mut() {
            last.answers = last.answers.filter(|&it| it != number);
        }
    }

    /// Number of batches at the front that are known not to be ready.
    fn seen(&mut self, progress: SendProgress) -> usize {
        let all = self.outgoing.len();
        match self.unready.take() {
            None => 0,
            Some((seen, before)) if before == progress => seen.min(all),
            // Continue with the batches that were not examined yet.
            Some((seen, _)) if all > MAX_EXAMINED => {
                self.outgoing.rotate_left(seen.min(all));
                0
            }
            Some(_) => 0,
        }
    }

    /// Takes the next outgoing streams to reset: those for which `is_ready` is true, at most `most`
    /// if they are listed. A batch that answers a request of the peer is taken alone. If there are
    /// many batches, only some are examined.
    pub(crate) fn take_ready(
        &mut self,
        most: usize,
        progress: SendProgress,
        mut is_ready: impl FnMut(&mut ResetBatch) -> bool,
    ) -> Option<ResetBatch> {
        let seen = self.seen(progress);
        let until = match self.outgoing.len() {
            few if few <= MAX_EXAMINED => few,
            many => many.min(seen + MAX_EXAMINED),
        };
        work_counter::count(until - seen);
        let Some(first) = (self.outgoing.range_mut(seen..until)).position(&mut is_ready) else {
            self.unready = Some((until, progress));
            return None;
        };
        let mut rest = self.outgoing.split_off(seen + first);
        self.unready = Some((seen + first, progress));
        let mut taken: Option<ResetBatch> = None;
        let mut listed = Vec::new();
        let mut looks = 0;
        let left = &mut self.outgoing;
        while looks < MAX_EXAMINED
            && let Some(mut batch) = rest.pop_front()
        {
            work_counter::count(1);
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
        Some(ResetBatch {
            streams: Streams::of(listed.into_iter()),
            ..taken
        })
    }

    /// Takes the next incoming streams to reset, at most `most` if they are listed.
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
    use crate::test_rng::test_rng;

    fn of(stream: u16) -> Streams {
        Streams::of([stream].into_iter())
    }

    /// Reference implementation, which examines all batches.
    fn taken_by_walking(
        waiting: &mut Vec<ResetBatch>,
        most: usize,
        is_ready: impl Fn(&ResetBatch) -> bool,
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

    /// With at most `MAX_EXAMINED` batches, `take_ready` takes the same streams as the reference
    /// implementation, which examines all.
    #[test]
    fn few_go_as_if_all_were_looked_at() {
        let mut random = test_rng(7);
        for _ in 0..200 {
            let (mut pending, mut stream, mut now) = (PendingRequests::default(), 0, 0);
            let most = 1 + random(40) as usize;
            let mut waiting = Vec::new();
            for _ in 0..200 {
                let more = random(4).min((MAX_EXAMINED - pending.outgoing.len()) as u32);
                for _ in 0..more {
                    pending.add(of(stream), (random(20) == 0).then_some(1));
                    waiting.extend(pending.outgoing.back().cloned());
                    stream += 1;
                }
                now += random(2);
                // Each request becomes ready at some time, and stays ready.
                let ready = |it: &ResetBatch| it.streams.told()[0] % 60 < now as u16;
                let progress = (Tsn(now), Tsn(0), 0);
                let taken = pending.take_ready(most, progress, |it| ready(it));
                let taken = taken.map(|it| it.streams.told());
                assert_eq!(taken, taken_by_walking(&mut waiting, most, ready));
            }
        }
    }

    /// With thousands of pending requests, each request is taken eventually, although each call
    /// examines only a limited number.
    #[test]
    fn of_many_some_are_looked_at_each_time_and_none_is_forgotten() {
        let mut pending = PendingRequests::default();
        (0..2_000).for_each(|stream| pending.add(of(stream), Some(1)));
        assert!(
            pending
                .outgoing
                .iter()
                .skip(MAX_EXAMINED)
                .all(|it| it.answers.is_none())
        );
        pending.outgoing.iter_mut().for_each(|it| it.answers = None);
        let mut seen = vec![0; 2_000];
        for at in 0..32 {
            work_counter::take();
            // The sending progress advances only in every second step.
            let progress = (Tsn(at / 2), Tsn(0), 0);
            let taken = pending.take_ready(700, progress, |it| {
                seen[usize::from(it.streams.told()[0])] += 1;
                false
            });
            assert!(taken.is_none() && work_counter::take() <= MAX_EXAMINED as u64);
        }
        assert!(seen.iter().all(|&it| it > 0), "{seen:?}");
        let mut gone = Vec::new();
        for at in 0.. {
            work_counter::take();
            let progress = (Tsn(100 + at), Tsn(0), 0);
            let ready = |it: &mut ResetBatch| it.streams.told()[0] % 50 <= at as u16;
            if let Some(taken) = pending.take_ready(700, progress, ready) {
                gone.extend(taken.streams.told());
                let most = 2 * MAX_EXAMINED + taken.streams.listed();
                assert!(work_counter::take() <= most as u64);
            }
            if pending.outgoing.is_empty() {
                break;
            }
            assert!(at < 200, "{} left", pending.outgoing.len());
        }
        gone.sort_unstable();
        assert!(gone.into_iter().eq(0..2_000));
    }
}
