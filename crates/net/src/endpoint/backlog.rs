//! The backlog: associations that peers have started and that the application has not accepted.

use std::sync::Arc;

use super::Endpoint;
use crate::association::Association;
use crate::endpoint_state::EndpointShared;
use crate::error::AcceptError;

/// A slot of the backlog ([`Config::backlog`](crate::Config::backlog)). Dropping the permit frees
/// the slot for another association.
#[derive(Debug)]
pub struct BacklogPermit(Arc<EndpointShared>);

impl Endpoint {
    /// Like [`Endpoint::accept`], for callers that pass the association to other code: the
    /// association occupies its slot of the backlog until the [`BacklogPermit`] is dropped. If the
    /// application decides on incoming associations
    /// ([`Config::undecided`](crate::Config::undecided)), the backlog is not used.
    ///
    /// Cancel-safe: if the future is dropped, the association waits for the next call.
    ///
    /// # Errors
    /// The errors of [`Endpoint::accept`].
    pub async fn accept_with_permit(&self) -> Result<(Association, BacklogPermit), AcceptError> {
        let accepted = self.acceptable(|it| it.try_accept(true)).await?;
        Ok((accepted, BacklogPermit(Arc::clone(&self.shared))))
    }

    /// Sets the maximum number of associations that wait to be accepted. Associations that already
    /// wait continue to wait.
    pub fn set_backlog(&self, most: usize) {
        let mut state = self.shared.lock();
        state.backlog = most;
        state.listen();
    }
}

impl Drop for BacklogPermit {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.kept -= 1;
        state.listen();
    }
}
