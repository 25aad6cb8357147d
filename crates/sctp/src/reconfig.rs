//! Stream reconfiguration (RFC 6525): stream resets, added streams, and resets of all sequence
//! numbers of an association.
//!
//! This module contains the state: [`PendingRequests`] cannot be sent yet, [`OutstandingRequests`]
//! are the requests of the chunk in flight, and [`Responses`] are the answers to the peer. The
//! association ([`crate::association`]) performs the requests.

mod deferred_data;
mod outcome;
mod outgoing_resets;
mod outstanding_request;
mod pending_requests;
mod request;
mod responses;
mod streams;

use anabranch_transport::Nanos;
use anabranch_wire::chunk::kind;

pub(crate) use deferred_data::{DeferredData, UserChunk};
pub use outcome::{ReconfigError, ReconfigOutcome, StreamDirection};
use outgoing_resets::OutgoingResets;
pub(crate) use outstanding_request::{OutstandingRequests, Request, RequestKind};
pub(crate) use pending_requests::{PendingRequests, ResetBatch, SendProgress};
pub use request::Reconfiguration;
pub(crate) use responses::{DeferredReset, QuietPeriod, RequestClass, ResponseSent, Responses};
pub(crate) use streams::Streams;

use crate::extension_descriptor::Extension;
use crate::path::PathId;

/// The extension RE-CONFIG, offered if the setting `reconfiguration` is on.
pub(crate) static RE_CONFIG: Extension = Extension {
    wanted: |config| config.reconfiguration,
    parameter: || None,
    chunks: &[kind::RE_CONFIG],
};

/// Stream reconfiguration state of an association that has negotiated RE-CONFIG.
#[derive(Debug)]
pub(crate) struct ReconfigState {
    /// Sequence number of the next request.
    pub(crate) next_request: u32,
    pub(crate) pending: PendingRequests,
    /// Streams in pending and outstanding outgoing resets.
    outgoing_resets: OutgoingResets,
    pub(crate) outstanding: Option<OutstandingRequests>,
    pub(crate) responses: Responses,
    pub(crate) held: DeferredData,
    /// Maximum number of inbound streams that the peer may request.
    pub(crate) most_inbound: u16,
    /// Time at which this side last reset the association.
    pub(crate) reset_at: Option<Nanos>,
}

impl ReconfigState {
    /// Initial state. Request numbers start at the initial TSNs (RFC 6525 §4.1): `ours` of this
    /// side and `peers` of the peer.
    pub(crate) fn new(ours: u32, peers: u32, most_inbound: u16, held_bytes: usize) -> Self {
        Self {
            next_request: ours,
            pending: PendingRequests::default(),
            outgoing_resets: OutgoingResets::default(),
            outstanding: None,
            responses: Responses::new(peers),
            held: DeferredData::new(held_bytes),
            most_inbound,
            reset_at: None,
        }
    }

    /// Returns the next request number and advances it.
    pub(crate) fn number(&mut self) -> u32 {
        let number = self.next_request;
        self.next_request = number.wrapping_add(1);
        number
    }

    /// Whether an outgoing reset of any of `streams` is pending or outstanding.
    pub(crate) fn resets_any(&self, streams: &Streams) -> bool {
        self.resets_all() || self.outgoing_resets.has_any(streams)
    }

    /// Whether outgoing resets of all `streams` are pending or outstanding; `there_are` is the
    /// number of existing streams.
    pub(crate) fn resets_each(&self, streams: &Streams, there_are: u16) -> bool {
        self.resets_all() || self.outgoing_resets.has_each(streams, there_are)
    }

    /// Those `streams` for which no outgoing reset is pending or outstanding; `there_are` is the
    /// number of existing streams. `Some(None)` if there are none, `None` if there are more than
    /// `most`.
    pub(crate) fn others(
        &self,
        streams: &Streams,
        there_are: u16,
        most: usize,
    ) -> Option<Option<Streams>> {
        let others = self.outgoing_resets.others(streams, there_are, most)?;
        Some((!others.is_empty()).then(|| Streams::of(others.into_iter())))
    }

    /// Number of listed streams in pending and outstanding outgoing resets.
    pub(crate) fn listed_outgoing(&self) -> usize {
        self.outgoing_resets.listed()
    }

    /// Adds an outgoing reset of `streams`. `answers`: number of the peer's request to which the
    /// reset is the response.
    pub(crate) fn request_reset(&mut self, streams: Streams, answers: Option<u32>) {
        self.outgoing_resets.begin(&streams);
        self.pending.add(streams, answers);
    }

    /// Records that the outgoing reset of `streams` is complete.
    pub(crate) fn settled(&mut self, streams: &Streams) {
        self.outgoing_resets.end(streams);
    }

    /// Whether this side is resetting the association.
    pub(crate) fn resets_all(&self) -> bool {
        self.pending.association
            || self
                .outstanding
                .as_ref()
                .is_some_and(OutstandingRequests::is_of_association)
    }

    /// Whether it is unknown if the peer has reset the association, because the request is
    /// unanswered.
    pub(crate) fn is_unsure(&self) -> bool {
        let unsure = |it: &OutstandingRequests| it.is_of_association() && it.is_unanswered();
        self.outstanding.as_ref().is_some_and(unsure)
    }

    /// Whether an incoming reset of any of `streams` is pending or outstanding.
    pub(crate) fn asks_any(&self, streams: &Streams) -> bool {
        let flying = self
            .outstanding
            .iter()
            .flat_map(OutstandingRequests::incoming);
        let mut asked = flying.chain(&self.pending.incoming);
        asked.any(|it| it.overlaps(streams))
    }
}

impl ReconfigState {
    /// Numbers of outgoing and incoming streams that outstanding requests add.
    pub(crate) fn adding(&self) -> (u16, u16) {
        let mut adding = (0, 0);
        let open = self.outstanding.iter().flat_map(|it| &it.requests);
        for request in open.filter(|it| !it.settled) {
            match request.asked {
                RequestKind::AddOutgoing(count) => adding.0 += count,
                RequestKind::AddIncoming(count) => adding.1 += count,
                _ => {}
            }
        }
        adding
    }

    /// Takes the next requests to send: none, one, or two that may share a chunk (RFC 6525 §3.1).
    /// `most`: maximum numbers of listed outgoing and incoming streams. `is_quiet`: no data is in
    /// flight. `progress`: the sending progress.
    pub(crate) fn next_asked(
        &mut self,
        most: [usize; 2],
        is_quiet: bool,
        progress: SendProgress,
        is_ready: impl FnMut(&mut ResetBatch) -> bool,
    ) -> Vec<RequestKind> {
        let pending = &mut self.pending;
        if let Some(ResetBatch {
            streams, answers, ..
        }) = pending.take_ready(most[0], progress, is_ready)
        {
            let listed = streams.listed();
            let asked = RequestKind::Outgoing {
                streams,
                answers,
                last_tsn: None,
            };
            // An outgoing reset that is the response to a request of the peer is sent alone.
            let beside = most[0].saturating_sub(listed + 6);
            let incoming = match answers {
                None => pending.take_incoming(beside.min(most[1])),
                Some(_) => None,
            };
            return [asked]
                .into_iter()
                .chain(incoming.map(RequestKind::Incoming))
                .collect();
        }
        if let Some(incoming) = pending.take_incoming(most[1]) {
            return vec![RequestKind::Incoming(incoming)];
        }
        let add = [
            (
                std::mem::take(&mut pending.add_outgoing),
                RequestKind::AddOutgoing as fn(u16) -> RequestKind,
            ),
            (
                std::mem::take(&mut pending.add_incoming),
                RequestKind::AddIncoming,
            ),
        ];
        let add = add.into_iter().filter(|&(count, _)| count > 0);
        let add: Vec<_> = add.map(|(count, asked)| asked(count)).collect();
        if add.is_empty() && is_quiet && std::mem::take(&mut pending.association) {
            return vec![RequestKind::Association];
        }
        add
    }

    /// Cancels the outstanding requests. Unsent request numbers are used again, because the peer
    /// requires consecutive numbers.
    pub(crate) fn cancel(&mut self) {
        if let Some(outstanding) = self.outstanding.take()
            && outstanding.unsent
            && let Some(first) = outstanding.requests.first()
        {
            self.next_request = first.number;
        }
    }

    /// Retransmits the incomplete requests on `path`, with new numbers if the peer has already
    /// answered the old ones.
    pub(crate) fn ask_again(&mut self, path: PathId) {
        let Some(mut outstanding) = self.outstanding.take() else {
            return;
        };
        if std::mem::take(&mut outstanding.renumber) {
            outstanding.renumbered += 1;
            outstanding.unsent = true;
            outstanding.requests.retain(|it| !it.settled);
            for request in &mut outstanding.requests {
                request.number = self.number();
                if let RequestKind::Outgoing { last_tsn, .. } = &mut request.asked {
                    *last_tsn = None;
                }
            }
        }
        outstanding.path = path;
        outstanding.due = true;
        self.outstanding = Some(outstanding);
    }
}
