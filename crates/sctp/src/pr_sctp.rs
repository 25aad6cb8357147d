//! Partial reliability (RFC 3758, RFC 7496): abandonment of messages by a sender's policy, and the
//! FORWARD TSN that advances the receiver past them.
//!
//! This module has its state: the sender of an association uses [`PrSctpSender`], because it knows
//! the queued and outstanding messages, and the receiver is notified that messages may be missing.

mod counters;
mod sender;

use anabranch_wire::chunk::kind;
use anabranch_wire::parameter::Parameter;

pub use crate::send_options::{AbandonPolicy, AbandonedMessage, SendOptions};
pub(crate) use crate::send_options::{MessageRoute, PrPolicy};
pub use counters::AbandonedCount;
pub(crate) use sender::{ForwardTsnKind, MessageId, PrSctpSender, TrackedMessage};

use crate::extension_descriptor::Extension;

/// Off unless the setting `partial_reliability` is on.
pub(crate) static PARTIAL_RELIABILITY: Extension = Extension {
    wanted: |config| config.partial_reliability,
    parameter: || Some(Parameter::ForwardTsnSupported),
    chunks: &[kind::FORWARD_TSN],
};
