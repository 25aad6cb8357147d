//! Routes between moving nodes, computed at the start of each interval for the positions at that
//! time.

use std::ops::Range;
use std::rc::Rc;

use anabranch_orbit::{Edge, Graph, LIGHT, Position, Tree};
use anabranch_transport::{Nanos, time};

use super::outages::Outages;
use super::{GROUND, HERE, NOWHERE, Sender};
use crate::ids::{LinkId, NodeId};
use crate::packet::NO_RECEIVER;
use crate::routing::RoutingKind;
use crate::topology::{Constellation, GroundPolicy, Handover, Topology};

/// A station that searches for the satellite that stays in reach longest looks ahead by this time
/// at most, in steps of [`VIEW_STEP`], nanoseconds.
const MAX_VIEW: Nanos = 3600 * time::SECOND;
const VIEW_STEP: Nanos = 5 * time::SECOND;
/// Maximum number of interval starts that are listed as possible route changes.
const MAX_CHANGES: u64 = 500;

/// Satellites that the stations of a constellation currently use.
#[derive(Debug, Default)]
struct Access {
    /// Satellite used by each station, for policies of one satellite; `None` if none is in reach.
    current: Vec<Option<usize>>,
    /// Time of the last selection, if handovers occur at given times.
    selected: Option<Nanos>,
}

/// Routing over moving nodes.
pub(super) struct Moving {
    kind: Box<dyn RoutingKind>,
    interval: Nanos,
    outages: Outages,
    /// One graph for each interface of a station, up to the maximum number of interfaces.
    graphs: Vec<Graph>,
    /// Edges of the links with constant delays, in both directions.
    fixed: Vec<Edge>,
    access: Vec<Access>,
    /// Current ground links.
    ground: Vec<Sender>,
    /// Index of the interval for which the routes were computed.
    turn: Option<u64>,
    /// For each link, whether it is down.
    down: Vec<bool>,
    /// Buffers that are reused in each interval.
    edges: Vec<Edge>,
    positions: Vec<Position>,
    in_reach: Vec<(usize, f64)>,
}

impl std::fmt::Debug for Moving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Moving").finish_non_exhaustive()
    }
}

fn edge(from: NodeId, to: NodeId, via: u32, delay: f64, ground: bool) -> Edge {
    Edge {
        from: from.0,
        to: to.0,
        via,
        delay,
        ground,
    }
}

impl Moving {
    /// Creates the routing; `None` for a topology without moving nodes.
    pub fn new(topology: &Topology) -> Option<Self> {
        if topology.constellations.is_empty() {
            return None;
        }
        let settings = &topology.moving_routes;
        let mut graph = Graph::new(topology.nodes().len());
        graph.relays = settings.relays;
        for constellation in &topology.constellations {
            for station in &constellation.stations {
                graph.set_station(station.0);
            }
        }
        let interfaces = topology.constellations.iter();
        let interfaces = interfaces.map(|it| it.access.interfaces).max();
        Some(Self {
            kind: (settings.kind)(),
            interval: settings.interval.max(1),
            outages: Outages::new(topology),
            graphs: vec![graph; interfaces.unwrap_or(1).max(1)],
            fixed: fixed(topology),
            access: topology
                .constellations
                .iter()
                .map(|it| Access {
                    current: vec![None; it.stations.len()],
                    selected: None,
                })
                .collect(),
            ground: Vec::new(),
            turn: None,
            down: vec![false; topology.links.len()],
            edges: Vec::new(),
            positions: Vec::new(),
            in_reach: Vec::new(),
        })
    }

    pub fn ground_link(&self, number: u32) -> Sender {
        self.ground[number as usize]
    }

    pub fn next_change(&self) -> Nanos {
        let next = self.turn.map_or(0, |turn| turn + 1);
        next.saturating_mul(self.interval)
            .min(self.outages.next_change())
    }

    pub fn changes(&self, until: Nanos) -> Vec<Nanos> {
        let all = until / self.interval;
        let step = all.div_ceil(MAX_CHANGES).max(1);
        let turns = (1..=all / step).map(|turn| turn * step * self.interval);
        let mut all: Vec<Nanos> = turns.chain(self.outages.changes()).collect();
        all.sort_unstable();
        all
    }

    /// Updates the graphs to `now`. Returns whether they may have changed.
    pub fn follow(&mut self, topology: &Topology, now: Nanos) -> bool {
        let turn = now / self.interval;
        let changed = self.outages.follow(now);
        if !changed && self.turn == Some(turn) {
            return false;
        }
        if changed {
            self.down = self.outages.links_down();
        }
        let skipped = self.turn.map_or(turn, |last| last + 1)..turn;
        self.turn = Some(turn);
        let begin = turn * self.interval;
        self.edges.clear();
        self.ground.clear();
        let down = &self.down;
        let is_up = |edge: &&Edge| !down[edge.via as usize / 2];
        self.edges.extend(self.fixed.iter().filter(is_up));
        for (number, constellation) in topology.constellations.iter().enumerate() {
            self.catch_up(constellation, number, skipped.clone());
            self.select_at_times(constellation, number, begin);
            self.add_constellation(constellation, number, begin);
        }
        self.set_edges(topology);
        true
    }

    /// Sets the edges of each graph, which belongs to one interface number of the stations: the
    /// ground links of other interface numbers are excluded.
    fn set_edges(&mut self, topology: &Topology) {
        if let [graph] = &mut self.graphs[..] {
            return graph.set_edges(&self.edges);
        }
        for (slot, graph) in self.graphs.iter_mut().enumerate() {
            let ground = &self.ground;
            let own = self.edges.iter().filter(|edge| {
                let Some(number) = edge.via.checked_sub(GROUND) else {
                    return true;
                };
                let Sender {
                    interface,
                    receiver,
                } = ground[number as usize];
                // A station with fewer interfaces than graphs uses its last interface in the
                // remaining graphs.
                let mut all = topology.constellations.iter();
                let ends = [interface, receiver].map(|it| LinkId(it / 2));
                all.find_map(|it| {
                    let mut slots = ends.iter().filter_map(|end| it.slot_of(*end));
                    let last = it.access.interfaces.max(1) - 1;
                    slots.next().map(|own| own == slot.min(last))
                })
                .unwrap_or(true)
            });
            graph.set_edges(&own.copied().collect::<Vec<Edge>>());
        }
    }

    /// Selects the satellites of stations at the latest given handover time up to `at`, if this was
    /// not yet done. The change applies from the start of the next interval.
    fn select_at_times(&mut self, constellation: &Constellation, number: usize, at: Nanos) {
        let Some(times) = &constellation.access.times else {
            return;
        };
        let begin = |time: Nanos| time.div_ceil(self.interval).saturating_mul(self.interval);
        let last = begin(times.last(at));
        if self.access[number].selected.replace(last) == Some(last) {
            return;
        }
        let mut positions = std::mem::take(&mut self.positions);
        constellation
            .motion
            .borrow_mut()
            .satellites(last, &mut positions);
        for station in 0..constellation.stations.len() {
            self.choose(constellation, number, station, (last, true), &positions);
        }
        self.positions = positions;
    }

    /// Selects the satellites of stations in the skipped intervals, in which no routes were needed.
    /// Without this step, a handover in a skipped interval would begin now. Only intervals within
    /// the duration of a handover are processed, because earlier handovers are complete.
    fn catch_up(&mut self, constellation: &Constellation, number: usize, skipped: Range<u64>) {
        let access = &constellation.access;
        if access.policy == GroundPolicy::Any || access.times.is_some() {
            return;
        }
        let lasts = access.gap.div_ceil(self.interval);
        let first = skipped.end.saturating_sub(lasts).max(skipped.start);
        let mut positions = std::mem::take(&mut self.positions);
        for turn in first..skipped.end {
            let at = turn * self.interval;
            constellation
                .motion
                .borrow_mut()
                .satellites(at, &mut positions);
            for station in 0..constellation.stations.len() {
                self.choose(constellation, number, station, (at, true), &positions);
            }
        }
        self.positions = positions;
    }

    fn add_constellation(&mut self, constellation: &Constellation, number: usize, at: Nanos) {
        let mut positions = std::mem::take(&mut self.positions);
        constellation
            .motion
            .borrow_mut()
            .satellites(at, &mut positions);
        let motion = Rc::clone(&constellation.motion);
        let motion = motion.borrow();
        let shells = motion.shells();
        for (&ends, &LinkId(link)) in constellation.isls.iter().zip(&constellation.links.isl) {
            if self.down[link as usize] {
                continue;
            }
            if let Some(length) = shells.isl_length(ends, &positions) {
                let [one, other] = ends.map(|end| constellation.satellites[end]);
                let delay = length / LIGHT;
                self.edges.push(edge(one, other, 2 * link, delay, false));
                self.edges
                    .push(edge(other, one, 2 * link + 1, delay, false));
            }
        }
        drop(motion);
        let changes = constellation.access.times.is_none();
        for station in 0..constellation.stations.len() {
            self.choose(constellation, number, station, (at, changes), &positions);
            let up = constellation.up(station);
            if self.down[up as usize / 2] {
                continue;
            }
            let node = constellation.stations[station];
            for &(satellite, distance) in &self.in_reach {
                let down = constellation.down(satellite);
                if self.down[down as usize / 2] {
                    continue;
                }
                let there = constellation.satellites[satellite];
                for (from, to, interface, receiver) in
                    [(node, there, up, down), (there, node, down, up)]
                {
                    let via = GROUND + self.ground.len() as u32;
                    self.ground.push(Sender {
                        interface,
                        receiver,
                    });
                    self.edges.push(edge(from, to, via, distance / LIGHT, true));
                }
            }
        }
        self.positions = positions;
    }

    /// Selects the satellites that an interface of a station may use now. `changes` permits a
    /// change to another satellite.
    fn choose(
        &mut self,
        constellation: &Constellation,
        number: usize,
        station: usize,
        (at, changes): (Nanos, bool),
        positions: &[Position],
    ) {
        let mut motion = constellation.motion.borrow_mut();
        let place = motion.places()[station];
        let in_reach = &mut self.in_reach;
        motion.shells().in_reach(place, positions, in_reach);
        let interfaces = constellation.access.interfaces.max(1);
        if interfaces > 1 {
            let slot = constellation.slot(station);
            in_reach.retain(|(satellite, _)| satellite % interfaces == slot);
        }
        let access = &constellation.access;
        if access.policy == GroundPolicy::Any {
            return;
        }
        let current = &mut self.access[number].current[station];
        let kept = in_reach
            .iter()
            .find(|(it, _)| Some(*it) == *current)
            .copied();
        let nearest = || {
            let all = in_reach.iter().copied();
            all.min_by(|one, other| one.1.total_cmp(&other.1))
        };
        let chosen = match (access.policy, kept) {
            _ if !changes => kept,
            (GroundPolicy::Longest, Some(kept)) => Some(kept),
            (GroundPolicy::Longest, None) => {
                let view = |satellite: usize| {
                    let steps = (1..).map(|step| step * VIEW_STEP);
                    let mut steps = steps.take_while(|after| *after <= MAX_VIEW);
                    let leaves =
                        steps.find(|after| !motion.reaches(station, satellite, at + after));
                    leaves.unwrap_or(MAX_VIEW)
                };
                // Of several satellites that stay in reach equally long, the nearest is selected.
                let all = in_reach.iter().map(|&it| (view(it.0), it));
                let best = all.max_by(|(view, one), (other_view, other)| {
                    view.cmp(other_view).then(other.1.total_cmp(&one.1))
                });
                best.map(|(_, it)| it)
            }
            _ => nearest(),
        };
        let satellite = chosen.map(|(satellite, _)| satellite);
        // Only a change from one satellite to another interrupts the station; the first selection
        // does not.
        if current.is_some() && satellite.is_some() && *current != satellite {
            motion.opens[station] = at.saturating_add(access.gap);
        }
        if satellite.is_some() {
            *current = satellite;
        }
        motion.serve(station, satellite);
        in_reach.clear();
        in_reach.extend(chosen);
    }

    /// Fills the table of a target interface.
    pub fn fill(&mut self, topology: &Topology, target: u32, tree: &mut Tree, next: &mut [u32]) {
        if self.turn.is_none() {
            self.follow(topology, 0);
        }
        let owner = topology.interfaces()[target as usize].node;
        let ground = &self.ground;
        // Packets to the address of a link between satellites may arrive at any interface of the
        // satellite. At other nodes, each address is a separate path.
        let anywhere = topology.is_isl(target);
        let graph = &self.graphs[slot(topology, target).min(self.graphs.len() - 1)];
        let arrives = |edge: &Edge| {
            let far = match edge.via.checked_sub(GROUND) {
                Some(number) => ground[number as usize].receiver,
                None => edge.via ^ 1,
            };
            anywhere || far == target
        };
        self.kind.find(graph, owner.0, &arrives, tree);
        for (node, next) in (0..).zip(next.iter_mut()) {
            *next = tree.via(node).unwrap_or(NOWHERE);
        }
        next[owner.index()] = HERE;
        let given = topology.given_routes.iter();
        for route in given.filter(|route| route.target == target && route.node != owner) {
            next[route.node.index()] = route.via;
        }
    }

    pub fn is_turning(&self, topology: &Topology, now: Nanos, sender: Sender) -> bool {
        if sender.receiver == NO_RECEIVER {
            return false;
        }
        topology.constellations.iter().any(|constellation| {
            if constellation.access.handover != Handover::Drop {
                return false;
            }
            let ends = [sender.interface, sender.receiver].map(|it| LinkId(it / 2));
            let mut ups = constellation.links.up.iter();
            let station = ups.position(|up| ends.contains(up));
            station.is_some_and(|station| constellation.motion.borrow().opens[station] > now)
        })
    }
}

/// Index of the station interface that is used by packets to a target interface. The wired
/// interfaces of a node use different station interfaces, in their order, so that they are
/// different paths.
fn slot(topology: &Topology, target: u32) -> usize {
    let mut all = topology.constellations.iter();
    let own = all.find_map(|it| it.slot_of(LinkId(target / 2)));
    own.unwrap_or_else(|| {
        let owner = topology.interfaces()[target as usize].node;
        let wired = topology.interfaces_of(owner).iter();
        let mut wired = wired.filter(|it| !topology.moves(LinkId(**it / 2)));
        wired.position(|it| *it == target).unwrap_or(0)
    })
}

/// Edges of the links with constant delays, in both directions.
fn fixed(topology: &Topology) -> Vec<Edge> {
    let own = topology.links().filter(|link| !topology.moves(*link));
    let edges = own.flat_map(|id| {
        let link = &topology.links[id.index()];
        let [first, second] = link.between;
        let delay = |direction: &crate::DirectionConfig| {
            let fixed = direction.propagation.as_fixed();
            time::seconds(fixed.unwrap_or(0))
        };
        [
            edge(first, second, 2 * id.0, delay(&link.forward), false),
            edge(second, first, 2 * id.0 + 1, delay(&link.backward), false),
        ]
    });
    edges.collect()
}
