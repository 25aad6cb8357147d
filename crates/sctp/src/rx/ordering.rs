//! Ordered delivery: whole messages wait here for the ones before them in their stream (RFC 9260 §6.6), and for the end
//! of one of their stream that is delivered in parts.

mod by_ssn;
mod contiguous;

use std::collections::{BTreeMap, BTreeSet};

use anabranch_transport::Nanos;
use anabranch_wire::{Ssn, Tsn};

use super::message::ReceivedMessage;
use super::sort_keys::{SsnKey, TsnKey};
use crate::seldom::Seldom;
use crate::stream_table::StreamTable;
use by_ssn::BySsn;
use contiguous::Contiguous;

/// A message that is whole, and when it became so.
#[derive(Debug)]
pub(super) struct Whole {
    pub message: ReceivedMessage,
    pub since: Nanos,
    /// The TSN of its last fragment.
    pub last: Tsn,
    /// It keeps hardly more alive than its bytes.
    pub compact: bool,
}

#[derive(Debug)]
struct Waiting {
    message: ReceivedMessage,
    since: Nanos,
}

impl Waiting {
    fn whole(self, last: Tsn) -> Whole {
        Whole {
            message: self.message,
            since: self.since,
            last,
            compact: true,
        }
    }
}

/// A message of which a part was delivered, and not yet the end.
#[derive(Debug, Default)]
struct Open {
    unordered: bool,
    /// Unordered messages that came whole since, by their last TSNs.
    behind: BTreeSet<TsnKey>,
}

/// The streams of the peer. What a stream takes is the number of its next message, once one was delivered; what waits is in
/// one place for all streams, so that a stream that was used and read leaves nothing else.
#[derive(Debug, Default)]
pub(super) struct Order {
    next: StreamTable<Ssn>,
    /// Most of what waits: see there.
    row: Contiguous,
    /// What waits and is not in the row, by the TSNs of the last fragments.
    waiting: Seldom<BTreeMap<TsnKey, Waiting>>,
    /// The ordered ones among them.
    numbers: Seldom<BySsn>,
    open: Seldom<BTreeMap<u16, Open>>,
}

impl Order {
    /// Messages of a stream that wait.
    #[cfg(test)]
    fn waiting_on(&self, stream: u16) -> usize {
        let of_it = |waiting: &&Waiting| waiting.message.stream == stream;
        self.row.count(stream) + self.waiting.values().filter(of_it).count()
    }

    /// Whether the message, or its parts, can be delivered now: it is unordered or the next of its stream, of which no
    /// other message is being delivered.
    #[inline(always)]
    pub fn is_next(&self, stream: u16, unordered: bool, ssn: Ssn) -> bool {
        self.opened(stream).is_none() && (unordered || ssn == self.next(stream))
    }

    /// The next number of a stream.
    #[inline(always)]
    pub fn next(&self, stream: u16) -> Ssn {
        self.next.get(stream).copied().unwrap_or_default()
    }

    #[inline]
    fn opened(&self, stream: u16) -> Option<&Open> {
        if self.open.is_empty() {
            return None;
        }
        self.open.get(&stream)
    }

    /// A message of the stream, one that [`Order::is_next`], begins to be delivered in parts.
    pub fn open(&mut self, stream: u16, unordered: bool) {
        let open = Open {
            unordered,
            behind: BTreeSet::new(),
        };
        self.open.make().insert(stream, open);
    }

    /// The end of the message that was [opened](Order::open) is delivered; gives what waited for it to `deliver`.
    pub fn close(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        let Some(open) = self.open.change(|it| it.remove(&stream)).flatten() else {
            return;
        };
        if !open.unordered {
            let next = self.next.entry(stream);
            *next = next.next();
        }
        for last in open.behind {
            if let Some(waiting) = self.waiting.change(|it| it.remove(&last)).flatten() {
                deliver(waiting.whole(last.0));
            }
        }
        self.deliver_waiting(stream, deliver);
    }

    /// Gives whole messages that are next to `deliver`.
    fn deliver_waiting(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        while self.has_ordered() {
            let next = self.next.entry(stream);
            if let Some(whole) = self.row.take(stream, *next) {
                *next = next.next();
                deliver(whole);
                continue;
            }
            let Some(last) = (self.numbers)
                .change(|it| it.remove(SsnKey::new(stream, *next)))
                .flatten()
            else {
                return;
            };
            *next = next.next();
            if let Some(waiting) = self.waiting.change(|it| it.remove(&TsnKey(last))).flatten() {
                deliver(waiting.whole(last));
            }
        }
    }

    /// Takes a whole unordered message: to `deliver` at once, or after the end of one that is being delivered.
    pub fn insert_unordered(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) {
        let stream = whole.message.stream;
        if self.opened(stream).is_none() {
            return deliver(whole);
        }
        self.wait_behind(whole);
    }

    /// Bytes of room for messages that wait in which none does.
    #[inline(always)]
    pub fn spare(&self) -> usize {
        self.row.spare()
    }

    /// Gives back most of that.
    pub fn compact(&mut self) {
        self.row.compact();
    }

    /// Whether ordered messages wait.
    #[inline(always)]
    fn has_ordered(&self) -> bool {
        !self.row.is_empty() || !self.numbers.is_empty()
    }

    /// Whether an ordered message with this number has to wait for others, and may: nothing is being delivered in parts, and the number is
    /// neither behind nor used already.
    #[inline]
    pub fn may_wait(&self, stream: u16, ssn: Ssn) -> bool {
        let next = self.next(stream);
        self.open.is_empty() && ssn.gt(next) && !self.waits(stream, ssn)
    }

    /// Whether an ordered message with this number waits.
    #[inline]
    fn waits(&self, stream: u16, ssn: Ssn) -> bool {
        self.row.contains(stream, ssn)
            || (!self.numbers.is_empty() && self.numbers.contains(SsnKey::new(stream, ssn)))
    }

    /// An ordered message waits for others, as it [may](Self::may_wait).
    #[inline]
    pub fn wait_in_order(&mut self, whole: Whole) {
        if let Some(whole) = self.row.append(whole) {
            self.wait_apart(whole);
        }
    }

    /// As [`Self::wait_in_order`], not in the row.
    fn wait_apart(&mut self, whole: Whole) {
        let number = SsnKey::new(whole.message.stream, whole.message.ssn);
        self.numbers.make().insert(number, whole.last);
        self.wait(whole);
    }

    /// What is in the row waits with the others.
    fn break_row(&mut self) {
        while let Some(whole) = self.row.take_first() {
            self.wait_apart(whole);
        }
    }

    fn wait(&mut self, whole: Whole) {
        let waiting = Waiting {
            message: whole.message,
            since: whole.since,
        };
        self.waiting.make().insert(TsnKey(whole.last), waiting);
    }

    /// Whether no ordered message waits for others and none is delivered in parts, so that nothing follows from one that is delivered.
    #[inline(always)]
    pub fn waits_for_nothing(&self) -> bool {
        !self.has_ordered() && self.open.is_empty()
    }

    /// Lets an ordered message pass that is the next of its stream, where [`Self::waits_for_nothing`]; whether it passed.
    #[inline(always)]
    pub fn passes(&mut self, stream: u16, ssn: Ssn) -> bool {
        debug_assert!(self.waits_for_nothing(), "that was asked");
        match self.next.get_mut(stream) {
            Some(next) if *next == ssn => {
                *next = ssn.next();
                true
            }
            _ => false,
        }
    }

    /// An ordered message that [`Order::is_next`], with this number, is delivered; then the stream [goes on](Self::go_on).
    #[inline(always)]
    pub fn pass(&mut self, stream: u16, ssn: Ssn) {
        *self.next.entry(stream) = ssn.next();
    }

    /// Gives those messages to `deliver` that waited for the one before them.
    #[inline(always)]
    pub fn go_on(&mut self, stream: u16, deliver: impl FnMut(Whole)) {
        if self.has_ordered() {
            self.deliver_waiting(stream, deliver);
        }
    }

    /// Takes a whole ordered message, and gives what can be delivered now to `deliver`, in order. False if its number was
    /// used already: the peer contradicts itself, and the message is dropped.
    pub fn insert(&mut self, whole: Whole, mut deliver: impl FnMut(Whole)) -> bool {
        let (stream, ssn) = (whole.message.stream, whole.message.ssn);
        if self.is_next(stream, false, ssn) {
            self.pass(stream, ssn);
            deliver(whole);
            self.go_on(stream, deliver);
            return true;
        }
        let next = self.next(stream);
        let is_open = self.opened(stream).is_some_and(|open| !open.unordered);
        if !ssn.ge(next) || (is_open && ssn == next) {
            return false;
        }
        if self.waits(stream, ssn) {
            return false;
        }
        self.wait_in_order(whole);
        true
    }

    /// The stream's messages up to number `ssn` that are missing will not come: gives those that wait to `deliver`, in order, and
    /// what then is next (RFC 3758 §3.6). False if the number is behind, or one of them is being delivered in parts.
    pub fn skip(&mut self, stream: u16, ssn: Ssn, mut deliver: impl FnMut(Whole)) -> bool {
        let next = self.next(stream);
        if !ssn.ge(next) || self.opened(stream).is_some_and(|open| !open.unordered) {
            return false;
        }
        let waiting = self.take_span(stream, next, ssn);
        *self.next.entry(stream) = ssn.next();
        match self.opened(stream) {
            None => {
                waiting.into_iter().for_each(&mut deliver);
                self.deliver_waiting(stream, deliver);
            }
            // They follow the end of the unordered one that is being delivered.
            Some(_) => waiting.into_iter().for_each(|it| self.wait_behind(it)),
        }
        true
    }

    /// A message waits for the end of the one of its stream that is being delivered.
    fn wait_behind(&mut self, whole: Whole) {
        if let Some(open) = self.open.make().get_mut(&whole.message.stream) {
            open.behind.insert(TsnKey(whole.last));
            self.wait(whole);
        }
    }

    /// Takes out the messages of a stream that wait and have numbers from `from` to `to`, in the order of these.
    fn take_span(&mut self, stream: u16, from: Ssn, to: Ssn) -> Vec<Whole> {
        let place = |number: Ssn| number.0.wrapping_sub(from.0);
        let span = place(to);
        let mut apart = self.apart(stream, from, to).into_iter().peekable();
        let mut taken = Vec::new();
        loop {
            let in_row = self
                .row
                .front_on(stream)
                .map(place)
                .filter(|it| *it <= span);
            let other = apart.peek().map(|(number, _)| place(number.number()));
            match (in_row, other) {
                (None, None) => return taken,
                (Some(place), other) if other.is_none_or(|it| place < it) => {
                    taken.extend(self.row.take_first());
                }
                _ => {
                    let Some((number, last)) = apart.next() else {
                        return taken;
                    };
                    self.numbers.change(|it| it.remove(number));
                    let waiting = self.waiting.change(|it| it.remove(&TsnKey(last))).flatten();
                    taken.extend(waiting.map(|it| it.whole(last)));
                }
            }
        }
    }

    /// The messages of a stream with such numbers that are not in the row, in their order.
    fn apart(&self, stream: u16, from: Ssn, to: Ssn) -> Vec<(SsnKey, Tsn)> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        // What a range ends at is found sooner by walking: nearly always it is empty.
        let span = |from: u16, to: u16| {
            let [from, to] = [from, to].map(|it| SsnKey::new(stream, Ssn(it)));
            let behind = self.numbers.from(from);
            behind.take_while(move |(at, _)| *at <= to)
        };
        if from.0 <= to.0 {
            return span(from.0, to.0).collect();
        }
        span(from.0, u16::MAX).chain(span(0, to.0)).collect()
    }

    /// The stream begins anew with number 0. What waits for messages that the peer has left out goes to `deliver`, in order.
    pub fn reset(&mut self, stream: u16, mut deliver: impl FnMut(Whole)) {
        let next = self.next(stream);
        // A peer lists hundreds of streams in a packet, of which none need have anything that waits.
        if self.row.front_on(stream).is_some() || self.numbers.may_have(stream) {
            let all = self.take_span(stream, next, Ssn(next.0.wrapping_sub(1)));
            all.into_iter().for_each(&mut deliver);
            self.numbers.change(|it| it.none_on(stream));
        }
        if next != Ssn::default() {
            *self.next.entry(stream) = Ssn::default();
        }
    }

    /// As [`Order::reset`], all streams.
    pub fn reset_all(&mut self, mut deliver: impl FnMut(Whole)) {
        self.break_row();
        while let Some(stream) = self.numbers.first_stream() {
            self.reset(stream, &mut deliver);
        }
        self.next = StreamTable::default();
    }

    /// The highest TSN of a message that waits.
    pub fn highest(&self) -> Option<Tsn> {
        let apart = self.waiting.last_key_value().map(|(last, _)| *last);
        let in_row = self.row.highest().map(TsnKey);
        apart.max(in_row).map(|last| last.0)
    }

    /// Drops the message with the highest TSN, which will have to come again.
    pub fn drop_highest(&mut self) -> Option<ReceivedMessage> {
        let highest = self.highest()?;
        if self.row.highest() == Some(highest) {
            return self.row.take_last().map(|whole| whole.message);
        }
        let (last, waiting) = self.waiting.change(BTreeMap::pop_last).flatten()?;
        let message = waiting.message;
        if !message.unordered {
            let number = SsnKey::new(message.stream, message.ssn);
            self.numbers.change(|it| it.remove(number));
        } else {
            let open = |it: &mut BTreeMap<u16, Open>| {
                it.get_mut(&message.stream)
                    .map(|open| open.behind.remove(&last))
            };
            self.open.change(open);
        }
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::rx::message::MessageBytes;

    fn whole(stream: u16, ssn: u16) -> Whole {
        let payload = MessageBytes::One(Bytes::from_static(b"m"));
        let message = ReceivedMessage {
            stream,
            ppid: 0,
            unordered: false,
            ssn: Ssn(ssn),
            tsn: Tsn(0),
            payload,
        };
        Whole {
            message,
            since: 0,
            // Each number in each stream a TSN of its own.
            last: Tsn(u32::from(stream) << 16 | u32::from(ssn)),
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

    /// Against one whose row is broken after each step, so that all waits as if there was none: over random messages of three streams that
    /// come early, late, twice, are skipped, dropped, or behind one that is delivered in parts.
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
            // Near the wrap of both numbers.
            let mut sent = [0; 3].map(|_| u16::MAX.wrapping_sub(draw(40) as u16));
            for order in &mut orders {
                for (stream, ssn) in (0..).zip(sent) {
                    *order.next.entry(stream) = Ssn(ssn);
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
                        orders[0].next(stream).0.max(sent[usize::from(stream)]);
                } else if act == 3 {
                    let ssn = Ssn(orders[0].next(stream).0.wrapping_add(draw(4) as u16));
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
                            let whole = Whole {
                                last: Tsn(tsn),
                                ..whole(stream, ssn)
                            };
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
                    (streams, it.highest(), it.waits_for_nothing())
                });
                assert_eq!(stands[0], stands[1], "seed {seed}, turn {turn}");
            }
        }
        assert!(in_rows > 10_000, "{in_rows}");
    }

    /// What a peer passes over is not there: nothing that waits is moved for it, in a row or not.
    #[test]
    fn passing_over_what_never_came_costs_nothing() {
        let mut order = Order::default();
        for at in 0..5_000 {
            order.insert(whole(1, 100 + at), |_| unreachable!("it waits"));
            order.insert(whole(3 + at, 7), |_| unreachable!("it waits"));
        }
        super::super::work_counter::take();
        for at in 0..50 {
            assert!(order.skip(1, Ssn(at), |_| unreachable!("it waits")));
            assert!(order.skip(2, Ssn(at), |_| unreachable!("there is none")));
            order.reset(60_000, |_| unreachable!("there is none"));
        }
        let steps = super::super::work_counter::take();
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
