//! Delay and rate of a path, which determine the ideal time of a transfer without other traffic.

use anabranch_scenario::Spec;
use anabranch_scenario::wifi::LinkMedium;
use anabranch_sim::{LinkDirection, LinkId, NodeId, PathFinder};
use anabranch_transport::Nanos;

use crate::kinds::Standard;
use crate::metric::IdealTransfer;

/// Delay and rate of `path` in both directions, by the routes at the start of the run. `None` if
/// packets do not arrive, or if they cross a wireless cell, a constellation, a link without a rate,
/// or a link whose delay changes.
pub fn ideal_transfer(
    ways: &mut PathFinder<'_>,
    spec: &Spec,
    kinds: &Standard,
    links: &[Vec<LinkId>],
    nodes: [NodeId; 2],
    path: [std::net::IpAddr; 2],
) -> Option<IdealTransfer> {
    let [near, far] = path;
    let ways = [
        ways.links(0, nodes[0], near, far)?,
        ways.links(0, nodes[1], far, near)?,
    ];
    let mut alone = IdealTransfer {
        delays: [0; 2],
        rates: [u64::MAX; 2],
    };
    for (index, way) in ways.iter().enumerate() {
        for &(link, direction) in way {
            let (rate, delay) = of_link(spec, kinds, links, link, direction)?;
            alone.delays[index] = alone.delays[index].saturating_add(delay);
            alone.rates[index] = alone.rates[index].min(rate);
        }
    }
    Some(alone)
}

/// Maximum rate and propagation delay of a direction of a link. `None` for a wireless cell and a
/// constellation, without a rate, and if the delay changes.
fn of_link(
    spec: &Spec,
    kinds: &Standard,
    links: &[Vec<LinkId>],
    id: LinkId,
    direction: LinkDirection,
) -> Option<(u64, Nanos)> {
    let mut all = spec.carriers().zip(links);
    let LinkMedium::Wire(link) = all.find(|(_, members)| members.contains(&id))?.0 else {
        return None;
    };
    let forward = direction == LinkDirection::Forward;
    let rates = link.rate.side(forward)?.steps().iter();
    let rate = rates.map(|(_, rate)| *rate).max()?;
    let chosen = link.delay.side(forward)?;
    let kinds = &kinds.propagations;
    let propagation = kinds.build(&chosen.kind, &chosen.values(kinds), ());
    Some((rate, propagation.ok()?.as_fixed()?))
}
