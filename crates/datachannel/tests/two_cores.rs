//! Two connections against each other through a link in memory that delays, loses, repeats and reorders, by a clock that stands
//! still between events. Each believes that the other has ICE whole: the tests ask its questions.

mod common;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use anabranch_datachannel::channels::{ChannelEvent, OpenError};
use anabranch_datachannel::{
    AcceptError, ChannelId, ChannelOptions, Closed, Config, Connection, Discard, Event, Identity,
    Payload, Reliability, Secret,
};
use bytes::Bytes;
use common::{attribute, check, offer_of};
use stun_types::attribute::{AttributeType, RawAttribute, Username};
use stun_types::message::{
    BINDING, IntegrityAlgorithm, Message, MessageIntegrityCredentials, MessageWriteVec,
    ShortTermCredentials,
};
use stun_types::prelude::*;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_000 + end as u16))
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % most
    }
}

struct World {
    now: u64,
    /// The DTLS client, the DTLS server.
    ends: [Connection; 2],
    answers: [String; 2],
    offers: [String; 2],
    /// What travels: by when it arrives, and in order of sending.
    travels: BTreeMap<(u64, u64), (usize, Bytes)>,
    sent: u64,
    random: Random,
    /// Of 100: lost, repeated, held up.
    flaws: u64,
    next_check: u64,
    checks: bool,
    /// The second end polls its events.
    reads: bool,
    events: [Vec<Event>; 2],
    wire: Vec<Bytes>,
}

fn identity(end: usize) -> Identity {
    Identity::new([end as u8 + 1; 32]).unwrap()
}

/// Accepts `offer` at `end`.
fn accept(end: usize, offer: &str, origin: Instant) -> Result<(Connection, String), AcceptError> {
    let secret = Secret::new([end as u8 + 7; 32]);
    let config = Config::default();
    let at = (origin, 0);
    Connection::accept(offer, &config, &identity(end), &secret, address(end), at)
}

impl World {
    fn new(seed: u64, flaws: u64) -> Self {
        Self::with(seed, flaws, |offer| offer)
    }

    /// `change`: what becomes of the offer that the server gets.
    fn with(seed: u64, flaws: u64, change: impl Fn(String) -> String) -> Self {
        #[expect(clippy::disallowed_methods, reason = "an origin and nothing more")]
        let origin = Instant::now();
        let draft = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n\
            a=ice-ufrag:xxxx\r\na=ice-pwd:xxxxxxxxxxxxxxxxxxxxxx\r\na=setup:passive\r\n";
        let draft = format!(
            "{draft}a=fingerprint:sha-256 {}\r\n",
            identity(1).fingerprint()
        );
        // Names and passwords come of the secret, so the draft tells them.
        let (_, first) = accept(0, &draft, origin).unwrap();
        let offer = change(offer_of(&first, "active"));
        let (server, second) = accept(1, &offer, origin).unwrap();
        let back = offer_of(&second, "passive");
        let (client, first) = accept(0, &back, origin).unwrap();
        Self {
            now: 0,
            ends: [client, server],
            answers: [first, second],
            offers: [back, offer],
            travels: BTreeMap::new(),
            sent: 0,
            random: Random(seed * 2 + 1),
            flaws,
            next_check: 0,
            checks: true,
            reads: true,
            events: [Vec::new(), Vec::new()],
            wire: Vec::new(),
        }
    }

    fn collect(&mut self) {
        for end in 0..2 {
            while let Some((to, datagram)) = self.ends[end].poll_transmit() {
                assert_eq!(to, address(1 - end));
                assert!(datagram.len() <= 1_200, "{} bytes", datagram.len());
                self.wire.push(datagram.clone());
                // Answers to checks are for those who ask.
                if datagram[0] > 3 {
                    self.travel(1 - end, datagram);
                }
            }
            while (self.reads || end == 0)
                && let Some(event) = self.ends[end].poll_event()
            {
                self.events[end].push(event);
            }
        }
    }

    fn travel(&mut self, to: usize, datagram: Bytes) {
        if self.random.below(100) < self.flaws {
            return;
        }
        let copies = if self.random.below(100) < self.flaws {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let late = self.random.below(100) < self.flaws;
            let delay = 10 * MS + if late { self.random.below(30 * MS) } else { 0 };
            self.sent += 1;
            self.travels
                .insert((self.now + delay, self.sent), (to, datagram.clone()));
        }
    }

    /// Goes on to the next thing that happens; `false` if that is after `until`.
    fn step(&mut self, until: u64) -> bool {
        self.collect();
        let arrival = self.travels.keys().next().map(|&(at, _)| at);
        let timers = self.ends.iter().filter_map(Connection::poll_timeout).min();
        let check = self.checks.then_some(self.next_check);
        let next = [arrival, timers, check].into_iter().flatten().min();
        let Some(next) = next.filter(|&next| next <= until) else {
            self.now = until;
            return false;
        };
        self.now = self.now.max(next);
        if check.is_some_and(|check| check <= self.now) {
            self.next_check = self.now + 2 * SECOND;
            for end in 0..2 {
                let pwd = attribute(&self.answers[end], "ice-pwd");
                let request = check_of(self, end, true, &pwd);
                self.ends[end].handle_datagram(self.now, address(1 - end), &request);
            }
        }
        while let Some(first) = self.travels.first_entry()
            && first.key().0 <= self.now
        {
            let (to, datagram) = first.remove();
            self.ends[to].handle_datagram(self.now, address(1 - to), &datagram);
        }
        for end in &mut self.ends {
            if end.poll_timeout().is_some_and(|at| at <= self.now) {
                end.handle_timeout(self.now);
            }
        }
        true
    }

    fn run(&mut self, span: u64) {
        let until = self.now + span;
        while self.step(until) {}
        self.collect();
    }

    /// Runs until `done`, for ten minutes of the clock at most.
    fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let until = self.now + 600 * SECOND;
        while !done(self) {
            assert!(
                self.step(until),
                "not done: {:?}",
                self.events.each_ref().map(Vec::len)
            );
        }
    }

    fn connect(mut self) -> Self {
        self.run_until(|world| {
            let up = |events: &Vec<Event>| events.contains(&Event::Connected);
            world.events.iter().all(up)
        });
        self
    }

    fn messages(&self, end: usize, id: ChannelId) -> Vec<&Payload> {
        let of = |event| match event {
            &Event::Channel(ChannelEvent::Message(of, ref payload)) if of == id => Some(payload),
            _ => None,
        };
        self.events[end].iter().filter_map(of).collect()
    }

    fn has(&self, end: usize, event: ChannelEvent) -> bool {
        self.events[end].contains(&Event::Channel(event))
    }
}

fn check_of(world: &World, end: usize, nominate: bool, pwd: &str) -> Vec<u8> {
    check(&world.answers[end], &world.offers[end], nominate, pwd)
}

/// Bytes that tell where they are from.
fn pattern(number: usize, length: usize) -> Payload {
    let bytes = (0..length).map(|at| (at * 31 + number * 7) as u8);
    Payload::Binary(bytes.collect::<Bytes>())
}

/// RFC 9653 §6: DTLS finds what is damaged.
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
    // The DTLS client has the even streams (RFC 8832 §6).
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

/// Nothing of what is said is to be seen on the wire, nor is there SCTP outside of DTLS.
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

/// A channel without retransmissions loses what the link loses, and its association is done with it; one beside it loses
/// nothing.
#[test]
fn a_channel_that_gives_up() {
    let mut world = World::new(3, 0).connect();
    let mut options = ChannelOptions::new("partial");
    options.reliability = Reliability::MaxRetransmits(0);
    let partial = world.ends[0].open(world.now, options).unwrap();
    let reliable = world.ends[0]
        .open(world.now, ChannelOptions::new("reliable"))
        .unwrap();
    world.run(SECOND);
    world.flaws = 10;
    let count = 500;
    for number in 0..count {
        let now = world.now;
        for id in [partial, reliable] {
            world.ends[0].send(now, id, pattern(number, 100)).unwrap();
        }
        world.run(20 * MS);
    }
    world.run(60 * SECOND);
    assert_eq!(world.messages(1, reliable).len(), count);
    let arrived = world.messages(1, partial).len();
    let counted = world.ends[0].statistics().expect("connected").sender;
    let given_up = (counted.abandoned_sent + counted.abandoned_unsent) as usize;
    assert!((count / 2..count).contains(&arrived), "{arrived}");
    assert!(counted.forward_tsns > 0 && arrived + given_up >= count);
    let told = [partial, reliable].map(|id| world.ends[0].channels().abandoned(id));
    assert_eq!(told, [given_up as u64, 0]);
}

/// A round trip takes 20 ms: within a lifetime of 50 ms what is lost can be sent again, and within one of 15 ms it cannot. What does
/// not arrive is told in either case.
#[test]
fn channels_whose_messages_live_long_and_short() {
    let mut world = World::new(5, 0).connect();
    let of = |lifetime| {
        let options = ChannelOptions::new("lifetime");
        options.with_reliability(Reliability::MaxLifetime(lifetime))
    };
    let ids = [50, 15].map(|it| world.ends[0].open(world.now, of(it)).unwrap());
    world.run(SECOND);
    world.flaws = 5;
    let count = 500;
    for number in 0..count {
        for id in ids {
            let payload = pattern(number, 100);
            world.ends[0].send(world.now, id, payload).unwrap();
        }
        world.run(5 * MS);
    }
    world.run(60 * SECOND);
    let arrived = ids.map(|id| world.messages(1, id).len());
    let told = ids.map(|id| {
        let told = |it: &&Event| **it == Event::Channel(ChannelEvent::Abandoned(id));
        world.events[0].iter().filter(told).count()
    });
    for at in 0..2 {
        let id = ids[at];
        assert_eq!(
            world.ends[0].channels().abandoned(id),
            told[at] as u64,
            "an event each"
        );
        assert!(arrived[at] < count && arrived[at] + told[at] >= count);
    }
    assert!(told[1] > 10 && told[0] * 2 < told[1], "{told:?}");
}

/// Over a link with flaws: messages of all sizes, both ways, on ten channels, each in order and once.
#[test]
fn a_link_with_flaws() {
    for seed in 1..=6 {
        let mut world = World::new(seed, 5).connect();
        let now = world.now;
        let ids: Vec<_> = (0..10)
            .map(|it| {
                world.ends[it % 2]
                    .open(now, ChannelOptions::new(""))
                    .unwrap()
            })
            .collect();
        world.run(5 * SECOND);
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
    // What the window lets go is gone at once.
    assert!((200_000..262_144).contains(&buffered), "{buffered}");
    let low = ChannelEvent::BufferedAmountLow(id);
    assert!(!world.has(0, low.clone()));
    world.run_until(|world| world.has(0, low.clone()));
    let buffered = world.ends[0].channels().buffered_amount(id);
    assert!(buffered <= 100_000 && buffered > 0, "{buffered}");
}

/// Another certificate than the offer's, in either direction: nothing is exchanged.
#[test]
fn a_foreign_certificate() {
    let foreign = identity(5).fingerprint().to_string();
    let own = identity(0).fingerprint().to_string();
    let mut world = World::with(1, 0, |offer| offer.replace(&own, &foreign));
    world.run(60 * SECOND);
    assert_eq!(world.events[1], [Event::Closed(Closed::Fingerprint)]);
    assert!(!world.events[0].contains(&Event::Connected));
}

/// Binding requests with a wrong name or password, and DTLS from where none came, change nothing.
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
    assert_eq!(discards.of(Discard::StunCredentials), 2);
    assert_eq!(discards.of(Discard::Stun), 3);
    assert_eq!(discards.of(Discard::UncheckedAddress), 1);
    assert_eq!(discards.of(Discard::NotOurs), 2);
    assert_eq!(world.ends[1].poll_transmit(), None);
    // Noise in the place of DTLS, from the peer's address.
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

/// The peer goes on from another address: a check that nominates moves all of it.
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

/// A check by one that is controlled, too: 487 (RFC 8445 §7.3.1.1).
#[test]
fn a_role_conflict() {
    let mut world = World::new(1, 0);
    let mut request = Message::builder_request(BINDING, MessageWriteVec::new());
    let (answer, offer) = (&world.answers[1], &world.offers[1]);
    let name = format!(
        "{}:{}",
        attribute(answer, "ice-ufrag"),
        attribute(offer, "ice-ufrag")
    );
    request
        .add_attribute(&Username::new(&name).unwrap())
        .unwrap();
    let controlled = RawAttribute::new(AttributeType::new(0x8029), &[1; 8]);
    request.add_attribute(&controlled).unwrap();
    let key: MessageIntegrityCredentials =
        ShortTermCredentials::new(attribute(answer, "ice-pwd")).into();
    request
        .add_message_integrity(&key, IntegrityAlgorithm::Sha1)
        .unwrap();
    world.ends[1].handle_datagram(0, address(0), &request.finish());
    let (_, answer) = world.ends[1].poll_transmit().unwrap();
    let answer = Message::from_bytes(&answer).unwrap();
    assert!(answer.validate_integrity(&key).is_ok());
    let code = answer
        .attribute::<stun_types::attribute::ErrorCode>()
        .unwrap();
    assert_eq!(code.code(), 487);
}

/// Without checks consent lapses after 30 s (RFC 7675 §5.1).
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
    let late = world.ends[1].discards().of(Discard::Late);
    world.ends[1].handle_datagram(world.now, address(0), &[22]);
    assert_eq!(world.ends[1].discards().of(Discard::Late), late + 1);
}

/// Who does not poll is sent no more than the window: what waits here has a bound.
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
    // And when it reads, the rest comes.
    world.reads = true;
    world.run_until(|world| {
        world.collect();
        let now = world.now;
        world.ends[1].resume(now);
        world.messages(1, id).len() == 40
    });
}

/// A channel closed by either end, with all that was sent before, tells both, and its stream carries another after it (RFC 8831
/// §6.7); over a link with flaws, too.
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

/// Both ends close at once, and many at a time.
#[test]
fn three_hundred_channels_are_closed_from_both_ends() {
    let mut world = World::new(1, 3).connect();
    let now = world.now;
    let ids: Vec<_> = (0..300)
        .map(|it| {
            world.ends[it % 2]
                .open(now, ChannelOptions::new(""))
                .unwrap()
        })
        .collect();
    world.run(5 * SECOND);
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
