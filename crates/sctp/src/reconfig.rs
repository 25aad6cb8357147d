//! Stream reconfiguration (RFC 6525): streams begin their sequence numbers anew, streams are added, and all numbers of an
//! association begin anew.
//!
//! Here is what it consists of, without the association that it changes: [`Wishes`] are what the user and the peer have asked for
//! and cannot be asked yet, a [`Flight`] is the one chunk of requests that waits for its answers, [`Answers`] are what the peer was
//! told. The association ([`crate::association`]) carries them out.

mod answers;
mod flight;
mod held;
mod outcome;
mod request;
mod resetting;
mod streams;
mod wishes;

use anabranch_transport::Nanos;
use anabranch_wire::chunk::kind;

pub(crate) use answers::{Answered, Answers, Deferred, Judged, Quieting};
pub(crate) use flight::{Asked, Flight, Request};
pub(crate) use held::{HeldData, UserChunk};
pub use outcome::{ReconfigError, ReconfigOutcome, StreamDirection};
pub use request::Reconfiguration;
use resetting::Resetting;
pub(crate) use streams::Streams;
pub(crate) use wishes::{Batch, Course, Wishes};

use crate::extension::Extension;
use crate::path::PathId;

/// Off unless the setting `reconfiguration` is on.
pub(crate) static RE_CONFIG: Extension = Extension {
    wanted: |config| config.reconfiguration,
    parameter: || None,
    chunks: &[kind::RE_CONFIG],
};

/// What an association keeps of it while both ends speak it.
#[derive(Debug)]
pub(crate) struct ReconfigState {
    /// The number of the next request.
    pub(crate) next_request: u32,
    pub(crate) wishes: Wishes,
    /// The streams of the wishes, and of the flight.
    resetting: Resetting,
    pub(crate) flight: Option<Flight>,
    pub(crate) answers: Answers,
    pub(crate) held: HeldData,
    /// Streams that the peer may have at most.
    pub(crate) most_inbound: u16,
    /// When all numbers last began anew at the wish of this side.
    pub(crate) reset_at: Option<Nanos>,
}

impl ReconfigState {
    /// Numbers of requests begin as the TSNs do (RFC 6525 §4.1): `ours` and the `peers`.
    pub(crate) fn new(ours: u32, peers: u32, most_inbound: u16, held_bytes: usize) -> Self {
        Self {
            next_request: ours,
            wishes: Wishes::default(),
            resetting: Resetting::default(),
            flight: None,
            answers: Answers::new(peers),
            held: HeldData::new(held_bytes),
            most_inbound,
            reset_at: None,
        }
    }

    /// Takes the next number for a request.
    pub(crate) fn number(&mut self) -> u32 {
        let number = self.next_request;
        self.next_request = number.wrapping_add(1);
        number
    }

    /// Whether a stream of `streams` is being reset outwards, or waits for it.
    pub(crate) fn resets_any(&self, streams: &Streams) -> bool {
        self.resets_all() || self.resetting.has_any(streams)
    }

    /// Whether all of `streams` are being reset outwards, or wait for it, where `there_are` so many.
    pub(crate) fn resets_each(&self, streams: &Streams, there_are: u16) -> bool {
        self.resets_all() || self.resetting.has_each(streams, there_are)
    }

    /// Those of `streams` that are not being reset and do not wait for it, where `there_are` so many: `Some(None)` if there is none, `None`
    /// if they are more than `most`.
    pub(crate) fn others(
        &self,
        streams: &Streams,
        there_are: u16,
        most: usize,
    ) -> Option<Option<Streams>> {
        let others = self.resetting.others(streams, there_are, most)?;
        Some((!others.is_empty()).then(|| Streams::of(others.into_iter())))
    }

    /// How many streams are listed that are being reset outwards, or wait for it.
    pub(crate) fn listed_outgoing(&self) -> usize {
        self.resetting.listed()
    }

    /// `streams` are to be reset outwards; what the peer has asked so may be answered by it.
    pub(crate) fn wish(&mut self, streams: Streams, answers: Option<u32>) {
        self.resetting.begin(&streams);
        self.wishes.add(streams, answers);
    }

    /// The reset of `streams` outwards has its outcome.
    pub(crate) fn settled(&mut self, streams: &Streams) {
        self.resetting.end(streams);
    }

    /// Whether all numbers are to begin anew at the wish of this side.
    pub(crate) fn resets_all(&self) -> bool {
        self.wishes.association || self.flight.as_ref().is_some_and(Flight::is_of_association)
    }

    /// Whether the peer may have let all numbers begin anew, or not: it was asked, and has not answered.
    pub(crate) fn is_unsure(&self) -> bool {
        let unsure = |it: &Flight| it.is_of_association() && it.is_unanswered();
        self.flight.as_ref().is_some_and(unsure)
    }

    /// Whether the peer is being asked to reset a stream of `streams`, or will be.
    pub(crate) fn asks_any(&self, streams: &Streams) -> bool {
        let flying = self.flight.iter().flat_map(Flight::incoming);
        let mut asked = flying.chain(&self.wishes.incoming);
        asked.any(|it| it.overlaps(streams))
    }
}

impl ReconfigState {
    /// Streams that are being added outwards and inwards.
    pub(crate) fn adding(&self) -> (u16, u16) {
        let mut adding = (0, 0);
        let open = self.flight.iter().flat_map(|it| &it.requests);
        for request in open.filter(|it| !it.settled) {
            match request.asked {
                Asked::AddOutgoing(count) => adding.0 += count,
                Asked::AddIncoming(count) => adding.1 += count,
                _ => {}
            }
        }
        adding
    }

    /// What the peer is to be asked now: nothing, one thing, or two that may stand in one chunk (RFC 6525 §3.1). `most` streams are
    /// listed outwards and inwards; `is_quiet`: nothing is in flight; `course`: how far sending has come.
    pub(crate) fn next_asked(
        &mut self,
        most: [usize; 2],
        is_quiet: bool,
        course: Course,
        is_ready: impl FnMut(&mut Batch) -> bool,
    ) -> Vec<Asked> {
        let wishes = &mut self.wishes;
        if let Some(Batch {
            streams, answers, ..
        }) = wishes.take_ready(most[0], course, is_ready)
        {
            let listed = streams.listed();
            let asked = Asked::Outgoing {
                streams,
                answers,
                last_tsn: None,
            };
            // Beside an answer no request stands but the one that answers.
            let beside = most[0].saturating_sub(listed + 6);
            let incoming = match answers {
                None => wishes.take_incoming(beside.min(most[1])),
                Some(_) => None,
            };
            return [asked]
                .into_iter()
                .chain(incoming.map(Asked::Incoming))
                .collect();
        }
        if let Some(incoming) = wishes.take_incoming(most[1]) {
            return vec![Asked::Incoming(incoming)];
        }
        let add = [
            (
                std::mem::take(&mut wishes.add_outgoing),
                Asked::AddOutgoing as fn(u16) -> Asked,
            ),
            (std::mem::take(&mut wishes.add_incoming), Asked::AddIncoming),
        ];
        let add = add.into_iter().filter(|&(count, _)| count > 0);
        let add: Vec<_> = add.map(|(count, asked)| asked(count)).collect();
        if add.is_empty() && is_quiet && std::mem::take(&mut wishes.association) {
            return vec![Asked::Association];
        }
        add
    }

    /// What is under way is done otherwise. A number under which nothing was sent is free again: the peer takes them without a gap.
    pub(crate) fn cancel(&mut self) {
        if let Some(flight) = self.flight.take()
            && flight.unsent
            && let Some(first) = flight.requests.first()
        {
            self.next_request = first.number;
        }
    }

    /// The requests that are not settled go again, over `path`; under new numbers where the old ones have had their answers.
    pub(crate) fn ask_again(&mut self, path: PathId) {
        let Some(mut flight) = self.flight.take() else {
            return;
        };
        if std::mem::take(&mut flight.renumber) {
            flight.renumbered += 1;
            flight.unsent = true;
            flight.requests.retain(|it| !it.settled);
            for request in &mut flight.requests {
                request.number = self.number();
                if let Asked::Outgoing { last_tsn, .. } = &mut request.asked {
                    *last_tsn = None;
                }
            }
        }
        flight.path = path;
        flight.due = true;
        self.flight = Some(flight);
    }
}
