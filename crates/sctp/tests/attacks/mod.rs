//! Attacks on the memory of a receiver.

use anabranch_wire::chunk::Data;
use anabranch_wire::extension::PPID_DTLS_KEY_MANAGEMENT;

use super::{Siege, fragment, message, position};

pub(super) type Attack = (&'static str, fn(&mut Siege));

pub(super) const ATTACKS: &[Attack] = &[
    (
        "256-byte messages behind a hole in datagrams of 16 KiB",
        |it| {
            (1..9_000).for_each(|at| it.send(&[message(at, 0, at, 256)], 16_000));
        },
    ),
    ("256-byte messages, unread, in datagrams of 16 KiB", |it| {
        (0..9_000).for_each(|at| it.send(&[message(at, 0, at, 256)], 16_000));
    }),
    ("256-byte fragments in datagrams of 16 KiB", |it| {
        (1..9_000).for_each(|at| it.send(&[fragment(at, 256)], 16_000));
    }),
    ("1-byte messages, unread, in packets of 1,400 bytes", |it| {
        (0..30_000).for_each(|at| it.send(&[message(at, 0, at, 1)], 1_350));
    }),
    ("1-byte messages, unread", |it| {
        it.send_all((0..60_000).map(|at| message(at, 0, at, 1)));
    }),
    ("100-byte messages, unread, one a packet", |it| {
        (0..30_000).for_each(|at| it.send(&[message(at, 0, at, 100)], 0));
    }),
    ("1-byte fragments of one message, in order", |it| {
        it.send(
            &[Data {
                beginning: true,
                ..fragment(0, 1)
            }],
            0,
        );
        it.send_all((1..60_000).map(|at| fragment(at, 1)));
    }),
    ("1-byte fragments, last first", |it| {
        it.send_all((1..60_000).rev().map(|at| fragment(at, 1)));
    }),
    ("lone 1-byte fragments", |it| {
        it.send_all((1..30_000).map(|at| fragment(2 * at, 1)));
    }),
    ("lone 1-byte fragments, outside in", |it| {
        let places = (1..15_000).flat_map(|at| [2 * at, 60_000 - 2 * at]);
        it.send_all(places.map(|at| fragment(at, 1)));
    }),
    ("a waiting 1-byte message on each of 65,535 streams", |it| {
        it.send_all((0..65_000).map(|at| message(at, at as u16, 1, 1)));
    }),
    (
        "two waiting messages and one between them on each stream",
        |it| {
            it.send_all((0..30_000).map(|at| message(at, at as u16, 1 + at % 2 * 2, 10)));
            it.send_all((30_000..60_000).map(|at| message(at, (at - 30_000) as u16, 2, 10)));
        },
    ),
    (
        "messages of a packet behind a hole, and then what fills holes",
        |it| {
            (1_000..4_000).for_each(|at| it.send(&[message(at, 0, at, 1_400)], 0));
            (1..1_000).for_each(|at| it.send(&[message(at, 0, at, 1_400)], 0));
        },
    ),
    (
        "unordered messages with every other TSN missing, read",
        |it| {
            for at in 1..30_000 {
                let data = Data {
                    unordered: true,
                    ..message(2 * at, 0, 0, 1)
                };
                it.send(&[data], 0);
                it.read(1);
            }
        },
    ),
    (
        "much unread, then all read but one, then as much waiting",
        |it| {
            it.send_all((0..30_000).map(|at| message(at, 0, at, 1)));
            let taken = it.read(1);
            assert_eq!(taken, 1);
            while it.read(2) == 2 {}
            it.send_all((30_000..60_000).map(|at| message(at, 1, at, 1)));
        },
    ),
    (
        "messages that wait in a row, read but a few, and then as much waiting",
        |it| {
            // One number is skipped. Later data continues to wait in a container whose memory was
            // allocated for all of it.
            let number = |at| at + u32::from(at >= 8_000);
            it.send_all((1..30_000).map(|at| message(at, 0, number(at), 1)));
            it.send(&[message(0, 0, 0, 1)], 0);
            while it.read(2) == 2 {}
            (42_000..44_000).for_each(|at| it.send(&[message(at, 1, at, 1_400)], 0));
            (30_001..42_000)
                .rev()
                .for_each(|at| it.send(&[message(at, 1, at, 1_400)], 0));
        },
    ),
    ("sixteen restarts with unread data", |it| {
        for _ in 0..16 {
            it.send_all((0..60_000).map(|at| message(at, 0, at, 1)));
            it.connect();
        }
    }),
];

/// Attacks with fragments of interleaved messages, and with complete messages that cannot be
/// delivered yet.
pub(super) const INTERLEAVED: &[Attack] = &[
    ("pieces without a beginning, one on each stream", |it| {
        it.send_all((1..60_000).map(|at| position(at, at as u16, (0, 1), false, false)));
    }),
    ("beginnings of unordered messages of one stream", |it| {
        it.send_all((1..60_000).map(|at| position(at, 3, (at, 0), true, false)));
    }),
    ("beginnings of messages, last first", |it| {
        it.send_all((1..60_000).map(|at| position(at, 3, (1_000_000 - at, 0), true, false)));
    }),
    ("whole messages that wait on one stream", |it| {
        it.send_all((1..60_000).map(|at| position(at, 3, (at, 0), false, true)));
    }),
    ("a whole message that waits on each stream", |it| {
        it.send_all((1..60_000).map(|at| position(at, at as u16, (1, 0), false, true)));
    }),
    (
        "an ordered and an unordered position on each stream",
        |it| {
            it.send_all(
                (1..60_000).map(|at| position(at, at as u16 / 2, (0, 1), at % 2 == 0, false)),
            );
        },
    ),
    ("two pieces behind a hole of each message", |it| {
        it.send_all(
            (2..60_000).map(|at| position(at, at as u16 / 2, (0, 2 + at % 2), false, false)),
        );
    }),
    ("the first and the third position of each message", |it| {
        it.send_all(
            (2..60_000).map(|at| position(at, at as u16 / 2, (0, at % 2 * 2), false, false)),
        );
    }),
    (
        "seventeen pieces of each message, each behind a hole",
        |it| {
            let place = |at: u32| (0, 1 + at % 17 * 2);
            it.send_all(
                (1..60_000).map(|at| position(at, (at / 17) as u16, place(at), false, false)),
            );
        },
    ),
    ("every other position of one message", |it| {
        it.send_all((1..60_000).map(|at| position(at, 3, (0, 2 * at + 1), false, false)));
    }),
    (
        "sixty messages that are delivered in parts, a byte of each by turns",
        |it| {
            // The window closes, and partial delivery begins.
            let by_turns = |at: u32| position(at, at as u16 % 60, (0, at / 60), false, false);
            it.send_all((0..60_000).map(by_turns));
            it.read(usize::MAX);
            let taken = it.taken();
            it.send_all((taken..taken + 60_000).map(by_turns));
        },
    ),
    ("a message in pieces, in order, that are not read", |it| {
        it.send_all((0..60_000).map(|at| position(at, 3, (0, at), false, false)));
    }),
];

/// A one-byte message of key management.
fn key_message(offset: u32) -> Data {
    Data {
        ppid: PPID_DTLS_KEY_MANAGEMENT,
        ..message(offset, 0, offset, 1)
    }
}

/// Number of key messages that fit into the smallest buffer. More of them end the association.
const KEPT: u32 = 300;

/// Checks that `KEPT` messages wait for the key management, and that the user reads none of them.
fn assert_key_messages_wait(it: &mut Siege) {
    assert!(it.is_open());
    assert_eq!(it.taken(), KEPT);
    assert_eq!(it.read(1), 0, "not for the key management");
}

pub(super) const KEYED: &[Attack] = &[
    ("messages of key management in datagrams of 16 KiB", |it| {
        (0..KEPT).for_each(|at| it.send(&[key_message(at)], 16_000));
        assert_key_messages_wait(it);
        (KEPT..3_000).for_each(|at| it.send(&[key_message(at)], 16_000));
    }),
    ("messages of key management, 70 a packet", |it| {
        it.send_all((0..KEPT).map(key_message));
        assert_key_messages_wait(it);
        it.send_all((KEPT..30_000).map(key_message));
    }),
];

/// Messages that are read in parts, and never end.
pub(super) const ENDLESS: &[Attack] = &[("a message that begins on each stream, read", |it| {
    let begins = |at: u32| Data {
        ending: false,
        ..message(2 * at, at as u16, 0, 1)
    };
    for at in 1..30_000 {
        it.send(&[begins(at)], 0);
        it.read_parts();
    }
})];

pub(super) const INTERLEAVED_ENDLESS: &[Attack] = &[
    (
        "a message that begins on each stream, read as messages",
        |it| {
            for at in 0..60_000 {
                it.send_all([position(at, at as u16, (0, 0), at % 2 == 0, false)].into_iter());
                if !it.is_open() {
                    return;
                }
                it.read(usize::MAX);
            }
        },
    ),
    ("a message that begins on each stream, read", |it| {
        for at in 0..60_000 {
            it.send_all([position(at, at as u16, (0, 0), at % 2 == 0, false)].into_iter());
            it.read_parts();
        }
    }),
    (
        "a message that begins on each stream, and then the buffer full of others, read",
        |it| {
            let begins = |at: u32| position(at, (at / 3) as u16, (at % 3, at % 3 % 2), true, false);
            while it.is_open() && it.taken() < 60_000 {
                let taken = it.taken();
                it.send_all((taken..taken + 6_000).map(begins));
                it.read_parts();
            }
        },
    ),
];
