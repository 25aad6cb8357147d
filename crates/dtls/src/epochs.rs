//! Epochs and timers of the keys of an association, which are the same for every key management
//! method (draft-porfiri-tsvwg-sctp-dtls-handshake §5.4, §6.2.3).

use std::collections::VecDeque;

use crate::contexts::KeyId;
use crate::management::{AgreementStart, KeyManagementAction, Role};
use crate::material::KeyMaterial;

/// Bit of the first byte of a message; it is set in control messages.
pub(crate) const CONTROL: u8 = 0x80;
const EPOCH_BITS: u8 = 0x7F;
pub(crate) const PROTECTION_ESTABLISHED: u8 = 0x01;

pub(crate) const FIRST_EPOCH: u64 = 3;
pub(crate) const SECOND: u64 = 1_000_000_000;
/// Time for which keys of the previous epoch are kept (draft-porfiri-tsvwg-sctp-dtls-handshake
/// §6.2.3), nanoseconds.
pub(crate) const DRAIN: u64 = 120 * SECOND;

/// Settings of the epochs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    pub(crate) restart: bool,
    pub(crate) rekey_interval: Option<u64>,
    pub(crate) handshake_timeout: u64,
}

/// Restart keys of one epoch: those of this end and of the peer.
type RestartPair = Box<[KeyMaterial; 2]>;

/// State of the epochs of an association.
#[derive(Debug)]
pub(crate) struct Epochs {
    policy: Policy,
    role: Role,
    /// Epoch of the keys in use; 2 before the first keys.
    epoch: u64,
    rekey_at: Option<u64>,
    /// Deadline for new keys: the first ones, the first after a restart, or those of a rekeying
    /// that is due.
    give_up_at: Option<u64>,
    /// Time at which the keys of the previous epoch are removed.
    drain_at: Option<u64>,
    /// Epoch of the restart keys in use, until they are removed.
    restarted: Option<u64>,
    /// Keys for the next restart, while those of the previous restart are still in use. They are
    /// installed when no packet of the previous restart can be in flight
    /// (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4).
    late: Option<RestartPair>,
    actions: VecDeque<KeyManagementAction>,
    failed: bool,
}

impl Epochs {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            role: Role::Client,
            epoch: FIRST_EPOCH - 1,
            rekey_at: None,
            give_up_at: None,
            drain_at: None,
            restarted: None,
            late: None,
            actions: VecDeque::new(),
            failed: false,
        }
    }

    pub(crate) fn start(&mut self, start: &AgreementStart<'_>) {
        // The deadline also applies after a restart, because restart keys do not prove the identity
        // of the peer.
        let give_up_at = start.now.saturating_add(self.policy.handshake_timeout);
        *self = Self {
            role: start.role,
            give_up_at: Some(give_up_at),
            restarted: start.restarted,
            failed: self.failed,
            ..Self::new(self.policy)
        };
    }

    /// Role of this end in the first agreement. If both ends start an agreement at the same time,
    /// that of the client continues.
    pub(crate) fn role(&self) -> Role {
        self.role
    }

    /// The epoch of the keys that will be agreed on next.
    pub(crate) fn next(&self) -> u64 {
        self.epoch + 1
    }

    pub(crate) fn is_protected(&self) -> bool {
        self.epoch >= FIRST_EPOCH
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// The first byte of a message about the next epoch.
    pub(crate) fn header(&self) -> u8 {
        self.next() as u8 & EPOCH_BITS
    }

    /// Whether a message with this first byte should be processed. Messages of another epoch belong
    /// to an agreement that was abandoned in favour of the peer's.
    pub(crate) fn accepts(&self, first: u8) -> bool {
        !self.failed && first & EPOCH_BITS == self.header()
    }

    pub(crate) fn push(&mut self, action: KeyManagementAction) {
        self.actions.push_back(action);
    }

    pub(crate) fn send(&mut self, message: Vec<u8>) {
        self.push(KeyManagementAction::Send(message));
    }

    pub(crate) fn fail(&mut self, why: &'static str) {
        if !std::mem::replace(&mut self.failed, true) {
            self.push(KeyManagementAction::Fail(why));
        }
    }

    /// Called when an agreement starts. The peer has removed the keys of the previous epoch, or
    /// does so now.
    pub(crate) fn begin(&mut self) {
        self.supervise();
        if self.drain_at.is_some() {
            self.drain();
        }
    }

    /// Sets the deadline of a rekeying: one rekeying interval after it was due, or the handshake
    /// timeout if that is longer. Without a deadline the peer could avoid proving its identity
    /// again (draft-porfiri-tsvwg-sctp-dtls-handshake §6.2).
    fn supervise(&mut self) {
        if let (Some(at), Some(interval)) = (self.rekey_at.take(), self.policy.rekey_interval) {
            let limit = interval.max(self.policy.handshake_timeout);
            self.give_up_at.get_or_insert(at.saturating_add(limit));
        }
    }

    /// Whether restart keys are installed together with those for normal traffic.
    pub(crate) fn installs_restart_keys(&self) -> bool {
        self.policy.restart && self.restarted.is_none()
    }

    /// Whether the keys for answering a restart can be installed before the keys of the same epoch
    /// for normal traffic.
    pub(crate) fn installs_restart_keys_early(&self) -> bool {
        self.installs_restart_keys() && self.is_protected()
    }

    pub(crate) fn install(&mut self, id: KeyId, keys: KeyMaterial, sealing: bool) {
        self.push(if sealing {
            KeyManagementAction::InstallSealing(id, keys)
        } else {
            KeyManagementAction::InstallOpening(id, keys)
        });
    }

    /// Switches this end to the next epoch. `restart_keys` returns the restart keys of this end and
    /// of the peer.
    pub(crate) fn switch(&mut self, now: u64, restart_keys: impl FnOnce() -> [KeyMaterial; 2]) {
        let first = !self.is_protected();
        self.give_up_at = None;
        self.epoch += 1;
        let interval = self.policy.rekey_interval;
        self.rekey_at = interval.map(|it| now.saturating_add(it));
        if first {
            self.push(KeyManagementAction::Protect);
        }
        if !first || self.restarted.is_some() {
            self.drain_at = Some(now.saturating_add(DRAIN));
        }
        let keeps = self.policy.restart && self.restarted.is_some();
        self.late = keeps.then(|| Box::new(restart_keys()));
    }

    /// Sends the notification that this end uses the keys of the current epoch.
    pub(crate) fn send_protection_established(&mut self) {
        let epoch = self.epoch as u8 & EPOCH_BITS;
        self.send(vec![CONTROL | epoch, PROTECTION_ESTABLISHED]);
    }

    /// Removes the keys of the previous epoch.
    fn drain(&mut self) {
        self.drain_at = None;
        if let Some(epoch) = self.restarted.take() {
            let used = KeyId::restart(epoch);
            self.push(KeyManagementAction::Remove(used));
        }
        if let Some(keys) = self.late.take() {
            let id = KeyId::restart(self.epoch);
            let [own, peer] = *keys;
            self.install(id, peer, false);
            self.install(id, own, true);
            return;
        }
        for id in [
            KeyId::primary(self.epoch - 1),
            KeyId::restart(self.epoch - 1),
        ] {
            self.push(KeyManagementAction::Remove(id));
        }
    }

    /// Runs expired timers. Returns whether an agreement on new keys should start.
    pub(crate) fn handle_timeout(&mut self, now: u64) -> bool {
        if self.give_up_at.take_if(|at| *at <= now).is_some() {
            self.fail("key management does not finish");
            return false;
        }
        if self.drain_at.is_some_and(|at| at <= now) {
            self.drain();
        }
        let due = self.rekey_at.is_some_and(|at| at <= now);
        if due {
            self.supervise();
        }
        due
    }

    pub(crate) fn poll(&mut self) -> Option<KeyManagementAction> {
        self.actions.pop_front()
    }

    pub(crate) fn poll_timeout(&self) -> Option<u64> {
        let all = [self.rekey_at, self.give_up_at, self.drain_at];
        all.into_iter().flatten().min()
    }
}
