//! One end of an association, for tests of key management.

use crate::contexts::Contexts;
use crate::identity::PeerIdentity;
use crate::management::{AgreementStart, KeyManagement, KeyManagementAction, Role};
use crate::record::{HEADER, OVERHEAD, OpenError};

/// A key management method with its keys.
pub(crate) struct End {
    pub(crate) method: Box<dyn KeyManagement>,
    pub(crate) contexts: Contexts,
    pub(crate) protected: bool,
    pub(crate) identity: Option<PeerIdentity>,
    pub(crate) failed: Option<&'static str>,
}

impl End {
    pub(crate) fn new(method: impl KeyManagement + 'static) -> Self {
        Self {
            method: Box::new(method),
            contexts: Contexts::new(64),
            protected: false,
            identity: None,
            failed: None,
        }
    }

    pub(crate) fn start(&mut self, role: Role, parameters: [&[u8]; 2], restarted: Option<u64>) {
        self.method.start(AgreementStart {
            now: 0,
            role,
            method: 0,
            client_parameter: parameters[0],
            server_parameter: parameters[1],
            restarted,
            identity: self.identity.as_ref(),
        });
    }

    /// Executes the actions of the method, and returns the messages to send.
    pub(crate) fn act(&mut self) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        while let Some(action) = self.method.poll() {
            match action {
                KeyManagementAction::Send(message) => sent.push(message),
                KeyManagementAction::InstallOpening(id, keys) => {
                    self.contexts.install_opening(id, &keys).unwrap();
                }
                KeyManagementAction::InstallSealing(id, keys) => {
                    self.contexts.install_sealing(id, &keys).unwrap();
                }
                KeyManagementAction::Remove(id) => {
                    self.contexts.remove(id);
                }
                KeyManagementAction::Authenticated(identity) => self.identity = Some(identity),
                KeyManagementAction::Protect => self.protected = true,
                KeyManagementAction::Fail(why) => self.failed = Some(why),
            }
        }
        sent
    }

    pub(crate) fn seal(&mut self, content: &[u8]) -> Vec<u8> {
        let mut record = vec![0; HEADER];
        record.extend_from_slice(content);
        record.resize(content.len() + OVERHEAD, 0);
        self.contexts.seal(&mut record).unwrap();
        record
    }

    pub(crate) fn open(
        &mut self,
        restart: bool,
        mut record: Vec<u8>,
    ) -> Result<Vec<u8>, OpenError> {
        let opened = self.contexts.open(restart, &mut record)?;
        Ok(record[HEADER..][..opened.content].to_vec())
    }
}

/// Exchanges messages until neither end has more to send.
pub(crate) fn talk(now: u64, ends: &mut [End; 2]) {
    loop {
        let mut quiet = true;
        for from in [0, 1] {
            for message in ends[from].act() {
                quiet = false;
                ends[1 - from].method.handle_message(now, &message);
            }
        }
        if quiet {
            return;
        }
    }
}
