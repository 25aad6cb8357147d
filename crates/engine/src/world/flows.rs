//! Flows of a spec as pairs of agents.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use anabranch_scenario::names::{self, member_name};
use anabranch_scenario::{Flow, Metric, Spec, Start, Workload};
use anabranch_sctp::Endpoint;
use anabranch_sim::loss::{Flows, Traffic};
use anabranch_sim::udp::{UdpSource, UdpSourceConfig};
use anabranch_sim::{Attachment, BuildError, Inspect, LinkId, NodeId, Seed, World, start_time};
use anabranch_tcp::Ports;
use anabranch_transport::{Ecn, Nanos, Path};

use super::homes;
use super::record::Recording;
use super::topology::end;
use crate::agent::inspect::{Inspector, Watched};
use crate::agent::once::Once;
use crate::agent::packets::PacketCounter;
use crate::agent::tally::{SharedTally, Tally};
use crate::agent::{Feed, sctp, tcp, udp, workload};
use crate::{metric, settings};

/// IP protocol numbers.
const TCP: u8 = 6;
const UDP: u8 = 17;
const SCTP: u8 = 132;

/// Sources and sinks have a port each, counted up from here over all members of all flows. No protocol above SCTP or TCP
/// is known at the first of them, so that a dissector shows what is sent as mere data.
const SOURCE_PORTS: u16 = 42_000;
const SINK_PORTS: u16 = 52_000;

/// Why an endpoint accepts its settings.
const CHECKED: &str = "the settings were checked with the spec";

/// Who counts the packets of all members of the flows, by their tallies.
pub fn packet_counter(flows: &[AttachedFlow]) -> PacketCounter {
    let tallies = flows
        .iter()
        .flat_map(|flow| flow.tallies.iter().map(Rc::clone));
    PacketCounter::new([SOURCE_PORTS, SINK_PORTS], tallies)
}

/// One member of a flow, with the number and the ports it has in the world.
pub struct Members<'a> {
    /// The flow.
    pub flow: &'a Flow,
    /// Which member of the flow.
    pub index: u32,
    /// Which of all members of all flows.
    pub number: u32,
}

/// Every member of every flow, in order.
pub fn members(spec: &Spec) -> Vec<Members<'_>> {
    let all = spec
        .flows
        .iter()
        .flat_map(|flow| (0..flow.count.0).map(move |index| (flow, index)));
    all.zip(0..)
        .map(|((flow, index), number)| Members {
            flow,
            index,
            number,
        })
        .collect()
}

impl Members<'_> {
    fn ports(&self) -> [u16; 2] {
        // The spec's checks keep the number below `anabranch_scenario::validate::MOST_FLOWS`.
        let offset = self.number as u16;
        [SOURCE_PORTS + offset, SINK_PORTS + offset]
    }

    /// The flow's name, with the member's number where there are several.
    fn name(&self) -> String {
        member_name(&self.flow.name, self.flow.count.0, self.index)
    }

    /// When it starts.
    pub fn start(&self, seed: Seed) -> Nanos {
        match self.flow.start {
            Start::At(at) => at.0,
            Start::Uniform {
                uniform: [from, to],
            } => start_time(seed, &self.name(), from.0, to.0),
        }
    }

    /// How an inspector recognises it.
    pub fn watched(&self) -> Option<Watched> {
        let protocol = match self.flow.transport.protocol.as_str() {
            "tcp" => TCP,
            "sctp" => SCTP,
            _ => return None,
        };
        let segment = u32::from(settings::tcp(&self.flow.transport, self.flow.ip).mss);
        Some(Watched {
            protocol,
            ports: self.ports(),
            segment,
            flow: self.number,
        })
    }
}

/// The flows of a spec, as loss models ask for them.
pub fn traffic(spec: &Spec) -> Traffic {
    let members = members(spec);
    let names = members.iter().map(|member| {
        let group = member.flow.name.clone();
        (group, member.index, member.number)
    });
    Traffic::new(Named {
        names: names.collect(),
        watched: members.iter().filter_map(Members::watched).collect(),
    })
}

/// Members by their names.
struct Named {
    /// The flow's name, the member's index in it, and its number in the world.
    names: Vec<(String, u32, u32)>,
    watched: Vec<Watched>,
}

impl Flows for Named {
    fn numbers(&self, name: &str) -> Vec<u32> {
        let (group, index) = names::member(name);
        let named = self.names.iter().filter(|(flow, member, _)| {
            flow == group && index.is_none_or(|index| index == *member)
        });
        named.map(|(.., number)| *number).collect()
    }

    fn inspector(&self) -> Box<dyn Inspect> {
        Box::new(Inspector::new(self.watched.iter().copied()))
    }
}

/// What attaching a flow needs to know.
pub struct Context<'a> {
    /// The spec.
    pub spec: &'a Spec,
    /// The measures to take.
    pub wanted: &'a [Metric],
    /// The links of the world, as the spec lists them.
    pub links: &'a [Vec<LinkId>],
    /// The run's seed.
    pub seed: Seed,
    /// Checksums are computed and verified.
    pub checksum: bool,
}

/// A flow in the world.
pub struct AttachedFlow {
    /// Its name.
    pub name: String,
    /// Bytes of a full segment as its window counts them.
    pub segment: u64,
    /// Receive buffer, bytes.
    pub receive_buffer: u64,
    /// The tallies of its members.
    pub tallies: Vec<SharedTally>,
}

/// Attaches every flow of a spec.
pub fn attach(
    world: &mut World,
    context: &Context<'_>,
    recording: &mut Recording,
) -> Result<Vec<AttachedFlow>, BuildError> {
    let mut flows: Vec<AttachedFlow> = context
        .spec
        .flows
        .iter()
        .map(|flow| AttachedFlow {
            name: flow.name.clone(),
            segment: segment(flow),
            receive_buffer: receive_buffer(flow),
            tallies: Vec::new(),
        })
        .collect();
    for member in members(context.spec) {
        let (flow, index) = (&member.flow.name, member.index);
        let start = member.start(context.seed);
        let meters = metric::meters(context.wanted, flow, start, context.spec.world.duration.0);
        let mut tally = Tally::new(meters, recording.of_flow(flow, index), recording.buffer());
        tally.bins = recording.goodput_of(flow, index);
        tally.once = metric::wants_once(context.wanted, flow).then(Once::default);
        let tally = Rc::new(RefCell::new(tally));
        attach_member(world, context, &member, &tally)?;
        if let Some(flow) = flows.iter_mut().find(|flow| flow.name == member.flow.name) {
            flow.tallies.push(tally);
        }
    }
    Ok(flows)
}

/// Bytes of a full segment as the flow's window counts them.
pub fn segment(flow: &Flow) -> u64 {
    match flow.transport.protocol.as_str() {
        "tcp" => settings::tcp(&flow.transport, flow.ip).mss.into(),
        "sctp" => settings::sctp_chunk(&settings::sctp(&flow.transport), flow.ip),
        _ => 1,
    }
}

fn receive_buffer(flow: &Flow) -> u64 {
    match flow.transport.protocol.as_str() {
        "tcp" => settings::tcp(&flow.transport, flow.ip).receive_bytes(),
        "sctp" => settings::sctp(&flow.transport).receive_buffer.into(),
        _ => 0,
    }
}

/// Ends a tally with the run and takes it out.
pub fn close(tally: &SharedTally, end: Nanos) -> Tally {
    let mut tally = mem::take(&mut *tally.borrow_mut());
    tally.close(end);
    tally
}

/// Where a member lives: its nodes, its addresses, its ports, its times.
struct Place {
    nodes: [NodeId; 2],
    /// Pairs of addresses, the primary first.
    paths: Vec<[IpAddr; 2]>,
    ports: [u16; 2],
    start: Nanos,
    stop: Option<Nanos>,
}

fn attach_member(
    world: &mut World,
    context: &Context<'_>,
    member: &Members<'_>,
    tally: &SharedTally,
) -> Result<(), BuildError> {
    let topology = world.topology();
    let nodes = [
        end(topology, context.spec, &member.flow.from, member.index)?,
        end(topology, context.spec, &member.flow.to, member.index)?,
    ];
    let paths = homes::paths(topology, context.links, context.spec, member)?;
    let start = member.start(context.seed);
    let lasts = member.flow.lasts.map(|lasts| start.saturating_add(lasts.0));
    let place = Place {
        nodes,
        paths,
        ports: member.ports(),
        start,
        stop: member.flow.stop.map(|stop| stop.0.max(start)).or(lasts),
    };
    match member.flow.transport.protocol.as_str() {
        "tcp" => attach_tcp(world, context, member, &place, tally),
        "sctp" => attach_sctp(world, context, member, &place, tally),
        _ => attach_udp(world, context, member, &place, tally),
    }
}

impl Place {
    fn source(&self, protocol: u8) -> Attachment {
        let attachment =
            Attachment::new(self.nodes[0], protocol, self.ports[0]).starting(self.start);
        match self.stop {
            Some(stop) => attachment.stopping(stop),
            None => attachment,
        }
    }

    fn sink(&self, protocol: u8) -> Attachment {
        Attachment::new(self.nodes[1], protocol, self.ports[1])
    }

    /// From the source's first address to the sink's first.
    fn path(&self) -> Path {
        let nowhere = [Ipv4Addr::UNSPECIFIED.into(); 2];
        let [from, to] = self.paths.first().copied().unwrap_or(nowhere);
        Path::new(from, to)
    }

    /// The addresses of one end, the primary path's first, each once.
    fn addresses(&self, end: usize) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = Vec::with_capacity(self.paths.len());
        for path in &self.paths {
            if !addresses.contains(&path[end]) {
                addresses.push(path[end]);
            }
        }
        addresses
    }
}

/// Whether a measure asks for this flow's delays, so that its messages must say when they were offered.
fn wants_delay(context: &Context<'_>, flow: &Flow) -> bool {
    context.wanted.iter().any(|metric| {
        matches!(metric, Metric::MeanOneWayDelay { flow: name } if names::member(name).0 == flow.name)
    })
}

fn feed(context: &Context<'_>, member: &Members<'_>, message: u64) -> Result<Feed, BuildError> {
    let rng = context.seed.stream(&format!("workload {}", member.name()));
    Ok(Feed::new(workload(
        &member.flow.workload,
        message as usize,
        rng,
    )?))
}

fn attach_tcp(
    world: &mut World,
    context: &Context<'_>,
    member: &Members<'_>,
    place: &Place,
    tally: &SharedTally,
) -> Result<(), BuildError> {
    let mut config = settings::tcp(&member.flow.transport, member.flow.ip);
    config.checksum = context.checksum;
    let mut rng = context.seed.stream(&format!("tcp {}", member.name()));
    let [source, sink] = place.ports;
    let delays = wants_delay(context, member.flow);
    let boundaries = delays.then(|| Rc::new(RefCell::new(VecDeque::new())));
    let endless = matches!(member.flow.workload, Workload::Bulk { total: None, .. }) && !delays;
    let unpaced = matches!(member.flow.workload, Workload::Bulk { .. });
    let ahead = if unpaced {
        config.receive_bytes() * 2
    } else {
        config.send_buffer
    };
    let source_config = tcp::SourceConfig {
        path: place.path(),
        ports: Ports {
            local: source,
            remote: sink,
        },
        isn: rng.bits() as u32,
        endless,
        ahead,
    };
    let receiver = tcp::Sink::new(
        config.clone(),
        sink,
        rng.bits() as u32,
        boundaries.clone(),
        Rc::clone(tally),
    );
    let feed = feed(context, member, config.mss.into())?;
    let sender = tcp::Source::new(config, source_config, feed, boundaries, Rc::clone(tally));
    world.attach(place.sink(TCP), receiver)?;
    world.attach(place.source(TCP), sender)?;
    Ok(())
}

fn attach_sctp(
    world: &mut World,
    context: &Context<'_>,
    member: &Members<'_>,
    place: &Place,
    tally: &SharedTally,
) -> Result<(), BuildError> {
    let application = settings::application(&member.flow.transport);
    let mut config = settings::sctp(&member.flow.transport);
    config.checksum = context.checksum;
    let mut rng = context.seed.stream(&format!("sctp {}", member.name()));
    let mut secret = || {
        let mut secret = [0; 32];
        secret
            .chunks_exact_mut(8)
            .for_each(|word| word.copy_from_slice(&rng.bits().to_le_bytes()));
        secret
    };
    let remote = place.addresses(1);
    let (mut near, mut far) = (config.clone(), config.clone());
    if !member.flow.paths.is_empty() || place.paths.len() > 1 {
        near.addresses = place.addresses(0);
        far.addresses.clone_from(&remote);
    }
    let stamped = wants_delay(context, member.flow) || tally.borrow().once.is_some();
    let unpaced = matches!(member.flow.workload, Workload::Bulk { .. });
    let endless = matches!(member.flow.workload, Workload::Bulk { total: None, .. }) && !stamped;
    let message = settings::sctp_chunk(&config, member.flow.ip) - settings::DATA_HEADER;
    let source_config = sctp::SourceConfig {
        remote,
        remote_port: place.ports[1],
        unordered: application.unordered,
        endless,
        stamped,
        ahead: if unpaced {
            config.mtu * 2
        } else {
            config.send_buffer
        },
    };
    let receiver = sctp::Sink::new(
        Endpoint::new(far, place.ports[1], secret()).expect(CHECKED),
        stamped,
        message,
        application.reading_rate,
        Rc::clone(tally),
    );
    let endpoint = Endpoint::new(near, place.ports[0], secret()).expect(CHECKED);
    let sender = sctp::Source::new(
        endpoint,
        source_config,
        feed(context, member, message)?,
        Rc::clone(tally),
    );
    world.attach(place.sink(SCTP), receiver)?;
    world.attach(place.source(SCTP), sender)?;
    Ok(())
}

fn attach_udp(
    world: &mut World,
    context: &Context<'_>,
    member: &Members<'_>,
    place: &Place,
    tally: &SharedTally,
) -> Result<(), BuildError> {
    let config = UdpSourceConfig {
        path: place.path(),
        source_port: place.ports[0],
        destination_port: place.ports[1],
    };
    let rng = context.seed.stream(&format!("workload {}", member.name()));
    let source = UdpSource::new(config, Boxed(workload(&member.flow.workload, 1000, rng)?));
    let source = if settings::datagrams(&member.flow.transport).ecn {
        source.with_ecn(Ecn::Ect0)
    } else {
        source
    };
    world.attach(place.sink(UDP), udp::Sink::new(Rc::clone(tally)))?;
    world.attach(place.source(UDP), source)?;
    Ok(())
}

/// A boxed workload is a workload.
struct Boxed(Box<dyn anabranch_sim::workload::Workload>);

impl anabranch_sim::workload::Workload for Boxed {
    fn next(&mut self, now: Nanos) -> anabranch_sim::workload::Offer {
        self.0.next(now)
    }
}
