//! Settings of the DTLS chunk for the associations of a socket, and the marks of messages that
//! arrived protected (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.2).

pub(super) mod structs;

use std::collections::BTreeSet;

use anabranch_net::sctp::dtls::KeyMaterial;
use anabranch_net::sctp::{Config, KeyMethods, RestartKeys, Security};
use anabranch_net::{Association, MessagePart};

use structs::DtlsConfig;

/// Flags of struct sctp_dtls_config.
pub(super) const CLIENT: u16 = 1;
pub(super) const SERVER: u16 = 2;
pub(super) const RESTART: u16 = 4;
pub(super) const REQUIRED: u16 = 8;

/// Settings of the DTLS chunk for future associations of a socket.
#[derive(Clone, Debug)]
pub(super) struct DtlsSettings {
    /// Offered methods and roles.
    pub local: DtlsConfig,
    /// True if the host manages the keys, so that programs cannot.
    pub managed: bool,
    /// True if the program has set `local`.
    pub set: bool,
    /// Size of the replay window, packets.
    pub window: u32,
    /// Keys with which the next association restarts an earlier one: epoch and keys to send, and
    /// the same to receive.
    pub restart: [Option<(u64, KeyMaterial)>; 2],
}

impl Default for DtlsSettings {
    fn default() -> Self {
        Self::of(&Config::default())
    }
}

impl DtlsSettings {
    /// The settings of the host.
    pub(super) fn of(config: &Config) -> Self {
        let managed = config.security != Security::Off;
        let window = u32::try_from(config.dtls_replay_window).unwrap_or(u32::MAX);
        Self {
            local: if managed {
                of_methods(config)
            } else {
                DtlsConfig::default()
            },
            managed,
            set: false,
            window,
            restart: [None, None],
        }
    }

    /// A copy for another socket, without the keys of a restart, which are used once.
    pub(super) fn inherited(&self) -> Self {
        Self {
            restart: [None, None],
            ..self.clone()
        }
    }

    /// Whether the DTLS chunk is offered.
    pub(super) fn is_offered(&self) -> bool {
        !self.local.methods.is_empty()
    }

    /// Changes the settings of an endpoint to these.
    pub(super) fn apply(&self, sctp: &mut Config) {
        sctp.dtls_replay_window = u64::from(self.window);
        if !self.set {
            return;
        }
        let DtlsConfig { flags, methods } = &self.local;
        sctp.security = match (methods.is_empty(), flags & REQUIRED != 0) {
            (true, _) => Security::Off,
            (false, true) => Security::DtlsChunk,
            (false, false) => Security::DtlsChunkLoose,
        };
        sctp.key_methods = KeyMethods::external(methods)
            .with_roles(flags & CLIENT != 0, flags & SERVER != 0)
            .with_restart(flags & RESTART != 0);
    }

    /// Methods and roles that new associations offer.
    pub(super) fn offer(&self) -> (bool, DtlsConfig) {
        (self.set, self.local.clone())
    }

    /// Checks that an association can be set up with the keys of a restart, or that there are none.
    ///
    /// # Errors
    /// EINVAL: there are keys for one direction only, or of different epochs, or the configuration
    /// does not support restarts.
    pub(super) fn check_restart_keys(&self) -> Result<(), i32> {
        match &self.restart {
            [None, None] => Ok(()),
            [Some((send, _)), Some((receive, _))]
                if send == receive && self.local.flags & RESTART != 0 =>
            {
                Ok(())
            }
            _ => Err(libc::EINVAL),
        }
    }

    /// Removes the keys of a restart, which are used once.
    ///
    /// # Errors
    /// As for [`Self::check_restart_keys`]; the keys remain.
    pub(super) fn take_restart_keys(&mut self) -> Result<Option<RestartKeys>, i32> {
        self.check_restart_keys()?;
        let [send, receive] = std::mem::take(&mut self.restart);
        let both = send.zip(receive);
        Ok(both.map(|((epoch, send), (_, receive))| RestartKeys {
            epoch,
            send,
            receive,
        }))
    }
}

/// The configuration of the host's key management.
fn of_methods(config: &Config) -> DtlsConfig {
    let methods = &config.key_methods;
    let bit = |on: bool, bit: u16| if on { bit } else { 0 };
    let [client, server] = methods.roles();
    DtlsConfig {
        flags: bit(client, CLIENT)
            | bit(server, SERVER)
            | bit(methods.restarts(), RESTART)
            | bit(config.security == Security::DtlsChunk, REQUIRED),
        methods: methods.identifiers().to_vec(),
    }
}

/// Marks of the messages of an association that arrived in protected packets (MSG_PROTECTED).
#[derive(Default)]
pub(super) struct ProtectedMarks {
    /// True if the association uses the DTLS chunk.
    used: bool,
    /// Streams and kinds (unordered) of messages that were delivered in part, and of which an
    /// earlier part arrived without protection.
    clear: BTreeSet<(u16, bool)>,
}

impl ProtectedMarks {
    pub(super) fn of(association: &Association) -> Self {
        Self {
            used: association.key_agreement().is_some(),
            clear: BTreeSet::new(),
        }
    }

    /// Whether the message of this part has arrived in protected packets only, as far as it was
    /// delivered.
    pub(super) fn is_protected(&mut self, association: &Association, part: &MessagePart) -> bool {
        if !self.used {
            return false;
        }
        let message = (part.stream, part.unordered);
        let was_clear = !part.begins && self.clear.contains(&message);
        let protected = !was_clear && association.covers(part.tsn);
        match protected || part.ends {
            true => self.clear.remove(&message),
            false => self.clear.insert(message),
        };
        protected
    }
}

#[cfg(test)]
mod tests;
