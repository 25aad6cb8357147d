//! Stream reconfiguration: resetting and adding streams (RFC 6525). Requires the setting
//! `reconfiguration` at both ends.

use anabranch_sctp::{ReconfigError, Reconfiguration};

use super::Association;

impl Association {
    /// Requests a change of the streams. Only one request is outstanding at a time; an event
    /// reports its outcome.
    ///
    /// # Errors
    /// See [`ReconfigError`]. After an error no request has been made.
    pub fn reconfigure(&self, change: &Reconfiguration) -> Result<(), ReconfigError> {
        let now = self.shared.now();
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let association = association.ok_or(ReconfigError::NotEstablished)?;
        association.reconfigure(now, change)?;
        state.wake_driver();
        Ok(())
    }
}
