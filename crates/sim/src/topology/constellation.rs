//! Satellites and stations of a topology: nodes that move against each other, the links between
//! satellites, and one transmitter at each node for all of its ground links.
//!
//! A link between satellites is a link like any other, with a delay that follows its length. Ground
//! links are not listed: a satellite has one interface towards all stations, and a station one
//! towards all satellites of a constellation; which of them receives a packet, its route says. Such
//! an interface is a link that ends at its own node. Its forward direction is the transmitter.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_orbit::{Place, Shells};
use anabranch_transport::Nanos;

use super::Topology;
use crate::ephemeris::{Ephemeris, Segment};
use crate::error::BuildError;
use crate::ids::{LinkId, NodeId};
use crate::link::{DirectionConfig, LinkConfig};
use crate::packet::{NO_RECEIVER, Packet};
use crate::propagation::Propagation;
use crate::rng::Rng;

/// Which of the satellites in reach a station uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroundPolicy {
    /// Any of them, by the routes.
    Any,
    /// The nearest.
    Nearest,
    /// One until it is out of reach, then the one that will be in reach longest.
    Longest,
}

/// What happens to packets while a station turns to another satellite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// They wait in the transmitter.
    Hold,
    /// They are dropped when they come to it.
    Drop,
}

/// How stations use satellites.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroundAccess {
    /// Which they use.
    pub policy: GroundPolicy,
    /// How long it takes them to turn to another, with a policy of one satellite.
    pub gap: Nanos,
    /// What happens to packets meanwhile.
    pub handover: Handover,
}

/// A constellation with its stations.
#[derive(Debug)]
pub struct ConstellationConfig {
    /// Its name; its links are called by it: `NAME-isl[0]`, `NAME-up[0]`, `NAME-down[0]`.
    pub name: String,
    /// The satellites.
    pub shells: Shells,
    /// Their nodes, in the order of numbers.
    pub satellites: Vec<NodeId>,
    /// The nodes of stations and where they stand.
    pub stations: Vec<(NodeId, Place)>,
    /// What is time 0 of the world, after the epoch.
    pub start: Nanos,
    /// How stations use satellites.
    pub access: GroundAccess,
}

/// The links of a constellation by their class.
#[derive(Clone, Debug, Default)]
pub struct ConstellationLinks {
    /// Between satellites, in the order of [`Shells::isls`].
    pub isl: Vec<LinkId>,
    /// From each station to satellites.
    pub up: Vec<LinkId>,
    /// From each satellite to stations.
    pub down: Vec<LinkId>,
}

/// A class of links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkClass {
    /// Between satellites.
    Isl,
    /// From a station to satellites.
    Up,
    /// From a satellite to stations.
    Down,
}

impl LinkClass {
    /// All.
    pub const ALL: [LinkClass; 3] = [LinkClass::Isl, LinkClass::Up, LinkClass::Down];

    /// `isl`, `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            LinkClass::Isl => "isl",
            LinkClass::Up => "up",
            LinkClass::Down => "down",
        }
    }
}

/// A constellation in a topology.
#[derive(Debug)]
pub(crate) struct Constellation {
    pub motion: Rc<RefCell<Ephemeris>>,
    pub satellites: Vec<NodeId>,
    pub stations: Vec<NodeId>,
    /// The satellites at the ends of each ISL.
    pub isls: Vec<[usize; 2]>,
    pub links: ConstellationLinks,
    pub access: GroundAccess,
}

impl Constellation {
    /// The interface of a satellite towards stations.
    pub fn down(&self, satellite: usize) -> u32 {
        self.links.down[satellite].0 * 2
    }

    /// Whether a link is one of it. Its links were added one after another.
    pub fn has(&self, link: LinkId) -> bool {
        let all = [&self.links.isl, &self.links.up, &self.links.down];
        all.into_iter().any(|class| spans(class, link))
    }

    /// Whether a link is one between its satellites.
    pub fn has_isl(&self, link: LinkId) -> bool {
        spans(&self.links.isl, link)
    }

    /// The interface of a station towards satellites.
    pub fn up(&self, station: usize) -> u32 {
        self.links.up[station].0 * 2
    }
}

/// Whether a link is among some that were added one after another.
fn spans(class: &[LinkId], link: LinkId) -> bool {
    let ends = class.first().zip(class.last());
    ends.is_some_and(|(first, last)| (*first..=*last).contains(&link))
}

impl Topology {
    /// Adds the links of a constellation, each made of what `direction` gives for its class; their propagation is set here.
    ///
    /// # Errors
    /// Those of [`Topology::add_link`] and of `direction`.
    pub fn add_constellation<E: From<BuildError>>(
        &mut self,
        config: ConstellationConfig,
        direction: impl Fn(LinkClass) -> Result<DirectionConfig, E>,
    ) -> Result<ConstellationLinks, E> {
        let ConstellationConfig {
            name,
            shells,
            satellites,
            stations,
            start,
            access,
        } = config;
        for &node in satellites
            .iter()
            .chain(stations.iter().map(|(node, _)| node))
        {
            self.check(node)?;
        }
        let isls = shells.isls();
        let (stations, places): (Vec<_>, Vec<_>) = stations.into_iter().unzip();
        let motion = Rc::new(RefCell::new(Ephemeris::new(shells, places, start)));
        let mut links = ConstellationLinks::default();
        let member = |class: LinkClass, count: usize, index: usize| match count {
            1 => format!("{name}-{}", class.name()),
            _ => format!("{name}-{}[{index}]", class.name()),
        };
        for (index, &[one, other]) in isls.iter().enumerate() {
            let beam = |from, to| Beam {
                motion: Rc::clone(&motion),
                from,
                far: Far::Body(to),
                known: Vec::new(),
                rate: None,
                left: 0,
            };
            let side = |from: usize, to: usize| {
                let direction = direction(LinkClass::Isl)?;
                Ok::<_, E>(direction.with_propagation(beam(from as u32, to as u32), false))
            };
            links.isl.push(self.add_link(LinkConfig {
                name: member(LinkClass::Isl, isls.len(), index),
                between: [satellites[one], satellites[other]],
                forward: side(one, other)?,
                backward: side(other, one)?,
            })?);
        }
        let first_station = satellites.len();
        let first_up = self.links.len();
        for (class, nodes, first_body) in [
            (LinkClass::Up, &stations, first_station),
            (LinkClass::Down, &satellites, 0),
        ] {
            for (index, &node) in nodes.iter().enumerate() {
                let far = match class {
                    // Satellites receive by the links behind those of stations.
                    LinkClass::Up => Far::Receiver {
                        link: first_up + stations.len(),
                        body: 0,
                    },
                    _ => Far::Receiver {
                        link: first_up,
                        body: first_station,
                    },
                };
                let forward = direction(class)?;
                let rate = forward.rate.as_ref();
                let beam = Beam {
                    motion: Rc::clone(&motion),
                    from: (first_body + index) as u32,
                    far,
                    known: Vec::new(),
                    rate: rate.and_then(crate::OverTime::as_constant),
                    left: 0,
                };
                let forward = forward.with_propagation(beam, true);
                let id = self.add_transmitter(member(class, nodes.len(), index), node, forward)?;
                match class {
                    LinkClass::Up => links.up.push(id),
                    _ => links.down.push(id),
                }
            }
        }
        self.constellations.push(Constellation {
            motion,
            satellites,
            stations,
            isls,
            links: links.clone(),
            access,
        });
        Ok(links)
    }
}

/// The far end of a beam.
#[derive(Clone, Copy, Debug)]
enum Far {
    /// Always this body.
    Body(u32),
    /// The one that receives the packet: those from a link and a body on.
    Receiver { link: usize, body: usize },
}

/// The delay of what a body sends.
struct Beam {
    motion: Rc<RefCell<Ephemeris>>,
    from: u32,
    far: Far,
    /// The delay to those that were sent to last.
    known: Vec<(u32, Segment)>,
    /// Bits per second, where that never changes.
    rate: Option<u64>,
    /// When the last packet left that had waited, or that waited for one that had.
    left: Nanos,
}

/// A satellite sends to few stations at a time.
const MOST_KNOWN: usize = 8;

impl Beam {
    #[cold]
    fn look(&mut self, to: u32, at: Nanos) -> Nanos {
        let segment = self.motion.borrow_mut().segment(self.from, to, at);
        let delay = segment.at(at).unwrap_or(0);
        match self.known.iter_mut().find(|(known, _)| *known == to) {
            Some(known) => known.1 = segment,
            None => {
                if self.known.len() == MOST_KNOWN {
                    self.known.remove(0);
                }
                self.known.push((to, segment));
            }
        }
        delay
    }

    /// When a packet leaves whose last bit would leave at `at`, but waits for a station that turns
    /// to another satellite. What has waited leaves at the rate of the transmitter.
    fn leaves(&mut self, at: Nanos, wait: Nanos, packet: &Packet) -> Nanos {
        if wait == 0 && self.left <= at {
            return at;
        }
        let bits = packet.wire_size() as u64 * 8;
        let takes = self
            .rate
            .map_or(0, |rate| bits * 1_000_000_000 / rate.max(1));
        self.left = (at + wait).max(self.left.saturating_add(takes));
        self.left
    }

    /// How long a packet waits for a station that turns to another satellite.
    fn wait(&self, to: u32, at: Nanos) -> Nanos {
        let motion = self.motion.borrow();
        let first = motion.shells().len() as u32;
        let station = self.from.max(to).checked_sub(first);
        let opens = station.and_then(|station| motion.opens.get(station as usize));
        opens.map_or(0, |opens| opens.saturating_sub(at))
    }
}

impl Propagation for Beam {
    fn delay(&mut self, at: Nanos, packet: &Packet, _rng: &mut Rng) -> Nanos {
        let (to, wait) = match self.far {
            Far::Body(to) => (to, 0),
            Far::Receiver { .. } if packet.receiver == NO_RECEIVER => return 0,
            Far::Receiver { link, body } => {
                let to = (packet.receiver as usize / 2 - link + body) as u32;
                (to, self.wait(to, at))
            }
        };
        let leaves = self.leaves(at, wait, packet);
        let known = self.known.iter().find(|(known, _)| *known == to);
        let delay = known.and_then(|(_, segment)| segment.at(leaves));
        let delay = delay.unwrap_or_else(|| self.look(to, leaves));
        leaves - at + delay
    }
}
