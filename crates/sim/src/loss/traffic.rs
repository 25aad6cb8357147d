//! What a loss model may know of the traffic of its world.

use std::fmt;
use std::rc::Rc;

use crate::packet::{DataSegment, Inspect, Packet};

/// The flows of a world, to a loss model that tells them apart.
pub trait Flows {
    /// The numbers of the flows that have this name, as the inspector numbers flows.
    fn numbers(&self, name: &str) -> Vec<u32>;

    /// An inspector that has seen no packet yet.
    fn inspector(&self) -> Box<dyn Inspect>;
}

/// The flows of a world, or none. By default there are none.
#[derive(Clone, Default)]
pub struct Traffic(Option<Rc<dyn Flows>>);

impl Traffic {
    /// These flows.
    pub fn new(flows: impl Flows + 'static) -> Self {
        Self(Some(Rc::new(flows)))
    }

    /// The numbers of the flows that have this name.
    pub fn numbers(&self, name: &str) -> Vec<u32> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |flows| flows.numbers(name))
    }

    /// An inspector that has seen no packet yet.
    pub fn inspector(&self) -> Box<dyn Inspect> {
        match &self.0 {
            Some(flows) => flows.inspector(),
            None => Box::new(Blind),
        }
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Traffic").field(&self.0.is_some()).finish()
    }
}

/// Where there are no flows, no packet is one of theirs.
struct Blind;

impl Inspect for Blind {
    fn inspect(&mut self, _: &Packet) -> Option<DataSegment> {
        None
    }
}
