//! Adapters: transports, workloads and sinks as the simulator's agents.

use crate::spec::Protocol;
use crate::spec::validate::Checker;

/// Checks a transport's profile and switches.
pub fn check_transport(checker: &mut Checker<'_>, transport: &Protocol, path: &str) {
    let _ = (checker, transport, path);
}
