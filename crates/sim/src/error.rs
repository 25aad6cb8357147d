//! What can be wrong with a world before it runs, and the one thing that can be wrong while it does.

use std::net::IpAddr;

use anabranch_settings::Refusal;
use anabranch_transport::Nanos;

use crate::wifi::ParameterError;

/// Why a world cannot be built as asked. Nothing has run when one of these is returned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Two nodes of one name.
    #[error("there is already a node named `{0}`")]
    DuplicateNode(String),
    /// Two links of one name.
    #[error("there is already a link named `{0}`")]
    DuplicateLink(String),
    /// A node id that this topology did not hand out.
    #[error("node {0} does not exist")]
    UnknownNode(usize),
    /// A link id that this topology did not hand out.
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
    /// More links than the automatic addresses can tell apart.
    #[error("a topology holds at most {0} links")]
    TooManyLinks(usize),
    /// A rate of 0 bit/s: nothing would ever leave.
    #[error(
        "link `{0}` has a rate of 0 bit/s; leave the rate out for a link that takes no time to serialise"
    )]
    ZeroRate(String),
    /// A queue that admits nothing.
    #[error("a queue must hold at least one packet or one byte")]
    EmptyQueue,
    /// Outages of a link that overlap, are out of order, or end before they begin.
    #[error("link `{0}` has outages that overlap or are not in the order of time")]
    Outages(String),
    /// A probability outside 0 to 1, or NaN.
    #[error("a probability lies between 0 and 1, and {0} does not")]
    Probability(f64),
    /// A step function whose times do not increase.
    #[error("the steps of a schedule must be in the order of time, each time once")]
    Schedule,
    /// Parameters of a kind that do not go together.
    #[error("{0}")]
    Parameters(&'static str),
    /// A workload that offers messages of no bytes, or none per second.
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
    /// Two interfaces with one address.
    #[error("address {0} is already in use")]
    AddressTaken(IpAddr),
    /// An address that no interface has.
    #[error("no interface has the address {0}")]
    UnknownAddress(IpAddr),
    /// Two agents of one node that ask for the same datagrams.
    #[error("node `{node}` already has an agent at protocol {protocol}, port {port:?}")]
    BindingTaken {
        /// The node.
        node: String,
        /// IP protocol number.
        protocol: u8,
        /// Local port, if the binding names one.
        port: Option<u16>,
    },
    /// An agent that would start in the past.
    #[error("an agent cannot start at {start} ns, it is {now} ns already")]
    StartsInThePast {
        /// The asked start.
        start: Nanos,
        /// The present of the world.
        now: Nanos,
    },
    /// Two media of one name.
    #[error("there is already a medium named `{0}`")]
    DuplicateMedium(String),
    /// A medium id that this topology did not hand out.
    #[error("medium {0} does not exist")]
    UnknownMedium(usize),
    /// A medium that cannot be made as asked.
    #[error("medium `{medium}`: {error}")]
    Medium {
        /// The medium.
        medium: String,
        /// What is wrong.
        error: ParameterError,
    },
    /// A node that is a station twice.
    #[error("node `{node}` is a station of medium `{medium}` already")]
    StationTwice {
        /// The medium.
        medium: String,
        /// The node.
        node: String,
    },
    /// A wireless link to a node that is no station.
    #[error("node `{node}` is no station of medium `{medium}`")]
    NoStation {
        /// The medium.
        medium: String,
        /// The node.
        node: String,
    },
    /// A probe with bins of no length.
    #[error("the bins of a probe must be longer than 0 ns")]
    EmptyBin,
}

/// The parameters of a kind do not go together.
impl From<BuildError> for Refusal {
    fn from(error: BuildError) -> Self {
        Refusal::together(error)
    }
}

/// Why a run stopped before its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An agent asked to be woken, or sent packets, again and again at one instant, so that time stood still.
    #[error("agent {agent} keeps sending or asking for a wake-up at {at} ns")]
    Stalled {
        /// Index of the agent, in the order of attachment.
        agent: usize,
        /// The instant.
        at: Nanos,
    },
}
