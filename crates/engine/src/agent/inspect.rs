//! Packet inspection for the simulator: maps a packet to a flow and a data segment.

use anabranch_sim::{DataSegment, Inspect, Packet};

/// A transport's interpretation of one of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketContent {
    /// No user data.
    NoData,
    /// No data; the packet announces the first sequence number.
    Begins(u32),
    /// Data; the first byte or chunk has this sequence number.
    Data(u32),
    /// Data without a sequence number.
    Datagram,
}

impl PacketContent {
    /// Whether the packet carries user data.
    pub fn is_data(self) -> bool {
        matches!(self, PacketContent::Data(_) | PacketContent::Datagram)
    }
}

/// Reads the bytes of a packet after its IP header.
pub type Reader = Box<dyn Fn(&[u8]) -> PacketContent>;

/// A member of a flow to recognise; its data travels from the first port to the second.
pub struct Watched {
    /// IP protocol number.
    pub protocol: u8,
    /// Source port and sink port.
    pub ports: [u16; 2],
    /// Difference between the sequence numbers of two consecutive full segments.
    pub step: u32,
    /// Number of the flow in the simulator.
    pub flow: u32,
    /// Reads its packets.
    pub read: Reader,
}

/// Recognises the segments of watched flows by their ports and sequence numbers.
pub struct Inspector {
    watched: Vec<(Watched, Option<Progress>)>,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Sequence number of the first data.
    first: u32,
    /// Number of the highest segment so far plus one.
    next: u64,
}

impl Inspector {
    /// An inspector for the given flows.
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
        let sequence = match (watched.read)(&packet.bytes) {
            PacketContent::Data(sequence) => sequence,
            PacketContent::Begins(first) => {
                *progress = Some(Progress { first, next: 0 });
                return None;
            }
            PacketContent::NoData | PacketContent::Datagram => return None,
        };
        let progress = progress.get_or_insert(Progress {
            first: sequence,
            next: 0,
        });
        let number = u64::from(sequence.wrapping_sub(progress.first) / watched.step.max(1));
        let retransmission = number < progress.next;
        progress.next = progress.next.max(number + 1);
        Some(DataSegment {
            flow: watched.flow,
            number,
            retransmission,
        })
    }
}
