//! Workloads: the messages that an application offers, and their times. Workloads are independent
//! of transports; an adapter polls the workload and feeds a transport.
//!
//! A workload is one file, which contains its declaration, and one line in [`KINDS`].

mod bulk;
mod cbr;
mod mixed;
mod on_off;
mod request_response;
pub mod size;
mod trace;
mod transfers;

use anabranch_settings::{Kind, KindEntry, Registry, Setting};
use anabranch_transport::Nanos;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use mixed::Mixed;
pub use on_off::{OnOff, Span};
pub use request_response::RequestResponse;
pub use trace::{Trace, TraceEntry};
pub use transfers::{Arrivals, Transfers};

use crate::rng::{Rng, Seed};

/// A boxed workload.
pub type BoxedWorkload = Box<dyn Workload>;

/// All workloads that a spec can name. Each entry refers to the declaration in the module of the
/// workload.
pub const KINDS: &[&KindEntry<BoxedWorkload, Context>] = &[
    &bulk::ENTRY,
    &cbr::ENTRY,
    &on_off::ENTRY,
    &transfers::ENTRY,
    &request_response::ENTRY,
    &trace::ENTRY,
    &mixed::ENTRY,
];

/// The registry of [`KINDS`], to which a program may add its own workloads.
pub fn kinds() -> Registry<BoxedWorkload, Context> {
    Registry::new(KINDS)
}

/// Inputs for building a workload, in addition to its parameters.
#[derive(Clone, Debug)]
pub struct Context {
    /// The workload's random stream.
    pub rng: Rng,
    /// Size of a message that fills a packet of its transport, bytes.
    pub packet: usize,
    /// Properties of the transport.
    pub carrier: TransportCapabilities,
}

/// Capabilities of a transport, because some parameters of workloads have no effect over some
/// transports.
#[derive(Clone, Debug)]
pub struct TransportCapabilities {
    /// Name of the transport in error messages.
    pub title: String,
    /// The transport preserves message boundaries.
    pub messages: bool,
    /// The transport has a single stream.
    pub one_stream: bool,
}

impl Context {
    /// A context with a transport that has all capabilities.
    pub const fn new(rng: Rng, packet: usize) -> Self {
        let carrier = TransportCapabilities {
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

    /// The reason why the largest message of a transfer has no effect, if it has none.
    fn no_messages(&self) -> Option<String> {
        let TransportCapabilities {
            title, messages, ..
        } = &self.carrier;
        let why = || format!("over {title}, which carries bytes and no messages");
        (!messages).then(why)
    }
}

impl Default for Context {
    /// For a workload that is only inspected and never run.
    fn default() -> Self {
        Self::new(Seed::default().stream("workload"), 1460)
    }
}

/// The parameters that the workloads share.
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

/// A message or a transfer. A transport may carry it in any number of pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Size, bytes.
    pub size: usize,
    /// The stream on which it should be sent; `None`: the adapter chooses. Transports without
    /// streams ignore it.
    pub stream: Option<u16>,
    /// The time at which it was due. The message may be taken later, if the transport has no buffer
    /// space at that time. `None`: the time at which it is taken.
    pub due: Option<Nanos>,
    /// Maximum size of the pieces over a transport that preserves message boundaries; `None`: a
    /// single piece.
    pub piece: Option<usize>,
    /// Size of the answer that the receiver sends when it has received the whole message. The
    /// workload is notified of the last byte of the answer by [`Workload::answered`].
    pub answer: Option<usize>,
}

impl Message {
    /// A message of `size` bytes without further requirements.
    pub const fn new(size: usize) -> Self {
        Self {
            size,
            stream: None,
            due: None,
            piece: None,
            answer: None,
        }
    }

    /// Sets the due time.
    #[must_use]
    pub const fn due(mut self, due: Nanos) -> Self {
        self.due = Some(due);
        self
    }
}

/// The result of polling a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// A message, which is removed from the workload.
    Now(Message),
    /// No message before this time.
    At(Nanos),
    /// No message before an answer has arrived: see [`Workload::answered`].
    Waiting,
    /// No more messages.
    Done,
}

/// Static properties of a workload, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Minimum and maximum message size, bytes.
    pub sizes: [u64; 2],
    /// Maximum size of the pieces over a transport that preserves message boundaries; `None`: a
    /// single piece.
    pub piece: Option<u64>,
    /// The workload offers messages at times that do not depend on the transport. Otherwise a
    /// transport with a window should pace it.
    pub paced: bool,
    /// The workload never ends.
    pub endless: bool,
    /// The messages of the flow are answered, so the transport must carry data in both directions.
    pub answered: bool,
    /// The mean time between two messages, nanoseconds, if it is known.
    pub gap: Option<Nanos>,
    /// Maximum number of messages, if the workload ends by itself.
    pub messages: Option<u64>,
}

impl Default for Facts {
    /// Messages of any size, offered by the workload's own clock.
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
    /// Minimum and maximum size of the pieces over a transport that preserves message boundaries,
    /// bytes; the last piece of a transfer may be smaller.
    pub fn pieces(&self) -> [u64; 2] {
        let most = self.piece.unwrap_or(u64::MAX);
        self.sizes.map(|size| size.min(most))
    }
}

/// A source of messages.
///
/// The adapter should call [`Workload::next`] while the transport has buffer space; each `Now`
/// returns a message. A workload keeps its own time: a message for which the transport had no space
/// when it was due is offered late, at the next call. Time begins at the first call.
pub trait Workload {
    /// Polls the workload at `now`.
    fn next(&mut self, now: Nanos) -> Offer;

    /// The last byte of an answer arrived.
    fn answered(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Static properties of the workload.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

impl Workload for BoxedWorkload {
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
