//! Queues in turn.

use std::collections::VecDeque;

use super::Turn;

/// Queues that have messages, each once; the front one has its turn.
#[derive(Debug, Default)]
pub(super) struct Ring(VecDeque<Turn>);

impl Ring {
    #[inline]
    pub fn front(&self) -> Option<Turn> {
        self.0.front().copied()
    }

    /// The front one, if there is no other.
    #[inline]
    pub fn only(&self) -> Option<Turn> {
        if self.0.len() == 1 {
            self.front()
        } else {
            None
        }
    }

    #[inline]
    pub fn join(&mut self, turn: Turn) {
        self.0.push_back(turn);
    }

    /// The front one was served; `waiting` messages are left in it. Whether it is the front one again.
    #[inline]
    pub fn rotate(&mut self, turn: Turn, waiting: usize) -> bool {
        debug_assert_eq!(self.front(), Some(turn));
        if waiting > 0 && self.0.len() == 1 {
            return true;
        }
        self.0.pop_front();
        if waiting > 0 {
            self.0.push_back(turn);
        }
        false
    }

    pub fn remove(&mut self, turn: Turn) {
        // Mostly it has the turn: then the others need no look.
        match self.front() == Some(turn) {
            true => drop(self.0.pop_front()),
            false => self.0.retain(|it| *it != turn),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = Turn> + '_ {
        self.0.iter().copied()
    }

    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes streams from `streams` on out, and puts them into `forgotten`.
    pub fn forget_from(&mut self, streams: u16, forgotten: &mut Vec<u16>) {
        self.0.retain(|turn| match *turn {
            Turn::Stream(stream) if stream >= streams => {
                forgotten.push(stream);
                false
            }
            _ => true,
        });
    }
}
