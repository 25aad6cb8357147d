//! Shortest paths from all nodes of a network to one node.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A directed edge from a node to a neighbour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// Sending node.
    pub from: u32,
    /// Receiving node.
    pub to: u32,
    /// Identifier of the edge at `from`, which the network defines.
    pub via: u32,
    /// Delay of a packet on the edge, seconds.
    pub delay: f64,
    /// Whether the edge is a ground link. A station does not forward packets from one ground link
    /// to another, unless stations relay.
    pub ground: bool,
}

/// Graph of a network at one time.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Edges, grouped by receiving node.
    edges: Vec<Edge>,
    /// Index of the first edge of each receiving node, followed by the total.
    first: Vec<u32>,
    /// Whether each node is a station.
    stations: Vec<bool>,
    /// Whether each node is a station that can also receive over an edge that is no ground link.
    ways_behind: Vec<bool>,
    /// Whether stations forward packets from one ground link to another.
    pub relays: bool,
}

impl Graph {
    /// Creates a graph with `nodes` nodes and no edges.
    pub fn new(nodes: usize) -> Self {
        Self {
            edges: Vec::new(),
            first: vec![0; nodes + 1],
            stations: vec![false; nodes],
            ways_behind: vec![false; nodes],
            relays: false,
        }
    }

    /// Marks a node as a station.
    pub fn set_station(&mut self, node: u32) {
        self.stations[node as usize] = true;
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.stations.len()
    }

    /// Replaces all edges. Edges with the same receiving node keep their order.
    pub fn set_edges(&mut self, edges: &[Edge]) {
        // Counting sort by receiving node.
        self.first.fill(0);
        for edge in edges {
            self.first[edge.to as usize + 1] += 1;
        }
        for node in 1..self.first.len() {
            self.first[node] += self.first[node - 1];
        }
        let mut next = self.first.clone();
        if let Some(&any) = edges.first() {
            self.edges.clear();
            self.edges.resize(edges.len(), any);
        } else {
            self.edges.clear();
        }
        for &edge in edges {
            let place = &mut next[edge.to as usize];
            self.edges[*place as usize] = edge;
            *place += 1;
        }
        self.ways_behind.fill(false);
        for edge in edges.iter().filter(|edge| !edge.ground) {
            self.ways_behind[edge.to as usize] |= self.stations[edge.to as usize];
        }
    }

    /// Whether any station has neighbours other than satellites.
    fn has_ways_behind_stations(&self) -> bool {
        self.ways_behind.contains(&true)
    }

    /// Edges to a node.
    pub fn edges_to(&self, node: u32) -> &[Edge] {
        let node = node as usize;
        &self.edges[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// Tree of the shortest paths to one destination.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Cost of the path from each node to the destination; infinite if there is no path.
    cost: Vec<f64>,
    /// Number of edges on the path from each node.
    edges: Vec<u32>,
    /// Next node, `via`, and ground flag of the edge that each node uses.
    next: Vec<Option<(u32, u32, bool)>>,
    /// Nodes in ascending order of cost; only those that the last computation processed.
    order: Vec<u32>,
}

impl Tree {
    /// Finds the paths to `destination` with the minimum sum of `cost`, which must not be negative.
    /// An edge into the destination is used only if `arrives` accepts it. Of several paths with the
    /// same sum, the one with the fewest edges is chosen, and then the one with the lowest number
    /// of the next node. A tree that an earlier call computed for the same destination saves time,
    /// if the network has changed little.
    pub fn find(
        &mut self,
        graph: &Graph,
        destination: u32,
        cost: impl Fn(&Edge) -> f64,
        arrives: impl Fn(&Edge) -> bool,
    ) {
        let nodes = graph.nodes();
        self.cost.clear();
        self.cost.resize(nodes, f64::INFINITY);
        self.edges.clear();
        self.edges.resize(nodes, 0);
        self.next.clear();
        self.next.resize(nodes, None);
        self.cost[destination as usize] = 0.0;
        for edge in graph.edges_to(destination) {
            if arrives(edge) {
                self.reach(edge, cost(edge));
            }
        }
        if graph.has_ways_behind_stations() {
            // Whether a station forwards packets from ground links depends on the link over which
            // it sends. In Dijkstra's algorithm this link is final when the station is processed.
            return self.settle_by_heap(graph, destination, cost);
        }
        match self.order.len() {
            known if known == nodes => self.settle_in_order(graph, destination, &cost),
            _ => self.settle_by_heap(graph, destination, &cost),
        }
        self.sort();
    }

    /// Dijkstra's algorithm.
    fn settle_by_heap(&mut self, graph: &Graph, destination: u32, cost: impl Fn(&Edge) -> f64) {
        let mut heap = BinaryHeap::new();
        // The bits of non-negative floats sort like the numbers, so they serve as integer keys.
        let key = |tree: &Self, node: u32| {
            let cost = tree.cost[node as usize].to_bits();
            Reverse((cost, tree.edges[node as usize], node))
        };
        for edge in graph.edges_to(destination) {
            if self.cost[edge.from as usize].is_finite() {
                heap.push(key(self, edge.from));
            }
        }
        self.order.clear();
        self.order.push(destination);
        let mut settled = vec![false; graph.nodes()];
        settled[destination as usize] = true;
        while let Some(Reverse((.., node))) = heap.pop() {
            if std::mem::replace(&mut settled[node as usize], true) {
                continue;
            }
            self.order.push(node);
            let so_far = self.cost[node as usize];
            if self.is_end(graph, node) {
                continue;
            }
            // A station that sends over a ground link must not forward packets that it receives
            // over one.
            let silent = self.is_silent(graph, node);
            for edge in graph.edges_to(node) {
                if !(silent && edge.ground) && self.reach(edge, so_far + cost(edge)) {
                    heap.push(key(self, edge.from));
                }
            }
        }
        let nodes = 0..graph.nodes() as u32;
        self.order
            .extend(nodes.filter(|node| !settled[*node as usize]));
    }

    /// Like [`Self::settle_by_heap`], but processes nodes in the order of the last tree, because
    /// few nodes have changed their position. A node whose cost decreases after it was processed is
    /// processed again.
    fn settle_in_order(&mut self, graph: &Graph, destination: u32, cost: &impl Fn(&Edge) -> f64) {
        let order = std::mem::take(&mut self.order);
        let mut turn = vec![0_u32; graph.nodes()];
        for (at, &node) in (0..).zip(&order) {
            turn[node as usize] = at;
        }
        let mut late = VecDeque::new();
        for (at, &node) in (0..).zip(&order) {
            self.spread(graph, destination, node, cost, |from| {
                if turn[from as usize] <= at {
                    late.push_back(from);
                }
            });
        }
        while let Some(node) = late.pop_front() {
            let mut again = Vec::new();
            self.spread(graph, destination, node, cost, |from| again.push(from));
            late.extend(again);
        }
        self.order = order;
    }

    /// Updates the costs of a node's neighbours, and reports the neighbours whose cost decreases.
    #[inline]
    fn spread(
        &mut self,
        graph: &Graph,
        destination: u32,
        node: u32,
        cost: &impl Fn(&Edge) -> f64,
        mut reached: impl FnMut(u32),
    ) {
        let so_far = self.cost[node as usize];
        if node == destination || so_far.is_infinite() || self.is_end(graph, node) {
            return;
        }
        for edge in graph.edges_to(node) {
            if self.reach(edge, so_far + cost(edge)) {
                reached(edge.from);
            }
        }
    }

    /// Sorts the nodes by cost. Insertion sort is used, because they are almost sorted.
    fn sort(&mut self) {
        for end in 1..self.order.len() {
            let node = self.order[end];
            let own = self.cost[node as usize];
            let mut place = end;
            while place > 0 && self.cost[self.order[place - 1] as usize] > own {
                self.order[place] = self.order[place - 1];
                place -= 1;
            }
            self.order[place] = node;
        }
    }

    /// Whether a node is a station that sends over a ground link and therefore forwards no packets
    /// from ground links.
    fn is_silent(&self, graph: &Graph, node: u32) -> bool {
        let by_ground = self.next[node as usize].is_some_and(|(.., ground)| ground);
        by_ground && graph.stations[node as usize] && !graph.relays
    }

    /// Whether a node never forwards packets of other nodes.
    fn is_end(&self, graph: &Graph, node: u32) -> bool {
        self.is_silent(graph, node) && !graph.ways_behind[node as usize]
    }

    /// Offers a node an edge with a total cost; returns whether the node's path has improved. Of
    /// equal costs the one with fewer edges is better. Otherwise two nodes that are connected by an
    /// edge of cost 0 could each use the other as the next node.
    #[inline]
    fn reach(&mut self, edge: &Edge, cost: f64) -> bool {
        let from = edge.from as usize;
        let known = self.cost[from];
        if cost > known {
            return false;
        }
        let edges = self.edges[edge.to as usize] + 1;
        let better = cost < known || edges < self.edges[from];
        let lower = |next: Option<(u32, u32, bool)>| next.is_some_and(|(to, ..)| edge.to < to);
        if !better && (edges > self.edges[from] || !lower(self.next[from])) {
            return false;
        }
        self.cost[from] = cost;
        self.edges[from] = edges;
        self.next[from] = Some((edge.to, edge.via, edge.ground));
        better
    }

    /// Identifier `via` of the edge that a node uses towards the destination. `None` at the
    /// destination itself, and if there is no path.
    pub fn via(&self, node: u32) -> Option<u32> {
        self.next[node as usize].map(|(_, via, _)| via)
    }

    /// Cost of the path from a node to the destination; `None` if there is no path.
    pub fn cost(&self, node: u32) -> Option<f64> {
        Some(self.cost[node as usize]).filter(|cost| cost.is_finite())
    }

    /// Nodes on the path from a node to the destination, including both; `None` if there is no
    /// path.
    pub fn path(&self, node: u32) -> Option<Vec<u32>> {
        self.cost(node)?;
        let mut path = vec![node];
        let mut here = node;
        while let Some((next, ..)) = self.next[here as usize] {
            path.push(next);
            here = next;
        }
        Some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(from: u32, to: u32, delay: f64, ground: bool) -> [Edge; 2] {
        let edge = |from, to| Edge {
            from,
            to,
            via: 10 * from + to,
            delay,
            ground,
        };
        [edge(from, to), edge(to, from)]
    }

    /// Satellites 0 and 1 have no link between them. Of the stations 2, 3 and 4, station 2 sees
    /// satellite 0, station 3 sees both, and station 4 sees satellite 1. The only path from 2 to 4
    /// leads over station 3.
    fn relayed(relays: bool) -> Tree {
        let mut graph = Graph::new(5);
        (2..5).for_each(|station| graph.set_station(station));
        graph.relays = relays;
        let edges = [
            both(2, 0, 1.0, true),
            both(3, 0, 1.5, true),
            both(3, 1, 1.0, true),
            both(4, 1, 2.0, true),
        ];
        graph.set_edges(&edges.concat());
        let mut tree = Tree::default();
        tree.find(&graph, 4, |edge| edge.delay, |_| true);
        tree
    }

    #[test]
    fn stations_relay_only_where_they_may() {
        assert_eq!(relayed(false).path(2), None);
        assert_eq!(relayed(false).path(3), Some(vec![3, 1, 4]));
        assert_eq!(relayed(true).path(2), Some(vec![2, 0, 3, 1, 4]));
        assert_eq!(relayed(true).cost(2), Some(5.5));
        assert_eq!(relayed(true).via(0), Some(3));
    }

    /// Host 5 is wired to station 2, and should be reached over the ground link of this station.
    #[test]
    fn a_host_behind_a_station_is_reached() {
        let mut graph = Graph::new(6);
        (2..5).for_each(|station| graph.set_station(station));
        let edges = [
            both(2, 0, 1.0, true),
            both(0, 1, 1.0, false),
            both(4, 1, 2.0, true),
            both(2, 5, 0.5, false),
        ];
        graph.set_edges(&edges.concat());
        let mut tree = Tree::default();
        tree.find(&graph, 5, |edge| edge.delay, |_| true);
        assert_eq!(tree.path(4), Some(vec![4, 1, 0, 2, 5]));
        tree.find(&graph, 4, |edge| edge.delay, |_| true);
        assert_eq!(tree.path(5), Some(vec![5, 2, 0, 1, 4]));
        // An edge into the destination is used only if `arrives` accepts it.
        tree.find(&graph, 4, |edge| edge.delay, |_| false);
        assert_eq!(tree.path(5), None);
    }

    /// Destination 2 has two neighbours, 0 and 1, that are connected by an edge of cost 0. The
    /// direct path of each neighbour and its path over the other neighbour have the same cost, so
    /// by node numbers alone 0 and 1 would send to each other. Node 3, which is a neighbour of
    /// both, has the same distance from 2 as they have.
    #[test]
    fn edges_without_cost_make_no_loop() {
        let mut graph = Graph::new(4);
        let edges = [
            both(0, 2, 1.0, false),
            both(1, 2, 1.0, false),
            both(0, 1, 0.0, false),
            both(3, 0, 0.0, false),
            both(3, 1, 0.0, false),
        ];
        graph.set_edges(&edges.concat());
        let mut tree = Tree::default();
        // The second computation uses the node order of the first tree.
        for _ in 0..2 {
            tree.find(&graph, 2, |edge| edge.delay, |_| true);
            let next = [0, 1, 3].map(|node| tree.via(node));
            assert_eq!(next, [Some(2), Some(12), Some(30)]);
        }
    }

    /// A reused tree should have the same result as a new one, on a ring with chords whose lengths
    /// change slightly.
    #[test]
    fn a_tree_before_changes_nothing() {
        let nodes = 60_u32;
        let mut known = Tree::default();
        let mut state = 1_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as f64 / f64::from(1_u32 << 31)
        };
        let mut lengths: Vec<f64> = (0..120).map(|_| 1.0 + draw()).collect();
        for _ in 0..50 {
            let mut graph = Graph::new(nodes as usize);
            let links = (0..120_u32).map(|link| match link {
                0..60 => (link, (link + 1) % nodes),
                _ => (link - 60, (link - 60 + 7) % nodes),
            });
            let edges = links.zip(&lengths);
            let edges = edges.map(|((one, other), length)| both(one, other, *length, false));
            graph.set_edges(&edges.collect::<Vec<_>>().concat());
            let mut fresh = Tree::default();
            for tree in [&mut known, &mut fresh] {
                tree.find(&graph, 3, |edge| edge.delay, |_| true);
            }
            for node in 0..nodes {
                assert_eq!(known.path(node), fresh.path(node));
                assert_eq!(known.cost(node), fresh.cost(node));
            }
            lengths
                .iter_mut()
                .for_each(|length| *length += 0.2 * draw() - 0.1);
        }
    }
}
