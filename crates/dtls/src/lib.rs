//! DTLS 1.3 records for the DTLS chunk of SCTP (draft-ietf-tsvwg-sctp-dtls-chunk-04), and key
//! management for it; without I/O.
//!
//! - [`record`]: one direction and epoch: a [`SealingKey`] encrypts records, an [`OpeningKey`]
//!   decrypts them and keeps the replay window (RFC 9147 §4).
//! - [`Contexts`]: all keys of an association, by epoch, and those kept for a restart.
//! - [`KeyManagement`]: the interface of a key management method: [`preshared`], and `tls` with the
//!   feature of that name.
//! - `rfc6083`, with the feature of that name: DTLS 1.2 over SCTP, for peers without the DTLS
//!   chunk.
//!
//! The caller encodes chunks and the lengths of records, because this crate does not depend on
//! SCTP.
#![forbid(unsafe_code)]

mod contexts;
#[cfg(test)]
mod end;
mod epochs;
mod identity;
mod key_schedule;
mod management;
mod material;
pub mod preshared;
pub mod record;
mod replay;
#[cfg(feature = "rfc6083")]
pub mod rfc6083;
mod suite;
#[cfg(feature = "tls")]
pub mod tls;

pub use contexts::{ContextCounters, Contexts, InstallError, KeyId, OpenedRecord};
pub use identity::PeerIdentity;
pub use key_schedule::expand_label;
pub use management::{Action, KeyManagement, Role, Start};
pub use material::{InvalidKeyLength, KeyMaterial};
pub use record::{OpenError, OpeningKey, SealError, SealingKey};
pub use replay::ReplayWindow;
pub use suite::Suite;
