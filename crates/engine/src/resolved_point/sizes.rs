//! Checks of packet sizes against the links on their paths.

use anabranch_scenario::checker::Checker;
use anabranch_scenario::wifi::LinkMedium;
use anabranch_scenario::{Link, Spec};
use anabranch_sim::{LinkId, NodeId, PathFinder};
use anabranch_transport::Nanos;

use super::PlannedMember;
use crate::kinds::Standard;
use crate::network::Built;
use crate::transport::{PacketLimit, SharedTransport};
use crate::workload;

/// Checks that the largest packets of each flow fit every link of its paths, for the initial routes
/// and all later ones. A link whose MTU is sufficient at some time is not checked, and neither is a
/// flow whose packets a proxy may replace.
pub fn check(
    c: &mut Checker<'_>,
    built: &Built,
    spec: &Spec,
    kinds: &Standard,
    transports: &[SharedTransport],
    members: &[PlannedMember],
) {
    let narrow = Narrow::of(built, spec);
    let largest = transports.iter().zip(&spec.flows).enumerate();
    let mut suspects: Vec<Suspect> = largest
        .filter_map(|(flow, (transport, written))| {
            let facts = workload::facts(kinds, written, &**transport)?;
            let largest = transport.largest_packet(&facts)?;
            narrow.stops(largest.bytes).then_some(Suspect {
                flow,
                largest,
                answered: facts.answered,
                told: false,
            })
        })
        .collect();
    if suspects.is_empty() || spec.nodes.iter().any(|node| node.proxy.is_some()) {
        return;
    }
    let mut ways = PathFinder::new(&built.topology);
    let mut times = vec![0];
    let end = spec.world.duration.0;
    times.extend(ways.changes(end).into_iter().filter(|at| *at < end));
    for now in times {
        for suspect in suspects.iter_mut().filter(|it| !it.told) {
            let own = members.iter().filter(|it| it.flow == suspect.flow);
            let found = own.flat_map(|it| it.paths.iter().map(|path| (it.nodes, *path)));
            for (nodes, [near, far]) in found {
                let there = narrow.on_way(&mut ways, now, nodes[0], [near, far], &suspect.largest);
                let back = |ways: &mut PathFinder<'_>| {
                    narrow.on_way(ways, now, nodes[1], [far, near], &suspect.largest)
                };
                let stop = there.or_else(|| back(&mut ways).filter(|_| suspect.answered));
                if let Some((link, mtu)) = stop {
                    suspect.told = true;
                    tell(c, suspect, link, mtu);
                    break;
                }
            }
        }
    }
}

/// A flow whose packets are too large for some link.
struct Suspect {
    /// Index of the flow in the spec, from 0.
    flow: usize,
    largest: PacketLimit,
    /// Whether the flow has answers, so that the reverse path must carry large packets, too.
    answered: bool,
    told: bool,
}

fn tell(c: &mut Checker<'_>, suspect: &Suspect, link: &Link, mtu: u64) {
    let PacketLimit {
        bytes,
        setting,
        beside,
        instead,
    } = suspect.largest;
    let flow = format!("flow.{}", suspect.flow);
    let key = match setting {
        "" => format!("{flow}.workload"),
        setting => format!("{flow}.transport.{setting}"),
    };
    let fit = mtu.saturating_sub(beside);
    let name = &link.name;
    let what = match setting {
        "" => "messages".to_owned(),
        setting => format!("`{setting}`"),
    };
    c.problem(
        &key,
        format!(
            "found IP packets of {bytes} B; the link `{name}` on the way carries at most {mtu} B (`link.{name}.mtu`), and drops larger ones; \
             allowed: {what} of at most {fit} B{instead}"
        ),
    );
}

/// Links with an MTU that applies at all times, in bytes.
struct Narrow<'a>(Vec<(&'a Link, u64, &'a [LinkId])>);

impl<'a> Narrow<'a> {
    fn of(built: &'a Built, spec: &'a Spec) -> Self {
        let carriers = spec.carriers().zip(&built.links);
        let narrow = carriers.filter_map(|(carrier, members)| {
            let LinkMedium::Wire(link) = carrier else {
                return None;
            };
            let later = link.mtu_changes.iter().map(|(_, mtu)| mtu.0);
            let most = later.fold(link.mtu?.0, u64::max);
            Some((link, most, &members[..]))
        });
        Self(narrow.collect())
    }

    /// Whether any of these links rejects a packet of `bytes` bytes.
    fn stops(&self, bytes: u64) -> bool {
        self.0.iter().any(|(_, mtu, _)| bytes > *mtu)
    }

    /// First link of a path that rejects the packets, with its MTU.
    fn on_way(
        &self,
        ways: &mut PathFinder<'_>,
        now: Nanos,
        from: NodeId,
        [near, far]: [std::net::IpAddr; 2],
        largest: &PacketLimit,
    ) -> Option<(&'a Link, u64)> {
        let links = ways.links(now, from, near, far)?;
        links.iter().find_map(|(id, _)| {
            let mut narrow = self.0.iter();
            let (link, mtu, _) = narrow.find(|(.., members)| members.contains(id))?;
            (largest.bytes > *mtu).then_some((*link, *mtu))
        })
    }
}
