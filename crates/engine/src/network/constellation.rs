//! Constellations of a spec: number of satellites, pairs of nodes of flows, and the simulator's
//! links.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use anabranch_orbit::{Constellation as Shell, Place, Shells};
use anabranch_scenario::checker::Checker;
use anabranch_scenario::computed::Computed;
use anabranch_scenario::constellation::{
    Class, Constellation, Counted, Ground, Meanwhile, Pairs, Policy, RandomPairs, Transmitter,
    Weights,
};
use anabranch_scenario::diagnostic::Diagnostic;
use anabranch_scenario::limits::MAX_NODES;
use anabranch_scenario::names::{Name, member_name};
use anabranch_scenario::quantity::Count;
use anabranch_scenario::tree::Node;
use anabranch_scenario::validate::MAX_FLOWS;
use anabranch_scenario::{Flow, Spec};
use anabranch_settings::{Prepared, Refusal};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::queue::QueueDiscipline;
use anabranch_sim::routing::RoutingKind;
use anabranch_sim::{
    BuildError, ConstellationConfig, DirectionConfig, ElevationStep, GroundAccess, GroundPolicy,
    Handover, HandoverTimes, LinkClass, LinkId, MovingRoutes, NodeId, Outage, PlacedLoss, Rng,
    Seed, Topology,
};
use anabranch_transport::Nanos;

use super::{NetworkError, over_time, place_of};
use crate::kinds::Standard;

/// A constellation of a spec, ready to be built.
#[derive(Debug)]
pub struct ConstellationParts {
    shells: Shells,
    /// Queue and loss of each class of links that exists.
    classes: Vec<(Class, ClassParts)>,
}

/// A loss model, to be built for each link, and its position.
type PreparedLoss = (
    Prepared<Box<dyn Loss>, Traffic>,
    anabranch_sim::LossPosition,
);

#[derive(Debug)]
struct ClassParts {
    queue: Option<Prepared<Box<dyn QueueDiscipline>>>,
    loss: Option<PreparedLoss>,
}

/// The shells of a constellation.
///
/// # Errors
/// A kind that cannot be built with its parameters.
pub fn shells(constellation: &Constellation, kinds: &Standard) -> Result<Shells, Refusal> {
    let all = constellation.shells.iter();
    let all = all.map(|shell| {
        kinds
            .shells
            .build(&shell.kind, &shell.values(&kinds.shells), ())
    });
    Ok(Shells::new(all.collect::<Result<Vec<Shell>, _>>()?))
}

/// Numbers of satellites and of links between them. Only one shell is in memory at a time. Counting
/// ends when there are more satellites than a world may have, because the checks of the spec report
/// that.
fn sizes(constellation: &Constellation, kinds: &Standard) -> Result<[u32; 2], Refusal> {
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

/// Counts the satellites and links of the constellations of a decoded spec, and resolves the pairs
/// of its flows. Faults of the constellations themselves are reported by the checks of the spec.
pub fn complete(spec: &mut Spec, kinds: &Standard, root: &Node) -> Vec<Diagnostic> {
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

/// The name with the number of the station that `name` names by its own name.
///
/// # Errors
/// The number of one station is the name of another.
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
    let numbered = Name::parse(name);
    let own = number as u32..number as u32 + 1;
    if numbered.group == group && numbered.range(ground.stations.len() as u32) != own {
        return Err(format!(
            "found {name:?}, which is ambiguous: station {number} has the name {member:?}, but not this number; give it another name"
        ));
    }
    Ok(Some(format!("{group}[{number}]")))
}

/// Maximum number of pairs of two groups from which pairs are drawn by weight.
const MAX_WEIGHTED: usize = 10_000_000;

type Wrong = (&'static str, String);

/// Resolves the pairs of a flow.
fn resolve_pairs(
    flow: &mut Flow,
    groups: &[(String, u32)],
    grounds: &[Ground],
) -> Result<(), Wrong> {
    let Some(pairs) = &flow.pairs else {
        return Ok(());
    };
    let members = |name: &str| -> Option<Range<u32>> {
        let name = Name::parse(name);
        let (_, count) = groups.iter().find(|(group, _)| group == name.group)?;
        let Range { start, end } = name.range(*count);
        Some(start.min(*count)..end.min(*count))
    };
    // An unknown name is reported by the check of names.
    let (Some(from), Some(to)) = (members(&flow.from), members(&flow.to)) else {
        return Ok(());
    };
    let same = Name::parse(&flow.from).group == Name::parse(&flow.to).group;
    let matrix: Vec<[u32; 2]> = match pairs {
        Pairs::All => {
            let all = from.flat_map(|one| to.clone().map(move |other| [one, other]));
            let all = all.filter(|[one, other]| !same || one != other);
            all.take(MAX_FLOWS as usize + 1).collect()
        }
        Pairs::List(list) => {
            for (index, [one, other]) in list.iter().enumerate() {
                if !from.contains(one) || !to.contains(other) {
                    let message = format!(
                        "pair {index}: found [{one}, {other}]; allowed: members of {:?} and of {:?}",
                        flow.from, flow.to
                    );
                    return Err(("pairs", message));
                }
                if same && one == other {
                    let message =
                        format!("pair {index}: found [{one}, {other}], a node and itself");
                    return Err(("pairs", message));
                }
            }
            list.clone()
        }
        Pairs::Random(random) => {
            let weights = match random.weights {
                Some(Weights::Population) => Some([
                    populations(grounds, &flow.from, &from)?,
                    populations(grounds, &flow.to, &to)?,
                ]),
                None => None,
            };
            drawn(random, from, to, (same, weights))?
        }
    };
    if matrix.is_empty() {
        return Err(("pairs", "found no pairs; nothing would be sent".to_owned()));
    }
    let count = Count(matrix.len() as u32);
    // A spec that was written with its resolved values has this count.
    if flow.count != Count::default() && flow.count != count {
        let message = "found another count than that of the `pairs`, which say how many there are; leave it out";
        return Err(("count", message.to_owned()));
    }
    flow.count = count;
    flow.matrix = Computed(matrix);
    Ok(())
}

/// The populations of members of a ground.
fn populations(grounds: &[Ground], name: &str, members: &Range<u32>) -> Result<Vec<f64>, Wrong> {
    let group = Name::parse(name).group;
    let ground = grounds.iter().find(|ground| ground.name == group);
    let stations = ground.map_or(&[][..], |it| &it.stations);
    let of = |member: u32| {
        let station = stations.get(member as usize);
        let population = station.and_then(|it| it.population);
        population.ok_or_else(|| {
            let message = format!(
                "found weights by population, but {group}[{member}] has no `population`; give it to each station, or a column of the file"
            );
            ("pairs", message)
        })
    };
    members.clone().map(of).collect()
}

/// The order in which items are drawn without repetition, in proportion to their weights: that of
/// exponentially distributed keys with these rates (Efraimidis and Spirakis, *Weighted random
/// sampling with a reservoir*, 2006). Items without weight are never drawn.
fn weighted<T: Copy>(items: impl Iterator<Item = (T, f64)>, rng: &mut Rng) -> Vec<T> {
    let keyed = items.filter(|(_, weight)| *weight > 0.0);
    let keyed = keyed.map(|(item, weight)| (-libm::log(rng.unit()) / weight, item));
    let mut keyed: Vec<(f64, T)> = keyed.collect();
    keyed.sort_by(|one, other| one.0.total_cmp(&other.0));
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Random pairs without repetition.
fn drawn(
    random: &RandomPairs,
    from: Range<u32>,
    to: Range<u32>,
    (same, weights): (bool, Option<[Vec<f64>; 2]>),
) -> Result<Vec<[u32; 2]>, Wrong> {
    let most = match same {
        true => from.len() / 2,
        false => from.len() * to.len(),
    };
    let most = most.min(MAX_FLOWS as usize);
    let wanted = random.random as usize;
    if wanted == 0 || wanted > most {
        let message = format!("found {wanted} random pairs; allowed: 1 to {most}");
        return Err(("pairs", message));
    }
    let mut rng = Seed::new(u64::from(random.seed), 0).stream("pairs");
    let mut pairs: Vec<[u32; 2]> = Vec::with_capacity(wanted);
    if let Some([ours, theirs]) = weights {
        let all = if same {
            let order = weighted(from.zip(ours), &mut rng);
            order.chunks_exact(2).map(|it| [it[0], it[1]]).collect()
        } else if from.len() * to.len() > MAX_WEIGHTED {
            let message = format!(
                "found {} x {} members; with `weights` there are at most {MAX_WEIGHTED} pairs to draw from",
                from.len(),
                to.len()
            );
            return Err(("pairs", message));
        } else {
            let theirs = to.zip(theirs).collect::<Vec<_>>();
            let all = from.zip(ours).flat_map(|(one, own)| {
                let pairs = theirs.iter();
                pairs.map(move |(other, weight)| ([one, *other], own * weight))
            });
            weighted(all, &mut rng)
        };
        pairs.extend(all.iter().take(wanted));
        if pairs.len() < wanted {
            let found = pairs.len();
            let message =
                format!("found {wanted} random pairs, but members with a population form {found}");
            return Err(("pairs", message));
        }
    } else if same {
        // Fisher-Yates shuffle.
        let mut order: Vec<u32> = from.collect();
        for last in (1..order.len()).rev() {
            order.swap(last, rng.below(last as u64 + 1) as usize);
        }
        pairs.extend(
            order
                .chunks_exact(2)
                .take(wanted)
                .map(|pair| [pair[0], pair[1]]),
        );
    } else {
        let mut seen = BTreeSet::new();
        while pairs.len() < wanted {
            let one = from.start + rng.below(from.len() as u64) as u32;
            let other = to.start + rng.below(to.len() as u64) as u32;
            if seen.insert((one, other)) {
                pairs.push([one, other]);
            }
        }
    }
    if random.both {
        pairs = pairs
            .iter()
            .flat_map(|&[one, other]| [[one, other], [other, one]])
            .collect();
    }
    Ok(pairs)
}

impl ConstellationParts {
    /// The satellites.
    pub fn shells(&self) -> &Shells {
        &self.shells
    }

    /// The parts of a checked spec.
    ///
    /// # Errors
    /// An unknown kind.
    pub fn of(constellation: &Constellation, kinds: &Standard) -> Result<Self, Refusal> {
        let classes = Class::ALL.into_iter();
        let classes = classes.filter_map(|class| Some((class, constellation.transmitter(class)?)));
        let classes = classes.map(|(class, transmitter)| {
            Ok::<_, Refusal>((class, ClassParts::of(transmitter, kinds)?))
        });
        Ok(Self {
            shells: shells(constellation, kinds)?,
            classes: classes.collect::<Result<_, _>>()?,
        })
    }
}

impl ClassParts {
    fn of(transmitter: &Transmitter, kinds: &Standard) -> Result<Self, Refusal> {
        let queue = transmitter.queue.as_ref();
        let queue = queue.map(|it| kinds.queues.prepare(&it.kind, it.values(&kinds.queues)));
        let loss = transmitter.loss.as_ref().map(|loss| {
            let prepared = kinds
                .losses
                .prepare(&loss.kind, loss.values(&kinds.losses))?;
            Ok::<_, Refusal>((prepared, place_of(loss)))
        });
        Ok(Self {
            queue: queue.transpose()?,
            loss: loss.transpose()?,
        })
    }

    fn direction(
        &self,
        transmitter: &Transmitter,
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

/// Adds a constellation: its links, class by class, in the order of [`Spec::carriers`].
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

/// The rates of a transmitter by elevation.
fn elevations(transmitter: &Transmitter) -> Vec<ElevationStep> {
    let steps = transmitter.rate_by_elevation.iter();
    let steps = steps.map(|&[elevation, share]| ElevationStep { elevation, share });
    steps.collect()
}

/// Parses a place of a spec.
pub fn place(text: &str) -> Result<Place, NetworkError> {
    text.parse()
        .map_err(|error| NetworkError::Kind(Refusal::together(format!("`stations`: {error}"))))
}

/// Routing over constellations, as configured in a spec.
#[derive(Debug)]
pub struct RoutingParts {
    kind: Arc<Prepared<Box<dyn RoutingKind>>>,
    interval: Nanos,
    relays: bool,
}

impl RoutingParts {
    /// The routing of a checked spec, if it has one.
    ///
    /// # Errors
    /// An unknown kind.
    pub fn of(spec: &Spec, kinds: &Standard) -> Result<Option<Self>, Refusal> {
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

    /// Applies the routing to a topology.
    ///
    /// # Errors
    /// A kind that cannot be built.
    pub fn apply(&self, topology: &mut Topology) -> Result<(), Refusal> {
        // Building it once here finds all errors, because building is deterministic.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Weights 6, 3, 1 and 0: the first is drawn first in 60 % of draws; the last never.
    #[test]
    fn items_are_drawn_in_proportion_to_their_weights() {
        let mut rng = Seed::new(7, 0).stream("weights");
        let mut first = [0; 4];
        let mut second = [0; 4];
        for _ in 0..20_000 {
            let items = (0..4).zip([6.0, 3.0, 1.0, 0.0]);
            let drawn = weighted(items, &mut rng);
            assert_eq!(drawn.len(), 3);
            first[drawn[0]] += 1;
            second[drawn[1]] += 1;
        }
        let is_near = |found: i32, share: f64| (f64::from(found) / 20_000.0 - share).abs() < 0.015;
        assert!(
            is_near(first[0], 0.6) && is_near(first[1], 0.3),
            "{first:?}"
        );
        // 3 of the 4 that are left after the first, 6 of 7 after the second, and so on.
        let wanted = 0.6 * 0.25 + 0.3 / 7.0;
        assert!(is_near(second[2], wanted), "{second:?}");
    }
}
