//! Settings of key management with certificates.

use std::fmt;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, KeyLogFile, RootCertStore, ServerConfig};
use thiserror::Error;

use super::verifier::Verifier;
use crate::epochs::SECOND;
use crate::suite::Suite;

/// Reasons why settings cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A PEM text cannot be parsed.
    #[error("{what}: {error}")]
    Pem {
        /// Kind of the text: certificates or key.
        what: &'static str,
        /// The error of the parser.
        error: String,
    },
    /// Neither an authority nor a fingerprint is trusted, so that no peer could be accepted.
    #[error("no authority and no fingerprint is trusted; a peer needs one of them")]
    NoTrust,
    /// TLS refuses the certificates or the key.
    #[error("certificate and key: {0}")]
    Tls(#[from] rustls::Error),
}

/// The certificate chain of this end, and its private key.
pub struct Credentials {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl fmt::Debug for Credentials {
    /// Writes the number of certificates, but never the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("certificates", &self.chain.len())
            .finish_non_exhaustive()
    }
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, SettingsError> {
    let failed = |error: String| SettingsError::Pem { what, error };
    let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let all = all.map_err(|error| failed(error.to_string()))?;
    if all.is_empty() {
        return Err(failed("found no certificate".to_owned()));
    }
    Ok(all)
}

impl Credentials {
    /// Reads PEM texts: a certificate with those of its intermediate authorities, and the private
    /// key (PKCS#8, PKCS#1 or SEC1).
    ///
    /// # Errors
    /// A text cannot be parsed.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, SettingsError> {
        let chain = certificates("certificate", chain)?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| SettingsError::Pem {
            what: "private key",
            error: error.to_string(),
        })?;
        Ok(Self { chain, key })
    }
}

/// The peers that are trusted: those with a certificate of a trusted authority, and those with a
/// pinned certificate.
#[derive(Clone, Default)]
pub struct Trust {
    authorities: Vec<CertificateDer<'static>>,
    fingerprints: Vec<[u8; 32]>,
    names: Vec<String>,
}

impl Trust {
    /// Adds the authorities in a PEM text.
    ///
    /// # Errors
    /// The text cannot be parsed, or contains no certificate.
    pub fn with_authorities(mut self, pem: &[u8]) -> Result<Self, SettingsError> {
        self.authorities.extend(certificates("authorities", pem)?);
        Ok(self)
    }

    /// Adds a pinned certificate by its SHA-256. The issuer, validity and usage of the certificate
    /// are not verified.
    #[must_use]
    pub fn with_fingerprint(mut self, fingerprint: [u8; 32]) -> Self {
        self.fingerprints.push(fingerprint);
        self
    }

    /// Adds an accepted name. The certificate of a peer must contain at least one accepted name, as
    /// a URI such as `spiffe://example.org/amf` or as a DNS name. If none is added, names are not
    /// verified.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        self.names.push(name.to_owned());
        self
    }
}

impl Trust {
    pub(crate) fn verifier(self, provider: &CryptoProvider) -> Result<Verifier, SettingsError> {
        if self.authorities.is_empty() && self.fingerprints.is_empty() {
            return Err(SettingsError::NoTrust);
        }
        let mut roots = RootCertStore::empty();
        for authority in self.authorities {
            roots.add(authority)?;
        }
        Ok(Verifier::new(
            roots,
            self.fingerprints,
            self.names,
            provider,
        ))
    }
}

/// Settings of key management with certificates.
pub struct TlsSettings {
    /// Whether keys for a protected restart are agreed on too.
    pub restart: bool,
    /// Interval after which both ends authenticate again and agree on new keys, nanoseconds; one
    /// hour by default (draft-porfiri-tsvwg-sctp-dtls-handshake §3.4). `None`: only when the keys
    /// are nearly exhausted, or the user requests it.
    pub rekey_interval: Option<u64>,
    /// Time limit for the first keys, also after a restart, nanoseconds. If it expires, the
    /// association ends. Later keys must be agreed on within one interval after they were due, or
    /// within this time if it is longer. Without an interval there is no limit for later keys.
    pub handshake_timeout: u64,
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("restart", &self.restart)
            .field("rekey_interval", &self.rekey_interval)
            .field("handshake_timeout", &self.handshake_timeout)
            .finish_non_exhaustive()
    }
}

/// The cryptography of TLS, restricted to the suites of the DTLS chunk.
pub(crate) fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|it| {
        let code: u16 = it.suite().into();
        Suite::of_code(code.to_be_bytes()).is_some()
    });
    provider
}

impl TlsSettings {
    /// Settings of an end with these credentials, for peers that `trust` accepts. With `key_log`,
    /// the secrets of handshakes are written to the file in the environment variable
    /// `SSLKEYLOGFILE`, if it is set.
    ///
    /// # Errors
    /// The settings trust no peer, or the key does not match the certificate.
    pub fn new(
        credentials: Credentials,
        trust: Trust,
        key_log: bool,
    ) -> Result<Self, SettingsError> {
        let provider = Arc::new(provider());
        let verifier = Arc::new(trust.verifier(&provider)?);
        let Credentials { chain, key } = credentials;
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_auth_cert(chain.clone(), key.clone_key())?;
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)?;
        server.send_tls13_tickets = 0;
        if key_log {
            let log = Arc::new(KeyLogFile::new());
            (client.key_log, server.key_log) = (log.clone(), log);
        }
        Ok(Self {
            restart: true,
            rekey_interval: Some(3_600 * SECOND),
            handshake_timeout: 60 * SECOND,
            client: Arc::new(client),
            server: Arc::new(server),
        })
    }
}
