//! A pcapng file of IP packets.

use std::io::{self, Write};

use anabranch_transport::Nanos;

use super::frame::{Frame, Way};
use super::ip;

// Codes of the pcapng format (draft-ietf-opsawg-pcapng), sections 4.1 to 4.3. A crate would bring
// seven more.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const END_OF_OPTIONS: u16 = 0;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
/// LINKTYPE_RAW: packets begin with an IPv4 or IPv6 header.
const RAW_IP: u16 = 101;
/// Nanoseconds, as the if_tsresol option says it: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// A capture that is being written. The IP headers are made up from addresses and sizes. Wrap a
/// file in a `BufWriter`.
pub struct PacketFile<W: Write> {
    writer: W,
    /// Header and payload of the packet being written, kept for reuse.
    scratch: Vec<u8>,
    error: Option<io::Error>,
}

/// Writes a block: its type, its length, the parts of its body, and its length again.
fn write_block(writer: &mut impl Write, kind: u32, body: &[&[u8]]) -> io::Result<()> {
    let padding = |part: &[u8]| part.len().next_multiple_of(4) - part.len();
    let length: usize = body.iter().map(|part| part.len() + padding(part)).sum();
    let length = (length as u32 + 12).to_le_bytes();
    writer.write_all(&kind.to_le_bytes())?;
    writer.write_all(&length)?;
    for part in body {
        writer.write_all(part)?;
        writer.write_all(&[0; 3][..padding(part)])?;
    }
    writer.write_all(&length)
}

/// The head of an option whose value has so many bytes.
fn option(code: u16, length: usize) -> [u8; 4] {
    let [[a, b], [c, d]] = [code, length as u16].map(u16::to_le_bytes);
    [a, b, c, d]
}

/// 32-bit fields.
fn fields<const N: usize>(fields: [u32; N]) -> Vec<u8> {
    fields.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl<W: Write> std::fmt::Debug for PacketFile<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketFile")
            .field("error", &self.error)
            .finish_non_exhaustive()
    }
}

impl<W: Write> PacketFile<W> {
    /// Begins a file with these interfaces.
    ///
    /// # Errors
    /// The writer's.
    pub fn new<'a>(
        mut writer: W,
        interfaces: impl IntoIterator<Item = &'a str>,
    ) -> io::Result<Self> {
        // Byte order, version 1.0, a section of unknown length.
        let header = fields([0x1a2b_3c4d, 1, u32::MAX, u32::MAX]);
        write_block(&mut writer, SECTION_HEADER, &[&header])?;
        for name in interfaces {
            // The second field is the longest packet: any.
            let body: [&[u8]; 6] = [
                &fields([RAW_IP.into(), 0]),
                &option(IF_NAME, name.len()),
                name.as_bytes(),
                &option(IF_TSRESOL, 1),
                &[NANOSECONDS],
                &option(END_OF_OPTIONS, 0),
            ];
            write_block(&mut writer, INTERFACE_DESCRIPTION, &body)?;
        }
        Ok(Self {
            writer,
            scratch: Vec::new(),
            error: None,
        })
    }

    /// Writes a packet. After an error nothing more is written; [`PacketFile::finish`] tells it.
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

    /// The same with a packet whose IP header is known.
    pub(crate) fn write_datagram(&mut self, at: Nanos, interface: u32, way: Way, datagram: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let length = datagram.len() as u32;
        let mut head = [0; 20];
        let words = [interface, (at >> 32) as u32, at as u32, length, length];
        for (field, word) in head.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_le_bytes());
        }
        let body: [&[u8]; 5] = [
            &head,
            datagram,
            &option(EPB_FLAGS, 4),
            &(way as u32).to_le_bytes(),
            &option(END_OF_OPTIONS, 0),
        ];
        if let Err(error) = write_block(&mut self.writer, ENHANCED_PACKET, &body) {
            self.error = Some(error);
        }
    }

    /// Flushes.
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
