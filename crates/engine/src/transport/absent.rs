//! Transports that this build does not include. Specs may name them, and the error states the
//! feature that is needed.

use anabranch_scenario::transport::TransportKind;

use super::TransportEntry;

/// QUIC, in a build without the feature `quic`.
pub static QUIC: TransportEntry = TransportEntry {
    kind: TransportKind {
        messages: false,
        window: true,
        shows_data: false,
        absent: Some("quic"),
        ..TransportKind::new("quic", "QUIC (RFC 9000); it is not compiled in.")
    },
    // Never called, because the check of the spec rejects the transport before.
    build: |_| Err(Vec::new()),
};
