//! Packets that cross from one part of a divided world to another.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_transport::Nanos;

use crate::ids::opposite;
use crate::packet::{Packet, receiving_interface};
use crate::scheduler::EventKey;

/// A packet that reaches a node of another part.
#[derive(Debug)]
pub struct Crossing {
    pub(crate) arrival: EventKey,
    /// The direction that it crosses, and the interface at which it arrives.
    pub(crate) lane: u32,
    pub(crate) to: u32,
    part: u32,
    pub(crate) packet: Packet,
}

impl Crossing {
    /// The part at which it arrives.
    pub fn part(&self) -> usize {
        self.part as usize
    }

    /// The time of its arrival.
    pub fn at(&self) -> Nanos {
        self.arrival.at()
    }
}

/// The owners of nodes and interfaces, and the packets that have left the part.
#[derive(Debug)]
pub(crate) struct Border {
    pub part: u32,
    /// The part of each interface's node.
    pub owners: Vec<u32>,
    pub leaving: RefCell<Vec<Crossing>>,
}

/// A direction that ends, or may end, in another part.
#[derive(Debug)]
pub(crate) struct CrossingLane {
    pub lane: u32,
    pub border: Rc<Border>,
}

impl CrossingLane {
    /// Copies a packet that arrives in another part.
    #[inline(never)]
    pub fn copy(&self, arrival: EventKey, packet: &Packet) {
        let to = receiving_interface(packet.receiver, opposite(self.lane));
        let part = self.border.owners[to as usize];
        if part != self.border.part {
            self.border.leaving.borrow_mut().push(Crossing {
                arrival,
                lane: self.lane,
                to,
                part,
                packet: packet.clone(),
            });
        }
    }
}
