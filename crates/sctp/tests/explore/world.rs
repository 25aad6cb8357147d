//! Two endpoints, their users, and a network that keeps every packet and may deliver any of them at
//! any time, repeatedly. The choice of the next packet thus includes loss, reordering, duplication
//! and replay.

use std::net::IpAddr;

use anabranch_sctp::{
    AssociationId, AssociationState, CloseReason, Config, Endpoint, Event, SendOptions,
};
use anabranch_transport::time::SECOND;
use anabranch_transport::{Ecn, Nanos, Path, Transport};
use anabranch_wire::cause::code;
use anabranch_wire::chunk::Chunk;
use anabranch_wire::packet::{Checksum, Packet};
use bytes::{BufMut, Bytes, BytesMut};

use crate::moves;

pub const A: usize = 0;
pub const Z: usize = 1;
pub const HOSTS: [usize; 2] = [A, Z];
const PORTS: [u16; 2] = [5_000, 7];
/// Initial time; no other number in an endpoint is of this magnitude.
pub const BEGIN: Nanos = 1_000_000 * SECOND;

/// One step of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The packet with this number arrives, for the first time or again.
    Deliver(u8),
    /// Time advances to the next timer, which expires.
    Timer,
    Connect(usize),
    Send(usize),
    Shutdown(usize),
    Abort(usize),
    /// The host loses its state.
    Crash(usize),
    /// The first network fails or recovers.
    Cut,
}

/// Packet that was sent.
#[derive(Clone, Debug)]
pub struct Seen {
    pub to: usize,
    pub path: Path,
    pub bytes: Bytes,
}

impl Seen {
    /// Whether the packet is an ABORT with the receiver's tag that the sender's user requested.
    pub fn is_users_abort(&self) -> bool {
        let packet = Packet::parse(&self.bytes, Checksum::Ignore).expect("sound");
        let first = packet.chunks().next().expect("one").expect("framed");
        let Ok(Chunk::Abort(abort)) = Chunk::decode(first) else {
            return false;
        };
        let mut causes = abort.causes.iter().flatten();
        !abort.tag_reflected && causes.any(|it| it.code() == code::USER_INITIATED_ABORT)
    }
}

/// Messages that the user of one host has sent in one association, and the association's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Life {
    pub host: usize,
    pub id: AssociationId,
    /// Unique numbers of the accepted messages.
    pub sent: Vec<u32>,
    pub closed: Option<CloseReason>,
    /// Whether the association was restarted or its host lost its state, so that earlier messages
    /// do not count.
    pub broken: bool,
}

pub struct World {
    pub now: Nanos,
    pub ends: [Endpoint; 2],
    pub seen: Vec<Seen>,
    /// In the reliable phase: packets up to this number have arrived or were lost.
    pub handed: usize,
    /// Whether this is the reliable phase, in which equal packets are not merged.
    pub honest: bool,
    pub cut: bool,
    pub lives: Vec<Life>,
    /// Numbers of the messages that each user has read.
    pub got: [Vec<u32>; 2],
    /// Number of associations that were closed or restarted so far.
    pub broken: u32,
    config: Config,
    crashes: u8,
    next_message: u32,
    out: BytesMut,
}

pub fn address(host: usize, network: u8) -> IpAddr {
    [10, 0, network, 1 + host as u8].into()
}

fn network(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(address) => address.octets()[2],
        IpAddr::V6(_) => 0,
    }
}

fn endpoint(host: usize, config: &Config, life: u8) -> Endpoint {
    let homes = if config.heartbeat_interval.is_some() {
        2
    } else {
        1
    };
    let config = config
        .clone()
        .with(|it| it.addresses = (0..homes).map(|network| address(host, network)).collect());
    let mut endpoint =
        Endpoint::new(config, PORTS[host], [1 + host as u8 + 2 * life; 32]).expect("settings");
    endpoint.listen(true);
    endpoint
}

impl World {
    pub fn new(config: &Config) -> Self {
        Self {
            now: BEGIN,
            ends: HOSTS.map(|host| endpoint(host, config, 0)),
            seen: Vec::new(),
            handed: 0,
            honest: false,
            cut: false,
            lives: Vec::new(),
            got: [Vec::new(), Vec::new()],
            broken: 0,
            config: config.clone(),
            crashes: 0,
            next_message: 0,
            out: BytesMut::new(),
        }
    }

    /// Association of `host` that is not closed, if any.
    pub fn live(&self, host: usize) -> Option<AssociationId> {
        let end = &self.ends[host];
        let open = |id: &AssociationId| end.association(*id).is_some_and(|it| !it.is_closed());
        let mut open = end.associations().filter(open);
        let first = open.next();
        assert_eq!(open.next(), None, "two associations at host {host}");
        first
    }

    pub fn state(&self, host: usize) -> Option<AssociationState> {
        let id = self.live(host)?;
        self.ends[host].association(id).map(|it| it.state())
    }

    /// Whether the step is possible and may make a difference.
    pub fn allows(&self, step: Step) -> bool {
        match step {
            Step::Deliver(number) => {
                let seen = &self.seen[usize::from(number)];
                !(self.cut && network(seen.path.remote) == 0)
            }
            Step::Timer => self.next_timer().is_some(),
            Step::Connect(host) => self.live(host).is_none(),
            Step::Send(host) => matches!(
                self.state(host),
                Some(
                    AssociationState::Established
                        | AssociationState::CookieWait
                        | AssociationState::CookieEchoed
                )
            ),
            Step::Shutdown(host) | Step::Abort(host) => self.live(host).is_some(),
            Step::Crash(host) => self.live(host).is_some(),
            Step::Cut => true,
        }
    }

    pub fn take(&mut self, step: Step) {
        match step {
            Step::Deliver(number) => {
                let Seen { to, path, bytes } = self.seen[usize::from(number)].clone();
                self.hand(to, path, bytes);
            }
            Step::Timer => self.run_timers(),
            Step::Connect(host) => {
                let to = [address(1 - host, 0)];
                let id = self.ends[host].connect(self.now, &to, PORTS[1 - host]);
                let id = id.expect("no association is open");
                self.begin(host, id);
                self.drain(host);
            }
            Step::Send(host) => {
                self.send(host);
            }
            Step::Shutdown(host) | Step::Abort(host) => {
                let (now, id) = (self.now, self.live(host).expect("allowed"));
                let association = self.ends[host].association_mut(id).expect("listed");
                let done = match step {
                    Step::Abort(_) => association.abort(now, Bytes::new()),
                    _ => association.shutdown(now, None),
                };
                done.expect("it is open");
                self.drain(host);
            }
            Step::Crash(host) => {
                self.crashes += 1;
                self.ends[host] = endpoint(host, &self.config, self.crashes);
                let lives = self.lives.iter_mut();
                lives.for_each(|life| life.broken = true);
                self.broken += 1;
            }
            Step::Cut => self.cut = !self.cut,
        }
    }

    pub fn hand(&mut self, to: usize, path: Path, bytes: Bytes) {
        self.ends[to].handle_datagram(self.now, path, Ecn::NotEct, bytes);
        self.drain(to);
    }

    fn begin(&mut self, host: usize, id: AssociationId) -> &mut Life {
        let known = |life: &Life| life.host == host && life.id == id && !life.broken;
        let place = self.lives.iter().rposition(known);
        let place = place.unwrap_or_else(|| {
            self.lives.push(Life {
                host,
                id,
                sent: Vec::new(),
                closed: None,
                broken: false,
            });
            self.lives.len() - 1
        });
        &mut self.lives[place]
    }

    /// Sends a numbered message. Returns the number, or `None` if the message was not accepted.
    pub fn send(&mut self, host: usize) -> Option<u32> {
        let id = self.live(host)?;
        let number = self.next_message;
        let mut payload = BytesMut::new();
        payload.put_u32(number);
        let message = payload.freeze();
        let association = self.ends[host].association_mut(id)?;
        if association.send(0, message, &SendOptions::new()).is_ok() {
            self.next_message += 1;
            self.begin(host, id).sent.push(number);
            self.drain(host);
            return Some(number);
        }
        None
    }

    pub fn next_timer(&self) -> Option<Nanos> {
        let due = HOSTS.map(|host| self.ends[host].poll_timeout());
        due.into_iter().flatten().min()
    }

    pub fn run_timers(&mut self) {
        let Some(at) = self.next_timer() else { return };
        self.now = self.now.max(at);
        for host in HOSTS {
            if self.ends[host]
                .poll_timeout()
                .is_some_and(|at| at <= self.now)
            {
                self.ends[host].handle_timeout(self.now);
                self.drain(host);
                if let Some(before) = moves::due_again(&self.ends[host], self.now) {
                    self.ends[host].handle_timeout(self.now);
                    self.drain(host);
                    moves::check(&self.ends[host], self.now, &before);
                }
            }
        }
    }

    /// Polls the packets and events of `host`. Its user reads all messages, and releases closed
    /// associations.
    pub fn drain(&mut self, host: usize) {
        for _ in 0..100 {
            let sent = self.ends[host].poll_transmit(self.now, &mut self.out);
            let Some(transmit) = sent else { break };
            let bytes = Bytes::copy_from_slice(&self.out);
            self.out.clear();
            let path = transmit.path.reversed();
            let to = 1 - host;
            let same = |it: &Seen| it.to == to && it.path == path && it.bytes == bytes;
            if self.honest || !self.seen.iter().any(same) {
                self.seen.push(Seen { to, path, bytes });
            }
        }
        let ids: Vec<_> = self.ends[host].associations().collect();
        for id in ids {
            self.read(host, id);
        }
        while let Some((id, event)) = self.ends[host].poll_event() {
            match event {
                Event::Established { .. } => {
                    self.begin(host, id);
                }
                Event::Restarted { .. } => {
                    self.begin(host, id).broken = true;
                    self.broken += 1;
                    self.begin(host, id);
                }
                Event::Closed(reason) => {
                    self.begin(host, id).closed = Some(reason);
                    self.broken += 1;
                    self.read(host, id);
                    self.ends[host].release(id);
                }
                _ => {}
            }
        }
        let sent = self.ends[host].poll_transmit(self.now, &mut self.out);
        assert!(sent.is_none(), "host {host} has more to say");
    }

    fn read(&mut self, host: usize, id: AssociationId) {
        let Some(association) = self.ends[host].association_mut(id) else {
            return;
        };
        while let Some(message) = association.poll_message() {
            let bytes = message.payload.into_bytes();
            let number = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
            assert!(!self.got[host].contains(&number), "message {number} twice");
            self.got[host].push(number);
        }
    }

    /// Description such as `A -> INIT -> Z`.
    pub fn tell(&self, step: Step) -> String {
        match step {
            Step::Deliver(number) => {
                let seen = &self.seen[usize::from(number)];
                let packet = Packet::parse(&seen.bytes, Checksum::Ignore).expect("sound");
                let kinds: Vec<_> = packet
                    .chunks()
                    .flatten()
                    .map(|raw| kind_name(raw.kind))
                    .collect();
                let name = |host: usize| ["A", "Z"][host];
                format!(
                    "{} -> {} (packet {number}, tag {:08x}) -> {}",
                    name(1 - seen.to),
                    kinds.join(", "),
                    packet.header.verification_tag,
                    name(seen.to)
                )
            }
            other => format!("{other:?}"),
        }
    }
}

pub fn kind_name(kind: u8) -> &'static str {
    const NAMES: [&str; 15] = [
        "DATA",
        "INIT",
        "INIT ACK",
        "SACK",
        "HEARTBEAT",
        "HEARTBEAT ACK",
        "ABORT",
        "SHUTDOWN",
        "SHUTDOWN ACK",
        "ERROR",
        "COOKIE ECHO",
        "COOKIE ACK",
        "ECNE",
        "CWR",
        "SHUTDOWN COMPLETE",
    ];
    NAMES.get(usize::from(kind)).copied().unwrap_or("?")
}
