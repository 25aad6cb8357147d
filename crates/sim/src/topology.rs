//! Topology: nodes, links, interfaces, addresses and routes.

mod constellation;
mod ground_rate;
mod wireless;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;

use crate::error::BuildError;
use crate::ids::{AddressFamily, LinkDirection, LinkId, NodeId};
use crate::link::{DirectionConfig, LinkConfig};
use crate::routing::{LeastDelay, RoutingKind};

use wireless::Wireless;

pub(crate) use constellation::Constellation;
pub use constellation::{
    ConstellationConfig, ConstellationLinks, GroundAccess, GroundPolicy, Handover, HandoverTimes,
    LinkClass,
};
pub use ground_rate::ElevationStep;
pub use wireless::MediumConfig;
pub(crate) use wireless::WirelessMedium;

/// Maximum number of links, because each needs automatic addresses.
const MAX_LINKS: usize = 1 << 16;

/// An interface: the connection of a node to a link. Interface `2 n` is at the first end of link
/// `n`, and `2 n + 1` at the second. The simplex link with the same number carries the packets that
/// the interface sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interface {
    pub node: NodeId,
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl Interface {
    pub fn address(&self, family: AddressFamily) -> IpAddr {
        match family {
            AddressFamily::V4 => self.v4.into(),
            AddressFamily::V6 => self.v6.into(),
        }
    }

    pub fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(address) => address == self.v4,
            IpAddr::V6(address) => address == self.v6,
        }
    }
}

/// A static route at a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenRoute {
    pub node: NodeId,
    pub target: u32,
    pub via: u32,
}

/// Reaction of computed routes to links that go down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// None: packets on the shortest route are sent even if a link on it is down.
    Static,
    /// A link is used while both of its directions are up, as with routers that exchange hello
    /// packets. All routers know of a change after the delay `after`. If there is no other route to
    /// an interface, packets are sent to the link that is down.
    FollowsLinks {
        /// Delay of detection and convergence together, nanoseconds.
        after: Nanos,
    },
}

impl Default for Routing {
    /// All routers know of changes immediately.
    fn default() -> Self {
        Routing::FollowsLinks { after: 0 }
    }
}

/// Settings of the routing between moving nodes.
pub struct MovingRoutes {
    /// Creates the routing kind; called once for each router.
    pub kind: Box<dyn Fn() -> Box<dyn RoutingKind>>,
    /// Routes are computed at multiples of this interval in nanoseconds, and are constant between
    /// them; 0 counts as 1.
    pub interval: Nanos,
    /// Whether stations forward packets from satellites to satellites.
    pub relays: bool,
}

impl Default for MovingRoutes {
    /// Routes of the least delay, computed every 100 ms, without forwarding by stations.
    fn default() -> Self {
        Self {
            kind: Box::new(|| Box::new(LeastDelay {})),
            interval: 100 * MILLISECOND,
            relays: false,
        }
    }
}

impl std::fmt::Debug for MovingRoutes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MovingRoutes")
            .field("interval", &self.interval)
            .field("relays", &self.relays)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Node {
    name: String,
    interfaces: Vec<u32>,
}

/// The builder of a world's topology.
///
/// Every interface has an IPv4 and an IPv6 address: on link `n`, `10.x.y.1` and `10.x.y.2` with
/// `n = 256 x + y`, and `fd00::n:1` and `fd00::n:2` (`n` in hexadecimal). [`Topology::set_address`]
/// changes an address.
///
/// Packets take the route with the fewest links that arrives at the interface with the destination
/// address, because the addresses of a node are separate paths. Only if there is no such route do
/// they arrive at another interface of the node. Packets are routed around links that are down (see
/// [`Routing`]). [`Topology::add_route`] adds static routes, which take precedence. A sender with
/// several interfaces sends from the interface with the source address. There are two exceptions:
/// the packet would return to the sender, or a static route specifies another interface.
#[derive(Debug, Default)]
pub struct Topology {
    nodes: Vec<Node>,
    interfaces: Vec<Interface>,
    pub(crate) links: Vec<LinkConfig>,
    pub(crate) given_routes: Vec<GivenRoute>,
    pub(crate) wireless: Wireless,
    pub(crate) routing: Routing,
    pub(crate) constellations: Vec<Constellation>,
    pub(crate) moving_routes: MovingRoutes,
    /// Indices of nodes and links by name, and of interfaces by address.
    node_names: BTreeMap<String, u32>,
    link_names: BTreeMap<String, u32>,
    addresses: BTreeMap<IpAddr, u32>,
}

impl Topology {
    /// An empty topology.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    ///
    /// # Errors
    /// [`BuildError::DuplicateNode`].
    pub fn add_node(&mut self, name: impl Into<String>) -> Result<NodeId, BuildError> {
        let name = name.into();
        if self.node(&name).is_some() {
            return Err(BuildError::DuplicateNode(name));
        }
        let id = self.nodes.len() as u32;
        self.node_names.insert(name.clone(), id);
        self.nodes.push(Node {
            name,
            interfaces: Vec::new(),
        });
        Ok(NodeId(id))
    }

    /// Adds a link, and an interface at each of its nodes.
    ///
    /// # Errors
    /// [`BuildError::DuplicateLink`], [`BuildError::UnknownNode`], [`BuildError::LinkToItself`],
    /// [`BuildError::TooManyLinks`]; [`BuildError::AddressTaken`] if one of its addresses was
    /// already assigned by [`Self::set_address`].
    pub fn add_link(&mut self, link: LinkConfig) -> Result<LinkId, BuildError> {
        let [first, second] = link.between;
        for node in link.between {
            self.check(node)?;
        }
        if first == second {
            let node = self.node_name(first).to_owned();
            return Err(BuildError::LinkToItself {
                link: link.name,
                node,
            });
        }
        let id = self.add_ends(link)?;
        self.nodes[first.index()].interfaces.push(id.0 * 2);
        self.nodes[second.index()].interfaces.push(id.0 * 2 + 1);
        Ok(id)
    }

    /// Adds the transmitter of a ground interface: a link whose second interface never sends,
    /// because each packet specifies its receiver.
    fn add_transmitter(
        &mut self,
        name: String,
        node: NodeId,
        forward: DirectionConfig,
    ) -> Result<LinkId, BuildError> {
        let id = self.add_ends(LinkConfig {
            name,
            between: [node, node],
            forward,
            backward: DirectionConfig::instant(0),
        })?;
        self.nodes[node.index()].interfaces.push(id.0 * 2);
        Ok(id)
    }

    /// Adds a link and its two interfaces, which do not belong to a node yet.
    fn add_ends(&mut self, link: LinkConfig) -> Result<LinkId, BuildError> {
        if self.link(&link.name).is_some() {
            return Err(BuildError::DuplicateLink(link.name));
        }
        if self.links.len() == MAX_LINKS {
            return Err(BuildError::TooManyLinks(MAX_LINKS));
        }
        let [first, second] = link.between;
        let number = self.links.len() as u16;
        let [high, low] = number.to_be_bytes();
        let ends = [(first, 1u8), (second, 2u8)].map(|(node, host)| Interface {
            node,
            v4: Ipv4Addr::new(10, high, low, host),
            v6: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, number, host.into()),
        });
        for end in &ends {
            for address in [end.v4.into(), end.v6.into()] {
                self.check_free(address)?;
            }
        }
        for end in ends {
            let index = self.interfaces.len() as u32;
            self.addresses.insert(end.v4.into(), index);
            self.addresses.insert(end.v6.into(), index);
            self.interfaces.push(end);
        }
        self.link_names.insert(link.name.clone(), number.into());
        self.links.push(link);
        Ok(LinkId(u32::from(number)))
    }

    /// Sets the routing between moving nodes.
    pub fn set_moving_routes(&mut self, routes: MovingRoutes) {
        self.moving_routes = routes;
    }

    /// Settings of the routing between moving nodes.
    pub fn moving_routes(&self) -> &MovingRoutes {
        &self.moving_routes
    }

    /// Whether a link belongs to a constellation, so that its delay varies.
    pub(crate) fn moves(&self, link: LinkId) -> bool {
        self.constellations.iter().any(|it| it.has(link))
    }

    /// The constellation in which an interface sends to several receivers: that of a station to the
    /// satellites, or of a satellite to the stations.
    pub(crate) fn transmits_in(&self, interface: u32) -> Option<usize> {
        let link = LinkId(interface / 2);
        let mut all = self.constellations.iter();
        let found = all.position(|it| it.has_ground(link));
        found.filter(|_| interface.is_multiple_of(2))
    }

    /// Pairs of nodes that must belong to the same part of a divided world, because packets or
    /// signals of one may reach the other without a delay. The delays of moving links are those at
    /// time 0: if two satellites meet later, [`World::run_window`](crate::World::run_window)
    /// returns an error at that time.
    pub fn inseparable(&self) -> Vec<[NodeId; 2]> {
        let links = self.links.iter().filter(|link| {
            let sides = [&link.forward, &link.backward];
            sides
                .iter()
                .any(|side| side.propagation.least_delay(0, 0) == 0)
        });
        let links = links.map(|link| link.between);
        let stations = self.wireless.media.iter().flat_map(|air| {
            let nodes = air.stations.iter().map(|(node, _)| *node);
            successive(nodes)
        });
        let grounds = self.constellations.iter().filter(|it| {
            let mut motion = it.motion.borrow_mut();
            motion.least_ground_delay(0..=0) == 0
        });
        let grounds = grounds.flat_map(|it| successive(it.nodes()));
        links.chain(stations).chain(grounds).collect()
    }

    /// Whether an interface belongs to a link between satellites.
    pub(crate) fn is_isl(&self, interface: u32) -> bool {
        let link = LinkId(interface / 2);
        self.constellations.iter().any(|it| it.has_isl(link))
    }

    /// Replaces the address of `node` at `link` that has the same family as `address`.
    ///
    /// # Errors
    /// [`BuildError::NotAtLink`], [`BuildError::AddressTaken`].
    pub fn set_address(
        &mut self,
        node: NodeId,
        link: LinkId,
        address: IpAddr,
    ) -> Result<(), BuildError> {
        let index = self.interface(node, link)?;
        self.check_free(address)?;
        let interface = &mut self.interfaces[index as usize];
        let before: IpAddr = match address {
            IpAddr::V4(address) => std::mem::replace(&mut interface.v4, address).into(),
            IpAddr::V6(address) => std::mem::replace(&mut interface.v6, address).into(),
        };
        self.addresses.remove(&before);
        self.addresses.insert(address, index);
        Ok(())
    }

    /// Adds a static route at `node`: packets to `destination` are sent to the link `via`,
    /// regardless of the shortest route. The route applies to the IPv4 and the IPv6 address of the
    /// interface that has `destination`.
    ///
    /// # Errors
    /// [`BuildError::UnknownAddress`], [`BuildError::NotAtLink`].
    pub fn add_route(
        &mut self,
        node: NodeId,
        destination: IpAddr,
        via: LinkId,
    ) -> Result<(), BuildError> {
        let target = self
            .owner(destination)
            .ok_or(BuildError::UnknownAddress(destination))?;
        let via = self.interface(node, via)?;
        self.given_routes.push(GivenRoute { node, target, via });
        Ok(())
    }

    /// Sets how computed routes react to links that go down; by default they follow immediately.
    /// Static routes are not affected.
    pub fn set_routing(&mut self, routing: Routing) {
        self.routing = routing;
    }

    /// The node named `name`.
    pub fn node(&self, name: &str) -> Option<NodeId> {
        self.node_names.get(name).copied().map(NodeId)
    }

    /// The link named `name`.
    pub fn link(&self, name: &str) -> Option<LinkId> {
        self.link_names.get(name).copied().map(LinkId)
    }

    /// All nodes, in the order in which they were added.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// All links, in the order in which they were added.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// The links of `node`, in the order in which they were added.
    pub fn links_of(&self, node: NodeId) -> impl Iterator<Item = LinkId> + '_ {
        let interfaces = self.nodes.get(node.index()).map(|node| &node.interfaces);
        let interfaces = interfaces.into_iter().flatten();
        interfaces.map(|interface| LinkId(interface / 2))
    }

    /// Addresses of `node` in one family, in the order in which its links were added. The first
    /// address should be used for the primary path.
    pub fn addresses(
        &self,
        node: NodeId,
        family: AddressFamily,
    ) -> impl Iterator<Item = IpAddr> + '_ {
        let interfaces = self.nodes.get(node.index()).map(|node| &node.interfaces);
        let interfaces = interfaces.into_iter().flatten();
        interfaces.map(move |&index| self.interfaces[index as usize].address(family))
    }

    /// Address of `node` at `link` in one family.
    ///
    /// # Errors
    /// [`BuildError::NotAtLink`], [`BuildError::UnknownNode`], [`BuildError::UnknownLink`].
    pub fn address(
        &self,
        node: NodeId,
        link: LinkId,
        family: AddressFamily,
    ) -> Result<IpAddr, BuildError> {
        let index = self.interface(node, link)?;
        Ok(self.interfaces[index as usize].address(family))
    }

    /// Name of a node of this topology.
    pub fn node_name(&self, node: NodeId) -> &str {
        &self.nodes[node.index()].name
    }

    /// Name of a link of this topology.
    pub fn link_name(&self, link: LinkId) -> &str {
        &self.links[link.index()].name
    }

    pub(crate) fn check(&self, node: NodeId) -> Result<(), BuildError> {
        if node.index() < self.nodes.len() {
            Ok(())
        } else {
            Err(BuildError::UnknownNode(node.index()))
        }
    }

    fn check_free(&self, address: IpAddr) -> Result<(), BuildError> {
        match self.owner(address) {
            Some(_) => Err(BuildError::AddressTaken(address)),
            None => Ok(()),
        }
    }

    /// Index of the interface of `node` at `link`.
    pub(crate) fn interface(&self, node: NodeId, link: LinkId) -> Result<u32, BuildError> {
        self.check(node)?;
        let config = self
            .links
            .get(link.index())
            .ok_or(BuildError::UnknownLink(link.index()))?;
        match config.between.iter().position(|&end| end == node) {
            Some(end) => Ok(link.0 * 2 + end as u32),
            None => Err(BuildError::NotAtLink {
                link: config.name.clone(),
                node: self.node_name(node).to_owned(),
            }),
        }
    }

    /// Index of the interface that has `address`.
    pub(crate) fn owner(&self, address: IpAddr) -> Option<u32> {
        self.addresses.get(&address).copied()
    }

    pub(crate) fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    pub(crate) fn interfaces_of(&self, node: NodeId) -> &[u32] {
        &self.nodes[node.index()].interfaces
    }
}

/// Index of the interface that sends in `direction` of `link`, which is also the index of the
/// simplex link.
pub(crate) fn simplex_link(link: LinkId, direction: LinkDirection) -> usize {
    link.index() * 2 + direction as usize
}

/// Pairs of consecutive nodes.
fn successive(nodes: impl Iterator<Item = NodeId> + Clone) -> impl Iterator<Item = [NodeId; 2]> {
    let next = nodes.clone().skip(1);
    nodes.zip(next).map(|(one, other)| [one, other])
}
