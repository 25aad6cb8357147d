//! Two connections over a link in memory that delays, loses, duplicates and reorders packets, with
//! a simulated clock. Both have ICE lite, so the tests send the connectivity checks.

use crate::common;
use crate::world;

use std::net::SocketAddr;

use anabranch_datachannel::channels::{ChannelEvent, OpenError};
use anabranch_datachannel::{
    ChannelOptions, Closed, Config, Connection, DiscardReason, Event, Payload,
};
use bytes::Bytes;
use common::{CONTROLLED, attribute, check, check_as};
use stun_types::message::{Message, MessageIntegrityCredentials, ShortTermCredentials};
use world::{SECOND, World, address, check_of, identity, pattern};

/// RFC 9653 §6: SCTP packets have no checksum, because DTLS detects damaged packets.
#[test]
fn both_ends_leave_the_checksum_to_dtls() {
    let world = World::new(1, 0).connect();
    assert!(world.ends.iter().all(Connection::sends_zero_checksums));
}

#[test]
fn channels_from_either_side() {
    let mut world = World::new(1, 0).connect();
    let now = world.now;
    let first = world.ends[0]
        .open(now, ChannelOptions::new("from client"))
        .unwrap();
    let second = world.ends[1]
        .open(now, ChannelOptions::new("from server"))
        .unwrap();
    // The DTLS client uses the even streams (RFC 8832 §6).
    assert_eq!((first.stream(), second.stream()), (0, 1));
    world.run(SECOND);
    for (id, opener, label) in [(first, 0, "from client"), (second, 1, "from server")] {
        assert!(world.has(opener, ChannelEvent::Opened(id)));
        assert!(world.has(1 - opener, ChannelEvent::Incoming(id)));
        let options = world.ends[1 - opener].channels().options(id).unwrap();
        assert_eq!(options.label, label);
    }
    for end in 0..2 {
        world.ends[end]
            .send(world.now, first, Payload::from("hällo"))
            .unwrap();
        world.ends[end]
            .send(world.now, first, Payload::from(""))
            .unwrap();
        world.ends[end]
            .send(world.now, first, Payload::Binary(Bytes::new()))
            .unwrap();
    }
    world.run(SECOND);
    let expected = [
        Payload::from("hällo"),
        Payload::from(""),
        Payload::Binary(Bytes::new()),
    ];
    for end in 0..2 {
        assert_eq!(
            world.messages(end, first),
            expected.iter().collect::<Vec<_>>()
        );
    }
}

/// RFC 8832 §6: a refused DATA_CHANNEL_OPEN should cause a reset of its stream, which notifies the
/// opener. Another channel can use the stream afterwards.
#[test]
fn a_refused_channel_is_closed_at_its_opener() {
    let few = Config::default().with(|it| it.max_channels = 2);
    let mut world = World::of(1, 0, &few, |offer| offer).connect();
    let now = world.now;
    let ids: Vec<_> = (0..5)
        .map(|_| world.ends[1].open(now, ChannelOptions::new("")).unwrap())
        .collect();
    world.run(SECOND);
    for (number, &id) in ids.iter().enumerate() {
        let opened = world.has(1, ChannelEvent::Opened(id));
        let closed = world.has(1, ChannelEvent::Closed(id));
        assert_eq!((opened, closed), (number < 2, number >= 2), "{number}");
    }
    let resets = world.ends[0].channels().discards();
    assert_eq!(resets.of(DiscardReason::TooManyChannels), 3);
    let now = world.now;
    world.ends[1].close_channel(now, ids[0]);
    world.run(SECOND);
    world.events = Default::default();
    let now = world.now;
    let again = world.ends[1].open(now, ChannelOptions::new("")).unwrap();
    world.run(SECOND);
    assert!(world.has(1, ChannelEvent::Opened(again)));
    // Closes the last refused channel, whose stream is free at both ends.
    let now = world.now;
    world.ends[1].close_channel(now, again);
    world.run(SECOND);
    for _ in 0..2 {
        let now = world.now;
        world.ends[1].open(now, ChannelOptions::new("")).unwrap();
    }
    world.run(SECOND);
    let refused = world.ends[0].channels().discards();
    assert_eq!(refused.of(DiscardReason::TooManyChannels), 4);
}

/// Datagrams should contain neither plain text nor SCTP outside DTLS.
#[test]
fn nothing_travels_in_the_clear() {
    let mut world = World::new(1, 0).connect();
    let secret = "a sentence that nobody else reads";
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(secret))
        .unwrap();
    world.ends[0]
        .send(world.now, id, Payload::from(secret))
        .unwrap();
    world.run(SECOND);
    assert_eq!(world.messages(1, id).len(), 1);
    for datagram in &world.wire {
        assert!(datagram[0] <= 3 || (20..=63).contains(&datagram[0]));
        let clear = datagram
            .windows(secret.len())
            .any(|it| it == secret.as_bytes());
        assert!(!clear);
    }
}

/// Over a lossy link, messages of all sizes are sent in both directions on ten channels. Each
/// should arrive once and in order.
#[test]
fn a_link_with_flaws() {
    for seed in 1..=6 {
        let mut world = World::new(seed, 5).connect();
        let now = world.now;
        let ids = world.open(10);
        let sizes = [1, 3, 100, 1_121, 1_122, 2_000, 20_000, 262_144];
        for (number, &id) in ids.iter().enumerate() {
            for (at, &size) in sizes.iter().enumerate() {
                for end in 0..2 {
                    let payload = pattern(number + at + end, size);
                    world.ends[end].send(now, id, payload).unwrap();
                }
            }
        }
        let all = ids.len() * sizes.len();
        world.run_until(|world| {
            let came = |end: usize| {
                ids.iter()
                    .map(|&id| world.messages(end, id).len())
                    .sum::<usize>()
            };
            came(0) == all && came(1) == all
        });
        world.run(5 * SECOND);
        for (number, &id) in ids.iter().enumerate() {
            for end in 0..2 {
                let sent = |at: usize| pattern(number + at + (1 - end), sizes[at]);
                let sent: Vec<_> = (0..sizes.len()).map(sent).collect();
                assert_eq!(world.messages(end, id), sent.iter().collect::<Vec<_>>());
                assert_eq!(world.ends[end].channels().buffered_amount(id), 0);
            }
        }
    }
}

#[test]
fn the_low_mark() {
    let mut world = World::new(1, 0).connect();
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.run(SECOND);
    world.ends[0].set_buffered_amount_low(id, 100_000);
    world.ends[0]
        .send(world.now, id, pattern(1, 262_144))
        .unwrap();
    let buffered = world.ends[0].channels().buffered_amount(id);
    // Data within the window is sent immediately.
    assert!((200_000..262_144).contains(&buffered), "{buffered}");
    let low = ChannelEvent::BufferedAmountLow(id);
    assert!(!world.has(0, low.clone()));
    world.run_until(|world| world.has(0, low.clone()));
    let buffered = world.ends[0].channels().buffered_amount(id);
    assert!(buffered <= 100_000 && buffered > 0, "{buffered}");
}

/// If either certificate does not match the offer, no data should be exchanged.
#[test]
fn a_foreign_certificate() {
    let foreign = identity(5).fingerprint().to_string();
    let own = identity(0).fingerprint().to_string();
    let mut world = World::of(1, 0, &Config::default(), |offer| {
        offer.replace(&own, &foreign)
    });
    world.run(60 * SECOND);
    assert_eq!(world.events[1], [Event::Closed(Closed::Fingerprint)]);
    assert!(!world.events[0].contains(&Event::Connected));
}

/// Binding requests with a wrong username or password, and DTLS from an unchecked address, should
/// have no effect.
#[test]
fn strangers() {
    let mut world = World::new(1, 0).connect();
    let stranger = SocketAddr::from(([127, 0, 0, 9], 9));
    let wrong = check_of(&world, 1, true, "0123456789012345678901");
    let named = {
        let swapped = [world.offers[1].clone(), world.answers[1].clone()];
        check(
            &swapped[0],
            &swapped[1],
            true,
            &attribute(&world.answers[1], "ice-pwd"),
        )
    };
    for bytes in [&wrong[..], &named, &[0; 20], &[0, 1], &wrong[..40]] {
        world.ends[1].handle_datagram(world.now, stranger, bytes);
    }
    world.ends[1].handle_datagram(world.now, stranger, &[22, 254, 253, 0, 0]);
    world.ends[1].handle_datagram(world.now, stranger, &[128, 0]);
    world.ends[1].handle_datagram(world.now, stranger, &[]);
    let discards = world.ends[1].discards();
    assert_eq!(discards.of(DiscardReason::StunCredentials), 2);
    assert_eq!(discards.of(DiscardReason::Stun), 3);
    assert_eq!(discards.of(DiscardReason::UncheckedAddress), 1);
    assert_eq!(discards.of(DiscardReason::NotOurs), 2);
    assert_eq!(world.ends[1].poll_transmit(), None);
    // Invalid data instead of DTLS, from the peer's address.
    for noise in 0..200_u8 {
        let bytes = [23, 254, 253, 0, 1, 0, 0, 0, 0, 0, noise, 0, 2, noise, noise];
        world.ends[1].handle_datagram(world.now, address(0), &bytes);
    }
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.ends[0]
        .send(world.now, id, Payload::from("still here"))
        .unwrap();
    world.run(SECOND);
    assert_eq!(world.messages(1, id), [&Payload::from("still here")]);
}

/// After a nominating check from another address, all traffic should go to that address.
#[test]
fn a_peer_that_moves() {
    let mut world = World::new(1, 0).connect();
    let elsewhere = SocketAddr::from(([127, 0, 0, 9], 9));
    let pwd = attribute(&world.answers[1], "ice-pwd");
    let (plain, nominating) = (
        check_of(&world, 1, false, &pwd),
        check_of(&world, 1, true, &pwd),
    );
    let id = world.ends[1]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.collect();
    for (request, to) in [(plain, address(0)), (nominating, elsewhere)] {
        world.ends[1].handle_datagram(world.now, elsewhere, &request);
        let (answered, answer) = world.ends[1].poll_transmit().unwrap();
        assert_eq!((answered, answer[0]), (elsewhere, 1));
        world.ends[1]
            .send(world.now, id, Payload::from("x"))
            .unwrap();
        let (sent, _) = world.ends[1].poll_transmit().unwrap();
        assert_eq!(sent, to);
    }
}

/// A check from an agent that is also controlled should be answered with error 487 (RFC 8445
/// §7.3.1.1).
#[test]
fn a_role_conflict() {
    let mut world = World::new(1, 0);
    let (answer, offer) = (&world.answers[1], &world.offers[1]);
    let pwd = attribute(answer, "ice-pwd");
    let request = check_as(CONTROLLED, answer, offer, false, &pwd);
    let key: MessageIntegrityCredentials = ShortTermCredentials::new(pwd).into();
    world.ends[1].handle_datagram(0, address(0), &request);
    let (_, answer) = world.ends[1].poll_transmit().unwrap();
    let answer = Message::from_bytes(&answer).unwrap();
    assert!(answer.validate_integrity(&key).is_ok());
    let code = answer
        .attribute::<stun_types::attribute::ErrorCode>()
        .unwrap();
    assert_eq!(code.code(), 487);
}

/// Consent expires 30 s after the last check (RFC 7675 §5.1).
#[test]
fn a_peer_that_is_gone() {
    let mut world = World::new(1, 0).connect();
    let last = world.next_check - 2 * SECOND;
    world.checks = false;
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.run(last + 29 * SECOND - world.now);
    assert!(!world.ends[0].is_closed());
    world.run(2 * SECOND);
    for end in 0..2 {
        let tail = [
            Event::Channel(ChannelEvent::Closed(id)),
            Event::Closed(Closed::Consent),
        ];
        assert!(
            world.events[end].ends_with(&tail),
            "{:?}",
            world.events[end]
        );
        assert_eq!(world.ends[end].poll_timeout(), None);
    }
    let late = world.ends[0].open(world.now, ChannelOptions::new(""));
    assert_eq!(late, Err(OpenError::Closed));
}

#[test]
fn an_end_that_closes_is_heard() {
    let mut world = World::new(1, 0).connect();
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.run(SECOND);
    world.ends[0].close(world.now);
    world.run(SECOND);
    let ended = |end: usize| match world.events[end].last() {
        Some(Event::Closed(reason)) => reason.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(ended(0), Closed::Here);
    assert!(
        matches!(ended(1), Closed::Association(_) | Closed::ByPeer),
        "{:?}",
        ended(1)
    );
    for end in 0..2 {
        assert!(world.has(end, ChannelEvent::Closed(id)));
    }
    let late = world.ends[1].discards().of(DiscardReason::Late);
    world.ends[1].handle_datagram(world.now, address(0), &[22]);
    assert_eq!(world.ends[1].discards().of(DiscardReason::Late), late + 1);
}

/// If a user does not poll events, buffered data should be limited to about the receive window.
#[test]
fn one_that_reads_nothing() {
    let mut world = World::new(1, 0).connect();
    let id = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    world.run(SECOND);
    for number in 0..40 {
        world.ends[0]
            .send(world.now, id, pattern(number, 262_144))
            .unwrap();
    }
    world.reads = false;
    world.run(20 * SECOND);
    assert!(world.ends[1].is_held_back());
    let buffered = world.ends[0].channels().buffered_amount(id);
    assert!(buffered > 6 << 20, "{buffered}");
    // After the receiver polls again, the remaining data should arrive.
    world.reads = true;
    world.run_until(|world| {
        world.collect();
        let now = world.now;
        world.ends[1].resume(now);
        world.messages(1, id).len() == 40
    });
}

/// If either end closes a channel after its messages, both ends should get events, and another
/// channel should be able to use the stream afterwards (RFC 8831 §6.7). This should also work over
/// a lossy link.
#[test]
fn channels_are_closed_and_their_streams_used_again() {
    for (seed, flaws) in [(1, 0), (2, 5), (3, 10), (4, 15)] {
        let mut world = World::new(seed, flaws).connect();
        for turn in 0..6 {
            let (opener, closer) = (turn % 2, turn / 2 % 2);
            let options = ChannelOptions::new(format!("turn {turn}"));
            let id = world.ends[opener].open(world.now, options).unwrap();
            assert_eq!(usize::from(id.stream()), opener, "the same stream again");
            world.run_until(|world| world.has(1 - opener, ChannelEvent::Incoming(id)));
            for number in 0..20 {
                for end in 0..2 {
                    let payload = pattern(number, number * 300);
                    world.ends[end].send(world.now, id, payload).unwrap();
                }
            }
            let other = 1 - closer;
            world.run_until(|world| world.messages(closer, id).len() == 20);
            world.ends[closer].close_channel(world.now, id);
            let closed = world.ends[closer].send(world.now, id, Payload::from("late"));
            assert!(closed.is_err());
            world.run_until(|world| {
                let closed = |end| world.has(end, ChannelEvent::Closed(id));
                closed(0) && closed(1)
            });
            let sent: Vec<_> = (0..20)
                .map(|number| pattern(number, number * 300))
                .collect();
            assert_eq!(world.messages(other, id), sent.iter().collect::<Vec<_>>());
        }
    }
}

/// Many channels that both ends close at the same time.
#[test]
fn three_hundred_channels_are_closed_from_both_ends() {
    let mut world = World::new(1, 3).connect();
    let ids = world.open(300);
    for (number, &id) in ids.iter().enumerate() {
        for end in 0..2 {
            if number % 3 != end {
                world.ends[end].close_channel(world.now, id);
            }
        }
    }
    world.run_until(|world| {
        let all = |end: usize| {
            ids.iter()
                .all(|&id| world.has(end, ChannelEvent::Closed(id)))
        };
        all(0) && all(1)
    });
    let again = world.ends[0]
        .open(world.now, ChannelOptions::new(""))
        .unwrap();
    assert!(again.stream() == 0 && again != ids[0]);
    world.run_until(|world| world.has(1, ChannelEvent::Incoming(again)));
}

/// A short message should not keep the packet in memory in which it arrived with others.
#[test]
fn a_short_message_keeps_no_packet() {
    // Without I-DATA, as in Chromium, because data in I-DATA chunks is copied anyway.
    let config = Config::default().with(|it| it.interleaving = false);
    let mut world = World::of(1, 0, &config, |offer| offer).connect();
    let now = world.now;
    let id = world.ends[0].open(now, ChannelOptions::new("")).unwrap();
    world.run(SECOND);
    for number in 0..200 {
        let payload = pattern(number, 1 + number * 11);
        world.ends[0].send(world.now, id, payload).unwrap();
    }
    world.run_until(|world| world.messages(1, id).len() == 200);
    for event in std::mem::take(&mut world.events[1]) {
        if let Event::Channel(ChannelEvent::Message(_, Payload::Binary(bytes))) = event {
            let length = bytes.len();
            let memory = bytes.try_into_mut().expect("nobody else holds it");
            assert!(memory.capacity() <= 2 * length, "{length}");
        }
    }
}

/// Data that arrived before the end of a connection should be delivered, even if much of it is
/// unpolled.
#[test]
fn data_that_arrived_before_the_end_is_delivered() {
    for by_peer in [true, false] {
        let mut world = World::new(1, 0).connect();
        let now = world.now;
        let id = world.ends[0].open(now, ChannelOptions::new("")).unwrap();
        world.run(SECOND);
        world.reads = false;
        for number in 0..40 {
            let payload = pattern(number, 100_000);
            world.ends[0].send(world.now, id, payload).unwrap();
        }
        world.run(20 * SECOND);
        assert!(world.ends[1].is_held_back());
        // Number of messages that have arrived according to the sender.
        let left = world.ends[0].channels().buffered_amount(id);
        let arrived = (4_000_000 - left) / 100_000;
        let ends = usize::from(!by_peer);
        world.ends[ends].close(world.now);
        world.run(SECOND);
        assert!(world.ends[1].is_closed());
        world.reads = true;
        world.run(SECOND);
        let got = world.messages(1, id).len();
        assert!(got > 20 && got + 1 >= arrived, "{got} of {arrived}");
        for (number, message) in world.messages(1, id).into_iter().enumerate() {
            assert_eq!(message, &pattern(number, 100_000));
        }
        let last = world.events[1].last();
        assert!(matches!(last, Some(Event::Closed(_))), "{last:?}");
    }
}

/// Invalid settings should be named in the error.
#[test]
fn settings_out_of_range() {
    let world = World::new(1, 0);
    #[expect(clippy::disallowed_methods, reason = "an origin and nothing more")]
    let origin = std::time::Instant::now();
    let config = Config::default().with(|it| it.max_buffered_total = 0);
    let refused = world::accept(1, &world.offers[1], &config, origin);
    let why = refused.err().map(|error| error.to_string());
    let expected = "max_buffered_total: found 0; allowed: at least 1";
    assert_eq!(why.as_deref(), Some(expected));
}
