//! DTLS 1.2 (RFC 8261, RFC 6347), by the crate `dimpl`, which does no I/O either.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::channels::Role;
use crate::close::Closed;
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;

/// What a record adds to what it carries: its header, the explicit nonce, the tag (AES-GCM).
pub(crate) const OVERHEAD: usize = 13 + 8 + 16;
/// The largest datagram that is sent, bytes: it passes every path that has IPv6's least MTU, with headers of IP and UDP.
pub(crate) const MAX_DATAGRAM: usize = 1_200;

/// What DTLS has to give.
#[derive(Debug)]
pub(crate) enum Output {
    /// A datagram for the peer.
    Datagram(Bytes),
    /// What the peer sent.
    Data(Bytes),
    /// The peer has the certificate of its offer, and the handshake is done.
    Connected,
    /// The peer closed.
    Closed,
}

/// One end of DTLS.
pub(crate) struct Dtls {
    inner: dimpl::Dtls,
    /// The instant of time 0.
    origin: Instant,
    expected: Fingerprint,
    /// The peer showed the certificate that is expected.
    shown: bool,
    deadline: Option<Nanos>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Dtls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dtls")
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

fn failed(error: dimpl::Error) -> Closed {
    Closed::Dtls(error.to_string())
}

impl Dtls {
    pub(crate) fn new(
        origin: Instant,
        now: Nanos,
        identity: &Identity,
        role: Role,
        expected: Fingerprint,
    ) -> Result<Self, Closed> {
        let config = dimpl::Config::builder()
            .mtu(MAX_DATAGRAM)
            // ICE has shown already that the peer is where it says.
            .use_server_cookie(false)
            .build()
            .map_err(failed)?;
        let at = origin + Duration::from_nanos(now);
        let mut inner = dimpl::Dtls::new_12(Arc::new(config), identity.certificate.clone(), at);
        inner.set_active(role == Role::Client);
        Ok(Self {
            inner,
            origin,
            expected,
            shown: false,
            deadline: None,
            buffer: vec![0; 2_048],
        })
    }

    /// Tells the time, which begins the handshake of a client.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) -> Result<(), Closed> {
        let at = self.origin + Duration::from_nanos(now);
        self.inner.handle_timeout(at).map_err(failed)
    }

    pub(crate) fn handle_datagram(&mut self, now: Nanos, bytes: &[u8]) -> Result<(), Closed> {
        self.handle_timeout(now)?;
        self.inner.handle_packet(bytes).map_err(failed)
    }

    /// Sends a packet of SCTP. What comes of it is to be polled before the next one.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Result<(), Closed> {
        self.inner
            .send_application_data(packet)
            .map(|_| ())
            .map_err(failed)
    }

    /// Says goodbye.
    pub(crate) fn close(&mut self) {
        // It may be closed already.
        let _ = self.inner.close();
    }

    /// The next output; to be called until there is none.
    pub(crate) fn poll(&mut self) -> Result<Option<Output>, Closed> {
        loop {
            match self.inner.poll_output(&mut self.buffer) {
                dimpl::Output::Packet(bytes) => {
                    return Ok(Some(Output::Datagram(Bytes::copy_from_slice(bytes))));
                }
                dimpl::Output::ApplicationData(bytes) if self.shown => {
                    return Ok(Some(Output::Data(Bytes::copy_from_slice(bytes))));
                }
                dimpl::Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                dimpl::Output::PeerCert(certificate) => {
                    if Fingerprint::of(certificate) != self.expected {
                        return Err(Closed::Fingerprint);
                    }
                    self.shown = true;
                }
                dimpl::Output::Connected if self.shown => return Ok(Some(Output::Connected)),
                // A peer without a certificate.
                dimpl::Output::Connected => return Err(Closed::Fingerprint),
                dimpl::Output::CloseNotify => return Ok(Some(Output::Closed)),
                dimpl::Output::Timeout(at) => {
                    let after = at.saturating_duration_since(self.origin).as_nanos();
                    self.deadline = u64::try_from(after).ok();
                    return Ok(None);
                }
                // Keys of SRTP: there is no media. Data before the certificate: none is taken.
                _ => {}
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Nanos> {
        self.deadline
    }
}
