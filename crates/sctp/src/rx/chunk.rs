//! Common representation of DATA and I-DATA in the receiver.

use anabranch_wire::chunk::Data;
use anabranch_wire::extension::{FragmentPosition, IData};
use anabranch_wire::serial::Mid;
use anabranch_wire::{Ssn, Tsn};

use super::sort_keys::Place;

/// Chunk of user data: DATA or I-DATA.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkView<'a> {
    pub tsn: Tsn,
    pub stream: u16,
    pub unordered: bool,
    pub beginning: bool,
    pub ending: bool,
    pub immediate: bool,
    pub is_interleaved: bool,
    /// Stream sequence number, or the lower 16 bits of the message identifier, as reported to the
    /// user.
    pub ssn: Ssn,
    /// Number of the message in its stream, as [`Order`](super::ordering::Order) counts messages.
    pub number: Mid,
    /// Position among the fragments.
    pub place: Place,
    /// Payload Protocol Identifier; 0 if the chunk does not contain one.
    pub ppid: u32,
    pub user_data: &'a [u8],
}

impl<'a> ChunkView<'a> {
    #[inline(always)]
    pub fn of_data(data: &Data<&'a [u8]>) -> Self {
        Self {
            tsn: data.tsn,
            stream: data.stream_id,
            unordered: data.unordered,
            beginning: data.beginning,
            ending: data.ending,
            immediate: data.immediate,
            is_interleaved: false,
            ssn: data.ssn,
            number: number_of(data.ssn),
            place: Place {
                message: (0, false, 0),
                at: data.tsn,
            },
            ppid: data.ppid,
            user_data: data.user_data,
        }
    }

    pub fn of_i_data(data: &'a IData) -> Self {
        let (beginning, fsn, ppid) = match data.position {
            FragmentPosition::First { ppid } => (true, 0, ppid),
            FragmentPosition::Later { fsn } => (false, fsn.0, 0),
        };
        Self {
            tsn: data.tsn,
            stream: data.stream_id,
            unordered: data.unordered,
            beginning,
            ending: data.ending,
            immediate: data.immediate,
            is_interleaved: true,
            ssn: Ssn(data.mid.0 as u16),
            number: data.mid,
            place: Place {
                message: (data.stream_id, data.unordered, data.mid.0),
                at: Tsn(fsn),
            },
            ppid,
            user_data: &data.user_data,
        }
    }
}

/// Number of the message with this stream sequence number.
#[inline(always)]
pub(super) fn number_of(ssn: Ssn) -> Mid {
    Mid(u32::from(ssn.0) << 16)
}
