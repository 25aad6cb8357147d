//! Reads packets for the simulator: which data segment of which flow is this.

use anabranch_sim::{DataSegment, Inspect, Packet};
use anabranch_wire::chunk::Chunk;
use anabranch_wire::packet::{Checksum, Packet as SctpPacket};

/// IP protocol numbers.
const TCP: u8 = 6;
const SCTP: u8 = 132;

/// A flow's member to recognise: its data travels from the first port to the second.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// 6 or 132.
    pub protocol: u8,
    /// The source's port and the sink's.
    pub ports: [u16; 2],
    /// TCP: payload of a full segment.
    pub segment: u32,
    /// Number of the flow in the simulator's words.
    pub flow: u32,
}

/// Recognises the segments of watched flows by their ports and sequence numbers.
#[derive(Debug)]
pub struct Inspector {
    watched: Vec<(Watched, Option<Progress>)>,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Sequence number of the first data.
    first: u32,
    /// One more than the highest segment seen.
    next: u64,
}

impl Inspector {
    /// An inspector of these flows.
    pub fn new(watched: impl IntoIterator<Item = Watched>) -> Self {
        Self {
            watched: watched.into_iter().map(|watched| (watched, None)).collect(),
        }
    }
}

impl Inspect for Inspector {
    fn inspect(&mut self, packet: &Packet) -> Option<DataSegment> {
        let &[a, b, c, d] = packet.bytes.first_chunk::<4>()?;
        let ports = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
        let (watched, progress) = self
            .watched
            .iter_mut()
            .find(|(w, _)| w.protocol == packet.protocol && w.ports == ports)?;
        let number = match packet.protocol {
            TCP => tcp_number(packet, watched.segment, progress)?,
            SCTP => sctp_number(packet, progress)?,
            _ => return None,
        };
        let progress = progress.as_mut()?;
        let retransmission = number < progress.next;
        progress.next = progress.next.max(number + 1);
        Some(DataSegment {
            flow: watched.flow,
            number,
            retransmission,
        })
    }
}

/// The number of a TCP segment with data; a SYN tells where data begin.
fn tcp_number(packet: &Packet, segment: u32, progress: &mut Option<Progress>) -> Option<u64> {
    let header = packet.bytes.first_chunk::<20>()?;
    let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
    let data = packet
        .bytes
        .len()
        .checked_sub(usize::from(header[12] >> 4) * 4)?;
    let syn = header[13] & 0x02 != 0;
    if syn {
        *progress = Some(Progress {
            first: sequence.wrapping_add(1),
            next: 0,
        });
        return None;
    }
    if data == 0 {
        return None;
    }
    let progress = progress.get_or_insert(Progress {
        first: sequence,
        next: 0,
    });
    Some(u64::from(
        sequence.wrapping_sub(progress.first) / segment.max(1),
    ))
}

/// The number of the first DATA chunk; an INIT tells where data begin.
fn sctp_number(packet: &Packet, progress: &mut Option<Progress>) -> Option<u64> {
    let parsed = SctpPacket::parse(&packet.bytes, Checksum::Ignore).ok()?;
    for chunk in parsed.chunks() {
        match Chunk::decode(chunk.ok()?).ok()? {
            Chunk::Init(init) => {
                *progress = Some(Progress {
                    first: init.initial_tsn.0,
                    next: 0,
                });
                return None;
            }
            Chunk::Data(data) => {
                let progress = progress.get_or_insert(Progress {
                    first: data.tsn.0,
                    next: 0,
                });
                return Some(u64::from(data.tsn.0.wrapping_sub(progress.first)));
            }
            _ => {}
        }
    }
    None
}
