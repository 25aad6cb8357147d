//! Certificates of the DTLS chunk and of DTLS over SCTP (RFC 6083).

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "tls")]
use anabranch_net::rfc6083::Rfc6083Settings;
use anabranch_net::sctp::KeyMethods;
use anabranch_net::sctp::dtls::record::MAX_CONTENT;
use anabranch_scenario::quantity::Size;
use clap::{Args, ValueEnum};

#[cfg(not(feature = "tls"))]
use crate::absent::rfc6083::Rfc6083Settings;
use crate::failure::Failure;

/// Maximum size of a file with certificates, bytes.
#[cfg(feature = "tls")]
const MAX: u64 = 1 << 20;

// Options of commands that authenticate by certificates.
#[derive(Args, Clone, Debug, Default)]
pub struct Certificates {
    /// Certificate of this end, with those of its intermediate authorities, in PEM format. Both
    /// ends authenticate by TLS 1.3, all packets are encrypted, and peers without certificates are
    /// refused, unless an option of the command allows them (--set security=dtls-chunk-loose). If
    /// the environment variable SSLKEYLOGFILE names a file, the secrets of TLS are appended to it.
    /// --security selects another protocol.
    #[arg(
        long,
        value_name = "FILE",
        requires = "tls_key",
        conflicts_with = "psk_file"
    )]
    pub tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert, in PEM format.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Certificates of the authorities that may have issued the peer's certificate, in PEM format.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_ca: Option<PathBuf>,
    /// Accepts a peer with a certificate of this SHA-256, in hexadecimal digits, of any issuer,
    /// even if it has expired.
    /// If given several times, any of the values is accepted.
    #[arg(long, value_name = "SHA-256", requires = "tls_cert", value_parser = fingerprint)]
    pub tls_fingerprint: Vec<CertificateFingerprint>,
    /// Name in the peer's certificate (subjectAltName): a URI, like spiffe://example.org/amf, or a
    /// DNS name. If given several times, any of the values is accepted. Without it, any name is
    /// accepted.
    #[arg(long, value_name = "NAME", requires = "tls_cert")]
    pub tls_name: Vec<String>,
    /// Protocol that uses the certificates; both ends must use the same [default: dtls-chunk].
    #[arg(long, value_name = "PROTOCOL", requires = "tls_cert")]
    pub security: Option<SecurityProtocol>,
}

/// Protocol that protects associations by certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SecurityProtocol {
    /// The DTLS chunk: all packets are encrypted.
    DtlsChunk,
    /// DTLS 1.2 over SCTP: messages of at most 16 KiB are encrypted, and SCTP's chunks
    /// authenticated. Keys for ECDSA (P-256, P-384); no intermediate authorities.
    Rfc6083,
}

/// Settings of the protocol that protects associations.
#[cfg_attr(not(feature = "tls"), allow(dead_code))]
pub enum SecuritySettings {
    DtlsChunk(KeyMethods),
    Rfc6083(Arc<Rfc6083Settings>),
}

/// Maximum size of a message with RFC 6083.
const MAX_RECORD: Size = Size(MAX_CONTENT as u64);

/// SHA-256 fingerprint of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CertificateFingerprint(pub [u8; 32]);

/// As 64 hexadecimal digits.
impl fmt::Display for CertificateFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Parses a fingerprint of 64 hexadecimal digits, optionally with colons as
/// `openssl x509 -fingerprint` prints them.
fn fingerprint(text: &str) -> Result<CertificateFingerprint, String> {
    let failed = || format!("found {text:?}; write 64 hexadecimal digits");
    let digits: String = text.chars().filter(|it| *it != ':').collect();
    if digits.len() != 64 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Err(failed());
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        let pair = digits.get(2 * at..2 * at + 2).ok_or_else(failed)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| failed())?;
    }
    Ok(CertificateFingerprint(bytes))
}

impl Certificates {
    /// Returns true if RFC 6083 is the selected protocol.
    pub fn is_rfc6083(&self) -> bool {
        self.security == Some(SecurityProtocol::Rfc6083)
    }

    /// Refuses a message size that exceeds the maximum of RFC 6083.
    pub fn check_message_size(&self, size: Size) -> Result<(), Failure> {
        match self.is_rfc6083() && size.0 > MAX_RECORD.0 {
            true => Err(Failure::Usage(format!(
                "--message-size: found {size} with --security rfc6083; allowed: 1 B to {MAX_RECORD}"
            ))),
            false => Ok(()),
        }
    }

    /// The protection that these options select; `None` without such options.
    #[cfg(not(feature = "tls"))]
    pub fn protection(&self) -> Result<Option<SecuritySettings>, Failure> {
        match self.tls_cert {
            Some(_) => Err(Failure::absent("anabranch --tls-cert", "tls")),
            None => Ok(None),
        }
    }

    /// The protection that these options select; `None` without such options.
    #[cfg(feature = "tls")]
    pub fn protection(&self) -> Result<Option<SecuritySettings>, Failure> {
        use anabranch_net::sctp::dtls::tls::{self, Credentials, Trust};

        use super::auth_keys::content;

        let (Some(certificate), Some(key)) = (&self.tls_cert, &self.tls_key) else {
            return Ok(None);
        };
        let names = format!("--tls-cert {}", certificate.display());
        let chain = content(certificate, &names, MAX)?;
        let key = content(key, &format!("--tls-key {}", key.display()), MAX)?;
        let refused = |option: &str, error| Failure::Usage(format!("{option}: {error}"));
        let credentials =
            Credentials::from_pem(&chain, &key).map_err(|error| refused(&names, error))?;
        let mut trust = Trust::default();
        if let Some(file) = &self.tls_ca {
            let option = format!("--tls-ca {}", file.display());
            let pem = content(file, &option, MAX)?;
            trust = trust
                .with_authorities(&pem)
                .map_err(|error| refused(&option, error))?;
        } else if self.tls_fingerprint.is_empty() {
            let what = "--tls-cert needs --tls-ca or --tls-fingerprint, which name trusted peers";
            return Err(Failure::Usage(what.to_owned()));
        }
        for CertificateFingerprint(bytes) in &self.tls_fingerprint {
            trust = trust.with_fingerprint(*bytes);
        }
        for name in &self.tls_name {
            trust = trust.with_name(name);
        }
        if self.is_rfc6083() {
            let settings = Rfc6083Settings::new(&credentials, trust);
            let settings = settings.map_err(|error| refused(&names, error))?;
            return Ok(Some(SecuritySettings::Rfc6083(Arc::new(settings))));
        }
        let settings = tls::TlsSettings::new(credentials, trust, true)
            .map_err(|error| refused(&names, error))?;
        let config = anabranch_net::Config::default().with_certificates(Arc::new(settings));
        Ok(Some(SecuritySettings::DtlsChunk(config.sctp.key_methods)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_have_64_digits() {
        let plain = "00ff".repeat(16);
        let bytes = fingerprint(&plain).expect("64 digits").0;
        assert_eq!(CertificateFingerprint(bytes).to_string(), plain);
        assert_eq!(bytes[..4], [0, 255, 0, 255]);
        assert_eq!(
            fingerprint(&["00:FF"; 16].join(":")),
            Ok(CertificateFingerprint(bytes))
        );
        for wrong in ["", "00", &plain[1..], &"0g".repeat(32), &"é".repeat(32)] {
            assert!(fingerprint(wrong).is_err(), "{wrong}");
        }
    }
}
