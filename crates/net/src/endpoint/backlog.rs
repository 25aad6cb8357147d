//! The backlog: associations that peers started and the application has not accepted.

use std::sync::Arc;

use super::Endpoint;
use crate::association::Association;
use crate::endpoint_state::EndpointShared;
use crate::error::AcceptError;

/// A place in the backlog ([`Config::backlog`](crate::Config::backlog)), which is free for another
/// association once this is dropped.
#[derive(Debug)]
pub struct BacklogPermit(Arc<EndpointShared>);

impl Endpoint {
    /// Like [`Endpoint::accept`], for callers that pass the association on: until the
    /// [`BacklogPermit`] is dropped it counts as one that waits to be accepted. If the application
    /// decides on incoming associations ([`Config::undecided`](crate::Config::undecided)), none of
    /// them waits here.
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
