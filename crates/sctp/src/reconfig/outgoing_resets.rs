//! Outgoing streams whose reset is pending or outstanding.

use super::streams::Streams;
use crate::stream_set::StreamSet;
use crate::work_counter;

/// Streams of all incomplete outgoing resets in one set. A peer can cause thousands of waiting
/// requests, so a new request should not scan them. No two requests contain the same stream.
#[derive(Debug, Default)]
pub(crate) struct OutgoingResets {
    /// Whether one request resets all streams. There is no other request in that case.
    all: bool,
    listed: StreamSet,
}

impl OutgoingResets {
    /// Adds streams to be reset.
    pub(super) fn begin(&mut self, streams: &Streams) {
        work_counter::count(1 + streams.listed());
        match streams.some() {
            None => self.all = true,
            Some(list) => list.iter().for_each(|it| self.listed.insert(*it)),
        }
    }

    /// Removes streams whose reset is complete.
    pub(super) fn end(&mut self, streams: &Streams) {
        work_counter::count(1 + streams.listed());
        match streams.some() {
            None => self.all = false,
            Some(list) => list.iter().for_each(|it| self.listed.remove(*it)),
        }
    }

    /// Number of listed streams.
    pub(super) fn listed(&self) -> usize {
        self.listed.len()
    }

    pub(super) fn has_any(&self, streams: &Streams) -> bool {
        let Some(list) = streams.some() else {
            return self.all || !self.listed.is_empty();
        };
        work_counter::count(list.len());
        self.all || list.iter().any(|it| self.listed.contains(*it))
    }

    /// Whether the set contains all of `streams`; `there_are` is the number of streams.
    pub(super) fn has_each(&self, streams: &Streams, there_are: u16) -> bool {
        let Some(list) = streams.some() else {
            return self.all || self.listed.len() == usize::from(there_are);
        };
        work_counter::count(list.len());
        self.all || list.iter().all(|it| self.listed.contains(*it))
    }

    /// Returns those of `streams` that the set does not contain. `there_are` is the number of
    /// existing streams. If more than `most` would be returned, the result is `None` and they are
    /// not listed, because a request of a few bytes can reset 65,535 streams.
    pub(super) fn others(
        &self,
        streams: &Streams,
        there_are: u16,
        most: usize,
    ) -> Option<Vec<u16>> {
        if self.all {
            return Some(Vec::new());
        }
        let is_other = |stream: &u16| !self.listed.contains(*stream);
        let others: Vec<u16> = match streams.some() {
            Some(list) => {
                work_counter::count(list.len());
                list.iter().copied().filter(is_other).collect()
            }
            None if usize::from(there_are).saturating_sub(self.listed.len()) > most => return None,
            None => {
                work_counter::count(there_are.into());
                (0..there_are).filter(is_other).collect()
            }
        };
        (others.len() <= most).then_some(others)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::reconfig::{ReconfigState, ResetBatch};
    use crate::test_rng::test_rng;

    /// Compares the set with a scan of all requests, for random requests that start and end.
    #[test]
    fn the_set_says_what_a_walk_of_all_requests_would() {
        let mut random = test_rng(11);
        for _ in 0..300 {
            let there_are = 1 + random(24) as u16;
            let mut reconfig = ReconfigState::new(1, 1, 100, 1_000);
            for _ in 0..40 {
                let asked = Streams::of((0..random(5)).map(|_| random(there_are.into()) as u16));
                let meant: BTreeSet<u16> = match asked.some() {
                    Some(list) => list.iter().copied().collect(),
                    None => (0..there_are).collect(),
                };
                let batches = reconfig.pending.outgoing.iter();
                let waiting = batches.map(|it| &it.streams).collect::<Vec<_>>();
                let waits = |stream: &u16| waiting.iter().any(|it| it.contains(*stream));
                let others: Vec<u16> = meant.iter().copied().filter(|it| !waits(it)).collect();
                let any = waiting.iter().any(|it| it.overlaps(&asked));
                let listed: usize = waiting.iter().map(|it| it.listed()).sum();
                assert_eq!(reconfig.listed_outgoing(), listed);
                assert_eq!(reconfig.resets_any(&asked), any);
                assert_eq!(reconfig.resets_each(&asked, there_are), others.is_empty());
                let most = random(20) as usize;
                let expected = (others.len() <= most).then(|| others.clone());
                let expected =
                    expected.map(|it| (!it.is_empty()).then(|| Streams::of(it.into_iter())));
                assert_eq!(reconfig.others(&asked, there_are, most), expected);
                if random(3) == 0 {
                    if let Some(ResetBatch { streams, .. }) = reconfig.pending.outgoing.pop_front()
                    {
                        reconfig.settled(&streams);
                    }
                } else if !any {
                    reconfig.request_reset(asked, None);
                } else if !others.is_empty() {
                    reconfig.request_reset(Streams::of(others.into_iter()), None);
                }
            }
        }
    }
}
