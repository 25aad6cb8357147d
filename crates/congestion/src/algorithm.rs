//! Declaration of an algorithm: its name in specs, its properties, and the factory of its
//! controllers.

use std::any::{Any, TypeId};
use std::fmt;

use crate::{CongestionControl, WindowControl};

/// Standard controller of the protocol for a path, on which an algorithm may be built. An algorithm
/// may also ignore the base, or return it unchanged.
pub type Base = Box<dyn WindowControl>;

/// Function that creates the controller of a new path.
pub type Factory =
    &'static (dyn Fn(Base, &dyn ParameterLookup) -> Box<dyn CongestionControl> + Sync);

/// Protocol of the senders that use an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SCTP, whose base is [`SctpNewReno`](crate::sctp_newreno::SctpNewReno).
    Sctp,
    /// TCP, whose base is [`TcpNewReno`](crate::tcp_newreno::TcpNewReno).
    Tcp,
}

/// Lookup of algorithm parameters by their type.
pub trait ParameterLookup {
    /// Parameters of this type, if they are set.
    fn find(&self, of: TypeId) -> Option<&dyn Any>;
}

impl dyn ParameterLookup + '_ {
    /// Parameters of this type, or their default.
    pub fn get<T: Any + Copy + Default>(&self) -> T {
        let found = self.find(TypeId::of::<T>());
        let found = found.and_then(|numbers| numbers.downcast_ref::<T>());
        found.copied().unwrap_or_default()
    }
}

/// Requirement that an algorithm places on the association. If it is not satisfied, the algorithm
/// behaves like the standard controller of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// No requirement.
    Nothing,
    /// A receiver that reports its measurements.
    Reports,
    /// Several paths that are used concurrently.
    SeveralPaths,
}

/// Property of an algorithm on which other code depends. Most properties concern settings of the
/// protocols, which have an effect only with, or only without, such an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// The algorithm computes a pacing rate ([`CongestionControl::pacing_rate`]). The setting for a
    /// pacing rate of factor x cwnd / SRTT has no effect.
    PacesItself,
    /// The algorithm needs rate samples ([`CongestionControl::wants_rate_samples`]), which require
    /// time-based loss detection (RACK).
    NeedsRateSamples,
    /// The algorithm computes the window from a model of the path, so the protocol's rules for cwnd
    /// and ssthresh have no effect.
    OwnWindow,
    /// The algorithm has a separate rule for the end of slow start.
    OwnSlowStartExit,
    /// The algorithm has a separate rule for the growth of the window in congestion avoidance, and
    /// does not use the byte counter of the protocol.
    OwnIncrease,
    /// The algorithm has a separate minimum window, as part of its response to losses.
    OwnFloor,
    /// The algorithm has a separate rule for a window that is not fully used.
    OwnUnusedWindow,
    /// The window of the algorithm depends on absolute time, on the rate, or on a number of packets
    /// in the queue. If rate, queue and windows of a path are divided by the same factor, the
    /// window over time therefore has another shape.
    AbsoluteScale,
}

/// An algorithm: its name in specs, a one-line description, and its factory.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// Name in specs and reports.
    pub name: &'static str,
    /// Description of the algorithm, and its source.
    pub about: &'static str,
    /// The only protocol that supports the algorithm; `None`: every protocol.
    pub only: Option<Protocol>,
    /// Requirement on the association.
    pub needs: Requirement,
    /// Properties of the algorithm.
    pub properties: &'static [Property],
    /// Creates a controller.
    pub make: Factory,
}

impl Algorithm {
    /// Whether the algorithm has the property.
    pub fn has(&self, property: Property) -> bool {
        self.properties.contains(&property)
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Algorithm").field(&self.name).finish()
    }
}

impl PartialEq for Algorithm {
    /// Two algorithms are equal if their names are, because names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
