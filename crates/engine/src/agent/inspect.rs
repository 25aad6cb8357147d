//! Packet inspection for the simulator: finds the flow and the data segment of a packet.

use anabranch_sim::{DataSegment, Inspect, Packet};

/// Content of a packet, as its transport reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketContent {
    /// No user data.
    NoData,
    /// No user data; the packet announces the initial sequence number.
    Begins(u32),
    /// User data; the first byte or chunk has this sequence number.
    Data(u32),
    /// User data without a sequence number.
    Datagram,
}

impl PacketContent {
    /// Whether the packet carries user data.
    pub fn is_data(self) -> bool {
        matches!(self, PacketContent::Data(_) | PacketContent::Datagram)
    }
}

/// Reads the content of a packet from its bytes after the IP header.
pub type PacketReader = Box<dyn Fn(&[u8]) -> PacketContent>;

/// A member of a flow whose data segments are recognised.
pub struct Watched {
    /// IP protocol number.
    pub protocol: u8,
    /// Ports of the source and of the sink; data is sent from the first to the second.
    pub ports: [u16; 2],
    /// Difference between the sequence numbers of two consecutive full segments.
    pub step: u32,
    /// Number of the flow in the simulator, as reported in data segments.
    pub flow: u32,
    /// Reads the content of the member's packets.
    pub read: PacketReader,
}

/// Recognises the data segments of flows by their ports and sequence numbers.
pub struct Inspector {
    watched: Vec<(Watched, Option<Progress>)>,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Sequence number of the first data segment.
    first: u32,
    /// Highest segment number so far plus one.
    next: u64,
}

impl Inspector {
    /// Creates an inspector for the given flows.
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
