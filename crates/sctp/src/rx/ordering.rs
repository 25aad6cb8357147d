//! Ordered delivery: complete messages are buffered until the preceding messages of their stream
//! are delivered (RFC 9260 §6.6), or until a partial delivery on their stream ends.

mod contiguous;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::Nanos;
use anabranch_wire::serial::Mid;
use anabranch_wire::{Ssn, Tsn};

use super::message::ReceivedMessage;
use super::sort_keys::{NumberKey, TsnKey};
use crate::lazy_box::LazyBox;
use crate::stream_set::StreamSet;
use crate::stream_table::StreamTable;
use crate::work_counter;
use contiguous::Contiguous;

/// Complete message, with the time at which it became complete.
#[derive(Debug)]
pub(super) struct Whole {
    pub message: ReceivedMessage,
    pub since: Nanos,
    /// Number of the message in its stream: see [`Order`].
    pub number: Mid,
    /// Whether the message's slices keep little more memory alive than their own bytes.
    pub compact: bool,
}

impl Whole {
    /// TSN of the last fragment, if the message was received as DATA.
    fn last(&self) -> Tsn {
        let others = self.message.payload.chunks().saturating_sub(1) as u32;
        self.message.tsn.add(others)
    }
}

/// Message in partial delivery: some parts were delivered, but not the last one.
#[derive(Debug, Default)]
struct Open {
    unordered: bool,
    /// First TSNs of unordered messages that were completed in the meantime.
    behind: BTreeSet<TsnKey>,
}

/// Delivery state of all inbound streams. A stream that has delivered a message occupies only the
/// number of its next message. Buffered messages of all streams share one store, so that idle
/// streams need no further memory.
///
/// Numbers are message identifiers, or stream sequence numbers in the upper half of 32 bits, so
/// that both wrap around at the same value.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Upper 16 bits of the next number of each stream.
    next: StreamTable<u16>,
    /// Lower 16 bits of the next numbers; only if messages are interleaved.
    next_low: Option<Box<StreamTable<u16>>>,
    /// Most of the buffered messages: see [`Contiguous`].
    row: Contiguous,
    /// Buffered messages that are not in `row`, by the TSNs of their first fragments.
    waiting: LazyBox<BTreeMap<TsnKey, Whole>>,
    /// Keys in `waiting` of the ordered messages, by stream and number.
    numbers: LazyBox<BTreeMap<NumberKey, Tsn>>,
    /// Set of all streams in `numbers`; it may also contain streams that are no longer in
    /// `numbers`.
    streams: Option<Box<StreamSet>>,
    open: LazyBox<BTreeMap<u16, Open>>,
}

impl Order {
    /// Number of buffered messages of a stream.
    #[cfg(test)]
    fn waiting_on(&self, stream: u16) -> usize {
        let of_it = |waiting: &&Whole| waiting.message.stream == stream;
        self.row.count(stream) + self.waiting.values().filter(of_it).count()
    }

    /// Whether a message or its parts can be delivered now: it is unordered or the next of its
    /// stream, and no other message of the stream is in partial delivery.
    #[inline(always)]
    pub fn is_next(&self, stream: u16, unordered: bool, number: Mid) -> bool {
        self.opened(stream).is_none() && (unordered || number == self.next(stream))
    }

    /// Number of the next message of a stream.
    #[inline(always)]
    pub fn next(&self, stream: u16) -> Mid {
        let high = self.next.get(stream).copied().unwrap_or_default();
        let low = match &self.next_low {
            None => 0,
            Some(low) => low.get(stream).copied().unwrap_or_default(),
        };
        Mid(u32::from(high) << 16 | u32::from(low))
    }

    #[inline(always)]
    fn set_next(&mut self, stream: u16, next: Mid) {
        *self.next.entry(stream) = (next.0 >> 16) as u16;
        if let Some(low) = &mut self.next_low {
            *low.entry(stream) = next.0 as u16;
        }
    }

    /// Successor of `number`.
    #[inline(always)]
    fn after(&self, number: Mid) -> Mid {
        match self.next_low {
            None => number.add(1 << 16),
            Some(_) => number.next(),
        }
    }

    /// Sets whether numbers are message identifiers (interleaving).
    pub fn expect_interleaved(&mut self, interleaved: bool) {
        self.next_low = interleaved.then(Box::default);
    }

    /// Whether a message of the stream is in partial delivery.
    pub fn is_open(&self, stream: u16) -> bool {
        self.opened(stream).is_some()
    }

    #[inline]
    fn opened(&self, stream: u16) -> Option<&Open> {
        if self.open.is_empty() {
            return None;
        }
        self.open.get(&stream)
    }

    /// Starts partial delivery of a message of the stream for which [`Order::is_next`] is true.
    pub fn open(&mut self, stream: u16, unordered: bool) {
        let open = Open {
            unordered,
            behind: BTreeSet::new(),
        };
        self.open.make().insert(stream, open);
    }

    /// Ends the partial delivery of the message that was [opened](Order::open). Passes the messages
    /// that waited for its end to `deliver`.
    pub fn close(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        let Some(open) = self.open.change(|it| it.remove(&stream)).flatten() else {
            return;
        };
        if !open.unordered {
            self.set_next(stream, self.after(self.next(stream)));
        }
        for first in open.behind {
            if let Some(waiting) = self.waiting.change(|it| it.remove(&first)).flatten() {
                deliver(waiting);
            }
        }
        self.deliver_waiting(stream, deliver);
    }

    /// Passes complete messages whose turn has come to `deliver`.
    fn deliver_waiting(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        while self.has_ordered() {
            let next = self.next(stream);
            let whole = match self.row.take(stream, next) {
                None => self.take_apart(NumberKey::new(stream, next)),
                whole => whole,
            };
            let Some(whole) = whole else { return };
            self.set_next(stream, self.after(next));
            deliver(whole);
        }
    }

    /// Removes a message that is not in the run.
    fn take_apart(&mut self, number: NumberKey) -> Option<Whole> {
        let first = self.numbers.change(|it| it.remove(&number)).flatten()?;
        if self.numbers.is_empty() {
            self.streams = None;
        }
        self.waiting
            .change(|it| it.remove(&TsnKey(first)))
            .flatten()
    }

    /// Delivers a complete unordered message now, or after the message in partial delivery.
    pub fn insert_unordered(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) {
        let stream = whole.message.stream;
        if self.opened(stream).is_none() {
            return deliver(whole);
        }
        self.wait_behind(whole);
    }

    /// Unused capacity of the run, in bytes.
    #[inline(always)]
    pub fn spare(&self) -> usize {
        self.row.spare()
    }

    /// Releases most of the unused capacity.
    pub fn compact(&mut self) {
        self.row.compact();
    }

    /// Whether any ordered message is buffered.
    #[inline(always)]
    fn has_ordered(&self) -> bool {
        !self.row.is_empty() || !self.numbers.is_empty()
    }

    /// Whether an ordered message with this number can be buffered: no partial delivery is in
    /// progress, and the number is neither past nor in use.
    #[inline]
    pub fn may_wait(&self, stream: u16, number: Mid) -> bool {
        let next = self.next(stream);
        self.open.is_empty() && number.gt(next) && !self.waits(stream, number)
    }

    /// Whether an ordered message with this number is buffered.
    #[inline]
    pub fn waits(&self, stream: u16, number: Mid) -> bool {
        self.row.contains(stream, number)
            || (!self.numbers.is_empty()
                && self.numbers.contains_key(&NumberKey::new(stream, number)))
    }

    /// Buffers an ordered message for which [`Self::may_wait`] is true.
    #[inline]
    pub fn wait_in_order(&mut self, whole: Whole) {
        if let Some(whole) = self.row.append(whole) {
            self.wait_apart(whole);
        }
    }

    /// Like [`Self::wait_in_order`], but stores the message outside of the run.
    fn wait_apart(&mut self, whole: Whole) {
        let number = NumberKey::new(whole.message.stream, whole.number);
        self.numbers.make().insert(number, whole.message.tsn);
        let streams = self.streams.get_or_insert_default();
        streams.insert(whole.message.stream);
        self.wait(whole);
    }

    /// Moves the messages of the run to the other buffered messages.
    fn break_row(&mut self) {
        while let Some(whole) = self.row.take_first() {
            self.wait_apart(whole);
        }
    }

    fn wait(&mut self, whole: Whole) {
        let compact = true;
        let first = TsnKey(whole.message.tsn);
        self.waiting
            .make()
            .insert(first, Whole { compact, ..whole });
    }

    /// Whether no ordered message is buffered and no partial delivery is in progress, so that no
    /// delivery can release another message.
    #[inline(always)]
    pub fn has_nothing_waiting(&self) -> bool {
        !self.has_ordered() && self.open.is_empty()
    }

    /// Counts an ordered message as delivered if it is the next of its stream; returns whether it
    /// is. Requires [`Self::has_nothing_waiting`], and no interleaving.
    #[inline(always)]
    pub fn passes(&mut self, stream: u16, ssn: Ssn) -> bool {
        debug_assert!(self.has_nothing_waiting(), "that was asked");
        match self.next.get_mut(stream) {
            Some(next) if *next == ssn.0 => {
                *next = ssn.next().0;
                true
            }
            _ => false,
        }
    }

    /// Records the delivery of the ordered message with this number, for which [`Order::is_next`]
    /// is true. The caller must call [`Self::go_on`] next.
    #[inline(always)]
    pub fn pass(&mut self, stream: u16, number: Mid) {
        self.set_next(stream, self.after(number));
    }

    /// Passes the messages that waited for the delivered message to `deliver`.
    #[inline(always)]
    pub fn go_on(&mut self, stream: u16, deliver: impl FnMut(Whole)) {
        if self.has_ordered() {
            self.deliver_waiting(stream, deliver);
        }
    }

    /// Buffers a complete ordered message, and passes all messages that are now deliverable to
    /// `deliver`, in order. Returns `false` and drops the message if its number is already in use,
    /// which is an error of the peer.
    pub fn insert(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) -> bool {
        let (stream, number) = (whole.message.stream, whole.number);
        if self.is_next(stream, false, number) {
            self.pass(stream, number);
            deliver(whole);
            self.go_on(stream, deliver);
            return true;
        }
        let next = self.next(stream);
        let is_open = self.opened(stream).is_some_and(|open| !open.unordered);
        if !number.ge(next) || (is_open && number == next) || self.waits(stream, number) {
            return false;
        }
        self.wait_in_order(whole);
        true
    }

    /// Skips the missing messages of the stream up to `number`, which will not arrive (RFC 3758
    /// §3.6). Passes buffered messages up to `number` to `deliver` in order, and then the messages
    /// that can follow them. Returns `false` if `number` is already past, or if one of the skipped
    /// messages is in partial delivery.
    pub fn skip(&mut self, stream: u16, number: Mid, mut deliver: impl FnMut(Whole)) -> bool {
        let next = self.next(stream);
        if !number.ge(next) || self.opened(stream).is_some_and(|open| !open.unordered) {
            return false;
        }
        let waiting = self.take_span(stream, next, number);
        self.set_next(stream, self.after(number));
        match self.opened(stream) {
            None => {
                waiting.into_iter().for_each(&mut deliver);
                self.deliver_waiting(stream, deliver);
            }
            // Deliver these messages after the unordered message in partial delivery.
            Some(_) => waiting.into_iter().for_each(|it| self.wait_behind(it)),
        }
        true
    }

    /// Buffers a message until the partial delivery on its stream ends.
    fn wait_behind(&mut self, whole: Whole) {
        if let Some(open) = self.open.make().get_mut(&whole.message.stream) {
            open.behind.insert(TsnKey(whole.message.tsn));
            self.wait(whole);
        }
    }

    /// Removes the buffered messages of a stream with numbers from `from` to `to`, in order.
    fn take_span(&mut self, stream: u16, from: Mid, to: Mid) -> Vec<Whole> {
        let place = |number: Mid| number.distance_from(from);
        let apart = self.apart(stream, from, to).into_iter();
        let mut taken: Vec<_> = apart.filter_map(|it| self.take_apart(it)).collect();
        let is_meant = |it: Mid| place(it) <= place(to);
        while self.row.front_on(stream).is_some_and(is_meant) {
            taken.extend(self.row.take_first());
        }
        taken.sort_by_key(|it| place(it.number));
        work_counter::count(taken.len());
        taken
    }

    /// Buffered messages in this range that are not in the run, in order.
    fn apart(&self, stream: u16, from: Mid, to: Mid) -> Vec<NumberKey> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        // The range is nearly always empty, so a scan is faster than a search for its end.
        let span = |from: Mid, to: Mid| {
            let [from, to] = [from, to].map(|it| NumberKey::new(stream, it));
            let behind = self.numbers.range(from..).map(|(at, _)| *at);
            behind.take_while(move |at| *at <= to)
        };
        if from.0 <= to.0 {
            return span(from, to).collect();
        }
        span(from, Mid(u32::MAX)).chain(span(Mid(0), to)).collect()
    }

    /// Restarts the stream with number 0. Buffered messages are passed to `deliver` in order,
    /// because the peer has left out the messages before them.
    pub fn reset(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        work_counter::count(1);
        let next = self.next(stream);
        // This is checked first, because a peer may list hundreds of streams in one packet, most of
        // them without buffered messages.
        let may_wait = |it: &StreamSet| it.contains(stream);
        if self.row.front_on(stream).is_some() || self.streams.as_deref().is_some_and(may_wait) {
            let all = self.take_span(stream, next, next.prev());
            all.into_iter().for_each(&mut deliver);
            if let Some(streams) = &mut self.streams {
                streams.remove(stream);
            }
        }
        if next != Mid(0) {
            self.set_next(stream, Mid(0));
        }
    }

    /// Like [`Order::reset`], for all streams.
    pub fn reset_all(&mut self, mut deliver: impl FnMut(Whole)) {
        self.break_row();
        while let Some((first, _)) = self.numbers.first_key_value() {
            self.reset(first.stream, &mut deliver);
        }
        self.next = StreamTable::default();
        self.expect_interleaved(self.next_low.is_some());
    }

    /// Highest TSN of a buffered message, if all were received as DATA.
    pub fn highest(&self) -> Option<Tsn> {
        let apart = self.waiting.last_key_value().map(|(_, it)| it.last());
        let in_row = self.row.highest();
        apart.map(TsnKey).max(in_row.map(TsnKey)).map(|it| it.0)
    }

    /// Drops the message with the highest TSN, which the peer must retransmit.
    pub fn drop_highest(&mut self) -> Option<ReceivedMessage> {
        let highest = self.highest()?;
        if self.row.highest() == Some(highest) {
            return self.row.take_last().map(|whole| whole.message);
        }
        let (first, whole) = self.waiting.change(BTreeMap::pop_last).flatten()?;
        let message = whole.message;
        if !message.unordered {
            let number = NumberKey::new(message.stream, whole.number);
            self.numbers.change(|it| it.remove(&number));
        }
        let open = |it: &mut BTreeMap<u16, Open>| {
            it.get_mut(&message.stream)
                .map(|open| open.behind.remove(&first))
        };
        self.open.change(open);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::rx::message::MessageBytes;

    fn number(ssn: u16) -> Mid {
        Mid(u32::from(ssn) << 16)
    }

    fn whole(stream: u16, ssn: u16) -> Whole {
        let payload = MessageBytes::One(Bytes::from_static(b"m"));
        let message = ReceivedMessage {
            stream,
            ppid: 0,
            unordered: false,
            ssn: Ssn(ssn),
            // The TSN is unique for each number in each stream.
            tsn: Tsn(u32::from(stream) << 16 | u32::from(ssn)),
            payload,
        };
        Whole {
            message,
            since: 0,
            number: number(ssn),
            compact: true,
        }
    }

    #[test]
    fn each_stream_is_delivered_in_its_own_order() {
        let mut order = Order::default();
        let mut seen = Vec::new();
        for (stream, ssn) in [(1, 1), (2, 0), (1, 2), (2, 2), (1, 0), (2, 1)] {
            assert!(order.insert(whole(stream, ssn), |whole| {
                seen.push((whole.message.stream, whole.message.ssn.0))
            }));
        }
        assert_eq!(seen, [(2, 0), (1, 0), (1, 1), (1, 2), (2, 1), (2, 2)]);
        assert_eq!(order.waiting_on(1) + order.waiting_on(2), 0);
    }

    /// Compares with an instance whose run is broken up after each step. Random messages on three
    /// streams arrive early, late or twice, are skipped or dropped, or follow a partial delivery.
    #[test]
    fn a_row_changes_nothing_but_what_it_costs() {
        let mut in_rows = 0;
        for seed in 0..400_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            let mut draw = |below: u32| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) as u32 % below
            };
            let mut orders = [Order::default(), Order::default()];
            // Start shortly before both numbers wrap around.
            let mut sent = [0; 3].map(|_| u16::MAX.wrapping_sub(draw(40) as u16));
            for order in &mut orders {
                for (stream, ssn) in (0..).zip(sent) {
                    *order.next.entry(stream) = ssn;
                }
            }
            let mut tsn = u32::MAX - draw(60);
            let mut late = Vec::new();
            let (streams, lost) = (1 + draw(3), draw(30));
            for turn in 0..150 {
                let stream = draw(streams) as u16;
                let mut told = [Vec::new(), Vec::new()];
                let act = draw(60);
                if act == 0 && orders[0].is_next(stream, false, orders[0].next(stream)) {
                    orders.iter_mut().for_each(|it| it.open(stream, false));
                } else if act == 1 || act == 2 {
                    for (order, told) in orders.iter_mut().zip(&mut told) {
                        order.close(stream, |it| told.push(it.message));
                    }
                    sent[usize::from(stream)] =
                        ((orders[0].next(stream).0 >> 16) as u16).max(sent[usize::from(stream)]);
                } else if act == 3 {
                    let ssn = orders[0].next(stream).add(draw(4) << 16);
                    for (order, told) in orders.iter_mut().zip(&mut told) {
                        order.skip(stream, ssn, |it| told.push(it.message));
                    }
                } else if act == 4 {
                    let dropped = orders.each_mut().map(Order::drop_highest);
                    assert_eq!(dropped[0], dropped[1], "seed {seed}, turn {turn}");
                } else if act == 5 && draw(10) == 0 {
                    for (order, told) in orders.iter_mut().zip(&mut told) {
                        order.reset(stream, |it| told.push(it.message));
                    }
                    sent[usize::from(stream)] = 0;
                } else {
                    let was_late = (draw(4) == 0).then(|| late.pop()).flatten();
                    let (stream, ssn, tsn) = was_late.unwrap_or_else(|| {
                        let next = &mut sent[usize::from(stream)];
                        (*next, tsn) = (next.wrapping_add(1), tsn.wrapping_add(1));
                        (stream, next.wrapping_sub(1), tsn)
                    });
                    if was_late.is_none() && draw(100) < lost {
                        late.insert(draw(late.len() as u32 + 1) as usize, (stream, ssn, tsn));
                        continue;
                    }
                    let taken: Vec<_> = orders
                        .iter_mut()
                        .zip(&mut told)
                        .map(|(order, told)| {
                            let mut whole = whole(stream, ssn);
                            whole.message.tsn = Tsn(tsn);
                            order.insert(whole, |it| told.push(it.message))
                        })
                        .collect();
                    assert_eq!(taken[0], taken[1], "seed {seed}, turn {turn}");
                    if draw(20) == 0 {
                        late.push((stream, ssn, tsn));
                    }
                }
                in_rows += usize::from(!orders[0].row.is_empty());
                orders[1].break_row();
                assert_eq!(told[0], told[1], "seed {seed}, turn {turn}");
                let stands = orders.each_ref().map(|it| {
                    let streams = [0, 1, 2].map(|at| (it.next(at), it.waiting_on(at)));
                    (streams, it.highest(), it.has_nothing_waiting())
                });
                assert_eq!(stands[0], stands[1], "seed {seed}, turn {turn}");
            }
        }
        assert!(in_rows > 10_000, "{in_rows}");
    }

    /// Skipping missing messages must not move buffered messages, whether they are in the run or
    /// not.
    #[test]
    fn passing_over_what_never_came_costs_nothing() {
        let mut order = Order::default();
        for at in 0..5_000 {
            order.insert(whole(1, 100 + at), |_| unreachable!("it waits"));
            order.insert(whole(3 + at, 7), |_| unreachable!("it waits"));
        }
        work_counter::take();
        for at in 0..50 {
            assert!(order.skip(1, number(at), |_| unreachable!("it waits")));
            assert!(order.skip(2, number(at), |_| unreachable!("there is none")));
            order.reset(60_000, |_| unreachable!("there is none"));
        }
        let steps = work_counter::take();
        assert!(steps < 150 * 40, "{steps}");
        assert_eq!(order.waiting_on(1), 5_000);
    }

    #[test]
    fn a_number_used_twice_is_refused_and_numbers_wrap() {
        let mut order = Order::default();
        let mut delivered = 0u32;
        for ssn in (0..=u16::MAX).chain(0..10) {
            assert!(order.insert(whole(0, ssn), |_| delivered += 1));
        }
        assert_eq!(delivered, 65_546);
        assert!(!order.insert(whole(0, 9), |_| unreachable!("already delivered")));
        assert!(order.insert(whole(0, 12), |_| unreachable!("10 is missing")));
        assert!(!order.insert(whole(0, 12), |_| unreachable!("already waiting")));
        assert_eq!(order.waiting_on(0), 1);
    }
}
