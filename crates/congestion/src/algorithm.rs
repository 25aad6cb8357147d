//! Description of an algorithm: its name in specs, its properties, and the factory of its
//! controllers.

use std::any::{Any, TypeId};
use std::fmt;

use crate::{CongestionControl, WindowControl};

/// The protocol's own controller of a path. An algorithm may build on it, ignore it, or return it
/// unchanged.
pub type Base = Box<dyn WindowControl>;

/// Creates the controller of a new path.
pub type Factory =
    &'static (dyn Fn(Base, &dyn ParameterLookup) -> Box<dyn CongestionControl> + Sync);

/// A protocol whose senders use the algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SCTP: the base is [`SctpNewReno`](crate::sctp_newreno::SctpNewReno).
    Sctp,
    /// TCP: the base is [`TcpNewReno`](crate::tcp_newreno::TcpNewReno).
    Tcp,
}

/// Parameters of algorithms, looked up by their type.
pub trait ParameterLookup {
    /// The parameters of this type, if they are set.
    fn find(&self, of: TypeId) -> Option<&dyn Any>;
}

impl dyn ParameterLookup + '_ {
    /// The parameters of this type, or their default.
    pub fn get<T: Any + Copy + Default>(&self) -> T {
        let found = self.find(TypeId::of::<T>());
        let found = found.and_then(|numbers| numbers.downcast_ref::<T>());
        found.copied().unwrap_or_default()
    }
}

/// A requirement of an algorithm in addition to a path. Without it the algorithm behaves like the
/// protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// No requirement.
    Nothing,
    /// A receiver that reports its measurements.
    Reports,
    /// Several paths that are used concurrently.
    SeveralPaths,
}

/// A property of an algorithm that others depend on. Most affect settings of the protocols: some
/// settings have an effect only with it, others only without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// The algorithm computes a pacing rate ([`CongestionControl::pacing_rate`]). A factor of cwnd
    /// / SRTT has no effect.
    PacesItself,
    /// The algorithm needs rate samples ([`CongestionControl::wants_rate_samples`]), which require
    /// loss detection by time (RACK).
    NeedsRateSamples,
    /// The algorithm computes the window from a model of the path: the protocol's rules for cwnd
    /// and ssthresh have no effect.
    OwnWindow,
    /// The algorithm ends slow start by a separate rule.
    OwnSlowStartExit,
    /// The algorithm increases the window in congestion avoidance by its own rule, without the byte
    /// counter of the protocol.
    OwnIncrease,
    /// The algorithm has its own minimum window, as part of its rule for losses.
    OwnFloor,
    /// The algorithm has its own rule for a window that is not fully used.
    OwnUnusedWindow,
    /// The window of the algorithm depends on time, on the rate, or on a number of packets in the
    /// queue. A smaller path, with rate, queue and windows divided by the same factor, does not
    /// give the same shape.
    AbsoluteScale,
}

/// An algorithm: its name in specs, a one-line description, and its factory.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// The name in specs and reports.
    pub name: &'static str,
    /// Description and source.
    pub about: &'static str,
    /// The only protocol that supports it; `None`: any protocol.
    pub only: Option<Protocol>,
    /// Requirements on the association.
    pub needs: Needs,
    /// Properties.
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
    /// Compares the names, because they are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
