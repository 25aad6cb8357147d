//! A bad link between two UDP ports: seeded loss and reordering.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::programs::receive_room;

/// Of 1000 datagrams, how many are lost.
const LOST: u64 = 20;
/// Of 1000 datagrams, how many come after those sent later.
const LATE: u64 = 20;
/// How many later datagrams overtake a late one, unless fewer come in time.
const OVERTAKEN_BY: u32 = 4;
/// How long a late datagram is kept at most.
const PATIENCE: Duration = Duration::from_millis(5);

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    stop: Arc<AtomicBool>,
    calm: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    late: Arc<AtomicU64>,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

/// One side of a relay: the address it listens on, and that of the peer it faces.
#[derive(Clone, Copy, Debug)]
pub struct Side {
    /// The relay's own address, to which the peer sends.
    pub local: SocketAddr,
    /// The peer's.
    pub peer: SocketAddr,
}

struct Direction {
    from: UdpSocket,
    to: UdpSocket,
    destination: SocketAddr,
    state: u64,
    kept: Option<(Vec<u8>, u32)>,
    stop: Arc<AtomicBool>,
    calm: Arc<AtomicBool>,
    lost: Arc<AtomicU64>,
    late: Arc<AtomicU64>,
}

impl Relay {
    /// Starts relaying between two sides, in the network of this thread.
    ///
    /// # Errors
    ///
    /// An address cannot be bound.
    pub fn start(left: Side, right: Side, seed: u64) -> io::Result<Self> {
        let mut relay = Self {
            stop: Arc::default(),
            calm: Arc::default(),
            lost: Arc::default(),
            late: Arc::default(),
            threads: Vec::new(),
        };
        let sockets = [UdpSocket::bind(left.local)?, UdpSocket::bind(right.local)?];
        for socket in &sockets {
            receive_room(socket);
            socket.set_read_timeout(Some(PATIENCE))?;
        }
        for (from, to, destination) in [(0, 1, right.peer), (1, 0, left.peer)] {
            let direction = Direction {
                from: sockets[from].try_clone()?,
                to: sockets[to].try_clone()?,
                destination,
                state: seed.wrapping_mul(2).wrapping_add(from as u64),
                kept: None,
                stop: relay.stop.clone(),
                calm: relay.calm.clone(),
                lost: relay.lost.clone(),
                late: relay.late.clone(),
            };
            relay.threads.push(std::thread::spawn(|| direction.run()));
        }
        Ok(relay)
    }

    /// Loses and delays nothing any more.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::Relaxed);
    }

    /// Datagrams lost and late until now.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.lost.load(Ordering::Relaxed),
            self.late.load(Ordering::Relaxed),
        )
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // A relay that failed shows as a transfer that did not end.
            if let Ok(Err(error)) = thread.join() {
                eprintln!("relay: {error}");
            }
        }
    }
}

impl Direction {
    fn run(mut self) -> io::Result<()> {
        let mut datagram = [0; 65536];
        while !self.stop.load(Ordering::Relaxed) {
            match self.from.recv(&mut datagram) {
                Ok(length) => self.relay(&datagram[..length])?,
                Err(error) if quiet(&error) => self.release()?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn relay(&mut self, datagram: &[u8]) -> io::Result<()> {
        let fate = match self.calm.load(Ordering::Relaxed) {
            true => 1000,
            false => self.draw() % 1000,
        };
        if fate < LOST {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if fate < LOST + LATE && self.kept.is_none() {
            self.late.fetch_add(1, Ordering::Relaxed);
            self.kept = Some((datagram.to_vec(), OVERTAKEN_BY));
            return Ok(());
        }
        self.send(datagram)?;
        match &mut self.kept {
            Some((_, 1)) => self.release(),
            Some((_, more)) => {
                *more -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn release(&mut self) -> io::Result<()> {
        match self.kept.take() {
            Some((datagram, _)) => self.send(&datagram),
            None => Ok(()),
        }
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        match self.to.send_to(datagram, self.destination) {
            Err(error) if !quiet(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// SplitMix64.
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Nothing came in time, or the peer is not there.
fn quiet(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, TimedOut, WouldBlock};
    matches!(error.kind(), ConnectionRefused | TimedOut | WouldBlock)
}
