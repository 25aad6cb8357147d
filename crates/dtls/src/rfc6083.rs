//! DTLS 1.2 over SCTP (RFC 6083), for peers that do not support the DTLS chunk; without I/O.
//!
//! Each user message is one record. SCTP authenticates its chunks (AUTH) with a key that both ends
//! export from the handshake. The crate `dimpl` implements the handshake. Records of user data are
//! sealed here, because dimpl has a replay window, which would discard messages that SCTP delivers
//! late.
//!
//! dimpl supports ECDHE with ECDSA certificates, but no renegotiation. Therefore a connection keeps
//! the keys of its handshake, for at most 2^24.5 messages.

mod record;
mod secrets;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use dimpl::crypto::Dtls12CipherSuite;
use dimpl::{Config, Dtls, DtlsCertificate, Output, SecurityError};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::identity::PeerIdentity;
use crate::management::Role;
use crate::tls::connection::{alert_reason, reason};
use crate::tls::settings::provider;
use crate::tls::verifier::{Verifier, names_of};
use crate::tls::{Credentials, SettingsError, Trust};
use record::{Records, content_type};

pub use crate::record::MAX_CONTENT as MAX_MESSAGE;
pub use record::OVERHEAD as RECORD_OVERHEAD;

/// Alerts: level, description (RFC 5246 §7.2).
const CLOSE_NOTIFY: [u8; 2] = [1, 0];
const NO_RENEGOTIATION: [u8; 2] = [1, 100];
const WARNING: u8 = 1;
/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// Settings of an end.
pub struct Rfc6083Settings {
    /// Payload protocol identifier of handshake messages, 0 by default. For Diameter, RFC 6733
    /// §13.1 specifies 47.
    pub ppid: u32,
    /// Time limit of the handshake, nanoseconds; 60 s by default. The caller of [`Connection`]
    /// applies it.
    pub handshake_timeout: u64,
    certificate: DtlsCertificate,
    config: Arc<Config>,
    verifier: Verifier,
}

impl fmt::Debug for Rfc6083Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("ppid", &self.ppid)
            .field("handshake_timeout", &self.handshake_timeout)
            .finish_non_exhaustive()
    }
}

impl Rfc6083Settings {
    /// Settings of an end with these credentials, for peers that `trust` accepts. Only the first
    /// certificate of the chain is sent. Its key must be for ECDSA with P-256 or P-384.
    ///
    /// # Errors
    /// The settings trust no peer, or the key is of another kind.
    pub fn new(credentials: &Credentials, trust: Trust) -> Result<Self, SettingsError> {
        let cryptography = secrets::provider();
        let key = credentials.key.secret_der();
        // Checked here, because dimpl would panic in the first handshake.
        if cryptography.key_provider.load_private_key(key).is_err() {
            let message = "RFC 6083 needs a key for ECDSA with P-256 or P-384 here";
            return Err(rustls::Error::General(message.into()).into());
        }
        let first = credentials.chain.first().map(|it| it.to_vec());
        let config = Config::builder()
            .mtu(MAX_MESSAGE)
            .use_server_cookie(false)
            .require_client_certificate(true)
            .dtls12_cipher_suites(&[
                Dtls12CipherSuite::ECDHE_ECDSA_AES128_GCM_SHA256,
                Dtls12CipherSuite::ECDHE_ECDSA_AES256_GCM_SHA384,
            ])
            .with_crypto_provider(cryptography)
            .build();
        let failed = |error: dimpl::Error| rustls::Error::General(error.to_string());
        Ok(Self {
            ppid: 0,
            handshake_timeout: 60 * SECOND,
            certificate: DtlsCertificate {
                certificate: first.unwrap_or_default(),
                private_key: key.to_vec(),
            },
            config: Arc::new(config.map_err(failed)?),
            verifier: trust.verifier(&provider())?,
        })
    }

    /// Verifies the certificate of a peer in this role.
    fn verify(&self, certificate: &[u8], role: Role) -> Result<PeerIdentity, &'static str> {
        let certificate = CertificateDer::from(certificate);
        let now = UnixTime::now();
        let name = ServerName::try_from("peer.invalid").map_err(|_| "no name")?;
        let it = &self.verifier;
        let verified = match role {
            Role::Server => it
                .verify_server_cert(&certificate, &[], &name, &[], now)
                .map(|_| ()),
            Role::Client => it.verify_client_cert(&certificate, &[], now).map(|_| ()),
        };
        verified.map_err(|error| reason(&error))?;
        let fingerprint = Sha256::digest(&certificate).into();
        Ok(PeerIdentity::new(names_of(&certificate), fingerprint))
    }
}

/// Actions that the handshake requests. The caller must execute them in order.
#[derive(Debug)]
#[non_exhaustive]
pub enum HandshakeAction {
    /// Send this record as one message: on stream 0, reliably and in order (RFC 6083 §4.4).
    Send {
        /// The record.
        record: Vec<u8>,
        /// Identifier of the shared key for AUTH.
        key: u16,
        /// Whether to wait until the peer has acknowledged all messages that were sent before (RFC
        /// 6083 §4.7).
        after_all: bool,
    },
    /// Add a shared key for AUTH (RFC 6083 §4.8).
    SetKey {
        /// Identifier of the key.
        id: u16,
        /// The key.
        key: Zeroizing<[u8; 64]>,
    },
    /// Use this key to authenticate sent packets.
    UseKey(u16),
    /// Remove this key.
    RemoveKey(u16),
    /// The handshake is complete, and the peer has proved this identity.
    Established(PeerIdentity),
    /// The peer failed authentication, or violated DTLS: abort the association.
    Fail(&'static str),
}

/// Content of a message from the peer.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opened {
    /// User data.
    Data(Vec<u8>),
    /// The peer will send no more data (close_notify).
    Closed,
    /// No data for the user. If there are bytes, they should be sent as one message on stream 0.
    Nothing(Option<Vec<u8>>),
}

/// A DTLS connection over one association.
pub struct Connection {
    settings: Arc<Rfc6083Settings>,
    role: Role,
    /// State of the handshake; `None` after it has succeeded or failed.
    dtls: Option<Dtls>,
    /// True after the peer has sent an encrypted handshake message.
    finished: bool,
    records: Option<Records>,
    identity: Option<PeerIdentity>,
    connected: bool,
    established: bool,
    closed: bool,
    actions: VecDeque<HandshakeAction>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("role", &self.role)
            .field("established", &self.established)
            .finish_non_exhaustive()
    }
}

/// Identifiers of shared keys: the initial empty key, and the key from the handshake (RFC 6083
/// §4.8).
const FIRST_KEY: u16 = 0;
const NEXT_KEY: u16 = 1;

impl Connection {
    /// Starts a handshake. `now` is not used for time limits, which the caller applies.
    pub fn new(settings: Arc<Rfc6083Settings>, role: Role, now: Instant) -> Self {
        let certificate = settings.certificate.clone();
        let mut dtls = Dtls::new_12(settings.config.clone(), certificate, now);
        dtls.set_active(role == Role::Client);
        let mut this = Self {
            settings,
            role,
            dtls: Some(dtls),
            finished: false,
            records: None,
            identity: None,
            connected: false,
            established: false,
            closed: false,
            actions: VecDeque::new(),
        };
        this.advance(|dtls| dtls.handle_timeout(now));
        this
    }

    /// Whether the handshake has succeeded.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether `message` contains user data. If it arrives before the handshake is complete, it has
    /// overtaken the peer's last handshake message on another stream, and must be buffered until
    /// then (RFC 6083 §4.7).
    pub fn is_data(message: &[u8]) -> bool {
        matches!(
            record::header_of(message),
            Some((content_type::APPLICATION_DATA, 1))
        )
    }

    /// Processes a handshake message. Before the peer is authenticated, only one encrypted message
    /// is accepted from it, its Finished, because dimpl expects no other. After the handshake has
    /// succeeded or failed, messages have no effect.
    pub fn handle_message(&mut self, message: &[u8]) {
        if self.dtls.is_none() {
            return;
        }
        match record::header_of(message) {
            Some((_, 0)) => {}
            Some((_, NEXT_KEY)) if !std::mem::replace(&mut self.finished, true) => {}
            Some(_) => return self.fail("more than one encrypted message in the handshake"),
            None => return self.fail("a message is not one record of DTLS 1.2"),
        }
        self.advance(|dtls| dtls.handle_packet(message));
    }

    /// The next action.
    pub fn poll(&mut self) -> Option<HandshakeAction> {
        self.actions.pop_front()
    }

    /// Ends the handshake with an error; later messages have no effect.
    fn fail(&mut self, why: &'static str) {
        self.dtls = None;
        self.actions.clear();
        self.actions.push_back(HandshakeAction::Fail(why));
    }

    /// Lets dimpl do `work`, and converts its output to actions.
    fn advance(&mut self, work: impl FnOnce(&mut Dtls) -> Result<(), dimpl::Error>) {
        let Some(dtls) = &mut self.dtls else {
            return;
        };
        let (result, seen) = secrets::during(|| work(dtls).map(|()| poll_all(dtls)));
        let output = match result {
            Ok(output) => output,
            Err(dimpl::Error::SecurityError(SecurityError::FatalAlert { description })) => {
                return self.fail(alert_reason(description.into()));
            }
            Err(_) => return self.fail("the peer violates DTLS, or has no common parameters"),
        };
        if let Some(secrets) = seen {
            let key = secrets.shared_key();
            self.records = Records::new(&secrets, self.role == Role::Client);
            self.actions
                .push_back(HandshakeAction::SetKey { id: NEXT_KEY, key });
        }
        if let Some(certificate) = output.certificate {
            let peer = match self.role {
                Role::Client => Role::Server,
                Role::Server => Role::Client,
            };
            match self.settings.verify(&certificate, peer) {
                Ok(identity) => self.identity = Some(identity),
                Err(why) => return self.fail(why),
            }
        }
        for record in output.records {
            self.push(record);
        }
        self.connected |= output.connected;
        if self.connected && !self.established {
            match (self.identity.clone(), &self.records) {
                (Some(identity), Some(_)) => {
                    self.established = true;
                    self.dtls = None;
                    self.actions
                        .push_back(HandshakeAction::RemoveKey(FIRST_KEY));
                    self.actions
                        .push_back(HandshakeAction::Established(identity));
                }
                _ => self.fail("the peer did not prove its identity"),
            }
        }
    }

    /// Sends a record of the handshake. From Finished on, it uses the new key.
    fn push(&mut self, record: Vec<u8>) {
        let (kind, epoch) = record::header_of(&record).unwrap_or_default();
        if epoch == NEXT_KEY {
            self.actions.push_back(HandshakeAction::UseKey(NEXT_KEY));
        }
        self.actions.push_back(HandshakeAction::Send {
            record,
            key: epoch,
            after_all: kind == content_type::CHANGE_CIPHER_SPEC,
        });
    }

    /// Seals a message of the user as one record. `None` if the handshake is not complete, this end
    /// has closed, the message is longer than [`MAX_MESSAGE`], or the key has sealed the maximum
    /// number of messages.
    pub fn seal(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let usable = self.established && !self.closed && message.len() <= MAX_MESSAGE;
        let kind = content_type::APPLICATION_DATA;
        usable.then(|| self.seal_as(kind, message)).flatten()
    }

    fn seal_as(&mut self, kind: u8, content: &[u8]) -> Option<Vec<u8>> {
        self.records.as_mut()?.seal(kind, content)
    }

    /// The close_notify message, which should be sent on stream 0 after the peer has acknowledged
    /// all other messages (RFC 6083 §4.9). `None` if it was sent already, or the handshake is not
    /// complete.
    pub fn close(&mut self) -> Option<Vec<u8>> {
        if !self.established || std::mem::replace(&mut self.closed, true) {
            return None;
        }
        self.seal_as(content_type::ALERT, &CLOSE_NOTIFY)
    }

    /// Opens a message that arrived after the handshake.
    ///
    /// # Errors
    /// The peer violated DTLS. The association must be aborted, because AUTH proves that the
    /// message is from the peer.
    pub fn open(&mut self, message: &[u8]) -> Result<Opened, &'static str> {
        let (kind, epoch) =
            record::header_of(message).ok_or("a message is not one record of DTLS 1.2")?;
        if epoch != 1 {
            return Err("a message is not encrypted");
        }
        let records = self.records.as_ref().ok_or("there are no keys")?;
        let content = records.open(message).ok_or("a record is not authentic")?;
        match (kind, &content[..]) {
            (content_type::APPLICATION_DATA, _) => Ok(Opened::Data(content)),
            (content_type::ALERT, alert) if alert == CLOSE_NOTIFY => Ok(Opened::Closed),
            (content_type::ALERT, [WARNING, _]) => Ok(Opened::Nothing(None)),
            (content_type::ALERT, _) => Err("the peer ended the connection by an alert"),
            // A request to renegotiate. After close_notify, an end sends no alert.
            (content_type::HANDSHAKE, _) if self.closed => Ok(Opened::Nothing(None)),
            (content_type::HANDSHAKE, _) => Ok(Opened::Nothing(
                self.seal_as(content_type::ALERT, &NO_RENEGOTIATION),
            )),
            _ => Err("a record of an unknown type"),
        }
    }
}

/// Output of a call of dimpl.
#[derive(Default)]
struct Collected {
    records: Vec<Vec<u8>>,
    certificate: Option<Vec<u8>>,
    connected: bool,
}

fn poll_all(dtls: &mut Dtls) -> Collected {
    let mut all = Collected::default();
    let mut buffer = vec![0; MAX_MESSAGE];
    loop {
        let needed = match dtls.poll_output(&mut buffer) {
            Output::Packet(datagram) => {
                all.records.extend(record::split(datagram));
                continue;
            }
            Output::PeerCert(certificate) => {
                all.certificate = Some(certificate.to_vec());
                continue;
            }
            Output::Connected => {
                all.connected = true;
                continue;
            }
            Output::BufferTooSmall { needed } => needed,
            Output::Timeout(_) => return all,
            _ => continue,
        };
        buffer.resize(needed, 0);
    }
}
