//! Snapshot: a constellation with its stations at one time, and the shortest paths between them.

use crate::earth::{LIGHT, Place};
use crate::shells::{Position, Shells};
use crate::tree::{Edge, Graph, Tree};

/// A path between two stations.
#[derive(Clone, Debug, PartialEq)]
pub struct StationPath {
    /// One-way delay, seconds.
    pub delay: f64,
    /// Numbers of the satellites, in the order of the path.
    pub satellites: Vec<usize>,
}

/// Satellites and ground stations at one time. Each station may use any satellite in reach;
/// stations do not forward packets.
#[derive(Clone, Debug)]
pub struct Snapshot {
    shells: Shells,
    isls: Vec<[usize; 2]>,
    places: Vec<Place>,
    graph: Graph,
    tree: Tree,
    positions: Vec<Position>,
    edges: Vec<Edge>,
}

impl Snapshot {
    /// Creates a snapshot at the epoch.
    pub fn new(shells: Shells, places: Vec<Place>) -> Self {
        let satellites = shells.len();
        let mut graph = Graph::new(satellites + places.len());
        for station in 0..places.len() {
            graph.set_station((satellites + station) as u32);
        }
        let mut snapshot = Self {
            isls: shells.isls(),
            shells,
            places,
            graph,
            tree: Tree::default(),
            positions: Vec::new(),
            edges: Vec::new(),
        };
        snapshot.move_to(0.0);
        snapshot
    }

    /// Moves the snapshot to `at` seconds after the epoch.
    pub fn move_to(&mut self, at: f64) {
        self.shells.positions(at, &mut self.positions);
        self.edges.clear();
        let mut both = |one: usize, other: usize, delay: f64, ground: bool| {
            let ends = [(one, other), (other, one)];
            self.edges.extend(ends.map(|(from, to)| Edge {
                from: from as u32,
                to: to as u32,
                via: 0,
                delay,
                ground,
            }));
        };
        for &ends in &self.isls {
            if let Some(length) = self.shells.isl_length(ends, &self.positions) {
                both(ends[0], ends[1], length / LIGHT, false);
            }
        }
        let mut in_reach = Vec::new();
        for (station, &place) in (self.shells.len()..).zip(&self.places) {
            self.shells.in_reach(place, &self.positions, &mut in_reach);
            for &(satellite, distance) in &in_reach {
                both(station, satellite, distance / LIGHT, true);
            }
        }
        self.graph.set_edges(&self.edges);
    }

    /// Number of satellites that a station can reach.
    pub fn in_reach(&self, station: usize) -> usize {
        let node = (self.shells.len() + station) as u32;
        self.graph.edges_to(node).len()
    }

    /// Paths with the minimum delay from some stations to the station `to`; `None` if there is no
    /// path.
    pub fn paths(&mut self, from: &[usize], to: usize) -> Vec<Option<StationPath>> {
        let satellites = self.shells.len();
        let node = |station: usize| (satellites + station) as u32;
        // The tree is reset, because the node order of another destination's tree would not save
        // time.
        self.tree = Tree::default();
        self.tree
            .find(&self.graph, node(to), |edge| edge.delay, |_| true);
        let path = |&from: &usize| {
            let delay = self.tree.cost(node(from))?;
            let nodes = self.tree.path(node(from))?;
            let inner = nodes.get(1..nodes.len() - 1).unwrap_or_default();
            Some(StationPath {
                delay,
                satellites: inner.iter().map(|node| *node as usize).collect(),
            })
        };
        from.iter().map(path).collect()
    }
}
