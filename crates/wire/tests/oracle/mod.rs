//! What must hold of any bytes whatever. The property tests and the fuzz targets share it.

use std::fmt::Debug;
use std::net::IpAddr;

use anabranch_wire::chunk::{Abort, ErrorChunk};
use anabranch_wire::tcp::{Segment, SegmentError};
use anabranch_wire::tlv::{TlvItem, TlvList};
use anabranch_wire::{
    Cause, Checksum, Chunk, CommonHeader, Encode, Packet, PacketBuilder, PacketError,
};
use bytes::{Bytes, BytesMut};

/// Reads `datagram` as an SCTP packet, walks whatever is in it, writes it again and reads that.
pub fn check_packet(datagram: &Bytes) {
    let verified = Packet::parse(datagram, Checksum::Verify).map(|packet| packet.header);
    match Packet::parse(datagram, Checksum::Ignore) {
        Ok(packet) => {
            assert!(verified == Ok(packet.header) || verified == Err(PacketError::BadChecksum));
            let chunks = read_chunks(&packet);
            for chunk in &chunks {
                walk(chunk);
            }
            if datagram.len() <= usize::from(u16::MAX) {
                check_writing(packet.header, &chunks);
            }
        }
        Err(error) => assert!(verified == Err(error) || verified == Err(PacketError::BadChecksum)),
    }
}

/// Chunks that were read come back when they are written.
fn check_writing(header: CommonHeader, chunks: &[Chunk]) {
    if chunks.is_empty() {
        return;
    }
    let again = write_chunks(header, chunks);
    let again = Packet::parse(&again, Checksum::Verify).expect("what was written is sound");
    assert_eq!(again.header, header);
    assert_eq!(read_chunks(&again), chunks);
}

/// The sound chunks in front of the first frame that is broken.
pub fn read_chunks(packet: &Packet) -> Vec<Chunk> {
    packet
        .chunks()
        .map_while(Result::ok)
        .filter_map(|raw| Chunk::decode(raw).ok())
        .collect()
}

/// A packet of those chunks, its checksum right.
pub fn write_chunks(header: CommonHeader, chunks: &[Chunk]) -> Bytes {
    let mut out = BytesMut::new();
    let mut builder = PacketBuilder::new(&mut out, header, usize::from(u16::MAX));
    for chunk in chunks {
        let before = builder.len();
        builder.push(chunk).expect("it was in one packet before");
        assert_eq!(builder.len() - before, chunk.encoded_len());
    }
    let length = builder.finish(true);
    assert_eq!(length, out.len());
    out.freeze()
}

/// Walks every list of a chunk.
fn walk(chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) => walk_list(&init.parameters),
        Chunk::InitAck(init) => walk_list(&init.parameters),
        Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes }) => {
            walk_list(causes);
            for cause in causes.iter().flatten() {
                if let Cause::UnrecognizedParameters { parameters: list }
                | Cause::RestartWithNewAddresses { addresses: list } = cause
                {
                    walk_list(&list);
                }
            }
        }
        Chunk::Sack(sack) => {
            assert_eq!(sack.gap_blocks().count(), sack.gap_blocks().len());
            assert_eq!(sack.duplicates().count(), sack.duplicates().len());
        }
        _ => {}
    }
}

/// The walk ends, and the sound entries come back when they are written.
fn walk_list<T: TlvItem + PartialEq + Debug>(list: &TlvList<T>) {
    assert!(list.iter().count() <= list.as_bytes().len().div_ceil(4));
    let sound: Vec<T> = list.iter().flatten().collect();
    let again: Vec<T> = TlvList::of(&sound)
        .iter()
        .map(|item| item.expect("what was written is sound"))
        .collect();
    assert_eq!(again, sound);
}

/// Reads `datagram` as a TCP segment, writes it again and reads that.
pub fn check_segment(datagram: &Bytes) {
    let addresses = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let verified = Segment::parse(datagram, addresses, Checksum::Verify);
    let read = Segment::parse(datagram, addresses, Checksum::Ignore);
    assert!(verified == read || verified == Err(SegmentError::BadChecksum));
    let Ok(mut segment) = read else { return };
    let mut out = BytesMut::new();
    let length = segment.encode(&mut out, addresses, true);
    assert_eq!(length, segment.header.encoded_len() + segment.payload.len());
    let again = Segment::parse(&out.freeze(), addresses, Checksum::Verify)
        .expect("what was written is sound");
    // Written with its alignment an option may take more room than it did, at the cost of the last SACK blocks.
    let options = &mut segment.header.options;
    options.sack_blocks.truncate(options.sack_blocks_that_fit());
    assert_eq!(again, segment);
}
