//! Replacements for commands that this build lacks: each prints the feature that adds it. The
//! command line is therefore the same in all builds. The functions are generic so that this module
//! need not import the types of the command line.
#![cfg_attr(feature = "full", allow(unused_imports))]

use crate::failure::Failure;

#[cfg(not(feature = "explore"))]
pub mod explore {
    use super::Failure;

    pub fn explore<T>(_: &T) -> Result<(), Failure> {
        Err(Failure::absent("anabranch explore", "explore"))
    }
}

#[cfg(not(feature = "logging"))]
pub mod logging {
    use super::Failure;

    /// Prints a note instead of an error, because `RUST_LOG` may be set for other programs.
    pub fn begin() -> Result<(), Failure> {
        if std::env::var_os("RUST_LOG").is_some_and(|text| !text.is_empty()) {
            crate::stderr::note("note: RUST_LOG has no effect; it needs the feature `logging`");
        }
        Ok(())
    }
}

#[cfg(not(feature = "data-channels"))]
pub mod data_channels {
    use super::Failure;

    pub async fn serve<T>(_: T) -> Result<(), Failure> {
        Err(Failure::absent(
            "anabranch serve data-channels",
            "data-channels",
        ))
    }
}

#[cfg(not(feature = "metrics"))]
pub mod metrics {
    use std::net::SocketAddr;

    use anabranch_net::{Association, Endpoint};

    use super::Failure;

    /// A replacement for the metrics of a server, without any effect.
    #[derive(Clone, Default)]
    pub struct Metrics(());

    impl Metrics {
        pub async fn serve(
            &self,
            _: SocketAddr,
            _: Vec<Endpoint>,
            _: usize,
        ) -> Result<SocketAddr, Failure> {
            Err(Failure::absent("anabranch serve --metrics", "metrics"))
        }

        pub fn begin(&self, _: &Association) -> u64 {
            0
        }

        pub fn end(&self, _: u64, _: bool) {}
    }
}

#[cfg(not(feature = "tls"))]
pub mod rfc6083 {
    use std::sync::Arc;
    use std::time::Duration;

    use anabranch_net::sctp::dtls::PeerIdentity;
    use anabranch_net::{Association, AssociationError, Message, SendError, SendOptions};
    use bytes::Bytes;

    pub const RECORD_OVERHEAD: usize = 0;

    /// Empty type, because this build has no TLS settings.
    pub enum Rfc6083Settings {}

    #[allow(dead_code)]
    #[derive(Debug)]
    pub enum SecureError {
        Send(SendError),
        Truncated,
        Association(AssociationError),
    }

    impl std::fmt::Display for SecureError {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }

    /// Empty type, because this build has no secure associations.
    pub enum SecureAssociation {}

    impl SecureAssociation {
        pub async fn client(
            _: Association,
            settings: Arc<Rfc6083Settings>,
        ) -> Result<Self, SecureError> {
            match *settings {}
        }

        pub async fn server(
            _: Association,
            settings: Arc<Rfc6083Settings>,
        ) -> Result<Self, SecureError> {
            match *settings {}
        }

        pub fn peer_identity(&self) -> &PeerIdentity {
            match *self {}
        }

        pub async fn send(&self, _: Bytes, _: SendOptions) -> Result<(), SecureError> {
            match *self {}
        }

        pub async fn recv(&self) -> Result<Option<Message>, SecureError> {
            match *self {}
        }

        pub fn association(&self) -> &Association {
            match *self {}
        }

        pub async fn shutdown(&self) -> Result<(), SecureError> {
            match *self {}
        }

        pub async fn shutdown_with_timeout(&self, _: Duration) -> Result<(), SecureError> {
            match *self {}
        }
    }
}

#[cfg(not(feature = "man"))]
pub mod man {
    use super::Failure;

    pub fn man<T>(_: &T) -> Result<(), Failure> {
        Err(Failure::absent("anabranch man", "man"))
    }
}
