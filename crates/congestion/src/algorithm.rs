//! What an algorithm says of itself: its name in specs, and how a controller is made.

use std::any::{Any, TypeId};
use std::fmt;

use crate::{Adjustable, CongestionControl};

/// The protocol's own controller of a path, which an algorithm may build on, leave aside, or give back.
pub type Base = Box<dyn Adjustable>;

/// Makes a controller for a new path.
pub type Factory = &'static (dyn Fn(Base, &dyn Numbers) -> Box<dyn CongestionControl> + Sync);

/// A protocol whose senders run algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SCTP: the base is [`SctpNewReno`](crate::sctp_newreno::SctpNewReno).
    Sctp,
    /// TCP: the base is [`TcpNewReno`](crate::tcp_newreno::TcpNewReno).
    Tcp,
}

/// The numbers that algorithms have of their own, each set known by its type.
pub trait Numbers {
    /// The numbers of that type, if there are any.
    fn find(&self, of: TypeId) -> Option<&dyn Any>;
}

impl dyn Numbers + '_ {
    /// The numbers of that type, or its default.
    pub fn get<T: Any + Copy + Default>(&self) -> T {
        let found = self.find(TypeId::of::<T>());
        let found = found.and_then(|numbers| numbers.downcast_ref::<T>());
        found.copied().unwrap_or_default()
    }
}

/// What an algorithm needs beside a path, without which it is no more than the protocol's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// A receiver that reports what it sees.
    Reports,
    /// Several paths that are used at once.
    SeveralPaths,
}

/// A property of an algorithm on which settings of the protocols depend: with it, some of them have no effect, or others one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// It computes a rate for the pacer ([`CongestionControl::pacing_rate`]). A factor of cwnd / SRTT has no effect.
    PacesItself,
    /// It needs rate samples ([`CongestionControl::wants_rate_samples`]), for which losses are found by time (RACK).
    NeedsRateSamples,
    /// It computes the window from a model of the path: no rule of the protocol for cwnd or ssthresh has an effect.
    OwnWindow,
    /// Its rule ends slow start.
    OwnSlowStartExit,
    /// Its rule grows the window in congestion avoidance, without the byte counter of the protocol.
    OwnIncrease,
    /// Its rule for a loss includes the least window.
    OwnFloor,
    /// Its rule decides about a window that the sender does not use.
    OwnUnusedWindow,
}

/// Name in specs, one line of what it is, and how to make it.
#[derive(Clone, Copy)]
pub struct Algorithm {
    /// The name in specs and reports.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub about: &'static str,
    /// The one protocol that it is for; `None`: it is for any.
    pub only: Option<Protocol>,
    /// What it needs of the association.
    pub needs: Needs,
    /// Its properties, as far as settings of the protocols depend on them.
    pub properties: &'static [Property],
    /// Makes a controller.
    pub make: Factory,
}

impl Algorithm {
    /// Whether it has the property.
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
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
