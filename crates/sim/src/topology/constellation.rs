//! Constellations of a topology: satellites and ground stations as moving nodes, and the links
//! between them.
//!
//! A link between satellites is an ordinary link whose delay follows its length. Ground links are
//! not listed individually. A satellite has one interface to all stations, and a station has one
//! interface to all satellites of a constellation; the route of a packet determines its receiver.
//! Such an interface is represented by a link that ends at its own node. The forward direction of
//! this link is the transmitter.

use std::cell::RefCell;
use std::rc::Rc;

use anabranch_orbit::{Place, Shells};
use anabranch_transport::Nanos;

use super::Topology;
use super::ground_rate::{ByReceiver, ElevationStep, RateShares, Receiver};
use crate::ephemeris::{Ephemeris, Segment};
use crate::error::BuildError;
use crate::ids::{LinkId, NodeId};
use crate::link::{DirectionConfig, LinkConfig};
use crate::packet::Packet;
use crate::propagation::Propagation;
use crate::rng::Rng;

/// Policy by which a station selects among the satellites in reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroundPolicy {
    /// Any satellite, as the routes require.
    Any,
    /// Always the nearest satellite.
    Nearest,
    /// One satellite until it is out of reach, and then the satellite that will be in reach
    /// longest.
    Longest,
}

/// Treatment of packets during a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// Packets wait in the transmitter.
    Hold,
    /// Packets that arrive at the transmitter are dropped.
    Drop,
}

/// Times at which stations may change to another satellite, for policies of one satellite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoverTimes {
    /// Times in nanoseconds, in ascending order.
    pub times: Vec<Nanos>,
    /// Period in nanoseconds after which the times repeat; `None`: they do not repeat.
    pub repeat: Option<Nanos>,
}

impl HandoverTimes {
    /// Latest of the times up to `now`; 0 if there is none.
    pub(crate) fn last(&self, now: Nanos) -> Nanos {
        let before = |now: Nanos| {
            let passed = self.times.partition_point(|time| *time <= now);
            passed.checked_sub(1).map(|index| self.times[index])
        };
        let Some(repeat) = self.repeat.filter(|repeat| *repeat > 0) else {
            return before(now).unwrap_or(0);
        };
        let begin = now - now % repeat;
        match before(now - begin) {
            Some(time) => begin + time,
            None => {
                let last = self.times.last().copied().unwrap_or(0);
                begin.checked_sub(repeat).map_or(0, |begin| begin + last)
            }
        }
    }
}

/// Configuration of the stations' access to satellites.
#[derive(Clone, Debug, PartialEq)]
pub struct GroundAccess {
    /// The selection policy.
    pub policy: GroundPolicy,
    /// Times at which stations change to another satellite; `None`: the policy determines the
    /// times.
    pub times: Option<HandoverTimes>,
    /// Number of interfaces of each station. Interface j uses the satellites whose number modulo
    /// this value is j, so that the paths of a station use different satellites.
    pub interfaces: usize,
    /// Rates of the transmitters of stations by elevation, in ascending order. If there are none,
    /// the rate of the link applies at every elevation.
    pub up: Vec<ElevationStep>,
    /// Whether the stations that a satellite serves have equal shares of the uplink rate. This
    /// requires a policy by which a station uses one satellite at a time.
    pub shared: bool,
    /// Like `up`, for the transmitters of satellites.
    pub down: Vec<ElevationStep>,
    /// Duration of a handover in nanoseconds, for policies of one satellite.
    pub gap: Nanos,
    /// The treatment of packets during a handover.
    pub handover: Handover,
}

/// A constellation with its ground stations.
#[derive(Debug)]
pub struct ConstellationConfig {
    /// Name of the constellation, and prefix of its links: `NAME-isl[0]`, `NAME-up[0]`,
    /// `NAME-down[0]`.
    pub name: String,
    /// The satellites and their orbits.
    pub shells: Shells,
    /// Nodes of the satellites, in the order of satellite numbers.
    pub satellites: Vec<NodeId>,
    /// Nodes of the stations with their places.
    pub stations: Vec<(NodeId, Place)>,
    /// Time after the epoch at which simulated time 0 lies, nanoseconds.
    pub start: Nanos,
    /// The access of stations to satellites.
    pub access: GroundAccess,
}

/// Links of a constellation, by class.
#[derive(Clone, Debug, Default)]
pub struct ConstellationLinks {
    /// Links between satellites, in the order of [`Shells::isls`].
    pub isl: Vec<LinkId>,
    /// Links from the interfaces of stations to the satellites: the first interface of each
    /// station, then the second of each, and so on.
    pub up: Vec<LinkId>,
    /// Links from each satellite to the stations.
    pub down: Vec<LinkId>,
}

/// Class of the links of a constellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkClass {
    /// Between two satellites.
    Isl,
    /// From a station to the satellites.
    Up,
    /// From a satellite to the stations.
    Down,
}

impl LinkClass {
    /// All classes.
    pub const ALL: [LinkClass; 3] = [LinkClass::Isl, LinkClass::Up, LinkClass::Down];

    /// Name of the class: `isl`, `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            LinkClass::Isl => "isl",
            LinkClass::Up => "up",
            LinkClass::Down => "down",
        }
    }
}

/// A constellation in a topology, with its links.
#[derive(Debug)]
pub(crate) struct Constellation {
    pub motion: Rc<RefCell<Ephemeris>>,
    pub satellites: Vec<NodeId>,
    /// Nodes of the stations, repeated for each of their interfaces.
    pub stations: Vec<NodeId>,
    /// Indices of the satellites at the ends of each inter-satellite link.
    pub isls: Vec<[usize; 2]>,
    pub links: ConstellationLinks,
    pub access: GroundAccess,
}

impl Constellation {
    /// Nodes of the satellites and stations.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + Clone {
        self.satellites.iter().chain(&self.stations).copied()
    }

    /// Interface of a satellite to the stations.
    pub fn down(&self, satellite: usize) -> u32 {
        self.links.down[satellite].0 * 2
    }

    /// Whether a link belongs to the constellation. A comparison with the first and last link is
    /// sufficient, because the links were added consecutively.
    pub fn has(&self, link: LinkId) -> bool {
        let all = [&self.links.isl, &self.links.up, &self.links.down];
        all.into_iter().any(|class| spans(class, link))
    }

    /// Whether a link is the transmitter of a station or of a satellite, whose packets have
    /// different receivers.
    pub fn has_ground(&self, link: LinkId) -> bool {
        spans(&self.links.up, link) || spans(&self.links.down, link)
    }

    /// Whether a link joins two satellites of this constellation.
    pub fn has_isl(&self, link: LinkId) -> bool {
        spans(&self.links.isl, link)
    }

    /// Index of a station interface within its station. `station` is the index of the interface
    /// among the interfaces of all stations.
    pub fn slot(&self, station: usize) -> usize {
        let interfaces = self.access.interfaces.max(1);
        station / (self.stations.len() / interfaces).max(1)
    }

    /// Index, within its station, of the interface to which a ground link belongs. The link of a
    /// satellite belongs to the interface that uses this satellite.
    pub fn slot_of(&self, link: LinkId) -> Option<usize> {
        let index = |class: &[LinkId]| {
            let first = class.first()?;
            spans(class, link).then(|| (link.0 - first.0) as usize)
        };
        let interfaces = self.access.interfaces.max(1);
        let down = || Some(index(&self.links.down)? % interfaces);
        index(&self.links.up).map(|it| self.slot(it)).or_else(down)
    }

    /// Interface of a station to the satellites.
    pub fn up(&self, station: usize) -> u32 {
        self.links.up[station].0 * 2
    }
}

/// Whether `link` is in `class`, whose links were added consecutively.
fn spans(class: &[LinkId], link: LinkId) -> bool {
    let ends = class.first().zip(class.last());
    ends.is_some_and(|(first, last)| (*first..=*last).contains(&link))
}

impl Topology {
    /// Adds the links of a constellation. `direction` returns the configuration for each class of
    /// links; this function sets their propagation model.
    ///
    /// # Errors
    /// The errors of [`Topology::add_link`] and of `direction`.
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
        let repeated = std::iter::repeat_n(stations, access.interfaces.max(1));
        let (stations, places): (Vec<_>, Vec<_>) = repeated.flatten().unzip();
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
                let (receiver, (steps, shared)) = match class {
                    // The transmitters of satellites are numbered after those of stations.
                    LinkClass::Up => (
                        Receiver {
                            link: first_up + stations.len(),
                            body: 0,
                        },
                        (&access.up, access.shared),
                    ),
                    _ => (
                        Receiver {
                            link: first_up,
                            body: first_station,
                        },
                        (&access.down, false),
                    ),
                };
                let from = (first_body + index) as u32;
                let mut forward = direction(class)?;
                let shares = RateShares::new(Rc::clone(&motion), from, (steps, shared));
                if !shares.are_whole() {
                    let queue = ByReceiver::queue(&*forward.queue, shares.clone(), receiver)?;
                    forward.queue = Box::new(queue);
                }
                let rate = forward.rate.as_ref();
                let rate = rate.and_then(crate::StepFunction::as_constant);
                let beam = Beam {
                    motion: Rc::clone(&motion),
                    from,
                    far: Far::Receiver(receiver),
                    known: Vec::new(),
                    rate: rate.map(|rate| (rate, shares)),
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

/// Receiver of the packets that a body (a satellite or a station) sends.
#[derive(Clone, Copy, Debug)]
enum Far {
    /// Every packet is received by the same body.
    Body(u32),
    /// The receiver that the packet specifies.
    Receiver(Receiver),
}

/// Propagation model of the packets that one satellite or station sends.
struct Beam {
    motion: Rc<RefCell<Ephemeris>>,
    from: u32,
    far: Far,
    /// Cached delays to the most recent receivers.
    known: Vec<(u32, Segment)>,
    /// Rate in bits per second, if it is constant over time, and the shares of it that apply to
    /// receivers.
    rate: Option<(u64, RateShares)>,
    /// Departure time of the last packet that waited for the end of a handover, or for another
    /// packet that waited.
    left: Nanos,
}

/// Maximum number of cached delays. It is small, because a satellite sends to few stations at a
/// time.
const MAX_KNOWN: usize = 8;

impl Beam {
    #[cold]
    fn look(&mut self, to: u32, at: Nanos) -> Nanos {
        let segment = self.motion.borrow_mut().segment(self.from, to, at);
        let delay = segment.at(at).unwrap_or(0);
        match self.known.iter_mut().find(|(known, _)| *known == to) {
            Some(known) => known.1 = segment,
            None => {
                if self.known.len() == MAX_KNOWN {
                    self.known.remove(0);
                }
                self.known.push((to, segment));
            }
        }
        delay
    }

    /// Departure time of a packet to the body `to`. The last bit would leave at `at`, but the
    /// packet must wait for `wait` nanoseconds because of a handover. Delayed packets then leave at
    /// the rate of the transmitter.
    fn leaves(&mut self, at: Nanos, wait: Nanos, (packet, to): (&Packet, u32)) -> Nanos {
        if wait == 0 && self.left <= at {
            return at;
        }
        let bits = packet.wire_size() as u64 * 8;
        let takes = self.rate.as_ref().map_or(0, |(rate, shares)| {
            let share = shares.share(to, self.left.max(at));
            let rate = (*rate as f64 * share + 0.5) as u64;
            bits * 1_000_000_000 / rate.max(1)
        });
        self.left = (at + wait).max(self.left.saturating_add(takes));
        self.left
    }

    /// Time in nanoseconds for which a packet to the body `to` must wait, because its station is in
    /// a handover.
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
            Far::Receiver(receiver) => match receiver.body(packet) {
                Some(to) => (to, self.wait(to, at)),
                None => return 0,
            },
        };
        let leaves = self.leaves(at, wait, (packet, to));
        let known = self.known.iter().find(|(known, _)| *known == to);
        let delay = known.and_then(|(_, segment)| segment.at(leaves));
        let delay = delay.unwrap_or_else(|| self.look(to, leaves));
        leaves - at + delay
    }

    fn least_delay(&self, from: Nanos, until: Nanos) -> Nanos {
        let mut motion = self.motion.borrow_mut();
        match self.far {
            Far::Body(to) => motion.least_delay(self.from, to, from..=until),
            Far::Receiver(_) => motion.least_ground_delay(from..=until),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_handovers_repeat() {
        let mut times = HandoverTimes {
            times: vec![12, 27, 42, 57],
            repeat: None,
        };
        let last =
            |times: &HandoverTimes| [0, 11, 12, 30, 59, 60, 71, 72].map(|now| times.last(now));
        assert_eq!(last(&times), [0, 0, 12, 27, 57, 57, 57, 57]);
        times.repeat = Some(60);
        assert_eq!(last(&times), [0, 0, 12, 27, 57, 57, 57, 72]);
    }
}
