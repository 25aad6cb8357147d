//! Transports that this build lacks: specs may name them, and the error names the feature that is
//! needed.

use anabranch_scenario::transport::TransportKind;

use super::TransportEntry;

/// QUIC, without the feature `quic`.
pub static QUIC: TransportEntry = TransportEntry {
    kind: TransportKind {
        messages: false,
        window: true,
        shows_data: false,
        absent: Some("quic"),
        ..TransportKind::new("quic", "QUIC (RFC 9000); it is not compiled in.")
    },
    // The grammar has rejected it.
    build: |_| Err(Vec::new()),
};
