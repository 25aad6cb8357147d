//! What routes are the best ones where nodes move.

use anabranch_orbit::{Edge, Graph, Tree};
use anabranch_settings::{Entry, Registry, kind};

/// Every kind of routing over moving nodes: one line for each.
pub const KINDS: &[&Entry<Box<dyn RoutingKind>>] = &[&LEAST_DELAY, &FEWEST_LINKS];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<Box<dyn RoutingKind>> {
    Registry::new(KINDS)
}

/// How routes over moving nodes are found. A world asks it in each interval, for each destination
/// that packets are sent to.
pub trait RoutingKind {
    /// Finds the routes of all nodes of `graph` towards `destination`. An edge to the destination
    /// counts only where `arrives` says so: several interfaces of a node are several paths.
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
    /// The least sum of propagation delays.
    pub(crate) struct LeastDelay {}
    /// Routes of the least sum of propagation delays.
    static LEAST_DELAY: Entry<Box<dyn RoutingKind>> = "least-delay", |routing: LeastDelay, ()| Ok(Box::new(routing));
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
    /// The fewest links.
    struct FewestLinks {}
    /// Routes over the fewest links; among those, of the least sum of propagation delays.
    static FEWEST_LINKS: Entry<Box<dyn RoutingKind>> = "fewest-links", |routing: FewestLinks, ()| Ok(Box::new(routing));
}

impl RoutingKind for FewestLinks {
    fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        arrives: &dyn Fn(&Edge) -> bool,
        tree: &mut Tree,
    ) {
        // No sum of delays of a path comes near to 1000 seconds.
        tree.find(graph, destination, |edge| 1.0 + edge.delay / 1e3, arrives);
    }
}
