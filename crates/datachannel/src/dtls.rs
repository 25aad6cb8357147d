//! DTLS 1.2 (RFC 8261, RFC 6347), implemented with the sans-I/O crate `dimpl`.
//!
//! Until a handshake is complete, any host that spoofs the peer's address can send handshake
//! messages, and `dimpl` buffers records that it cannot use yet until its buffer is full. Therefore
//! the engine (`dimpl`) only gets records that it can use immediately: [`handshake`] parses all
//! records first.

mod cookie_exchange;
mod flight;
mod handshake;
mod record;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Instant;

use anabranch_transport::Nanos;
use bytes::Bytes;

use crate::channels::DtlsRole;
use crate::close::Closed;
use crate::discard::DiscardCounts;
use crate::fingerprint::Fingerprint;
use crate::identity::Identity;
use cookie_exchange::{EngineBudget, EngineFactory};
use handshake::{Handshake, Stage};

/// Overhead of a record, bytes: header, explicit nonce and tag (AES-GCM).
pub(crate) const OVERHEAD: usize = 13 + 8 + 16;
/// Maximum size of sent datagrams, bytes: including IP and UDP headers they fit the minimum MTU of
/// IPv6.
pub(crate) const MAX_DATAGRAM: usize = 1_200;

/// Output of DTLS.
#[derive(Debug)]
pub(crate) enum Output {
    /// A datagram for the peer.
    Datagram(Bytes),
    /// Data from the peer.
    Data(Bytes),
    /// The handshake is complete, and the peer's certificate matches its offer.
    Connected,
    /// The peer closed the connection.
    Closed,
}

/// One end of a DTLS connection.
pub(crate) struct Dtls {
    inner: dimpl::Dtls,
    engines: EngineFactory,
    budget: EngineBudget,
    handshake: Handshake,
    expected: Fingerprint,
    /// True after the peer has presented the expected certificate.
    shown: bool,
    deadline: Option<Nanos>,
    buffer: Vec<u8>,
    /// Output that was already taken from the engine and should be returned before its next output.
    ahead: VecDeque<Output>,
    /// Number of unencrypted records that were sent.
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
    /// Creates one end. Time 0 is the instant `origin`, and `now` is the current time. `seed`
    /// contains secret random bytes for the cookies of a server.
    pub(crate) fn new(
        (origin, now): (Instant, Nanos),
        identity: &Identity,
        role: DtlsRole,
        expected: Fingerprint,
        seed: u64,
    ) -> Result<Self, Closed> {
        let engines = EngineFactory::new(origin, identity, role, seed)?;
        Ok(Self {
            inner: engines.plain(now),
            engines,
            budget: EngineBudget::new(now),
            handshake: Handshake::new(role),
            expected,
            shown: false,
            deadline: None,
            buffer: vec![0; 2_048],
            ahead: VecDeque::new(),
            sent: 0,
        })
    }

    /// Advances the time. The first call starts the handshake of a client.
    pub(crate) fn handle_timeout(&mut self, now: Nanos) -> Result<(), Closed> {
        let at = self.engines.instant(now);
        self.inner
            .handle_timeout(at)
            .map_err(|error| self.ended(error))?;
        self.answer_verify_request(now)
    }

    /// Processes a datagram. Returns whether any of its records was useful; the others are counted
    /// as discarded.
    pub(crate) fn handle_datagram(
        &mut self,
        now: Nanos,
        datagram: &[u8],
        discards: &mut DiscardCounts,
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

    /// Passes input to the engine.
    fn give(&mut self, now: Nanos, bytes: &[u8]) -> Result<(), Closed> {
        self.handle_timeout(now)?;
        self.inner
            .handle_packet(bytes)
            .map_err(|error| self.ended(error))
    }

    /// Converts an error of the engine to the reason for the end of the connection.
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

    /// Encrypts and sends an SCTP packet. The output must be polled before the next packet is sent.
    pub(crate) fn send(&mut self, packet: &[u8]) -> Result<(), Closed> {
        self.inner
            .send_application_data(packet)
            .map(|_| ())
            .map_err(failed)
    }

    /// Sends close_notify.
    pub(crate) fn close(&mut self) {
        // Fails if the connection is already closed.
        let _ = self.inner.close();
    }

    /// The next output. Must be called until it returns `None`.
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
                // The peer has presented no certificate.
                dimpl::Output::Connected => return Err(Closed::Fingerprint),
                dimpl::Output::CloseNotify => return Ok(Some(Output::Closed)),
                dimpl::Output::Timeout(at) => {
                    self.deadline = self.engines.time(at);
                    return Ok(None);
                }
                // Ignored: SRTP keys, because there is no media, and data that arrived before the
                // certificate.
                _ => {}
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Nanos> {
        let verify = self.handshake.verify_request_due();
        [self.deadline, verify].into_iter().flatten().min()
    }
}

/// Whether the datagram consists only of encrypted records.
fn is_protected(datagram: &[u8]) -> bool {
    record::records(datagram).all(|record| record.is_some_and(|it| it.epoch == 1))
}
