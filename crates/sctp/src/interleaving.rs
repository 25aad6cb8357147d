//! Message interleaving (RFC 8260 §2): I-DATA instead of DATA, and I-FORWARD-TSN instead of FORWARD
//! TSN.
//!
//! Fragments of messages on different streams may alternate, so that a long message does not block
//! other streams. The send queue in [`crate::tx`] continues the message selected by the scheduler.
//! The receiver in [`crate::rx`] reassembles fragments by stream, message and fragment number.

use anabranch_wire::chunk::kind;

use crate::extension_descriptor::Extension;

/// The extension message interleaving, offered if the setting `interleaving` is on.
pub(crate) static INTERLEAVING: Extension = Extension {
    wanted: |config| config.interleaving,
    parameter: || None,
    chunks: &[kind::I_DATA],
};

/// Partial reliability of interleaved messages (I-FORWARD-TSN). Without this extension all
/// interleaved messages are delivered (RFC 8260 §2.3.1).
pub(crate) static INTERLEAVED_ABANDONING: Extension = Extension {
    wanted: |config| config.interleaving && config.partial_reliability,
    parameter: || None,
    chunks: &[kind::I_FORWARD_TSN],
};
