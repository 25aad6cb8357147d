//! Packets, and the reasons for which they are dropped.

use std::net::IpAddr;

use anabranch_transport::{Ecn, Nanos};
use bytes::Bytes;

use crate::ip::{self, header_size};

/// Value of `receiver` in a packet that is not on a ground link.
pub(crate) const NO_RECEIVER: u32 = u32::MAX;

/// The interface at which a packet with this `receiver` arrives, over a link that ends at the
/// interface `end`.
#[inline]
pub(crate) fn receiving_interface(receiver: u32, end: u32) -> u32 {
    match receiver {
        NO_RECEIVER => end,
        receiver => receiver,
    }
}

/// One IP packet: the addresses of its header, and its payload as real bytes.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The IP payload: transport header and data. A packet from outside the world contains the
    /// whole datagram.
    pub bytes: Bytes,
    /// Sequence number of this packet in its world, from 0. A duplicate has the same number.
    pub id: u64,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// Index of the routing table for the destination address.
    pub(crate) target: u32,
    /// The receiving interface at the far end of a ground link, by its index in the topology;
    /// [`NO_RECEIVER`] on other links.
    pub(crate) receiver: u32,
    /// Time at which the sending agent passed the packet to the network.
    pub sent: Nanos,
    /// Time at which the first link with a transmission time began to send the packet; for a
    /// wireless link, the time at which its interface accepted the packet. [`Nanos::MAX`] before
    /// that time.
    pub departed: Nanos,
    /// Bytes that a routing protocol of the world adds to the packet's size on every following
    /// link; they have no content.
    pub added: u16,
    /// ECN field of the IP header: as set by the sender, or [`Ecn::Ce`] after a queue has marked
    /// the packet.
    pub ecn: Ecn,
    /// Whether IP may fragment the packet on a link with a smaller MTU ("don't fragment" is not
    /// set).
    pub may_fragment: bool,
    /// Size of the packet's largest fragment in bytes, including the IP header; 0 if the packet is
    /// not fragmented.
    pub(crate) fragment: u16,
    /// Size of the IP header at the beginning of `bytes`, for a packet from outside the world; 0
    /// for packets of agents.
    pub(crate) header: u16,
    /// IP protocol number.
    pub protocol: u8,
    /// Number of links that the packet may still cross.
    pub hops_left: u8,
}

impl Packet {
    /// Size on the wire in bytes: the payload, the IP header and `added`. The header of an agent's
    /// packet has 20 bytes (IPv4) or 40 (IPv6).
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

    /// Source and destination port, which are the first two 16-bit words of the payload, if the
    /// packet has ports. A fragment from outside has none, so that all fragments of a datagram are
    /// handled alike.
    #[inline]
    pub(crate) fn ports(&self) -> Option<[u8; 4]> {
        let (header, payload) = self.bytes.split_at(usize::from(self.header));
        if !header.is_empty() && !ip::has_ports(header) {
            return None;
        }
        payload.first_chunk().copied()
    }

    /// The datagram of an external packet, with `hops_left` as its time to live and with its
    /// current ECN field.
    pub(crate) fn written(&self, hops_left: u8) -> Bytes {
        ip::rewritten(&self.bytes, hops_left, self.ecn)
    }

    /// Whether a link with this MTU can carry the packet: whole, in its existing fragments, or
    /// fragmented at this link. Fragments travel together, and each link carries the headers of all
    /// fragments (RFC 791 §3.2).
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
        // The data length of every fragment except the last is a multiple of 8 bytes.
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

/// A boxed packet, so that a packet is not copied when it moves from queue to queue.
pub(crate) type Parcel = Box<Packet>;

/// Free list of the boxes of delivered and dropped packets.
#[derive(Debug, Default)]
pub(crate) struct Parcels {
    free: Vec<Parcel>,
}

impl Parcels {
    /// A box that contains `packet`, reused if possible.
    #[inline]
    pub fn wrap(&mut self, packet: Packet) -> Parcel {
        match self.free.pop() {
            Some(mut parcel) => {
                // The old `bytes` are empty because `unwrap` took them, so dropping them would be
                // wasted work.
                let Packet { bytes, .. } = std::mem::replace(&mut *parcel, packet);
                std::mem::forget(bytes);
                parcel
            }
            None => Box::new(packet),
        }
    }

    /// Takes the bytes out of `parcel`, and keeps the box for reuse. The free list is bounded by
    /// the maximum number of packets in flight.
    #[inline]
    pub fn unwrap(&mut self, mut parcel: Parcel) -> Bytes {
        let bytes = std::mem::take(&mut parcel.bytes);
        self.free.push(parcel);
        bytes
    }
}

/// The data segment that an [`Inspect`] recognised in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// Number of the flow, as assigned by the inspector.
    pub flow: u32,
    /// Number of the segment in its flow, counted from 0.
    pub number: u64,
    /// Whether the segment was seen before.
    pub retransmission: bool,
}

/// Recognises data segments in packets, for models that depend on the content, mainly losses such
/// as "the 8th data segment of this flow". The simulator is independent of transports, so its user
/// must supply an implementation.
///
/// An inspector must see every packet of one link direction exactly once and in order.
pub trait Inspect {
    /// The data segment in `packet`; `None` for acknowledgements, handshakes and packets of other
    /// flows.
    fn inspect(&mut self, packet: &Packet) -> Option<DataSegment>;
}

macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident = $name:literal),* $(,)?) => {
        /// The reason for which a packet was dropped.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum DropReason { $($(#[$doc])* $variant),* }

        impl DropReason {
            /// All reasons, in the order of their numbers.
            pub const ALL: &'static [DropReason] = &[$(DropReason::$variant),*];

            /// Name of the reason in specs, series and tables.
            pub const fn name(self) -> &'static str {
                match self { $(DropReason::$variant => $name),* }
            }

            /// The reason named `name`.
            pub fn from_name(name: &str) -> Option<DropReason> {
                Self::ALL.iter().copied().find(|reason| reason.name() == name)
            }
        }
    };
}

drop_reasons! {
    /// The queue was full and did not admit the packet.
    QueueFull = "queue-full",
    /// A loss model dropped the packet.
    Loss = "loss",
    /// The link was down, or went down while the packet was queued or in transmission.
    LinkDown = "link-down",
    /// The packet exceeds the MTU of the link.
    TooBig = "too-big",
    /// The node has no route to the destination, or is itself the destination.
    NoRoute = "no-route",
    /// The packet's hop limit was exhausted.
    HopLimit = "hop-limit",
    /// No agent at the destination has a matching binding, or the agent has not started.
    NoAgent = "no-agent",
    /// A wireless station received no response to the RTS frame, or to the packet sent without RTS,
    /// in `short_retry_limit` attempts.
    ShortRetryLimit = "short-retry-limit",
    /// A wireless station sent the packet after an RTS exchange in `long_retry_limit` attempts, and
    /// never received an acknowledgement.
    LongRetryLimit = "long-retry-limit",
    /// The queue discipline dropped the packet although the queue was not full (active queue
    /// management, RFC 7567).
    Aqm = "aqm",
}

/// Numbers of dropped packets, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts([u64; DropReason::ALL.len()]);

impl DropCounts {
    /// Counts one packet.
    #[inline]
    pub fn add(&mut self, reason: DropReason) {
        self.0[reason as usize] += 1;
    }

    /// Packets dropped for `reason`.
    pub fn count(&self, reason: DropReason) -> u64 {
        self.0[reason as usize]
    }

    /// Packets dropped for any reason.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Sum of `self` and `other`, reason by reason.
    #[must_use]
    pub fn plus(mut self, other: &DropCounts) -> DropCounts {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
        self
    }
}
