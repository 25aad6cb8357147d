//! Streams that are reset and added (RFC 6525), where both ends have the setting `reconfiguration`.

use anabranch_sctp::{self as sctp, ReconfigError};

use super::Association;

impl Association {
    /// Whether streams can be reset and added: both ends speak RE-CONFIG.
    pub fn is_reconfigurable(&self) -> bool {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        association.is_some_and(|it| it.is_reconfigurable())
    }

    /// Resets `streams` outwards; none: all (SCTP_RESET_STREAMS). What was given for them before is delivered first; what is given
    /// from now on waits until it is settled. [`AssociationEvent::StreamsReset`](crate::AssociationEvent::StreamsReset) tells.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing changes then.
    pub fn reset_streams(&self, streams: &[u16]) -> Result<(), ReconfigError> {
        self.reconfigure(|association| association.reset_streams(streams))
    }

    /// Asks the peer to reset `streams` that come from it; none: all (SCTP_RESET_STREAMS).
    /// [`AssociationEvent::StreamsReset`](crate::AssociationEvent::StreamsReset) tells when it has, or that it will not.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing changes then.
    pub fn reset_incoming(&self, streams: &[u16]) -> Result<(), ReconfigError> {
        self.reconfigure(|association| association.reset_incoming(streams))
    }

    /// Lets all numbers of both sides begin anew, of streams and TSNs (SCTP_RESET_ASSOC). What was given before is delivered first.
    /// [`AssociationEvent::AssociationReset`](crate::AssociationEvent::AssociationReset) tells.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing changes then.
    pub fn reset_association(&self) -> Result<(), ReconfigError> {
        let now = self.shared.now();
        self.reconfigure(|association| association.reset_association(now))
    }

    /// Adds streams: `outbound` that this side sends on, `inbound` that the peer does (SCTP_ADD_STREAMS).
    /// [`AssociationEvent::StreamsAdded`](crate::AssociationEvent::StreamsAdded) tells, of each direction.
    ///
    /// # Errors
    /// See [`ReconfigError`]; nothing changes then.
    pub fn add_streams(&self, outbound: u16, inbound: u16) -> Result<(), ReconfigError> {
        self.reconfigure(|association| association.add_streams(outbound, inbound))
    }

    fn reconfigure(
        &self,
        change: impl FnOnce(&mut sctp::Association) -> Result<(), ReconfigError>,
    ) -> Result<(), ReconfigError> {
        let mut state = self.shared.lock();
        let association = state.association(self.id);
        let done = association.map_or(Err(ReconfigError::NotEstablished), change);
        state.wake_driver();
        done
    }
}
