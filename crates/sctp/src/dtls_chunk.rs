//! The DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04): all chunks of a packet are encrypted.
//!
//! - INIT and INIT ACK negotiate the key management method and the roles ([`negotiation`]).
//! - Records and keys are in the crate `anabranch-dtls`.
//! - [`DtlsChunk`] is the state of an association. The association calls it to seal and open the
//!   chunks of a packet (`association/dtls.rs`), and the endpoint passes DTLS chunks to the
//!   association (`endpoint/dtls.rs`).

mod methods;
mod negotiation;
mod state;

pub use methods::{KeyMethods, Security};
pub(crate) use negotiation::{DtlsTerms, Mismatch, is_compatible};
pub use state::SEALED_OVERHEAD as DTLS_OVERHEAD;
pub(crate) use state::{DtlsChunk, Phase, SEALED_BEHIND, SEALED_FRONT};
pub use state::{DtlsStatistics, KeyAgreement, RestartKeys};
