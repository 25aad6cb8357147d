//! Two connections, and the link between them.
#![allow(dead_code, reason = "each test has its part")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use anabranch_datachannel::channels::ChannelEvent;
use anabranch_datachannel::{
    AcceptError, ChannelId, ChannelOptions, Config, Connection, Event, Identity, Payload,
    RandomSeed,
};
use bytes::Bytes;

use crate::common::{attribute, check, offer_of};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

pub fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 4_000 + end as u16))
}

pub struct Random(u64);

impl Random {
    pub fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % most
    }
}

pub struct World {
    pub now: u64,
    /// The DTLS client and the DTLS server.
    pub ends: [Connection; 2],
    pub answers: [String; 2],
    pub offers: [String; 2],
    /// Packets in transit, by arrival time and sequence number.
    pub travels: BTreeMap<(u64, u64), (usize, Bytes)>,
    pub sent: u64,
    pub random: Random,
    /// Probability of loss, of duplication, and of extra delay of a packet, each in percent.
    pub flaws: u64,
    pub next_check: u64,
    pub checks: bool,
    /// Whether the second end polls its events.
    pub reads: bool,
    pub events: [Vec<Event>; 2],
    pub wire: Vec<Bytes>,
}

pub fn identity(end: usize) -> Identity {
    Identity::new([end as u8 + 1; 32]).unwrap()
}

/// Creates the connection of `end` by accepting `offer`.
pub fn accept(
    end: usize,
    offer: &str,
    config: &Config,
    origin: Instant,
) -> Result<(Connection, String), AcceptError> {
    let secret = RandomSeed::new([end as u8 + 7; 32]);
    let at = (origin, 0);
    Connection::accept(offer, config, &identity(end), &secret, address(end), at)
}

impl World {
    pub fn new(seed: u64, flaws: u64) -> Self {
        Self::of(seed, flaws, &Config::default(), |offer| offer)
    }

    /// Creates both connections. `client` configures the DTLS client; `change` modifies the offer
    /// for the server.
    pub fn of(seed: u64, flaws: u64, client: &Config, change: impl Fn(String) -> String) -> Self {
        let server = &Config::default();
        #[expect(clippy::disallowed_methods, reason = "an origin and nothing more")]
        let origin = Instant::now();
        let draft = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n\
            a=ice-ufrag:xxxx\r\na=ice-pwd:xxxxxxxxxxxxxxxxxxxxxx\r\na=setup:passive\r\n";
        let draft = format!(
            "{draft}a=fingerprint:sha-256 {}\r\n",
            identity(1).fingerprint()
        );
        // The credentials are derived from the secret, so those of a draft answer equal those of
        // the final one.
        let (_, first) = accept(0, &draft, client, origin).unwrap();
        let offer = change(offer_of(&first, "active"));
        let (server, second) = accept(1, &offer, server, origin).unwrap();
        let back = offer_of(&second, "passive");
        let (client, first) = accept(0, &back, client, origin).unwrap();
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

    pub fn collect(&mut self) {
        for end in 0..2 {
            while let Some((to, datagram)) = self.ends[end].poll_transmit() {
                assert_eq!(to, address(1 - end));
                assert!(datagram.len() <= 1_200, "{} bytes", datagram.len());
                self.wire.push(datagram.clone());
                // Responses to checks are not sent, because the test evaluates none.
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

    pub fn travel(&mut self, to: usize, datagram: Bytes) {
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

    /// Advances to the next event; `false` if it is after `until`.
    pub fn step(&mut self, until: u64) -> bool {
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

    pub fn run(&mut self, span: u64) {
        let until = self.now + span;
        while self.step(until) {}
        self.collect();
    }

    /// Runs until `done` returns true, at most for ten minutes of simulated time.
    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let until = self.now + 600 * SECOND;
        while !done(self) {
            assert!(
                self.step(until),
                "not done: {:?}",
                self.events.each_ref().map(Vec::len)
            );
        }
    }

    pub fn connect(mut self) -> Self {
        self.run_until(|world| {
            let up = |events: &Vec<Event>| events.contains(&Event::Connected);
            world.events.iter().all(up)
        });
        self
    }

    /// Opens channels without a label, alternately from both ends, and waits until they are open.
    pub fn open(&mut self, count: usize) -> Vec<ChannelId> {
        let now = self.now;
        let ids = (0..count)
            .map(|it| self.ends[it % 2].open(now, ChannelOptions::new("")))
            .collect::<Result<_, _>>()
            .unwrap();
        self.run(5 * SECOND);
        ids
    }

    pub fn messages(&self, end: usize, id: ChannelId) -> Vec<&Payload> {
        let of = |event| match event {
            &Event::Channel(ChannelEvent::Message(of, ref payload)) if of == id => Some(payload),
            _ => None,
        };
        self.events[end].iter().filter_map(of).collect()
    }

    pub fn has(&self, end: usize, event: ChannelEvent) -> bool {
        self.events[end].contains(&Event::Channel(event))
    }
}

pub fn check_of(world: &World, end: usize, nominate: bool, pwd: &str) -> Vec<u8> {
    check(&world.answers[end], &world.offers[end], nominate, pwd)
}

/// Payload that identifies its origin.
pub fn pattern(number: usize, length: usize) -> Payload {
    let bytes = (0..length).map(|at| (at * 31 + number * 7) as u8);
    Payload::Binary(bytes.collect::<Bytes>())
}
