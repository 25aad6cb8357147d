//! Concurrent connection attempts to several addresses, of which one should succeed (Happy
//! Eyeballs, RFC 8305).
//!
//! The addresses may belong to one host. A host with several of the addresses would treat the
//! COOKIE ECHO of a second attempt, from the same port with another tag, as a restart of the
//! association of the first attempt (RFC 9260 §5.2.4). Therefore only one attempt of a race
//! continues after INIT ACK at a time. The other attempts wait in COOKIE-WAIT, retransmit their
//! INIT by T1-init, and continue if the first attempt fails. A peer stores no state before COOKIE
//! ECHO (§5.1.3), so an attempt that is aborted in COOKIE-WAIT leaves no state at the peer.

use super::Endpoint;
use crate::association::Association;
use crate::association_id::AssociationId;
use crate::association_state::AssociationState;
use crate::lazy_box::LazyBox;

/// Connection attempts, by the number of their race.
#[derive(Debug, Default)]
pub(super) struct ConnectAttempts(LazyBox<Vec<(u64, AssociationId)>>);

impl Endpoint {
    /// Adds a connection attempt to a race.
    pub(super) fn add_connect_attempt(&mut self, race: u64, id: AssociationId) {
        let mut attempts = std::mem::take(&mut self.connect_attempts);
        let lives = |id| !matches!(self.state_of(id), None | Some(AssociationState::Closed));
        attempts.0.change(|it| it.retain(|&(_, id)| lives(id)));
        attempts.0.make().push((race, id));
        self.connect_attempts = attempts;
    }

    /// Whether another attempt of the same race is ahead of this attempt.
    pub(super) fn is_behind(&self, slot: u32) -> bool {
        let own = self.table.id_of(slot);
        let Some(&(race, _)) = self.connect_attempts.0.iter().find(|(_, id)| *id == own) else {
            return false;
        };
        let waits = |id| self.state_of(id);
        waits(own) == Some(AssociationState::CookieWait)
            && self.connect_attempts.0.iter().any(|&(other, id)| {
                let further = |it: &AssociationState| {
                    !matches!(it, AssociationState::CookieWait | AssociationState::Closed)
                };
                other == race && id != own && waits(id).as_ref().is_some_and(further)
            })
    }

    /// State of the association; a detached association counts as established.
    fn state_of(&self, id: AssociationId) -> Option<AssociationState> {
        let here = self.association(id).map(Association::state);
        here.or_else(|| {
            let detached = self.table.detached_slot_of(id);
            detached.map(|_| AssociationState::Established)
        })
    }
}
