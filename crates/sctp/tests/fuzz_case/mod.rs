//! Fuzz case of two endpoints and an attacker, controlled by arbitrary bytes: Valid packets are
//! lost, duplicated, altered and replayed, and packets of the attacker are inserted. One end may
//! become malicious. Users send, read, close and connect again. Time advances, jumps ahead, and
//! jumps back.
//!
//! In every case the code does not panic, no timer fires without effect, and no packet causes many
//! answers. Messages arrive once and in the order of their streams. Memory is bounded by the
//! buffers, and work by the received bytes. In the end no more packets are sent.

mod concurrent;
mod controls;
mod extensions;
mod insider;
mod ledger;
#[path = "../common/moves.rs"]
mod moves;
mod recoveries;
mod stranger;
mod users;
mod watch;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};
use std::net::IpAddr;

use anabranch_congestion::{rsctp, sctp_newreno};
use anabranch_sctp::{Config, Endpoint, Profile};
use anabranch_transport::time::{MILLISECOND, SECOND};
use anabranch_transport::{Ecn, Nanos, Path, ProbeSet, Trace, Transport};
use bytes::{Bytes, BytesMut};

use ledger::Ledger;
use watch::Known;

const PORTS: [u16; 2] = [5_000, 7];
/// Maximum number of steps per case; further steps would add little.
const MAX_ACTS: usize = 400;
/// Number of addresses per host, by default.
const HOMES: u8 = 2;
/// Number of consecutive packets after which an endpoint is considered to be in an endless loop.
const MAX_PACKETS: usize = 1_000;
/// Maximum number of packets in flight. If there are more, the oldest packet is lost.
const MAX_IN_FLIGHT: usize = 256;
/// Value of the second byte of cases in which stream sequence numbers are about to wrap around.
const WIND_UP: u8 = 0xA5;
/// Seeds with which the first TSN of host A, which connects, and of host Z, which listens, is at
/// most 300 below the wrap-around.
pub const WRAP_SEEDS: [u64; 2] = [339_831, 14_557_405];

const A: usize = 0;
const Z: usize = 1;

fn address(host: usize, network: u8) -> IpAddr {
    [10, 0, network, 1 + host as u8].into()
}

/// Bytes that control the case.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    fn take(&mut self, len: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

/// Packet in flight: destination host, path at the destination, and bytes.
type Shot = (usize, Path, Bytes);

struct Scenario<'a> {
    script: Script<'a>,
    now: Nanos,
    config: Config,
    endpoints: [Endpoint; 2],
    /// Number of addresses per host.
    homes: u8,
    lives: u8,
    wire: VecDeque<Shot>,
    /// First packets of the case, for replay.
    seen: Vec<Shot>,
    /// Some later packets, for replay after their association is gone.
    late: Vec<Shot>,
    known: Known,
    ledger: Ledger,
    meter: watch::Meter,
    out: BytesMut,
    /// Whether there is no attacker: packets are only lost, duplicated, delayed and replayed.
    honest: bool,
    /// Whether the attacker has used a possibly valid tag, so that the state of the two ends may be
    /// permanently inconsistent.
    tampered: bool,
    /// Probes recorded by all associations, if this is part of the case.
    probes: Option<ProbeSet>,
    /// Probes whose samples are included in the digest.
    compared: ProbeSet,
    /// Digest of all packets sent so far, with their paths. If `probes` is set, the digest includes
    /// all counters and path states.
    account: DefaultHasher,
}

/// Runs the case given by `bytes`. `held` returns the number of allocated heap bytes, if memory
/// should be checked.
pub fn run(bytes: &[u8], held: Option<fn() -> usize>) {
    run_case(bytes, HOMES, held, None);
}

/// Like [`run`], with `homes` addresses per host, and with `probes` recorded. Returns a digest of
/// all sent packets, the samples of `compared`, all counters, and the state of every path after
/// each step.
pub fn run_recorded(bytes: &[u8], homes: u8, probes: ProbeSet, compared: ProbeSet) -> u64 {
    run_case(bytes, homes, None, Some((probes, compared)))
}

fn run_case(
    bytes: &[u8],
    homes: u8,
    held: Option<fn() -> usize>,
    recorded: Option<(ProbeSet, ProbeSet)>,
) -> u64 {
    let meter = watch::Meter::new(held);
    let mut script = Script(bytes);
    let (choice, extremes) = (script.byte(), script.byte());
    let tail = bytes.last_chunk().copied().unwrap_or_default();
    let (config, honest) = (config_of(choice, extremes, tail), choice & 0x08 != 0);
    let wraps = extremes & 0x04 != 0;
    let ledger = Ledger::new(&config);
    let mut scenario = Scenario {
        endpoints: [A, Z].map(|host| {
            let seed = if wraps {
                wrap_seed(host)
            } else {
                [host as u8; 32]
            };
            endpoint(host, homes, &config, seed)
        }),
        homes,
        script,
        now: SECOND,
        config,
        lives: 2,
        wire: VecDeque::new(),
        seen: Vec::new(),
        late: Vec::new(),
        known: Known::default(),
        ledger,
        meter,
        out: BytesMut::new(),
        honest,
        tampered: false,
        probes: recorded.map(|(probes, _)| probes),
        compared: recorded.map_or(ProbeSet::NONE, |(_, compared)| compared),
        account: DefaultHasher::new(),
    };
    scenario.connect(A);
    for _ in 0..12 {
        scenario.deliver(0);
    }
    if extremes == WIND_UP {
        scenario.wind_up();
    }
    for _ in 0..MAX_ACTS {
        if scenario.script.0.is_empty() {
            break;
        }
        scenario.act();
    }
    scenario.check_memory();
    scenario.end();
    scenario.account.finish()
}

/// Settings of a case. `tail` contains its last two bytes, which may select concurrent paths, a
/// congestion control and loss recovery algorithms.
fn config_of(choice: u8, extremes: u8, tail: [u8; 2]) -> Config {
    let names = Profile::NAMES;
    let mut profile =
        Profile::by_name(names[usize::from(choice) % names.len()]).expect("its own name");
    profile.rsctp = choice & 0x04 != 0;
    profile.potentially_failed = choice & 0x08 != 0;
    let one_chunk = extremes & 0x01 != 0;
    let streams = if extremes & 0x02 == 0 { 20 } else { 65_535 };
    Config::new(profile).with(|it| {
        it.congestion = if it.profile.rsctp {
            &rsctp::ALGORITHM
        } else {
            &sctp_newreno::ALGORITHM
        };
        it.primary_switchover_max_retrans = it.profile.potentially_failed.then_some(1);
        it.receive_buffer = match (one_chunk, choice & 0x10) {
            (true, _) => 1_500,
            (false, 0) => 65_536,
            (false, _) => 3_000,
        };
        it.send_buffer = if one_chunk { 1_500 } else { 20_000 };
        it.partial_delivery_point = (extremes & 0x08 != 0).then_some(2_000);
        it.mtu = if choice & 0x20 == 0 { 1_500 } else { 300 };
        it.data_with_cookie_echo = choice & 0x40 != 0;
        it.pack_messages = choice & 0x60 == 0x60;
        it.heartbeat_interval = (choice & 0x80 == 0).then_some(2 * SECOND);
        it.outbound_streams = streams.min(if streams > 20 { streams } else { 10 });
        it.inbound_streams = streams;
        // Extensions are not enabled in cases with a wrap-around of stream sequence numbers. Such a
        // case has to send so many messages first that it is run with only one kind of numbers.
        if extremes != WIND_UP {
            extensions::set(it, extremes);
        }
        concurrent::set(it, tail);
        controls::set(it, tail);
        recoveries::set(it, tail);
    })
}

fn endpoint(host: usize, homes: u8, config: &Config, seed: [u8; 32]) -> Endpoint {
    let addresses = (0..homes).map(|network| address(host, network)).collect();
    let config = config.clone().with(|it| it.addresses = addresses);
    let mut endpoint = Endpoint::new(config, PORTS[host], seed).expect("settings");
    endpoint.listen(true);
    endpoint.set_max_associations(8);
    endpoint
}

/// Seed of `host` in [`WRAP_SEEDS`].
pub fn wrap_seed(host: usize) -> [u8; 32] {
    seed_of(WRAP_SEEDS[host])
}

/// Seed whose first bytes are `number`.
pub fn seed_of(number: u64) -> [u8; 32] {
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&number.to_be_bytes());
    seed
}

impl Scenario<'_> {
    fn act(&mut self) {
        let act = self.script.byte();
        let host = usize::from(act >> 7);
        match act & 0x1F {
            0..=5 => self.deliver(0),
            6 => {
                let index = usize::from(self.script.byte());
                self.deliver(index);
            }
            7 => drop(self.wire.pop_front()),
            8 => {
                if let Some(shot) = self.wire.front().cloned() {
                    self.wire.push_back(shot);
                }
            }
            9 if !self.honest => self.alter(),
            10 => self.replay(),
            11 => self.pass(u64::from(self.script.0.first().copied().unwrap_or(1)) * MILLISECOND),
            12 => {
                let span = u64::from(self.script.word()) * MILLISECOND;
                self.pass(span);
            }
            13..=15 => self.send(host),
            16 => self.read(host),
            17 => self.close(host),
            18 => self.connect(host),
            19 => self.live_anew(host),
            20 => self.release(host),
            21 => self.init(host),
            22 => self.echo_cookie(host),
            23 => self.router(host),
            24 => self.jump(),
            25 => self.replay_late(),
            30 if extensions::any(&self.config) => self.wish(host),
            _ if self.honest => self.deliver(0),
            26 => self.swing(host),
            27 => self.fragments(host),
            28 => self.camp(host),
            31 if extensions::any(&self.config) => self.extend(host),
            _ => self.stranger(host),
        }
    }

    /// Delivers the packet in flight at `index`, counted from the oldest.
    fn deliver(&mut self, index: usize) {
        if self.wire.is_empty() {
            return;
        }
        let index = index % self.wire.len();
        if let Some((to, path, bytes)) = self.wire.remove(index) {
            self.now += MILLISECOND;
            self.hand(to, path, bytes);
        }
    }

    fn hand(&mut self, to: usize, path: Path, bytes: Bytes) {
        let len = bytes.len();
        self.meter.begin(len);
        // Each ECN codepoint occurs in some packets.
        let ecn = Ecn::from_bits((self.known.packets % 7) as u8);
        self.endpoints[to].handle_datagram(self.now, path, ecn, bytes);
        let answers = self.drain(to);
        answers.check(len);
        self.meter.check("a packet");
    }

    /// Polls all packets and events of `host`.
    fn drain(&mut self, host: usize) -> watch::Answers {
        let mut answers = watch::Answers::default();
        let mut silent = false;
        self.record(host);
        for _ in 0..MAX_PACKETS {
            let Some(transmit) = self.endpoints[host].poll_transmit(self.now, &mut self.out) else {
                silent = true;
                break;
            };
            // Each packet gets a separate allocation, so that a retained slice keeps only this
            // packet in memory.
            let bytes = Bytes::copy_from_slice(&self.out);
            self.out.clear();
            assert_eq!(bytes.len(), transmit.len);
            let limit = self.config.mtu - 20;
            assert!(bytes.len() <= limit, "{} bytes in a packet", bytes.len());
            self.account.write(&bytes);
            self.account
                .write(format!("{:?}", transmit.path).as_bytes());
            self.meter.sent(bytes.len());
            self.hold_back(host, transmit.path.remote, &bytes);
            let zero = self.config.zero_checksum;
            if !self.known.learn(host, &bytes, zero) {
                answers.count(bytes.len());
            }
            self.put(host, transmit.path, bytes);
        }
        assert!(silent, "endpoint {host} never falls silent");
        while let Some((id, event)) = self.endpoints[host].poll_event() {
            self.ledger.hear(host, id, &event, self.tampered);
        }
        answers
    }

    /// Adds the samples, counters and path states of all associations of `host` to the digest, and
    /// then records new samples.
    fn record(&mut self, host: usize) {
        let Some(probes) = self.probes else { return };
        let ids: Vec<_> = self.endpoints[host].associations().collect();
        for id in ids {
            if let Some(association) = self.endpoints[host].association_mut(id) {
                for sample in association.trace_mut().drain() {
                    if self.compared.contains(sample.probe) {
                        self.account.write(format!("{sample:?}").as_bytes());
                    }
                }
                *association.trace_mut() = Trace::new(probes);
                let stands = (
                    association.stats(),
                    association.paths(),
                    association.status().peer_rwnd,
                    association.status().outstanding_chunks,
                    association.send_buffer().unsent(),
                );
                self.account.write(format!("{stands:?}").as_bytes());
            }
        }
        let due = self.endpoints[host].poll_timeout();
        self.account.write(format!("{due:?}").as_bytes());
        let discards = self.endpoints[host].discards();
        self.account.write(format!("{discards:?}").as_bytes());
    }

    /// Sends a packet of `host`, and stores some packets for replay.
    fn put(&mut self, host: usize, path: Path, bytes: Bytes) {
        if insider::is_elsewhere(path.remote) {
            return;
        }
        let shot = (1 - host, path.reversed(), bytes);
        if self.seen.len() < 64 {
            self.seen.push(shot.clone());
        } else if self.late.len() < 64 {
            self.late.push(shot.clone());
        } else {
            let place = self.known.packets as usize * 29 % 64;
            self.late[place] = shot.clone();
        }
        self.wire.push_back(shot);
        if self.wire.len() > MAX_IN_FLIGHT {
            self.wire.pop_front();
        }
    }

    /// Advances the time and runs due timers. No packet arrives meanwhile, so only timeouts, and at
    /// most one probe, may cause retransmissions.
    fn pass(&mut self, span: Nanos) {
        let before = [A, Z].map(|host| watch::Sending::all(&self.endpoints[host]));
        self.pass_quietly(span);
        for host in [A, Z] {
            let after = watch::Sending::all(&self.endpoints[host]);
            watch::Sending::check(&before[host], &after);
        }
    }

    fn pass_quietly(&mut self, span: Nanos) {
        let until = self.now.saturating_add(span);
        let mut steps = 0;
        loop {
            let due = [A, Z].map(|host| self.endpoints[host].poll_timeout());
            let Some(next) = due.into_iter().flatten().min().filter(|&at| at <= until) else {
                break;
            };
            let moved = next > self.now;
            self.now = self.now.max(next);
            for host in [A, Z] {
                if due[host].is_some_and(|at| at <= self.now) {
                    self.meter.begin_timer();
                    self.endpoints[host].handle_timeout(self.now);
                    self.drain(host);
                    self.meter.check("a timer");
                    if let Some(before) = moves::due_again(&self.endpoints[host], self.now) {
                        self.meter.begin_timer();
                        self.endpoints[host].handle_timeout(self.now);
                        self.drain(host);
                        moves::check(&self.endpoints[host], self.now, &before);
                    }
                }
            }
            steps = if moved { 0 } else { steps + 1 };
            assert!(steps < 100, "a timer spins at {}", self.now);
        }
        self.now = until;
    }

    /// Lets the clock jump: ahead by up to 45 days, as after a suspend, with all timers overdue at
    /// once; or back by up to a minute.
    fn jump(&mut self) {
        let span = u64::from(self.script.word());
        if span & 1 == 0 {
            self.now += span * 60 * SECOND;
        } else {
            self.now = self.now.saturating_sub(span * MILLISECOND).max(SECOND);
        }
        self.pass(0);
    }
}
