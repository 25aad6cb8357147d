//! A routing by least delay with an additional cost for each hop, so that paths with many short
//! links are avoided.

use anabranch_orbit::{Edge, Graph, Tree};
use anabranch_settings::{Kind, KindEntry, kind};
use anabranch_sim::routing::RoutingKind;

/// A time of up to a second.
const TIME: Kind = Kind::Duration {
    least: 0,
    most: 1_000_000_000,
};

kind! {
    /// The parameters of the routing.
    pub struct Weighed {
        /// Cost of a hop.
        hop: u64 = "1 ms", TIME;
    }
    /// Routes with the smallest sum of propagation delays and hop costs.
    pub static WEIGHED: KindEntry<Box<dyn RoutingKind>> = "weighed", |routing: Weighed, ()| Ok(Box::new(routing));
}

impl RoutingKind for Weighed {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        let hop = self.hop as f64 / 1e9;
        tree.find(graph, destination, |edge| edge.delay + hop, arrives);
    }
}
