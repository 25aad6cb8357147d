//! Protection of associations by the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04).

use anabranch_sctp::dtls::preshared;
use anabranch_sctp::{KeyMethods, Security};

use crate::config::Config;

impl Config {
    /// Returns a copy that protects all associations with keys that are derived from a secret which
    /// both ends share. Peers without the DTLS chunk are refused, unless [`Config::sctp`] has
    /// [`Security::DtlsChunkLoose`].
    #[must_use]
    pub fn with_preshared_secret(self, settings: preshared::PresharedSettings) -> Self {
        self.with_key_methods(KeyMethods::preshared(settings))
    }

    /// Returns a copy that protects all associations with keys of a handshake in which both ends
    /// authenticate by certificates. Peers without the DTLS chunk are refused, unless
    /// [`Config::sctp`] has [`Security::DtlsChunkLoose`].
    ///
    /// ```no_run
    /// use std::sync::Arc;
    ///
    /// use anabranch_net::Config;
    /// use anabranch_net::sctp::dtls::tls::{Credentials, TlsSettings, Trust};
    ///
    /// # fn run() -> Result<(), Box<dyn std::error::Error>> {
    /// let read = std::fs::read;
    /// let credentials = Credentials::from_pem(&read("own.pem")?, &read("own.key")?)?;
    /// let trust = Trust::default()
    ///     .with_authorities(&read("authority.pem")?)?
    ///     .with_name("spiffe://example.org/amf");
    /// let settings = TlsSettings::new(credentials, trust, false)?;
    /// let config = Config::default().with_certificates(Arc::new(settings));
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_certificates(
        self,
        settings: std::sync::Arc<anabranch_dtls::tls::TlsSettings>,
    ) -> Self {
        use anabranch_dtls::tls::{METHOD, Tls};
        let restart = settings.restart;
        let make = move |_| -> Box<dyn anabranch_dtls::KeyManagement> {
            Box::new(Tls::new(settings.clone()))
        };
        self.with_key_methods(KeyMethods::managed(METHOD, restart, make))
    }

    fn with_key_methods(mut self, methods: KeyMethods) -> Self {
        if self.sctp.security == Security::Off {
            self.sctp.security = Security::DtlsChunk;
        }
        self.sctp.key_methods = methods;
        self
    }
}
