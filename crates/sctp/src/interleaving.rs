//! Interleaving of messages (RFC 8260 §2): I-DATA in place of DATA, and I-FORWARD-TSN in place of FORWARD TSN.
//!
//! The pieces of messages on different streams may come between each other, so that a long message holds nobody up. The sender's part
//! is [`crate::tx`]'s queue, which goes on with whichever message the scheduler names; the receiver's is [`crate::rx`]'s reassembly
//! by stream, message and piece.

use anabranch_wire::chunk::kind;

use crate::extension::Extension;

/// Off unless the setting `interleaving` is on.
pub(crate) static INTERLEAVING: Extension = Extension {
    wanted: |config| config.interleaving,
    parameter: || None,
    chunks: &[kind::I_DATA],
};

/// Partial reliability of interleaved messages: without it they are all delivered (RFC 8260 §2.3.1).
pub(crate) static INTERLEAVED_ABANDONING: Extension = Extension {
    wanted: |config| config.interleaving && config.partial_reliability,
    parameter: || None,
    chunks: &[kind::I_FORWARD_TSN],
};
