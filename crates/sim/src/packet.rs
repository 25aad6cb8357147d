//! What travels on a link, and why it may end there.

use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos};
use bytes::Bytes;

use crate::ip::{self, header_size};

/// A packet that is on no ground link.
pub(crate) const NO_RECEIVER: u32 = u32::MAX;

/// One IP packet: the addresses of its header, and its payload as real bytes.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The IP payload: transport header and data. Of a packet from outside the world, the whole datagram.
    pub bytes: Bytes,
    /// Number of this packet in its world, counted from 0 in the order of sending. A duplicate keeps its number.
    pub id: u64,
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The table of routes to the interface that has the destination address.
    pub(crate) target: u32,
    /// The interface that receives it at the far end of a ground link, by its index in the topology; [`NO_RECEIVER`] on other links.
    pub(crate) receiver: u32,
    /// When its sender handed it to the network.
    pub sent: Nanos,
    /// When the first link that takes its time over it began to send it; a wireless one, when its interface took it. Before
    /// that [`Nanos::MAX`].
    pub departed: Nanos,
    /// Bytes that a routing protocol of the world put on it, and that count on every link from there on; there is nothing
    /// in them.
    pub added: u16,
    /// ECN field of its IP header: what its sender set, or [`Ecn::Ce`] once a queue has marked it.
    pub ecn: Ecn,
    /// IP may fragment it, where a link carries less ("don't fragment" is not set).
    pub may_fragment: bool,
    /// Size of the largest fragment it travels in, with the IP header; 0 while it is whole.
    pub(crate) fragment: u16,
    /// Bytes of the IP header that `bytes` begins with, in a packet from outside the world; 0 in those of agents.
    pub(crate) header: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Links it may still cross.
    pub hops_left: u8,
}

impl Packet {
    /// Bytes on the wire: payload and IP header (20 bytes for IPv4, 40 for IPv6; of a packet from outside, its own), and what was added.
    #[inline]
    pub fn wire_size(&self) -> usize {
        let header = match self.header {
            0 => header_size(self.destination),
            _ => 0,
        };
        self.bytes.len() + header + usize::from(self.added)
    }

    /// The IP payload.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[usize::from(self.header)..]
    }

    /// Source and destination port, as far as there are any: the first two words of the payload. Fragments from outside have none,
    /// so that all of a datagram are alike.
    #[inline]
    pub(crate) fn ports(&self) -> Option<[u8; 4]> {
        let (header, payload) = self.bytes.split_at(usize::from(self.header));
        if !header.is_empty() && !ip::has_ports(header) {
            return None;
        }
        payload.first_chunk().copied()
    }

    /// The datagram of a packet from outside, as it stands now: with `hops_left` as its time to live, and its ECN field.
    pub(crate) fn written(&self, hops_left: u8) -> Bytes {
        ip::rewritten(&self.bytes, hops_left, self.ecn)
    }

    /// Whether a link that carries `mtu` bytes takes it: whole, in the fragments that it came in, or in fragments from here
    /// on. Fragments travel together, and cost their headers on every link (RFC 791 §3.2).
    pub(crate) fn fits(&mut self, mtu: usize) -> bool {
        let largest = match self.fragment {
            0 => self.wire_size(),
            fragment => usize::from(fragment),
        };
        if largest <= mtu {
            return true;
        }
        let header = match self.header {
            0 => header_size(self.destination),
            header => usize::from(header),
        };
        // All fragments but the last have a multiple of 8 bytes.
        let data = mtu.saturating_sub(header) & !7;
        if !self.may_fragment || data == 0 {
            return false;
        }
        let fragments = self.payload().len().div_ceil(data);
        self.fragment = (header + data) as u16;
        self.added = ((fragments - 1) * header).min(usize::from(u16::MAX)) as u16;
        true
    }
}

/// A packet on its way. It stays where it is while its handle moves from queue to queue.
pub(crate) type Parcel = Box<Packet>;

/// Parcels that were delivered and can be used for other packets.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    free: Vec<Parcel>,
}

impl Parcels {
    /// A parcel that holds `packet`.
    #[inline]
    pub fn wrap(&mut self, packet: Packet) -> Parcel {
        match self.free.pop() {
            Some(mut parcel) => {
                // There are no bytes in it: `unwrap` took them, and nothing has to be given back.
                let Packet { bytes, .. } = std::mem::replace(&mut *parcel, packet);
                std::mem::forget(bytes);
                parcel
            }
            None => Box::new(packet),
        }
    }

    /// Takes the bytes out of `parcel` and keeps it. There are never more than were once in flight together.
    #[inline]
    pub fn unwrap(&mut self, mut parcel: Parcel) -> Bytes {
        let bytes = std::mem::take(&mut parcel.bytes);
        self.free.push(parcel);
        bytes
    }
}

/// What an [`Inspect`] recognised in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// Number of the flow, as the inspector counts flows.
    pub flow: u32,
    /// Number of the segment in its flow, counted from 0.
    pub number: u64,
    /// Whether the segment was seen before.
    pub retransmission: bool,
}

/// Reads a packet's bytes for those parts of the world that must know what they carry, above all for losses such as
/// "the 8th data segment of this flow". The simulator knows no transport; whoever knows one supplies this.
///
/// One inspector is shown every packet of one link direction, in order, once.
pub trait Inspect {
    /// The data segment in `packet`; `None` for acknowledgements, handshakes and strangers.
    fn inspect(&mut self, packet: &Packet) -> Option<DataSegment>;
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// Why a packet ended before its destination.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum DropReason { $($(#[$doc])* $variant),* }

        impl DropReason {
            /// Every reason, in the order of their numbers.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant),*];

            /// The name used in specs, series and tables.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name),* }
            }

            /// The reason of that name.
            pub fn from_name(name: &str) -> Option<DropReason> {
                Self::ALL.iter().copied().find(|reason| reason.name() == name)
            }
        }
    };
}

drop_reasons! {
    /// The queue did not admit it.
    QueueFull = "queue-full",
    /// A loss model took it.
    Loss = "loss",
    /// The link was down, or went down while the packet waited or was being sent.
    LinkDown = "link-down",
    /// It is larger than the link carries.
    TooBig = "too-big",
    /// No route leads to the destination, or the sender is the destination.
    NoRoute = "no-route",
    /// It crossed too many links.
    HopLimit = "hop-limit",
    /// No agent at the destination wants it, or the one that does has not started.
    NoAgent = "no-agent",
    /// A wireless station announced it, or sent it unannounced, and nobody answered, `short_retry_limit` times.
    ShortRetryLimit = "short-retry-limit",
    /// A wireless station sent it `long_retry_limit` times after an announcement, and it was never acknowledged.
    LongRetryLimit = "long-retry-limit",
    /// The queue discipline dropped it although there was room (active queue management, RFC 7567).
    Aqm = "aqm",
}

/// How many packets ended for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Packets that ended for `reason`.
    pub fn count(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets that ended for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The counts of both.
    #[must_use]
    pub fn plus(mut self, other: &DropCounts) -> DropCounts {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
        self
    }
}
