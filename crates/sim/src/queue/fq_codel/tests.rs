use anabranch_transport::Ecn;

use super::super::testing::{MS, QueueTester};
use super::*;

fn bench(config: FqCoDelConfig) -> QueueTester {
    QueueTester::new(
        Box::new(FqCoDel::new(config).expect("a queue")),
        Ecn::NotEct,
    )
}

fn ids(out: Vec<Option<u64>>) -> Vec<u64> {
    out.into_iter().flatten().collect()
}

/// Two flows with packets of equal size alternate. Each new flow begins with a quantum of 1514
/// bytes. A packet of 1500 bytes leaves 14 bytes, so a second packet is sent.
#[test]
fn flows_take_turns() {
    let mut bench = bench(FqCoDelConfig::default());
    bench.come(0, 6, 1); // 0 to 5
    bench.come(0, 6, 2); // 6 to 11
    let out = ids(bench.go([0; 12]));
    assert_eq!(out, [0, 1, 6, 7, 2, 8, 3, 9, 4, 10, 5, 11]);
}

/// The quantum is counted in bytes: three packets of 500 bytes are served for one of 1500.
#[test]
fn turns_are_counted_in_bytes() {
    let mut bench = bench(FqCoDelConfig {
        quantum: 1500,
        ..FqCoDelConfig::default()
    });
    bench.come(0, 3, 1); // 0 to 2
    bench.come_sized(0, 9, 2, 500); // 3 to 11
    let out = ids(bench.go([0; 12]));
    assert_eq!(out, [0, 3, 4, 5, 1, 6, 7, 8, 2, 9, 10, 11]);
}

/// A sparse flow is served before a flow with a standing queue (§4.2).
#[test]
fn a_new_flow_goes_first() {
    let mut bench = bench(FqCoDelConfig::default());
    bench.come(0, 10, 1);
    assert_eq!(ids(bench.go([0; 4])), [0, 1, 2, 3]);
    bench.come_sized(MS, 1, 2, 100);
    assert_eq!(ids(bench.go([MS; 2])), [10, 4]);
}

/// At an overflow half of the longest queue's packets are dropped from its head, and the arriving
/// packet is queued.
#[test]
fn the_longest_queue_pays_for_an_overflow() {
    let mut bench = bench(FqCoDelConfig {
        limit: 10,
        ..FqCoDelConfig::default()
    });
    bench.come(0, 9, 1); // 0 to 8
    assert_eq!(bench.come_sized(0, 2, 2, 100), 0); // 9 and 10
    assert_eq!(bench.dropped, [0, 1, 2, 3, 4]);
    assert_eq!(bench.waiting(), 6);
    let mut out = ids(bench.go([0; 8]));
    out.sort_unstable();
    assert_eq!(out, [5, 6, 7, 8, 9, 10]);
    assert_eq!(bench.waiting(), 0);
}

/// CoDel controls each flow separately: packets of the flow with the standing queue are dropped,
/// and packets of the sparse flow are not.
#[test]
fn only_the_flow_that_stands_loses_packets() {
    let mut bench = bench(FqCoDelConfig::default());
    bench.come(0, 200, 1);
    let mut sparse = Vec::new();
    for step in 0..100 {
        if step % 10 == 0 {
            sparse.push(200 + step / 10);
            bench.come_sized(step * 10 * MS, 1, 2, 100);
        }
        let out = ids(bench.go([step * 10 * MS]));
        assert_eq!(out.len(), 1);
    }
    assert!(bench.dropped.len() > 5, "{:?}", bench.dropped);
    assert!(bench.dropped.iter().all(|id| !sparse.contains(id)));
}

/// Packet and byte counts remain correct after drops, removals and departures: both are 0 at the
/// end.
#[test]
fn nothing_is_left_when_all_are_out() {
    let mut queue = FqCoDel::new(FqCoDelConfig::default()).expect("a queue");
    assert!(queue.remove().is_none());
    assert_eq!(queue.occupancy(), Occupancy::default());
    assert!(
        FqCoDel::new(FqCoDelConfig {
            limit: 0,
            ..FqCoDelConfig::default()
        })
        .is_err()
    );
    let mut bench = bench(FqCoDelConfig::default());
    for round in 0..50 {
        bench.come(round * 3 * MS, 20, (round % 7) as u16);
        bench.go((0..5).map(|step| (round * 3 + step / 2) * MS));
    }
    while bench.go([200 * MS])[0].is_some() {}
    assert_eq!(bench.waiting(), 0);
}
