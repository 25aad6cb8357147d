//! Creation of DTLS engines, and the cookie exchange after a second ClientHello (RFC 6347 §4.2.1).
//!
//! An attacker who spoofs the peer's address may send the first ClientHello. The peer's ClientHello
//! is then the second one. Therefore the sender of a second ClientHello must return a cookie, which
//! only a host that sees the traffic can do. With a valid cookie, its ClientHello replaces the
//! first one. No state is kept about requested cookies, because engines with the same seed have the
//! same secret and accept each other's cookies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::flight::{Flight, Message, message, without_cookie};
use super::handshake::{Handshake, Stage};
use super::{Dtls, MAX_DATAGRAM, Output, failed, record};
use crate::channels::DtlsRole;
use crate::close::Closed;
use crate::identity::Identity;

/// Factory of engines.
pub(super) struct EngineFactory {
    /// Instant of time 0.
    origin: Instant,
    role: DtlsRole,
    certificate: dimpl::DtlsCertificate,
    plain: Arc<dimpl::Config>,
    /// Configuration of engines that request cookies.
    with_cookie: Arc<dimpl::Config>,
}

impl EngineFactory {
    pub(super) fn new(
        origin: Instant,
        identity: &Identity,
        role: DtlsRole,
        seed: u64,
    ) -> Result<Self, Closed> {
        let config = || dimpl::Config::builder().mtu(MAX_DATAGRAM);
        // No cookie is requested at first, because ICE has already verified the peer's address.
        let plain = config().use_server_cookie(false).build().map_err(failed)?;
        // The seed is only used for randoms, nonces and the cookie secret. Keys come from the
        // system's random numbers, so that no nonce is used twice with a key.
        let with_cookie = config()
            .use_server_cookie(true)
            .dangerously_set_rng_seed(seed)
            .build()
            .map_err(failed)?;
        Ok(Self {
            origin,
            role,
            certificate: identity.certificate.clone(),
            plain: Arc::new(plain),
            with_cookie: Arc::new(with_cookie),
        })
    }

    fn of(&self, config: &Arc<dimpl::Config>, now: Nanos) -> dimpl::Dtls {
        let (config, certificate) = (Arc::clone(config), self.certificate.clone());
        let mut engine = dimpl::Dtls::new_12(config, certificate, self.instant(now));
        engine.set_active(self.role == DtlsRole::Client);
        engine
    }

    /// Creates an engine that requests no cookie.
    pub(super) fn plain(&self, now: Nanos) -> dimpl::Dtls {
        self.of(&self.plain, now)
    }

    pub(super) fn instant(&self, now: Nanos) -> Instant {
        self.origin + Duration::from_nanos(now)
    }

    pub(super) fn time(&self, at: Instant) -> Option<Nanos> {
        let after = at.saturating_duration_since(self.origin).as_nanos();
        u64::try_from(after).ok()
    }
}

/// Limit on the number of engines that are created, because an attacker could otherwise cause their
/// creation at any rate.
#[derive(Debug)]
pub(super) struct EngineBudget {
    left: u64,
    since: Nanos,
}

impl EngineBudget {
    const MAX: u64 = 16;
    const EACH: Nanos = 10 * MILLISECOND;

    pub(super) fn new(now: Nanos) -> Self {
        Self {
            left: Self::MAX,
            since: now,
        }
    }

    fn take(&mut self, now: Nanos) -> bool {
        let more = now.saturating_sub(self.since) / Self::EACH;
        self.since += more * Self::EACH;
        self.left = self.left.saturating_add(more).min(Self::MAX);
        let some = self.left > 0;
        self.left -= u64::from(some);
        some
    }
}

impl Dtls {
    /// Passes the first ClientHello to the engine. Returns whether the engine answered; a rejected
    /// ClientHello leaves no state.
    pub(super) fn accept(&mut self, now: Nanos, hello: Message) -> Result<bool, Closed> {
        if !self.budget.take(now) {
            return Ok(false);
        }
        if self.answers(now, &hello)? {
            self.handshake.begin(hello);
            return Ok(true);
        }
        self.inner = self.engines.plain(now);
        self.deadline = None;
        Ok(false)
    }

    /// Passes a ClientHello to the engine. Returns whether it answers with a ServerHello, which
    /// must then be sent.
    fn answers(&mut self, now: Nanos, hello: &Message) -> Result<bool, Closed> {
        let bytes = self.handshake.encode(&hello.piece());
        if self
            .inner
            .handle_timeout(self.engines.instant(now))
            .is_err()
            || self.inner.handle_packet(&bytes).is_err()
        {
            return Ok(false);
        }
        let Some(Output::Datagram(answer)) = self.poll_engine()? else {
            return Ok(false);
        };
        let is_hello = kind_of(&answer) == Some(message::SERVER_HELLO);
        if is_hello {
            self.ahead.push_back(Output::Datagram(answer));
        }
        Ok(is_hello)
    }

    /// Handles a second ClientHello before the peer's certificate has arrived. Returns whether a
    /// cookie was requested.
    pub(super) fn ask_for_cookie(&mut self, now: Nanos, hello: &Message) -> bool {
        let plain = without_cookie(&hello.body).is_some_and(|(_, cookie)| !cookie);
        if !plain || !self.budget.take(now) {
            return false;
        }
        let asked = self.request_of(now, hello).map(|(_, request)| request);
        let Some(request) = asked else {
            return false;
        };
        let request = record::renumbered(&request, &mut self.sent);
        self.ahead.push_back(Output::Datagram(request));
        true
    }

    /// Creates an engine that requests a cookie for `hello`; returns it with its
    /// HelloVerifyRequest.
    fn request_of(&self, now: Nanos, hello: &Message) -> Option<(dimpl::Dtls, Bytes)> {
        let mut engine = self.engines.of(&self.engines.with_cookie, now);
        engine.handle_timeout(self.engines.instant(now)).ok()?;
        let bytes = record::encode(&hello.piece(), 0);
        engine.handle_packet(&bytes).ok()?;
        let mut buffer = vec![0; MAX_DATAGRAM];
        let mut request = None;
        while let dimpl::Output::Packet(bytes) = engine.poll_output(&mut buffer) {
            request.get_or_insert_with(|| Bytes::copy_from_slice(bytes));
        }
        let request = request?;
        (kind_of(&request) == Some(message::HELLO_VERIFY_REQUEST)).then_some((engine, request))
    }

    /// Handles a ClientHello with a cookie. If the cookie is valid, its sender sees the traffic,
    /// and all previous handshake state is discarded.
    pub(super) fn admit(&mut self, now: Nanos, hello: Message) -> Result<bool, Closed> {
        let Some((body, true)) = without_cookie(&hello.body) else {
            return Ok(false);
        };
        if !self.budget.take(now) {
            return Ok(false);
        }
        let Some((engine, _)) = self.request_of(now, &Message::whole(0, body)) else {
            return Ok(false);
        };
        let before = std::mem::replace(&mut self.inner, engine);
        let deadline = self.deadline;
        if self.answers(now, &hello)? {
            self.handshake = Handshake::new(DtlsRole::Server);
            self.handshake.begin(hello);
            return Ok(true);
        }
        self.inner = before;
        self.deadline = deadline;
        Ok(false)
    }
}

impl Handshake {
    /// Records the ClientHello that the engine has answered.
    fn begin(&mut self, hello: Message) {
        self.stage = Stage::Flight;
        self.flight = Flight::new(false, hello.number + 1);
        self.repeats = vec![hello];
    }
}

/// Type of the handshake message at the start of a datagram.
fn kind_of(datagram: &[u8]) -> Option<u8> {
    let record = record::records(datagram).next()??;
    let handshake = record.kind == record::kind::HANDSHAKE && record.epoch == 0;
    record.fragment.first().copied().filter(|_| handshake)
}
