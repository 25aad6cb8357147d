//! Errors: invalid topologies, agents and parameters, and runs that stop early.

use std::net::IpAddr;

use anabranch_settings::KindError;
use anabranch_transport::Nanos;

use crate::wifi::ParameterError;

/// The reason why a world cannot be built. All these errors are detected before the first event is
/// executed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two nodes with the same name.
    #[error("there is already a node named `{0}`")]
    DuplicateNode(String),
    /// Two links with the same name.
    #[error("there is already a link named `{0}`")]
    DuplicateLink(String),
    /// A node id that does not belong to this topology.
    #[error("node {0} does not exist")]
    UnknownNode(usize),
    /// A link id that does not belong to this topology.
    #[error("link {0} does not exist")]
    UnknownLink(usize),
    /// A link from a node to itself.
    #[error("link `{link}` connects node `{node}` with itself")]
    LinkToItself {
        /// The link.
        link: String,
        /// The node at both of its ends.
        node: String,
    },
    /// More links than there are automatic addresses.
    #[error("a topology holds at most {0} links")]
    TooManyLinks(usize),
    /// A rate of 0 bit/s, with which no packet would ever be sent.
    #[error(
        "link `{0}` has a rate of 0 bit/s; leave the rate out for a link that takes no time to serialise"
    )]
    ZeroRate(String),
    /// A queue whose limit is 0.
    #[error("a queue must hold at least one packet or one byte")]
    EmptyQueue,
    /// Outages of a link that overlap, are out of order, or end before they begin.
    #[error("link `{0}` has outages that overlap or are not in the order of time")]
    Outages(String),
    /// A probability that is below 0, above 1, or NaN.
    #[error("a probability lies between 0 and 1, and {0} does not")]
    Probability(f64),
    /// A step function whose times do not increase.
    #[error("the steps of a schedule must be in the order of time, each time once")]
    Schedule,
    /// Parameters that contradict each other.
    #[error("{0}")]
    Parameters(&'static str),
    /// A workload with empty messages, or with a rate of 0 messages per second.
    #[error("a workload needs {0}")]
    Workload(&'static str),
    /// The node is not at either end of the link.
    #[error("link `{link}` does not end at node `{node}`")]
    NotAtLink {
        /// The link.
        link: String,
        /// The node.
        node: String,
    },
    /// Two interfaces with the same address.
    #[error("address {0} is already in use")]
    AddressTaken(IpAddr),
    /// An address that belongs to no interface.
    #[error("no interface has the address {0}")]
    UnknownAddress(IpAddr),
    /// Two agents of one node with the same binding.
    #[error("node `{node}` already has an agent at protocol {protocol}, port {port:?}")]
    BindingTaken {
        /// The node.
        node: String,
        /// IP protocol number.
        protocol: u8,
        /// Local port of the binding; `None` if it receives on every port.
        port: Option<u16>,
    },
    /// An agent whose start time is earlier than the current time of the world.
    #[error("an agent cannot start at {start} ns, it is {now} ns already")]
    StartsInThePast {
        /// The requested start.
        start: Nanos,
        /// The current time of the world.
        now: Nanos,
    },
    /// A division that does not assign each node to a part.
    #[error("{owners} owners for {nodes} nodes")]
    Owners {
        /// Number of owners.
        owners: usize,
        /// Number of nodes of the world.
        nodes: usize,
    },
    /// A world that is divided after it has run, or after one of its agents has sent packets.
    #[error("a world is divided before it runs; this one has already run, to {0} ns")]
    AlreadyRun(Nanos),
    /// Two media with the same name.
    #[error("there is already a medium named `{0}`")]
    DuplicateMedium(String),
    /// A medium id that does not belong to this topology.
    #[error("medium {0} does not exist")]
    UnknownMedium(usize),
    /// A medium with invalid parameters.
    #[error("medium `{medium}`: {error}")]
    Medium {
        /// The medium.
        medium: String,
        /// The invalid parameter.
        error: ParameterError,
    },
    /// A node that joins the same medium twice.
    #[error("node `{node}` is a station of medium `{medium}` already")]
    StationTwice {
        /// The medium.
        medium: String,
        /// The node.
        node: String,
    },
    /// A wireless link to a node that is not a station of the medium.
    #[error("node `{node}` is no station of medium `{medium}`")]
    NoStation {
        /// The medium.
        medium: String,
        /// The node.
        node: String,
    },
    /// A probe with bins of length 0.
    #[error("the bins of a probe must be longer than 0 ns")]
    EmptyBin,
}

/// If a model rejects values that are each in their range, the parameters contradict each other.
impl From<BuildError> for KindError {
    fn from(error: BuildError) -> Self {
        KindError::together(error)
    }
}

/// The reason why a run stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An agent repeatedly requested a wake-up or sent packets at one instant, so that simulated
    /// time did not advance.
    #[error("agent {agent} keeps sending or asking for a wake-up at {at} ns")]
    Stalled {
        /// Index of the agent in the order of attachment, from 0.
        agent: usize,
        /// The instant, nanoseconds of simulated time.
        at: Nanos,
    },
    /// A packet between two parts of a divided world takes no time, or less than the least delay
    /// of its link.
    #[error(
        "a packet between two parts of the world takes less time than was foreseen, at {at} ns"
    )]
    Lookahead {
        /// The time at which the packet arrives.
        at: Nanos,
    },
}
