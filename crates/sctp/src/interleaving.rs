//! Message interleaving (RFC 8260 §2): I-DATA instead of DATA, and I-FORWARD-TSN instead of FORWARD
//! TSN.
//!
//! Fragments of messages on different streams may alternate, so that a long message should not
//! block the others. The sender's part is the queue of [`crate::tx`], which continues the message
//! selected by the scheduler. The receiver's part is the reassembly of [`crate::rx`] by stream,
//! message and fragment.

use anabranch_wire::chunk::kind;

use crate::extension_descriptor::Extension;

/// Off unless the setting `interleaving` is on.
pub(crate) static INTERLEAVING: Extension = Extension {
    wanted: |config| config.interleaving,
    parameter: || None,
    chunks: &[kind::I_DATA],
};

/// Partial reliability with interleaving: without it all messages are delivered (RFC 8260 §2.3.1).
pub(crate) static INTERLEAVED_ABANDONING: Extension = Extension {
    wanted: |config| config.interleaving && config.partial_reliability,
    parameter: || None,
    chunks: &[kind::I_FORWARD_TSN],
};
