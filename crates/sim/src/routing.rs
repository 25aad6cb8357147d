//! Kinds of routing for networks with moving nodes.

use anabranch_orbit::{Edge, Graph, Tree};
use anabranch_settings::{KindEntry, Registry, kind};

/// All kinds of routing over moving nodes.
pub const KINDS: &[&KindEntry<Box<dyn RoutingKind>>] = &[&MIN_DELAY, &FEWEST_LINKS];

/// The registry of [`KINDS`], to which a program may add its own kinds.
pub fn kinds() -> Registry<Box<dyn RoutingKind>> {
    Registry::new(KINDS)
}

/// Computes routes over moving nodes. A world calls it in each interval, for each destination of
/// packets. The result must depend on the arguments only, because threads that share a world
/// compute routes for one another.
pub trait RoutingKind {
    /// Computes the routes of all nodes of `graph` to `destination`. An edge into the destination
    /// is used only if `arrives` returns true for it, because the interfaces of a node are separate
    /// paths.
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    );
}

impl std::fmt::Debug for dyn RoutingKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RoutingKind")
    }
}

kind! {
    /// Routing by the minimum sum of propagation delays.
    pub(crate) struct LeastDelay {}
    /// Routes with the smallest sum of propagation delays.
    static MIN_DELAY: KindEntry<Box<dyn RoutingKind>> = "least-delay", |routing: LeastDelay, ()| Ok(Box::new(routing));
}

impl RoutingKind for LeastDelay {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        tree.find(graph, destination, |edge| edge.delay, arrives);
    }
}

kind! {
    /// Routing over the fewest links.
    struct FewestLinks {}
    /// Routes over the fewest links; of several such routes, the one with the smallest sum of
    /// propagation delays.
    static FEWEST_LINKS: KindEntry<Box<dyn RoutingKind>> = "fewest-links", |routing: FewestLinks, ()| Ok(Box::new(routing));
}

impl RoutingKind for FewestLinks {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        // A delay adds less than one link, because the sum of delays of a path is far below 1000
        // seconds.
        tree.find(graph, destination, |edge| 1.0 + edge.delay / 1e3, arrives);
    }
}
