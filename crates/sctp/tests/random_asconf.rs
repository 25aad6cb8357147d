//! Random scenarios of two ends that change their addresses during transfers (RFC 5061): networks
//! fail with their packets, new ones appear before or after, and requests and responses are lost,
//! duplicated, late and corrupted. Every message should arrive once and in order, and in the end
//! each end should know exactly the addresses that the other one has.

use crate::common;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_sctp::{
    AddressChange, AddressChangeOutcome, Association, AssociationId, Authentication, CloseReason,
    Config, Event, Profile, SendOptions,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use bytes::Bytes;
use common::*;
use rand_core::{RngCore, SeedableRng};

type Random = rand_pcg::Pcg64Mcg;

/// Number of steps per scenario. It is limited because the addresses of a host are numbered with
/// one byte.
const TURNS: u32 = 60;

fn below(random: &mut Random, most: u32) -> u32 {
    random.next_u32() % most
}

struct Scenario {
    world: World,
    random: Random,
    ids: [AssociationId; 2],
    /// Addresses that are disconnected.
    gone: Rc<RefCell<BTreeSet<IpAddr>>>,
    /// Network number of each host's next address.
    next: [u8; 2],
    /// Number of outstanding requests of each host.
    open: [usize; 2],
    sent: [u32; 2],
    heard: [u32; 2],
    performed: u32,
}

fn config(random: &mut Random, host: usize) -> Config {
    let names = Profile::NAMES;
    let name = names[below(random, names.len() as u32) as usize];
    let mut profile = Profile::by_name(name).expect("its own name");
    profile.potentially_failed = below(random, 2) == 0;
    Config::new(profile).with(|it| {
        it.address_changes = true;
        it.addresses = (0..=below(random, 2) as u8)
            .map(|network| address(host, network))
            .collect();
        it.association_max_retrans = 1_000;
        it.max_init_retransmits = 100;
        it.path_max_retrans = below(random, 5);
        it.heartbeat_interval = (below(random, 4) > 0).then_some(2 * SECOND);
        it.rto_max = 5 * SECOND;
        it.interleaving = below(random, 3) == 0;
        it.reconfiguration = below(random, 2) == 0;
        it.path_mtu_discovery = below(random, 2) == 0;
        it.pack_messages = below(random, 2) == 0;
        it.receive_buffer = if it.interleaving {
            65_536
        } else {
            [65_536, 8_000][below(random, 2) as usize]
        };
        it.cmt = below(random, 4) == 0;
    })
}

impl Scenario {
    fn new(seed: u64) -> Self {
        let mut random = Random::seed_from_u64(seed);
        let mut configs = [config(&mut random, A), config(&mut random, Z)];
        let signed = below(&mut random, 2) == 0;
        for config in &mut configs {
            config.profile.asconf_without_auth = !signed;
            if signed {
                config.authentication = Authentication::On;
            }
        }
        let [a, z] = configs;
        let mut world = World::with_configs(a, z);
        world.narrate = false;
        let a = world.connect();
        world.run_for(SECOND);
        let z = world.only_association(Z);
        let gone = Rc::new(RefCell::new(BTreeSet::new()));
        world.fate = trouble(seed, Rc::clone(&gone));
        world.forget();
        Self {
            world,
            random,
            ids: [a, z],
            gone,
            next: [10; 2],
            open: [0; 2],
            sent: [0; 2],
            heard: [0; 2],
            performed: 0,
        }
    }

    fn association(&mut self, host: usize) -> &mut Association {
        self.world.endpoints[host]
            .association_mut(self.ids[host])
            .expect("known")
    }

    fn fresh(&mut self, host: usize) -> IpAddr {
        self.next[host] += 1;
        address(host, self.next[host])
    }

    fn say(&mut self, host: usize) {
        for _ in 0..below(&mut self.random, 4) {
            let length = 4 + below(&mut self.random, 3_000) as usize;
            let mut text = vec![7; length];
            text[..4].copy_from_slice(&self.sent[host].to_be_bytes());
            let message = Bytes::from(text);
            if self
                .association(host)
                .send(0, message, &SendOptions::on(3))
                .is_ok()
            {
                self.sent[host] += 1;
            }
        }
        self.world.drain(host);
    }

    /// Reads all output, checks the order of the messages, and counts the completed requests.
    fn hear(&mut self) {
        for host in [A, Z] {
            for message in self.world.receive_all(host, self.ids[host]) {
                let text = message.payload.into_bytes();
                let number = u32::from_be_bytes(text[..4].try_into().expect("four"));
                assert_eq!(number, self.heard[host], "at {}", name(host));
                self.heard[host] += 1;
            }
            for event in std::mem::take(&mut self.world.events[host]) {
                match event.1 {
                    Event::AddressChanged { change, outcome } => {
                        self.open[host] -= 1;
                        self.settle(change, outcome);
                    }
                    Event::Closed(reason) => panic!("{}: {reason:?}", name(host)),
                    _ => {}
                }
            }
        }
    }

    fn settle(&mut self, change: AddressChange, outcome: AddressChangeOutcome) {
        if outcome == AddressChangeOutcome::Performed {
            self.performed += 1;
            // At the end the interface with the removed address disappears as well.
            if let AddressChange::Remove(address) = change {
                self.gone.borrow_mut().insert(address);
            }
        }
    }

    fn change(&mut self, host: usize, changes: &[AddressChange]) {
        let now = self.world.now;
        if self
            .association(host)
            .change_addresses(now, changes)
            .is_ok()
        {
            self.open[host] += changes.len();
        }
        self.world.drain(host);
    }

    /// One host requests a change.
    fn wish(&mut self, host: usize) {
        let own = self.association(host).local_addresses();
        let one = own[below(&mut self.random, own.len() as u32) as usize];
        // All addresses of a host may be removed only if the other host does not change its
        // addresses at the same time and no request is outstanding.
        let may_break = self.open == [0; 2];
        let room = own.len() + self.open[host] < 6;
        match below(&mut self.random, 8) {
            0 | 1 if room => {
                let fresh = self.fresh(host);
                let mut changes = vec![AddressChange::Add(fresh)];
                if below(&mut self.random, 2) == 0 {
                    changes.push(AddressChange::PeerPrimary(fresh));
                }
                self.change(host, &changes);
            }
            2 => self.change(host, &[AddressChange::Remove(one)]),
            3 => self.change(host, &[AddressChange::PeerPrimary(one)]),
            4 if may_break => self.change(host, &[AddressChange::KeepOnly(one)]),
            // All networks of the host fail, and a new one appears before or after that.
            5 if may_break => {
                self.gone.borrow_mut().extend(&own);
                let gap = u64::from(below(&mut self.random, 3_000)) * MILLISECOND;
                self.world.run_for(gap);
                self.hear();
                self.replace(host, &own);
            }
            6 if may_break => {
                self.replace(host, &own);
                if below(&mut self.random, 2) == 0 {
                    self.gone.borrow_mut().extend(&own);
                }
            }
            _ => {}
        }
    }

    fn replace(&mut self, host: usize, own: &[IpAddr]) {
        let fresh = self.fresh(host);
        let add = match below(&mut self.random, 3) {
            0 => AddressChange::AddSource(fresh),
            _ => AddressChange::Add(fresh),
        };
        let gone = own.iter().map(|&it| AddressChange::Remove(it));
        let changes: Vec<_> = [add].into_iter().chain(gone).collect();
        self.change(host, &changes);
        if below(&mut self.random, 3) == 0 && own.len() < 5 {
            // The host makes further requests at once, which may remove the source address that it
            // uses.
            let next = self.fresh(host);
            let more = [AddressChange::Add(next), AddressChange::KeepOnly(fresh)];
            let many = 1 + below(&mut self.random, 2) as usize;
            self.change(host, &more[..many]);
        }
    }

    fn run(mut self, seed: u64) -> u32 {
        for _ in 0..TURNS {
            for host in [A, Z] {
                self.say(host);
                if below(&mut self.random, 3) == 0 {
                    self.wish(host);
                }
            }
            let span = u64::from(below(&mut self.random, 400)) * MILLISECOND;
            self.world.run_for(span);
            self.hear();
        }
        for _ in 0..400 {
            if self.heard == [self.sent[Z], self.sent[A]] && self.open == [0; 2] {
                break;
            }
            self.world.run_for(SECOND);
            self.hear();
        }
        assert_eq!(self.open, [0; 2], "seed {seed}: wishes without an answer");
        assert_eq!(self.heard, [self.sent[Z], self.sent[A]], "seed {seed}");
        for host in [A, Z] {
            let own: BTreeSet<_> = self
                .association(host)
                .local_addresses()
                .into_iter()
                .collect();
            let other = self.association(1 - host);
            let known: BTreeSet<_> = other.paths().addresses().collect();
            assert_eq!(own, known, "seed {seed}: addresses of {}", name(host));
        }
        // From here on, only packets from or to addresses that no longer exist are lost, because
        // the loss of the last packet of a shutdown may make it fail. Other tests cover that case.
        let gone = Rc::clone(&self.gone);
        self.world.fate = Box::new(move |shot| {
            let gone = gone.borrow();
            let lost = gone.contains(&shot.path.local) || gone.contains(&shot.path.remote);
            if lost { Fate::Drop } else { Fate::Deliver }
        });
        self.world.run_for(SECOND);
        self.hear();
        self.world.shutdown(A, self.ids[A]);
        self.world.run_for(300 * SECOND);
        for host in [A, Z] {
            let reason = self.world.close_reason(host, self.ids[host]);
            assert_eq!(reason, Some(CloseReason::Shutdown), "seed {seed}");
        }
        self.performed
    }
}

fn trouble(seed: u64, gone: Rc<RefCell<BTreeSet<IpAddr>>>) -> Box<dyn FnMut(&Shot) -> Fate> {
    let mut dice = Random::seed_from_u64(seed ^ 0x5061);
    let lossy = below(&mut dice, 3) * 5;
    Box::new(move |shot| {
        let gone = gone.borrow();
        if gone.contains(&shot.path.local) || gone.contains(&shot.path.remote) {
            return Fate::Drop;
        }
        match below(&mut dice, 100) {
            it if it < lossy => Fate::Drop,
            90..94 => Fate::Duplicate,
            94..98 => Fate::Late(u64::from(below(&mut dice, 60)) * MILLISECOND),
            98 => Fate::Corrupt,
            _ => Fate::Deliver,
        }
    })
}

#[test]
fn messages_arrive_once_from_any_address() {
    let performed = seeds::each(100, |seed| Scenario::new(seed).run(seed));
    let (scenarios, performed) = (performed.len() as u32, performed.iter().sum::<u32>());
    println!("{performed} changes in {scenarios} scenarios");
    assert!(scenarios < 50 || performed > 5 * scenarios, "{performed}");
}
