//! Messages behind a reset of their streams: they wait until it is settled (RFC 6525 §5.1.2 A1).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anabranch_wire::Ssn;

use super::{Queued, SendQueue, Turn};
use crate::stream_table::StreamTable;

/// The streams that are being reset, and what was given for them since.
#[derive(Debug, Default)]
pub(super) struct Holding {
    /// How many resets of all streams there are.
    all: u32,
    streams: BTreeSet<u16>,
    behind: VecDeque<(Turn, Queued)>,
    /// Bytes of user data of those given for a stream, where there are any: they are asked for often, of one stream after the other.
    bytes: BTreeMap<u16, usize>,
}

impl Holding {
    /// A message without a stream could come to any.
    fn holds(&self, turn: Turn) -> bool {
        match turn {
            Turn::Stream(stream) => self.all > 0 || self.streams.contains(&stream),
            Turn::Spread => self.all > 0 || !self.streams.is_empty(),
        }
    }

    fn push(&mut self, turn: Turn, queued: Queued) {
        if let Turn::Stream(stream) = turn {
            *self.bytes.entry(stream).or_default() += queued.message.payload.len();
        }
        self.behind.push_back((turn, queued));
    }

    fn take(&mut self) -> VecDeque<(Turn, Queued)> {
        self.bytes.clear();
        std::mem::take(&mut self.behind)
    }
}

impl SendQueue {
    /// Keeps the message back if its stream is being reset; else gives it back.
    #[cold]
    pub(super) fn hold_back(&mut self, turn: Turn, queued: Queued) -> Option<Queued> {
        let Some(holding) = self.holding.as_mut().filter(|it| it.holds(turn)) else {
            return Some(queued);
        };
        self.behind += queued.message.payload.len();
        self.messages += 1;
        holding.push(turn, queued);
        None
    }

    /// Bytes of user data given for `stream` that wait.
    pub(super) fn bytes_behind(&self, stream: u16) -> usize {
        let bytes = self.holding.as_ref().and_then(|it| it.bytes.get(&stream));
        bytes.copied().unwrap_or(0)
    }

    /// What is given for `streams` from now on waits; `None`: for any. Those of several calls differ, but for any.
    pub fn hold(&mut self, streams: Option<&[u16]>) {
        let holding = self.holding.get_or_insert_default();
        match streams {
            Some(streams) => holding.streams.extend(streams),
            None => holding.all += 1,
        }
    }

    /// Whether all that was given for `streams` before was sent at least once.
    pub fn is_through(&self, streams: Option<&[u16]>) -> bool {
        let Some(streams) = streams else {
            return self.is_empty();
        };
        let is_through = |stream: &u16| {
            let queued = self.streams.get(*stream);
            queued.is_none_or(|it| it.messages.is_empty())
                && self.started.as_ref().is_none_or(|it| it.stream != *stream)
                && self.paused_at(Turn::Stream(*stream)) == 0
        };
        self.is_empty() || (self.spread.is_empty() && streams.iter().all(is_through))
    }

    /// What was held by one call goes its way. `reset`: these streams, of which nothing is queued, begin anew with number 0.
    pub fn release(&mut self, streams: Option<&[u16]>, reset: bool) {
        match streams {
            Some(streams) if reset => {
                let used = streams.iter().filter(|it| self.streams.get(**it).is_some());
                for stream in used.copied().collect::<Vec<_>>() {
                    let begun_anew = self.streams.entry(stream);
                    begun_anew.next_ssn = Ssn::default();
                    begun_anew.next_mid = Default::default();
                }
            }
            None if reset => self.streams = StreamTable::default(),
            _ => {}
        }
        let Some(mut holding) = self.holding.take() else {
            return;
        };
        match streams {
            Some(streams) => {
                for stream in streams {
                    holding.streams.remove(stream);
                }
            }
            None => holding.all = holding.all.saturating_sub(1),
        }
        for (turn, queued) in holding.take() {
            if holding.holds(turn) {
                holding.push(turn, queued);
            } else {
                self.behind -= queued.message.payload.len();
                self.messages -= 1;
                self.enqueue(turn, queued);
            }
        }
        if holding.all > 0 || !holding.streams.is_empty() {
            self.holding = Some(holding);
        }
    }

    /// Takes back what is held; returns how many messages, and adds the numbers of their receipts to `receipts`.
    pub(super) fn withdraw_held(&mut self, receipts: &mut Vec<u64>) -> usize {
        let Some(holding) = &mut self.holding else {
            return 0;
        };
        let behind = holding.take();
        receipts.extend(behind.iter().filter_map(|(_, queued)| queued.receipt()));
        let withdrawn = behind.len();
        self.messages -= withdrawn;
        self.behind = 0;
        withdrawn
    }
}
