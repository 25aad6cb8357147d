//! Captures: what passes an interface, as a pcapng file that Wireshark opens.
//!
//! A packet that an interface sends is recorded when its serialisation begins, so that what a queue drops is not in the
//! file and what the air takes is; one that arrives is recorded when its last bit does. The caller supplies the writer,
//! and learns of its errors from [`crate::World::finish`].

mod ip;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::time::Duration;

use anabranch_transport::Nanos;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
use pcap_file::{DataLink, Endianness, PcapError};

use crate::packet::Packet;

/// Nanoseconds, as the if_tsresol option says it: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Which way a packet passed the interface, in the epb_flags option's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    In = 1,
    Out = 2,
}

/// A packet that will be sent.
#[derive(Debug)]
struct Pending {
    at: Nanos,
    tap: u32,
    packet: Packet,
}

/// One capture file.
pub(crate) struct Capture {
    writer: PcapNgWriter<Box<dyn Write>>,
    /// The interfaces captured, in the order of their description blocks.
    taps: Vec<u32>,
    /// What is sent later than the present, in the order of time.
    pending: VecDeque<Pending>,
    /// Header and payload of the packet being written, kept for reuse.
    scratch: Vec<u8>,
    error: Option<io::Error>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture")
            .field("taps", &self.taps)
            .field("pending", &self.pending.len())
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

impl Capture {
    /// Begins a file that captures `taps`: interfaces with their names.
    pub fn new(writer: Box<dyn Write>, taps: Vec<(u32, String)>) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            ..Default::default()
        };
        let mut writer = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        for (_, name) in &taps {
            let description = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(description).map_err(io_error)?;
        }
        Ok(Self {
            writer,
            taps: taps.into_iter().map(|(interface, _)| interface).collect(),
            pending: VecDeque::new(),
            scratch: Vec::new(),
            error: None,
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
        if self.error.is_some() {
            return;
        }
        self.scratch.clear();
        ip::write_header(packet, &mut self.scratch);
        self.scratch.extend_from_slice(&packet.bytes);
        let block = EnhancedPacketBlock {
            interface_id: tap,
            timestamp: Duration::from_nanos(at),
            original_len: self.scratch.len() as u32,
            data: Cow::Borrowed(&self.scratch),
            options: vec![EnhancedPacketOption::Flags(way as u32)],
        };
        if let Err(error) = self.writer.write_pcapng_block(block) {
            self.error = Some(io_error(error));
        }
    }

    /// Writes all that was sent up to `now` and flushes; the first error since the last call.
    pub fn finish(&mut self, now: Nanos) -> io::Result<()> {
        self.advance(now);
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.writer.get_mut().flush()
    }
}
