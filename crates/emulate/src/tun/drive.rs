//! Drives a simulated network ([`World`]) between TUN devices by the wall clock, on one thread.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_sim::{BuildError, World};
use anabranch_transport::Nanos;
use bytes::Bytes;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::{MAX_HELD, TunHost, TunReport};
use crate::clock::Clock;
use crate::running::Shared;
use crate::socket::POLL_INTERVAL;

/// Maximum number of packets that are read from one host before the world advances, so that a host
/// with much traffic does not delay others.
const TURN: usize = 32;
/// Maximum IP packet size, bytes.
const MAX_PACKET: usize = 65_535;

/// A packet that counts towards the memory limit until the last link has released it.
struct Held {
    packet: Box<[u8]>,
    all: Arc<AtomicU64>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.packet
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let len = self.packet.len() as u64;
        self.all.fetch_sub(len, Ordering::Relaxed);
    }
}

/// The thread's state: the world, its hosts, and statistics.
pub(super) struct Driver {
    world: World,
    hosts: Vec<TunHost>,
    /// Hosts whose device was deleted. They must not be polled, because the poll would always
    /// return immediately.
    gone: Vec<bool>,
    clock: Clock,
    held: Arc<AtomicU64>,
    buffer: Vec<u8>,
    report: TunReport,
    shared: Shared<TunReport>,
    published: Nanos,
}

impl Driver {
    pub(super) fn new(
        mut world: World,
        hosts: Vec<TunHost>,
        shared: Shared<TunReport>,
    ) -> Result<Self, BuildError> {
        for host in &hosts {
            world.open(host.node)?;
        }
        Ok(Self {
            report: TunReport::of(&hosts),
            world,
            gone: vec![false; hosts.len()],
            hosts,
            clock: Clock::start(),
            held: Arc::new(AtomicU64::new(0)),
            buffer: vec![0; MAX_PACKET],
            shared,
            published: 0,
        })
    }

    /// Drives the world until it is stopped. Returns the first error of a capture.
    pub(super) fn run(mut self) -> io::Result<()> {
        // Reduces the timer slack, because waits would end 50 us late with the default. If this
        // call fails, the report shows the effect.
        let _ = nix::sys::prctl::set_timerslack(1);
        while !self.shared.stop.load(Ordering::Relaxed) {
            let ready = self.wait();
            self.advance();
            for host in ready {
                self.take(host);
            }
            self.leave();
            let now = self.clock.now();
            if now.saturating_sub(self.published) >= POLL_INTERVAL.as_nanos() as Nanos {
                self.published = now;
                self.publish();
            }
        }
        self.publish();
        self.world.finish()
    }

    /// Waits until the world has an event or a host has sent a packet; returns the hosts with
    /// packets.
    fn wait(&mut self) -> Vec<usize> {
        let now = self.clock.now();
        let wait = match self.world.next_event() {
            Some(at) => Duration::from_nanos(at.saturating_sub(now)).min(POLL_INTERVAL),
            None => POLL_INTERVAL,
        };
        let mut ready: Vec<usize> = (0..self.hosts.len())
            .filter(|&host| !self.gone[host])
            .collect();
        let mut polled: Vec<PollFd<'_>> = ready
            .iter()
            .map(|&host| PollFd::new(self.hosts[host].tun.as_fd(), PollFlags::POLLIN))
            .collect();
        // If the call is interrupted, it reports no packets.
        let _ = ppoll(&mut polled, Some(TimeSpec::from_duration(wait)), None);
        let seen = |it: &PollFd<'_>| it.revents().unwrap_or(PollFlags::empty());
        let found: Vec<PollFlags> = polled.iter().map(seen).collect();
        let mut found = found.into_iter();
        ready.retain(|&host| {
            let found = found.next().unwrap_or(PollFlags::empty());
            let sent = found.contains(PollFlags::POLLIN);
            if !sent && !found.is_empty() {
                tracing::warn!(host = %self.hosts[host].name, "its device is gone");
                self.gone[host] = true;
            }
            sent
        });
        ready
    }

    /// Advances the world to the present. This fails only for agents that send endlessly without
    /// any time passing, which this world does not have.
    fn advance(&mut self) {
        let at = self.clock.now().max(self.world.now());
        let ran = self.world.run_until(at);
        debug_assert!(ran.is_ok(), "{ran:?}");
    }

    /// Reads the packets of a host into the world.
    fn take(&mut self, host: usize) {
        for _ in 0..TURN {
            let Some(packet) = self.hosts[host].tun.receive(&mut self.buffer) else {
                return;
            };
            let len = packet.len() as u64;
            if self.held.load(Ordering::Relaxed) + len > MAX_HELD {
                self.report.overrun += 1;
                continue;
            }
            self.held.fetch_add(len, Ordering::Relaxed);
            let packet = Bytes::from_owner(Held {
                packet: packet.into(),
                all: Arc::clone(&self.held),
            });
            self.advance();
            match self.world.enter(self.hosts[host].node, packet) {
                Ok(()) => self.report.hosts[host].entered += 1,
                Err(_) => self.report.hosts[host].rejected += 1,
            }
            self.leave();
        }
    }

    /// Writes the packets that have crossed the world to their hosts.
    fn leave(&mut self) {
        while let Some(left) = self.world.poll_egress() {
            let place = self.hosts.iter().position(|host| host.node == left.node);
            let Some(place) = place else { continue };
            match self.hosts[place].tun.send(&left.datagram) {
                Ok(()) => self.report.hosts[place].left += 1,
                // The IP version in the header is neither 4 nor 6, because an impairment has
                // damaged it.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                    self.report.damaged += 1;
                }
                Err(error) => {
                    tracing::debug!(%error, "not taken");
                    self.report.overrun += 1;
                }
            }
            let late = self.clock.now().saturating_sub(left.at);
            self.report.timing.add(late);
        }
    }

    fn publish(&mut self) {
        self.shared.publish(TunReport {
            dropped: self.world.packet_counts().dropped,
            ..self.report.clone()
        });
    }
}
