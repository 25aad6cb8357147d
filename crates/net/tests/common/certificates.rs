//! Certificates for tests, and endpoints that accept on the loopback interface.

use anabranch_net::{Carrier, Config, Endpoint};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::LOOPBACK;

/// Creates a certificate authority.
pub fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed")
}

/// Binds an endpoint that accepts associations, with UDP encapsulation.
pub fn bind(config: Config) -> Endpoint {
    let config = config.with(|it| {
        it.addresses = vec![LOOPBACK];
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.accept = true;
    });
    Endpoint::bind(config).expect("loopback")
}
