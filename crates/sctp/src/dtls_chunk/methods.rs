//! Use of the DTLS chunk by an endpoint, and the endpoint's key management methods.

use std::fmt;
use std::sync::Arc;

use anabranch_dtls::{KeyManagement, preshared};
use anabranch_wire::extension::DtlsKeyManagement;
use bytes::Bytes;

/// Whether an endpoint uses the DTLS chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Security {
    /// The DTLS chunk is not offered.
    #[default]
    Off,
    /// Strict DTLS mode: associations without the DTLS chunk are refused.
    DtlsChunk,
    /// Loose DTLS mode: if the peer does not offer the DTLS chunk, the association is not
    /// protected. An attacker on the path can therefore disable the protection.
    DtlsChunkLoose,
}

anabranch_settings::spelled!(Security: Security::Off = "off", Security::DtlsChunk = "dtls-chunk",
    Security::DtlsChunkLoose = "dtls-chunk-loose");

/// Creates the key management of an association from a secret seed.
type Make = dyn Fn([u8; 32]) -> Box<dyn KeyManagement> + Send + Sync;

/// The key management methods of an endpoint (draft-ietf-tsvwg-sctp-dtls-chunk-04 §7.1).
#[derive(Clone)]
pub struct KeyMethods {
    identifiers: Bytes,
    client: bool,
    server: bool,
    restart: bool,
    make: Option<Arc<Make>>,
}

impl fmt::Debug for KeyMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMethods")
            .field("identifiers", &self.identifiers)
            .field("client", &self.client)
            .field("server", &self.server)
            .field("restart", &self.restart)
            .finish_non_exhaustive()
    }
}

impl Default for KeyMethods {
    /// Method 0: the user installs keys by [`ProtectionMut::install_send_keys`] and
    /// [`ProtectionMut::install_receive_keys`].
    ///
    /// [`ProtectionMut::install_send_keys`]: crate::ProtectionMut::install_send_keys
    /// [`ProtectionMut::install_receive_keys`]: crate::ProtectionMut::install_receive_keys
    fn default() -> Self {
        Self::external(&[0])
    }
}

impl KeyMethods {
    /// User-defined methods: the user exchanges messages with payload protocol identifier 4242 and
    /// installs the keys. `identifiers`: at least one, in descending order of preference.
    pub fn external(identifiers: &[u8]) -> Self {
        let identifiers = if identifiers.is_empty() {
            &[0]
        } else {
            identifiers
        };
        Self {
            identifiers: Bytes::copy_from_slice(identifiers),
            client: true,
            server: true,
            restart: false,
            make: None,
        }
    }

    /// Key management by a pre-shared secret.
    pub fn preshared(settings: preshared::PresharedSettings) -> Self {
        let restart = settings.restart;
        let make = move |seed| -> Box<dyn KeyManagement> {
            Box::new(preshared::Preshared::new(settings.clone(), seed))
        };
        Self::managed(preshared::METHOD, restart, make)
    }

    /// A key management method with this identifier. `make` creates the method's state for one
    /// association from a secret seed. `restart`: the method derives restart keys.
    pub fn managed(
        identifier: u8,
        restart: bool,
        make: impl Fn([u8; 32]) -> Box<dyn KeyManagement> + Send + Sync + 'static,
    ) -> Self {
        Self {
            restart,
            make: Some(Arc::new(make)),
            ..Self::external(&[identifier])
        }
    }

    /// The same methods, restricted to these roles of this end. By default both roles are
    /// supported.
    pub fn with_roles(self, client: bool, server: bool) -> Self {
        Self {
            client,
            server,
            ..self
        }
    }

    /// The same methods, with support for protected restarts or without: whether the key management
    /// derives restart keys.
    pub fn with_restart(self, restart: bool) -> Self {
        Self { restart, ..self }
    }

    /// Identifiers of the methods, in descending order of preference.
    pub fn identifiers(&self) -> &[u8] {
        &self.identifiers
    }

    /// The supported roles: client and server.
    pub fn roles(&self) -> [bool; 2] {
        [self.client, self.server]
    }

    /// Whether protected restarts are supported.
    pub fn restarts(&self) -> bool {
        self.restart
    }

    /// Whether the user exchanges the messages of the key management and installs the keys.
    pub fn are_external(&self) -> bool {
        self.make.is_none()
    }

    /// The DTLS Key Management Parameter with this tie breaker.
    pub(crate) fn parameter(&self, tie_breaker: u32) -> DtlsKeyManagement {
        DtlsKeyManagement {
            tie_breaker,
            restart: self.restart,
            server: self.server,
            client: self.client,
            reserved: 0,
            methods: self.identifiers.clone(),
        }
    }

    pub(crate) fn make(&self, seed: [u8; 32]) -> Option<Box<dyn KeyManagement>> {
        self.make.as_ref().map(|make| make(seed))
    }
}
