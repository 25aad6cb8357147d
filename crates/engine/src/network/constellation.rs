//! Constellations of a spec: the numbers of satellites, the node pairs of flows, and the
//! simulator's links.

use std::sync::Arc;

use anabranch_orbit::{Constellation as Shell, Place, Shells};
use anabranch_scenario::Spec;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::computed::Computed;
use anabranch_scenario::constellation::{
    Class, Constellation, Counted, Ground, LinkTransmitter, LoadShare, Meanwhile, Policy,
};
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::limits::MAX_NODES;
use anabranch_scenario::names::{MemberSelection, member_name};
use anabranch_scenario::tree::SpecNode;
use anabranch_settings::{KindError, Prepared};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::queue::QueueDiscipline;
use anabranch_sim::routing::RoutingKind;
use anabranch_sim::{
    BuildError, ConstellationConfig, DirectionConfig, ElevationStep, GroundAccess, GroundPolicy,
    Handover, HandoverTimes, LinkClass, LinkId, MovingRoutes, NodeId, Outage, PlacedLoss, Topology,
};
use anabranch_transport::Nanos;

use super::pairs::resolve_pairs;
use super::{NetworkError, over_time, place_of};
use crate::kinds::Standard;

/// Prepared parts of a constellation of a spec.
#[derive(Debug)]
pub struct ConstellationParts {
    shells: Shells,
    /// Queue and loss model of each class of links that exists.
    classes: Vec<(Class, ClassParts)>,
}

/// A prepared loss model, from which a separate model is built for each link, and the position of
/// the losses on a link.
type PreparedLoss = (
    Prepared<Box<dyn Loss>, Traffic>,
    anabranch_sim::LossPosition,
);

#[derive(Debug)]
struct ClassParts {
    queue: Option<Prepared<Box<dyn QueueDiscipline>>>,
    loss: Option<PreparedLoss>,
}

/// Builds the shells of a constellation.
///
/// # Errors
/// [`KindError`] if a shell cannot be built with its parameters.
pub fn shells(constellation: &Constellation, kinds: &Standard) -> Result<Shells, KindError> {
    let all = constellation.shells.iter();
    let all = all.map(|shell| {
        kinds
            .shells
            .build(&shell.kind, &shell.values(&kinds.shells), ())
    });
    Ok(Shells::new(all.collect::<Result<Vec<Shell>, _>>()?))
}

/// Numbers of satellites and of inter-satellite links of a constellation. Only one shell is in
/// memory at a time. Counting stops when there are more satellites than a world may have, because
/// the checks of the spec report that.
fn sizes(constellation: &Constellation, kinds: &Standard) -> Result<[u32; 2], KindError> {
    let (mut satellites, mut isls) = (0, 0);
    for shell in &constellation.shells {
        let shell = kinds
            .shells
            .build(&shell.kind, &shell.values(&kinds.shells), ())?;
        satellites += shell.len() as u32;
        isls += shell.isls().len() as u32;
        if u64::from(satellites) > MAX_NODES {
            break;
        }
    }
    Ok([satellites, isls])
}

/// Completes a decoded spec: counts the satellites and links of its constellations, and resolves
/// the node pairs of its flows. Errors of the constellations themselves are reported by the checks
/// of the spec.
pub fn complete(spec: &mut Spec, kinds: &Standard, root: &SpecNode) -> Vec<Diagnostic> {
    let mut checker = Checker::new(root);
    for constellation in &mut spec.constellations {
        let grounds = spec.grounds.iter();
        let users = grounds.filter(|ground| ground.uses(&constellation.name));
        let stations: u32 = users.map(|ground| ground.stations.len() as u32).sum();
        let stations = stations.saturating_mul(constellation.interfaces.0);
        let name = |class: Class| format!("{}-{}", constellation.name, class.name());
        let names = Class::ALL.map(name);
        let [satellites, isls] = sizes(constellation, kinds).unwrap_or_default();
        constellation.counted = Computed(Counted {
            satellites,
            isls,
            stations,
            names,
        });
    }
    let groups: Vec<(String, u32)> = spec
        .groups()
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    let grounds = spec.grounds.clone();
    for (index, flow) in spec.flows.iter_mut().enumerate() {
        let path = format!("flow.{index}");
        for (end, name) in [("from", &mut flow.from), ("to", &mut flow.to)] {
            match station(name, &grounds) {
                Ok(Some(number)) => *name = number,
                Ok(None) => {}
                Err(message) => checker.problem(&format!("{path}.{end}"), message),
            }
        }
        if let Err((key, message)) = resolve_pairs(flow, &groups, &grounds) {
            checker.problem(&format!("{path}.{key}"), message);
        }
    }
    checker.into_problems()
}

/// Replaces the name of a station in brackets, as in `city[Delhi]`, by its index: `city[1]`. `None`
/// if `name` contains no name of a station.
///
/// # Errors
/// The index of one station is also the name of another.
fn station(name: &str, grounds: &[Ground]) -> Result<Option<String>, String> {
    let Some((group, member)) = name.strip_suffix(']').and_then(|it| it.split_once('[')) else {
        return Ok(None);
    };
    let Some(ground) = grounds.iter().find(|ground| ground.name == group) else {
        return Ok(None);
    };
    let mut stations = ground.stations.iter();
    let Some(number) = stations.position(|it| it.name.as_deref() == Some(member)) else {
        return Ok(None);
    };
    let numbered = MemberSelection::parse(name);
    let own = number as u32..number as u32 + 1;
    if numbered.group == group && numbered.range(ground.stations.len() as u32) != own {
        return Err(format!(
            "found {name:?}, which is ambiguous: station {number} has the name {member:?}, but not this number; give it another name"
        ));
    }
    Ok(Some(format!("{group}[{number}]")))
}

impl ConstellationParts {
    /// The shells with their satellites.
    pub fn shells(&self) -> &Shells {
        &self.shells
    }

    /// Prepares the kinds of a constellation that was checked.
    ///
    /// # Errors
    /// [`KindError`] if a kind is unknown.
    pub fn of(constellation: &Constellation, kinds: &Standard) -> Result<Self, KindError> {
        let classes = Class::ALL.into_iter();
        let classes = classes.filter_map(|class| Some((class, constellation.transmitter(class)?)));
        let classes = classes.map(|(class, transmitter)| {
            Ok::<_, KindError>((class, ClassParts::of(transmitter, kinds)?))
        });
        Ok(Self {
            shells: shells(constellation, kinds)?,
            classes: classes.collect::<Result<_, _>>()?,
        })
    }
}

impl ClassParts {
    fn of(transmitter: &LinkTransmitter, kinds: &Standard) -> Result<Self, KindError> {
        let queue = transmitter.queue.as_ref();
        let queue = queue.map(|it| kinds.queues.prepare(&it.kind, it.values(&kinds.queues)));
        let loss = transmitter.loss.as_ref().map(|loss| {
            let prepared = kinds
                .losses
                .prepare(&loss.kind, loss.values(&kinds.losses))?;
            Ok::<_, KindError>((prepared, place_of(loss)))
        });
        Ok(Self {
            queue: queue.transpose()?,
            loss: loss.transpose()?,
        })
    }

    fn direction(
        &self,
        transmitter: &LinkTransmitter,
        traffic: &Traffic,
    ) -> Result<DirectionConfig, NetworkError> {
        let mut config = DirectionConfig::instant(0).with_rate(over_time(&transmitter.rate)?);
        if let Some(queue) = &self.queue {
            config.queue = queue.build(())?;
        }
        if let Some((loss, place)) = &self.loss {
            config = config.with_loss(PlacedLoss {
                place: *place,
                model: loss.build(traffic.clone())?,
                stream: None,
            });
        }
        let outages = transmitter.down.iter();
        let outages = outages.map(|[from, until]| Outage {
            from: from.0,
            until: until.0,
        });
        Ok(config.with_outages(outages))
    }
}

/// Adds a constellation to a topology, and returns its links class by class, in the order of
/// [`Spec::carriers`].
pub fn add(
    topology: &mut Topology,
    spec: &Spec,
    constellation: &Constellation,
    parts: &ConstellationParts,
    (traffic, event_driven): (&Traffic, bool),
) -> Result<Vec<Vec<LinkId>>, NetworkError> {
    let node = |name: &str, count: u32, index: u32| -> Result<NodeId, BuildError> {
        let found = topology.node(&member_name(name, count, index));
        found.ok_or(BuildError::UnknownNode(index as usize))
    };
    let count = constellation.counted.satellites;
    let satellites = (0..count).map(|index| node(&constellation.name, count, index));
    let satellites = satellites.collect::<Result<_, _>>()?;
    let mut stations = Vec::new();
    for ground in spec
        .grounds
        .iter()
        .filter(|it| it.uses(&constellation.name))
    {
        let count = ground.stations.len() as u32;
        for (index, station) in (0..).zip(&ground.stations) {
            stations.push((node(&ground.name, count, index)?, place(&station.at)?));
        }
    }
    let handover = constellation.handover;
    let config = ConstellationConfig {
        name: constellation.name.clone(),
        shells: parts.shells.clone(),
        satellites,
        stations,
        start: constellation.start.0,
        access: GroundAccess {
            policy: match constellation.policy {
                Policy::Any => GroundPolicy::Any,
                Policy::Nearest => GroundPolicy::Nearest,
                Policy::Longest => GroundPolicy::Longest,
            },
            times: constellation.changes.as_ref().map(|it| HandoverTimes {
                times: it.times.iter().map(|time| time.0).collect(),
                repeat: it.repeat.map(|repeat| repeat.0),
            }),
            interfaces: constellation.interfaces.0 as usize,
            up: elevations(&constellation.up),
            shared: constellation.up.rate_by_load == Some(LoadShare::Equal),
            down: elevations(&constellation.down),
            gap: handover.map_or(0, |it| it.gap.0),
            handover: match handover.map(|it| it.packets) {
                Some(Meanwhile::Drop) => Handover::Drop,
                _ => Handover::Hold,
            },
        },
    };
    let links = topology.add_constellation(config, |class| {
        let class = match class {
            LinkClass::Isl => Class::Isl,
            LinkClass::Up => Class::Up,
            LinkClass::Down => Class::Down,
        };
        let own = parts.classes.iter().find(|(known, _)| *known == class);
        let own = own.zip(constellation.transmitter(class));
        let mut config = match own {
            Some(((_, parts), transmitter)) => parts.direction(transmitter, traffic)?,
            None => DirectionConfig::instant(0),
        };
        config.event_driven = event_driven;
        Ok::<_, NetworkError>(config)
    })?;
    let all = [
        (Class::Isl, links.isl),
        (Class::Up, links.up),
        (Class::Down, links.down),
    ];
    let there = all.into_iter();
    let there = there.filter(|(class, _)| constellation.transmitter(*class).is_some());
    Ok(there.map(|(_, links)| links).collect())
}

/// Rates of a transmitter by elevation, in the simulator's form.
fn elevations(transmitter: &LinkTransmitter) -> Vec<ElevationStep> {
    let steps = transmitter.rate_by_elevation.iter();
    let steps = steps.map(|&[elevation, share]| ElevationStep { elevation, share });
    steps.collect()
}

/// Parses a place on the Earth as written in a spec.
pub fn place(text: &str) -> Result<Place, NetworkError> {
    text.parse()
        .map_err(|error| NetworkError::Kind(KindError::together(format!("`stations`: {error}"))))
}

/// Prepared routing over constellations.
#[derive(Debug)]
pub struct RoutingParts {
    kind: Arc<Prepared<Box<dyn RoutingKind>>>,
    interval: Nanos,
    relays: bool,
}

impl RoutingParts {
    /// Prepares the routing of a spec that was checked; `None` if it has none.
    ///
    /// # Errors
    /// [`KindError`] if the routing kind is unknown.
    pub fn of(spec: &Spec, kinds: &Standard) -> Result<Option<Self>, KindError> {
        let Some(routing) = &spec.world.routing else {
            return Ok(None);
        };
        let values = routing.values(&kinds.routings);
        Ok(Some(Self {
            kind: Arc::new(kinds.routings.prepare(&routing.kind, values)?),
            interval: routing.interval(),
            relays: routing.relays(),
        }))
    }

    /// Sets the routing of a topology.
    ///
    /// # Errors
    /// [`KindError`] if the routing kind cannot be built.
    pub fn apply(&self, topology: &mut Topology) -> Result<(), KindError> {
        // Builds the kind once to find errors here. The routers then build it again without errors,
        // because building is deterministic.
        drop(self.kind.build(())?);
        let kind = Arc::clone(&self.kind);
        let otherwise = MovingRoutes::default().kind;
        topology.set_moving_routes(MovingRoutes {
            kind: Box::new(move || kind.build(()).unwrap_or_else(|_| otherwise())),
            interval: self.interval,
            relays: self.relays,
        });
        Ok(())
    }
}
