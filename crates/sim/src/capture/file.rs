//! A pcapng file of IP packets.

use std::borrow::Cow;
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

use super::frame::{Frame, Way};
use super::ip;

/// Value of the option if_tsresol: timestamps count units of 10^-9 s.
const NANOSECONDS: u8 = 9;

/// Writer of a pcapng file. IP headers are generated from the addresses and sizes of the packets. A
/// file should be wrapped in a `BufWriter`.
pub struct PacketFile<W: Write> {
    writer: PcapNgWriter<W>,
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

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write> PacketFile<W> {
    /// Begins a file with the given interface names.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn new<'a>(writer: W, interfaces: impl IntoIterator<Item = &'a str>) -> io::Result<Self> {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            ..Default::default()
        };
        let mut writer = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        for name in interfaces {
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
            scratch: Vec::new(),
            error: None,
        })
    }

    /// Writes a packet. After an error no further packet is written, and [`PacketFile::finish`]
    /// returns the error.
    pub fn write(&mut self, frame: &Frame<'_>) {
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
        let block = EnhancedPacketBlock {
            interface_id: interface,
            timestamp: Duration::from_nanos(at),
            original_len: datagram.len() as u32,
            data: Cow::Borrowed(datagram),
            options: vec![EnhancedPacketOption::Flags(way as u32)],
        };
        if let Err(error) = self.writer.write_pcapng_block(block) {
            self.error = Some(io_error(error));
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
        self.writer.get_mut().flush()
    }
}
