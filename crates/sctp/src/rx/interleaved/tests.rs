//! Tests of the set of messages whose partial delivery may start.

use anabranch_transport::Trace;
use anabranch_wire::Tsn;
use anabranch_wire::extension::{FragmentPosition, IForwardTsn, SkippedMessage};
use anabranch_wire::serial::{Fsn, Mid};
use bytes::Bytes;

use super::*;
use crate::config::Config;
use crate::rx::sort_keys::MessageKey;
use crate::test_rng::test_rng;

/// Compares the set of messages whose partial delivery may start with all messages whose first
/// fragment is buffered. Returns their number.
fn check(receiver: &Receiver) -> usize {
    let all = (0..6).flat_map(|stream| {
        [false, true].map(|unordered| (0..8).map(move |mid| (stream, unordered, mid)))
    });
    let may_begin = |it: &MessageKey| {
        let head = receiver.reassembly.head_of_message(*it);
        let is_next = it.1 || Mid(it.2) == receiver.order.next(it.0);
        is_next && head.is_some_and(|it| !it.open)
    };
    let expected: Vec<MessageKey> = all.flatten().filter(may_begin).collect();
    assert_eq!(receiver.begun(), expected);
    expected.len()
}

/// Random fragments, skips, resets and reads, with few messages and streams.
#[test]
fn messages_that_may_begin_are_known() {
    let mut random = test_rng(3);
    let mut ready = 0;
    for seed in 0..400_u32 {
        let config = Config {
            receive_buffer: 1_500,
            partial_delivery_point: (seed % 2 == 0).then_some(3),
            ..Config::default()
        };
        let first = Tsn(u32::MAX - seed);
        let mut receiver = Receiver::new(&config, first, 6);
        receiver.expect_interleaved(true);
        receiver.expect_abandoned(true);
        let mut trace = Trace::default();
        let mut at = 0;
        for step in 0..200 {
            let stream = random(6) as u16;
            match random(12) {
                0 => {
                    at += 1 + random(3);
                    let skipped = SkippedMessage {
                        stream_id: stream,
                        unordered: random(2) == 0,
                        mid: Mid(random(8)),
                    };
                    let forward = IForwardTsn::new(first.add(at - 1), [skipped]);
                    receiver.handle_i_forward_tsn(0, &forward, &mut trace);
                }
                1 => {
                    let all = random(4) == 0;
                    let streams = [stream];
                    let meant = (!all).then_some(&streams[..]);
                    let to = receiver.tracker.cumulative();
                    if !receiver.has_unfinished(to, meant) {
                        receiver.reset_streams(0, meant, &mut trace);
                    }
                }
                2 if step % 3 == 0 => while receiver.poll_part().is_some() {},
                3 => {
                    receiver.relieve(0, &mut trace);
                    ready += check(&receiver);
                }
                _ => {
                    let tsn = first.add(at + random(3));
                    at += 1;
                    let fsn = random(4);
                    let position = match fsn {
                        0 => FragmentPosition::First { ppid: 1 },
                        fsn => FragmentPosition::Later { fsn: Fsn(fsn) },
                    };
                    let data = IData {
                        tsn,
                        stream_id: stream,
                        mid: Mid(random(8)),
                        position,
                        unordered: random(2) == 0,
                        ending: fsn == 3 || random(4) == 0,
                        immediate: false,
                        user_data: Bytes::from_static(b"xy"),
                    };
                    receiver.handle_i_data(0, data, &mut trace);
                }
            }
            check(&receiver);
        }
        receiver.restart_tsns(0, Tsn(9), &mut trace);
        check(&receiver);
        while receiver.poll_part().is_some() {}
        assert_eq!(receiver.window.used(), 0, "seed {seed}");
    }
    assert!(ready > 100, "{ready}");
}
