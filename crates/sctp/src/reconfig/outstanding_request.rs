//! The outstanding RE-CONFIG chunk with requests (RFC 6525 §5.1.1).

use anabranch_transport::Nanos;
use anabranch_wire::Tsn;
use anabranch_wire::extension::ReConfigParameter;

use super::streams::Streams;
use crate::path::PathId;

/// Type of a request, with its parameters.
#[derive(Clone, Debug)]
pub(crate) enum RequestKind {
    /// Reset of outgoing streams.
    Outgoing {
        streams: Streams,
        /// Number of the peer's request to which this request is the response.
        answers: Option<u32>,
        /// Last TSN assigned before the reset; set at the first transmission.
        last_tsn: Option<Tsn>,
    },
    /// Reset of the peer's streams.
    Incoming(Streams),
    /// Reset of all sequence numbers.
    Association,
    /// Number of outgoing streams to add.
    AddOutgoing(u16),
    /// Number of incoming streams to add.
    AddIncoming(u16),
}

/// A request that has been sent or is being sent.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) number: u32,
    pub(crate) asked: RequestKind,
    /// Whether the request has received its final response.
    pub(crate) settled: bool,
}

impl Request {
    pub(crate) fn new(number: u32, asked: RequestKind) -> Self {
        Self {
            number,
            asked,
            settled: false,
        }
    }
}

/// Outstanding requests: one, or two that share a chunk.
#[derive(Debug)]
pub(crate) struct OutstandingRequests {
    pub(crate) requests: Vec<Request>,
    pub(crate) path: PathId,
    /// Whether the chunk must be sent now.
    pub(crate) due: bool,
    /// Whether the chunk was not sent yet with the current request numbers.
    pub(crate) unsent: bool,
    /// Expiration time of the Re-configuration Timer; `None` before the first transmission.
    pub(crate) deadline: Option<Nanos>,
    /// Whether the peer has answered the last transmission with "In progress".
    pub(crate) in_progress: bool,
    /// Whether the next transmission must use new numbers.
    pub(crate) renumber: bool,
    /// Number of times that new request numbers were assigned.
    pub(crate) renumbered: u32,
    /// Whether the peer had acknowledged all data sent before the reset when the request was last
    /// transmitted. The response "In progress" is then not plausible.
    pub(crate) all_was_there: bool,
    /// Number of implausible responses "In progress": see `all_was_there`.
    pub(crate) senseless: u32,
    /// Whether the peer requested an association reset at the same time.
    pub(crate) crossed: bool,
}

impl OutstandingRequests {
    pub(crate) fn new(requests: Vec<Request>, path: PathId) -> Self {
        Self {
            requests,
            path,
            due: true,
            unsent: true,
            deadline: None,
            in_progress: false,
            renumber: false,
            renumbered: 0,
            all_was_there: false,
            senseless: 0,
            crossed: false,
        }
    }

    /// Streams that the peer is requested to reset.
    pub(crate) fn incoming(&self) -> impl Iterator<Item = &Streams> {
        self.requests.iter().filter_map(|it| match &it.asked {
            RequestKind::Incoming(streams) if !it.settled => Some(streams),
            _ => None,
        })
    }

    /// Whether the request is an association reset.
    pub(crate) fn is_of_association(&self) -> bool {
        matches!(self.requests[0].asked, RequestKind::Association)
    }

    /// Whether the request was sent and is unanswered.
    pub(crate) fn is_unanswered(&self) -> bool {
        !self.in_progress && self.deadline.is_some()
    }

    /// Whether one of the requests is the response to the peer's request `number`.
    pub(crate) fn is_answering(&self, number: u32) -> bool {
        let answering = |it: &Request| matches!(it.asked, RequestKind::Outgoing { answers: Some(answers), .. } if answers == number);
        self.requests.iter().any(answering)
    }

    /// Last TSN before the reset; set to `last` at the first transmission.
    pub(crate) fn last_tsn(&mut self, last: Tsn) -> Option<Tsn> {
        self.requests.iter_mut().find_map(|it| match &mut it.asked {
            RequestKind::Outgoing { last_tsn, .. } => Some(*last_tsn.get_or_insert(last)),
            _ => None,
        })
    }

    /// Parameters of the RE-CONFIG chunk. `expected` is the number of the peer's next request.
    pub(crate) fn parameters(&self, expected: u32) -> Vec<ReConfigParameter> {
        let parameter = |it: &Request| {
            let request = it.number;
            match &it.asked {
                RequestKind::Outgoing {
                    streams,
                    answers,
                    last_tsn,
                } => ReConfigParameter::OutgoingSsnReset {
                    request,
                    response: answers.unwrap_or(expected.wrapping_sub(1)),
                    last_tsn: last_tsn.unwrap_or_default(),
                    streams: streams.list(),
                },
                RequestKind::Incoming(streams) => ReConfigParameter::IncomingSsnReset {
                    request,
                    streams: streams.list(),
                },
                RequestKind::Association => ReConfigParameter::SsnTsnReset { request },
                &RequestKind::AddOutgoing(count) => {
                    ReConfigParameter::AddOutgoingStreams { request, count }
                }
                &RequestKind::AddIncoming(count) => {
                    ReConfigParameter::AddIncomingStreams { request, count }
                }
            }
        };
        self.requests.iter().map(parameter).collect()
    }

    /// Records that the chunk was added to a packet, and starts the timer.
    pub(crate) fn sent(&mut self, now: Nanos, rto: Nanos) {
        self.due = false;
        self.unsent = false;
        self.in_progress = false;
        self.deadline = Some(now.saturating_add(rto));
    }
}
