//! Engines of DTLS, and the door at which a second ClientHello is asked for a cookie (RFC 6347 §4.2.1).
//!
//! Who forges the peer's address can be the first to say hello. The peer's own hello then is the second. It is asked for a cookie, which
//! only who sees the traffic can send back, and takes the place of the first with it. Nothing is kept of who was asked: engines of
//! one seed have one secret, so that the cookie of one is good for another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::flight::{Flight, Message, message, without_cookie};
use super::handshake::{Handshake, Stage};
use super::{Dtls, MAX_DATAGRAM, Output, failed, record};
use crate::channels::Role;
use crate::close::Closed;
use crate::identity::Identity;

/// What makes engines.
pub(super) struct Engines {
    /// The instant of time 0.
    origin: Instant,
    role: Role,
    certificate: dimpl::DtlsCertificate,
    plain: Arc<dimpl::Config>,
    /// Asks for cookies.
    asking: Arc<dimpl::Config>,
}

impl Engines {
    pub(super) fn new(
        origin: Instant,
        identity: &Identity,
        role: Role,
        seed: u64,
    ) -> Result<Self, Closed> {
        let config = || dimpl::Config::builder().mtu(MAX_DATAGRAM);
        // ICE has shown already that the peer is where it says.
        let plain = config().use_server_cookie(false).build().map_err(failed)?;
        // The seed is for what is no key: randoms, nonces, the secret of cookies. Keys come of the system, so that no nonce serves a
        // key twice.
        let asking = config()
            .use_server_cookie(true)
            .dangerously_set_rng_seed(seed)
            .build()
            .map_err(failed)?;
        Ok(Self {
            origin,
            role,
            certificate: identity.certificate.clone(),
            plain: Arc::new(plain),
            asking: Arc::new(asking),
        })
    }

    fn of(&self, config: &Arc<dimpl::Config>, now: Nanos) -> dimpl::Dtls {
        let (config, certificate) = (Arc::clone(config), self.certificate.clone());
        let mut engine = dimpl::Dtls::new_12(config, certificate, self.instant(now));
        engine.set_active(self.role == Role::Client);
        engine
    }

    /// One that asks for no cookie.
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

/// How many engines may be made: each costs a little, and a forger is not to choose how many.
#[derive(Debug)]
pub(super) struct Budget {
    left: u64,
    since: Nanos,
}

impl Budget {
    const MOST: u64 = 16;
    const EACH: Nanos = 10 * MILLISECOND;

    pub(super) fn new(now: Nanos) -> Self {
        Self {
            left: Self::MOST,
            since: now,
        }
    }

    fn take(&mut self, now: Nanos) -> bool {
        let more = now.saturating_sub(self.since) / Self::EACH;
        self.since += more * Self::EACH;
        self.left = self.left.saturating_add(more).min(Self::MOST);
        let some = self.left > 0;
        self.left -= u64::from(some);
        some
    }
}

impl Dtls {
    /// The first ClientHello, which the engine answers. Whether it did: one that it does not take leaves nothing behind.
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

    /// Gives the engine a ClientHello; whether it answers by a ServerHello, which then is to be sent.
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

    /// A second ClientHello, while the peer's certificate has not come. Whether it was asked for a cookie.
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

    /// An engine that has asked `hello` for a cookie, and its HelloVerifyRequest.
    fn request_of(&self, now: Nanos, hello: &Message) -> Option<(dimpl::Dtls, Bytes)> {
        let mut engine = self.engines.of(&self.engines.asking, now);
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

    /// A ClientHello with a cookie. If that is right, its sender sees the traffic, and all that was before is forgotten.
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
            self.handshake = Handshake::new(Role::Server);
            self.handshake.begin(hello);
            return Ok(true);
        }
        self.inner = before;
        self.deadline = deadline;
        Ok(false)
    }
}

impl Handshake {
    /// The engine has answered this hello.
    fn begin(&mut self, hello: Message) {
        self.stage = Stage::Flight;
        self.flight = Flight::new(false, hello.number + 1);
        self.repeats = vec![hello];
    }
}

/// What handshake message a datagram begins with.
fn kind_of(datagram: &[u8]) -> Option<u8> {
    let record = record::records(datagram).next()??;
    let handshake = record.kind == record::kind::HANDSHAKE && record.epoch == 0;
    record.fragment.first().copied().filter(|_| handshake)
}
