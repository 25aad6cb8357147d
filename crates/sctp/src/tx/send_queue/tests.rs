//! Tests of the send queue: chunks and their order.

use super::*;
use crate::stream_scheduler::SchedulerKind;

fn queue_of(kind: SchedulerKind) -> SendQueue {
    SendQueue::of(Scheduler::new(kind))
}

/// Stream for a message queued without one; never called in these tests.
fn none() -> u16 {
    unreachable!("every message has its stream")
}

fn message(length: usize) -> Message {
    Message {
        ppid: 7,
        unordered: false,
        payload: Bytes::from(vec![0; length]),
    }
}

fn order(
    kind: SchedulerKind,
    sends: &[(u16, usize)],
    most: usize,
) -> Vec<(u16, u16, usize, bool, bool)> {
    let mut queue = queue_of(kind);
    for (stream, length) in sends {
        queue.push(
            QueueId::Stream(*stream),
            message(*length),
            false,
            None,
            None,
        );
    }
    let mut popped = Vec::new();
    while !queue.is_empty() {
        let expected = queue.next_len(most);
        let chunk = queue.pop(most, none).expect("something is queued");
        assert_eq!(chunk.user_data.len(), expected);
        popped.push((
            chunk.stream,
            chunk.ssn.0,
            expected,
            chunk.beginning,
            chunk.ending,
        ));
    }
    assert!(queue.pop(most, none).is_none());
    popped
}

#[test]
fn round_robin_takes_one_message_of_each_stream_in_turn() {
    let sends = [(3, 10), (3, 11), (3, 12), (1, 20), (9, 30), (1, 21)];
    assert_eq!(
        order(SchedulerKind::RoundRobin, &sends, 100)
            .iter()
            .map(|c| (c.0, c.1))
            .collect::<Vec<_>>(),
        [(3, 0), (1, 0), (9, 0), (3, 1), (1, 1), (3, 2)]
    );
}

#[test]
fn first_come_first_served_keeps_the_order_given() {
    let sends = [(3, 10), (1, 20), (3, 11), (9, 30)];
    assert_eq!(
        order(SchedulerKind::Fcfs, &sends, 100)
            .iter()
            .map(|c| (c.0, c.1))
            .collect::<Vec<_>>(),
        [(3, 0), (1, 0), (3, 1), (9, 0)]
    );
}

#[test]
fn a_started_message_is_finished_before_another_begins() {
    assert_eq!(
        order(
            SchedulerKind::RoundRobin,
            &[(0, 250), (1, 100), (0, 1)],
            100
        ),
        [
            (0, 0, 100, true, false),
            (0, 0, 100, false, false),
            (0, 0, 50, false, true),
            (1, 0, 100, true, true),
            (0, 1, 1, true, true)
        ]
    );
}

#[test]
fn streams_not_agreed_on_are_forgotten() {
    for kind in [SchedulerKind::RoundRobin, SchedulerKind::Fcfs] {
        let mut queue = queue_of(kind);
        for stream in [1, 7, 2, 7, 9, 1] {
            queue.push(QueueId::Stream(stream), message(10), false, None, None);
        }
        assert_eq!(queue.forget_streams_from(7).len(), 3);
        assert_eq!(queue.bytes(), 30);
        let left: Vec<u16> = std::iter::from_fn(|| queue.pop(100, none))
            .map(|chunk| chunk.stream)
            .collect();
        assert_eq!(left, [1, 2, 1]);
    }
}

#[test]
fn unstarted_messages_are_cancelled_and_started_ones_are_finished() {
    for kind in [SchedulerKind::RoundRobin, SchedulerKind::Fcfs] {
        let mut queue = queue_of(kind);
        for queue_id in [
            QueueId::Stream(4),
            QueueId::Unassigned,
            QueueId::Stream(4),
            QueueId::Stream(1),
        ] {
            queue.push(queue_id, message(10), false, None, None);
        }
        let begun = queue.pop(6, none).expect("queued");
        assert_eq!((begun.stream, begun.ending), (4, false));
        assert_eq!(queue.withdraw().len(), 3);
        assert_eq!(queue.bytes(), 4);
        let rest = queue.pop(100, none).expect("begun");
        assert_eq!((rest.stream, rest.ending), (4, true));
        assert!(queue.pop(100, none).is_none() && queue.is_empty());
        queue.push(QueueId::Stream(1), message(10), false, None, None);
        let next = queue.pop(100, none).expect("queued anew");
        assert_eq!(
            (next.stream, next.ssn.0),
            (1, 0),
            "numbers were not used up"
        );
    }
}

#[test]
fn unordered_messages_use_no_sequence_number_and_numbers_wrap() {
    let mut queue = queue_of(SchedulerKind::RoundRobin);
    for queue_id in 0..65_538u32 {
        queue.push(
            QueueId::Stream(5),
            Message {
                unordered: queue_id == 3,
                ..message(1)
            },
            false,
            None,
            None,
        );
        let chunk = queue.pop(10, none).expect("queued");
        let ordered_before = if queue_id > 3 { queue_id - 1 } else { queue_id };
        assert_eq!(u32::from(chunk.ssn.0), ordered_before % 65_536);
    }
}

/// Messages without a stream are assigned to a stream when they start, and alternate with messages
/// that have a stream.
#[test]
fn a_message_without_a_stream_gets_one_when_it_is_begun() {
    let mut queue = queue_of(SchedulerKind::RoundRobin);
    for length in [250, 40, 50] {
        queue.push(QueueId::Unassigned, message(length), false, None, None);
    }
    queue.push(QueueId::Stream(2), message(60), false, None, None);
    let mut queue_id = 0;
    let mut any = || {
        queue_id += 1;
        queue_id
    };
    let mut popped = Vec::new();
    while !queue.is_empty() {
        assert!(queue.next_len(100) > 0);
        let chunk = queue.pop(100, &mut any).expect("queued");
        popped.push((chunk.stream, chunk.ssn.0, chunk.user_data.len()));
    }
    assert_eq!(
        popped,
        [
            (1, 0, 100),
            (1, 0, 100),
            (1, 0, 50),
            (2, 0, 60),
            (2, 1, 40),
            (3, 0, 50)
        ]
    );
    assert_eq!(queue_id, 3);
}

/// The number of queued bytes of a stream must equal the bytes queued minus the bytes removed in
/// any way.
#[test]
fn bytes_of_a_stream_are_those_given_and_not_taken() {
    for (seed, interleaving) in (1..200_u64).flat_map(|it| [(it, false), (it, true)]) {
        let mut random = seed;
        let mut below = |most: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % most
        };
        let mut queue = queue_of(SchedulerKind::ALL[seed as usize % 6]);
        queue.set_interleaving(interleaving);
        let mut expected = [0; 4];
        for _ in 0..60 {
            let (stream, length) = (below(4) as u16, 1 + below(50) as usize);
            match below(12) {
                0..6 => {
                    queue.push(QueueId::Stream(stream), message(length), false, None, None);
                    expected[usize::from(stream)] += length;
                }
                6..10 => {
                    if let Some(chunk) = queue.pop(20, none) {
                        expected[usize::from(chunk.stream)] -= chunk.user_data.len();
                    }
                }
                10 => {
                    if let Some(unsent) = queue
                        .started_message()
                        .is_none()
                        .then(|| queue.drop_next())
                        .flatten()
                    {
                        expected[usize::from(unsent.stream.unwrap())] -=
                            unsent.message.payload.len();
                    }
                }
                _ => {
                    if let Some((stream, ..)) = queue.started_message() {
                        let others = queue.streams.get(stream).unwrap().messages.iter();
                        let left = others.map(|it| it.message.payload.len()).sum();
                        queue.drop_started(stream);
                        expected[usize::from(stream)] = left;
                    }
                }
            }
            for stream in 0..4 {
                assert_eq!(queue.bytes_of(stream), expected[usize::from(stream)]);
            }
            assert_eq!(queue.bytes(), expected.iter().sum::<usize>());
        }
    }
}

/// Takes runs by [`SendQueue::single_chunk_run`], three messages at a time, and all other chunks one
/// by one. Returns the number of messages taken in runs.
fn pop_in_rows(queue: &mut SendQueue, most: usize, popped: &mut Vec<Fragment>) -> usize {
    let before = popped.len();
    let Some(mut run) = queue.single_chunk_run() else {
        popped.extend(queue.pop(most, none));
        return 0;
    };
    while popped.len() - before < 3
        && let Some(length) = run.next_len().filter(|length| *length <= most)
    {
        let fragment = run.take().expect("it was told of");
        assert_eq!(fragment.user_data.len(), length);
        popped.push(fragment);
    }
    let goes_otherwise = run.end(most);
    assert_eq!(goes_otherwise, queue.next > most);
    let taken = popped.len() - before;
    if goes_otherwise {
        popped.extend(queue.pop(most, none));
    }
    taken
}

#[test]
fn messages_taken_in_a_row_come_out_as_one_by_one() {
    let fill = |kind, streams: u16| {
        let mut queue = queue_of(kind);
        for (at, length) in [10, 20, 30, 40, 250, 60, 70, 101, 100].iter().enumerate() {
            let message = Message {
                unordered: at % 3 == 1,
                ppid: at as u32,
                ..message(*length)
            };
            let stream = 5 + at as u16 % streams;
            queue.push(QueueId::Stream(stream), message, at % 2 == 0, None, None);
        }
        queue
    };
    for (kind, streams, in_rows) in [
        (SchedulerKind::RoundRobin, 1, 7),
        // With two streams, only the last message is taken in a run, because the other stream is
        // then empty.
        (SchedulerKind::RoundRobin, 2, 1),
        (SchedulerKind::Fcfs, 1, 0),
    ] {
        let (mut rows, mut single) = (fill(kind, streams), fill(kind, streams));
        let (mut popped, mut expected, mut taken) = (Vec::new(), Vec::new(), 0);
        while !rows.is_empty() {
            taken += pop_in_rows(&mut rows, 100, &mut popped);
            while expected.len() < popped.len() {
                expected.extend(single.pop(100, none));
            }
            assert_eq!(popped, expected);
            let sums = |it: &SendQueue| (it.bytes(), it.messages(), it.next_len(usize::MAX));
            assert_eq!(sums(&rows), sums(&single));
            assert_eq!(
                [5, 6].map(|stream| rows.bytes_of(stream)),
                [5, 6].map(|stream| single.bytes_of(stream))
            );
        }
        assert_eq!(taken, in_rows, "{kind:?}, {streams}");
        assert!(single.is_empty() && rows.single_chunk_run().is_none());
        // The stream becomes active again.
        rows.push(QueueId::Stream(5), message(9), false, None, None);
        assert_eq!(rows.next_len(usize::MAX), 9);
        assert_eq!(
            pop_in_rows(&mut rows, 100, &mut popped),
            usize::from(kind == SchedulerKind::RoundRobin)
        );
    }
}

#[test]
fn a_message_on_terms_of_its_own_is_not_taken_in_a_row() {
    let mut queue = queue_of(SchedulerKind::RoundRobin);
    let terms = PrPolicy {
        receipt: Some(3),
        ..PrPolicy::default()
    };
    queue.push(QueueId::Stream(0), message(10), false, None, None);
    queue.push(
        QueueId::Stream(0),
        message(20),
        false,
        Some(Box::new(terms)),
        None,
    );
    let mut run = queue.single_chunk_run().expect("of one stream");
    assert_eq!(run.next_len(), Some(10));
    assert!(run.take().is_some());
    assert_eq!(run.next_len(), None);
    assert!(run.end(100), "it goes otherwise");
    assert_eq!(queue.pop(100, none).map(|it| it.user_data.len()), Some(20));
    assert_eq!(queue.take_ended(), Some(3));
}

/// Deferred bytes count for their streams until the messages are released or removed.
#[test]
fn bytes_behind_a_reset_count_for_their_streams() {
    let mut queue = queue_of(SchedulerKind::RoundRobin);
    let put = |queue: &mut SendQueue, queue_id, length| {
        queue.push(queue_id, message(length), false, None, None);
    };
    queue.hold(Some(&[1, 2]));
    for (queue_id, length) in [
        (QueueId::Stream(1), 10),
        (QueueId::Stream(2), 20),
        (QueueId::Stream(1), 30),
        (QueueId::Stream(3), 40),
        (QueueId::Unassigned, 50),
    ] {
        put(&mut queue, queue_id, length);
    }
    let of_each = |queue: &SendQueue| [1, 2, 3].map(|it| queue.bytes_of(it));
    assert_eq!(of_each(&queue), [40, 20, 40]);
    assert_eq!(queue.bytes(), 150);
    let behind = |queue: &SendQueue| [1, 2, 3].map(|it| queue.bytes_behind(it));
    assert_eq!(behind(&queue), [40, 20, 0]);
    queue.release(Some(&[1]), true);
    assert_eq!(behind(&queue), [0, 20, 0]);
    assert_eq!(of_each(&queue), [40, 20, 40]);
    assert_eq!(queue.withdraw_held().len(), 2, "of 2, and the one of any");
    assert_eq!(of_each(&queue), [40, 0, 40]);
    put(&mut queue, QueueId::Stream(2), 5);
    assert_eq!(of_each(&queue), [40, 5, 40]);
    queue.release(Some(&[2]), false);
    assert_eq!(behind(&queue), [0, 0, 0]);
    assert_eq!(of_each(&queue), [40, 5, 40]);
}

/// Simple implementation: one queue of all deferred messages, scanned at each release.
#[derive(Default)]
struct Walked {
    all: u32,
    streams: std::collections::BTreeSet<u16>,
    behind: Vec<(QueueId, usize)>,
    /// Queued messages in order.
    queued: Vec<(QueueId, usize)>,
}

impl Walked {
    fn holds(&self, queue_id: QueueId) -> bool {
        match queue_id {
            QueueId::Stream(stream) => self.all > 0 || self.streams.contains(&stream),
            QueueId::Unassigned => self.all > 0 || !self.streams.is_empty(),
        }
    }

    fn push(&mut self, queue_id: QueueId, length: usize) {
        if self.holds(queue_id) {
            self.behind.push((queue_id, length));
        } else {
            self.queued.push((queue_id, length));
        }
    }

    fn release(&mut self, streams: Option<&[u16]>) {
        match streams {
            Some(streams) => streams.iter().for_each(|it| {
                self.streams.remove(it);
            }),
            None => self.all = self.all.saturating_sub(1),
        }
        for (queue_id, length) in std::mem::take(&mut self.behind) {
            self.push(queue_id, length);
        }
    }

    fn bytes_behind(&self, stream: u16) -> usize {
        let of_it = self
            .behind
            .iter()
            .filter(|it| it.0 == QueueId::Stream(stream));
        of_it.map(|it| it.1).sum()
    }
}

/// Compares overlapping resets of some streams and of all streams with a simple implementation: the
/// deferred messages must be the same, and released messages must be queued in the order in which
/// the user queued them, over all streams.
#[test]
fn released_messages_equal_those_of_a_plain_queue() {
    let mut held = 0;
    for seed in 1..=200 {
        let mut random = crate::test_rng::test_rng(seed);
        let mut queue = queue_of(SchedulerKind::Fcfs);
        let mut walked = Walked::default();
        let mut holds: Vec<Option<Vec<u16>>> = Vec::new();
        for round in 1..=300 {
            match random(10) {
                0 => {
                    let all = random(4) == 0;
                    let free = |it: &u16| !walked.streams.contains(it);
                    let some: Vec<u16> = (0..6).filter(|_| random(3) == 0).filter(free).collect();
                    let streams = (!all).then_some(some);
                    queue.hold(streams.as_deref());
                    match &streams {
                        Some(some) => walked.streams.extend(some),
                        None => walked.all += 1,
                    }
                    holds.push(streams);
                }
                1 if !holds.is_empty() => {
                    let streams = holds.swap_remove(random(holds.len() as u32) as usize);
                    queue.release(streams.as_deref(), false);
                    walked.release(streams.as_deref());
                }
                2 if random(20) == 0 => {
                    let withdrawn = queue.withdraw_held().len();
                    assert_eq!(withdrawn, std::mem::take(&mut walked.behind).len());
                }
                _ => {
                    let to = match random(8) as u16 {
                        6.. => QueueId::Unassigned,
                        stream => QueueId::Stream(stream),
                    };
                    queue.push(to, message(round), false, None, None);
                    walked.push(to, round);
                    held = held.max(walked.behind.len());
                }
            }
            let behind: Vec<_> = (0..6).map(|it| queue.bytes_behind(it)).collect();
            let expected: Vec<_> = (0..6).map(|it| walked.bytes_behind(it)).collect();
            assert_eq!(behind, expected, "seed {seed}, {round}");
            let all = walked.behind.iter().map(|it| it.1).sum::<usize>();
            assert_eq!(queue.behind, all, "seed {seed}, {round}");
            assert_eq!(
                queue.messages(),
                walked.behind.len() + walked.queued.len(),
                "seed {seed}, {round}"
            );
        }
        for streams in holds {
            queue.release(streams.as_deref(), false);
            walked.release(streams.as_deref());
        }
        assert!(queue.deferred.is_none(), "seed {seed}");
        // The scheduler `fcfs` shows the order.
        let sent = std::iter::from_fn(|| queue.pop(1_000, || 9).map(|it| it.user_data.len()));
        let expected = walked.queued.iter().map(|it| it.1);
        assert!(sent.eq(expected), "seed {seed}");
    }
    assert!(held > 30, "{held}");
}

#[test]
fn a_release_costs_what_is_released() {
    let mut queue = queue_of(SchedulerKind::RoundRobin);
    let streams: Vec<u16> = (0..2_000).collect();
    queue.hold(Some(&streams));
    for stream in (0..2_000).chain([7]).chain([9; 20_000]) {
        queue.push(QueueId::Stream(stream), message(1), false, None, None);
    }
    crate::work_counter::take();
    queue.release(Some(&[7]), true);
    assert_eq!(crate::work_counter::take(), 2);
    queue.hold(None);
    queue.release(Some(&[8]), true);
    queue.release(None, false);
    assert_eq!(crate::work_counter::take(), 1, "that of 8");
}
