//! Names by number: what a topology hands out for its nodes, links and media, and the two directions of a link.

/// A node of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// A link of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// A wireless medium of a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MediumId(pub(crate) u32);

/// The interface at the other end of a link, by the numbers of interfaces: a link's two stand side by side.
pub(crate) fn opposite(interface: u32) -> u32 {
    interface ^ 1
}

impl NodeId {
    /// Its place in the order of adding, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// Its place in the order of adding, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl MediumId {
    /// Its place in the order of adding, counted from 0.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the first of the link's nodes to the second.
    Forward,
    /// From the second to the first.
    Backward,
}

impl Direction {
    /// Both.
    pub const BOTH: [Direction; 2] = [Direction::Forward, Direction::Backward];

    /// `forward` or `backward`, as in specs and in the names of random streams.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Forward => "forward",
            Direction::Backward => "backward",
        }
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// IPv4: 20 bytes of header.
    #[default]
    V4,
    /// IPv6: 40 bytes of header.
    V6,
}
