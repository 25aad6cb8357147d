//! The backlog: associations that peers began and nobody took.

use std::sync::Arc;

use super::Endpoint;
use crate::association::Association;
use crate::endpoint_state::EndpointShared;
use crate::error::AcceptError;

/// A place in the backlog ([`Config::backlog`](crate::Config::backlog)), which another association has once this is dropped.
#[derive(Debug)]
pub struct BacklogPermit(Arc<EndpointShared>);

impl Endpoint {
    /// As [`Endpoint::accept`], for who hands the association on: until the [`BacklogPermit`] is dropped it counts as one that waits to be accepted. Where the
    /// application decides who is accepted ([`Config::undecided`](crate::Config::undecided)), none of them waits here.
    ///
    /// Cancel-safe: if the future is dropped, nobody is lost; the association waits for the next call.
    ///
    /// # Errors
    /// As [`Endpoint::accept`].
    pub async fn accept_with_permit(&self) -> Result<(Association, BacklogPermit), AcceptError> {
        let accepted = self.acceptable(|it| it.try_accept(true)).await?;
        Ok((accepted, BacklogPermit(Arc::clone(&self.shared))))
    }

    /// So many associations may wait to be accepted from now on. Those that wait beyond that go on waiting.
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
