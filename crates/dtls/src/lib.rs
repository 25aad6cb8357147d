//! DTLS 1.3 records for the DTLS chunk of SCTP (draft-ietf-tsvwg-sctp-dtls-chunk-04), and key
//! management for it; without I/O.
//!
//! - [`record`]: records of one direction and epoch. A [`SealingKey`] encrypts records; an
//!   [`OpeningKey`] decrypts them and has the replay window (RFC 9147 §4).
//! - [`Contexts`]: all keys of an association by epoch, including those for a restart.
//! - [`KeyManagement`]: the interface of key management methods. The methods are [`preshared`],
//!   and `tls` with the feature of that name.
//! - `rfc6083`, with the feature of that name: DTLS 1.2 over SCTP, for peers that do not support
//!   the DTLS chunk.
//!
//! This crate does not depend on SCTP: the caller encodes the DTLS chunks, whose headers contain
//! the lengths of the records.
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
pub use management::{AgreementStart, KeyManagement, KeyManagementAction, Role};
pub use material::{InvalidKeyLength, KeyMaterial};
pub use record::{OpenError, OpeningKey, SealError, SealingKey};
pub use replay::ReplayWindow;
pub use suite::Suite;
