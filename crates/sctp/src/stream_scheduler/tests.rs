//! Tests of schedulers without a sender, with queues of fragments of given sizes.

use std::collections::BTreeMap;

use super::*;

/// Share of each stream in the bytes sent, in percent, after many rounds. Each stream has a message
/// size, a value, and an unlimited number of messages.
fn shares(kind: SchedulerKind, streams: &[(usize, u16)]) -> Vec<u64> {
    let mut scheduler = Scheduler::new(kind);
    for (stream, (_, value)) in streams.iter().enumerate() {
        scheduler.set_value(stream as u16, *value);
        scheduler.queued(QueueId::Stream(stream as u16), 1);
    }
    let mut bytes = vec![0; streams.len()];
    for _ in 0..20_000 {
        let Some(queue_id @ QueueId::Stream(stream)) = scheduler.pick() else {
            scheduler.packet_ended();
            continue;
        };
        let size = streams[usize::from(stream)].0;
        bytes[usize::from(stream)] += size as u64;
        scheduler.served(ServedData {
            queue_id,
            bytes: size,
            ended: true,
            waiting: 1,
        });
        scheduler.packet_ended();
    }
    let all: u64 = bytes.iter().sum();
    bytes.iter().map(|it| (it * 100 + all / 2) / all).collect()
}

#[test]
fn schedulers_divide_bytes_among_streams_that_always_have_messages() {
    use SchedulerKind::*;
    let streams = [(100, 1), (300, 2), (600, 7)];
    assert_eq!(shares(RoundRobin, &streams), [10, 30, 60]);
    assert_eq!(shares(RoundRobinPerPacket, &streams), [10, 30, 60]);
    assert_eq!(shares(Priority, &streams), [100, 0, 0]);
    assert_eq!(shares(FairCapacity, &streams), [33, 33, 33]);
    assert_eq!(shares(WeightedFair, &streams), [10, 20, 70]);
    assert_eq!(shares(WeightedFair, &[(10, 0), (10, 1)]), [50, 50]);
    assert_eq!(shares(Priority, &[(10, 3), (30, 3), (5, 4)]), [25, 75, 0]);
}

/// A stream that was idle gets its share afterwards, without credit for the idle time.
#[test]
fn idleness_saves_up_nothing() {
    for kind in [SchedulerKind::FairCapacity, SchedulerKind::WeightedFair] {
        let mut scheduler = Scheduler::new(kind);
        let serve = |scheduler: &mut Scheduler, waiting| {
            let queue_id = scheduler.pick().expect("one has messages");
            scheduler.served(ServedData {
                queue_id,
                bytes: 1_000,
                ended: true,
                waiting,
            });
            queue_id
        };
        scheduler.queued(QueueId::Stream(0), 1);
        for _ in 0..1_000 {
            serve(&mut scheduler, 1);
        }
        scheduler.queued(QueueId::Stream(1), 1);
        let next: Vec<_> = (0..10).map(|_| serve(&mut scheduler, 1)).collect();
        let late = next.iter().filter(|it| **it == QueueId::Stream(1)).count();
        assert!((5..=6).contains(&late), "{next:?}");
    }
}

/// A new value takes effect immediately, also for a stream with queued messages.
#[test]
fn a_value_changes_what_waits() {
    let mut scheduler = Scheduler::new(SchedulerKind::Priority);
    for stream in [4, 5] {
        scheduler.queued(QueueId::Stream(stream), 1);
    }
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(4)));
    scheduler.set_value(4, 9);
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(5)));
    scheduler.set_value(5, 10);
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(4)));
}

/// Each packet contains data of only one stream, even if that stream has no more data to fill it,
/// and the next packet contains data of the next stream.
#[test]
fn one_stream_in_each_packet() {
    let mut scheduler = Scheduler::new(SchedulerKind::RoundRobinPerPacket);
    for stream in [1, 2] {
        scheduler.queued(QueueId::Stream(stream), 1);
    }
    let served = |queue_id, waiting| ServedData {
        queue_id,
        bytes: 1,
        ended: true,
        waiting,
    };
    scheduler.served(served(QueueId::Stream(1), 3));
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(1)));
    assert!(scheduler.packet_ended());
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(2)));
    scheduler.served(served(QueueId::Stream(2), 0));
    assert_eq!(scheduler.pick(), None);
    assert!(scheduler.packet_ended() && !scheduler.packet_ended());
    assert_eq!(scheduler.pick(), Some(QueueId::Stream(1)));
}

/// After any sequence of operations, every scheduler lists exactly the nonempty queues.
#[test]
fn the_queues_are_those_that_have_messages() {
    for &kind in SchedulerKind::ALL {
        let mut scheduler = Scheduler::new(kind);
        let mut counts: BTreeMap<QueueId, usize> = BTreeMap::new();
        let mut random = 77_u32;
        let mut draw = |below: u32| {
            random ^= random << 13;
            random ^= random >> 17;
            random ^= random << 5;
            random % below
        };
        for round in 0..20_000 {
            let queue_id = match draw(9) as u16 {
                8 => QueueId::Unassigned,
                stream => QueueId::Stream(stream),
            };
            let count = counts.entry(queue_id).or_default();
            match draw(6) {
                0 | 1 => {
                    *count += 1;
                    scheduler.queued(queue_id, *count);
                }
                2 if *count > 0 => {
                    *count -= 1;
                    scheduler.dropped(queue_id, draw(*count as u32 + 1) as usize, *count);
                }
                3 => scheduler.set_value(draw(8) as u16, draw(4) as u16),
                4 if round % 1_000 == 0 => {
                    let forgotten = scheduler.forget_from(5);
                    for stream in 5..8 {
                        let had = counts.remove(&QueueId::Stream(stream)).unwrap_or_default() > 0;
                        assert_eq!(forgotten.contains(&stream), had, "{kind:?}");
                    }
                }
                _ => {
                    let Some(queue_id) = scheduler.pick() else {
                        let waits = counts.values().any(|it| *it > 0);
                        assert!(scheduler.packet_ended() || !waits, "{kind:?}");
                        continue;
                    };
                    let count = counts.entry(queue_id).or_default();
                    assert!(*count > 0, "{kind:?}: nothing is there");
                    *count -= 1;
                    scheduler.served(ServedData {
                        queue_id,
                        bytes: 1 + draw(100) as usize,
                        ended: true,
                        waiting: *count,
                    });
                }
            }
            let mut queues = scheduler.queues();
            queues.sort_unstable();
            let waiting = counts.iter().filter(|(_, count)| **count > 0);
            let waiting: Vec<_> = waiting.map(|(queue_id, _)| *queue_id).collect();
            assert_eq!(queues, waiting, "{kind:?}, round {round}");
        }
    }
}
