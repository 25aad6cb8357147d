//! Reassembly of the peer's handshake messages outside the engine, because they are unencrypted and
//! any host may have sent them.
//!
//! Each message has a slot, selected by its sequence number. A fragment that fits its slot is
//! accepted, and replaces contradicting data, so that a retransmission by the peer overrides
//! earlier forged data. The engine gets a flight when it is complete.

use std::ops::Range;

use super::record::{HandshakeFragment, number_of_3};

/// Maximum number of gaps in a message. A message whose fragments arrive in order has only one.
const MAX_GAPS: usize = 16;

/// Types of handshake messages (RFC 5246 §7.4).
pub(super) mod message {
    pub(crate) const CLIENT_HELLO: u8 = 1;
    pub(crate) const SERVER_HELLO: u8 = 2;
    pub(crate) const HELLO_VERIFY_REQUEST: u8 = 3;
    pub(crate) const CERTIFICATE: u8 = 11;
    pub(crate) const SERVER_KEY_EXCHANGE: u8 = 12;
    pub(crate) const CERTIFICATE_REQUEST: u8 = 13;
    pub(crate) const SERVER_HELLO_DONE: u8 = 14;
    pub(crate) const CERTIFICATE_VERIFY: u8 = 15;
    pub(crate) const CLIENT_KEY_EXCHANGE: u8 = 16;
}

/// A partially received message.
#[derive(Debug)]
pub(super) struct Message {
    pub kind: u8,
    pub number: u16,
    pub body: Vec<u8>,
    gaps: Vec<Range<usize>>,
}

impl Message {
    fn of(piece: &HandshakeFragment<'_>) -> Self {
        Self {
            kind: piece.kind,
            number: piece.number,
            body: vec![0; piece.length],
            gaps: std::iter::once(0..piece.length)
                .filter(|gap| !gap.is_empty())
                .collect(),
        }
    }

    /// A complete ClientHello.
    pub(super) fn whole(number: u16, body: Vec<u8>) -> Self {
        Self {
            kind: message::CLIENT_HELLO,
            number,
            body,
            gaps: Vec::new(),
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The message as a single fragment.
    pub(super) fn piece(&self) -> HandshakeFragment<'_> {
        HandshakeFragment {
            kind: self.kind,
            number: self.number,
            length: self.body.len(),
            offset: 0,
            bytes: &self.body,
        }
    }

    /// Whether the fragment matches the start of this message.
    pub(super) fn begins_with(&self, piece: &HandshakeFragment<'_>) -> bool {
        (piece.kind, piece.number, piece.length, piece.offset)
            == (self.kind, self.number, self.body.len(), 0)
            && self.body.starts_with(piece.bytes)
    }

    fn take(&mut self, piece: &HandshakeFragment<'_>) {
        let filled = piece.offset..piece.offset + piece.bytes.len();
        self.body[filled.clone()].copy_from_slice(piece.bytes);
        let around = |gap: Range<usize>| {
            let before = gap.start..gap.end.min(filled.start);
            let after = gap.start.max(filled.end)..gap.end;
            [before, after].into_iter().filter(|it| !it.is_empty())
        };
        self.gaps = std::mem::take(&mut self.gaps)
            .into_iter()
            .flat_map(around)
            .collect();
    }
}

/// Adds a fragment to its slot; returns whether the message is complete.
pub(super) fn put(place: &mut Option<Message>, piece: &HandshakeFragment<'_>) -> bool {
    let same = |it: &Message| {
        let fits = (it.kind, it.number, it.body.len()) == (piece.kind, piece.number, piece.length);
        fits && it.gaps.len() < MAX_GAPS
    };
    let message = match place {
        Some(message) if same(message) => message,
        place => place.insert(Message::of(piece)),
    };
    message.take(piece);
    message.is_whole()
}

/// Messages of a flight of the peer, in order.
#[derive(Debug)]
pub(super) struct Flight {
    /// Sequence number of the first message.
    pub first: u16,
    server: bool,
    places: [Option<Message>; 5],
}

impl Flight {
    /// Creates a flight of a server or a client.
    pub(super) fn new(server: bool, first: u16) -> Self {
        Self {
            first,
            server,
            places: Default::default(),
        }
    }

    /// Whether the peer is a server.
    pub(super) fn is_server(&self) -> bool {
        self.server
    }

    /// Message types allowed in a slot.
    fn kinds(&self, place: usize) -> &'static [u8] {
        use message::*;
        let client: &[&[u8]] = &[
            &[CERTIFICATE],
            &[CLIENT_KEY_EXCHANGE],
            &[CERTIFICATE_VERIFY],
        ];
        let server: &[&[u8]] = &[
            &[SERVER_HELLO],
            &[CERTIFICATE],
            &[SERVER_KEY_EXCHANGE],
            &[CERTIFICATE_REQUEST, SERVER_HELLO_DONE],
            &[SERVER_HELLO_DONE],
        ];
        let kinds = if self.server { server } else { client };
        kinds.get(place).copied().unwrap_or_default()
    }

    /// Adds a fragment. A complete certificate must match `trusted`; otherwise it is dropped.
    ///
    /// # Errors
    /// Describes the fault.
    pub(super) fn take(
        &mut self,
        piece: &HandshakeFragment<'_>,
        trusted: impl FnOnce(&[u8]) -> bool,
    ) -> Result<(), RejectedFragment> {
        let place = usize::from(
            piece
                .number
                .checked_sub(self.first)
                .ok_or(RejectedFragment::Unexpected)?,
        );
        if !self.kinds(place).contains(&piece.kind) {
            return Err(RejectedFragment::Unexpected);
        }
        let place = &mut self.places[place];
        let whole = put(place, piece);
        if whole
            && piece.kind == message::CERTIFICATE
            && !place.as_ref().is_some_and(|it| trusted(&it.body))
        {
            *place = None;
            return Err(RejectedFragment::Certificate);
        }
        Ok(())
    }

    /// Number of messages in the flight, if it is complete.
    fn whole(&self) -> Option<usize> {
        let whole = self
            .places
            .iter()
            .map_while(|it| it.as_ref().filter(|it| it.is_whole()));
        let count = whole.count();
        let is_last = |place: &Option<Message>| {
            let last = if self.server {
                message::SERVER_HELLO_DONE
            } else {
                message::CERTIFICATE_VERIFY
            };
            place.as_ref().is_some_and(|it| it.kind == last)
        };
        // A flight with a CertificateRequest has one more message.
        let end = self.places[..count].iter().position(is_last)?;
        Some(end + 1)
    }

    /// The flight, once complete.
    pub(super) fn finish(&mut self) -> Option<Vec<Message>> {
        let count = self.whole()?;
        let places = std::mem::take(&mut self.places);
        Some(places.into_iter().flatten().take(count).collect())
    }
}

/// Reasons for which a fragment is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RejectedFragment {
    /// The fragment does not belong to an expected message.
    Unexpected,
    /// The certificate does not match the offer.
    Certificate,
}

/// The first certificate of a Certificate message (RFC 5246 §7.4.2).
pub(super) fn first_certificate(body: &[u8]) -> Option<&[u8]> {
    let (header, rest) = body.split_at_checked(6)?;
    rest.get(..number_of_3(&header[3..]))
}

/// A ClientHello without its cookie, and whether it had one (RFC 6347 §4.2.1).
pub(super) fn without_cookie(body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let session = 2 + 32;
    let cookie = session + 1 + usize::from(*body.get(session)?);
    let length = usize::from(*body.get(cookie)?);
    let rest = body.get(cookie + 1 + length..)?;
    let mut plain = body[..cookie].to_vec();
    plain.push(0);
    plain.extend(rest);
    Some((plain, length > 0))
}
