//! Parameters of RE-CONFIG (RFC 6525 §4).

use bytes::{Buf, Bytes, BytesMut};

use crate::encode::{Encode, padded, put_padding, tlv_header};
use crate::parameter::{exactly, kind};
use crate::serial::Tsn;
use crate::tlv::{HEADER, Tlv, TlvError, TlvItem, U16List};

/// Result of a request (RFC 6525 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReConfigResult {
    /// The request was successful, because nothing had to be changed.
    NothingToDo,
    /// The request was performed.
    Performed,
    /// The request was denied.
    Denied,
    /// A stream number is invalid ("Error - Wrong SSN").
    WrongSsn,
    /// The peer has not completed another request yet.
    AlreadyInProgress,
    /// The sequence number of the request is not the expected one.
    BadSequenceNumber,
    /// The request is in progress, and its sender should retransmit it.
    InProgress,
    /// A result whose number is not known.
    Unknown(u32),
}

impl ReConfigResult {
    const KNOWN: [Self; 7] = [
        Self::NothingToDo,
        Self::Performed,
        Self::Denied,
        Self::WrongSsn,
        Self::AlreadyInProgress,
        Self::BadSequenceNumber,
        Self::InProgress,
    ];

    /// Number of the result.
    pub const fn number(self) -> u32 {
        match self {
            Self::NothingToDo => 0,
            Self::Performed => 1,
            Self::Denied => 2,
            Self::WrongSsn => 3,
            Self::AlreadyInProgress => 4,
            Self::BadSequenceNumber => 5,
            Self::InProgress => 6,
            Self::Unknown(number) => number,
        }
    }

    /// Result with this number.
    pub fn of(number: u32) -> Self {
        let known = Self::KNOWN.get(number as usize).copied();
        known.unwrap_or(Self::Unknown(number))
    }
}

/// A parameter of a RE-CONFIG. `request` is the request sequence number, which increases with each
/// request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReConfigParameter {
    /// The sender resets its outgoing streams (RFC 6525 §4.1).
    OutgoingSsnReset {
        /// Request sequence number.
        request: u32,
        /// If this request answers an Incoming SSN Reset Request: the sequence number of that
        /// request. Otherwise one less than the next request number that is expected.
        response: u32,
        /// Last TSN that the sender has assigned.
        last_tsn: Tsn,
        /// Stream identifiers; an empty list stands for all streams.
        streams: U16List,
    },
    /// The sender requests a reset of the outgoing streams of the receiver (RFC 6525 §4.2).
    IncomingSsnReset {
        /// Request sequence number.
        request: u32,
        /// Stream identifiers; an empty list stands for all streams.
        streams: U16List,
    },
    /// The sender requests a reset of all TSNs and SSNs at both ends (RFC 6525 §4.3).
    SsnTsnReset {
        /// Request sequence number.
        request: u32,
    },
    /// Result of a request (RFC 6525 §4.4).
    Response {
        /// Sequence number of the request that is answered.
        response: u32,
        /// Result of the request.
        result: ReConfigResult,
        /// Next TSN of the sender and next TSN of the receiver of this chunk. Only the response to
        /// [`ReConfigParameter::SsnTsnReset`] has them.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// The sender adds outgoing streams (RFC 6525 §4.5).
    AddOutgoingStreams {
        /// Request sequence number.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// The sender requests that the receiver add outgoing streams (RFC 6525 §4.6).
    AddIncomingStreams {
        /// Request sequence number.
        request: u32,
        /// Number of streams to add.
        count: u16,
    },
    /// A parameter whose type is not known.
    Unknown(Tlv),
}

impl ReConfigParameter {
    /// Parameter type.
    pub fn kind(&self) -> u16 {
        match self {
            Self::OutgoingSsnReset { .. } => kind::OUTGOING_SSN_RESET,
            Self::IncomingSsnReset { .. } => kind::INCOMING_SSN_RESET,
            Self::SsnTsnReset { .. } => kind::SSN_TSN_RESET,
            Self::Response { .. } => kind::RE_CONFIG_RESPONSE,
            Self::AddOutgoingStreams { .. } => kind::ADD_OUTGOING_STREAMS,
            Self::AddIncomingStreams { .. } => kind::ADD_INCOMING_STREAMS,
            Self::Unknown(tlv) => tlv.kind,
        }
    }

    fn length(&self) -> usize {
        HEADER
            + match self {
                Self::OutgoingSsnReset { streams, .. } => 12 + streams.as_bytes().len(),
                Self::IncomingSsnReset { streams, .. } => 4 + streams.as_bytes().len(),
                Self::SsnTsnReset { .. } => 4,
                Self::Response {
                    next_tsns: None, ..
                } => 8,
                Self::Response { .. } => 16,
                Self::AddOutgoingStreams { .. } | Self::AddIncomingStreams { .. } => 8,
                Self::Unknown(tlv) => tlv.value().len(),
            }
    }
}

impl Encode for ReConfigParameter {
    fn encoded_len(&self) -> usize {
        padded(self.length())
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = self.length();
        out.extend_from_slice(&tlv_header(self.kind(), length));
        match self {
            Self::OutgoingSsnReset {
                request,
                response,
                last_tsn,
                streams,
            } => {
                put_numbers(&[*request, *response, last_tsn.0], out);
                out.extend_from_slice(streams.as_bytes());
            }
            Self::IncomingSsnReset { request, streams } => {
                put_numbers(&[*request], out);
                out.extend_from_slice(streams.as_bytes());
            }
            Self::SsnTsnReset { request } => put_numbers(&[*request], out),
            Self::Response {
                response,
                result,
                next_tsns,
            } => {
                put_numbers(&[*response, result.number()], out);
                if let Some((sender, receiver)) = next_tsns {
                    put_numbers(&[sender.0, receiver.0], out);
                }
            }
            Self::AddOutgoingStreams { request, count }
            | Self::AddIncomingStreams { request, count } => {
                put_numbers(&[*request, u32::from(*count) << 16], out);
            }
            Self::Unknown(tlv) => out.extend_from_slice(tlv.value()),
        }
        put_padding(out, length);
    }
}

fn put_numbers(numbers: &[u32], out: &mut BytesMut) {
    for number in numbers {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

impl TlvItem for ReConfigParameter {
    fn decode(tlv: Tlv) -> Result<Self, TlvError> {
        let bad = TlvError::BadLength {
            kind: tlv.kind,
            length: tlv.whole().len(),
        };
        Ok(match tlv.kind {
            kind::OUTGOING_SSN_RESET => {
                let mut rest = tlv.into_value();
                Self::OutgoingSsnReset {
                    request: rest.try_get_u32().map_err(|_| bad)?,
                    response: rest.try_get_u32().map_err(|_| bad)?,
                    last_tsn: Tsn(rest.try_get_u32().map_err(|_| bad)?),
                    streams: U16List::from_bytes(rest).ok_or(bad)?,
                }
            }
            kind::INCOMING_SSN_RESET => {
                let mut rest = tlv.into_value();
                Self::IncomingSsnReset {
                    request: rest.try_get_u32().map_err(|_| bad)?,
                    streams: U16List::from_bytes(rest).ok_or(bad)?,
                }
            }
            kind::SSN_TSN_RESET => Self::SsnTsnReset {
                request: u32::from_be_bytes(exactly(&tlv)?),
            },
            kind::RE_CONFIG_RESPONSE => response(tlv.into_value()).ok_or(bad)?,
            kind::ADD_OUTGOING_STREAMS => {
                let (request, count) = addition(&tlv)?;
                Self::AddOutgoingStreams { request, count }
            }
            kind::ADD_INCOMING_STREAMS => {
                let (request, count) = addition(&tlv)?;
                Self::AddIncomingStreams { request, count }
            }
            _ => Self::Unknown(tlv),
        })
    }
}

/// Decodes a response. It must have both TSNs or neither (RFC 6525 §4.4).
fn response(mut rest: Bytes) -> Option<ReConfigParameter> {
    let response = rest.try_get_u32().ok()?;
    let result = ReConfigResult::of(rest.try_get_u32().ok()?);
    let next_tsns = match rest.len() {
        0 => None,
        8 => Some((Tsn(rest.get_u32()), Tsn(rest.get_u32()))),
        _ => return None,
    };
    Some(ReConfigParameter::Response {
        response,
        result,
        next_tsns,
    })
}

/// Sequence number and number of streams in a request to add streams. The two bytes after them are
/// reserved.
fn addition(tlv: &Tlv) -> Result<(u32, u16), TlvError> {
    let [a, b, c, d, high, low, _, _] = exactly(tlv)?;
    let request = u32::from_be_bytes([a, b, c, d]);
    Ok((request, u16::from_be_bytes([high, low])))
}
