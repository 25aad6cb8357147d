//! First come, first served (RFC 8260 §3.1).

use std::collections::VecDeque;

use super::{Discipline, Served, Turn};

/// Messages in the order of queuing: the queue of each message, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Fcfs(VecDeque<Turn>);

impl Discipline for Fcfs {
    #[inline]
    fn queued(&mut self, turn: Turn, _waiting: usize) -> bool {
        self.0.push_back(turn);
        false
    }

    #[inline]
    fn pick(&self) -> Option<Turn> {
        self.0.front().copied()
    }

    #[inline]
    fn served(&mut self, served: Served) -> bool {
        debug_assert_eq!(self.pick(), Some(served.turn));
        if served.ended {
            self.0.pop_front();
        }
        false
    }

    fn queues(&self) -> Vec<Turn> {
        let mut queues = Vec::from(self.0.clone());
        queues.sort_unstable();
        queues.dedup();
        queues
    }

    fn dropped(&mut self, turn: Turn, at: usize, _waiting: usize) {
        let mut places = self.0.iter().enumerate().filter(|(_, it)| **it == turn);
        if let Some((place, _)) = places.nth(at) {
            self.0.remove(place);
        }
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    fn forget_from(&mut self, streams: u16) -> Vec<u16> {
        let mut forgotten = Vec::new();
        self.0.retain(|turn| match *turn {
            Turn::Stream(stream) if stream >= streams => {
                forgotten.push(stream);
                false
            }
            _ => true,
        });
        forgotten
    }
}
