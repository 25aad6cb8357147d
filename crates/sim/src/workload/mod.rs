//! Workloads: the messages that an application offers, and the times at which it offers them.
//! Workloads are independent of transports; an adapter polls the workload and feeds a transport.
//!
//! To add a workload, write one file with its declaration, and add one line to [`KINDS`].

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
pub use on_off::{OnOff, PeriodLength};
pub use request_response::RequestResponse;
pub use trace::{MessageTrace, TraceEntry};
pub use transfers::{Arrivals, OpenLoop};

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
    /// Random stream of the workload.
    pub rng: Rng,
    /// Size of a message that fills a packet of the transport, bytes.
    pub packet: usize,
    /// Capabilities of the transport that carries the workload.
    pub carrier: TransportCapabilities,
}

/// Capabilities of a transport. Some parameters of workloads have no effect over transports without
/// them.
#[derive(Clone, Debug)]
pub struct TransportCapabilities {
    /// Name of the transport in error messages.
    pub title: String,
    /// Whether the transport preserves message boundaries.
    pub messages: bool,
    /// Whether the transport has only a single stream.
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

    /// The reason why the maximum message size of a transfer has no effect, if the transport does
    /// not preserve messages.
    fn no_messages(&self) -> Option<String> {
        let TransportCapabilities {
            title, messages, ..
        } = &self.carrier;
        let why = || format!("over {title}, which carries bytes and no messages");
        (!messages).then(why)
    }
}

impl Default for Context {
    /// Context of a workload that is only inspected and never run.
    fn default() -> Self {
        Self::new(Seed::default().stream("workload"), 1460)
    }
}

/// Parameters and value kinds that the workloads share.
const MESSAGE: Setting = Setting::new("message", " Size of a message.", SIZE);
const SIZE: Kind = Kind::bytes(1, 1 << 40);
const RATE: Setting = Setting::new(
    "rate",
    " Rate of user data while the flow sends.",
    Kind::rate(1, 1_000_000_000_000),
);
const COUNT: Kind = Kind::count(1, u64::MAX);
/// Value kinds of a time above 0, and of a time that may be 0.
const INTERVAL: Kind = Kind::duration(1, Nanos::MAX);
const PAUSE: Kind = Kind::duration(0, Nanos::MAX);

/// A message or a transfer that a workload offers. A transport may carry it in any number of
/// pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Size of the message, bytes.
    pub size: usize,
    /// Stream on which the message should be sent; `None`: the adapter chooses the stream.
    /// Transports without streams ignore it.
    pub stream: Option<u16>,
    /// Time at which the message was due, nanoseconds. A transport without buffer space at that
    /// time takes it later. `None`: the message is due when it is taken.
    pub due: Option<Nanos>,
    /// Maximum size of the pieces in bytes, over a transport that preserves message boundaries;
    /// `None`: a single piece.
    pub piece: Option<usize>,
    /// Size of the answer in bytes that the receiver sends after it has received the whole message;
    /// `None`: no answer. When the last byte of the answer arrives, the adapter calls
    /// [`Workload::answered`].
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

/// Result of polling a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextMessage {
    /// A message, which is thereby removed from the workload.
    Now(Message),
    /// The next message is due at this time, nanoseconds.
    At(Nanos),
    /// The next message is due only after an answer: see [`Workload::answered`].
    Waiting,
    /// The workload has ended.
    Done,
}

/// Static properties of a workload, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Minimum and maximum message size, bytes.
    pub sizes: [u64; 2],
    /// Maximum size of the pieces in bytes, over a transport that preserves message boundaries;
    /// `None`: a single piece.
    pub piece: Option<u64>,
    /// Whether the workload offers messages at times that do not depend on the transport. Otherwise
    /// the transport needs a window, which limits the rate.
    pub paced: bool,
    /// Whether the workload never ends.
    pub endless: bool,
    /// Whether the messages are answered, so that the transport must carry data in both directions.
    pub answered: bool,
    /// Mean time between two messages, nanoseconds, if it is known.
    pub gap: Option<Nanos>,
    /// Maximum number of messages, if the workload ends.
    pub messages: Option<u64>,
}

impl Default for Facts {
    /// Properties of a paced workload with messages of any size.
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
    /// Minimum and maximum size of the pieces in bytes, over a transport that preserves message
    /// boundaries. The last piece of a transfer may be smaller.
    pub fn pieces(&self) -> [u64; 2] {
        let most = self.piece.unwrap_or(u64::MAX);
        self.sizes.map(|size| size.min(most))
    }
}

/// A source of messages for a transport.
///
/// The adapter should call [`Workload::next`] while the transport has buffer space; each
/// [`NextMessage::Now`] contains a message. A workload has its own schedule: if the transport has
/// no space when a message is due, the message is offered late, at the next call. The schedule
/// starts at the first call.
pub trait Workload {
    /// Polls the workload at `now`.
    fn next(&mut self, now: Nanos) -> NextMessage;

    /// Called when the last byte of an answer arrives.
    fn answered(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Static properties of the workload, which must not change during a run.
    fn facts(&self) -> Facts {
        Facts::default()
    }
}

impl Workload for BoxedWorkload {
    fn next(&mut self, now: Nanos) -> NextMessage {
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
