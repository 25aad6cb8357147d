//! Conversion of a spec's nodes, links, queues, losses, addresses and routes to the simulator's
//! topology.

pub mod constellation;
pub mod constellation_checks;
pub(crate) mod ideal_transfer;
pub mod multihoming;
mod pairs;
pub mod routes;
mod wifi;

use std::net::IpAddr;

use anabranch_scenario::kind_families::LossPlacement;
use anabranch_scenario::names::{
    MemberSelection, carrier_members, count_of, link_members, member_name,
};
use anabranch_scenario::rates::RateOverTime;
use anabranch_scenario::wifi::LinkMedium;
use anabranch_scenario::world::Impairment;
use anabranch_scenario::{Link, Spec};
use anabranch_settings::{KindError, Prepared};
use anabranch_sim::loss::{Loss, Traffic};
use anabranch_sim::propagation::Propagation;
use anabranch_sim::queue::QueueDiscipline;
use anabranch_sim::{
    BuildError, DirectionConfig, Impairments, LinkConfig, LinkId, LossPosition, NodeId, Outage,
    PlacedLoss, Probability, Reordering, StepFunction, Topology,
};

use crate::flows::NumberedMember;
use crate::kinds::Standard;
use crate::medium;
use constellation::{ConstellationParts, RoutingParts};

/// Default maximum delay of a reordered packet, nanoseconds.
const REORDER_DELAY: u64 = 10_000_000;

/// Reason why the network of a spec cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The simulator rejects the network.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A kind in the spec cannot be built.
    #[error(transparent)]
    Kind(#[from] KindError),
    /// The paths of a flow cannot be given addresses.
    #[error(transparent)]
    Address(#[from] multihoming::AddressError),
}

/// Addresses and routes of a spec, with all names resolved.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// Static routes: node, destination address, and the link to use.
    pub routes: Vec<(NodeId, IpAddr, LinkId)>,
    /// Addresses of interfaces that differ from the automatic addresses.
    pub addresses: Vec<(NodeId, LinkId, IpAddr)>,
}

impl Layout {
    /// Adds the addresses and routes to a topology that was built from the same spec.
    ///
    /// # Errors
    /// [`BuildError`] if the simulator rejects an address or a route.
    pub fn apply(&self, topology: &mut Topology) -> Result<(), BuildError> {
        for &(node, destination, via) in &self.routes {
            topology.add_route(node, destination, via)?;
        }
        for &(node, link, address) in &self.addresses {
            topology.set_address(node, link, address)?;
        }
        Ok(())
    }
}

/// A topology of the simulator, and the simulator's links that belong to each link of the spec.
pub struct Built {
    /// The topology.
    pub topology: Topology,
    /// Links of the simulator that are members of each link of the spec, in the order of
    /// [`Spec::carriers`].
    pub links: Vec<Vec<LinkId>>,
}

/// Forward rate of a link; for a cell, the rate of its data frames.
pub fn rate(link: LinkMedium<'_>) -> RateOverTime {
    match link {
        LinkMedium::Wire(link) => forward_rate(link),
        LinkMedium::Air(cell) => medium::parameters(cell).data_rate.into(),
        LinkMedium::Beam(constellation, class) => {
            let transmitter = constellation.transmitter(class);
            transmitter.map_or(0.into(), |it| it.rate.clone())
        }
    }
}

/// Forward rate of a link that was checked.
pub fn forward_rate(link: &Link) -> RateOverTime {
    let rate = link.rate.side(true).cloned();
    rate.unwrap_or_else(|| 0.into())
}

/// Whether any link corrupts packets, so that checksums must be computed and verified.
pub fn corrupts(spec: &Spec) -> bool {
    let impairments = spec
        .links
        .iter()
        .flat_map(|link| [&link.impairment.forward, &link.impairment.backward]);
    impairments
        .flatten()
        .any(|impairment| impairment.corrupt.0 > 0.0)
}

/// Prepared kinds of the links and constellations of a spec, with their parameters.
#[derive(Debug)]
pub struct Parts {
    /// Kinds of each link, forward and backward.
    links: Vec<[Direction; 2]>,
    constellations: Vec<ConstellationParts>,
    routing: Option<RoutingParts>,
    /// See [`Standard::event_driven`].
    event_driven: bool,
}

/// A prepared loss model, which is built with the flows of the world as its context.
type LossKind = Prepared<Box<dyn Loss>, Traffic>;

/// The kinds of a direction of a link.
#[derive(Debug)]
struct Direction {
    queue: Option<Prepared<Box<dyn QueueDiscipline>>>,
    /// Propagation model, and whether packets may overtake one another.
    propagation: Option<(Prepared<Box<dyn Propagation>>, bool)>,
    loss: Option<(LossKind, LossPosition)>,
}

impl Parts {
    /// Parts of the constellations, in the order of the spec.
    pub fn constellations(&self) -> &[ConstellationParts] {
        &self.constellations
    }

    /// Prepares the kinds of a spec that was checked.
    ///
    /// # Errors
    /// [`KindError`] if a kind is unknown or cannot be built.
    pub fn new(spec: &Spec, kinds: &Standard) -> Result<Self, KindError> {
        let links = spec.links.iter();
        let links = links.map(|link| Ok([of(kinds, link, true)?, of(kinds, link, false)?]));
        Ok(Self {
            links: links.collect::<Result<_, KindError>>()?,
            constellations: spec
                .constellations
                .iter()
                .map(|it| ConstellationParts::of(it, kinds))
                .collect::<Result<_, _>>()?,
            routing: RoutingParts::of(spec, kinds)?,
            event_driven: kinds.event_driven,
        })
    }
}

fn of(kinds: &Standard, link: &Link, forward: bool) -> Result<Direction, KindError> {
    let queue = link.queue.side(forward).map(|queue| {
        let kinds = &kinds.queues;
        kinds.prepare(&queue.kind, queue.values(kinds))
    });
    let propagation = link.delay.side(forward).map(|propagation| {
        let kinds = &kinds.propagations;
        let prepared = kinds.prepare(&propagation.kind, propagation.values(kinds))?;
        Ok::<_, KindError>((prepared, propagation.allow_reordering()))
    });
    let loss = link.loss.side(forward).map(|loss| {
        let kinds = &kinds.losses;
        let prepared = kinds.prepare(&loss.kind, loss.values(kinds))?;
        Ok::<_, KindError>((prepared, place_of(loss)))
    });
    Ok(Direction {
        queue: queue.transpose()?,
        propagation: propagation.transpose()?,
        loss: loss.transpose()?,
    })
}

/// Position of a loss model on the link.
fn place_of(loss: &anabranch_scenario::Loss) -> LossPosition {
    match loss.place() {
        LossPlacement::BeforeQueue => LossPosition::BeforeQueue,
        LossPlacement::AfterQueue => LossPosition::AfterQueue,
    }
}

/// Builds the topology of a spec that was checked, without its addresses and routes. Loss models
/// use `traffic` to identify flows.
///
/// # Errors
/// [`NetworkError`].
pub fn build(spec: &Spec, parts: &Parts, traffic: &Traffic) -> Result<Built, NetworkError> {
    let mut topology = Topology::new();
    for (name, count) in spec.groups() {
        for index in 0..count {
            topology.add_node(member_name(name, count, index))?;
        }
    }
    let mut links = Vec::with_capacity(spec.links.len());
    for (link, [forward, backward]) in spec.links.iter().zip(&parts.links) {
        let config = |to_second, direction| {
            let mut config = configure(link, to_second, direction, traffic)?;
            config.event_driven = parts.event_driven;
            Ok::<_, NetworkError>(config)
        };
        let both = || Ok([config(true, forward)?, config(false, backward)?]);
        links.push(add_link(&mut topology, spec, link, both)?);
    }
    for cell in &spec.cells {
        links.push(wifi::add_cell(&mut topology, spec, cell)?);
    }
    for (constellation, own) in spec.constellations.iter().zip(&parts.constellations) {
        let how = (traffic, parts.event_driven);
        links.extend(constellation::add(
            &mut topology,
            spec,
            constellation,
            own,
            how,
        )?);
    }
    if let Some(routing) = &parts.routing {
        routing.apply(&mut topology)?;
    }
    Ok(Built { topology, links })
}

/// Node at the end of member `index` of a group of links or flows. If `name` contains the index of
/// a node, the result is this node. Otherwise it is the node whose index is `index`, or the only
/// node of the group.
pub fn end(topology: &Topology, spec: &Spec, name: &str, index: u32) -> Result<NodeId, BuildError> {
    let name = MemberSelection::parse(name);
    let group = name.group;
    let count = count_of(spec, group).unwrap_or(1);
    let range = name.range(count);
    let member = match range.len() {
        1 => range.start,
        _ => range.start + index,
    };
    topology
        .node(&member_name(group, count, member))
        .ok_or(BuildError::UnknownNode(member as usize))
}

/// Source node and sink node of a member of a flow.
pub fn ends(
    topology: &Topology,
    spec: &Spec,
    member: &NumberedMember<'_>,
) -> Result<[NodeId; 2], BuildError> {
    let flow = member.flow;
    let ends = [&flow.from, &flow.to];
    if let Some(pair) = flow.matrix.get(member.index as usize) {
        let of = |place: usize| {
            let group = MemberSelection::parse(ends[place]).group;
            end(topology, spec, &format!("{group}[{}]", pair[place]), 0)
        };
        return Ok([of(0)?, of(1)?]);
    }
    Ok([
        end(topology, spec, ends[0], member.index)?,
        end(topology, spec, ends[1], member.index)?,
    ])
}

/// Whether a link connects the members of a group to a chain.
fn is_chain(link: &Link) -> bool {
    link.between[0] == link.between[1]
}

/// Names of all members of all links.
pub fn link_names(spec: &Spec) -> Vec<String> {
    let links = spec.carriers();
    let links = links.map(|link| (link.name(), carrier_members(spec, link)));
    links
        .flat_map(|(name, count)| (0..count).map(move |index| member_name(name, count, index)))
        .collect()
}

fn add_link(
    topology: &mut Topology,
    spec: &Spec,
    link: &Link,
    directions: impl Fn() -> Result<[DirectionConfig; 2], NetworkError>,
) -> Result<Vec<LinkId>, NetworkError> {
    let count = link_members(spec, link);
    let [first, second] = &link.between;
    let chained = u32::from(is_chain(link));
    let mut ids = Vec::with_capacity(count as usize);
    for index in 0..count {
        let between = [
            end(topology, spec, first, index)?,
            end(topology, spec, second, index + chained)?,
        ];
        let [forward, backward] = directions()?;
        ids.push(topology.add_link(LinkConfig {
            name: member_name(&link.name, count, index),
            between,
            forward,
            backward,
        })?);
    }
    Ok(ids)
}

/// Builds the simulator's configuration for one direction of a link.
fn configure(
    link: &Link,
    forward: bool,
    direction: &Direction,
    traffic: &Traffic,
) -> Result<DirectionConfig, NetworkError> {
    let mut config = DirectionConfig::instant(0);
    if let Some(rate) = link.rate.side(forward) {
        config = config.with_rate(over_time(rate)?);
    }
    if let Some((propagation, allow_reordering)) = &direction.propagation {
        config.propagation = propagation.build(())?;
        config.allow_reordering = *allow_reordering;
    }
    if let Some(queue) = &direction.queue {
        config.queue = queue.build(())?;
    }
    if let Some((loss, place)) = &direction.loss {
        config = config.with_loss(PlacedLoss {
            place: *place,
            model: loss.build(traffic.clone())?,
            stream: None,
        });
    }
    if let Some(impairment) = link.impairment.side(forward) {
        config = config.with_impairments(impairments(impairment)?);
    }
    let changes = link.mtu_changes.iter();
    config = config.with_mtu(
        link.mtu.map(|mtu| mtu.0 as usize),
        changes.map(|(from, mtu)| (from.0, mtu.0 as usize)),
    );
    let outages = link.outages(forward).into_iter();
    Ok(config.with_outages(outages.map(|[from, until]| Outage { from, until })))
}

fn over_time(rate: &RateOverTime) -> Result<StepFunction<u64>, BuildError> {
    let steps = rate.steps();
    let values = StepFunction::steps(steps[0].1, steps.iter().copied())?;
    match rate.repeat() {
        Some(period) => values.repeating(period),
        None => Ok(values),
    }
}

fn impairments(spec: &Impairment) -> Result<Impairments, BuildError> {
    Ok(Impairments {
        reordering: Reordering {
            probability: Probability::new(spec.reorder.0)?,
            up_to: spec.reorder_delay.map_or(REORDER_DELAY, |delay| delay.0),
        },
        duplication: Probability::new(spec.duplicate.0)?,
        corruption: Probability::new(spec.corrupt.0)?,
    })
}
