//! Random combinations of extensions with activity of both sides, over a path that loses, delays,
//! duplicates, corrupts and marks packets. Once the path is reliable again, all reliable data
//! should arrive, no data should stay in flight, the window should be open, and the association
//! should close gracefully.

use anabranch_sctp::{
    AddressChange, AssociationId, AssociationState, Authentication, CloseReason, Config,
    Reconfiguration, SendOptions, ZeroChecksum,
};
use anabranch_transport::time::{MILLISECOND, SECOND};

use crate::common::random::Random;
use crate::common::{A, Fate, World, Z, address, seeds};

/// Number of scenarios in one run of the tests.
const USUAL: u64 = 400;
const STEPS: u64 = 150;
const RECEIVE_BUFFER: u32 = 20_000;
/// Last byte of all reliable messages, and of no other messages.
const RELIABLE: u8 = 0xEE;
const HOSTS: [usize; 2] = [A, Z];

/// Bit set of the features that are enabled in a scenario.
#[derive(Clone, Copy, Debug)]
struct Mixture(u64);

impl Mixture {
    const PARTIAL_RELIABILITY: u64 = 0;
    const SEVERAL_HOMES: u64 = 3;
    const AUTHENTICATION: u64 = 4;
    const ZERO_CHECKSUM: u64 = 7;

    fn has(self, bit: u64) -> bool {
        self.0 >> bit & 1 == 1
    }

    fn homes(self) -> u8 {
        if self.has(Self::SEVERAL_HOMES) { 3 } else { 1 }
    }

    /// Whether addresses are changed.
    fn moves(self) -> bool {
        self.has(Self::AUTHENTICATION) && self.has(5)
    }

    fn config(self, host: usize) -> Config {
        let mut config = Config::default();
        config.partial_reliability = self.has(Self::PARTIAL_RELIABILITY);
        config.interleaving = self.has(1);
        config.reconfiguration = true;
        config.partial_delivery_point = self.has(2).then_some(100);
        config.receive_buffer = RECEIVE_BUFFER;
        config.inbound_streams = 8;
        if self.has(Self::AUTHENTICATION) {
            config.authentication = Authentication::On;
            config.address_changes = self.moves();
        }
        config.cmt = self.has(6) && self.has(Self::SEVERAL_HOMES);
        if self.has(Self::ZERO_CHECKSUM) {
            config.zero_checksum = ZeroChecksum::Dtls;
        }
        config.rack = self.has(8);
        config.path_mtu_discovery = self.has(9);
        config.profile.ecn = self.has(10);
        config.profile.potentially_failed = self.has(11);
        config.data_with_cookie_echo = self.has(12);
        config.association_max_retrans = 60;
        config.addresses = (0..self.homes()).map(|it| address(host, it)).collect();
        config
    }
}

/// One association, with the actions of both users.
struct Scenario {
    world: World,
    ids: [AssociationId; 2],
    mixture: Mixture,
    random: Random,
    /// Numbers of reliable messages that were sent to each host (`sent`), and that it has read
    /// (`read`).
    sent: [u64; 2],
    read: [u64; 2],
}

impl Scenario {
    /// Starts the scenario; `None` if no association was established in time because of losses.
    fn begin(seed: u64) -> Option<Self> {
        let mut random = Random::of(seed);
        let mixture = Mixture(random.below(1 << 13));
        let mut world = World::with_configs(mixture.config(A), mixture.config(Z));
        world.narrate = false;
        let mut fates = Random::of(!seed);
        let bends = !mixture.has(Mixture::ZERO_CHECKSUM);
        world.fate = Box::new(move |_| match fates.below(12) {
            0 | 1 => Fate::Drop,
            2..=4 => Fate::Late((1 + fates.below(400)) * MILLISECOND),
            5 => Fate::Duplicate,
            6 if bends => Fate::Corrupt,
            7 => Fate::Mark,
            _ => Fate::Deliver,
        });
        let a = world.connect();
        world.run_for(20 * SECOND);
        if world.endpoints[Z].associations().count() != 1 {
            return None;
        }
        let z = world.only_association(Z);
        Some(Self {
            world,
            ids: [a, z],
            mixture,
            random,
            sent: [0; 2],
            read: [0; 2],
        })
    }

    fn read_all(&mut self) {
        for host in HOSTS {
            let Some(association) = self.world.endpoints[host].association_mut(self.ids[host])
            else {
                continue;
            };
            while let Some(part) = association.poll_part() {
                let whole = part.ends;
                let bytes = part.payload.into_bytes();
                self.read[host] += u64::from(whole && bytes.last() == Some(&RELIABLE));
            }
            self.world.drain(host);
        }
    }

    fn send(&mut self, host: usize, step: u64) {
        let Self { random, world, .. } = self;
        let now = world.now;
        let mut options = SendOptions::new().with_unordered(random.once_in(2));
        let may_be_lost = self.mixture.has(Mixture::PARTIAL_RELIABILITY) && random.once_in(2);
        if may_be_lost && random.once_in(2) {
            options = options.with_max_retransmits(Some(random.below(2) as u32));
        } else if may_be_lost {
            options = options.with_lifetime(Some((50 + random.below(800)) * MILLISECOND));
        }
        let length = [1, 10, 500, 3_000, 9_000][random.below(5) as usize];
        let mut message = vec![step as u8 & 0x7F; length];
        if !may_be_lost {
            message[length - 1] = RELIABLE;
        }
        let Some(association) = world.endpoints[host].association_mut(self.ids[host]) else {
            return;
        };
        let stream = random.below(u64::from(association.status().outbound_streams)) as u16;
        let taken = association.send(now, message.into(), &options.with_stream(Some(stream)));
        self.sent[1 - host] += u64::from(taken.is_ok() && !may_be_lost);
    }

    /// Makes a random request, which may be refused but must not do harm.
    fn ask(&mut self, host: usize) {
        let (now, homes) = (self.world.now, self.mixture.homes());
        let Self { random, world, .. } = self;
        let Some(association) = world.endpoints[host].association_mut(self.ids[host]) else {
            return;
        };
        if random.once_in(12) {
            let _ = association.reconfigure(
                0,
                &Reconfiguration::reset_outgoing([random.below(8) as u16]),
            );
        }
        if random.once_in(30) {
            let _ = association.reconfigure(
                0,
                &Reconfiguration::request_incoming_reset([random.below(8) as u16]),
            );
        }
        if random.once_in(40) {
            let _ = association.reconfigure(now, &Reconfiguration::ResetAssociation);
        }
        if random.once_in(50) {
            let _ = association.reconfigure(
                0,
                &Reconfiguration::add_streams(random.below(3) as u16, random.below(3) as u16),
            );
        }
        if self.mixture.moves() && random.once_in(15) {
            let other = address(host, 10 + random.below(3) as u8);
            let change = match random.below(4) {
                0 => AddressChange::Add(other),
                1 => AddressChange::Remove(other),
                2 => AddressChange::PeerPrimary(other),
                _ => AddressChange::Remove(address(host, random.below(homes.into()) as u8)),
            };
            let _ = association.change_addresses(now, &[change]);
        }
    }

    /// Whether the association is closed at either end.
    fn is_over(&self) -> bool {
        let closed = |host: usize| {
            let association = self.world.endpoints[host].association(self.ids[host]);
            association.is_none_or(|it| it.is_closed())
        };
        closed(A) || closed(Z)
    }

    fn run(&mut self) {
        for step in 0..STEPS {
            if self.is_over() {
                return;
            }
            let host = HOSTS[self.random.below(2) as usize];
            self.send(host, step);
            self.ask(host);
            self.world.drain(host);
            let pause = self.random.below(300) * MILLISECOND;
            self.world.run_for(pause);
            if self.random.once_in(3) {
                self.read_all();
            }
        }
        self.world.fate = Box::new(|_| Fate::Deliver);
        for _ in 0..90 {
            self.world.run_for(10 * SECOND);
            self.read_all();
        }
    }

    fn check(&mut self) {
        for host in HOSTS {
            let association = self.world.endpoints[host].association(self.ids[host]);
            let association = association.expect("up");
            assert_eq!(association.state(), AssociationState::Established, "{host}");
            let left = (
                association.status().outstanding_chunks,
                association.send_buffer().unsent(),
            );
            assert_eq!(left, (0, 0), "{host}: in flight, waiting");
        }
        assert_eq!(self.read, self.sent, "messages that were sent reliably");
        for host in HOSTS {
            for word in ["ping", "pong"] {
                self.world.send(host, self.ids[host], 0, word);
                self.world.run_for(SECOND);
                self.read_all();
                self.world.run_for(SECOND);
            }
            let association = self.world.endpoints[host].association(self.ids[host]);
            let window = association.expect("up").status().peer_rwnd;
            assert!(window + 4 >= u64::from(RECEIVE_BUFFER), "{host}: {window}");
        }
        self.world.shutdown(A, self.ids[A]);
        self.world.run_for(10 * SECOND);
        for host in HOSTS {
            let reason = self.world.close_reason(host, self.ids[host]);
            assert_eq!(reason, Some(CloseReason::Shutdown), "{host}");
        }
    }
}

#[test]
fn whatever_is_on_all_that_is_reliable_arrives_and_nothing_stays() {
    let results = seeds::each(USUAL, |seed| {
        let Some(mut scenario) = Scenario::begin(seed) else {
            return 1;
        };
        scenario.run();
        scenario.check();
        0
    });
    let (down, all) = (results.iter().sum::<u64>(), results.len() as u64);
    assert!(10 * down <= all, "{down} of {all}");
}
