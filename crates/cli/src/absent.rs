//! Commands that are missing in this build: each prints the feature that has it. The command line
//! is the same in all builds. The functions are generic so that this module need not import the
//! command line.
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

    /// It is not refused, because the variable may be meant for other programs.
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

    /// Metrics without an effect.
    #[derive(Clone, Default)]
    pub struct Metrics;

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

#[cfg(not(feature = "man"))]
pub mod man {
    use super::Failure;

    pub fn man<T>(_: &T) -> Result<(), Failure> {
        Err(Failure::absent("anabranch man", "man"))
    }
}
