//! A deterministic network simulator: nodes, links, queues, losses, workloads, capture.
//!
//! The world handles packets and agents, and contains no code for SCTP or TCP. The simulator
//! carries the real bytes that transports encode, and decides whether and when each packet arrives.
//! It drives the agents at its nodes as [`anabranch_transport`] specifies.
//!
//! 1. A [`Topology`] names nodes and links: rate, propagation delay, queue, losses, outages for
//!    each direction.
//! 2. [`World::new`] creates a world from the topology and a [`Seed`]; [`World::attach`] adds
//!    [`Agent`]s to nodes.
//! 3. [`World::run_until`] runs the world; [`World::agent`], [`World::link_stats`] and
//!    [`World::packet_counts`] return the results.
//!
//! Loss models, queue disciplines, propagation models and workloads each declare their name in
//! specs and their parameters: see `KINDS` and `kinds` in [`loss`], [`queue`], [`propagation`] and
//! [`workload`].
//!
//! A run depends only on the topology, the agents and the seed. The crate reads no clock, uses no
//! other randomness and does no I/O (captures are written to the caller's writer).
//!
//! # The path of a packet
//!
//! An agent's `poll_transmit` writes the packet to the world's arena → its path is resolved to an
//! interface → the interface's simplex link (see [`link`]) decides its whole passage at once:
//! admission to the queue, end of serialisation, loss, arrival → the scheduler wakes the simplex
//! link when the first arrival is due → the node forwards it by a table lookup, or its
//! demultiplexer passes the same bytes to an agent's `handle_datagram`. A packet therefore requires
//! one event per hop, and in steady state neither a copy nor an allocation.
#![forbid(unsafe_code)]

mod agent;
mod arena;
mod capture;
mod crossing;
mod demux;
mod ephemeris;
mod error;
mod external;
mod ids;
pub mod ip;
pub mod link;
pub mod loss;
mod network;
pub mod packet;
mod packet_counts;
mod packet_tap;
pub mod probe;
pub mod propagation;
pub mod queue;
mod reachability;
pub mod rng;
mod router;
pub mod routing;
mod scheduler;
mod step_function;
mod topology;
pub mod udp;
pub mod wifi;
pub mod workload;
mod world;

pub use agent::{Agent, AgentId, Attachment, Binding};
pub use capture::{CapturedPacket, PacketFile, Way};
pub use crossing::Crossing;
pub use error::{BuildError, RunError};
pub use external::{EgressDatagram, RejectedDatagram};
pub use ids::{AddressFamily, LinkDirection, LinkId, MediumId, NodeId};
pub use link::{
    DirectionConfig, Impairments, LinkConfig, LinkStats, Outage, PlacedLoss, Reordering,
    TrafficCount,
};
pub use loss::{Loss, LossPosition};
pub use packet::{DataSegment, DropCounts, DropReason, Inspect, Packet};
pub use packet_counts::{Imbalance, PacketCounts, WorkCounts};
pub use packet_tap::PacketTap;
pub use probe::{LinkProbe, LinkProbes, LinkSample, Recorder};
pub use propagation::Propagation;
pub use queue::{Assignments, CoDel, CoDelConfig, DropTail, QueueDiscipline, QueueLimit};
pub use reachability::{PathFinder, Reachability};
pub use rng::{Probability, Rng, Seed, start_time};
pub use router::RouteTables;
pub use step_function::StepFunction;
pub use topology::{
    ConstellationConfig, ConstellationLinks, ElevationStep, GroundAccess, GroundPolicy, Handover,
    HandoverTimes, LinkClass, MediumConfig, MovingRoutes, Routing, Topology,
};
pub use world::{CaptureError, World};
