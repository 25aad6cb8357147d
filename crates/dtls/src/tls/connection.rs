//! A TLS connection in memory.

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error, ServerConnection};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use super::EpochKeys;
use super::settings::TlsSettings;
use super::verifier::names_of;
use crate::identity::PeerIdentity;
use crate::management::Role;
use crate::material::{IV_LEN, KeyMaterial};
use crate::suite::Suite;

/// The label of all exports (draft-porfiri-tsvwg-sctp-dtls-handshake §5.3).
const LABEL: &[u8] = b"EXPORTER_TLS_FOR_DTLS_IN_SCTP";
/// Placeholder server name, which rustls requires; [`super::Trust`] verifies the name of the peer.
const NAME: &str = "peer.invalid";

/// One end of a TLS connection.
#[derive(Debug)]
pub(crate) struct Connection {
    tls: rustls::Connection,
    role: Role,
}

impl Connection {
    pub(crate) fn new(settings: &TlsSettings, role: Role) -> Option<Self> {
        let tls = match role {
            Role::Client => {
                let name = ServerName::try_from(NAME).ok()?;
                let config = settings.client.clone();
                rustls::ClientConnection::new(config, name).ok()?.into()
            }
            Role::Server => ServerConnection::new(settings.server.clone()).ok()?.into(),
        };
        Some(Self { tls, role })
    }

    pub(crate) fn role(&self) -> Role {
        self.role
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    pub(crate) fn write_to(&mut self, out: &mut Vec<u8>) {
        while self.tls.wants_write() && self.tls.write_tls(out).is_ok() {}
    }

    /// Processes records of the peer.
    pub(crate) fn read(&mut self, mut records: &[u8]) -> Result<(), &'static str> {
        while !records.is_empty() {
            match self.tls.read_tls(&mut records) {
                Ok(0) => break,
                Ok(_) => {}
                Err(_) => return Err("a message of TLS is too long"),
            }
            self.tls
                .process_new_packets()
                .map_err(|error| reason(&error))?;
        }
        Ok(())
    }

    /// The identity in the certificate that the peer has proved to own.
    pub(crate) fn identity(&self) -> Option<PeerIdentity> {
        let certificate = self.tls.peer_certificates()?.first()?;
        let fingerprint = Sha256::digest(certificate).into();
        Some(PeerIdentity::new(names_of(certificate), fingerprint))
    }

    /// Exports the keys of an epoch (§5.2). The context of each key contains its direction, whether
    /// it is for a restart, its type (key, sequence number key or initialization vector), and the
    /// DTLS Key Management Parameters of both ends.
    pub(crate) fn export(&self, parameters: &[Vec<u8>; 2]) -> Option<EpochKeys> {
        let code: u16 = self.tls.negotiated_cipher_suite()?.suite().into();
        let suite = Suite::of_code(code.to_be_bytes())?;
        let export = |sender, restart| self.export_one(suite, sender, restart, parameters);
        let both = |sender| Some([export(sender, false)?, export(sender, true)?]);
        Some(EpochKeys {
            client: both(Role::Client)?,
            server: both(Role::Server)?,
        })
    }

    fn export_one(
        &self,
        suite: Suite,
        sender: Role,
        restart: bool,
        [client, server]: &[Vec<u8>; 2],
    ) -> Option<KeyMaterial> {
        let direction = u8::from(sender == Role::Server);
        let part = |kind: u8, length: usize| {
            let context = [&[direction, u8::from(restart), kind], &client[..], server].concat();
            let out = Zeroizing::new(vec![0; length]);
            self.tls
                .export_keying_material(out, LABEL, Some(&context))
                .ok()
        };
        let key = part(0, suite.key_len())?;
        let sequence_key = part(1, suite.key_len())?;
        let iv = part(2, IV_LEN)?;
        KeyMaterial::new(suite, &key, &iv, &sequence_key).ok()
    }
}

/// Text of an error for the user.
pub(crate) fn reason(error: &Error) -> &'static str {
    match error {
        Error::InvalidCertificate(error) => certificate_reason(error),
        Error::NoCertificatesPresented => "the peer has no certificate",
        Error::AlertReceived(alert) => alert_reason(*alert),
        Error::PeerIncompatible(_) => "the peer and this end have no common TLS 1.3 parameters",
        _ => "the peer violates TLS",
    }
}

fn certificate_reason(error: &CertificateError) -> &'static str {
    use CertificateError as E;
    match error {
        E::Expired | E::ExpiredContext { .. } => "the peer's certificate has expired",
        E::NotValidYet | E::NotValidYetContext { .. } => "the peer's certificate is not valid yet",
        E::UnknownIssuer => "the peer's certificate is of an authority that is not trusted",
        E::NotValidForName | E::NotValidForNameContext { .. } => {
            "the peer's certificate has none of the expected names"
        }
        E::InvalidPurpose | E::InvalidPurposeContext { .. } => {
            "the peer's certificate is not for this end of a connection"
        }
        E::BadSignature => "the peer does not have the key of its certificate",
        _ => "the peer's certificate is not valid",
    }
}

pub(crate) fn alert_reason(alert: AlertDescription) -> &'static str {
    use AlertDescription as A;
    match alert {
        A::CertificateRequired => "the peer requires a certificate",
        A::CertificateExpired => "for the peer, this end's certificate has expired",
        A::UnknownCA => "the peer does not trust the authority of this end's certificate",
        A::BadCertificate | A::CertificateUnknown | A::UnsupportedCertificate => {
            "the peer refuses this end's certificate"
        }
        _ => "the peer ended the handshake of TLS",
    }
}
