//! Encoding and decoding of SCTP packets, chunks, parameters and causes, and of TCP segments;
//! serial numbers and checksums.
//!
//! Decoding is zero-copy: variable-length fields are slices ([`bytes::Bytes`]) of the datagram, and
//! lists (chunks, parameters, causes, Gap Ack Blocks) are iterated in place. Each list has exactly
//! one iterator, because a second reader could accept bytes that the first reader has not
//! validated. No input causes a panic.
//!
//! ```
//! use anabranch_wire::chunk::{Chunk, Shutdown};
//! use anabranch_wire::packet::{Checksum, CommonHeader, Packet, PacketBuilder};
//! use anabranch_wire::serial::Tsn;
//! use bytes::BytesMut;
//!
//! let header = CommonHeader {
//!     source_port: 5000,
//!     destination_port: 5001,
//!     verification_tag: 0xC0FFEE,
//! };
//! let mut out = BytesMut::new();
//! let mut builder = PacketBuilder::new(&mut out, header, 1472);
//! builder.push(&Shutdown { cumulative_tsn_ack: Tsn(7) }).unwrap();
//! assert_eq!(builder.finish(true), 20);
//!
//! let datagram = out.freeze();
//! let packet = Packet::parse(&datagram, Checksum::Verify).unwrap();
//! let chunk = Chunk::decode(packet.chunks().next().unwrap().unwrap()).unwrap();
//! assert_eq!(chunk, Chunk::Shutdown(Shutdown { cumulative_tsn_ack: Tsn(7) }));
//! ```
#![forbid(unsafe_code)]
#![warn(missing_debug_implementations, unnameable_types, unreachable_pub)]
#![warn(clippy::use_self)]

pub mod cause;
pub mod checksum;
pub mod chunk;
pub mod encode;
pub mod extension;
pub mod packet;
pub mod parameter;
pub mod rsctp;
pub mod serial;
pub mod tcp;
pub mod tlv;
pub mod unrecognized;

pub use cause::{Cause, Causes};
pub use checksum::Checksum;
pub use chunk::Chunk;
pub use encode::{Encode, Full};
pub use extension::Extension;
pub use packet::{CommonHeader, Packet, PacketBuilder, PacketError, RawChunk};
pub use parameter::{Parameter, Parameters};
pub use serial::{Fsn, Mid, SeqNumber, Ssn, Tsn};
pub use unrecognized::UnknownAction;
