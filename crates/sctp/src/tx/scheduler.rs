//! Which stream's message goes next.

use std::collections::VecDeque;

use crate::config::SchedulerKind;

/// Whose turn it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Messages given for this stream.
    Stream(u16),
    /// Messages given without a stream.
    Spread,
}

/// Keeps the queues that have messages in the order of their turns.
#[derive(Debug)]
pub(super) struct Scheduler {
    kind: SchedulerKind,
    /// Round robin: each queue with messages, once. FCFS: a queue for each message, oldest first.
    turns: VecDeque<Turn>,
}

impl Scheduler {
    pub fn new(kind: SchedulerKind) -> Self {
        Self {
            kind,
            turns: VecDeque::new(),
        }
    }

    /// A message was queued at `turn`, which holds `waiting` of them now.
    pub fn queued(&mut self, turn: Turn, waiting: usize) {
        if self.kind == SchedulerKind::Fcfs || waiting == 1 {
            self.turns.push_back(turn);
        }
    }

    /// Whose turn it is, if anybody's.
    pub fn pick(&self) -> Option<Turn> {
        self.turns.front().copied()
    }

    /// A message of the queue whose turn it was has been taken; `waiting` are left in it. Whether it has the next turn, too.
    #[inline]
    pub fn served(&mut self, turn: Turn, waiting: usize) -> bool {
        debug_assert_eq!(self.pick(), Some(turn));
        let again = self.kind == SchedulerKind::RoundRobin && waiting > 0;
        if again && self.turns.len() == 1 {
            return true;
        }
        self.turns.pop_front();
        if again {
            self.turns.push_back(turn);
        }
        false
    }

    /// Every queue that has messages, once.
    pub fn queues(&self) -> Vec<Turn> {
        let mut queues: Vec<Turn> = Vec::new();
        for &turn in &self.turns {
            // In turns there are as many as messages only where they are served first come first.
            if self.kind == SchedulerKind::RoundRobin || !queues.contains(&turn) {
                queues.push(turn);
            }
        }
        queues
    }

    /// The message at `at` of the queue `turn` is there no more; `waiting` are left in it.
    pub fn dropped(&mut self, turn: Turn, at: usize, waiting: usize) {
        let mut places = self.turns.iter().enumerate();
        let place = match self.kind {
            SchedulerKind::Fcfs => places.filter(|(_, it)| **it == turn).nth(at),
            SchedulerKind::RoundRobin if waiting == 0 => places.find(|(_, it)| **it == turn),
            SchedulerKind::RoundRobin => None,
        };
        if let Some((place, _)) = place {
            self.turns.remove(place);
        }
    }

    /// Nobody has a message any more.
    pub fn clear(&mut self) {
        self.turns.clear();
    }

    /// Takes streams from `streams` on out of the turns, and returns them, each once or more.
    pub fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.turns.retain(|turn| match *turn {
            Turn::Stream(stream) if stream >= streams => {
                forgotten.push(stream);
                false
            }
            _ => true,
        });
        forgotten
    }
}
