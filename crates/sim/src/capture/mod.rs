//! Captures: what passes an interface, as a pcapng file that Wireshark opens.
//!
//! A packet that an interface sends is recorded when its serialisation begins, so that what a queue drops is not in the
//! file and what the air takes is; one that arrives is recorded when its last bit does. The caller supplies the writer,
//! and learns of its errors from [`crate::World::finish`].

mod file;
mod frame;
mod ip;

use std::collections::VecDeque;
use std::io::{self, Write};

use anabranch_transport::Nanos;

pub use file::PacketFile;
pub use frame::{Frame, Way};

use crate::packet::Packet;

/// A packet that will be sent.
#[derive(Debug)]
struct Pending {
    at: Nanos,
    tap: u32,
    packet: Packet,
}

/// One capture file.
pub(crate) struct Capture {
    file: PacketFile<Box<dyn Write>>,
    /// The interfaces captured, in the order of their description blocks.
    taps: Vec<u32>,
    /// What is sent later than the present, in the order of time.
    pending: VecDeque<Pending>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("taps", &self.taps)
            .field("pending", &self.pending.len())
            .finish_non_exhaustive()
    }
}

impl Capture {
    /// Begins a file that captures `taps`: interfaces with their names.
    pub fn new(writer: Box<dyn Write>, taps: Vec<(u32, String)>) -> io::Result<Self> {
        let file = PacketFile::new(writer, taps.iter().map(|(_, name)| name.as_str()))?;
        Ok(Self {
            file,
            taps: taps.into_iter().map(|(interface, _)| interface).collect(),
            pending: VecDeque::new(),
        })
    }

    fn tap(&self, interface: u32) -> Option<u32> {
        let place = self.taps.iter().position(|&tap| tap == interface)?;
        Some(place as u32)
    }

    /// Whether `interface` is captured here.
    pub fn taps(&self, interface: u32) -> bool {
        self.taps.contains(&interface)
    }

    /// `interface` takes `packet` for sending at `now`, and begins to serialise it at `at`, then or later.
    pub fn sends(&mut self, now: Nanos, at: Nanos, interface: u32, packet: Packet) {
        // What lies behind is written first, so that no more waits here than in the interface's queue.
        self.advance(now);
        if let Some(tap) = self.tap(interface) {
            let place = self.pending.partition_point(|other| other.at <= at);
            self.pending.insert(place, Pending { at, tap, packet });
        }
    }

    /// `interface` has received `packet`.
    pub fn receives(&mut self, now: Nanos, interface: u32, packet: &Packet) {
        if let Some(tap) = self.tap(interface) {
            self.advance(now);
            self.write(now, tap, Way::In, packet);
        }
    }

    /// Writes what has been sent up to `now`.
    pub fn advance(&mut self, now: Nanos) {
        while self.pending.front().is_some_and(|next| next.at <= now) {
            if let Some(Pending { at, tap, packet }) = self.pending.pop_front() {
                self.write(at, tap, Way::Out, &packet);
            }
        }
    }

    fn write(&mut self, at: Nanos, tap: u32, way: Way, packet: &Packet) {
        if packet.header != 0 {
            let datagram = packet.written(packet.hops_left);
            return self.file.write_datagram(at, tap, way, &datagram);
        }
        self.file.write(&Frame {
            at,
            interface: tap,
            way,
            source: packet.source,
            destination: packet.destination,
            protocol: packet.protocol,
            id: packet.id as u16,
            ecn: packet.ecn,
            hops_left: packet.hops_left,
            payload: &packet.bytes,
        });
    }

    /// Writes all that was sent up to `now` and flushes; the first error since the last call.
    pub fn finish(&mut self, now: Nanos) -> io::Result<()> {
        self.advance(now);
        self.file.finish()
    }
}
