//! DTLS 1.2 (RFC 8261, RFC 6347), by the crate `dimpl`, which does no I/O either.
//!
//! Until a handshake is done, anybody who can write the peer's address can write its messages, and `dimpl` keeps what it cannot use
//! yet until it is full. So it is given nothing here but what it can use at once: [`handshake`] reads all records first.

mod door;
mod flight;
mod handshake;
mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::channels::Role;
use crate::close::Closed;
use crate::discard::Discards;
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use door::{Budget, Engines};
use handshake::{Handshake, Stage};

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
    engines: Engines,
    budget: Budget,
    handshake: Handshake,
    expected: Fingerprint,
    /// The peer showed the certificate that is expected.
    shown: bool,
    deadline: Option<Nanos>,
    buffer: Vec<u8>,
    /// What was asked of the engine already, and is to be given before what it gives next.
    ahead: VecDeque<Output>,
    /// Plain records that were sent.
    sent: u64,
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
    /// One end, at the instant `origin` and `now` after it. `seed`: secret and random, for the cookies of a server.
    pub(crate) fn new(
        (origin, now): (Instant, Nanos),
        identity: &Identity,
        role: Role,
        expected: Fingerprint,
        seed: u64,
    ) -> Result<Self, Closed> {
        let engines = Engines::new(origin, identity, role, seed)?;
        Ok(Self {
            inner: engines.plain(now),
            engines,
            budget: Budget::new(now),
            handshake: Handshake::new(role),
            expected,
            shown: false,
            deadline: None,
            buffer: vec![0; 2_048],
            ahead: VecDeque::new(),
            sent: 0,
        })
    }

    /// Tells the time, which begins the handshake of a client.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) -> Result<(), Closed> {
        let at = self.engines.instant(now);
        self.inner
            .handle_timeout(at)
            .map_err(|error| self.ended(error))?;
        self.answer_verify_request(now)
    }

    /// Takes a datagram; whether anything of it is of use. What is not, is counted.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Nanos,
        datagram: &[u8],
        discards: &mut Discards,
    ) -> Result<bool, Closed> {
        if self.handshake.stage == Stage::Done && is_protected(datagram) {
            self.give(now, datagram)?;
            return Ok(true);
        }
        let mut moved = false;
        for record in record::records(datagram) {
            moved |= self.take(now, record, discards)?;
        }
        Ok(self.advance(now, discards)? || moved)
    }

    /// Gives the engine something.
    fn give(&mut self, now: Nanos, bytes: &[u8]) -> Result<(), Closed> {
        self.handle_timeout(now)?;
        self.inner
            .handle_packet(bytes)
            .map_err(|error| self.ended(error))
    }

    /// Why the connection ends, if it is by this error of the engine.
    fn ended(&self, error: dimpl::Error) -> Closed {
        match (self.handshake.stage, self.handshake.alert) {
            (Stage::Done, _) => failed(error),
            _ if self.handshake.foreign => Closed::Fingerprint,
            (_, Some(alert)) => Closed::Dtls(format!(
                "{error}; an alert without protection came: {alert}"
            )),
            _ => failed(error),
        }
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
        match self.ahead.pop_front() {
            None => self.poll_engine(),
            some => Ok(some),
        }
    }

    fn poll_engine(&mut self) -> Result<Option<Output>, Closed> {
        loop {
            match self.inner.poll_output(&mut self.buffer) {
                dimpl::Output::Packet(bytes) => {
                    let datagram = record::renumbered(bytes, &mut self.sent);
                    return Ok(Some(Output::Datagram(datagram)));
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
                dimpl::Output::Connected if self.shown => {
                    self.give_held_data()?;
                    self.handshake.finish();
                    return Ok(Some(Output::Connected));
                }
                // A peer without a certificate.
                dimpl::Output::Connected => return Err(Closed::Fingerprint),
                dimpl::Output::CloseNotify => return Ok(Some(Output::Closed)),
                dimpl::Output::Timeout(at) => {
                    self.deadline = self.engines.time(at);
                    return Ok(None);
                }
                // Keys of SRTP: there is no media. Data before the certificate: none is taken.
                _ => {}
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let verify = self.handshake.verify_request_due();
        [self.deadline, verify].into_iter().flatten().min()
    }
}

/// Whether the datagram has protected records alone.
fn is_protected(datagram: &[u8]) -> bool {
    record::records(datagram).all(|record| record.is_some_and(|it| it.epoch == 1))
}
