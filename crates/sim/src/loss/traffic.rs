//! Information about the traffic of a world that loss models may use.

use std::fmt;
use std::rc::Rc;

use crate::packet::{DataSegment, Inspect, Packet};

/// The flows of a world, for loss models that distinguish them.
pub trait Flows {
    /// The numbers of the flows with this name, as numbered by the inspector.
    fn numbers(&self, name: &str) -> Vec<u32>;

    /// A new inspector, which has seen no packet.
    fn inspector(&self) -> Box<dyn Inspect>;
}

/// The flows of a world, if it has any; none by default.
#[derive(Clone, Default)]
pub struct Traffic(Option<Rc<dyn Flows>>);

impl Traffic {
    /// Wraps `flows`.
    pub fn new(flows: impl Flows + 'static) -> Self {
        Self(Some(Rc::new(flows)))
    }

    /// The numbers of the flows with this name.
    pub fn numbers(&self, name: &str) -> Vec<u32> {
        self.0
            .as_ref()
            .map_or_else(Vec::new, |flows| flows.numbers(name))
    }

    /// A new inspector, which has seen no packet.
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

/// Inspector of a world without flows: recognises no data segment.
struct Blind;

impl Inspect for Blind {
    fn inspect(&mut self, _: &Packet) -> Option<DataSegment> {
        None
    }
}
