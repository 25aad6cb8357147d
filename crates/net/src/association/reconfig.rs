//! Streams that are reset and added (RFC 6525), if both ends have the setting `reconfiguration`.

use anabranch_sctp::{ReconfigError, Reconfiguration};

use super::Association;

impl Association {
    /// Requests a change of the streams. One request at a time is under way; an event reports its
    /// outcome.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing is requested then.
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
