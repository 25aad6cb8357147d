//! All features at once: hosts that lose their state and connect again, streams that are reset and
//! added while messages are abandoned, windows that shrink, path MTUs that fall and rise, forged
//! ICMP, a NAT that loses its mapping, keys and schedulers that change, clocks that jump, and
//! numbers that wrap. In every case reliable messages arrive once and in order, abandoned messages
//! are reported, work and memory are bounded, and no timer fires without effect. Once the network
//! is reliable, all messages are delivered and both ends agree.

mod ledger;
mod wire;

use anabranch_congestion::{Protocol, Requirement, registry};
use anabranch_sctp::config::SchedulerKind;
use anabranch_sctp::{
    Association, AssociationId, AssociationState, Authentication, ChunkTypes, CloseReason, Config,
    ConnectOptions, Endpoint, Event, Reconfiguration, SendOptions, SharedKeys, ZeroChecksum,
};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_wire::chunk::kind;

use crate::common::random::Random;
use crate::common::{A, PORT_A, PORT_Z, Z, address, seeds};
use ledger::Ledger;
use wire::{REGISTERED, Weather, Wire};

/// Number of scenarios in one run of the tests.
const USUAL: u64 = 500;
const STEPS: u64 = 120;
const HOSTS: [usize; 2] = [A, Z];
const PORTS: [u16; 2] = [PORT_A, PORT_Z];
const RECEIVE_BUFFER: u32 = 20_000;
const SEND_BUFFER: usize = 40_000;
/// Size of the last messages in bytes. Chunks of this size are not tiny, so the receiver does not
/// reduce its window as it does for runs of tiny chunks.
const LAST: usize = 400;
/// Number of keys that both ends know.
const KEYS: u16 = 4;
const SCHEDULERS: [SchedulerKind; 6] = [
    SchedulerKind::RoundRobin,
    SchedulerKind::Fcfs,
    SchedulerKind::RoundRobinPerPacket,
    SchedulerKind::Priority,
    SchedulerKind::FairCapacity,
    SchedulerKind::WeightedFair,
];

/// Bit set of the features that are enabled in a scenario.
#[derive(Clone, Copy, Debug)]
struct Mixture(u32);

impl Mixture {
    const PARTIAL_RELIABILITY: u32 = 0;
    const INTERLEAVING: u32 = 1;
    const PARTS: u32 = 2;
    const SEVERAL_HOMES: u32 = 3;
    const AUTHENTICATION: u32 = 4;
    const ZERO_CHECKSUM: u32 = 5;
    const DISCOVERY: u32 = 6;
    const NAT: u32 = 7;
    const JUMPS: u32 = 8;
    const RESTARTS: u32 = 9;
    const RESETS: u32 = 10;
    const ECN: u32 = 11;
    const SHRINKING: u32 = 12;
    const LIES: u32 = 13;
    const RACK: u32 = 14;
    const EARLY_DATA: u32 = 15;
    const FULL_PACKETS: u32 = 16;
    const POTENTIALLY_FAILED: u32 = 17;
    const COUNT: u32 = 18;
    /// First of four bits that select the congestion control, if [`Self::CONTROLS`] is set.
    const CONTROL: u32 = 18;
    const CONTROLS: u32 = 22;
    const PACING: u32 = 23;

    /// Features of the scenario with this seed.
    fn of(seed: u64) -> Self {
        let common = Random::of(seed ^ 0x0A11).below(1 << Self::COUNT) as u32;
        let mut others = Random::of(seed ^ 0x0C07);
        let control = others.below(16) as u32;
        let mut on = |often: u64, bit: u32| u32::from(others.once_in(often)) << bit;
        let others = [(4, Self::CONTROLS), (4, Self::PACING)].map(|(often, bit)| on(often, bit));
        Self(common | control << Self::CONTROL | others[0] | others[1])
    }

    fn has(self, bit: u32) -> bool {
        self.0 >> bit & 1 == 1
    }

    fn homes(self) -> u8 {
        // A NAT is not combined with several addresses, because each network would need its own
        // NAT.
        let several = self.has(Self::SEVERAL_HOMES) && !self.has(Self::NAT);
        if several { 2 } else { 1 }
    }

    fn config(self, host: usize) -> Config {
        let mut config = Config::default();
        config.partial_reliability = self.has(Self::PARTIAL_RELIABILITY);
        config.interleaving = self.has(Self::INTERLEAVING);
        config.partial_delivery_point = self.has(Self::PARTS).then_some(1_000);
        config.reconfiguration = true;
        config.receive_buffer = RECEIVE_BUFFER;
        config.send_buffer = SEND_BUFFER;
        (config.outbound_streams, config.inbound_streams) = (5, 12);
        if self.has(Self::AUTHENTICATION) {
            self.authenticate(&mut config);
        }
        if self.has(Self::ZERO_CHECKSUM) {
            config.zero_checksum = ZeroChecksum::Dtls;
        }
        config.path_mtu_discovery = self.has(Self::DISCOVERY);
        config.encapsulation = if self.has(Self::NAT) { 8 } else { 0 };
        config.profile.ecn = self.has(Self::ECN);
        config.rack = self.has(Self::RACK);
        config.data_with_cookie_echo = self.has(Self::EARLY_DATA);
        config.pack_messages = self.has(Self::FULL_PACKETS);
        config.profile.potentially_failed = self.has(Self::POTENTIALLY_FAILED);
        if self.has(Self::CONTROLS) {
            let mut controls = registry::all(Protocol::Sctp);
            controls.retain(|it| it.needs == Requirement::Nothing);
            let which = (self.0 >> Self::CONTROL & 15) as usize;
            config.congestion = controls[which % controls.len()];
        }
        config.pacing = self.has(Self::PACING).then_some(1.25);
        config.association_max_retrans = 100;
        config.max_init_retransmits = 100;
        config.addresses = (0..self.homes()).map(|it| address(host, it)).collect();
        config
    }

    fn authenticate(self, config: &mut Config) {
        let mut keys = SharedKeys::only(0, b"first".to_vec());
        for key in 1..KEYS {
            keys.set(key, vec![b'k'; usize::from(key)]).expect("room");
        }
        config.auth_keys = keys;
        config.authentication = Authentication::On;
        let data = [kind::DATA, kind::I_DATA, kind::RE_CONFIG];
        config.authenticated_chunks = self.has(Self::EARLY_DATA).then(|| ChunkTypes::of(&data));
    }

    fn weather(self) -> Weather {
        let on = |bit: u32, value: u64| if self.has(bit) { value } else { 0 };
        Weather {
            lost: 10,
            late: 20,
            repeated: 8,
            bent: 6,
            marked: on(Self::ECN, 10),
            shrunk: on(Self::SHRINKING, 20),
            lies: on(Self::LIES, 30),
            tells: self.has(Self::LIES),
        }
    }
}

/// Number of messages after which the stream sequence numbers of a stream are about to wrap around.
const ALMOST_ALL: u32 = 65_525;
/// Seeds with which the first TSNs of A, which connects, and of Z are just below the wrap-around.
const WRAP_SEEDS: [u64; 2] = [339_831, 14_557_405];

fn endpoint(mixture: Mixture, host: usize, seed: u64) -> Endpoint {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = mixture.config(host);
    let mut endpoint = Endpoint::new(config, PORTS[host], bytes).expect("settings");
    endpoint.listen(true);
    endpoint
}

/// One association, with the actions of both users.
struct Scenario {
    wire: Wire,
    mixture: Mixture,
    random: Random,
    ids: [Option<AssociationId>; 2],
    /// Messages sent by each host.
    ledgers: [Ledger; 2],
    /// Number of times that a host has lost its state.
    epoch: u32,
    ended: [Option<CloseReason>; 2],
}

impl Scenario {
    fn new(seed: u64, mixture: Mixture) -> Self {
        let mut random = Random::of(seed);
        let wraps = random.once_in(2);
        let endpoints = HOSTS.map(|host| {
            let other = random.any();
            endpoint(mixture, host, if wraps { WRAP_SEEDS[host] } else { other })
        });
        let nat = mixture.has(Mixture::NAT);
        let mut wire = Wire::new(endpoints, Random::of(!seed), nat);
        wire.unsummed = mixture.has(Mixture::ZERO_CHECKSUM);
        let mut scenario = Self {
            wire,
            mixture,
            random,
            ids: [None; 2],
            ledgers: Default::default(),
            epoch: 0,
            ended: [None, None],
        };
        scenario.call(A);
        scenario.wire.run_for(SECOND);
        scenario.listen();
        scenario
    }

    fn call(&mut self, host: usize) {
        let wire = &mut self.wire;
        let udp = wire.nat.map_or(0, |port| [REGISTERED, port][host]);
        // All addresses are passed, because packets from another address during setup would be out
        // of the blue, and be answered by an ABORT.
        let peer: Vec<_> = (0..self.mixture.homes())
            .map(|it| address(1 - host, it))
            .collect();
        let now = wire.time(host);
        let id = wire.endpoints[host].connect_with(
            now,
            &peer,
            PORTS[1 - host],
            ConnectOptions::over_udp(udp),
        );
        self.ids[host] = Some(id.expect("free"));
        self.wire.drain(host);
    }

    fn association(&mut self, host: usize) -> Option<&mut Association> {
        self.wire.endpoints[host].association_mut(self.ids[host]?)
    }

    /// Reads and checks the events of both hosts.
    fn listen(&mut self) {
        for host in HOSTS {
            for (id, event) in std::mem::take(&mut self.wire.events[host]) {
                match event {
                    Event::Established { .. } => self.ids[host] = Some(id),
                    Event::Restarted { .. } => {
                        self.ledgers[host].epoch = self.epoch;
                    }
                    Event::MessageAbandoned(message) => {
                        self.ledgers[host].give_up(&message.payload);
                    }
                    Event::Missed { events } => panic!("{events} missed"),
                    Event::Closed(reason) => self.ended[host] = Some(reason),
                    _ => {}
                }
            }
        }
    }

    fn read(&mut self) {
        let interleaved = self.mixture.has(Mixture::INTERLEAVING);
        for host in HOSTS {
            // The event about a restart precedes all later data.
            while let Some(part) = self.association(host).and_then(Association::poll_part) {
                self.ledgers[1 - host].read(part, |it| if interleaved { it.tsn.0 } else { 0 });
            }
            self.wire.drain(host);
        }
        self.listen();
    }

    fn send(&mut self, host: usize) {
        let now = self.wire.time(host);
        let (mut options, len) = ledger::draw(
            &mut self.random,
            self.mixture.has(Mixture::PARTIAL_RELIABILITY),
        );
        if self.mixture.has(Mixture::AUTHENTICATION) && self.random.once_in(4) {
            options = options.with_key(Some(self.random.below(KEYS.into()) as u16));
        }
        let roll = self.random.any();
        let message = self.ledgers[host].write(len);
        let Some(association) = self.association(host) else {
            return;
        };
        let stream = (roll % u64::from(association.status().outbound_streams.max(1))) as u16;
        let taken = association.send(now, message, &options.with_stream(Some(stream)));
        let held = association.send_buffer().used();
        let most = 2 * SEND_BUFFER + 2 * RECEIVE_BUFFER as usize + 20_000;
        assert!(held <= most, "{held} bytes held");
        if taken.is_ok() {
            self.ledgers[host].accepted(stream, &options);
        }
        self.listen_to(host);
    }

    fn listen_to(&mut self, host: usize) {
        self.wire.drain(host);
        self.listen();
    }

    /// Makes a random request, which may be refused but must not do harm.
    fn ask(&mut self, host: usize) {
        let (now, mixture) = (self.wire.time(host), self.mixture);
        let mut random = Random::of(self.random.any());
        let Some(association) = self.association(host) else {
            return;
        };
        if mixture.has(Mixture::RESETS) {
            if random.once_in(6) {
                let _ = association.reconfigure(
                    0,
                    &Reconfiguration::reset_outgoing([random.below(8) as u16]),
                );
            }
            if random.once_in(12) {
                let _ = association.reconfigure(
                    0,
                    &Reconfiguration::request_incoming_reset([random.below(8) as u16]),
                );
            }
            if random.once_in(12) {
                let _ = association.reconfigure(
                    0,
                    &Reconfiguration::add_streams(random.below(3) as u16, random.below(3) as u16),
                );
            }
            if random.once_in(30) {
                let _ = association.reconfigure(now, &Reconfiguration::ResetAssociation);
            }
        }
        if random.once_in(6) {
            let settings = association
                .settings()
                .with(|it| it.scheduler = SCHEDULERS[random.below(6) as usize]);
            let _ = association.set_settings(settings);
            association.set_stream_value(random.below(5) as u16, 1 + random.below(9) as u16);
        }
        if mixture.has(Mixture::AUTHENTICATION) && random.once_in(4) {
            let key = random.below(KEYS.into()) as u16;
            let _ = association.change_auth_keys(|keys| keys.activate(key));
        }
        self.listen_to(host);
    }

    /// Whether both ends are established and know each other's current incarnation.
    fn is_agreed(&mut self) -> bool {
        HOSTS.into_iter().all(|host| {
            let up = self.association(host);
            let up = up.is_some_and(|it| it.state() == AssociationState::Established);
            up && self.ledgers[host].epoch == self.epoch
        })
    }

    /// Lets a host lose its state and connect again.
    fn restart(&mut self, host: usize) {
        self.epoch += 1;
        let seed = self.random.any();
        self.wire.endpoints[host] = endpoint(self.mixture, host, seed);
        self.ledgers[host].epoch = self.epoch;
        let other = &mut self.ledgers[1 - host];
        other.reader_since = self.epoch;
        other.break_off();
        self.call(host);
    }

    fn disturb(&mut self) {
        let mixture = self.mixture;
        let host = HOSTS[self.random.below(2) as usize];
        if mixture.has(Mixture::DISCOVERY) && self.random.once_in(12) {
            self.wire.mtu[host] = [576, 700, 1_000, 1_280, 1_500][self.random.below(5) as usize];
        }
        if mixture.has(Mixture::JUMPS) && self.random.once_in(20) {
            let span = (1 + self.random.below(10_000)) * SECOND;
            self.wire.jump(host, span);
        }
        if mixture.has(Mixture::RESTARTS) && self.random.once_in(25) && self.is_agreed() {
            self.restart(host);
        }
        // The NAT does not assign another port if hosts restart, because a restart from another
        // port is refused.
        if !mixture.has(Mixture::RESTARTS) && self.random.once_in(20) {
            self.wire.rebind();
        }
    }

    /// A sends messages on stream 0 until their numbers are about to wrap.
    fn wind_up(&mut self) {
        let options = SendOptions::new();
        let mut sent = 0;
        for _ in 0..10_000 {
            while sent < ALMOST_ALL {
                let message = self.ledgers[A].write(5);
                let now = self.wire.time(A);
                let association = self.association(A).expect("up");
                let taken = association.send(now, message, &options);
                if taken.is_err() {
                    break;
                }
                self.ledgers[A].accepted(0, &options);
                sent += 1;
            }
            self.listen_to(A);
            self.wire.run_for(50 * MILLISECOND);
            self.read();
            if sent == ALMOST_ALL && self.left(A) == (0, 0) {
                return;
            }
        }
        panic!("{sent} messages were taken");
    }

    fn run(&mut self) {
        self.wire.weather = self.mixture.weather();
        for _ in 0..STEPS {
            let host = HOSTS[self.random.below(2) as usize];
            for _ in 0..self.random.below(3) {
                self.send(host);
            }
            self.ask(host);
            self.disturb();
            let pause = self.random.below(300) * MILLISECOND;
            self.wire.run_for(pause);
            self.listen();
            if self.random.once_in(3) {
                self.read();
            }
            assert_eq!(self.ended, [None, None]);
        }
    }

    /// Makes the network reliable, and checks that both ends recover.
    fn settle(&mut self) {
        self.wire.weather = Weather::default();
        for _ in 0..200 {
            self.wire.run_for(10 * SECOND);
            self.read();
            if self.is_agreed() && HOSTS.into_iter().all(|host| self.left(host) == (0, 0)) {
                break;
            }
        }
        assert_eq!(self.ended, [None, None]);
        for host in HOSTS {
            assert_eq!(self.left(host), (0, 0), "{host}: in flight, waiting");
        }
        assert!(self.is_agreed());
        for ledger in &self.ledgers {
            ledger.check(self.epoch);
        }
    }

    fn left(&mut self, host: usize) -> (usize, usize) {
        let association = self.association(host);
        association.map_or((0, 0), |it| {
            (it.status().outstanding_chunks, it.send_buffer().unsent())
        })
    }

    /// Checks that both ends can still exchange data, and close gracefully.
    fn end(&mut self) {
        for host in HOSTS {
            for _ in 0..2 {
                self.wire.run_for(SECOND);
                let message = self.ledgers[host].write(LAST);
                let options = SendOptions::new();
                let now = self.wire.time(host);
                let association = self.association(host).expect("up");
                let taken = association.send(now, message, &options);
                taken.expect("taken");
                self.ledgers[host].accepted(0, &options);
                self.listen_to(host);
                self.wire.run_for(10 * SECOND);
                self.read();
            }
        }
        for host in HOSTS {
            self.ledgers[host].check(self.epoch);
            let window = self.association(host).expect("up").status().peer_rwnd;
            let room = window + LAST as u64 + 10;
            assert!(room >= u64::from(RECEIVE_BUFFER), "{host}: {window}");
            if self.epoch == 0 {
                self.check_counts(host);
            }
        }
        let now = self.wire.time(A);
        let association = self.association(A).expect("up");
        association.shutdown(now, None).expect("open");
        self.listen_to(A);
        self.wire.run_for(20 * SECOND);
        self.listen();
        let ends = [Some(CloseReason::Shutdown), Some(CloseReason::Shutdown)];
        assert_eq!(self.ended, ends);
    }

    /// Compares the counters of `host` for sent data with those of the other host for received
    /// data.
    fn check_counts(&mut self, host: usize) {
        let sent = self.association(host).expect("up").stats().sender;
        let other = self.association(1 - host).expect("up").stats();
        let came = other.receiver;
        assert_eq!(
            came.messages,
            self.ledgers[host].count_read(),
            "{host}: messages"
        );
        let kept = came.chunks - came.withdrawn;
        if sent.abandoned_sent == 0 {
            assert_eq!(kept, sent.chunks_sent, "{host}: chunks");
            assert_eq!(sent.bytes_acknowledged, sent.bytes_sent, "{host}: bytes");
        } else {
            assert!(kept <= sent.chunks_sent, "{host}: chunks");
            assert!(sent.bytes_acknowledged <= sent.bytes_sent, "{host}: bytes");
        }
        let all_came = came.chunks + came.duplicates + came.dropped_full + came.out_of_reach;
        let all_sent = sent.chunks_sent + sent.chunks_retransmitted + self.wire.repeats;
        assert!(
            all_came <= all_sent,
            "{host}: {all_came} came of {all_sent}"
        );
        let sacks = sent.sacks;
        assert!(
            sacks <= came.sacks + self.wire.repeats,
            "{host}: {sacks} SACKs"
        );
        // After a reset of all TSNs, SACKs of earlier TSNs are impossible.
        let renumbered = self.mixture.has(Mixture::RESETS);
        assert!(renumbered || sent.impossible_sacks == 0, "{host}");
    }
}

#[test]
fn whatever_happens_at_once_everything_settles() {
    seeds::each(USUAL, |seed| {
        let mut scenario = Scenario::new(seed, Mixture::of(seed));
        scenario.run();
        scenario.settle();
        scenario.end();
    });
}

#[test]
fn everything_settles_where_stream_sequence_numbers_wrap() {
    seeds::each(3, |seed| {
        let Mixture(mixture) = Mixture::of(seed);
        // Interleaving is off, because I-DATA has no stream sequence numbers. Restarts and resets
        // are off, because they would set the numbers back before the numbers wrap.
        let without = 1 << Mixture::INTERLEAVING | 1 << Mixture::RESTARTS | 1 << Mixture::RESETS;
        let with = 1 << Mixture::PARTIAL_RELIABILITY;
        let mut scenario = Scenario::new(seed, Mixture((mixture & !without) | with));
        scenario.wind_up();
        scenario.run();
        scenario.run();
        scenario.run();
        scenario.settle();
        let numbered = scenario.ledgers[A].count_ordered(0);
        assert!(numbered > 1 << 16, "{numbered}");
        scenario.end();
    });
}
