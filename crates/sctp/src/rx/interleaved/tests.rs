//! Consistency of the index with the messages.

use anabranch_transport::Trace;
use anabranch_wire::extension::{FragmentPosition, IForwardTsn, SkippedMessage};
use anabranch_wire::serial::{Fsn, Mid};
use bytes::Bytes;

use super::*;
use crate::config::Config;
use crate::path::PathId;
use crate::rx::Receiver;
use crate::test_rng::test_rng;

fn check(receiver: &mut Receiver) {
    let Some(interleaved) = receiver.interleaved.as_deref_mut() else {
        return;
    };
    for key in interleaved.whole.keys() {
        assert!(!interleaved.unfinished.contains_key(key));
    }
    for (stream, name) in &interleaved.open {
        let key = (*stream, name.0, name.1);
        assert!(interleaved.unfinished.contains_key(&key));
    }
    let Some(kept) = interleaved.index.take() else {
        return;
    };
    let made = format!("{:?}", interleaved.indexed());
    assert_eq!(format!("{kept:?}"), made);
    interleaved.index = Some(kept);
}

/// Random fragments, skips, resets and reads of few messages and streams: an index built early must
/// equal one built now.
#[test]
fn the_index_is_what_the_messages_say() {
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
        receiver.expect_interleaved(true, true);
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
                    receiver.handle_i_forward_tsn(0, &forward, PathId(0), &mut trace);
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
                    receiver.relieve_interleaved(0, &mut trace);
                    let found = receiver
                        .interleaved
                        .as_deref_mut()
                        .map(|it| it.first_ready(9).len());
                    ready += found.unwrap_or_default();
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
                    receiver.handle_i_data(0, data, PathId(0), &mut trace);
                }
            }
            check(&mut receiver);
        }
        receiver.restart_tsns(0, Tsn(9), &mut trace);
        check(&mut receiver);
        while receiver.poll_part().is_some() {}
        assert_eq!(receiver.window.used(), 0, "seed {seed}");
    }
    assert!(ready > 100, "{ready}");
}
