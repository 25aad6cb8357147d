//! Single chunks for packets that a conforming peer would not send.

use super::*;
use anabranch_sctp::DiscardReason;
use anabranch_wire::Causes;
use anabranch_wire::chunk::{Abort, Data, Init};
use anabranch_wire::parameter::Parameters;
use anabranch_wire::serial::{Ssn, Tsn};

pub fn init(parameters: Parameters) -> Chunk {
    Chunk::Init(Init {
        initiate_tag: 0xAAAA,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(1),
        parameters,
    })
}

pub fn data(tsn: u32, user_data: &'static [u8]) -> Chunk {
    Chunk::Data(Data {
        tsn: Tsn(tsn),
        stream_id: 0,
        ssn: Ssn(0),
        ppid: 0,
        unordered: false,
        beginning: true,
        ending: true,
        immediate: false,
        user_data: Bytes::from_static(user_data),
    })
}

pub fn abort(tag_reflected: bool) -> Chunk {
    Chunk::Abort(Abort {
        tag_reflected,
        causes: Causes::empty(),
    })
}

pub fn discarded(world: &World, host: usize, reason: DiscardReason) -> u64 {
    world.endpoints[host].discards().of(reason)
}

/// World with an established association, and verification tags of packets to A and to Z.
pub fn pair() -> (
    World,
    anabranch_sctp::AssociationId,
    anabranch_sctp::AssociationId,
    u32,
    u32,
) {
    let mut world = World::new(Config::default());
    let a = world.connect();
    world.run_for(SECOND);
    let z = world.only_association(Z);
    let (to_z, to_a) = (world.tag_sent_by(A), world.tag_sent_by(Z));
    world.forget();
    (world, a, z, to_a, to_z)
}

/// Encoded chunk with padding.
pub fn encoded(chunk: &Chunk) -> Bytes {
    let mut out = BytesMut::new();
    chunk.encode(&mut out);
    out.freeze()
}
