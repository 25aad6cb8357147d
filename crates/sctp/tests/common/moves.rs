//! Check that timers make progress. After a timeout was handled and all output was sent, either the
//! next timeout is later, or the endpoint has changed. Otherwise a driver would loop forever.

use anabranch_sctp::Endpoint;
use anabranch_transport::{Nanos, Transport};

fn is_due(endpoint: &Endpoint, now: Nanos) -> bool {
    endpoint.poll_timeout().is_some_and(|at| at <= now)
}

/// State of an endpoint that has handled its timeouts at `now` and sent all output, but is
/// immediately due again; `None` if it is not due.
pub fn due_again(endpoint: &Endpoint, now: Nanos) -> Option<String> {
    is_due(endpoint, now).then(|| format!("{endpoint:?}"))
}

/// Checks an endpoint that was due in the state `before`, and has since handled its timeouts at
/// `now` and sent all output.
///
/// # Panics
/// The endpoint is still due, and its state is unchanged.
pub fn check(endpoint: &Endpoint, now: Nanos, before: &str) {
    let same = is_due(endpoint, now) && format!("{endpoint:?}") == before;
    assert!(!same, "due for ever at {now}: a driver would spin");
}
