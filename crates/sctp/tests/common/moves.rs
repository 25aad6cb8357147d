//! Progress of timers: after a timeout was handled and all output was sent, the next timeout is
//! later, or handling it changed the endpoint. A driver would spin otherwise.

use anabranch_sctp::Endpoint;
use anabranch_transport::{Nanos, Transport};

fn is_due(endpoint: &Endpoint, now: Nanos) -> bool {
    endpoint.poll_timeout().is_some_and(|at| at <= now)
}

/// State of the endpoint, if it has handled its timeouts at `now`, has sent all output, and is due
/// again immediately.
pub fn due_again(endpoint: &Endpoint, now: Nanos) -> Option<String> {
    is_due(endpoint, now).then(|| format!("{endpoint:?}"))
}

/// Checks an endpoint that was in state `before` and due, has handled its timeouts at `now`, and
/// has sent all output.
///
/// # Panics
/// It is still due, and nothing has changed.
pub fn check(endpoint: &Endpoint, now: Nanos, before: &str) {
    let same = is_due(endpoint, now) && format!("{endpoint:?}") == before;
    assert!(!same, "due for ever at {now}: a driver would spin");
}
