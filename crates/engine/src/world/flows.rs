//! Flows of a spec as pairs of agents.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::mem;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

use anabranch_scenario::names::{Name, member_name};
use anabranch_scenario::{Flow, Spec, Start};
use anabranch_sctp::Endpoint;
use anabranch_sim::loss::{Flows, Traffic};
use anabranch_sim::udp::{UdpSource, UdpSourceConfig};
use anabranch_sim::workload::Made;
use anabranch_sim::{Attachment, BuildError, Inspect, LinkId, NodeId, Seed, World, start_time};
use anabranch_tcp::Ports;
use anabranch_transport::{Ecn, Nanos, Path};

use super::WorldError;
use super::alone::alone;
use super::homes;
use super::record::Recording;
use super::topology::end;
use crate::agent::inspect::{Inspector, Watched};
use crate::agent::once::Once;
use crate::agent::packets::PacketCounter;
use crate::agent::tally::{SharedTally, Tally};
use crate::agent::transfers::Transfers;
use crate::agent::{Feed, sctp, tcp, udp};
use crate::kinds::Standard;
use crate::metric::{Life, Measures};
use crate::{settings, workload};

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
        let flow = (member.flow.name.clone(), member.flow.count.0);
        (flow, member.index, member.number)
    });
    Traffic::new(Named {
        names: names.collect(),
        watched: members.iter().filter_map(Members::watched).collect(),
    })
}

/// Members by their names.
struct Named {
    /// The flow's name and count, the member's index in it, and its number in the world.
    names: Vec<((String, u32), u32, u32)>,
    watched: Vec<Watched>,
}

impl Flows for Named {
    fn numbers(&self, name: &str) -> Vec<u32> {
        let name = Name::parse(name);
        let named = self.names.iter().filter(|((flow, count), member, _)| {
            flow == name.group && name.contains(*member, *count)
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
    /// The kinds that it is built from.
    pub kinds: &'a Standard,
    /// The measures to take.
    pub measures: &'a Measures,
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
) -> Result<Vec<AttachedFlow>, WorldError> {
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
        let place = Place::of(world, context, &member)?;
        let life = Life {
            start: place.start,
            end: context.spec.world.duration.0,
            alone: alone(world, context, place.nodes, place.path()),
        };
        let made = context.workload(&member)?;
        let needs = context.measures.needs_of(flow);
        let observers = context.measures.observers(flow, life);
        let mut tally = Tally::new(
            observers,
            recording.of_flow(member.flow, index),
            recording.buffer(),
        );
        tally.bins = recording.goodput_of(member.flow, index);
        tally.once = needs.numbers.then(Once::default);
        // Answers are transfers, whether or not anybody measures them.
        let told_apart = needs.transfers || made.facts().answered;
        tally.transfers = told_apart.then(Transfers::default);
        let tally = Rc::new(RefCell::new(tally));
        let member = Attaching {
            member: &member,
            place: &place,
            tally: &tally,
            delays: needs.delays,
        };
        match member.member.flow.transport.protocol.as_str() {
            "tcp" => attach_tcp(world, context, &member, made)?,
            "sctp" => attach_sctp(world, context, &member, made)?,
            _ => attach_udp(world, &member, made)?,
        }
        if let Some(flow) = flows.iter_mut().find(|known| known.name == *flow) {
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

/// A member as it is attached.
struct Attaching<'a> {
    member: &'a Members<'a>,
    place: &'a Place,
    tally: &'a SharedTally,
    /// A measure asks for its delays, so that its messages must say when they were handed over.
    delays: bool,
}

impl Context<'_> {
    /// The workload of a member.
    fn workload(&self, member: &Members<'_>) -> Result<Made, WorldError> {
        let rng = self.seed.stream(&format!("workload {}", member.name()));
        let packet = workload::packet(member.flow);
        Ok(self.kinds.workload(&member.flow.workload, rng, packet)?)
    }
}

impl Place {
    fn of(world: &World, context: &Context<'_>, member: &Members<'_>) -> Result<Self, BuildError> {
        let topology = world.topology();
        let nodes = [
            end(topology, context.spec, &member.flow.from, member.index)?,
            end(topology, context.spec, &member.flow.to, member.index)?,
        ];
        let start = member.start(context.seed);
        let lasts = member.flow.lasts.map(|lasts| start.saturating_add(lasts.0));
        Ok(Self {
            nodes,
            paths: homes::paths(topology, context.links, context.spec, member)?,
            ports: member.ports(),
            start,
            stop: member.flow.stop.map(|stop| stop.0.max(start)).or(lasts),
        })
    }

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

fn attach_tcp(
    world: &mut World,
    context: &Context<'_>,
    attaching: &Attaching<'_>,
    made: Made,
) -> Result<(), BuildError> {
    let Attaching {
        member,
        place,
        tally,
        delays,
    } = *attaching;
    let mut config = settings::tcp(&member.flow.transport, member.flow.ip);
    config.checksum = context.checksum;
    let mut rng = context.seed.stream(&format!("tcp {}", member.name()));
    let [source, sink] = place.ports;
    let boundaries = delays.then(|| Rc::new(RefCell::new(VecDeque::new())));
    let facts = made.facts();
    let ahead = if facts.paced {
        config.send_buffer
    } else {
        config.receive_bytes() * 2
    };
    let source_config = tcp::SourceConfig {
        path: place.path(),
        ports: Ports {
            local: source,
            remote: sink,
        },
        isn: rng.bits() as u32,
        endless: facts.endless && !delays,
        ahead,
    };
    let receiver = tcp::Sink::new(
        config.clone(),
        sink,
        rng.bits() as u32,
        boundaries.clone(),
        Rc::clone(tally),
    );
    let sender = tcp::Source::new(
        config,
        source_config,
        Feed::new(made),
        boundaries,
        Rc::clone(tally),
    );
    world.attach(place.sink(TCP), receiver)?;
    world.attach(place.source(TCP), sender)?;
    Ok(())
}

fn attach_sctp(
    world: &mut World,
    context: &Context<'_>,
    attaching: &Attaching<'_>,
    made: Made,
) -> Result<(), BuildError> {
    let Attaching {
        member,
        place,
        tally,
        delays,
    } = *attaching;
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
    let facts = made.facts();
    let (once, transfers) = {
        let tally = tally.borrow();
        (tally.once.is_some(), tally.transfers.is_some())
    };
    // Messages without a stream of their own are known again by their numbers.
    let numbered = transfers && facts.piece.is_none();
    let stamped = delays || once || numbered;
    let message = settings::sctp_chunk(&config, member.flow.ip) - settings::DATA_HEADER;
    let source_config = sctp::SourceConfig {
        remote,
        remote_port: place.ports[1],
        unordered: application.unordered,
        endless: facts.endless && !stamped,
        stamped,
        numbered,
        streams: config.outbound_streams,
        ahead: if facts.paced {
            config.send_buffer
        } else {
            config.mtu * 2
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
    let sender = sctp::Source::new(endpoint, source_config, Feed::new(made), Rc::clone(tally));
    world.attach(place.sink(SCTP), receiver)?;
    world.attach(place.source(SCTP), sender)?;
    Ok(())
}

fn attach_udp(world: &mut World, attaching: &Attaching<'_>, made: Made) -> Result<(), BuildError> {
    let Attaching {
        member,
        place,
        tally,
        ..
    } = *attaching;
    let config = UdpSourceConfig {
        path: place.path(),
        source_port: place.ports[0],
        destination_port: place.ports[1],
    };
    let counted = udp::Counted {
        workload: made,
        tally: Rc::clone(tally),
    };
    let source = UdpSource::new(config, counted);
    let source = if settings::datagrams(&member.flow.transport).ecn {
        source.with_ecn(Ecn::Ect0)
    } else {
        source
    };
    world.attach(place.sink(UDP), udp::Sink::new(Rc::clone(tally)))?;
    world.attach(place.source(UDP), source)?;
    Ok(())
}
