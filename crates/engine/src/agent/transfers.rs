//! Transfers of one member: the start of each, and the arrival of its last byte.
//!
//! A transfer starts when its workload offers it, whether or not the transport has buffer space,
//! and ends when its last byte reaches the receiving application. A transfer with an answer ends
//! with the last byte of the answer.

use std::collections::{BTreeMap, VecDeque};

use anabranch_transport::Nanos;

/// A complete transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Time at which the transfer was due, nanoseconds.
    pub begin: Nanos,
    /// Arrival time of the transfer's last byte, nanoseconds.
    pub end: Nanos,
    /// Sizes of the request and of the answer, bytes.
    pub sizes: [u64; 2],
}

impl Transfer {
    /// Duration of the transfer, nanoseconds.
    pub fn time(&self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }
}

/// A transfer in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    begin: Nanos,
    size: u64,
    answer: Option<u64>,
    /// Whether the request is complete and the answer is in transfer.
    answering: bool,
    /// Bytes that have not arrived yet: of the request, and then of the answer.
    left: u64,
}

/// Effect of arriving bytes on the transfers of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// A transfer is complete.
    Whole(Transfer),
    /// A request is complete, and its answer has this number of bytes.
    Asked(u64),
}

/// Key under which the bytes of a transfer arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// A stream of ordered bytes or messages. Transports without streams use stream 0.
    Stream(u16),
    /// Number of the message that carries the transfer.
    Number(u64),
}

/// Transfers of a member; under each key they are ordered as their bytes arrive.
///
/// Memory depends on the number of transfers in progress, and not on their total.
#[derive(Clone, Debug, Default)]
pub struct TransferTracker {
    under_way: BTreeMap<Key, VecDeque<Open>>,
    offered: u64,
    complete: u64,
}

impl TransferTracker {
    /// Records that the transport accepts a transfer, as the last one under `key`.
    pub fn begin(&mut self, key: Key, begin: Nanos, size: u64, answer: Option<u64>) {
        self.offered += 1;
        self.under_way.entry(key).or_default().push_back(Open {
            begin,
            size,
            answer,
            answering: false,
            left: size,
        });
    }

    /// Records bytes that arrived in order under `key`: of requests at the sink, and of answers at
    /// the source. Calls `tell` for each request and transfer that they complete.
    pub fn arrive(&mut self, key: Key, now: Nanos, mut bytes: u64, mut tell: impl FnMut(Arrived)) {
        let Some(open) = self.under_way.get_mut(&key) else {
            return;
        };
        while bytes > 0
            && let Some(first) = open.front_mut()
        {
            let taken = bytes.min(first.left);
            (first.left, bytes) = (first.left - taken, bytes - taken);
            if first.left > 0 {
                return;
            }
            if let (Some(answer), false) = (first.answer, first.answering) {
                // From now on the entry counts the bytes of the answer, which are sent in the
                // opposite direction.
                (first.answering, first.left) = (true, answer);
                tell(Arrived::Asked(answer));
                return;
            }
            tell(Arrived::Whole(Transfer {
                begin: first.begin,
                end: now,
                sizes: [first.size, first.answer.unwrap_or(0)],
            }));
            open.pop_front();
            self.complete += 1;
        }
        if open.is_empty() {
            self.under_way.remove(&key);
        }
    }

    /// Counts an offered datagram, which is a transfer without a key.
    pub fn count_offered(&mut self) {
        self.offered += 1;
    }

    /// Records a datagram that arrived `delay` nanoseconds after it was due.
    pub fn datagram(&mut self, now: Nanos, delay: Nanos, bytes: u64) -> Transfer {
        self.complete += 1;
        Transfer {
            begin: now.saturating_sub(delay),
            end: now,
            sizes: [bytes, 0],
        }
    }

    /// Number of offered transfers.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Number of complete transfers.
    pub fn complete(&self) -> u64 {
        self.complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(
        transfers: &mut TransferTracker,
        stream: u16,
        now: Nanos,
        bytes: u64,
    ) -> Vec<Arrived> {
        let mut told = Vec::new();
        transfers.arrive(Key::Stream(stream), now, bytes, |arrived| {
            told.push(arrived)
        });
        told
    }

    fn whole(begin: Nanos, end: Nanos, sizes: [u64; 2]) -> Arrived {
        Arrived::Whole(Transfer { begin, end, sizes })
    }

    #[test]
    fn bytes_complete_transfers_in_the_order_of_their_stream() {
        let mut transfers = TransferTracker::default();
        transfers.begin(Key::Stream(0), 10, 100, None);
        transfers.begin(Key::Stream(1), 20, 50, None);
        transfers.begin(Key::Stream(0), 30, 5, None);
        assert_eq!(arrive(&mut transfers, 0, 40, 99), []);
        assert_eq!(arrive(&mut transfers, 1, 50, 50), [whole(20, 50, [50, 0])]);
        let both = [whole(10, 60, [100, 0]), whole(30, 60, [5, 0])];
        assert_eq!(arrive(&mut transfers, 0, 60, 6), both);
        assert_eq!(arrive(&mut transfers, 7, 70, 1), []);
        assert_eq!((transfers.offered(), transfers.complete()), (3, 3));
    }

    #[test]
    fn a_request_is_complete_with_its_answer() {
        let mut transfers = TransferTracker::default();
        transfers.begin(Key::Stream(0), 10, 100, Some(3000));
        assert_eq!(arrive(&mut transfers, 0, 20, 100), [Arrived::Asked(3000)]);
        assert_eq!(arrive(&mut transfers, 0, 30, 2999), []);
        assert_eq!(transfers.complete(), 0);
        assert_eq!(
            arrive(&mut transfers, 0, 40, 1),
            [whole(10, 40, [100, 3000])]
        );
    }
}
