//! The transports of flows.
//!
//! A transport is one file here, which declares its name and settings in specs and how a flow's
//! transport is built and attached, and one line in [`KINDS`]. A program can add transports with
//! [`Standard::with_transport`](crate::kinds::Standard::with_transport).

use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::transport::{Transport as Written, TransportKind};
use anabranch_settings::{Datum, Setting};
use anabranch_sim::ip::{IPV4_HEADER, IPV6_HEADER};
use anabranch_sim::workload::{BoxedWorkload as Workload, Facts};
use anabranch_sim::{Agent, Rng, Seed};
use anabranch_transport::Path;

use crate::agent::flow_stats::SharedFlowStats;
use crate::agent::inspect::PacketContent;
use crate::agent::resume::{Resume, Resuming};

#[cfg(not(all(feature = "quic", not(target_family = "wasm"))))]
mod absent;
#[cfg(all(feature = "quic", not(target_family = "wasm")))]
pub mod quic;
pub mod sctp;
pub mod tcp;
pub mod third_party;
pub mod udp;

/// Time spans in which a link is down in some direction; the last may be endless.
pub type Outages = Vec<[u64; 2]>;

/// A transport built from a flow's settings.
pub type SharedTransport = Arc<dyn Transport>;

/// All transports, one line for each.
pub const KINDS: &[&TransportEntry] = &[
    &tcp::ENTRY,
    &sctp::ENTRY,
    &udp::ENTRY,
    #[cfg(all(feature = "quic", not(target_family = "wasm")))]
    &quic::ENTRY,
    #[cfg(not(all(feature = "quic", not(target_family = "wasm"))))]
    &absent::QUIC,
    &third_party::DCSCTP,
    &third_party::RTC_SCTP,
    &third_party::SCTP_PROTO,
];

/// A transport that specs can name.
#[derive(Debug)]
pub struct TransportEntry {
    /// Name and settings, and its properties for the grammar.
    pub kind: TransportKind,
    /// Builds a flow's transport from its settings. Each setting is in range; the errors concern
    /// their combination.
    pub build: fn(&TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>>,
}

/// The inputs from which a flow's transport is built.
#[derive(Clone, Copy, Debug)]
pub struct TransportInput<'a> {
    /// The transport in the spec.
    pub written: &'a Written,
    /// Kind.
    pub kind: &'static TransportKind,
    /// The IP version.
    pub ip: IpVersion,
}

impl<'a> TransportInput<'a> {
    /// The settings and switches that are set, with their values.
    pub fn values(self) -> impl Iterator<Item = (&'static Setting, Datum)> + use<'a> {
        self.written.values(self.kind)
    }
}

/// A setting that contradicts others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// Name.
    pub setting: String,
    /// The value found, and the values allowed.
    pub message: String,
}

impl InvalidSetting {
    /// A fault of a setting, with `message`.
    pub fn new(setting: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            setting: setting.into(),
            message: message.into(),
        }
    }
}

/// The largest packets that a transport sends, regardless of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLimit {
    /// Bytes including the IP header.
    pub bytes: u64,
    /// The setting that determines it; empty if the workload does.
    pub setting: &'static str,
    /// Bytes that the setting does not include.
    pub beside: u64,
    /// The alternative to a smaller value, for messages: `, or ...`.
    pub instead: &'static str,
}

/// Bytes of the IP header.
pub(crate) const fn ip_header(ip: IpVersion) -> u64 {
    match ip {
        IpVersion::Ipv4 => IPV4_HEADER as u64,
        IpVersion::Ipv6 => IPV6_HEADER as u64,
    }
}

/// The transport of a flow: built once, and shared by all members and replications.
pub trait Transport: Debug + Send + Sync {
    /// IP protocol number of the transport. All agents of a world with the same number share its
    /// ports.
    fn protocol(&self) -> u8;

    /// A setting that has no effect because of the others, and its requirement. `paths`: the
    /// maximum over the members of its flow, and over all flows.
    fn idle(&self, paths: [usize; 2]) -> Option<InvalidSetting> {
        let _ = paths;
        None
    }

    /// Bytes of a message that fills a packet, for workloads without a message size.
    fn packet(&self) -> usize;

    /// Bytes of a full segment in the units of its window; 1 for a transport without a window.
    fn segment(&self) -> u64 {
        1
    }

    /// The receive buffer in bytes, which limits the size of messages. 0 if it has none.
    fn receive_buffer(&self) -> u64 {
        0
    }

    /// The largest packets that it sends with a workload; `None` if it discovers the path MTU, or
    /// if they are unknown.
    fn largest_packet(&self, workload: &Facts) -> Option<PacketLimit> {
        let _ = workload;
        None
    }

    /// Whether a flow without `paths` uses every interface of both hosts.
    fn is_multihomed(&self) -> bool {
        false
    }

    /// Whether its controllers implement Careful Resume (RFC 9959).
    fn resumes(&self) -> bool {
        false
    }

    /// Whether the transport needs links without corruption, because it does not detect damaged
    /// packets.
    fn needs_sound_links(&self) -> bool {
        false
    }

    /// Builds the agents of a member: that of the source, and that of the sink.
    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2];

    /// Inspects a packet, from the bytes after the IP header.
    fn inspect(&self, packet: &[u8]) -> PacketContent;

    /// Difference between the sequence numbers of two consecutive full segments.
    fn sequence_step(&self) -> u32 {
        1
    }
}

/// A member of a flow, as input for the agents of its ends.
pub struct FlowMember<'a> {
    /// Name: the flow's, with its index if there are several.
    pub name: &'a str,
    /// Pairs of source and sink addresses, the primary path first.
    pub paths: &'a [[IpAddr; 2]],
    /// The outages of the links at both ends of each path.
    pub outages: &'a [[Outages; 2]],
    /// Whether its ends are bound to the addresses of `paths`.
    pub bound: bool,
    /// Source port and sink port.
    pub ports: [u16; 2],
    /// The run's seed.
    pub seed: Seed,
    /// Whether checksums are computed and verified.
    pub checksum: bool,
    /// Workload.
    pub workload: Workload,
    /// Whether a measure needs the delays of its messages.
    pub delays: bool,
    /// The counters, shared by both ends.
    pub tally: SharedFlowStats,
    /// Careful Resume, if the flow uses it.
    pub resume: Option<Resume>,
}

impl FlowMember<'_> {
    /// A separate random stream for the transport of that name.
    pub fn rng(&self, transport: &str) -> Rng {
        self.seed.stream(&format!("{transport} {}", self.name))
    }

    /// Careful Resume of one end.
    pub fn resuming(&self, end: usize) -> Option<Resuming> {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let home = self.paths.first().map_or(nowhere, |path| path[end]);
        let resume = self.resume.clone()?;
        Some(Resuming::new(resume, home, Rc::clone(&self.tally)))
    }

    /// The path from the source's first address to the sink's first address.
    pub fn path(&self) -> Path {
        first_path(self.paths)
    }

    /// The distinct addresses of one end, that of the primary path first.
    pub fn addresses(&self, end: usize) -> Vec<IpAddr> {
        let mut addresses: Vec<IpAddr> = Vec::with_capacity(self.paths.len());
        for path in self.paths {
            if !addresses.contains(&path[end]) {
                addresses.push(path[end]);
            }
        }
        addresses
    }
}

/// The path between the first addresses; unspecified addresses if there are none.
pub(crate) fn first_path(paths: &[[IpAddr; 2]]) -> Path {
    let nowhere = [Ipv4Addr::UNSPECIFIED.into(); 2];
    let [from, to] = paths.first().copied().unwrap_or(nowhere);
    Path::new(from, to)
}

/// The transports that a program knows.
#[derive(Clone, Debug)]
pub struct Transports(Vec<&'static TransportEntry>);

impl Default for Transports {
    /// The transports of [`KINDS`].
    fn default() -> Self {
        Self(KINDS.to_vec())
    }
}

impl Transports {
    /// Adds a transport, which replaces one of the same name.
    #[must_use]
    pub fn with(mut self, entry: &'static TransportEntry) -> Self {
        self.0.retain(|known| known.kind.name != entry.kind.name);
        self.0.push(entry);
        self
    }

    /// Properties of the transports, for specs, schemas, help and manuals.
    pub fn kinds(&self) -> Vec<&'static TransportKind> {
        self.0.iter().map(|entry| &entry.kind).collect()
    }

    /// The kind of a flow's transport, if it is known.
    pub fn kind(&self, written: &Written) -> Option<&'static TransportKind> {
        self.entry(written).map(|entry| &entry.kind)
    }

    fn entry(&self, written: &Written) -> Option<&'static TransportEntry> {
        let mut entries = self.0.iter().copied();
        entries.find(|entry| entry.kind.is_of(written))
    }

    /// Builds a transport from valid names and values. Contradictions between them are reported at
    /// its `path`. `None` if there are any, or if the transport is unknown.
    pub fn build(
        &self,
        c: &mut Checker<'_>,
        written: &Written,
        ip: IpVersion,
        path: &str,
    ) -> Option<SharedTransport> {
        let entry = self.entry(written)?;
        let given = TransportInput {
            written,
            kind: &entry.kind,
            ip,
        };
        let found = (entry.build)(&given);
        let wrong = found.as_ref().err().into_iter().flatten();
        for InvalidSetting { setting, message } in wrong {
            let key = written.key_of(setting);
            let at = if path.is_empty() {
                key
            } else {
                format!("{path}.{key}")
            };
            c.problem(&at, message);
        }
        found.ok()
    }
}
