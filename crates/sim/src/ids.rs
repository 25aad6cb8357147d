//! Identifiers of the nodes, links and media of a topology, and the two directions of a link.

/// A node of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// A link of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// A wireless medium of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MediumId(pub(crate) u32);

/// The interface at the other end of a link. The two interfaces of a link have consecutive numbers.
pub(crate) fn opposite(interface: u32) -> u32 {
    interface ^ 1
}

impl NodeId {
    /// Index in the order in which nodes were added, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Index in the order in which links were added, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl MediumId {
    /// Index in the order in which media were added, from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkDirection {
    /// From the first of the link's nodes to the second.
    Forward,
    /// From the second of the link's nodes to the first.
    Backward,
}

impl LinkDirection {
    /// Both directions.
    pub const BOTH: [LinkDirection; 2] = [LinkDirection::Forward, LinkDirection::Backward];

    /// `forward` or `backward`, as in specs and in the names of random streams.
    pub const fn name(self) -> &'static str {
        match self {
            LinkDirection::Forward => "forward",
            LinkDirection::Backward => "backward",
        }
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// IPv4: a header of 20 bytes.
    #[default]
    V4,
    /// IPv6: a header of 40 bytes.
    V6,
}
