//! Filter for the peer's records until the handshake is complete: the engine gets complete flights
//! in order, and encrypted records once it has their keys. All other records are discarded and
//! counted (RFC 6347 §4.1.2.7).

use std::collections::VecDeque;

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;

use super::Dtls;
use super::flight::{Flight, Message, RejectedFragment, first_certificate, message, put};
use super::record::{self, HandshakeFragment, Record, kind};
use crate::channels::DtlsRole;
use crate::close::Closed;
use crate::discard::{DiscardCounts, DiscardReason};
use crate::fingerprint::Fingerprint;

/// Maximum number of encrypted records that are buffered until keys are available: a Finished and
/// the data sent right after it.
const MAX_HELD: usize = 8;
/// Maximum size of a buffered record, bytes.
const MAX_HELD_LENGTH: usize = 2 << 10;
/// Minimum size of an encrypted record, bytes: a tag and one more byte.
const MIN_PROTECTED: usize = 17;
/// Time for which a client waits for a ServerHello before it accepts a HelloVerifyRequest. Longer
/// than most round-trip times, because any host can send a HelloVerifyRequest, and accepting it
/// ends the handshake with a server that has sent none.
const VERIFY_WAIT: Nanos = 500 * MILLISECOND;

/// Progress of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A server waits for a ClientHello.
    Hello,
    /// Waiting for the flight with the peer's certificate.
    Flight,
    /// Waiting for the peer's ChangeCipherSpec.
    Change,
    /// Waiting for the peer's Finished.
    Finished,
    /// The handshake is complete.
    Done,
}

/// State of the handshake: input from the peer that the engine has not received yet.
#[derive(Debug)]
pub(super) struct Handshake {
    pub(super) stage: Stage,
    /// ClientHellos without and with a cookie.
    hellos: [Option<Message>; 2],
    pub(super) flight: Flight,
    /// A HelloVerifyRequest, and the time at which it is accepted.
    verify: Option<Message>,
    verify_due: Option<Nanos>,
    /// Messages that the engine has received. If the peer retransmits them, it has not received the
    /// engine's response.
    pub(super) repeats: Vec<Message>,
    /// True after the ChangeCipherSpec was received.
    change: bool,
    held: VecDeque<Bytes>,
    /// True if a certificate that does not match the offer was received.
    pub(super) foreign: bool,
    /// The last unencrypted alert.
    pub(super) alert: Option<u8>,
    /// Number of records that were passed to the engine.
    given: u64,
}

impl Handshake {
    pub(super) fn new(role: DtlsRole) -> Self {
        let client = role == DtlsRole::Client;
        Self {
            stage: if client { Stage::Flight } else { Stage::Hello },
            hellos: Default::default(),
            flight: Flight::new(client, 0),
            verify: None,
            verify_due: None,
            repeats: Vec::new(),
            change: false,
            held: VecDeque::new(),
            foreign: false,
            alert: None,
            given: 0,
        }
    }

    /// Marks the handshake as complete and drops all messages that are still buffered, which any
    /// host may have sent. `repeats` is kept, so that a retransmitted flight of the peer is still
    /// answered.
    pub(super) fn finish(&mut self) {
        let repeats = std::mem::take(&mut self.repeats);
        *self = Self {
            stage: Stage::Done,
            repeats,
            given: self.given,
            ..Self::new(DtlsRole::Server)
        };
    }

    /// Encodes the fragment as a record for the engine.
    pub(super) fn encode(&mut self, piece: &HandshakeFragment<'_>) -> Vec<u8> {
        self.given += 1;
        record::encode(piece, self.given)
    }

    /// Time at which a received HelloVerifyRequest is accepted.
    pub(super) fn verify_request_due(&self) -> Option<Nanos> {
        self.verify_due
    }

    fn take_piece(
        &mut self,
        now: Nanos,
        piece: &HandshakeFragment<'_>,
        expected: Fingerprint,
    ) -> Result<(), DiscardReason> {
        let server = matches!(self.stage, Stage::Hello | Stage::Flight) && !self.flight.is_server();
        let hello = server && piece.kind == message::CLIENT_HELLO;
        let verify = self.flight.is_server() && piece.kind == message::HELLO_VERIFY_REQUEST;
        match (self.stage, piece.number) {
            (Stage::Hello, 0) | (Stage::Flight, 0 | 1) if hello => {
                put(&mut self.hellos[usize::from(piece.number)], piece);
                Ok(())
            }
            (Stage::Flight, 0) if verify && self.flight.first == 0 => {
                if put(&mut self.verify, piece) && self.verify_due.is_none() {
                    self.verify_due = Some(now.saturating_add(VERIFY_WAIT));
                }
                Ok(())
            }
            (Stage::Flight, _) => {
                let trusted = |body: &[u8]| {
                    first_certificate(body).is_some_and(|it| Fingerprint::of(it) == expected)
                };
                self.flight.take(piece, trusted).map_err(|why| match why {
                    RejectedFragment::Unexpected => DiscardReason::DtlsMessage,
                    RejectedFragment::Certificate => {
                        self.foreign = true;
                        DiscardReason::DtlsCertificate
                    }
                })
            }
            _ => Err(DiscardReason::DtlsMessage),
        }
    }

    /// Buffers an encrypted record until keys are available; drops the oldest one if there are too
    /// many.
    fn hold(&mut self, record: Record<'_>) -> Result<(), DiscardReason> {
        if record.whole.len() > MAX_HELD_LENGTH {
            return Err(DiscardReason::DtlsEarly);
        }
        let full = self.held.len() >= MAX_HELD;
        if full {
            self.held.pop_front();
        }
        self.held.push_back(Bytes::copy_from_slice(record.whole));
        if full {
            return Err(DiscardReason::DtlsEarly);
        }
        Ok(())
    }
}

impl Dtls {
    /// Processes a record. Returns whether the engine received input. `None` is a record that
    /// cannot be decoded.
    pub(super) fn take(
        &mut self,
        now: Nanos,
        record: Option<Record<'_>>,
        discards: &mut DiscardCounts,
    ) -> Result<bool, Closed> {
        let done = self.handshake.stage == Stage::Done;
        let Some(record) = record else {
            discards.count(DiscardReason::DtlsRecord);
            return Ok(false);
        };
        match (record.kind, record.epoch) {
            (kind::HANDSHAKE, 0) => return self.take_pieces(now, record.fragment, discards),
            (kind::CHANGE_CIPHER_SPEC, 0) if record.fragment == [1] && !done => {
                self.handshake.change = true;
            }
            // An unencrypted alert may come from any host, so it is only stored, and reported if
            // the handshake times out.
            (kind::ALERT, 0) => {
                if let &[_, description] = record.fragment {
                    self.handshake.alert = Some(description);
                }
                discards.count(DiscardReason::DtlsAlert);
            }
            (kind::ALERT..=kind::DATA, 1) if record.fragment.len() >= MIN_PROTECTED => {
                return self.take_protected(now, record, discards);
            }
            _ => discards.count(DiscardReason::DtlsRecord),
        }
        Ok(false)
    }

    fn take_pieces(
        &mut self,
        now: Nanos,
        fragment: &[u8],
        discards: &mut DiscardCounts,
    ) -> Result<bool, Closed> {
        let mut moved = false;
        if fragment.is_empty() {
            discards.count(DiscardReason::DtlsRecord);
        }
        for piece in record::pieces(fragment) {
            let Some(piece) = piece else {
                discards.count(DiscardReason::DtlsRecord);
                continue;
            };
            // The peer has retransmitted its flight, so the engine retransmits its response, at a
            // limited rate.
            if self
                .handshake
                .repeats
                .iter()
                .any(|it| it.begins_with(&piece))
            {
                let bytes = self.handshake.encode(&piece);
                self.give(now, &bytes)?;
                moved = true;
            } else if let Err(reason) = self.handshake.take_piece(now, &piece, self.expected) {
                discards.count(reason);
            }
        }
        Ok(moved)
    }

    fn take_protected(
        &mut self,
        now: Nanos,
        record: Record<'_>,
        discards: &mut DiscardCounts,
    ) -> Result<bool, Closed> {
        match self.handshake.stage {
            Stage::Done => self.give(now, record.whole).map(|()| true),
            // Data is not passed to the engine before the Finished, because the engine would buffer
            // it until its buffer is full.
            Stage::Finished if record.kind != kind::DATA => {
                self.give_protected(now, record.whole, discards)
            }
            _ => {
                if let Err(reason) = self.handshake.hold(record) {
                    discards.count(reason);
                }
                Ok(false)
            }
        }
    }

    /// Passes to the engine a record that is probably the Finished. If the record is invalid, the
    /// connection should not end.
    fn give_protected(
        &mut self,
        now: Nanos,
        record: &[u8],
        discards: &mut DiscardCounts,
    ) -> Result<bool, Closed> {
        self.handle_timeout(now)?;
        match self.inner.handle_packet(record) {
            Ok(()) => Ok(true),
            // A record that cannot be decrypted changes no state of the engine.
            Err(dimpl::Error::CryptoError(_)) => {
                discards.count(DiscardReason::DtlsRecord);
                Ok(false)
            }
            Err(error) => Err(self.ended(error)),
        }
    }

    /// Passes complete input to the engine. Returns whether there was any. Must be called after all
    /// records of a datagram were processed, so that a flight in one datagram is accepted even
    /// after forged records.
    pub(super) fn advance(
        &mut self,
        now: Nanos,
        discards: &mut DiscardCounts,
    ) -> Result<bool, Closed> {
        let mut moved = self.advance_hellos(now, discards)?;
        if self.handshake.stage == Stage::Flight
            && let Some(flight) = self.handshake.flight.finish()
        {
            moved = true;
            self.give_flight(now, flight)?;
        }
        if self.handshake.stage == Stage::Change && self.handshake.change {
            moved = true;
            self.handshake.given += 1;
            let change =
                record::encode_record(kind::CHANGE_CIPHER_SPEC, &[1], self.handshake.given);
            self.give(now, &change)?;
            self.handshake.stage = Stage::Finished;
            for record in std::mem::take(&mut self.handshake.held) {
                if record.first() == Some(&kind::DATA) {
                    self.handshake.held.push_back(record);
                } else {
                    self.give_protected(now, &record, discards)?;
                }
            }
        }
        Ok(moved)
    }

    fn advance_hellos(&mut self, now: Nanos, discards: &mut DiscardCounts) -> Result<bool, Closed> {
        let mut moved = false;
        for place in 0..2 {
            let place = &mut self.handshake.hellos[place];
            let Some(hello) = place.take_if(|it| it.is_whole()) else {
                continue;
            };
            let taken = match (self.handshake.stage, hello.number) {
                (Stage::Hello, _) => self.accept(now, hello)?,
                (_, 0) => self.ask_for_cookie(now, &hello),
                _ => self.admit(now, hello)?,
            };
            if !taken {
                discards.count(DiscardReason::DtlsHello);
            }
            moved |= taken;
        }
        Ok(moved)
    }

    fn give_flight(&mut self, now: Nanos, flight: Vec<Message>) -> Result<(), Closed> {
        for message in flight {
            let bytes = self.handshake.encode(&message.piece());
            self.give(now, &bytes)?;
            if matches!(
                message.kind,
                message::SERVER_HELLO_DONE | message::CLIENT_KEY_EXCHANGE
            ) {
                self.handshake.repeats.push(message);
            }
        }
        self.handshake.stage = Stage::Change;
        self.handshake.verify_due = None;
        Ok(())
    }

    /// Accepts the received HelloVerifyRequest if the client has got no ServerHello in time.
    pub(super) fn answer_verify_request(&mut self, now: Nanos) -> Result<(), Closed> {
        if self.handshake.verify_due.is_none_or(|due| now < due) {
            return Ok(());
        }
        self.handshake.verify_due = None;
        let Some(request) = self.handshake.verify.take().filter(Message::is_whole) else {
            return Ok(());
        };
        let bytes = self.handshake.encode(&request.piece());
        self.handshake.flight = Flight::new(true, 1);
        self.inner
            .handle_packet(&bytes)
            .map_err(|error| self.ended(error))
    }

    /// Passes buffered data to the engine, after the handshake is complete.
    pub(super) fn give_held_data(&mut self) -> Result<(), Closed> {
        for record in std::mem::take(&mut self.handshake.held) {
            self.inner
                .handle_packet(&record)
                .map_err(|error| self.ended(error))?;
        }
        Ok(())
    }
}
