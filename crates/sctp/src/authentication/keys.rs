//! Endpoint pair shared keys by identifier (RFC 4895 §6.1; the functions correspond to RFC 6458
//! §8.1.18 and §8.3.3 to §8.3.5).

use bytes::Bytes;
use smallvec::{SmallVec, smallvec};
use thiserror::Error;

/// Maximum number of stored keys.
const MAX_KEYS: usize = 64;

/// Why a key was not set, activated or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The association does not use AUTH: the setting `authentication` is off, or the peer does not
    /// offer it.
    #[error("the association does not use AUTH")]
    NotNegotiated,
    /// No key has this identifier.
    #[error("there is no key {0}")]
    NoSuchKey(u16),
    /// The key is the active key, which cannot be deactivated or deleted.
    #[error("key {0} is the active key; activate another one first")]
    Active(u16),
    /// The key was deactivated, and cannot become active unless it is set again.
    #[error("key {0} was deactivated")]
    Deactivated(u16),
    /// The maximum of 64 keys is reached.
    #[error("there are {MAX_KEYS} keys already; delete one first")]
    TooMany,
}

/// A shared key and its identifier.
#[derive(Clone)]
struct Key {
    id: u16,
    secret: Bytes,
    deactivated: bool,
}

/// Endpoint pair shared keys of an association. Initially there is only the null key, which has
/// identifier 0 and is empty. A deactivated key can still verify packets until it is deleted or
/// replaced, so that both ends can change to a new key (RFC 6458 §8.3.3).
#[derive(Clone)]
pub struct SharedKeys {
    /// Inline space for one key, because most sets have only the null key.
    keys: SmallVec<[Key; 1]>,
    active: u16,
}

impl Default for SharedKeys {
    fn default() -> Self {
        Self::only(0, Bytes::new())
    }
}

impl std::fmt::Debug for SharedKeys {
    /// Prints the identifiers, and never the keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<u16> = self.keys.iter().map(|key| key.id).collect();
        f.debug_struct("SharedKeys")
            .field("ids", &ids)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

impl SharedKeys {
    /// Set with only this key, as the active key, and without the null key.
    pub fn only(id: u16, secret: impl Into<Bytes>) -> Self {
        let key = Key {
            id,
            secret: secret.into(),
            deactivated: false,
        };
        Self {
            keys: smallvec![key],
            active: id,
        }
    }

    /// Sets a key, or replaces the key with this identifier.
    ///
    /// # Errors
    /// [`KeyError::TooMany`] if the maximum is reached.
    pub fn set(&mut self, id: u16, secret: impl Into<Bytes>) -> Result<(), KeyError> {
        let key = Key {
            id,
            secret: secret.into(),
            deactivated: false,
        };
        if let Some(former) = self.keys.iter_mut().find(|key| key.id == id) {
            *former = key;
            return Ok(());
        }
        if self.keys.len() == MAX_KEYS {
            return Err(KeyError::TooMany);
        }
        self.keys.push(key);
        Ok(())
    }

    /// Authenticates packets with this key from now on.
    ///
    /// # Errors
    /// The key does not exist, or was deactivated.
    pub fn activate(&mut self, id: u16) -> Result<(), KeyError> {
        if self.find(id)?.deactivated {
            return Err(KeyError::Deactivated(id));
        }
        self.active = id;
        Ok(())
    }

    /// Stops using the key for sent packets. Received packets are still verified with this key.
    ///
    /// # Errors
    /// There is no such key, or it is the active key.
    pub fn deactivate(&mut self, id: u16) -> Result<(), KeyError> {
        self.find(id)?;
        if id == self.active {
            return Err(KeyError::Active(id));
        }
        for key in self.keys.iter_mut().filter(|key| key.id == id) {
            key.deactivated = true;
        }
        Ok(())
    }

    /// Deletes a key. Packets authenticated with it are discarded from now on.
    ///
    /// # Errors
    /// There is no such key, or it is the active key.
    pub fn delete(&mut self, id: u16) -> Result<(), KeyError> {
        self.find(id)?;
        if id == self.active {
            return Err(KeyError::Active(id));
        }
        self.keys.retain(|key| key.id != id);
        Ok(())
    }

    /// Identifier of the active key.
    pub fn active(&self) -> u16 {
        self.active
    }

    /// Whether new messages can be authenticated with this key: it exists, and was not deactivated.
    pub fn can_sign(&self, id: u16) -> bool {
        self.find(id).is_ok_and(|key| !key.deactivated)
    }

    /// Whether the key exists, deactivated or not: messages queued earlier are still authenticated
    /// with it.
    pub(crate) fn has(&self, id: u16) -> bool {
        self.find(id).is_ok()
    }

    fn find(&self, id: u16) -> Result<&Key, KeyError> {
        let found = self.keys.iter().find(|key| key.id == id);
        found.ok_or(KeyError::NoSuchKey(id))
    }

    /// Identifiers and keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.keys.iter().map(|key| (key.id, &key.secret[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_null_key_is_there_until_it_is_deleted() {
        let mut keys = SharedKeys::default();
        assert_eq!(keys.iter().collect::<Vec<_>>(), [(0, &b""[..])]);
        assert_eq!(keys.delete(0), Err(KeyError::Active(0)));
        assert_eq!(keys.activate(5), Err(KeyError::NoSuchKey(5)));
        keys.set(5, "five").expect("room");
        keys.activate(5).expect("there");
        keys.delete(0).expect("no longer active");
        assert_eq!(keys.iter().collect::<Vec<_>>(), [(5, &b"five"[..])]);
        assert_eq!(keys.active(), 5);
        assert_eq!(keys.delete(0), Err(KeyError::NoSuchKey(0)));
    }

    #[test]
    fn a_deactivated_key_stays_and_is_not_chosen_again_unless_set_again() {
        let mut keys = SharedKeys::only(1, "one");
        keys.set(2, "two").expect("room");
        assert_eq!(keys.deactivate(1), Err(KeyError::Active(1)));
        assert_eq!(keys.deactivate(3), Err(KeyError::NoSuchKey(3)));
        keys.activate(2).expect("there");
        keys.deactivate(1).expect("not active");
        assert_eq!(keys.activate(1), Err(KeyError::Deactivated(1)));
        assert_eq!(keys.iter().count(), 2);
        keys.set(1, "one again").expect("replaced");
        keys.activate(1).expect("set anew");
    }

    #[test]
    fn keys_are_bounded_and_never_shown() {
        let mut keys = SharedKeys::default();
        for id in 1..64 {
            keys.set(id, "secret").expect("room");
        }
        assert_eq!(keys.set(64, "secret"), Err(KeyError::TooMany));
        assert_eq!(keys.set(63, "another"), Ok(()));
        assert!(!format!("{keys:?}").contains("secret"));
    }
}
