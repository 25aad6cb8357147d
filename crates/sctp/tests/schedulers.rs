//! Tests of the stream schedulers in complete associations (RFC 8260 §3). They check the DATA
//! chunks on the wire.

use crate::common;

use anabranch_sctp::SendOptions;
use anabranch_sctp::config::{Config, SchedulerKind, StreamValues};
use anabranch_transport::time::SECOND;
use anabranch_wire::chunk::Chunk;
use common::*;

/// For each packet with DATA: the streams of its chunks. The messages have these streams and sizes,
/// and all of them are queued before the first one is sent.
fn packets(kind: SchedulerKind, values: &[u16], messages: &[(u16, usize)]) -> Vec<Vec<u16>> {
    let config = Config::default().with(|it| {
        it.scheduler = kind;
        it.stream_values = Some(StreamValues(values.to_vec()));
    });
    let mut world = World::new(config);
    let (a, z) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    for (stream, length) in messages {
        let options = SendOptions::on(*stream);
        let sent = association.send(world.now, vec![1; *length].into(), &options);
        sent.expect("room");
    }
    world.drain(A);
    world.run_for(10 * SECOND);
    assert_eq!(world.receive_all(Z, z).len(), messages.len());
    let sent = world.shots.iter().filter(|it| it.from == A);
    let packets = sent.map(|shot| {
        let data = chunks_of(&shot.bytes).into_iter();
        let streams = data.filter_map(|it| match it {
            Chunk::Data(data) => Some(data.stream_id),
            _ => None,
        });
        streams.collect::<Vec<_>>()
    });
    packets.filter(|it| !it.is_empty()).collect()
}

fn order(kind: SchedulerKind, values: &[u16], messages: &[(u16, usize)]) -> Vec<u16> {
    packets(kind, values, messages).concat()
}

#[test]
fn messages_go_as_each_scheduler_says() {
    use SchedulerKind::*;
    let messages = [(2, 400), (2, 400), (2, 400), (0, 400), (1, 400), (0, 400)];
    assert_eq!(order(Fcfs, &[], &messages), [2, 2, 2, 0, 1, 0]);
    assert_eq!(order(RoundRobin, &[], &messages), [2, 0, 1, 2, 0, 2]);
    assert_eq!(order(Priority, &[3, 2, 2], &messages), [2, 1, 2, 2, 0, 0]);
    assert_eq!(order(Priority, &[], &messages), [2, 0, 1, 2, 0, 2]);
    let sizes = [
        (0, 1_200),
        (0, 1_200),
        (1, 400),
        (1, 400),
        (1, 400),
        (1, 400),
    ];
    assert_eq!(order(FairCapacity, &[], &sizes), [0, 1, 1, 1, 0, 1]);
    assert_eq!(order(WeightedFair, &[1, 2], &sizes), [0, 1, 1, 1, 1, 0]);
    assert_eq!(order(WeightedFair, &[4, 1], &sizes), [0, 1, 0, 1, 1, 1]);
}

/// §3.3: a packet should have chunks of only one stream. A message of several packets should be
/// completed before another one begins, and should share no packet with another.
#[test]
fn packets_are_of_one_stream() {
    let kind = SchedulerKind::RoundRobinPerPacket;
    let messages = [(0, 300), (0, 300), (1, 300), (0, 300), (1, 2_000), (2, 300)];
    let expected: [&[u16]; 6] = [&[0, 0, 0], &[1], &[1], &[1], &[2], &[]];
    let sent = packets(kind, &[], &messages);
    for packet in &sent {
        assert!(packet.iter().all(|it| *it == packet[0]), "{sent:?}");
    }
    assert_eq!(
        sent[..2],
        [expected[0].to_vec(), expected[1].to_vec()],
        "{sent:?}"
    );
    assert_eq!(sent.concat().len(), 7);
}

/// RFC 8260 §4.3.3: the value of a stream may be changed while messages are queued. It should take
/// effect at once.
#[test]
fn a_value_counts_at_once() {
    let config = Config::default().with(|it| it.scheduler = SchedulerKind::Priority);
    let mut world = World::new(config);
    let (a, _) = world.established();
    let association = world.endpoints[A].association_mut(a).expect("known");
    for stream in [1, 1, 2, 2] {
        let options = SendOptions::on(stream);
        let sent = association.send(world.now, vec![1; 600].into(), &options);
        sent.expect("room");
    }
    association.set_stream_value(1, 7);
    world.drain(A);
    world.run_for(SECOND);
    let chunks = world.shots.iter().flat_map(|it| chunks_of(&it.bytes));
    let streams = chunks.filter_map(|it| match it {
        Chunk::Data(data) => Some(data.stream_id),
        _ => None,
    });
    assert_eq!(streams.collect::<Vec<_>>(), [2, 2, 1, 1]);
}
