//! The keys of an association by epoch, and its keys for a restart
//! (draft-ietf-tsvwg-sctp-dtls-chunk-04 §3.1, §7).

use thiserror::Error;

use crate::material::KeyMaterial;
use crate::record::{self, OpenError, OpeningKey, SealError, SealingKey};

/// Epoch of the first keys; lower epochs belong to the handshake (RFC 9147 §6.1).
const FIRST_EPOCH: u64 = 3;
/// Number of epochs that can be distinguished by the two bits in a record.
const EPOCHS: usize = 4;

/// Identifier of the keys of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyId {
    /// True if the keys are for a restart.
    pub restart: bool,
    /// The epoch, at least 3.
    pub epoch: u64,
}

impl KeyId {
    /// Keys of `epoch` for normal traffic.
    pub const fn primary(epoch: u64) -> Self {
        Self {
            restart: false,
            epoch,
        }
    }

    /// Keys of `epoch` for a restart.
    pub const fn restart(epoch: u64) -> Self {
        Self {
            restart: true,
            epoch,
        }
    }
}

/// Reasons why keys were not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The epoch of the first keys must be 3. Later keys must have the same or the next epoch.
    #[error("the epoch is {found}, and must be {wanted}")]
    Epoch {
        /// The epoch of the keys.
        found: u64,
        /// The epoch that is required.
        wanted: u64,
    },
    /// Restart keys of this epoch have sealed or opened records already.
    #[error("epoch {0} is in use")]
    InUse(u64),
    /// Sealing keys for a restart were installed first; they would then be used for normal traffic.
    #[error("the keys of normal traffic must be installed before those of a restart")]
    NoPrimary,
    /// The association does not use the DTLS chunk.
    #[error("the association does not use the DTLS chunk")]
    NotUsed,
}

/// Counters of sealed and opened records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ContextCounters {
    /// Number of records that were sealed.
    pub sealed: u64,
    /// Number of records that were opened.
    pub opened: u64,
    /// Number of records that failed authentication.
    pub forged: u64,
    /// Number of records that were opened before, or were older than the replay window.
    pub replayed: u64,
}

/// Result of opening a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenedRecord {
    /// Identifier of the keys that opened the record.
    pub key: KeyId,
    /// Size of the content, bytes; it starts after [`record::HEADER`] bytes.
    pub content: usize,
}

/// Keys of one direction by the two low bits of their epoch.
type ByEpoch<K> = [Option<Box<(u64, K)>>; EPOCHS];

/// All keys of an association.
#[derive(Debug)]
pub struct Contexts {
    sealing: Option<(u64, SealingKey)>,
    opening: ByEpoch<OpeningKey>,
    restart_sealing: ByEpoch<SealingKey>,
    restart_opening: ByEpoch<OpeningKey>,
    /// Epoch of the restart keys that seal packets, until the restarted association has keys.
    restart: Option<u64>,
    window: usize,
    counters: ContextCounters,
}

impl Contexts {
    /// Creates an empty set; later keys have replay windows of `window` records.
    pub fn new(window: usize) -> Self {
        Self {
            sealing: None,
            opening: Default::default(),
            restart_sealing: Default::default(),
            restart_opening: Default::default(),
            restart: None,
            window,
            counters: ContextCounters::default(),
        }
    }

    /// Size of the replay windows of later keys, in records.
    pub fn window(&self) -> usize {
        self.window
    }

    /// Changes the size of the replay windows of later keys, in records.
    pub fn set_window(&mut self, records: usize) {
        self.window = records;
    }

    /// Installs sealing keys. Keys for normal traffic are used immediately.
    ///
    /// # Errors
    /// The epoch is not the next one; restart keys were installed before keys for normal traffic;
    /// or keys of the same epoch have sealed records and were not removed.
    pub fn install_sealing(&mut self, id: KeyId, keys: &KeyMaterial) -> Result<(), InstallError> {
        let key = (id.epoch, SealingKey::new(keys, id.epoch));
        if id.restart {
            if self.sealing.is_none() {
                return Err(InstallError::NoPrimary);
            }
            let place = &mut self.restart_sealing[slot(id.epoch)];
            if is_used(place, id.epoch, SealingKey::sealed) {
                return Err(InstallError::InUse(id.epoch));
            }
            *place = Some(Box::new(key));
            return Ok(());
        }
        let wanted = self.sealing.as_ref().map_or(FIRST_EPOCH, |(it, _)| it + 1);
        if id.epoch != wanted {
            let found = id.epoch;
            return Err(InstallError::Epoch { found, wanted });
        }
        self.sealing = Some(key);
        self.restart = None;
        Ok(())
    }

    /// Installs opening keys in addition to the existing ones. If there are keys of more than four
    /// epochs, the newest keys replace the oldest.
    ///
    /// # Errors
    /// The epoch is neither the first nor the next one; or restart keys of the same epoch have
    /// opened records and were not removed: the records could be replayed.
    pub fn install_opening(&mut self, id: KeyId, keys: &KeyMaterial) -> Result<(), InstallError> {
        if !id.restart {
            let newest = self.newest_opening();
            let wanted = newest.map_or(FIRST_EPOCH, |it| it + 1);
            if id.epoch != wanted && !self.is_unused(id.epoch) {
                let found = id.epoch;
                return Err(InstallError::Epoch { found, wanted });
            }
        }
        let key = OpeningKey::new(keys, self.window);
        let place = &mut self.opening_of(id.restart)[slot(id.epoch)];
        if id.restart && is_used(place, id.epoch, OpeningKey::opened) {
            return Err(InstallError::InUse(id.epoch));
        }
        *place = Some(Box::new((id.epoch, key)));
        Ok(())
    }

    /// Replaces all keys by restart keys, for an association that this end is about to restart.
    pub fn restarting(&mut self, epoch: u64, sealing: &KeyMaterial, opening: &KeyMaterial) {
        *self = Self::new(self.window);
        let key = SealingKey::new(sealing, epoch);
        self.restart_sealing[slot(epoch)] = Some(Box::new((epoch, key)));
        let key = OpeningKey::new(opening, self.window);
        self.restart_opening[slot(epoch)] = Some(Box::new((epoch, key)));
        self.restart = Some(epoch);
    }

    /// Called when the peer has restarted the association with the restart keys of `epoch`. All
    /// other keys are removed. The restart keys are used until new keys are installed, which start
    /// at epoch 3 again (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.4).
    pub fn restarted(&mut self, epoch: u64) {
        self.sealing = None;
        self.opening = Default::default();
        for other in (0..EPOCHS).filter(|it| *it != slot(epoch)) {
            self.restart_sealing[other] = None;
            self.restart_opening[other] = None;
        }
        self.restart = Some(epoch);
    }

    /// Removes opening keys, and the sealing keys for a restart of the same epoch if no restart is
    /// in progress. Returns true if there were any.
    pub fn remove(&mut self, id: KeyId) -> bool {
        if id.restart && self.restart != Some(id.epoch) {
            take_if(&mut self.restart_sealing[slot(id.epoch)], id.epoch);
        }
        take_if(&mut self.opening_of(id.restart)[slot(id.epoch)], id.epoch)
    }

    /// Epoch of the newest opening keys for normal traffic.
    pub fn newest_opening(&self) -> Option<u64> {
        self.opening.iter().flatten().map(|it| it.0).max()
    }

    /// The current sealing keys: those for normal traffic, or those of a restart in progress.
    fn sealing(&self) -> Option<(KeyId, &SealingKey)> {
        if let Some((epoch, key)) = &self.sealing {
            return Some((KeyId::primary(*epoch), key));
        }
        let epoch = self.restart?;
        let (_, key) = self.restart_sealing[slot(epoch)].as_deref()?;
        Some((KeyId::restart(epoch), key))
    }

    /// Returns true if `epoch` is the newest one and its keys have opened no record, so that they
    /// may be replaced.
    fn is_unused(&self, epoch: u64) -> bool {
        let key = self.opening[slot(epoch)].as_deref();
        let unused = key.is_some_and(|(of, key)| *of == epoch && key.opened() == 0);
        unused && self.newest_opening() == Some(epoch)
    }

    /// Returns true if there are sealing keys.
    pub fn seals(&self) -> bool {
        self.sealing().is_some()
    }

    /// Identifier of the current sealing keys.
    pub fn sealing_id(&self) -> Option<KeyId> {
        self.sealing().map(|(id, _)| id)
    }

    /// Returns true if there are sealing keys for a restart with the keys of `epoch`.
    pub fn seals_restart(&self, epoch: u64) -> bool {
        let key = self.restart_sealing[slot(epoch)].as_ref();
        key.is_some_and(|it| it.0 == epoch)
    }

    /// Returns true if there are opening keys for a restart.
    pub fn opens_restarts(&self) -> bool {
        self.restart_opening.iter().any(Option::is_some)
    }

    /// Number of records that the current keys may still seal.
    pub fn left_to_seal(&self) -> u64 {
        self.sealing().map_or(u64::MAX, |(_, key)| key.left())
    }

    /// Maximum number of records that the current keys may seal.
    pub fn most_sealed(&self) -> u64 {
        self.sealing().map_or(u64::MAX, |(_, key)| key.most())
    }

    /// Counters since the set was created.
    pub fn counters(&self) -> ContextCounters {
        self.counters
    }

    /// Seals in place, see [`SealingKey::seal`]. Returns true if restart keys were used.
    ///
    /// # Errors
    /// There are no keys, the keys are exhausted, or the lengths are wrong.
    pub fn seal(&mut self, record: &mut [u8]) -> Result<bool, SealError> {
        let restart = self.sealing.is_none();
        let key = match &mut self.sealing {
            Some((_, key)) => key,
            None => {
                let epoch = self.restart.ok_or(SealError::NoKey)?;
                let key = self.restart_sealing[slot(epoch)].as_deref_mut();
                &mut key.ok_or(SealError::NoKey)?.1
            }
        };
        key.seal(record)?;
        self.counters.sealed += 1;
        Ok(restart)
    }

    /// Opens in place, see [`OpeningKey::open`]. `restart`: with restart keys.
    ///
    /// # Errors
    /// The record must be dropped.
    pub fn open(&mut self, restart: bool, record: &mut [u8]) -> Result<OpenedRecord, OpenError> {
        let bits = record::epoch_bits(record).ok_or(OpenError::Format)?;
        let key = self.opening_of(restart)[usize::from(bits)].as_deref_mut();
        let (epoch, key) = key.ok_or(OpenError::NoKey)?;
        let (epoch, opened) = (*epoch, key.open(record));
        match opened {
            Ok(content) => {
                self.counters.opened += 1;
                let key = KeyId { restart, epoch };
                Ok(OpenedRecord { key, content })
            }
            Err(error) => {
                match error {
                    OpenError::Forged => self.counters.forged += 1,
                    OpenError::Replayed => self.counters.replayed += 1,
                    _ => {}
                }
                Err(error)
            }
        }
    }

    fn opening_of(&mut self, restart: bool) -> &mut ByEpoch<OpeningKey> {
        if restart {
            &mut self.restart_opening
        } else {
            &mut self.opening
        }
    }
}

/// Index of an epoch in the array of keys.
fn slot(epoch: u64) -> usize {
    (epoch % EPOCHS as u64) as usize
}

/// Returns true if there are keys of `epoch` for which `records` is not 0.
fn is_used<K>(keys: &Option<Box<(u64, K)>>, epoch: u64, records: impl Fn(&K) -> u64) -> bool {
    let key = keys.as_deref().filter(|it| it.0 == epoch);
    key.is_some_and(|(_, key)| records(key) > 0)
}

fn take_if<K>(keys: &mut Option<Box<(u64, K)>>, epoch: u64) -> bool {
    let is_it = keys.as_ref().is_some_and(|it| it.0 == epoch);
    if is_it {
        *keys = None;
    }
    is_it
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Suite;

    fn keys(of: u8) -> KeyMaterial {
        KeyMaterial::from_secret(Suite::Aes128Gcm, &[of; 32])
    }

    /// Two ends, of which the second has lost its state and uses the restart keys of epoch 3.
    fn restarted() -> [Contexts; 2] {
        let mut first = Contexts::new(64);
        first.install_sealing(KeyId::primary(3), &keys(1)).unwrap();
        first.install_sealing(KeyId::restart(3), &keys(2)).unwrap();
        first.install_opening(KeyId::restart(3), &keys(3)).unwrap();
        let mut second = Contexts::new(64);
        second.restarting(3, &keys(3), &keys(2));
        let mut record = [0; record::OVERHEAD];
        assert_eq!(second.seal(&mut record), Ok(true));
        first.open(true, &mut record).unwrap();
        first.restarted(3);
        assert_eq!(first.seal(&mut [0; record::OVERHEAD]), Ok(true));
        [first, second]
    }

    /// Restart keys that were used must not be installed again, because nonces would repeat, and
    /// records could be replayed.
    #[test]
    fn keys_of_a_restart_that_were_used_are_not_replaced() {
        let [mut first, _] = restarted();
        let in_use = Err(InstallError::InUse(3));
        first.install_sealing(KeyId::primary(3), &keys(4)).unwrap();
        let id = KeyId::restart(3);
        assert_eq!(first.install_sealing(id, &keys(2)), in_use);
        assert_eq!(first.install_opening(id, &keys(3)), in_use);
        first.remove(id);
        assert_eq!(first.install_sealing(id, &keys(5)), Ok(()));
        assert_eq!(first.install_opening(id, &keys(6)), Ok(()));
    }

    #[test]
    fn after_a_restart_there_are_no_keys_of_another_epoch() {
        let mut end = Contexts::new(64);
        end.install_sealing(KeyId::primary(3), &keys(1)).unwrap();
        for epoch in [3, 4] {
            let id = KeyId::restart(epoch);
            end.install_sealing(id, &keys(2)).unwrap();
            end.install_opening(id, &keys(3)).unwrap();
        }
        end.restarted(3);
        assert!(end.seals_restart(3) && !end.seals_restart(4));
        assert!(end.remove(KeyId::restart(3)) && !end.opens_restarts());
    }

    #[test]
    fn keys_of_a_restart_can_be_removed_once_there_are_new_ones() {
        for mut end in restarted() {
            end.remove(KeyId::restart(3));
            assert!(end.seals_restart(3), "they seal");
            end.install_sealing(KeyId::primary(3), &keys(4)).unwrap();
            end.remove(KeyId::restart(3));
            assert!(!end.seals_restart(3), "removed in both directions");
        }
    }
}
