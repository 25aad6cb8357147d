//! Workloads: when an application offers what. They know nothing of transports; an adapter asks them and feeds one.
//!
//! A workload is one file, with its declaration beside its code, and one line in [`KINDS`].

mod bulk;
mod cbr;
mod mixed;
mod on_off;
mod request_response;
pub mod size;
mod trace;
mod transfers;

use anabranch_settings::{Entry, Kind, Registry, Setting};
use anabranch_transport::Nanos;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use mixed::Mixed;
pub use on_off::{OnOff, Span};
pub use request_response::RequestResponse;
pub use trace::{Trace, TraceEntry};
pub use transfers::{Arrivals, Transfers};

use crate::rng::{Rng, Seed};

/// A workload as it is made.
pub type Made = Box<dyn Workload>;

/// Every workload that named values make: one line for each, whose declaration stands beside its code.
pub const KINDS: &[&Entry<Made, Context>] = &[
    &bulk::ENTRY,
    &cbr::ENTRY,
    &on_off::ENTRY,
    &transfers::ENTRY,
    &request_response::ENTRY,
    &trace::ENTRY,
    &mixed::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own.
pub fn kinds() -> Registry<Made, Context> {
    Registry::new(KINDS)
}

/// What making a workload takes beside its parameters.
#[derive(Clone, Debug)]
pub struct Context {
    /// The random stream that it may draw from.
    pub rng: Rng,
    /// The size of a message that fills a packet of its transport, bytes.
    pub packet: usize,
    /// The transport that carries it.
    pub carrier: Carrier,
}

/// What a transport can do for a workload: some parameters have no effect over some transports.
#[derive(Clone, Debug)]
pub struct Carrier {
    /// Its name in sentences.
    pub title: String,
    /// It delivers messages as they were given.
    pub messages: bool,
    /// It has a single stream.
    pub one_stream: bool,
}

impl Context {
    /// A context for a transport that can do all that a workload may ask for.
    pub const fn new(rng: Rng, packet: usize) -> Self {
        let carrier = Carrier {
            title: String::new(),
            messages: true,
            one_stream: false,
        };
        Self {
            rng,
            packet,
            carrier,
        }
    }

    /// Why the largest message of a transfer has no effect, if it has none.
    fn no_messages(&self) -> Option<String> {
        let Carrier {
            title, messages, ..
        } = &self.carrier;
        let why = || format!("over {title}, which carries bytes and no messages");
        (!messages).then(why)
    }
}

impl Default for Context {
    /// Of a workload that is only looked at.
    fn default() -> Self {
        Self::new(Seed::default().stream("workload"), 1460)
    }
}

/// The parameters that workloads share.
const MESSAGE: Setting = Setting::new("message", " Size of a message.", SIZE);
const SIZE: Kind = Kind::bytes(1, 1 << 40);
const RATE: Setting = Setting::new(
    "rate",
    " Rate of user data while the flow sends.",
    Kind::rate(1, 1_000_000_000_000),
);
const COUNT: Kind = Kind::count(1, u64::MAX);
/// A time above 0, and one that may be 0.
const INTERVAL: Kind = Kind::duration(1, Nanos::MAX);
const PAUSE: Kind = Kind::duration(0, Nanos::MAX);

/// One message, or one transfer: what a transport carries in as many pieces as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its size, bytes.
    pub size: usize,
    /// The stream it should go on; `None`: the adapter chooses. Transports without streams ignore it.
    pub stream: Option<u16>,
    /// When it was due, which may be before it is taken: a transport without room takes it late. `None`: when it is taken.
    pub due: Option<Nanos>,
    /// A transport that keeps the boundaries of messages carries it in pieces of at most so many bytes; `None`: in one.
    pub piece: Option<usize>,
    /// The receiver answers it with so many bytes once it has all of it, and the workload hears of the answer's last byte by
    /// [`Workload::answered`].
    pub answer: Option<usize>,
}

impl Message {
    /// A message of `size` bytes, which an adapter carries as it likes.
    pub const fn new(size: usize) -> Self {
        Self {
            size,
            stream: None,
            due: None,
            piece: None,
            answer: None,
        }
    }

    /// The same, due at `due`.
    #[must_use]
    pub const fn due(mut self, due: Nanos) -> Self {
        self.due = Some(due);
        self
    }
}

/// What a workload has for its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A message, which is thereby taken.
    Now(Message),
    /// Nothing before this time.
    At(Nanos),
    /// Nothing before an answer has come: see [`Workload::answered`].
    Waiting,
    /// Nothing any more.
    Done,
}

/// What can be said of a workload before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Sizes of the least and of the largest message, bytes.
    pub sizes: [u64; 2],
    /// A transport that keeps the boundaries of messages carries each in pieces of at most so many bytes; `None`: in one.
    pub piece: Option<u64>,
    /// It offers messages by a clock of its own. One without wants a transport with a window to pace it.
    pub paced: bool,
    /// It never runs dry.
    pub endless: bool,
    /// Its messages want answers: a transport must carry bytes in both directions.
    pub answered: bool,
    /// The mean time between two messages, nanoseconds, where it keeps one.
    pub gap: Option<Nanos>,
    /// The most messages that it offers, where it ends by itself.
    pub messages: Option<u64>,
}

impl Default for Facts {
    /// Messages of any size by a clock of its own.
    fn default() -> Self {
        Self {
            sizes: [1, 1],
            piece: None,
            paced: true,
            endless: false,
            answered: false,
            gap: None,
            messages: None,
        }
    }
}

impl Facts {
    /// Sizes of the least and of the largest message that a transport which keeps their boundaries is given, bytes; what is
    /// left of a transfer for its last piece may be less.
    pub fn pieces(&self) -> [u64; 2] {
        let most = self.piece.unwrap_or(u64::MAX);
        self.sizes.map(|size| size.min(most))
    }
}

/// A source of messages.
///
/// Ask [`Workload::next`] while the transport has room: each `Now` hands over a message. A workload keeps its own time:
/// what a transport had no room for when it was due is offered as soon as it is asked for, late. Time begins at the
/// first call.
pub trait Workload {
    /// What there is at `now`.
    fn next(&mut self, now: Nanos) -> Offer;

    /// The last byte of an answer arrived.
    fn answered(&mut self, now: Nanos) {
        let _ = now;
    }

    /// What can be said of it before it runs.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

impl Workload for Made {
    fn next(&mut self, now: Nanos) -> Offer {
        (**self).next(now)
    }

    fn answered(&mut self, now: Nanos) {
        (**self).answered(now);
    }

    fn facts(&self) -> Facts {
        (**self).facts()
    }
}

#[cfg(test)]
mod tests;
