//! A pcapng file of IP packets.

use std::io::{self, Write};

use anabranch_transport::Nanos;

use super::frame::{CapturedPacket, Way};
use super::ip;
use super::pcapng::{self, Block};

/// Writer of a pcapng file. IP headers are generated from the addresses and sizes of the packets. A
/// file should be wrapped in a `BufWriter`.
pub struct PacketFile<W: Write> {
    writer: W,
    /// Number of interfaces.
    interfaces: u32,
    /// The block being written, kept for reuse.
    block: Block,
    /// Header and payload of the packet being written, kept for reuse.
    scratch: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> std::fmt::Debug for PacketFile<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketFile")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<W: Write> PacketFile<W> {
    /// Begins a file with the given interface names.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn new<'a>(
        mut writer: W,
        interfaces: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        let mut block = Block::default();
        writer.write_all(pcapng::section_header(&mut block))?;
        let mut count = 0;
        for name in interfaces {
            writer.write_all(pcapng::interface_description(&mut block, name))?;
            count += 1;
        }
        Ok(Self {
            writer,
            interfaces: count,
            block,
            scratch: Vec::new(),
            error: None,
        })
    }

    /// Writes a packet. After an error no further packet is written, and [`PacketFile::finish`]
    /// returns the error.
    pub fn write(&mut self, frame: &CapturedPacket<'_>) {
        if self.error.is_some() {
            return;
        }
        let mut datagram = std::mem::take(&mut self.scratch);
        datagram.clear();
        ip::write_header(frame, &mut datagram);
        datagram.extend_from_slice(frame.payload);
        self.write_datagram(frame.at, frame.interface, frame.way, &datagram);
        self.scratch = datagram;
    }

    /// Writes a packet with its original IP header.
    pub(crate) fn write_datagram(&mut self, at: Nanos, interface: u32, way: Way, datagram: &[u8]) {
        if self.error.is_some() {
            return;
        }
        if interface >= self.interfaces {
            let what = format!("interface {interface} of {}", self.interfaces);
            self.error = Some(io::Error::other(what));
            return;
        }
        let block = pcapng::enhanced_packet(&mut self.block, at, interface, way as u32, datagram);
        if let Err(error) = self.writer.write_all(block) {
            self.error = Some(error);
        }
    }

    /// Flushes the writer.
    ///
    /// # Errors
    /// The first error since the last call.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.writer.flush()
    }
}
