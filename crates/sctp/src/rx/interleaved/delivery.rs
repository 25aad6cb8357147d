//! What a receiver does with I-DATA and I-FORWARD-TSN.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::extension::{IData, IForwardTsn, SkippedMessage};
use anabranch_wire::{Ssn, Tsn};

use super::super::message::{ReceivedMessage, ReceivedPart};
use super::super::order::Whole;
use super::super::tsn_tracker::Arrival;
use super::super::{Abandoned, DataOutcome, Forwarded, Receiver};
use super::message::Pieces;
use super::{GivenUp, Interleaved, Name, Taken, bytes_of};
use crate::path::PathId;

/// Messages that are delivered in parts at a time.
const MOST_OPEN: usize = 64;

impl Receiver {
    /// Whether the peer interleaves messages.
    pub(crate) fn expect_interleaved(&mut self, spoken: bool, gives_up: bool) {
        if spoken {
            self.assembly.interleaves(self.streams);
        }
        self.interleaved = spoken.then(|| {
            Box::new(Interleaved {
                gives_up,
                ..Interleaved::default()
            })
        });
    }

    /// Takes one I-DATA chunk that came on path `from`.
    pub(crate) fn handle_i_data(
        &mut self,
        now: Nanos,
        data: IData,
        from: PathId,
        trace: &mut Trace,
    ) -> DataOutcome {
        let length = data.user_data.len() as u64;
        self.held.follow(trace);
        self.record_late(now, trace);
        let outcome = self.sort_i_data(now, data, from, trace);
        self.count_outcome(outcome, length);
        outcome
    }

    fn sort_i_data(
        &mut self,
        now: Nanos,
        data: IData,
        from: PathId,
        trace: &mut Trace,
    ) -> DataOutcome {
        self.from = from;
        if data.user_data.is_empty() {
            return DataOutcome::NoUserData;
        }
        match self.tracker.classify(data.tsn) {
            Arrival::Duplicate => {
                self.tracker.note_duplicate(data.tsn);
                self.sack.saw_duplicate();
                return DataOutcome::Duplicate;
            }
            Arrival::OutOfReach => {
                self.sack.at_once();
                return DataOutcome::BeyondWindow;
            }
            Arrival::New => {}
        }
        if data.stream_id >= self.streams {
            self.arrived_beside(now, data.tsn, data.immediate, trace);
            return DataOutcome::InvalidStream;
        }
        let length = data.user_data.len();
        let bytes = self.profile.rwnd_counts.bytes(length);
        if let Err(outcome) = self.admit_piece(now, data.tsn, bytes, length, trace) {
            return outcome;
        }
        self.arrived_beside(now, data.tsn, data.immediate, trace);
        self.window.take(bytes, length);
        self.held.take(data.stream_id, bytes);
        let (stream, name) = (data.stream_id, (data.unordered, data.mid.0));
        let (user_data, _) = self.hold(&data.user_data, true, &data);
        let data = IData { user_data, ..data };
        let taken = self.interleaved.as_mut().map(|it| it.insert(data));
        let outcome = match taken {
            Some(Taken::Held) => {
                self.deliver_stream(now, stream, Some(name), trace);
                DataOutcome::NewData
            }
            Some(Taken::Late) => {
                self.let_go(stream, length);
                DataOutcome::NewData
            }
            Some(Taken::Contradiction) | None => {
                self.let_go(stream, length);
                DataOutcome::ProtocolViolation
            }
        };
        if self.ready.is_empty() && self.window.to_advertise() == 0 {
            self.relieve_interleaved(now, trace);
        }
        self.held.record(now, self.window.used(), trace);
        outcome
    }

    /// Whether there is room for a new chunk. What was acknowledged is never dropped for it: parts of messages are delivered instead.
    fn admit_piece(
        &mut self,
        now: Nanos,
        tsn: Tsn,
        bytes: u64,
        length: usize,
        trace: &mut Trace,
    ) -> Result<(), DataOutcome> {
        let next = tsn == self.tracker.cumulative().next();
        let fills_hole = tsn.lt(self.tracker.highest());
        let fits = |it: &Self| {
            let alone = next && it.window.is_empty();
            // Also where the profile takes no DATA beyond the buffer: it drops others for what fills a hole.
            let into_hole = fills_hole && it.window.has_memory_for(length as u64, 1);
            alone || into_hole || it.window.admits(bytes, length as u64, false)
        };
        if fits(self) || (self.relieve_interleaved(now, trace) && fits(self)) {
            return Ok(());
        }
        if next && self.ready.is_empty() {
            return Err(DataOutcome::Exhausted);
        }
        self.sack.at_once();
        Err(DataOutcome::DroppedFull)
    }

    /// Delivers what can be of a stream, of which the message `grown` has grown.
    fn deliver_stream(&mut self, now: Nanos, stream: u16, grown: Option<Name>, trace: &mut Trace) {
        while let Some(part) = self.next_part(stream, grown) {
            if part.begins && part.ends {
                self.deliver_whole(now, part, trace);
            } else {
                self.delivery(now, trace).0.part(part);
            }
        }
        if let Some(interleaved) = &mut self.interleaved {
            interleaved.tidy(stream);
        }
    }

    /// The next that can be delivered of a stream.
    fn next_part(&mut self, stream: u16, grown: Option<Name>) -> Option<ReceivedPart> {
        let point = self.partial_delivery_point;
        let interleaved = self.interleaved.as_deref_mut()?;
        let next = interleaved.next(stream);
        let may_open = interleaved.open < MOST_OPEN;
        let in_stream = interleaved.streams.get_mut(&stream)?;
        if let Some(name) = in_stream.open {
            return interleaved.go_on(stream, name);
        }
        if let Some(mid) = in_stream.whole.pop_first() {
            let pieces = in_stream.of_mut(true).remove(&mid)?;
            return Some(whole_of(stream, (true, mid), pieces));
        }
        if in_stream.of(false).get(&next).is_some_and(Pieces::is_whole) {
            let pieces = in_stream.of_mut(false).remove(&next)?;
            *interleaved.next.entry(stream) = next.wrapping_add(1);
            return Some(whole_of(stream, (false, next), pieces));
        }
        let candidates = [
            Some((false, next)),
            grown.filter(|(unordered, _)| *unordered),
        ];
        let long = candidates.into_iter().flatten().find(|(unordered, mid)| {
            let pieces = in_stream.of(*unordered).get(mid);
            pieces.is_some_and(|it| {
                it.has_more() && point.get().is_some_and(|point| it.bytes as u64 >= point)
            })
        });
        interleaved.begin(stream, long.filter(|_| may_open)?)
    }

    /// Nothing can be read and there is no room: begins to deliver what has come of messages whose turn it is, on every stream. Whether
    /// that helped.
    pub(in crate::rx) fn relieve_interleaved(&mut self, now: Nanos, trace: &mut Trace) -> bool {
        let Some(interleaved) = self.interleaved.as_deref_mut() else {
            return false;
        };
        if !self.ready.is_empty() || std::mem::replace(&mut interleaved.stuck, true) {
            return false;
        }
        let begun = |(stream, it): (&u16, &super::InStream)| {
            let next = interleaved.next.get(*stream).copied().unwrap_or_default();
            let ordered = it
                .of(false)
                .get(&next)
                .map(|pieces| ((false, next), pieces));
            let unordered = it
                .of(true)
                .iter()
                .map(|(mid, pieces)| ((true, *mid), pieces));
            let mut all = ordered.into_iter().chain(unordered);
            let first = all.find(|(_, pieces)| pieces.has_more())?;
            it.open.is_none().then_some((*stream, first.0))
        };
        let room = MOST_OPEN.saturating_sub(interleaved.open);
        let begun: Vec<_> = interleaved
            .streams
            .iter()
            .filter_map(begun)
            .take(room)
            .collect();
        for (stream, name) in &begun {
            let interleaved = self.interleaved.as_deref_mut();
            let part = interleaved.and_then(|it| it.begin(*stream, *name));
            if let Some(part) = part {
                let (mut delivery, ..) = self.delivery(now, trace);
                delivery.part(part);
            }
        }
        !begun.is_empty()
    }

    /// Takes an I-FORWARD-TSN that came on path `from` (RFC 8260 §2.3.1).
    pub(crate) fn handle_i_forward_tsn(
        &mut self,
        now: Nanos,
        forward: &IForwardTsn,
        from: PathId,
        trace: &mut Trace,
    ) -> Forwarded {
        if let Some(refused) = self.move_point(forward.new_cumulative_tsn, from, trace) {
            return refused;
        }
        let mut aborted = Vec::new();
        let mut streams_ignored = 0;
        for skipped in forward.skipped() {
            if !self.skip_messages(now, skipped, &mut aborted, trace) {
                streams_ignored += 1;
            }
        }
        self.held.record(now, self.window.used(), trace);
        Forwarded::Moved {
            aborted,
            streams_ignored,
        }
    }

    /// The messages of a stream up to a number will not come whole. False if the stream does not exist, or is past that.
    fn skip_messages(
        &mut self,
        now: Nanos,
        skipped: SkippedMessage,
        aborted: &mut Vec<Abandoned>,
        trace: &mut Trace,
    ) -> bool {
        let SkippedMessage {
            stream_id: stream,
            unordered,
            mid,
        } = skipped;
        let Some(interleaved) = self.interleaved.as_deref_mut() else {
            return false;
        };
        if stream >= self.streams {
            return false;
        }
        let Some(given_up) = interleaved.give_up(stream, unordered, mid.0) else {
            return false;
        };
        let stranded = if unordered {
            Vec::new()
        } else {
            interleaved.take_stranded(stream, mid.0)
        };
        self.drop_pieces(stream, given_up.into_iter(), aborted);
        for (mid, pieces) in stranded {
            self.deliver_whole(now, whole_of(stream, (false, mid), pieces), trace);
        }
        self.deliver_stream(now, stream, None, trace);
        true
    }
}

impl Receiver {
    /// These streams begin anew with number 0, both kinds; `None`: all (RFC 8260 §2.3.2). What waits for messages that the peer has
    /// left out is delivered.
    pub(in crate::rx) fn reset_interleaved(
        &mut self,
        now: Nanos,
        streams: Option<&[u16]>,
        trace: &mut Trace,
    ) {
        let Some(interleaved) = self.interleaved.as_deref() else {
            return;
        };
        let meant = streams.map_or_else(|| interleaved.held_of(), <[u16]>::to_vec);
        for stream in meant {
            let Some(interleaved) = self.interleaved.as_deref_mut() else {
                return;
            };
            let last = interleaved.next(stream).wrapping_add(u32::MAX / 2);
            let stranded = interleaved.take_stranded(stream, last);
            *interleaved.next.entry(stream) = 0;
            for (mid, pieces) in stranded {
                self.deliver_whole(now, whole_of(stream, (false, mid), pieces), trace);
            }
            self.deliver_stream(now, stream, None, trace);
        }
        if let (None, Some(interleaved)) = (streams, self.interleaved.as_deref_mut()) {
            interleaved.next = crate::stream_table::StreamTable::default();
        }
    }

    /// Drops what is held of messages that are not whole. Gives those of which a part was delivered.
    pub(in crate::rx) fn drop_unfinished(&mut self) -> Vec<Abandoned> {
        let mut aborted = Vec::new();
        let streams = self.interleaved.as_deref().map(Interleaved::held_of);
        for stream in streams.into_iter().flatten() {
            let next = self.interleaved.as_deref().map(|it| it.next(stream));
            let ordered = next.unwrap_or_default().wrapping_add(u32::MAX / 2);
            for (unordered, last) in [(false, ordered), (true, u32::MAX / 2), (true, u32::MAX)] {
                let Some(interleaved) = self.interleaved.as_deref_mut() else {
                    continue;
                };
                let given_up = interleaved.give_up(stream, unordered, last);
                self.drop_pieces(stream, given_up.into_iter().flatten(), &mut aborted);
            }
        }
        aborted
    }

    /// Lets go of what was given up of a stream.
    fn drop_pieces(
        &mut self,
        stream: u16,
        given_up: impl Iterator<Item = GivenUp>,
        aborted: &mut Vec<Abandoned>,
    ) {
        for it in given_up {
            if it.was_open {
                self.forget_endless(vec![stream]);
                aborted.push(told_of(
                    stream,
                    it.name,
                    it.pieces.first_tsn,
                    it.pieces.ppid,
                ));
            }
            for part in it.pieces.into_parts() {
                self.let_go(stream, part.len());
            }
        }
    }

    fn deliver_whole(&mut self, now: Nanos, whole: ReceivedPart, trace: &mut Trace) {
        let (mut delivery, ..) = self.delivery(now, trace);
        delivery.whole(Whole {
            message: whole.into_message(),
            since: now,
            last: Tsn(0),
            compact: true,
        });
    }
}

impl Interleaved {
    /// Begins to deliver a message in parts.
    fn begin(&mut self, stream: u16, name: Name) -> Option<ReceivedPart> {
        let in_stream = self.streams.get_mut(&stream)?;
        let pieces = in_stream.of_mut(name.0).get_mut(&name.1)?;
        let mut part = part_of(stream, name, pieces);
        part.begins = true;
        in_stream.open = Some(name);
        self.open += 1;
        Some(part)
    }

    /// The next part of the message that is being delivered.
    fn go_on(&mut self, stream: u16, name: Name) -> Option<ReceivedPart> {
        let in_stream = self.streams.get_mut(&stream)?;
        let pieces = in_stream.of_mut(name.0).get_mut(&name.1)?;
        if !pieces.has_more() {
            return None;
        }
        let mut part = part_of(stream, name, pieces);
        if pieces.is_whole() {
            part.ends = true;
            in_stream.of_mut(name.0).remove(&name.1);
            in_stream.open = None;
            self.open -= 1;
            if !name.0 {
                *self.next.entry(stream) = name.1.wrapping_add(1);
            }
        }
        Some(part)
    }
}

/// What the user is told of the number: its lower half.
fn number(mid: u32) -> Ssn {
    Ssn(mid as u16)
}

fn part_of(stream: u16, (unordered, mid): Name, pieces: &mut Pieces) -> ReceivedPart {
    ReceivedPart {
        stream,
        ppid: pieces.ppid,
        unordered,
        ssn: number(mid),
        tsn: pieces.first_tsn,
        begins: false,
        ends: false,
        payload: bytes_of(pieces.take_ready()),
    }
}

fn whole_of(stream: u16, (unordered, mid): Name, pieces: Pieces) -> ReceivedPart {
    ReceivedPart::whole(ReceivedMessage {
        stream,
        ppid: pieces.ppid,
        unordered,
        ssn: number(mid),
        tsn: pieces.first_tsn,
        payload: bytes_of(pieces.into_parts()),
    })
}

/// A message that was delivered in part, and whose end will not come.
pub(in crate::rx) fn told_of(
    stream: u16,
    (unordered, mid): Name,
    first_tsn: Tsn,
    ppid: u32,
) -> Abandoned {
    Abandoned {
        stream,
        unordered,
        ssn: number(mid),
        first_tsn,
        ppid,
    }
}
