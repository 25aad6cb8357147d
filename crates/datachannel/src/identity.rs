//! Self-signed certificate of an endpoint, which peers identify by its fingerprint.

use std::str::FromStr;

use p256::ecdsa::{DerSignature, SigningKey};
use p256::pkcs8::{EncodePrivateKey, EncodePublicKey};
use sha2::{Digest, Sha256};
use thiserror::Error;
use x509_cert::builder::{Builder, CertificateBuilder, Profile};
use x509_cert::der::asn1::UtcTime;
use x509_cert::der::{DateTime, Encode};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::SubjectPublicKeyInfoOwned;
use x509_cert::time::{Time, Validity};

use crate::fingerprint::Fingerprint;

/// A P-256 key and its certificate.
#[derive(Clone, Debug)]
pub struct Identity {
    pub(crate) certificate: dimpl::DtlsCertificate,
    fingerprint: Fingerprint,
}

/// The certificate could not be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot make a certificate: {0}")]
pub struct IdentityError(String);

impl Identity {
    /// Creates an identity from 32 secret random bytes. The same bytes result in the same key.
    ///
    /// The certificate is valid from 2020 to 2049: this code reads no clock, and peers check only
    /// the fingerprint.
    ///
    /// # Errors
    /// The certificate could not be encoded.
    pub fn new(seed: [u8; 32]) -> Result<Self, IdentityError> {
        let failed = |error: &dyn std::fmt::Display| IdentityError(error.to_string());
        // If the bytes are no valid scalar of the group, which is extremely unlikely, the next ones
        // are tried.
        let key = (0u8..=255)
            .find_map(|turn| {
                let digest = Sha256::new()
                    .chain_update(seed)
                    .chain_update([turn])
                    .finalize();
                SigningKey::from_slice(&digest).ok()
            })
            .ok_or_else(|| IdentityError("no key".to_owned()))?;
        let name = Name::from_str("CN=anabranch").map_err(|error| failed(&error))?;
        let year = |year| {
            let first = DateTime::new(year, 1, 1, 0, 0, 0)?;
            UtcTime::from_date_time(first).map(Time::UtcTime)
        };
        let validity = Validity {
            not_before: year(2020).map_err(|error| failed(&error))?,
            not_after: year(2049).map_err(|error| failed(&error))?,
        };
        let public = key
            .verifying_key()
            .to_public_key_der()
            .map_err(|error| failed(&error))?;
        let public = SubjectPublicKeyInfoOwned::try_from(public.as_bytes())
            .map_err(|error| failed(&error))?;
        // The serial number must be positive, nonzero, and unique to the certificate.
        let mut serial = [0; 16];
        serial.copy_from_slice(&Sha256::digest(public.subject_public_key.raw_bytes())[..16]);
        serial[0] = serial[0] & 0x7F | 0x40;
        let serial = SerialNumber::new(&serial).map_err(|error| failed(&error))?;
        let profile = Profile::Leaf {
            issuer: name.clone(),
            enable_key_agreement: false,
            enable_key_encipherment: false,
        };
        let certificate = CertificateBuilder::new(profile, serial, validity, name, public, &key)
            .and_then(|builder| builder.build::<DerSignature>())
            .map_err(|error| failed(&error))?
            .to_der()
            .map_err(|error| failed(&error))?;
        let private_key = key.to_pkcs8_der().map_err(|error| failed(&error))?;
        Ok(Self {
            fingerprint: Fingerprint::of(&certificate),
            certificate: dimpl::DtlsCertificate {
                certificate,
                private_key: private_key.as_bytes().to_vec(),
            },
        })
    }

    /// Fingerprint of the certificate, for offers and answers.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_identity() {
        let of = |byte| Identity::new([byte; 32]).unwrap();
        assert_eq!(of(1).certificate.certificate, of(1).certificate.certificate);
        assert_ne!(of(1).fingerprint(), of(2).fingerprint());
        let text = of(1).fingerprint().to_string();
        assert_eq!(text.len(), 95);
        assert_eq!(text.parse(), Ok(of(1).fingerprint()));
        assert_eq!(text.to_lowercase().parse(), Ok(of(1).fingerprint()));
        for wrong in [
            "",
            "AA",
            &text[3..],
            &format!("{text}:00"),
            &text.replace(':', ""),
        ] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(()), "{wrong}");
        }
    }
}
