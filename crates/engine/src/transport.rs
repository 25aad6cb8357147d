//! The transports of flows.
//!
//! A transport is one file here, which declares how specs name it and how a flow's is built and attached, and one line in
//! [`KINDS`]. A program adds its own with [`Standard::with_transport`](crate::kinds::Standard::with_transport).

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

use crate::agent::inspect::Seen;
use crate::agent::resume::{Resume, Resuming};
use crate::agent::tally::SharedTally;

#[cfg(not(all(feature = "quic", not(target_family = "wasm"))))]
mod absent;
pub mod peers;
#[cfg(all(feature = "quic", not(target_family = "wasm")))]
pub mod quic;
pub mod sctp;
pub mod tcp;
pub mod udp;

/// Spans in which a link is down in some direction; the last may never end.
pub type Outages = Vec<[u64; 2]>;

/// A transport as a flow's settings made it.
pub type Made = Arc<dyn Transport>;

/// Every transport: one line for each.
pub const KINDS: &[&Entry] = &[
    &tcp::ENTRY,
    &sctp::ENTRY,
    &udp::ENTRY,
    #[cfg(all(feature = "quic", not(target_family = "wasm")))]
    &quic::ENTRY,
    #[cfg(not(all(feature = "quic", not(target_family = "wasm"))))]
    &absent::QUIC,
    &peers::DCSCTP,
    &peers::RTC_SCTP,
    &peers::SCTP_PROTO,
];

/// A transport that specs can name.
#[derive(Debug)]
pub struct Entry {
    /// Its name, its settings, and what the grammar must know of it.
    pub kind: TransportKind,
    /// Builds a flow's from its settings. Each is in its range; what is wrong with them together is the error.
    pub build: fn(&Given<'_>) -> Result<Made, Vec<Wrong>>,
}

/// What a flow's transport is built from.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// As the spec has it.
    pub written: &'a Written,
    /// Its kind.
    pub kind: &'static TransportKind,
    /// The IP version below it.
    pub ip: IpVersion,
}

impl<'a> Given<'a> {
    /// The settings and switches that were given, with their values.
    pub fn values(self) -> impl Iterator<Item = (&'static Setting, Datum)> + use<'a> {
        self.written.values(self.kind)
    }
}

/// A setting that does not go together with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// Its name.
    pub setting: String,
    /// What was found, and what is allowed.
    pub message: String,
}

impl Wrong {
    /// `message` about a setting.
    pub fn new(setting: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            setting: setting.into(),
            message: message.into(),
        }
    }
}

/// The largest packets that a transport sends, whatever the path carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Largest {
    /// Bytes with the IP header.
    pub bytes: u64,
    /// The setting that says so; empty where the workload does.
    pub setting: &'static str,
    /// Bytes of them that are not counted there.
    pub beside: u64,
    /// What may be done in place of a smaller value: `, or ...`.
    pub instead: &'static str,
}

/// Bytes of the IP header.
pub(crate) const fn ip_header(ip: IpVersion) -> u64 {
    match ip {
        IpVersion::Ipv4 => IPV4_HEADER as u64,
        IpVersion::Ipv6 => IPV6_HEADER as u64,
    }
}

/// A flow's transport: built once, and shared by all members and replications of the flow.
pub trait Transport: Debug + Send + Sync {
    /// Its IP protocol number. All agents of a world with the same number share its ports.
    fn protocol(&self) -> u8;

    /// A setting that has no effect beside the others, and what it needs. `paths`: the most that a member of its flow has, and one of
    /// any flow.
    fn idle(&self, paths: [usize; 2]) -> Option<Wrong> {
        let _ = paths;
        None
    }

    /// Bytes of a message that fills a packet: what a workload offers that leaves the size open.
    fn packet(&self) -> usize;

    /// Bytes of a full segment as its window counts them; 1 for a transport without a window.
    fn segment(&self) -> u64 {
        1
    }

    /// The receive buffer, bytes: the largest message that it can hold, where it delivers messages. 0 where it has none.
    fn receive_buffer(&self) -> u64 {
        0
    }

    /// The largest packets that it sends with a workload; `None` where it finds out what a path carries, or does not say.
    fn largest_packet(&self, workload: &Facts) -> Option<Largest> {
        let _ = workload;
        None
    }

    /// Whether a flow that names no paths uses every interface of both hosts.
    fn is_multihomed(&self) -> bool {
        false
    }

    /// Whether its controllers implement Careful Resume (RFC 9959).
    fn resumes(&self) -> bool {
        false
    }

    /// Whether it needs links that damage no packet: it finds none that is.
    fn needs_sound_links(&self) -> bool {
        false
    }

    /// Makes the two ends of a member: the source's agent, and the sink's.
    fn ends(&self, member: Member<'_>) -> [Box<dyn Agent>; 2];

    /// What a packet carries, by its bytes after the IP header.
    fn inspect(&self, packet: &[u8]) -> Seen;

    /// How far the sequence numbers of two full segments lie apart.
    fn sequence_step(&self) -> u32 {
        1
    }
}

/// A member of a flow, as its transport makes the two ends of it.
pub struct Member<'a> {
    /// Its name: the flow's, with its number where there are several.
    pub name: &'a str,
    /// Pairs of addresses, the source's and the sink's, the primary first.
    pub paths: &'a [[IpAddr; 2]],
    /// When the links at both ends of each path are down.
    pub outages: &'a [[Outages; 2]],
    /// Its ends have the addresses of `paths` and no others.
    pub bound: bool,
    /// The source's port, and the sink's.
    pub ports: [u16; 2],
    /// The run's seed.
    pub seed: Seed,
    /// Checksums are computed and verified.
    pub checksum: bool,
    /// What it sends.
    pub workload: Workload,
    /// A measure asks for the delays of its messages.
    pub delays: bool,
    /// Who counts, at both ends.
    pub tally: SharedTally,
    /// Its flow resumes from saved parameters.
    pub resume: Option<Resume>,
}

impl Member<'_> {
    /// A random stream of its own, for the transport of that name.
    pub fn rng(&self, transport: &str) -> Rng {
        self.seed.stream(&format!("{transport} {}", self.name))
    }

    /// The part of one end in Careful Resume.
    pub fn resuming(&self, end: usize) -> Option<Resuming> {
        let nowhere = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let home = self.paths.first().map_or(nowhere, |path| path[end]);
        let resume = self.resume.clone()?;
        Some(Resuming::new(resume, home, Rc::clone(&self.tally)))
    }

    /// From the source's first address to the sink's first.
    pub fn path(&self) -> Path {
        first_path(self.paths)
    }

    /// The addresses of one end, the primary path's first, each once.
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

/// From the first address to the first; from and to nowhere where there is none.
pub(crate) fn first_path(paths: &[[IpAddr; 2]]) -> Path {
    let nowhere = [Ipv4Addr::UNSPECIFIED.into(); 2];
    let [from, to] = paths.first().copied().unwrap_or(nowhere);
    Path::new(from, to)
}

/// The transports that a program knows.
#[derive(Clone, Debug)]
pub struct Transports(Vec<&'static Entry>);

impl Default for Transports {
    /// Those of [`KINDS`].
    fn default() -> Self {
        Self(KINDS.to_vec())
    }
}

impl Transports {
    /// These and one more, which takes the place of one of the same name.
    #[must_use]
    pub fn with(mut self, entry: &'static Entry) -> Self {
        self.0.retain(|known| known.kind.name != entry.kind.name);
        self.0.push(entry);
        self
    }

    /// What specs, schemas, help and manuals need to know of them.
    pub fn kinds(&self) -> Vec<&'static TransportKind> {
        self.0.iter().map(|entry| &entry.kind).collect()
    }

    /// What a flow's transport is, if it is known.
    pub fn kind(&self, written: &Written) -> Option<&'static TransportKind> {
        self.entry(written).map(|entry| &entry.kind)
    }

    fn entry(&self, written: &Written) -> Option<&'static Entry> {
        let mut entries = self.0.iter().copied();
        entries.find(|entry| entry.kind.is_of(written))
    }

    /// Builds a transport whose names and values are right, each for itself; what is wrong with them together is noted at its
    /// `path`. `None` where something is, or there is no such transport.
    pub fn build(
        &self,
        c: &mut Checker<'_>,
        written: &Written,
        ip: IpVersion,
        path: &str,
    ) -> Option<Made> {
        let entry = self.entry(written)?;
        let given = Given {
            written,
            kind: &entry.kind,
            ip,
        };
        let found = (entry.build)(&given);
        let wrong = found.as_ref().err().into_iter().flatten();
        for Wrong { setting, message } in wrong {
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
