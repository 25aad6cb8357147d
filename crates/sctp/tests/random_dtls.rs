//! Random scenarios of associations that use the DTLS chunk: packets are lost, reordered,
//! duplicated, corrupted and replayed, keys change, and ends restart, over two paths. No message
//! should be lost or delivered twice, and no user data should be sent unprotected. Seeds are chosen
//! as in [`common::seeds`].

use crate::common;
use crate::dtls::{DTLS, contains, strict, with_methods};
use crate::dtls_certificates as certificates;

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_sctp::{AssociationId, AssociationState, Config, Endpoint, RestartKeys, SendOptions};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::{BufMut, Bytes, BytesMut};
use common::*;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Prefix of each message.
const MARK: &[u8] = b"in the clear?";

fn message(host: usize, number: u32, size: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(MARK.len() + 5 + size);
    bytes.put_slice(MARK);
    bytes.put_u8(host as u8);
    bytes.put_u32(number);
    bytes.put_bytes(number as u8, size);
    bytes.freeze()
}

struct Scenario {
    world: World,
    random: Pcg64Mcg,
    ids: [Option<AssociationId>; 2],
    /// Number of messages sent by each host.
    sent: [u32; 2],
    /// Number of the last message that was received from each host.
    received: [Option<u32>; 2],
    /// For each host: number of its messages received since the last restart, and number of the
    /// first message that it sent after the restart.
    since: [(u32, u32); 2],
    restarts: u32,
    seen: Vec<Shot>,
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let homes = 1 + random.next_u32() % 2;
        let packets = match random.next_u32() % 3 {
            0 => None,
            _ => Some(u64::from(20 + random.next_u32() % 200)),
        };
        let base = match seed % 3 {
            0 => with_methods(certificates::methods(seed.is_multiple_of(2))),
            _ => strict(),
        };
        let config = |host: usize| {
            base.clone().with(|it: &mut Config| {
                it.addresses = (0..homes).map(|net| address(host, net as u8)).collect();
                it.dtls_rekey_packets = packets;
            })
        };
        let mut world = World::with_configs(config(A), config(Z));
        let luck = Rc::new(RefCell::new(Pcg64Mcg::seed_from_u64(seed ^ 0xD715)));
        let trouble = u64::from(random.next_u32() % 12);
        world.fate = Box::new(move |_| {
            let draw = u64::from(luck.borrow_mut().next_u32() % 100);
            match draw {
                _ if draw < trouble => Fate::Drop,
                _ if draw < 2 * trouble => Fate::Late(draw * 3 * MILLISECOND),
                _ if draw < 3 * trouble => Fate::Duplicate,
                _ if draw < 4 * trouble && draw % 3 == 0 => Fate::Corrupt,
                _ => Fate::Deliver,
            }
        });
        let a = world.connect();
        Self {
            world,
            random,
            ids: [Some(a), None],
            sent: [0; 2],
            received: [None; 2],
            since: [(0, 0); 2],
            restarts: 0,
            seen: Vec::new(),
        }
    }

    fn up(&self, host: usize) -> Option<AssociationId> {
        let id = self.ids[host]?;
        let association = self.world.endpoints[host].association(id)?;
        (association.protection().is_active()
            && association.state() == AssociationState::Established)
            .then_some(id)
    }

    fn run(&mut self, span: u64) {
        self.world.run_for(span);
        let endpoint = &self.world.endpoints[Z];
        let open = |id: &AssociationId| endpoint.association(*id).is_some_and(|it| !it.is_closed());
        self.ids[Z] = endpoint.associations().filter(open).last().or(self.ids[Z]);
        for host in [A, Z] {
            let Some(id) = self.ids[host] else { continue };
            for it in self.world.receive_all(host, id) {
                let bytes = it.payload.into_bytes();
                let (from, rest) = bytes[MARK.len()..].split_first().expect("a message");
                let number = u32::from_be_bytes(rest[..4].try_into().expect("4 bytes"));
                assert_eq!(usize::from(*from), 1 - host);
                assert_eq!(bytes, message(1 - host, number, rest.len() - 4));
                let last = self.received[1 - host].replace(number);
                assert!(
                    last.is_none_or(|last| number > last),
                    "{number} after {last:?}"
                );
                if number >= self.since[1 - host].1 {
                    self.since[1 - host].0 += 1;
                }
            }
        }
        for shot in std::mem::take(&mut self.world.shots) {
            assert!(!contains(&shot.bytes, MARK), "user data in clear");
            if self.random.next_u32().is_multiple_of(8) {
                self.seen.push(shot);
            }
        }
        self.world.forget();
    }

    fn send(&mut self, host: usize) {
        let Some(id) = self.up(host) else { return };
        let size = match self.random.next_u32() % 4 {
            0 => 1 + self.random.next_u32() as usize % 8_000,
            _ => 1 + self.random.next_u32() as usize % 1_000,
        };
        let (now, payload) = (self.world.now, message(host, self.sent[host], size));
        let association = self.world.endpoints[host].association_mut(id).expect("up");
        let options = SendOptions::on(1);
        if association.send(now, payload, &options).is_ok() {
            self.sent[host] += 1;
        }
        self.world.drain(host);
    }

    fn rekey(&mut self, host: usize) {
        if let Some(id) = self.up(host) {
            let now = self.world.now;
            (self.world.endpoints[host].association_mut(id).expect("up"))
                .protection_mut()
                .rekey(now);
            self.world.drain(host);
        }
    }

    /// Delivers an earlier packet again, or a part of it as an unprotected packet.
    fn replay(&mut self) {
        if self.seen.is_empty() {
            return;
        }
        let at = self.random.next_u32() as usize % self.seen.len();
        let shot = self.seen[at].clone();
        let path = shot.path.reversed();
        self.world.inject_from(1 - shot.from, path, shot.bytes);
    }

    /// A loses all state except its restart keys.
    fn restart(&mut self) {
        let keys = |this: &Self, host: usize| -> Option<RestartKeys> {
            let association = this.world.endpoints[host].association(this.up(host)?)?;
            association.protection().restart_keys()
        };
        let (Some(own), Some(_)) = (keys(self, A), keys(self, Z)) else {
            return;
        };
        self.restarts += 1;
        let config = self.world.endpoints[A].config().clone();
        let seed = [self.restarts as u8 + 50; 32];
        self.world.endpoints[A] = Endpoint::new(config, PORT_A, seed).expect("settings");
        let now = self.world.now;
        let a = self.world.endpoints[A]
            .connect(now, &[address(Z, 0)], PORT_Z)
            .expect("no association yet");
        let association = self.world.endpoints[A].association_mut(a).expect("known");
        assert!(association.protection_mut().restart_with(&own));
        self.world.drain(A);
        self.ids[A] = Some(a);
        for second in 0..90 {
            self.run(SECOND);
            if second == 30 {
                self.world.fate = Box::new(|_| Fate::Deliver);
            }
            if self.up(A).is_some() {
                break;
            }
        }
        let all: Vec<_> = (self.world.endpoints[Z].associations())
            .map(|it| self.world.endpoints[Z].association(it).map(|it| it.state()))
            .collect();
        let state = self.world.state(A, a);
        assert!(self.up(A).is_some(), "{own:?} {state:?} {all:?}");
        // A restart may lose earlier messages of both ends.
        self.since = [(0, self.sent[A]), (0, self.sent[Z])];
    }

    fn end(mut self) {
        self.world.fate = Box::new(|_| Fate::Deliver);
        for _ in 0..200 {
            self.run(SECOND);
        }
        for host in [A, Z] {
            let id = self.ids[host].expect("known");
            let association = self.world.endpoints[host].association(id).expect("known");
            let discards = self.world.endpoints[host].discards();
            let state = (
                association.close_reason(),
                association.protection().statistics(),
                discards,
            );
            assert!(
                self.up(host).is_some(),
                "{} is not up: {state:?}",
                name(host)
            );
        }
        for host in [A, Z] {
            let (came, first) = self.since[host];
            assert_eq!(came, self.sent[host] - first, "messages of {}", name(host));
        }
        let clear = self.seen.iter().filter(|it| it.chunks != DTLS).count();
        assert!(clear < 60, "{clear}");
    }
}

fn scenario(seed: u64) {
    let mut scenario = Scenario::new(seed);
    for _ in 0..20 {
        scenario.run(200 * MILLISECOND);
    }
    for _ in 0..120 {
        match scenario.random.next_u32() % 64 {
            0 => scenario.rekey(A),
            1 => scenario.rekey(Z),
            2 => scenario.restart(),
            3..10 => scenario.replay(),
            10..30 => scenario.send(Z),
            _ => scenario.send(A),
        }
        let span = u64::from(scenario.random.next_u32() % 40) * MILLISECOND;
        scenario.run(span);
    }
    scenario.end();
}

#[test]
fn random_sequences_lose_nothing_and_send_nothing_unprotected() {
    common::seeds::each(60, scenario);
}
