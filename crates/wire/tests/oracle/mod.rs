//! Properties that must hold for any input. The property tests and the fuzz targets use them.

use std::fmt::Debug;
use std::net::IpAddr;

use anabranch_wire::chunk::{Abort, ErrorChunk};
use anabranch_wire::extension::{
    AsconfResponse, Extension, ExtensionCause, IForwardTsn, InitParameter, ReConfigParameter,
};
use anabranch_wire::tcp::{Segment, SegmentError};
use anabranch_wire::tlv::{TlvItem, TlvList};
use anabranch_wire::{
    Cause, Causes, Checksum, Chunk, CommonHeader, Encode, Packet, PacketBuilder, PacketError,
    Parameters,
};
use bytes::{Bytes, BytesMut};

/// Decodes `datagram` as an SCTP packet, iterates over all its lists, encodes it again and decodes
/// the result.
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

/// Asserts that decoded chunks do not change when they are encoded and decoded again.
fn check_writing(header: CommonHeader, chunks: &[Chunk]) {
    if chunks.is_empty() {
        return;
    }
    let again = write_chunks(header, chunks);
    let again = Packet::parse(&again, Checksum::Verify).expect("what was written is sound");
    assert_eq!(again.header, header);
    assert_eq!(read_chunks(&again), chunks);
}

/// The valid chunks before the first error in a chunk header.
pub fn read_chunks(packet: &Packet) -> Vec<Chunk> {
    packet
        .chunks()
        .map_while(Result::ok)
        .filter_map(|raw| Chunk::decode(raw).ok())
        .collect()
}

/// A packet with these chunks and a correct checksum.
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

/// Iterates over every list of a chunk.
fn walk(chunk: &Chunk) {
    match chunk {
        Chunk::Init(init) => walk_parameters(&init.parameters),
        Chunk::InitAck(init) => walk_parameters(&init.parameters),
        Chunk::Abort(Abort { causes, .. }) | Chunk::Error(ErrorChunk { causes }) => {
            walk_causes(causes);
            for cause in causes.iter().flatten() {
                if let Cause::UnrecognizedParameters { parameters: list }
                | Cause::RestartWithNewAddresses { addresses: list } = cause
                {
                    walk_parameters(&list);
                }
            }
        }
        Chunk::Sack(sack) => {
            assert_eq!(sack.gap_blocks().count(), sack.gap_blocks().len());
            assert_eq!(sack.duplicates().count(), sack.duplicates().len());
        }
        Chunk::Unknown(raw) => {
            if let Ok(extension) = Extension::decode(raw.clone()) {
                walk_extension(&extension);
            }
        }
        _ => {}
    }
}

/// Iterates over parameters and also decodes those of the extensions.
fn walk_parameters(list: &Parameters) {
    walk_list(list);
    walk_list(&TlvList::<InitParameter>::from_bytes(
        list.as_bytes().clone(),
    ));
}

fn walk_causes(list: &Causes) {
    walk_list(list);
    walk_list(&TlvList::<ExtensionCause>::from_bytes(
        list.as_bytes().clone(),
    ));
}

/// Iterates over every list of an extension chunk. Asserts that the chunk does not change when it
/// is encoded and decoded again.
fn walk_extension(extension: &Extension) {
    match extension {
        Extension::ForwardTsn(forward) => {
            assert_eq!(forward.skipped().count(), forward.skipped().len());
        }
        Extension::IForwardTsn(forward) => {
            let again = IForwardTsn::new(forward.new_cumulative_tsn, forward.skipped());
            assert!(again.skipped().eq(forward.skipped()));
        }
        Extension::ReConfig(chunk) => {
            walk_list::<ReConfigParameter>(&chunk.parameters);
            if chunk.combination().is_ok() {
                assert!((1..=2).contains(&chunk.parameters.iter().count()));
            }
        }
        Extension::Asconf(chunk) => walk_list(&chunk.parameters),
        Extension::AsconfAck(chunk) => {
            walk_list(&chunk.parameters);
            for response in chunk.parameters.iter().flatten() {
                if let AsconfResponse::Error { causes, .. } = response {
                    walk_causes(&causes);
                }
            }
        }
        Extension::IData(_) | Extension::Auth(_) | Extension::Dtls(_) | Extension::Unknown(_) => {}
    }
    let again = read_extension(&write_extensions(std::slice::from_ref(extension)));
    assert_eq!(again, std::slice::from_ref(extension));
}

/// A packet with these chunks.
pub fn write_extensions(chunks: &[Extension]) -> Bytes {
    let mut out = BytesMut::new();
    let header = CommonHeader {
        source_port: 1,
        destination_port: 1,
        verification_tag: 0,
    };
    let room = 12 + chunks.iter().map(Encode::encoded_len).sum::<usize>();
    let mut builder = PacketBuilder::new(&mut out, header, room);
    for chunk in chunks {
        builder.push(chunk).expect("the packet has room for it");
    }
    assert_eq!(builder.finish(true), room);
    out.freeze()
}

/// The chunks of a packet, decoded as an endpoint that supports the extensions decodes them.
pub fn read_extension(datagram: &Bytes) -> Vec<Extension> {
    let packet = Packet::parse(datagram, Checksum::Verify).expect("a sound packet");
    packet
        .chunks()
        .map(|raw| Extension::decode(raw.expect("framed")).expect("sound"))
        .collect()
}

/// Asserts that the iteration ends, and that the valid entries do not change when they are encoded
/// and decoded again.
fn walk_list<T: TlvItem + PartialEq + Debug>(list: &TlvList<T>) {
    assert!(list.iter().count() <= list.as_bytes().len().div_ceil(4));
    let sound: Vec<T> = list.iter().flatten().collect();
    let again: Vec<T> = TlvList::of(&sound)
        .iter()
        .map(|item| item.expect("what was written is sound"))
        .collect();
    assert_eq!(again, sound);
}

/// Decodes `datagram` as a TCP segment, encodes it again and decodes the result.
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
    // An option may need more space than before, because the encoder aligns the options. In that
    // case the last SACK blocks are omitted.
    let options = &mut segment.header.options;
    options.sack_blocks.truncate(options.sack_blocks_that_fit());
    assert_eq!(again, segment);
}
