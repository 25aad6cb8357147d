//! Workloads: when an application offers what. They know nothing of transports; an adapter asks them and feeds one.

mod bulk;
mod cbr;
mod on_off;
mod trace;

use anabranch_settings::{Entry, Fallback, Kind, Registry, Setting};
use anabranch_transport::Nanos;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use on_off::{OnOff, Span};
pub use trace::{Trace, TraceEntry};

use crate::rng::Rng;

/// Every workload that named values make: one line for each, whose declaration stands beside its code. Making one takes the
/// random stream that it may draw from. [`Trace`] is none of them, since its list has messages.
pub const KINDS: &[&Entry<Box<dyn Workload>, Rng>] = &[&bulk::ENTRY, &cbr::ENTRY, &on_off::ENTRY];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<Box<dyn Workload>, Rng> {
    Registry::new(KINDS)
}

/// The parameters that workloads share.
const MESSAGE: Setting = Setting {
    name: "message",
    about: " Size of a message.",
    clause: "",
    kind: SIZE,
    fallback: Fallback::Required,
};
const SIZE: Kind = Kind::Bytes {
    least: 1,
    most: 1 << 40,
};
const RATE: Setting = Setting {
    name: "rate",
    about: " Of user data, while messages come.",
    clause: "",
    kind: Kind::Rate {
        least: 1,
        most: 1_000_000_000_000,
    },
    fallback: Fallback::Required,
};

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its size, bytes.
    pub size: usize,
    /// The stream it should go on; `None`: the adapter chooses. Transports without streams ignore it.
    pub stream: Option<u16>,
}

/// What a workload has for its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A message, which is thereby taken.
    Now(Message),
    /// Nothing before this time.
    At(Nanos),
    /// Nothing any more.
    Done,
}

/// A source of messages.
///
/// Ask [`Workload::next`] while the transport has room: each `Now` hands over a message. A workload keeps its own time:
/// what a transport had no room for when it was due is offered as soon as it is asked for, late. Time begins at the
/// first call.
pub trait Workload {
    /// What there is at `now`.
    fn next(&mut self, now: Nanos) -> Offer;
}

#[cfg(test)]
mod tests;
