//! Which stream's message goes next.

use std::collections::VecDeque;

use crate::config::SchedulerKind;

/// Keeps the streams that have messages in the order of their turns.
#[derive(Debug)]
pub(super) struct Scheduler {
    kind: SchedulerKind,
    /// Round robin: each stream with messages, once. FCFS: a stream for each message, oldest first.
    turns: VecDeque<u16>,
}

impl Scheduler {
    pub fn new(kind: SchedulerKind) -> Self {
        Self {
            kind,
            turns: VecDeque::new(),
        }
    }

    /// A message was queued on `stream`, which holds `waiting` of them now.
    pub fn queued(&mut self, stream: u16, waiting: usize) {
        if self.kind == SchedulerKind::Fcfs || waiting == 1 {
            self.turns.push_back(stream);
        }
    }

    /// Whose turn it is, if anybody's.
    pub fn pick(&self) -> Option<u16> {
        self.turns.front().copied()
    }

    /// The message of the stream whose turn it was has been taken; `waiting` are left on it.
    pub fn served(&mut self, stream: u16, waiting: usize) {
        debug_assert_eq!(self.pick(), Some(stream));
        self.turns.pop_front();
        if self.kind == SchedulerKind::RoundRobin && waiting > 0 {
            self.turns.push_back(stream);
        }
    }

    /// Takes streams from `streams` on out of the turns, and returns them, each once or more.
    pub fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let (kept, forgotten): (Vec<u16>, Vec<u16>) = self
            .turns
            .iter()
            .copied()
            .partition(|stream| *stream < streams);
        self.turns = kept.into();
        forgotten
    }
}
