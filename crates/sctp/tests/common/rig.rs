//! Endpoint Z with a hand-made peer: the test writes all packets to Z, and only records the packets
//! of Z.

use anabranch_sctp::DiscardReason;
use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{FragmentPosition, IData, IForwardTsn, SkippedMessage};
use anabranch_wire::serial::{Fsn, Mid};
use anabranch_wire::{Ssn, Tsn};

use super::*;

pub struct Rig {
    pub world: World,
    pub z: AssociationId,
    /// Verification tag of packets to Z.
    pub tag: u32,
    /// First TSN of the peer, to which offsets are relative.
    pub first: Tsn,
    /// Number of packets of Z that were already examined.
    pub looked_at: usize,
}

impl Rig {
    /// Rig with an established association.
    pub fn of(config: Config) -> Self {
        let mut world = World::new(config);
        world.connect();
        world.run_for(SECOND);
        let first = match chunks_of(&world.shot(A, "INIT")).remove(0) {
            Chunk::Init(init) => init.initial_tsn,
            other => panic!("{other:?}"),
        };
        let z = world.only_association(Z);
        let tag = world.tag_sent_by(A);
        world.forget();
        world.fate = Box::new(|_| Fate::Drop);
        Self {
            world,
            z,
            tag,
            first,
            looked_at: 0,
        }
    }

    pub fn raw(&mut self, chunks: &[u8]) {
        let packet = raw_packet(A, self.tag, chunks);
        self.world.inject(Z, packet);
    }

    pub fn chunk(&mut self, chunk: &impl Encode) {
        let mut bytes = BytesMut::new();
        chunk.encode(&mut bytes);
        self.raw(&bytes);
    }

    /// I-DATA fragment with stream, message number and fragment number; fragment number 0 is the
    /// first fragment. Flags: `U`nordered, `E`nding.
    pub fn i_data(
        &self,
        offset: u32,
        (stream_id, mid, fsn): (u16, u32, u32),
        flags: &str,
        user_data: impl Into<Bytes>,
    ) -> IData {
        IData {
            tsn: self.first.add(offset),
            stream_id,
            mid: Mid(mid),
            position: match fsn {
                0 => FragmentPosition::First { ppid: 1 },
                fsn => FragmentPosition::Later { fsn: Fsn(fsn) },
            },
            unordered: flags.contains('U'),
            ending: flags.contains('E'),
            immediate: false,
            user_data: user_data.into(),
        }
    }

    /// I-FORWARD-TSN that abandons messages, by stream, unordered flag and message identifier.
    pub fn giving_up(&self, to: u32, skipped: &[(u16, bool, u32)]) -> IForwardTsn {
        let skipped = skipped
            .iter()
            .map(|&(stream_id, unordered, mid)| SkippedMessage {
                stream_id,
                unordered,
                mid: Mid(mid),
            });
        IForwardTsn::new(self.first.add(to), skipped)
    }

    /// Sends DATA whose text is its TSN offset. Flags: `U`nordered, `B`eginning, `E`nding.
    pub fn data(&mut self, offset: u32, stream: u16, ssn: u16, flags: &str) {
        self.chunk(&Data {
            tsn: self.first.add(offset),
            stream_id: stream,
            ssn: Ssn(ssn),
            ppid: 0,
            unordered: flags.contains('U'),
            beginning: flags.contains('B'),
            ending: flags.contains('E'),
            immediate: false,
            user_data: Bytes::from(format!("{offset};")),
        });
    }

    pub fn read(&mut self) -> Vec<String> {
        let messages = self.world.receive_all(Z, self.z).into_iter();
        let text = |payload: Bytes| String::from_utf8_lossy(&payload).into_owned();
        messages.map(|it| text(it.payload.into_bytes())).collect()
    }

    /// Number of FORWARD TSNs or entries that Z has refused.
    pub fn refused(&self) -> u64 {
        let discards = self.world.endpoints[Z].discards();
        discards.of(DiscardReason::BadForwardTsn)
    }

    pub fn is_up(&self) -> bool {
        self.world.state(Z, self.z) == AssociationState::Established
    }
}
