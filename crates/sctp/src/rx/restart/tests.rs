//! Comparison of the data kept over a restart with all readable data of completed messages.

use anabranch_transport::Trace;
use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{ForwardTsn, FragmentPosition, IData, SkippedStream};
use anabranch_wire::{Fsn, Mid, Ssn, Tsn};
use bytes::Bytes;

use super::*;
use crate::config::Config;
use crate::test_rng::test_rng;
use crate::work_counter;

const STREAMS: u16 = 6;

/// Peer that starts, completes and abandons messages and restarts, and all data that its user
/// should read.
struct Scenario {
    config: Config,
    receiver: Receiver,
    trace: Trace,
    next: u32,
    /// By stream: number of the next message, and whether it has started.
    streams: [(u16, bool); STREAMS as usize],
}

fn receiver(config: &Config) -> Receiver {
    let mut receiver = Receiver::new(config, Tsn(1), STREAMS);
    receiver.expect_abandoned(true);
    receiver
}

impl Scenario {
    fn new() -> Self {
        let config = Config::default().with(|it| {
            it.receive_buffer = 1 << 20;
            it.partial_delivery_point = Some(1);
        });
        Self {
            receiver: receiver(&config),
            config,
            trace: Trace::default(),
            next: 1,
            streams: Default::default(),
        }
    }

    /// Receives a chunk of the stream's next message, `ahead` TSNs after the expected TSN.
    fn hears(&mut self, stream: u16, ends: bool, ahead: u32) {
        let (number, begun) = self.streams[usize::from(stream)];
        let data = Data {
            tsn: Tsn(self.next + ahead),
            stream_id: stream,
            ssn: Ssn(number),
            ppid: 0,
            unordered: false,
            beginning: !begun,
            ending: ends,
            immediate: false,
            user_data: Bytes::from(format!("{}", self.next)),
        };
        self.receiver.handle_data(0, data, &mut self.trace);
        self.receiver.on_packet_end(0);
        if ahead == 0 {
            self.next += 1;
            self.streams[usize::from(stream)] = (number + u16::from(ends), !ends);
        }
    }

    /// Receives a message in two parts; a message of another stream is delivered between them.
    fn hears_late_end(&mut self, stream: u16, other: u16) {
        self.hears(stream, false, 0);
        self.hears(other, true, 1);
        self.streams[usize::from(other)].0 += 1;
        self.hears(stream, true, 0);
        self.next += 1;
    }

    /// The peer abandons the started message of the stream.
    fn gives_up(&mut self, stream: u16) {
        let (number, _) = self.streams[usize::from(stream)];
        let skipped = SkippedStream {
            stream_id: stream,
            ssn: Ssn(number),
        };
        let forward = ForwardTsn::new(Tsn(self.next), &[skipped]);
        self.receiver
            .handle_forward_tsn(0, &forward, &mut self.trace);
        self.next += 1;
        self.streams[usize::from(stream)] = (number + 1, false);
    }

    fn restarts(&mut self) {
        let mut former = std::mem::replace(&mut self.receiver, receiver(&self.config));
        self.receiver.take_over_unread(&mut former);
        assert!(former.window.is_empty() || former.ready.is_empty());
        (self.next, self.streams) = (1, Default::default());
    }

    /// Readable data of completed messages.
    fn whole(&self) -> Vec<(u16, Bytes)> {
        let mut endless = [true; STREAMS as usize];
        let mut whole = Vec::new();
        for readable in self.receiver.ready.iter().rev() {
            let part = &readable.part;
            let endless = &mut endless[usize::from(part.stream)];
            *endless &= !part.ends;
            if !readable.is_nothing() && !*endless {
                let bytes = part.payload.parts().concat();
                whole.push((part.stream, bytes.into()));
            }
        }
        whole.reverse();
        whole
    }

    /// Checks that counters match the contents, each empty slot is known, and the last slot is not
    /// empty.
    fn check(&self, what: &str) {
        let ready = &self.receiver.ready;
        let empty = ready.iter().filter(|it| it.is_nothing()).count();
        assert_eq!(empty, ready.empty(), "{what}");
        assert!(!ready.back().is_some_and(|it| it.is_nothing()), "{what}");
    }

    /// Checks that all buffered data is readable, and that its size equals the window's count.
    fn holds_what_can_be_read(&self, what: &str) {
        let parts = self.receiver.ready.iter();
        let bytes: usize = parts.map(|it| it.part.payload.len()).sum();
        assert_eq!(self.receiver.window.used(), bytes as u64, "{what}");
        let full = self.receiver.window.has_memory_for(0, 0);
        assert!(
            full && self.receiver.window.is_empty() == (bytes == 0),
            "{what}"
        );
    }
}

#[test]
fn a_next_life_takes_over_messages_with_their_ends_and_goes_on() {
    let (mut restarts, mut empty, mut lost) = (0, 0, 0);
    for seed in 1..=150 {
        let mut random = test_rng(seed);
        let mut scenario = Scenario::new();
        let reads = random(12);
        for turn in 0..500 {
            let what = format!("seed {seed}, {turn}");
            let stream = random(u32::from(STREAMS)) as u16;
            let begun = scenario.streams[usize::from(stream)].1;
            match random(100) {
                choice if choice < reads => {
                    let whole = scenario.whole();
                    if let Some(part) = scenario.receiver.poll_part() {
                        let read = (part.stream, Bytes::from(part.payload.parts().concat()));
                        let was_whole = whole.first() == Some(&read);
                        assert_eq!(scenario.whole().len() + usize::from(was_whole), whole.len());
                    }
                }
                choice if choice < 30 && begun => scenario.gives_up(stream),
                34..44 if !begun && stream > 0 && !scenario.streams[0].1 => {
                    scenario.hears_late_end(stream, 0);
                }
                31 | 32 => scenario.hears(stream, true, 2 + random(3)),
                33 => {
                    let before = scenario.whole();
                    empty += usize::from(scenario.receiver.ready.empty() > 0);
                    lost += scenario.receiver.ready.len() - before.len();
                    scenario.restarts();
                    assert_eq!(scenario.whole(), before, "{what}");
                    let count = scenario.receiver.ready.len() - scenario.receiver.ready.empty();
                    assert_eq!(count, before.len(), "{what}: nothing else is there");
                    scenario.holds_what_can_be_read(&what);
                    restarts += 1;
                }
                _ => scenario.hears(
                    stream,
                    if begun { random(6) == 0 } else { random(3) > 0 },
                    0,
                ),
            }
            scenario.check(&what);
        }
        // Reads all data; empty slots must not be returned.
        let whole = scenario.whole();
        scenario.restarts();
        let left = std::iter::from_fn(|| scenario.receiver.poll_part());
        let left: Vec<_> = left
            .map(|it| (it.stream, Bytes::from(it.payload.parts().concat())))
            .collect();
        assert_eq!(left, whole, "{seed}");
        assert!(scenario.receiver.is_empty() && scenario.receiver.window.is_empty());
    }
    assert!(
        restarts > 400 && empty > 50 && lost > 1_000,
        "{restarts} {empty} {lost}"
    );
}

/// 3,000 messages are unread, some with an empty slot between them, while the peer repeatedly
/// restarts and abandons messages. The cost of a restart must not depend on the unread messages.
#[test]
fn a_restart_costs_the_same_however_much_is_unread() {
    let mut scenario = Scenario::new();
    for life in 0..40 {
        for at in 0..75 {
            scenario.hears(at % 3, true, 0);
        }
        scenario.hears(4, false, 0);
        scenario.hears(0, true, 0);
        scenario.gives_up(4);
        scenario.hears(5, false, 0);
        scenario.hears(0, true, 0);
        let before = scenario.whole();
        assert_eq!(before.len(), (life + 1) * 77);
        work_counter::take();
        scenario.restarts();
        assert!(work_counter::take() < 500, "{life}");
        assert_eq!(scenario.whole(), before);
        scenario.check("after a restart");
        scenario.holds_what_can_be_read("after a restart");
    }
}

/// A single message larger than the buffer does not fit after the restart, so the parts before its
/// last part are dropped, too.
#[test]
fn unread_data_beyond_the_buffer_is_dropped_from_the_end_at_a_restart() {
    let mut scenario = Scenario::new();
    for at in 0..20 {
        scenario.hears(at % 3, true, 0);
    }
    scenario.hears_late_end(5, 1);
    let before = scenario.whole();
    assert_eq!(before.len(), 23);
    // The new buffer is so small that only the first messages fit.
    scenario.config.receive_buffer = 1_500;
    let room = (0..)
        .take_while(|&it| {
            receiver(&scenario.config)
                .window
                .has_memory_for(2 * it, it as usize)
        })
        .last();
    let room = room.expect("some have") as usize;
    for _ in 0..room {
        scenario.hears(2, true, 0);
    }
    let all = scenario.whole();
    scenario.restarts();
    let kept = scenario.whole();
    assert!(
        kept.len() < all.len() && kept.len() + 30 > room,
        "{} of {room}",
        kept.len()
    );
    assert_eq!(kept, all[..kept.len()]);
    scenario.check("after a restart");
    scenario.holds_what_can_be_read("after a restart");
}

/// Assembled parts of a message are kept if its remaining parts are unread, whatever follows them,
/// and dropped if the remaining parts will not arrive.
#[test]
fn gathered_parts_survive_a_restart_with_their_unread_rest() {
    for interleaved in [false, true] {
        let mut scenario = Scenario::new();
        if interleaved {
            scenario.receiver.expect_interleaved(true);
            scenario.receiver.expect_abandoned(true);
        }
        let mut number = 0;
        let mut position = |scenario: &mut Scenario, stream: u16, flags: &str| {
            if !interleaved {
                return scenario.hears(stream, flags.contains('E'), 0);
            }
            let begins = flags.contains('B');
            let data = IData {
                tsn: Tsn(scenario.next),
                stream_id: stream,
                mid: Mid(u32::from(number / 2)),
                position: if begins {
                    FragmentPosition::First { ppid: 0 }
                } else {
                    FragmentPosition::Later { fsn: Fsn(1) }
                },
                unordered: false,
                ending: flags.contains('E'),
                immediate: false,
                user_data: Bytes::from(format!("{}", scenario.next)),
            };
            number += u16::from(stream == 1);
            scenario
                .receiver
                .handle_i_data(0, data, &mut scenario.trace);
            scenario.next += 1;
        };
        position(&mut scenario, 1, "B");
        assert_eq!(scenario.receiver.poll_message(), Ok(None), "it is gathered");
        position(&mut scenario, 1, "E");
        position(&mut scenario, 1, "B");
        scenario.restarts();
        let message = scenario
            .receiver
            .poll_message()
            .expect("not too long")
            .expect("it is whole");
        assert_eq!(message.payload.into_bytes(), "12");
        assert_eq!(scenario.receiver.poll_message(), Ok(None));
        scenario.check("all is read");
        assert!(scenario.receiver.is_empty() && scenario.receiver.assembly.has_none());
        scenario.hears(2, false, 0);
        assert_eq!(scenario.receiver.poll_message(), Ok(None), "it is gathered");
        assert!(!scenario.receiver.assembly.has_none());
        scenario.restarts();
        assert!(
            scenario.receiver.assembly.has_none(),
            "its end will not come"
        );
    }
}
