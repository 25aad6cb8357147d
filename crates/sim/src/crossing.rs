//! Packets that cross from one part of a divided world to another.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_transport::Nanos;

use crate::ids::opposite;
use crate::packet::{Packet, receiving_interface};
use crate::scheduler::EventKey;

/// A packet that arrives at a node of another part than the sender's.
#[derive(Debug)]
pub struct Crossing {
    pub(crate) arrival: EventKey,
    /// Indices of the link direction that the packet crosses, and of the receiving interface.
    pub(crate) simplex_link: u32,
    pub(crate) to: u32,
    part: u32,
    pub(crate) packet: Packet,
}

impl Crossing {
    /// Part to which the receiving node belongs.
    pub fn part(&self) -> usize {
        self.part as usize
    }

    /// Arrival time of the packet, nanoseconds.
    pub fn at(&self) -> Nanos {
        self.arrival.at()
    }
}

/// Border of one part of a divided world: the part to which each interface belongs, and the packets
/// that have left this part.
#[derive(Debug)]
pub(crate) struct Border {
    pub part: u32,
    /// Part to which the node of each interface belongs.
    pub owners: Vec<u32>,
    pub leaving: RefCell<Vec<Crossing>>,
}

/// A link direction whose packets arrive, or may arrive, at nodes of another part.
#[derive(Debug)]
pub(crate) struct CrossingLink {
    pub simplex_link: u32,
    pub border: Rc<Border>,
}

impl CrossingLink {
    /// Copies a packet for the part of its receiver, if the receiver and the sender belong to
    /// different parts.
    #[inline(never)]
    pub fn copy(&self, arrival: EventKey, packet: &Packet) {
        let to = receiving_interface(packet.receiver, opposite(self.simplex_link));
        let part = self.border.owners[to as usize];
        if part != self.border.part {
            self.border.leaving.borrow_mut().push(Crossing {
                arrival,
                simplex_link: self.simplex_link,
                to,
                part,
                packet: packet.clone(),
            });
        }
    }
}
