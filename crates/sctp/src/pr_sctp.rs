//! Partial reliability (RFC 3758, RFC 7496): abandonment of messages by a sender's policy, and the
//! FORWARD TSN that advances the receiver past them.
//!
//! [`PrSctpSender`] is the state of the sender. The receiver needs no state: it reports that
//! messages are missing when a FORWARD TSN arrives.

mod counters;
mod sender;

use anabranch_wire::chunk::kind;
use anabranch_wire::parameter::Parameter;

pub use crate::send_options::{AbandonPolicy, AbandonedMessage, SendOptions};
pub(crate) use crate::send_options::{MessageRoute, PrPolicy};
pub use counters::AbandonedCount;
pub(crate) use sender::{ForwardTsnKind, MessageId, PrSctpSender, TrackedMessage};

use crate::extension_descriptor::Extension;

/// The extension partial reliability, offered if the setting `partial_reliability` is on.
pub(crate) static PARTIAL_RELIABILITY: Extension = Extension {
    wanted: |config| config.partial_reliability,
    parameter: || Some(Parameter::ForwardTsnSupported),
    chunks: &[kind::FORWARD_TSN],
};
