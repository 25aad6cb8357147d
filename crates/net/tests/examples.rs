//! Tests that the examples run.

use crate::common::bounded;

#[path = "../examples/diameter.rs"]
mod diameter;
#[cfg(target_os = "linux")] // all of 127.0.0.0/8 is this host's
#[path = "../examples/failover.rs"]
pub mod failover;

#[test]
fn a_client_finds_the_server_that_replaces_its_own() {
    bounded(async { diameter::run().await.expect("both answer") });
}

#[cfg(target_os = "linux")]
#[test]
fn a_sender_continues_over_its_second_path() {
    bounded(async { failover::run().await.expect("all arrives") });
}
