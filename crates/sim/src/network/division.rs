//! A world divided among threads: each thread has a copy of the world, its *part*, and processes
//! the events of the nodes of that part.
//!
//! A direction of a link belongs to the node that sends. If it ends at a node of another part, each
//! packet is copied to that part as soon as its arrival is decided. All parts run up to a common
//! time, which is ahead of the present by at most the minimum delay of the divided directions, so
//! an arrival is known before it is due. The events of a node are the same in any division, because
//! they are ordered by keys that depend only on the node and its neighbours.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use anabranch_transport::Nanos;

use super::Network;
use crate::crossing::{Border, Crossing, CrossingLink};
use crate::ids::opposite;
use crate::packet::{NO_RECEIVER, Parcel};
use crate::router::RouteTables;
use crate::scheduler::EventKey;

/// Maximum length of a window, the time that a part runs between two exchanges of packets,
/// nanoseconds.
const MAX_WINDOW: Nanos = 20_000_000;
/// Time after which the lookahead is computed again, nanoseconds.
const KEPT: Nanos = 100_000_000;

/// State of a network that is one part of a divided world.
#[derive(Debug)]
pub(crate) struct Division {
    border: Rc<Border>,
    /// All directions at which the world is divided, whatever part they belong to. Of the
    /// transmitters of a divided constellation only one is listed, because all have the same lower
    /// bound of the delay.
    divided: Vec<u32>,
    /// The lookahead, and the time until which it is used, nanoseconds.
    lookahead: (Nanos, Nanos),
    /// Packets that arrive from other parts, by direction, in the order of arrival.
    arriving: BTreeMap<u32, VecDeque<(EventKey, u32, Parcel)>>,
    targets: Targets,
}

/// Targets of the routing tables of all parts.
#[derive(Debug)]
struct Targets {
    /// Number of parts.
    parts: usize,
    /// Number of tables of this part whose targets the other parts know.
    reported: usize,
    /// Targets that all parts know, in the same order in all parts.
    all: Vec<u32>,
    known: BTreeSet<u32>,
}

impl Targets {
    fn new(owners: &[u32]) -> Self {
        Self {
            parts: owners.iter().max().map_or(1, |last| *last as usize + 1),
            reported: 0,
            all: Vec::new(),
            known: BTreeSet::new(),
        }
    }

    /// Adds targets that all parts add at the same time, in any order.
    fn add(&mut self, mut targets: Vec<u32>) {
        targets.sort_unstable();
        let new = targets.into_iter().filter(|it| self.known.insert(*it));
        self.all.extend(new);
    }

    /// The targets whose tables `part` computes.
    fn share(&self, part: u32) -> impl Iterator<Item = u32> {
        let share = self.all.iter().skip(part as usize);
        share.step_by(self.parts).copied()
    }
}

impl Division {
    /// Whether an interface belongs to a node of this part.
    pub fn owns(&self, interface: u32) -> bool {
        self.border.owners[interface as usize] == self.border.part
    }
}

impl Network {
    /// Restricts the network to the nodes of `part`, before it has run. `owners` contains the part
    /// of each node.
    pub fn divide(&mut self, part: u32, owners: &[u32]) {
        let interfaces = self.topology.interfaces().iter();
        let border = Rc::new(Border {
            part,
            owners: interfaces.map(|it| owners[it.node.index()]).collect(),
            leaving: Default::default(),
        });
        let constellations = self.topology.constellations.iter();
        let is_divided: Vec<bool> = constellations
            .map(|it| {
                let mut owners = it.nodes().map(|node| owners[node.index()]);
                let first = owners.next();
                owners.any(|owner| Some(owner) != first)
            })
            .collect();
        let (mut divided, mut bounded) = (Vec::new(), None);
        for simplex_link in 0..self.simplex_links.len() {
            let ends = [simplex_link as u32, opposite(simplex_link as u32)];
            let [from, to] = ends.map(|it| border.owners[it as usize]);
            let transmits = self.topology.transmits_in(simplex_link as u32);
            let transmits = transmits.filter(|constellation| is_divided[*constellation]);
            if from == to && transmits.is_none() {
                continue;
            }
            // A delay line cannot copy packets, so it is converted.
            self.unfold(0, simplex_link);
            self.simplex_links[simplex_link].divide(CrossingLink {
                simplex_link: simplex_link as u32,
                border: Rc::clone(&border),
            });
            if transmits.is_none() || transmits != bounded {
                divided.push(simplex_link as u32);
            }
            bounded = transmits.or(bounded);
        }
        self.division = Some(Box::new(Division {
            border,
            divided,
            lookahead: (0, 0),
            arriving: BTreeMap::new(),
            targets: Targets::new(owners),
        }));
    }

    /// Whether parts should share the computation of routes at `now`.
    pub fn shares_routes(&self, now: Nanos) -> bool {
        self.division.is_some() && self.router.is_due(now)
    }

    /// Targets of routing tables that this part has added since the last call.
    pub fn take_targets(&mut self) -> Vec<u32> {
        let Some(division) = &mut self.division else {
            return Vec::new();
        };
        let reported = &mut division.targets.reported;
        let new = self.router.targets_from(*reported).to_vec();
        *reported += new.len();
        new
    }

    /// Updates the state of the routes to `now`, and replaces `tables` by the tables that this part
    /// computes. `new` contains the targets that all parts have added. Returns whether resolved
    /// routes may have changed.
    pub fn compute_routes(&mut self, now: Nanos, new: Vec<u32>, tables: &mut RouteTables) -> bool {
        let Some(division) = &mut self.division else {
            return false;
        };
        division.targets.add(new);
        let changed = self.router.follow_lazily(&self.topology, now);
        let share = division.targets.share(division.border.part);
        self.router.compute(&self.topology, share, tables);
        changed
    }

    /// Copies the tables that another part has computed.
    pub fn accept_routes(&mut self, tables: &RouteTables) {
        self.router.accept(tables);
    }

    /// Computes the tables that no part has computed since the last change of routes.
    pub fn complete_routes(&mut self) {
        self.router.complete(&self.topology);
    }

    /// Time in nanoseconds within which no packet that is sent from `now` on can reach another
    /// part.
    pub fn lookahead(&mut self, now: Nanos) -> Nanos {
        let Some(division) = &mut self.division else {
            return MAX_WINDOW;
        };
        let (lookahead, until) = division.lookahead;
        if now < until {
            return lookahead;
        }
        // A packet whose last bit leaves after `until` arrives after the window in which it was
        // sent, whatever its delay is.
        let until = now.saturating_add(KEPT + 2 * MAX_WINDOW);
        let divided = division.divided.iter();
        let delays = divided
            .map(|&simplex_link| self.simplex_links[simplex_link as usize].least_delay(now, until));
        let lookahead = delays.fold(MAX_WINDOW, Nanos::min);
        division.lookahead = (lookahead, now.saturating_add(KEPT));
        lookahead
    }

    /// The packets that have left the part since the last call.
    pub fn take_crossings(&mut self) -> Vec<Crossing> {
        let Some(division) = &self.division else {
            return Vec::new();
        };
        let mut leaving = std::mem::take(&mut *division.border.leaving.borrow_mut());
        for crossing in &mut leaving {
            // Each part numbers its routing tables separately, so the target interface replaces the
            // number of the table.
            crossing.packet.target = self.router.target(crossing.packet.target);
        }
        leaving
    }

    /// Accepts a packet from another part.
    pub fn accept(&mut self, mut crossing: Crossing) {
        let target = crossing.packet.target;
        crossing.packet.target = self.router.table(&self.topology, target);
        let Crossing {
            arrival,
            simplex_link,
            to,
            mut packet,
            ..
        } = crossing;
        packet.receiver = NO_RECEIVER;
        let packet = self.parcels.wrap(packet);
        let Some(division) = &mut self.division else {
            return;
        };
        let queue = division.arriving.entry(simplex_link).or_default();
        // Packets with equal keys arrive in the order in which they were sent.
        let place = queue.partition_point(|(known, ..)| *known <= arrival);
        queue.insert(place, (arrival, to, packet));
        if place == 0 {
            self.scheduler.set(simplex_link as usize, arrival);
        }
    }

    /// Processes the next event of `simplex_link`, if the simplex link belongs to another part.
    /// Returns the receiving interface and the packet that arrives. The part of the sender counts
    /// the event.
    pub(super) fn step_arriving(&mut self, simplex_link: usize) -> Option<(u32, Parcel)> {
        let division = self.division.as_mut()?;
        if division.owns(simplex_link as u32) {
            return None;
        }
        let queue = division.arriving.get_mut(&(simplex_link as u32))?;
        let (_, to, packet) = queue.pop_front()?;
        let next = queue.front().map_or(EventKey::NONE, |(key, ..)| *key);
        self.scheduler.set(simplex_link, next);
        Some((to, packet))
    }

    /// Whether an interface belongs to a node of this part.
    #[inline]
    pub fn is_own(&self, interface: u32) -> bool {
        self.division.as_ref().is_none_or(|it| it.owns(interface))
    }
}
