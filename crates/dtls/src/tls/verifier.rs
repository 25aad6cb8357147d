//! Verification of the peer's certificate.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest, Sha256};
use webpki::{EndEntityCert, KeyUsage};

/// Verifier for the certificates of peers in both roles.
pub(crate) struct Verifier {
    authorities: RootCertStore,
    fingerprints: Vec<[u8; 32]>,
    names: Vec<String>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// URIs and DNS names in a certificate.
pub(crate) fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let uris = certificate.valid_uri_names();
    uris.chain(certificate.valid_dns_names())
        .map(str::to_owned)
        .collect()
}

impl Verifier {
    pub(super) fn new(
        authorities: RootCertStore,
        fingerprints: Vec<[u8; 32]>,
        names: Vec<String>,
        provider: &CryptoProvider,
    ) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Self {
            authorities,
            fingerprints,
            names,
            algorithms,
        }
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
        usage: KeyUsage,
    ) -> Result<(), Error> {
        let fingerprint: [u8; 32] = Sha256::digest(certificate).into();
        if !self.fingerprints.contains(&fingerprint) {
            self.verify_chain(certificate, chain, now, usage)?;
        }
        let has_name = self.names.is_empty()
            || (names_of(certificate).iter()).any(|it| self.names.contains(it));
        if has_name {
            Ok(())
        } else {
            Err(CertificateError::NotValidForName.into())
        }
    }

    fn verify_chain(
        &self,
        certificate: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        now: UnixTime,
        usage: KeyUsage,
    ) -> Result<(), Error> {
        let end = EndEntityCert::try_from(certificate).map_err(translate)?;
        let anchors = &self.authorities.roots;
        let algorithms = self.algorithms.all;
        end.verify_for_usage(algorithms, anchors, chain, now, usage, None, None)
            .map(|_| ())
            .map_err(translate)
    }
}

fn translate(error: webpki::Error) -> Error {
    use webpki::Error as E;
    let error = match error {
        E::BadDer | E::BadDerTime | E::TrailingData(_) => CertificateError::BadEncoding,
        E::CertExpired { .. } | E::InvalidCertValidity => CertificateError::Expired,
        E::CertNotValidYet { .. } => CertificateError::NotValidYet,
        // With `InvalidSignatureForPublicKey`, the issuer has the name of a trusted authority but
        // another key, so it counts as unknown.
        E::UnknownIssuer | E::InvalidSignatureForPublicKey => CertificateError::UnknownIssuer,
        E::RequiredEkuNotFoundContext(_) => CertificateError::InvalidPurpose,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    error.into()
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(end_entity, intermediates, now, KeyUsage::server_auth())?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Verifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.verify(end_entity, intermediates, now, KeyUsage::client_auth())?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
