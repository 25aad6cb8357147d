//! Captures: the packets at interfaces, as pcapng files.
//!
//! A packet that an interface sends is recorded when its serialisation begins. The file therefore
//! lacks packets that the queue dropped, and contains packets that are lost in the channel. A
//! received packet is recorded when its last bit arrives. The caller supplies the writer, and
//! receives its errors from [`crate::World::finish`].

mod file;
mod frame;
mod ip;
mod pcapng;

use std::collections::VecDeque;
use std::io::{self, Write};

use anabranch_transport::Nanos;

pub use file::PacketFile;
pub use frame::{CapturedPacket, Way};

use crate::packet::Packet;

/// A packet whose serialisation has not begun yet.
#[derive(Debug)]
struct Pending {
    at: Nanos,
    tap: u32,
    packet: Packet,
}

/// One capture file.
pub(crate) struct Capture {
    file: PacketFile<Box<dyn Write>>,
    /// Captured interfaces, in the order of their Interface Description Blocks.
    taps: Vec<u32>,
    /// Packets whose serialisation has not begun yet, ordered by the time at which it begins.
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
    /// Starts a file that captures `taps`: pairs of an interface number and a name.
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

    /// Whether `interface` is captured in this file.
    pub fn taps(&self, interface: u32) -> bool {
        self.taps.contains(&interface)
    }

    /// Records that `interface` accepts `packet` at `now` and begins to serialise it at `at`, which
    /// is not before `now`.
    pub fn sends(&mut self, now: Nanos, at: Nanos, interface: u32, packet: Packet) {
        // Writes earlier packets first, so that `pending` never holds more packets than the queue
        // of the interface.
        self.advance(now);
        if let Some(tap) = self.tap(interface) {
            let place = self.pending.partition_point(|other| other.at <= at);
            self.pending.insert(place, Pending { at, tap, packet });
        }
    }

    /// Records that `interface` has received `packet`.
    pub fn receives(&mut self, now: Nanos, interface: u32, packet: &Packet) {
        if let Some(tap) = self.tap(interface) {
            self.advance(now);
            self.write(now, tap, Way::In, packet);
        }
    }

    /// Writes the packets sent up to `now`.
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
        self.file.write(&CapturedPacket {
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

    /// Writes the packets sent up to `now` and flushes. Returns the first error since the last
    /// call.
    pub fn finish(&mut self, now: Nanos) -> io::Result<()> {
        self.advance(now);
        self.file.finish()
    }
}
