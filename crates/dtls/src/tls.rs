//! Key management with certificates: a TLS 1.3 handshake in messages of SCTP
//! (draft-porfiri-tsvwg-sctp-dtls-handshake, text of 2 July 2026).
//!
//! Both ends prove their identity by a certificate, and derive the keys of an epoch by the TLS
//! exporter, whose context contains both DTLS Key Management Parameters. Each rekeying is a
//! complete handshake with new ephemeral keys, in which the peer proves its identity again.
//!
//! ```text
//!     client                                     server
//!       | -- ClientHello ------------------------> |
//!       | <- ServerHello ... Finished ------------ |
//!       |    installs keys to open with            |
//!       | -- Certificate ... Finished -----------> | installs both directions,
//!       |                                          | accepts nothing unprotected
//!       | <- protection established -------------- |
//!       |    installs keys to seal with,           |
//!       |    accepts nothing unprotected           |
//! ```
//!
//! Two points differ from the draft. In the exporter context, the parameter of the client of the
//! first handshake comes first, and not that of the "Initiator", because in a simultaneous open
//! both ends are initiators. The failure of a handshake always ends the association; the draft
//! recommends another attempt if keys are in use.
//!
//! The crate `rustls` implements TLS. Resumption is not used.

pub(crate) mod connection;
pub(crate) mod settings;
#[cfg(test)]
mod tests;
pub(crate) mod verifier;

use std::sync::Arc;

use crate::contexts::KeyId;
use crate::epochs::{CONTROL, Epochs, PROTECTION_ESTABLISHED, Policy};
use crate::identity::PeerIdentity;
use crate::management::{AgreementStart, KeyManagement, KeyManagementAction, Role};
use crate::material::KeyMaterial;
use connection::Connection;
pub use settings::{Credentials, SettingsError, TlsSettings, Trust};

/// Number of the method (draft-porfiri-tsvwg-sctp-dtls-handshake §9.1).
pub const METHOD: u8 = 192;

/// All keys of an epoch: by the role of their sender, and for each role those for normal traffic
/// and for a restart.
#[derive(Debug)]
pub(crate) struct EpochKeys {
    pub(crate) client: [KeyMaterial; 2],
    pub(crate) server: [KeyMaterial; 2],
}

impl EpochKeys {
    fn of(&self, sender: Role, restart: bool) -> KeyMaterial {
        let both = match sender {
            Role::Client => &self.client,
            Role::Server => &self.server,
        };
        both[usize::from(restart)].clone()
    }
}

/// Progress of the agreement on the next epoch.
#[derive(Debug, Default)]
enum Step {
    #[default]
    Idle,
    /// The handshake is in progress.
    Handshake(Box<Connection>),
    /// This end is the client and has sent its last message, which the server may still refuse.
    Finished(Box<Connection>, Box<EpochKeys>),
}

/// Key management of one association.
#[derive(Debug)]
pub struct Tls {
    settings: Arc<TlsSettings>,
    parameters: [Vec<u8>; 2],
    epochs: Epochs,
    step: Step,
    identity: Option<PeerIdentity>,
}

impl Tls {
    /// Creates the key management of one association.
    pub fn new(settings: Arc<TlsSettings>) -> Self {
        let policy = Policy {
            restart: settings.restart,
            rekey_interval: settings.rekey_interval,
            handshake_timeout: settings.handshake_timeout,
        };
        Self {
            settings,
            parameters: Default::default(),
            epochs: Epochs::new(policy),
            step: Step::Idle,
            identity: None,
        }
    }

    fn begin(&mut self, role: Role) -> Option<Box<Connection>> {
        let connection = Connection::new(&self.settings, role);
        if connection.is_none() {
            self.epochs.fail("TLS cannot be started");
        }
        connection.map(Box::new)
    }

    fn begin_as_client(&mut self) {
        if let Some(mut connection) = self.begin(Role::Client) {
            self.flush(&mut connection);
            self.step = Step::Handshake(connection);
        }
    }

    /// Sends the records that TLS has produced.
    fn flush(&mut self, connection: &mut Connection) {
        let mut message = vec![self.epochs.header()];
        connection.write_to(&mut message);
        if message.len() > 1 {
            self.epochs.send(message);
        }
    }

    /// The connection that should process `records`; `None` if they should be ignored.
    fn connection_for(&mut self, records: &[u8]) -> Option<Box<Connection>> {
        match std::mem::take(&mut self.step) {
            Step::Idle => {
                self.epochs.begin();
                self.begin(Role::Server)
            }
            Step::Handshake(own) if own.role() == Role::Client && begins(records) => {
                // Both ends started at the same time (§6.2.4).
                if self.epochs.role() == Role::Client {
                    self.step = Step::Handshake(own);
                    return None;
                }
                self.epochs.begin();
                self.begin(Role::Server)
            }
            Step::Handshake(own) => Some(own),
            // The server has sent a ticket, an alert that closes the connection, or an alert that
            // refuses this end.
            Step::Finished(mut connection, keys) => {
                match connection.read(records) {
                    Ok(()) => self.step = Step::Finished(connection, keys),
                    Err(why) => self.epochs.fail(why),
                }
                None
            }
        }
    }

    fn on_records(&mut self, now: u64, records: &[u8]) {
        let Some(mut connection) = self.connection_for(records) else {
            return;
        };
        if let Err(why) = connection.read(records) {
            self.flush(&mut connection);
            return self.epochs.fail(why);
        }
        if connection.is_handshaking() {
            self.flush(&mut connection);
            self.step = Step::Handshake(connection);
            return;
        }
        let (Some(identity), Some(keys)) =
            (connection.identity(), connection.export(&self.parameters))
        else {
            return self.epochs.fail("TLS did not agree on keys");
        };
        let known = self.identity.as_ref();
        if known.is_some_and(|known| !known.is_same_as(&identity)) {
            return self
                .epochs
                .fail("the peer has another identity than before");
        }
        self.identity = Some(identity.clone());
        self.epochs
            .push(KeyManagementAction::Authenticated(identity));
        match connection.role() {
            Role::Client => self.finish(connection, keys),
            Role::Server => self.on_finished(now, &mut connection, &keys),
        }
    }

    /// Called when the server has proved its identity.
    fn finish(&mut self, mut connection: Box<Connection>, keys: EpochKeys) {
        self.epochs.begin();
        self.install(&keys, Role::Server, false);
        if self.epochs.installs_restart_keys_early() {
            // Restart keys are installed now, because the server may restart as soon as it has the
            // last message.
            self.install_one(&keys, true, Role::Client, true);
        }
        self.flush(&mut connection);
        self.step = Step::Finished(connection, Box::new(keys));
    }

    /// Called when the client has proved its identity.
    fn on_finished(&mut self, now: u64, connection: &mut Connection, keys: &EpochKeys) {
        self.flush(connection);
        self.install(keys, Role::Client, false);
        self.install(keys, Role::Server, true);
        self.switch_to(now, keys, Role::Server);
        self.epochs.send_protection_established();
    }

    fn on_established(&mut self, now: u64) {
        let Step::Finished(_, keys) = std::mem::take(&mut self.step) else {
            return self
                .epochs
                .fail("protection is said to be established, and is not");
        };
        self.install_one(&keys, false, Role::Client, true);
        if self.epochs.installs_restart_keys() && !self.epochs.installs_restart_keys_early() {
            self.install_one(&keys, true, Role::Client, true);
        }
        self.switch_to(now, &keys, Role::Client);
    }

    fn install(&mut self, keys: &EpochKeys, sender: Role, sealing: bool) {
        self.install_one(keys, false, sender, sealing);
        if self.epochs.installs_restart_keys() {
            self.install_one(keys, true, sender, sealing);
        }
    }

    fn install_one(&mut self, keys: &EpochKeys, restart: bool, sender: Role, sealing: bool) {
        let epoch = self.epochs.next();
        let keys = keys.of(sender, restart);
        self.epochs.install(KeyId { restart, epoch }, keys, sealing);
    }

    fn switch_to(&mut self, now: u64, keys: &EpochKeys, own: Role) {
        let peer = match own {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        self.epochs
            .switch(now, || [own, peer].map(|it| keys.of(it, true)));
    }
}

/// Whether `records` start with a ClientHello.
fn begins(records: &[u8]) -> bool {
    const HANDSHAKE: u8 = 22;
    const CLIENT_HELLO: u8 = 1;
    records.first() == Some(&HANDSHAKE) && records.get(5) == Some(&CLIENT_HELLO)
}

impl KeyManagement for Tls {
    fn start(&mut self, start: AgreementStart<'_>) {
        self.parameters = [
            start.client_parameter.to_vec(),
            start.server_parameter.to_vec(),
        ];
        self.step = Step::Idle;
        self.identity = start.identity.cloned();
        self.epochs.start(&start);
        if start.role == Role::Client {
            self.begin_as_client();
        }
    }

    fn handle_message(&mut self, now: u64, message: &[u8]) {
        let Some((&first, payload)) = message.split_first() else {
            return self.epochs.fail("a message of key management is empty");
        };
        if !self.epochs.accepts(first) {
            return;
        }
        match (first & CONTROL != 0, payload) {
            (false, records) => self.on_records(now, records),
            (true, [PROTECTION_ESTABLISHED]) => self.on_established(now),
            (true, _) => self.epochs.fail("a control message of an unknown kind"),
        }
    }

    fn handle_timeout(&mut self, now: u64) {
        if self.epochs.handle_timeout(now) {
            self.rekey(now);
        }
    }

    fn rekey(&mut self, _now: u64) {
        let idle = matches!(self.step, Step::Idle);
        if self.epochs.is_protected() && idle && !self.epochs.has_failed() {
            self.begin_as_client();
        }
    }

    fn poll(&mut self) -> Option<KeyManagementAction> {
        self.epochs.poll()
    }

    fn poll_timeout(&self) -> Option<u64> {
        self.epochs.poll_timeout()
    }
}
