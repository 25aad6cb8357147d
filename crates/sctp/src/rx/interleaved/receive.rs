//! Receiver processing of I-DATA and I-FORWARD-TSN.

use anabranch_transport::{Nanos, Trace};
use anabranch_wire::extension::{IData, IForwardTsn, SkippedMessage};
use anabranch_wire::{Ssn, Tsn};

use super::super::message::{ReceivedMessage, ReceivedPart};
use super::super::ordering::Whole;
use super::super::tsn_tracker::Arrival;
use super::super::{Abandoned, DataOutcome, ForwardTsnOutcome, Receiver};
use super::abandoned::AbandonedMessages;
use super::message::Fragments;
use super::{AbandonedMessage, Interleaved, Key, Name, Taken};
use crate::path::PathId;

/// Maximum number of simultaneous partial deliveries.
const MAX_OPEN: usize = 64;

impl Receiver {
    /// Records whether the peer interleaves messages.
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

    /// Takes one I-DATA chunk received on path `from`.
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
                self.sack.saw_duplicate(data.tsn == self.initial_tsn);
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

    /// Whether a new chunk fits the buffer. Acknowledged data is never dropped for it: partial
    /// delivery starts instead.
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
            // This also holds if the profile admits no DATA beyond the buffer, because it drops
            // other data to fill a hole.
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

    /// Delivers what is possible of a stream after the message `grown` received a fragment.
    fn deliver_stream(&mut self, now: Nanos, stream: u16, grown: Option<Name>, trace: &mut Trace) {
        while let Some(part) = self.next_part(stream, grown) {
            if part.begins && part.ends {
                self.deliver_whole(now, part, trace);
            } else {
                self.delivery(now, trace).0.part(part);
            }
        }
    }

    /// The next deliverable part of a stream.
    fn next_part(&mut self, stream: u16, grown: Option<Name>) -> Option<ReceivedPart> {
        let point = self.partial_delivery_point;
        let interleaved = self.interleaved.as_deref_mut()?;
        if let Some(&name) = interleaved.open.get(&stream) {
            return interleaved.go_on(stream, name);
        }
        let next = interleaved.next(stream);
        if let Some(whole) = interleaved.take_whole(stream, next) {
            return Some(whole);
        }
        let point = point.get()?;
        let candidates = [
            Some((false, next)),
            grown.filter(|(unordered, _)| *unordered),
        ];
        let long = candidates.into_iter().flatten().find(|(unordered, mid)| {
            let pieces = interleaved.unfinished.get(&(stream, *unordered, *mid));
            pieces.is_some_and(|it| it.has_more() && it.bytes() as u64 >= point)
        });
        let may_open = interleaved.open.len() < MAX_OPEN;
        let (unordered, mid) = long.filter(|_| may_open)?;
        interleaved.open((stream, unordered, mid))
    }

    /// Nothing is readable and the buffer is full: starts partial delivery of the next message on
    /// every stream. Returns whether that helped.
    pub(in crate::rx) fn relieve_interleaved(&mut self, now: Nanos, trace: &mut Trace) -> bool {
        let Some(interleaved) = self.interleaved.as_deref_mut() else {
            return false;
        };
        if !self.ready.is_empty() || std::mem::replace(&mut interleaved.stuck, true) {
            return false;
        }
        let room = MAX_OPEN.saturating_sub(interleaved.open.len());
        let begun = interleaved.first_ready(room);
        for key in &begun {
            let interleaved = self.interleaved.as_deref_mut();
            let part = interleaved.and_then(|it| it.open(*key));
            if let Some(part) = part {
                let (mut delivery, ..) = self.delivery(now, trace);
                delivery.part(part);
            }
        }
        !begun.is_empty()
    }

    /// Takes an I-FORWARD-TSN received on path `from` (RFC 8260 §2.3.1).
    pub(crate) fn handle_i_forward_tsn(
        &mut self,
        now: Nanos,
        forward: &IForwardTsn,
        from: PathId,
        trace: &mut Trace,
    ) -> ForwardTsnOutcome {
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
        ForwardTsnOutcome::Moved {
            aborted,
            streams_ignored,
        }
    }

    /// The messages of a stream up to a number will not be completed. Returns false if the stream
    /// does not exist or is past that number.
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
        self.drop_pieces(given_up, aborted);
        for (key, pieces) in stranded {
            self.deliver_whole(now, whole_of(key, pieces), trace);
        }
        self.deliver_stream(now, stream, None, trace);
        true
    }
}

impl Receiver {
    /// These streams restart with number 0, ordered and unordered; `None` means all (RFC 8260
    /// §2.3.2). Messages that wait for ones the peer left out are delivered.
    pub(in crate::rx) fn reset_interleaved(
        &mut self,
        now: Nanos,
        streams: Option<&[u16]>,
        trace: &mut Trace,
    ) {
        let Some(interleaved) = self.interleaved.as_deref() else {
            return;
        };
        let meant = streams.map_or_else(|| interleaved.reset_by_all(), <[u16]>::to_vec);
        for stream in meant {
            let Some(interleaved) = self.interleaved.as_deref_mut() else {
                return;
            };
            interleaved.gone.restart(stream);
            // A peer may list hundreds of streams in one packet.
            if interleaved.is_as_at_first(stream) {
                continue;
            }
            let last = interleaved.next(stream).wrapping_add(u32::MAX / 2);
            let stranded = interleaved.take_stranded(stream, last);
            interleaved.go_to(stream, 0);
            for (key, pieces) in stranded {
                self.deliver_whole(now, whole_of(key, pieces), trace);
            }
            self.deliver_stream(now, stream, None, trace);
            if let Some(interleaved) = self.interleaved.as_deref_mut() {
                interleaved.note_reset(stream);
            }
        }
        if let (None, Some(interleaved)) = (streams, self.interleaved.as_deref_mut()) {
            interleaved.next = crate::stream_table::StreamTable::default();
            interleaved.gone = AbandonedMessages::default();
        }
    }

    /// Drops the buffered fragments of incomplete messages. Returns the messages in partial
    /// delivery.
    pub(in crate::rx) fn drop_unfinished(&mut self) -> Vec<Abandoned> {
        let mut aborted = Vec::new();
        if let Some(interleaved) = self.interleaved.as_deref_mut() {
            let given_up = interleaved.take_all_incomplete();
            self.drop_pieces(given_up, &mut aborted);
        }
        aborted
    }

    /// Releases the complete messages that wait.
    pub(in crate::rx) fn drop_waiting(&mut self) {
        let Some(interleaved) = self.interleaved.as_deref_mut() else {
            return;
        };
        for (stream, pieces) in interleaved.take_all_whole() {
            for length in pieces.lengths() {
                self.let_go(stream, length);
            }
        }
    }

    /// Releases abandoned messages.
    fn drop_pieces(&mut self, given_up: Vec<AbandonedMessage>, aborted: &mut Vec<Abandoned>) {
        for it in given_up {
            let (stream, unordered, mid) = it.key;
            let pieces = it.pieces;
            if it.was_open {
                self.forget_endless(stream);
                let name = (unordered, mid);
                aborted.push(told_of(stream, name, pieces.first_tsn(), pieces.ppid()));
                self.preceding = self.preceding.wrapping_add(1);
            }
            for length in pieces.lengths() {
                self.let_go(stream, length);
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
    /// The next complete message of a stream without a partial delivery under way: an unordered
    /// one, or the next ordered one.
    fn take_whole(&mut self, stream: u16, next: u32) -> Option<ReceivedPart> {
        if self.whole.is_empty() {
            return None;
        }
        let unordered = (stream, true, 0)..=(stream, true, u32::MAX);
        let unordered = self.whole.range(unordered).next().map(|(key, _)| *key);
        if let Some(key) = unordered {
            return Some(whole_of(key, self.whole.remove(&key)?));
        }
        let key = (stream, false, next);
        let pieces = self.whole.remove(&key)?;
        self.go_to(stream, next.wrapping_add(1));
        Some(whole_of(key, pieces))
    }

    /// Starts partial delivery of a message.
    fn open(&mut self, key: Key) -> Option<ReceivedPart> {
        let pieces = self.unfinished.get_mut(&key)?;
        let mut part = part_of(key, pieces);
        part.begins = true;
        self.open.insert(key.0, (key.1, key.2));
        if self.index.is_some() {
            self.judge(key);
        }
        Some(part)
    }

    /// The next part of the message in partial delivery.
    fn go_on(&mut self, stream: u16, name: Name) -> Option<ReceivedPart> {
        let key = (stream, name.0, name.1);
        let pieces = self.unfinished.get_mut(&key)?;
        if !pieces.has_more() {
            return None;
        }
        let mut part = part_of(key, pieces);
        if pieces.is_whole() {
            part.ends = true;
            self.take(key);
            if !name.0 {
                self.go_to(stream, name.1.wrapping_add(1));
            }
        }
        Some(part)
    }
}

/// The number reported to the user: the lower half.
fn number(mid: u32) -> Ssn {
    Ssn(mid as u16)
}

fn part_of((stream, unordered, mid): Key, pieces: &mut Fragments) -> ReceivedPart {
    ReceivedPart {
        stream,
        ppid: pieces.ppid(),
        unordered,
        ssn: number(mid),
        tsn: pieces.first_tsn(),
        begins: false,
        ends: false,
        payload: pieces.take_ready(),
    }
}

fn whole_of((stream, unordered, mid): Key, pieces: Fragments) -> ReceivedPart {
    ReceivedPart::whole(ReceivedMessage {
        stream,
        ppid: pieces.ppid(),
        unordered,
        ssn: number(mid),
        tsn: pieces.first_tsn(),
        payload: pieces.into_message(),
    })
}

/// Describes a message that was partially delivered and whose end will not arrive.
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
