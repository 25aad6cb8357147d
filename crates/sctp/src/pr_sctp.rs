//! Partial reliability (RFC 3758, RFC 7496): messages that their sender gives up by a policy, and the FORWARD TSN that moves
//! the receiver past them.
//!
//! Here is what it consists of; the halves of an association are handed it: [`PrSctpSender`] to the sender, which knows what is
//! queued and in flight, and to the receiver that messages may be left out.

mod counters;
mod sender;

use anabranch_wire::chunk::kind;
use anabranch_wire::parameter::Parameter;

pub use crate::send_options::{AbandonPolicy, AbandonedMessage, SendOptions};
pub(crate) use crate::send_options::{MessageRoute, PrPolicy};
pub use counters::AbandonedCount;
pub(crate) use sender::{ForwardTsnKind, MessageId, PrSctpSender, TrackedMessage};

use crate::extension::Extension;

/// Off unless the setting `partial_reliability` is on.
pub(crate) static PARTIAL_RELIABILITY: Extension = Extension {
    wanted: |config| config.partial_reliability,
    parameter: || Some(Parameter::ForwardTsnSupported),
    chunks: &[kind::FORWARD_TSN],
};
