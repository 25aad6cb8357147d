//! What a path would do for bytes that have it alone.

use anabranch_scenario::wifi::Carrier;
use anabranch_sim::{Direction, LinkId, NodeId, World};
use anabranch_transport::{Nanos, Path};

use super::flows::Context;
use crate::metric::Alone;

/// The path from one node to the other and back, `path` as the first sees it; `None` if packets do not arrive, or cross a link
/// without a rate of its own, or with a delay that changes.
pub fn alone(
    world: &World,
    context: &Context<'_>,
    nodes: [NodeId; 2],
    path: Path,
) -> Option<Alone> {
    let back = Path::new(path.remote, path.local);
    let ways = [world.way(nodes[0], path)?, world.way(nodes[1], back)?];
    let mut alone = Alone {
        delays: [0; 2],
        rates: [u64::MAX; 2],
    };
    for (index, way) in ways.iter().enumerate() {
        for &(link, direction) in way {
            let (rate, delay) = of_link(context, link, direction)?;
            alone.delays[index] = alone.delays[index].saturating_add(delay);
            alone.rates[index] = alone.rates[index].min(rate);
        }
    }
    Some(alone)
}

/// The greatest rate of a link's direction, and its propagation delay, where that never changes.
fn of_link(context: &Context<'_>, id: LinkId, direction: Direction) -> Option<(u64, Nanos)> {
    let mut all = context.spec.carriers().zip(context.links);
    let Carrier::Wire(link) = all.find(|(_, members)| members.contains(&id))?.0 else {
        return None;
    };
    let forward = direction == Direction::Forward;
    let rates = link.rate.side(forward)?.steps().iter();
    let rate = rates.map(|(_, rate)| *rate).max()?;
    let chosen = link.delay.side(forward)?;
    let kinds = &context.kinds.propagations;
    let propagation = kinds.build(&chosen.kind, &chosen.values(kinds), ());
    Some((rate, propagation.ok()?.as_fixed()?))
}
