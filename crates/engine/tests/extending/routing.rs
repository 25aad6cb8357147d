//! A routing: least delay, but each hop costs as much as some time, which keeps paths off many
//! short links.

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
        /// What a hop costs.
        hop: u64 = "1 ms", TIME;
    }
    /// Routes of the least sum of propagation delays and a cost of each hop.
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
