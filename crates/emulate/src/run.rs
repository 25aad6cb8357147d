//! Drives a simulated network ([`World`]) between two sockets by the wall clock.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anabranch_sim::{AddressFamily, AgentId, Attachment, Binding, BuildError, NodeId, World};
use anabranch_transport::{Nanos, Path as Addresses};
use bytes::{Bytes, BytesMut};

use crate::clock::Clock;
use crate::gateway::{Crossed, Gateway};
use crate::report::EmulationReport;
use crate::running::Shared;
use crate::socket::{FAR, NEAR, POLL_INTERVAL, Sockets};
use crate::{Config, Framing, Path};

/// Length of a UDP header, bytes.
const UDP_HEADER: usize = 8;
/// IP protocol numbers.
const UDP: u8 = 17;
const SCTP: u8 = 132;
/// Maximum number of packets that wait to enter the simulated network.
const MAX_WAITING: usize = 16_384;
/// A received packet.
struct Arrived {
    side: usize,
    at: Nanos,
    from: SocketAddr,
    payload: Bytes,
}

/// The thread's state: the world, its sockets, and statistics.
pub(crate) struct Driver {
    world: World,
    agents: [AgentId; 2],
    crossed: [Crossed; 2],
    sockets: Arc<Sockets>,
    /// Destination of packets on each side: the near client that sent last, and the server.
    peers: [Option<SocketAddr>; 2],
    framing: Framing,
    clock: Clock,
    arrivals: Receiver<Arrived>,
    overrun: Arc<AtomicU64>,
    readers: Vec<JoinHandle<()>>,
    report: EmulationReport,
    shared: Shared<EmulationReport>,
    published: Nanos,
}

impl Driver {
    pub(crate) fn new(
        path: Path,
        config: Config,
        sockets: Sockets,
        shared: Shared<EmulationReport>,
    ) -> Result<Self, BuildError> {
        let Path {
            mut world,
            near,
            far,
        } = path;
        let crossed = [Crossed::default(), Crossed::default()];
        let protocol = match config.framing {
            Framing::Udp => UDP,
            Framing::Sctp => SCTP,
        };
        let agents = [
            attach(&mut world, [near, far], protocol, &crossed[NEAR])?,
            attach(&mut world, [far, near], protocol, &crossed[FAR])?,
        ];
        let clock = Clock::start();
        let sockets = Arc::new(sockets);
        let overrun = Arc::new(AtomicU64::new(0));
        let (sender, arrivals) = sync_channel(MAX_WAITING);
        let readers = [NEAR, FAR].map(|side| {
            let (sockets, sender) = (Arc::clone(&sockets), sender.clone());
            let (stop, overrun) = (Arc::clone(&shared.stop), Arc::clone(&overrun));
            thread::spawn(move || read(&sockets, side, clock, &sender, &stop, &overrun))
        });
        Ok(Self {
            world,
            agents,
            crossed,
            sockets,
            peers: [None, Some(config.to)],
            framing: config.framing,
            clock,
            arrivals,
            overrun,
            readers: readers.into(),
            report: EmulationReport::default(),
            shared,
            published: 0,
        })
    }

    /// Drives the world until it is stopped.
    pub(crate) fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            let wait = match self.world.next_event() {
                Some(at) => {
                    Duration::from_nanos(at.saturating_sub(self.clock.now())).min(POLL_INTERVAL)
                }
                None => POLL_INTERVAL,
            };
            match self.arrivals.recv_timeout(wait) {
                Ok(arrived) => self.enter(arrived),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while let Ok(arrived) = self.arrivals.try_recv() {
                self.enter(arrived);
            }
            let now = self.clock.now();
            self.advance(now);
            self.leave();
            if now.saturating_sub(self.published) >= POLL_INTERVAL.as_nanos() as Nanos {
                self.published = now;
                self.publish();
            }
        }
        self.publish();
        for reader in self.readers.drain(..) {
            // A panic was printed by the thread already.
            let _ = reader.join();
        }
    }

    /// Advances the world to `at`. This fails only for agents that send endlessly without any time
    /// passing, which gateways do not.
    fn advance(&mut self, at: Nanos) {
        let at = at.max(self.world.now());
        let ran = self.world.run_until(at);
        debug_assert!(ran.is_ok(), "{ran:?}");
    }

    fn enter(&mut self, arrived: Arrived) {
        let Arrived {
            side,
            at,
            from,
            payload,
        } = arrived;
        self.report.received[side] += 1;
        if side == NEAR {
            if self.peers[NEAR] != Some(from) {
                tracing::debug!(client = %from, "replies go to this client from now on");
            }
            self.peers[NEAR] = Some(from);
        } else if self.peers[FAR]
            .is_none_or(|far| (far.ip(), far.port()) != (from.ip(), from.port()))
        {
            tracing::debug!(%from, "dropped: not from the far side");
            return;
        }
        self.advance(at);
        let payload = match self.framing {
            Framing::Sctp => payload,
            Framing::Udp => with_udp_header(from.port(), &payload),
        };
        self.world
            .with_agent(self.agents[side], |gateway: &mut Gateway, _| {
                gateway.enter(payload);
            });
    }

    /// Sends the packets that have crossed the simulated network on the sockets of their sides.
    fn leave(&mut self) {
        for side in [NEAR, FAR] {
            while let Some((at, payload)) = { self.crossed[side].borrow_mut().pop_front() } {
                let payload = match self.framing {
                    Framing::Sctp => payload,
                    Framing::Udp => payload.slice(UDP_HEADER.min(payload.len())..),
                };
                let Some(to) = self.peers[side] else { continue };
                match self.sockets.send_to(side, &payload, to) {
                    Ok(_) => self.report.sent[side] += 1,
                    // Not counted as a loss of this packet, because the error belongs to an earlier
                    // packet without a receiver (ICMP).
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(error) => {
                        tracing::debug!(%to, %error, "not sent");
                        self.report.overrun += 1;
                    }
                }
                self.report.timing.add(self.clock.now().saturating_sub(at));
            }
        }
    }

    fn publish(&mut self) {
        let overrun = self.report.overrun + self.overrun.load(Ordering::Relaxed);
        self.shared.publish(EmulationReport {
            dropped: self.world.packet_counts().dropped,
            overrun,
            ..self.report.clone()
        });
    }
}

fn attach(
    world: &mut World,
    [here, there]: [NodeId; 2],
    protocol: u8,
    crossed: &Crossed,
) -> Result<AgentId, BuildError> {
    let topology = world.topology();
    let address = |node: NodeId| {
        topology
            .addresses(node, AddressFamily::V4)
            .next()
            .ok_or(BuildError::UnknownNode(node.index()))
    };
    let path = Addresses::new(address(here)?, address(there)?);
    let attachment = Attachment {
        node: here,
        protocol,
        bindings: vec![Binding {
            address: None,
            port: None,
            remote_port: None,
        }],
        start: 0,
        stop: None,
    };
    world.attach(attachment, Gateway::new(path, Rc::clone(crossed)))
}

/// Prepends a UDP header without checksum (RFC 768) to `payload`, and returns the result as the
/// payload of an IP packet. The destination port is arbitrary.
fn with_udp_header(source: u16, payload: &[u8]) -> Bytes {
    let len = UDP_HEADER + payload.len();
    let mut datagram = BytesMut::with_capacity(len);
    for word in [source, source, len as u16, 0] {
        datagram.extend_from_slice(&word.to_be_bytes());
    }
    datagram.extend_from_slice(payload);
    datagram.freeze()
}

/// Number of consecutive errors after which reading from a socket pauses.
const MAX_ERRORS: u32 = 16;

/// Receives packets on one side, and records their arrival times.
fn read(
    sockets: &Sockets,
    side: usize,
    clock: Clock,
    arrivals: &SyncSender<Arrived>,
    stop: &AtomicBool,
    overrun: &AtomicU64,
) {
    let mut buffer = vec![0; 65_536];
    let mut errors = 0_u32;
    while !stop.load(Ordering::Relaxed) {
        // An error means a timeout, or an earlier packet without a receiver (ICMP).
        let (packet, from) = match sockets.receive(side, &mut buffer) {
            Ok(received) => {
                errors = 0;
                received
            }
            Err(error) => {
                // Pauses after persistent errors, such as a missing interface or lack of memory, to
                // avoid a busy loop.
                let waited = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
                errors = if waited.contains(&error.kind()) {
                    0
                } else {
                    errors + 1
                };
                if errors > MAX_ERRORS {
                    thread::sleep(POLL_INTERVAL);
                }
                continue;
            }
        };
        let arrived = Arrived {
            side,
            at: clock.now(),
            from,
            payload: Bytes::copy_from_slice(packet),
        };
        match arrivals.try_send(arrived) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => drop(overrun.fetch_add(1, Ordering::Relaxed)),
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}
