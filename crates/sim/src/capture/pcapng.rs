//! Blocks of a pcapng file (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3), with the options that a
//! capture uses. Numbers are in little-endian order, which the section header announces.

use anabranch_transport::Nanos;

/// The link-layer type of packets that begin with their IP header (LINKTYPE_RAW).
const RAW: u16 = 101;
/// Code of the option that ends a list of options.
const END: u16 = 0;

/// A block under construction: type and length are filled in at its end.
#[derive(Debug, Default)]
pub struct Block {
    bytes: Vec<u8>,
}

impl Block {
    /// Begins a block of this type.
    fn begin(&mut self, kind: u32) -> &mut Self {
        self.bytes.clear();
        self.word(kind).word(0)
    }

    fn short(&mut self, short: u16) -> &mut Self {
        self.bytes.extend(short.to_le_bytes());
        self
    }

    fn word(&mut self, word: u32) -> &mut Self {
        self.bytes.extend(word.to_le_bytes());
        self
    }

    /// Appends bytes, and zeros up to a multiple of four.
    fn padded(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        self
    }

    /// Appends an option with a value of at most 65,535 bytes, because its length has 16 bits.
    fn option(&mut self, code: u16, value: &[u8]) -> &mut Self {
        self.short(code).short(value.len() as u16).padded(value)
    }

    /// Ends the block, and returns it.
    fn end(&mut self) -> &[u8] {
        let length = self.bytes.len() as u32 + 4;
        self.bytes[4..8].copy_from_slice(&length.to_le_bytes());
        self.word(length);
        &self.bytes
    }
}

/// Section Header Block: version 1.0, of unknown length.
pub fn section_header(block: &mut Block) -> &[u8] {
    block.begin(0x0a0d_0d0a).word(0x1a2b_3c4d);
    block.short(1).short(0).word(u32::MAX).word(u32::MAX).end()
}

/// Interface Description Block: its name (if_name), packets of any length with times in nanoseconds
/// (if_tsresol). Of a name that is longer than an option, the beginning is written.
pub fn interface_description<'b>(block: &'b mut Block, name: &str) -> &'b [u8] {
    let most = name.len().min(usize::from(u16::MAX));
    let boundary = (0..=most).rev().find(|at| name.is_char_boundary(*at));
    let name = &name[..boundary.unwrap_or(0)];
    block.begin(1).short(RAW).short(0).word(0);
    block.option(2, name.as_bytes()).option(9, &[9]);
    block.option(END, &[]).end()
}

/// Enhanced Packet Block: a whole packet, with its flags (epb_flags).
pub fn enhanced_packet<'b>(
    block: &'b mut Block,
    at: Nanos,
    interface: u32,
    flags: u32,
    packet: &[u8],
) -> &'b [u8] {
    let length = packet.len() as u32;
    block.begin(6).word(interface);
    block.word((at >> 32) as u32).word(at as u32);
    block.word(length).word(length).padded(packet);
    block.option(2, &flags.to_le_bytes()).option(END, &[]).end()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::time::Duration;

    use pcap_file::pcapng::PcapNgWriter;
    use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
    use pcap_file::pcapng::blocks::interface_description::{
        InterfaceDescriptionBlock, InterfaceDescriptionOption,
    };
    use pcap_file::pcapng::blocks::section_header::SectionHeaderBlock;
    use pcap_file::{DataLink, Endianness};

    use super::*;

    /// The file should equal that of the crate pcap-file byte by byte, with names and packets of
    /// all lengths modulo 4.
    #[test]
    fn a_file_is_that_of_pcap_file() {
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            ..Default::default()
        };
        let mut expected = PcapNgWriter::with_section_header(Vec::new(), section).expect("written");
        let mut block = Block::default();
        let mut own = section_header(&mut block).to_vec();
        for name in ["a", "ab>c", "abc", "", "a long name > another"] {
            let description = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(9),
                ],
            };
            expected.write_pcapng_block(description).expect("written");
            own.extend_from_slice(interface_description(&mut block, name));
        }
        for (length, at) in (0..70).zip([0, 1, u64::from(u32::MAX), u64::MAX >> 1].iter().cycle()) {
            let packet: Vec<u8> = (0..length).collect();
            let (interface, flags) = (u32::from(length % 5), u32::from(length % 3));
            let packet = EnhancedPacketBlock {
                interface_id: interface,
                timestamp: Duration::from_nanos(*at),
                original_len: u32::from(length),
                data: Cow::Owned(packet),
                options: vec![EnhancedPacketOption::Flags(flags)],
            };
            own.extend_from_slice(enhanced_packet(
                &mut block,
                *at,
                interface,
                flags,
                &packet.data,
            ));
            expected.write_pcapng_block(packet).expect("written");
        }
        assert_eq!(own, expected.into_inner());
    }

    /// A name is cut at a character, because a reader refuses incomplete UTF-8.
    #[test]
    fn a_long_name_is_cut_between_characters() {
        let mut block = Block::default();
        for (name, length) in [
            ("é".repeat(40_000), 65_534),
            ("e".repeat(65_535), 65_535),
            ("e".repeat(65_536), 65_535),
        ] {
            let bytes = interface_description(&mut block, &name);
            assert_eq!(bytes[16..18], 2u16.to_le_bytes(), "if_name");
            assert_eq!(bytes[18..20], (length as u16).to_le_bytes());
            assert_eq!(&bytes[20..20 + length], &name.as_bytes()[..length]);
            let (all, begins) = (bytes.len(), 20 + length.next_multiple_of(4));
            assert_eq!(all - begins, 8 + 4 + 4, "if_tsresol, the end, the length");
        }
    }
}
