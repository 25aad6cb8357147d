//! Timers move on: when a timeout was handled and all is sent, the next one is later, or the
//! endpoint changes when it is handled. A driver would spin otherwise.

use anabranch_sctp::Endpoint;
use anabranch_transport::{Nanos, Transport};

fn is_due(endpoint: &Endpoint, now: Nanos) -> bool {
    endpoint.poll_timeout().is_some_and(|at| at <= now)
}

/// The endpoint as it is, where it has handled its timeouts at `now`, has sent all, and is due
/// again at once.
pub fn due_again(endpoint: &Endpoint, now: Nanos) -> Option<String> {
    is_due(endpoint, now).then(|| format!("{endpoint:?}"))
}

/// The endpoint was as `before` and due, has handled its timeouts at `now`, and has sent all.
///
/// # Panics
/// It is due still, and nothing has changed.
pub fn check(endpoint: &Endpoint, now: Nanos, before: &str) {
    let same = is_due(endpoint, now) && format!("{endpoint:?}") == before;
    assert!(!same, "due for ever at {now}: a driver would spin");
}
