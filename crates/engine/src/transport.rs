//! The transports of flows.
//!
//! To add a transport, write one file here, and add one line to [`KINDS`]. The file declares the
//! name and settings of the transport in specs, and builds and attaches the transport of a flow. A
//! program can add transports with
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

/// Periods in which a link is down in some direction: start and end in nanoseconds; the last may be
/// endless.
pub type Outages = Vec<[u64; 2]>;

/// A transport that was built from the settings of a flow.
pub type SharedTransport = Arc<dyn Transport>;

/// All transports that a spec can name.
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
    /// Name, settings and other properties of the transport that specs depend on.
    pub kind: TransportKind,
    /// Builds the transport of a flow from its settings. Each setting is already in its range, so
    /// errors concern only combinations.
    pub build: fn(&TransportInput<'_>) -> Result<SharedTransport, Vec<InvalidSetting>>,
}

/// Inputs for building the transport of a flow.
#[derive(Clone, Copy, Debug)]
pub struct TransportInput<'a> {
    /// The transport as written in the spec.
    pub written: &'a Written,
    /// The kind of the transport.
    pub kind: &'static TransportKind,
    /// IP version of the flow's packets.
    pub ip: IpVersion,
}

impl<'a> TransportInput<'a> {
    /// The settings and switches that the spec contains, with their values.
    pub fn values(self) -> impl Iterator<Item = (&'static Setting, Datum)> + use<'a> {
        self.written.values(self.kind)
    }
}

/// A setting that contradicts other settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSetting {
    /// Name of the setting.
    pub setting: String,
    /// Error message: the value found, and the values allowed.
    pub message: String,
}

impl InvalidSetting {
    /// Creates an error for a setting.
    pub fn new(setting: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            setting: setting.into(),
            message: message.into(),
        }
    }
}

/// Maximum size of the packets that a transport sends, whatever the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLimit {
    /// Maximum size in bytes, including the IP header.
    pub bytes: u64,
    /// Setting that determines the size; empty if the workload determines it.
    pub setting: &'static str,
    /// Bytes of the packet that the setting does not include.
    pub beside: u64,
    /// Alternative to a smaller value of the setting, which ends an error message: `, or ...`; may
    /// be empty.
    pub instead: &'static str,
}

/// Size of the IP header, bytes.
pub(crate) const fn ip_header(ip: IpVersion) -> u64 {
    match ip {
        IpVersion::Ipv4 => IPV4_HEADER as u64,
        IpVersion::Ipv6 => IPV6_HEADER as u64,
    }
}

/// The transport of a flow, which is built once and shared by all members and replications.
pub trait Transport: Debug + Send + Sync {
    /// IP protocol number of the transport. The agents of all transports with the same number share
    /// one range of ports in a world.
    fn protocol(&self) -> u8;

    /// A setting that has no effect because of the other settings, with a message about the
    /// condition for an effect. `paths` has the maximum number of paths over the members of this
    /// flow, and the maximum over all flows.
    fn idle(&self, paths: [usize; 2]) -> Option<InvalidSetting> {
        let _ = paths;
        None
    }

    /// Size in bytes of a message that fills a packet, for workloads without a message size.
    fn packet(&self) -> usize;

    /// Size of a full segment in bytes, as counted by the congestion window; 1 for a transport
    /// without a window.
    fn segment(&self) -> u64 {
        1
    }

    /// Size of the receive buffer in bytes, which limits the size of messages. 0 if the transport
    /// has none.
    fn receive_buffer(&self) -> u64 {
        0
    }

    /// Maximum size of the packets that the transport sends with a workload. `None` if the
    /// transport discovers the path MTU, or if the size is unknown.
    fn largest_packet(&self, workload: &Facts) -> Option<PacketLimit> {
        let _ = workload;
        None
    }

    /// Whether a flow without the key `paths` uses every interface of both hosts.
    fn is_multihomed(&self) -> bool {
        false
    }

    /// Whether the congestion controllers of the transport implement Careful Resume (RFC 9959).
    fn resumes(&self) -> bool {
        false
    }

    /// Whether the transport requires links without corruption, because it does not detect damaged
    /// packets.
    fn needs_sound_links(&self) -> bool {
        false
    }

    /// Builds the two agents of a member: the source and the sink.
    fn ends(&self, member: FlowMember<'_>) -> [Box<dyn Agent>; 2];

    /// Whether two threads of a divided world can run the two ends of a flow. This requires that
    /// the ends share only the counters of the flow, and that only the source reports when the flow
    /// ends early.
    fn has_separate_ends(&self) -> bool {
        false
    }

    /// Inspects a packet, from the bytes after the IP header.
    fn inspect(&self, packet: &[u8]) -> PacketContent;

    /// Difference between the sequence numbers of two consecutive full segments.
    fn sequence_step(&self) -> u32 {
        1
    }
}

/// A member of a flow, as input for building its agents.
pub struct FlowMember<'a> {
    /// Name of the flow, with the index of the member if there are several.
    pub name: &'a str,
    /// Pairs of source and sink addresses, with the primary path first.
    pub paths: &'a [[IpAddr; 2]],
    /// Outages of the links at both ends of each path.
    pub outages: &'a [[Outages; 2]],
    /// Whether the agents are bound to the addresses of `paths`.
    pub bound: bool,
    /// Source port and sink port.
    pub ports: [u16; 2],
    /// Seed of the run.
    pub seed: Seed,
    /// Whether checksums are computed and verified.
    pub checksum: bool,
    /// Workload of the member.
    pub workload: Workload,
    /// Whether a metric needs the delays of messages.
    pub delays: bool,
    /// Statistics of the member, shared by both agents.
    pub flow_stats: SharedFlowStats,
    /// Careful Resume, if the flow uses it.
    pub resume: Option<Resume>,
}

impl FlowMember<'_> {
    /// A separate random stream for the transport named `transport`.
    pub fn rng(&self, transport: &str) -> Rng {
        self.seed.stream(&format!("{transport} {}", self.name))
    }

    /// Careful Resume of the source (0) or the sink (1), if the flow uses it.
    pub fn resuming(&self, end: usize) -> Option<Resuming> {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let home = self.paths.first().map_or(nowhere, |path| path[end]);
        let resume = self.resume.clone()?;
        Some(Resuming::new(resume, home, Rc::clone(&self.flow_stats)))
    }

    /// Path from the first address of the source to the first address of the sink.
    pub fn path(&self) -> Path {
        first_path(self.paths)
    }

    /// Distinct addresses of the source (0) or the sink (1), beginning with that of the primary
    /// path.
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

/// Path between the first addresses; with unspecified addresses if there are none.
pub(crate) fn first_path(paths: &[[IpAddr; 2]]) -> Path {
    let nowhere = [Ipv4Addr::UNSPECIFIED.into(); 2];
    let [from, to] = paths.first().copied().unwrap_or(nowhere);
    Path::new(from, to)
}

/// All transports that a program supports.
#[derive(Clone, Debug)]
pub struct Transports(Vec<&'static TransportEntry>);

impl Default for Transports {
    /// The transports of [`KINDS`].
    fn default() -> Self {
        Self(KINDS.to_vec())
    }
}

impl Transports {
    /// Adds a transport; it replaces a transport of the same name.
    #[must_use]
    pub fn with(mut self, entry: &'static TransportEntry) -> Self {
        self.0.retain(|known| known.kind.name != entry.kind.name);
        self.0.push(entry);
        self
    }

    /// Kinds of all transports, for specs, schemas, help and manuals.
    pub fn kinds(&self) -> Vec<&'static TransportKind> {
        self.0.iter().map(|entry| &entry.kind).collect()
    }

    /// Kind of a flow's transport; `None` if it is unknown.
    pub fn kind(&self, written: &Written) -> Option<&'static TransportKind> {
        self.entry(written).map(|entry| &entry.kind)
    }

    fn entry(&self, written: &Written) -> Option<&'static TransportEntry> {
        let mut entries = self.0.iter().copied();
        entries.find(|entry| entry.kind.is_of(written))
    }

    /// Builds a transport from settings whose names and values are valid. Contradictions between
    /// settings are reported at `path`. Returns `None` after such a contradiction, or if the
    /// transport is unknown.
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
