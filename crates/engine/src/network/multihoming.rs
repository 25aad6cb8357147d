//! Addresses of hosts with several interfaces, and the address pairs that flows use.
//!
//! SCTP knows all addresses of its peer, and selects a source address for each by the longest
//! common prefix (RFC 6724 §5 rule 8). The two interfaces of each path of a flow therefore get
//! addresses in the same network. Then this rule suffices for the protocol stack to select the
//! specified path at both ends. Interfaces that belong to no path keep their automatic addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use anabranch_scenario::Spec;
use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::names::MemberSelection;
use anabranch_sim::{AddressFamily, BuildError, LinkId, NodeId, Topology};

use super::{Built, NetworkError, end, ends};
use crate::flows::{NumberedMember, members};
use crate::transport::{Outages, SharedTransport};

/// An interface: the connection of a node to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interface {
    node: NodeId,
    link: LinkId,
}

/// A path: its source interface and its destination interface.
type Pair = [Interface; 2];

/// Reason why the paths of flows cannot be given addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// A host would have two interfaces in one network, so its source address would be ambiguous.
    #[error(
        "the paths join two interfaces of {node:?}, those at {first:?} and {second:?}, to one network; each path needs interfaces of its own"
    )]
    TwiceInOneNetwork {
        /// Name of the host.
        node: String,
        /// Link of the first interface.
        first: String,
        /// Link of the second interface.
        second: String,
    },
    /// There are more or larger networks than the address range can hold.
    #[error(
        "the paths need {networks} networks of up to {hosts} hosts, more than 172.16.0.0/12 holds"
    )]
    TooMany {
        /// Number of networks.
        networks: usize,
        /// Number of hosts in the largest network.
        hosts: usize,
    },
}

/// Address family of the simulator for an IP version.
fn family(ip: IpVersion) -> AddressFamily {
    match ip {
        IpVersion::Ipv4 => AddressFamily::V4,
        IpVersion::Ipv6 => AddressFamily::V6,
    }
}

/// Pairs of addresses that a member of a flow uses, with the primary path first.
pub fn paths(
    built: &Built,
    spec: &Spec,
    transports: &[SharedTransport],
    member: &NumberedMember<'_>,
) -> Result<Vec<[IpAddr; 2]>, BuildError> {
    let family = family(member.flow.ip);
    let address = |at: Interface| built.topology.address(at.node, at.link, family);
    pairs(built, spec, transports, member)?
        .into_iter()
        .map(|[from, to]| Ok([address(from)?, address(to)?]))
        .collect()
}

/// Outages of the links at both ends of each path of a member, in the order of [`paths`].
pub fn outages(
    built: &Built,
    spec: &Spec,
    transports: &[SharedTransport],
    member: &NumberedMember<'_>,
) -> Result<Vec<[Outages; 2]>, BuildError> {
    let at = |interface: Interface| -> Outages {
        let mut members = built.links.iter();
        let place = members.position(|it| it.contains(&interface.link));
        let link = place.and_then(|place| spec.links.get(place));
        let both = |link: &anabranch_scenario::Link| [link.outages(true), link.outages(false)];
        link.map_or(Vec::new(), |link| both(link).concat())
    };
    let pairs = pairs(built, spec, transports, member)?;
    Ok(pairs.into_iter().map(|pair| pair.map(at)).collect())
}

/// Interface pairs of a member's paths. If its flow names paths, they are these. If not, a
/// multihomed transport uses all interfaces of both hosts in order, and any other transport uses
/// the first interface of each host.
fn pairs(
    built: &Built,
    spec: &Spec,
    transports: &[SharedTransport],
    member: &NumberedMember<'_>,
) -> Result<Vec<Pair>, BuildError> {
    let flow = member.flow;
    let nodes = ends(&built.topology, spec, member)?;
    if !flow.paths.is_empty() {
        let named = |name: &str, node| named(built, spec, name, node);
        return flow
            .paths
            .iter()
            .map(|path| Ok([named(&path.from, nodes[0])?, named(&path.to, nodes[1])?]))
            .collect();
    }
    let all = nodes.map(|node| interfaces(&built.topology, node));
    let transport = transports.get(member.place);
    let most = if transport.is_some_and(|it| it.is_multihomed()) {
        all[0].len().max(all[1].len())
    } else {
        all[0].len().min(all[1].len()).min(1)
    };
    // A host with fewer interfaces uses its last interface for the remaining paths.
    let nth = |of: &[Interface], index: usize| of[index.min(of.len() - 1)];
    Ok((0..most)
        .map(|index| [nth(&all[0], index), nth(&all[1], index)])
        .collect())
}

fn interfaces(topology: &Topology, node: NodeId) -> Vec<Interface> {
    let links = topology.links_of(node);
    links.map(|link| Interface { node, link }).collect()
}

fn is_there(topology: &Topology, interface: Interface) -> bool {
    topology
        .address(interface.node, interface.link, AddressFamily::V4)
        .is_ok()
}

/// Interface of `node` at the link named `name`, or at the member of this link that ends at `node`.
fn named(built: &Built, spec: &Spec, name: &str, node: NodeId) -> Result<Interface, BuildError> {
    let Built { topology, links } = built;
    let parsed = MemberSelection::parse(name);
    let position = spec.carriers().position(|it| it.name() == parsed.group);
    let members = position.and_then(|position| links.get(position));
    let members = members.map_or(&[][..], Vec::as_slice);
    let range = parsed.range(members.len() as u32);
    let meant = members
        .iter()
        .zip(0..)
        .filter(|(_, index)| range.contains(index));
    meant
        .map(|(&link, _)| Interface { node, link })
        .find(|interface| is_there(topology, *interface))
        .ok_or_else(|| BuildError::NotAtLink {
            link: name.to_owned(),
            node: topology.node_name(node).to_owned(),
        })
}

/// Addresses that differ from the automatic ones: those that the spec sets, and addresses in common
/// networks for the interfaces of flows with several paths.
///
/// # Errors
/// [`AddressError`], or an unknown name.
pub fn resolve(
    built: &Built,
    spec: &Spec,
    transports: &[SharedTransport],
) -> Result<Vec<(NodeId, LinkId, IpAddr)>, NetworkError> {
    let mut addresses = Vec::new();
    for node in &spec.nodes {
        for (name, own) in &node.addresses {
            let host = end(&built.topology, spec, &node.name, 0)?;
            let Interface { node, link } = named(built, spec, name, host)?;
            addresses.extend(own.iter().map(|address| (node, link, address)));
        }
    }
    let given = addresses.clone();
    let is_given = |at: Interface, address: IpAddr| {
        let mut same = given
            .iter()
            .filter(|(node, link, _)| (*node, *link) == (at.node, at.link));
        same.any(|(.., other)| other.is_ipv4() == address.is_ipv4())
    };
    let mut networks: Vec<Vec<Interface>> = Vec::new();
    for member in members(spec) {
        let pairs = pairs(built, spec, transports, &member)?;
        if pairs.len() > 1 {
            pairs.into_iter().for_each(|pair| join(&mut networks, pair));
        }
    }
    let largest = networks.iter().map(Vec::len).max().unwrap_or(0);
    let range = Range::new(networks.len(), largest)?;
    for (number, network) in networks.iter().enumerate() {
        check_hosts(&built.topology, network)?;
        for (host, interface) in network.iter().enumerate() {
            let own = range.addresses(number, host).into_iter();
            let free = own.filter(|address| !is_given(*interface, *address));
            addresses.extend(free.map(|address| (interface.node, interface.link, address)));
        }
    }
    Ok(addresses)
}

/// Puts both interfaces of a path into the same network, and merges networks if necessary.
fn join(networks: &mut Vec<Vec<Interface>>, pair: Pair) {
    let found = pair.map(|end| networks.iter().position(|network| network.contains(&end)));
    match found {
        [None, None] => networks.push(pair.to_vec()),
        [Some(network), None] => networks[network].push(pair[1]),
        [None, Some(network)] => networks[network].push(pair[0]),
        [Some(one), Some(other)] if one != other => {
            let moved = networks.remove(one.max(other));
            networks[one.min(other)].extend(moved);
        }
        [Some(_), Some(_)] => {}
    }
}

fn check_hosts(topology: &Topology, network: &[Interface]) -> Result<(), AddressError> {
    for (index, one) in network.iter().enumerate() {
        if let Some(other) = network[..index].iter().find(|other| other.node == one.node) {
            return Err(AddressError::TwiceInOneNetwork {
                node: topology.node_name(one.node).to_owned(),
                first: topology.link_name(other.link).to_owned(),
                second: topology.link_name(one.link).to_owned(),
            });
        }
    }
    Ok(())
}

/// Address range 172.16.0.0/12, divided into networks of equal size.
struct Range {
    host_bits: u32,
}

impl Range {
    const BITS: u32 = 20;

    fn new(networks: usize, hosts: usize) -> Result<Self, AddressError> {
        // The first and the last address of a network stay unused. Networks have at least 8 host
        // bits, because /24 networks are easy to read.
        let host_bits = (hosts + 2).next_power_of_two().ilog2().max(8);
        let fits = host_bits < Self::BITS && networks <= 1 << (Self::BITS - host_bits);
        if fits {
            return Ok(Self { host_bits });
        }
        let host_bits = (hosts + 2).next_power_of_two().ilog2();
        if host_bits < Self::BITS && networks <= 1 << (Self::BITS - host_bits) {
            Ok(Self { host_bits })
        } else {
            Err(AddressError::TooMany { networks, hosts })
        }
    }

    /// IPv4 and IPv6 address of a host in a network; fd00:ac10::/32 corresponds to 172.16.0.0/12.
    fn addresses(&self, network: usize, host: usize) -> [IpAddr; 2] {
        let first = u32::from(Ipv4Addr::new(172, 16, 0, 0));
        let offset = (network << self.host_bits) + host + 1;
        let [high, low] = [network >> 16, network].map(|part| part as u16);
        let [upper, lower] = [(host + 1) >> 16, host + 1].map(|part| part as u16);
        [
            Ipv4Addr::from(first + offset as u32).into(),
            Ipv6Addr::new(0xfd00, 0xac10, high, low, 0, 0, upper, lower).into(),
        ]
    }
}

#[cfg(test)]
mod tests;
