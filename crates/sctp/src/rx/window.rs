//! The receive buffer and the window it leaves (RFC 9260 §6.2).
//!
//! Two accounts of the same chunks. The window counts bytes as the profile does, and the peer is told what it leaves.
//! Memory counts what is really held: the data, and what keeping a chunk costs whatever its size. While
//! chunks are not tiny the window is the narrower of the two, and memory never shows.
//!
//! A peer that sends tiny chunks would overrun memory long before the window, since it counts user data alone. What was dropped
//! would come again by T3-rtx only, for nothing behind it arrives that a SACK could report. So while rows of tiny chunks
//! come, the window is told as the user data that memory holds in such chunks, whether any are held or not.

use crate::config::Config;
use crate::maybe::Maybe;
use crate::profile::WhenFull;
use crate::stats::ReceiverCounters;

/// What a chunk costs beside its data while it is held, bytes: its place in a queue or a tree, at worst half filled, and
/// an allocation of its own for the data. Tests hold real allocations against it.
const CHUNK_COST: u64 = 192;
/// A buffer however small holds so many chunks: more than a peer sends at first that has only tiny ones, 300 of 20 bytes in
/// four packets.
const LEAST_CHUNKS: u64 = 320;
/// What they take.
const FLOOR: u64 = LEAST_CHUNKS * CHUNK_COST;
const HARD_FLOOR: u64 = FLOOR + FLOOR / 8;

/// Chunks of fewer bytes fill memory before the window: 192 beside each are more than 5/8 of its data.
const TINY: u32 = 308;
/// So many chunks for each SACK are a row: those that follow are taken to be as large. Fewer, from a peer who says little at
/// a time, do not overrun memory.
const ROW: u32 = 4;
/// Chunks after which sizes are looked at again. While they are tiny it is done for each SACK.
const OFTEN: u64 = 16;
/// What a chunk takes of a packet beside its data: header and padding (RFC 9260 §3.3.1).
const CHUNK_HEADER: u64 = 19;

/// What has come since the beginning: chunks, bytes in them, and SACKs that went. They may wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    chunks: u32,
    bytes: u32,
    sacks: u32,
}

impl Seen {
    pub fn of(statistics: &ReceiverCounters) -> Self {
        Self {
            chunks: statistics.chunks as u32,
            bytes: statistics.bytes as u32,
            sacks: statistics.sacks as u32,
        }
    }

    fn since(self, then: Self) -> Self {
        Self {
            chunks: self.chunks.wrapping_sub(then.chunks),
            bytes: self.bytes.wrapping_sub(then.bytes),
            sacks: self.sacks.wrapping_sub(then.sacks),
        }
    }

    /// Bytes of a chunk on average, up to [`TINY`]; `None`: there was none.
    fn mean(self) -> Option<u32> {
        let mean = self.bytes.checked_div(self.chunks)?;
        Some(mean.clamp(1, TINY))
    }
}

/// What is held, what is free, and what the peer was told.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    size: u32,
    /// Bytes as the profile counts them.
    used: u64,
    /// User data held, read or not by the profile's count, and the chunks it came in.
    data: u64,
    chunks: u32,
    /// Memory that new data may fill.
    soft: u64,
    /// What window and memory together hide memory below, in what the peer is told: `soft`; nothing while rows of tiny chunks come; and
    /// all there is where the profile drops silently.
    shows: u64,
    /// Bytes of datagrams that slices of them keep alive beside the data itself; an upper bound.
    waste: u64,
    /// Windows smaller than this are not advertised; 0 without silly-window avoidance.
    least: u32,
    /// What the last SACK said.
    told: u32,
    /// A window wider than told by so much is told at once.
    step: Maybe,
    /// Bytes of a chunk as they come in rows, on average; [`TINY`] for all that are not tiny.
    typical: u32,
    /// When so many chunks have come, sizes are looked at.
    next_look: u64,
    /// What had come, and gone, at the last look.
    then: Seen,
}

/// Room for so much that nothing is asked of a chunk that fits.
pub(super) struct Plenty {
    bytes: u64,
    memory: u64,
}

impl Plenty {
    /// A chunk with `data` bytes of user data takes its part, `bytes` as the profile counts them; false if it does not fit.
    #[inline(always)]
    pub fn take(&mut self, bytes: u64, data: usize) -> bool {
        let memory = data as u64 + CHUNK_COST;
        let fits = bytes < self.bytes && memory <= self.memory;
        if fits {
            self.bytes -= bytes;
            self.memory -= memory;
        }
        fits
    }
}

impl ReceiveWindow {
    #[inline(always)]
    pub fn new(config: &Config) -> Self {
        let size = config.receive_buffer;
        // RFC 1122 §4.2.3.3, which RFC 9260 §6.2 refers to: half the buffer or one segment.
        let least = if config.profile.silly_window_avoidance {
            (size / 2).min(config.mtu as u32)
        } else {
            0
        };
        let soft = (u64::from(size) * 13 / 8).max(FLOOR);
        Self {
            size,
            used: 0,
            data: 0,
            chunks: 0,
            soft,
            shows: match config.profile.when_full {
                WhenFull::Silent => u64::MAX,
                WhenFull::Answer => soft,
            },
            waste: 0,
            least,
            told: size,
            step: config.window_update.map(u64::from).into(),
            typical: TINY,
            next_look: OFTEN,
            then: Seen::default(),
        }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether no data is held.
    pub fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    fn left(&self) -> u64 {
        u64::from(self.size).saturating_sub(self.used)
    }

    /// Memory that what fills a hole may fill.
    fn hard(&self) -> u64 {
        (u64::from(self.size) * 7 / 4).max(HARD_FLOOR)
    }

    fn least(&self) -> u64 {
        self.least.into()
    }

    /// Whether a SACK would tell about the window that the last one told: within an eighth of the buffer, and closed or not
    /// as it was.
    pub fn is_as_told(&self) -> bool {
        let now = self.to_advertise();
        let close = now.abs_diff(self.told) <= self.size / 8;
        close && (now == 0) == (self.told == 0)
    }

    #[inline]
    fn memory(&self) -> u64 {
        self.data + u64::from(self.chunks) * CHUNK_COST
    }

    /// Whether a chunk with `data` bytes of user data, `bytes` as the profile counts them, is taken. Except where the
    /// profile drops silently, one that fills a hole may overrun the buffer by half as much again and more.
    pub fn admits(&self, bytes: u64, data: u64, fills_hole: bool) -> bool {
        let memory = self.memory() + data + CHUNK_COST;
        if fills_hole && !self.is_silent() {
            return memory <= self.hard();
        }
        bytes <= self.left() && memory <= self.soft
    }

    /// The room for chunks that are taken, as [`Self::admits`] says, and leave a window to advertise: less is given here than that.
    #[inline]
    pub fn plenty(&self) -> Plenty {
        Plenty {
            bytes: self.left().saturating_sub(self.least()),
            memory: (self.soft / 2).saturating_sub(self.memory()),
        }
    }

    /// Whether there is memory for what was held before.
    pub fn has_memory_for(&self, data: u64, chunks: usize) -> bool {
        self.memory() + data + chunks as u64 * CHUNK_COST <= self.hard()
    }

    /// A chunk is held.
    #[inline]
    pub fn take(&mut self, bytes: u64, data: usize) {
        self.used += bytes;
        self.data += data as u64;
        self.chunks += 1;
    }

    /// Data in `chunks` that was held before is held on.
    #[inline]
    pub fn take_over(&mut self, bytes: u64, data: usize, chunks: usize) {
        self.used += bytes;
        self.data += data as u64;
        self.chunks += chunks as u32;
    }

    /// What was held before is held on, all of it, and is all that `before` counts.
    pub fn take_over_all(&mut self, before: &Self) {
        self.used += before.used;
        self.data += before.data;
        self.chunks += before.chunks;
        self.waste += before.waste;
    }

    /// Whether there is memory for all that was held before.
    pub fn has_memory_for_all(&self, before: &Self) -> bool {
        self.has_memory_for(before.data, before.chunks as usize)
    }

    /// What is held counts no longer against the window.
    #[inline]
    pub fn uncount(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "freed more than was taken");
        self.used = self.used.saturating_sub(bytes);
    }

    /// Data that came in `chunks` is no longer held.
    #[inline]
    pub fn forget(&mut self, data: usize, chunks: usize) {
        debug_assert!(data as u64 <= self.data, "forgot more than was held");
        self.data = self.data.saturating_sub(data as u64);
        self.chunks = self.chunks.saturating_sub(chunks as u32);
    }

    /// A chunk that was taken is no longer held.
    pub fn free(&mut self, bytes: u64, data: usize) {
        self.uncount(bytes);
        self.forget(data, 1);
    }

    /// Slices of a datagram are held that is so much longer than they are.
    pub fn wastes(&mut self, bytes: usize) {
        self.waste += bytes as u64;
    }

    /// Nothing is held of datagrams any more but what fills them.
    pub fn wastes_nothing(&mut self) {
        self.waste = 0;
    }

    /// Whether what is held keeps more than twice the buffer alive, `spare` bytes of room in queues among it: then it is
    /// copied out of its datagrams. Slices that nearly fill their datagrams stay what they are.
    #[inline]
    pub fn is_pressed(&self, spare: usize) -> bool {
        // Which is more than what fills a hole may fill.
        let most = (2 * u64::from(self.size)).max(HARD_FLOOR);
        self.memory() + self.data / 8 + self.waste + spare as u64 > most
    }

    /// The a_rwnd to put in a SACK. The peer counts user data against it, and memory counts chunks too: so what memory
    /// leaves is told as the data that fits it in chunks like those held, or in larger ones while few are held.
    #[inline]
    pub fn to_advertise(&self) -> u32 {
        let left = self.left();
        let memory = self.memory();
        // Nearly always memory does not show: little is held, or chunks that fill the window before it.
        let most = if left + 3 * memory <= self.shows {
            left
        } else {
            if self.is_narrow() {
                return self.narrow(left, memory);
            }
            let free = self.soft.saturating_sub(memory);
            if left.min(free) < self.least() {
                return 0;
            }
            self.fitting(free, memory).min(left)
        };
        if left < self.least() {
            0
        } else {
            most.min(u32::MAX.into()) as u32
        }
    }

    /// Whether rows of tiny chunks come: what memory can hold of them bounds the window.
    #[inline(always)]
    pub fn is_narrow(&self) -> bool {
        self.typical < TINY
    }

    fn is_silent(&self) -> bool {
        self.shows == u64::MAX
    }

    /// The a_rwnd while it [is narrow](Self::is_narrow).
    #[cold]
    fn narrow(&self, left: u64, memory: u64) -> u32 {
        let free = self.soft.saturating_sub(memory);
        // What a packet full of such chunks takes is worth a packet, as `least` bytes are of others.
        let typical = u64::from(self.typical);
        let packet = self.least() * (typical + CHUNK_COST) / (typical + CHUNK_HEADER);
        if left.min(free) < self.least() || free < packet.min(self.soft / 4) {
            return 0;
        }
        self.in_typical_chunks(free).min(left).min(u32::MAX.into()) as u32
    }

    /// User data that fits `free` bytes of memory in chunks as they come.
    fn in_typical_chunks(&self, free: u64) -> u64 {
        let typical = u64::from(self.typical);
        free * typical / (typical + CHUNK_COST)
    }

    /// A SACK is about to be written: looks now and then what the chunks are like that come.
    #[inline(always)]
    pub fn look(&mut self, statistics: &ReceiverCounters) {
        if statistics.chunks >= self.next_look {
            self.look_closer(statistics);
        }
    }

    /// A row tells what comes. A few chunks do where they are large: then the peer has something else to say.
    #[inline(never)]
    fn look_closer(&mut self, statistics: &ReceiverCounters) {
        let seen = Seen::of(statistics);
        let new = seen.since(self.then);
        // That which is about to be written among them.
        let is_row = new.chunks / ROW > new.sacks;
        self.then = seen;
        self.next_look = statistics.chunks + OFTEN;
        let mean = new.mean().filter(|&it| is_row || it == TINY);
        if let Some(mean) = mean
            && !self.is_silent()
        {
            self.typical = mean;
            self.shows = if mean < TINY { 0 } else { self.soft };
        }
        if self.is_narrow() {
            self.next_look = 0;
        }
    }

    /// Whether the next SACK would widen a [narrow](Self::is_narrow) window, since what has come after the last one is not tiny. A peer with
    /// such chunks has no room for a second one.
    #[cold]
    pub fn is_too_narrow(&self, statistics: &ReceiverCounters) -> bool {
        let new = Seen::of(statistics).since(self.then);
        new.mean() == Some(TINY)
    }

    /// User data that fits `free` bytes beside `memory`.
    fn fitting(&self, free: u64, memory: u64) -> u64 {
        if 8 * memory <= 13 * self.data {
            // Of these the window holds fewer than memory does.
            return free;
        }
        let [free, memory, data, soft] = [free, memory, self.data, self.soft].map(u128::from);
        let in_such_chunks = free * data / memory;
        let while_few = free * soft.saturating_sub(2 * memory) / soft;
        in_such_chunks.max(while_few) as u64
    }

    /// The peer has been told this window.
    pub fn advertised(&mut self, a_rwnd: u32) {
        self.told = a_rwnd;
    }

    /// The peer believes the window closed, and it is open; or much narrower than it is, where that is to be told.
    #[inline(always)]
    pub fn update_is_worth_a_sack(&self) -> bool {
        // Asked for every message: nearly always the window was not closed, and no step is set.
        (self.told == 0 || !self.step.is_none()) && self.is_wider_than_told()
    }

    fn is_wider_than_told(&self) -> bool {
        let open = || self.to_advertise();
        (self.least > 0 && self.told == 0 && open() > 0)
            || self.step.get().is_some_and(|step| {
                u64::from(open()) >= u64::from(self.told).saturating_add(self.as_wide(step))
            })
    }

    /// As much of the widest window as `step` is of the buffer.
    #[inline(always)]
    fn as_wide(&self, step: u64) -> u64 {
        if self.is_narrow() {
            let size = u64::from(self.size);
            let widest = self.in_typical_chunks(self.soft).min(size);
            return (step * widest / size.max(1)).max(1);
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(receive_buffer: u32) -> ReceiveWindow {
        ReceiveWindow::new(&Config {
            receive_buffer,
            window_update: Some(4_000),
            ..Config::default()
        })
    }

    #[test]
    fn a_window_much_wider_than_told_is_told() {
        let mut window = window(10_000);
        window.take(8_000, 8_000);
        window.told = 2_000;
        window.uncount(3_999);
        assert!(!window.update_is_worth_a_sack(), "5,999 against 2,000");
        window.uncount(1);
        assert!(window.update_is_worth_a_sack());
        window.advertised(6_000);
        assert!(!window.update_is_worth_a_sack(), "it was told");
    }

    /// 80,000 bytes: 130,000 of memory for what comes in order, which is 673 chunks, and 140,000 for what fills a hole.
    #[test]
    fn tiny_chunks_close_the_window_before_their_bytes_do() {
        let mut window = window(80_000);
        let mut held = 0;
        while window.admits(1, 1, false) {
            window.take(1, 1);
            held += 1;
        }
        assert_eq!(held, 130_000 / 193);
        assert_eq!(window.to_advertise(), 0);
        (0..100).for_each(|_| window.free(1, 1));
        assert_eq!(window.to_advertise(), (130_000 - 573 * 193) / 193);
        (0..100).for_each(|_| window.take(1, 1));
        while window.admits(1, 1, true) {
            window.take(1, 1);
            held += 1;
        }
        assert_eq!(held, 140_000 / 193);
        window.free(1, 1);
        assert!(window.admits(1, 1, true));
    }

    fn counters(chunks: u64, bytes: u64, sacks: u64) -> ReceiverCounters {
        let mut counters = ReceiverCounters::default();
        (counters.chunks, counters.bytes, counters.sacks) = (chunks, bytes, sacks);
        counters
    }

    /// 130,000 bytes of memory are 673 chunks of one byte, held or not.
    #[test]
    fn rows_of_tiny_chunks_narrow_the_window_before_any_is_held() {
        let mut window = window(80_000);
        window.look(&counters(15, 15, 0));
        assert_eq!(window.to_advertise(), 80_000, "too few to tell");
        window.look(&counters(72, 72, 0));
        assert_eq!(window.to_advertise(), 130_000 / 193);
        // As wide as a step is the twentieth part of it that 4,000 are of 80,000.
        (window.told, window.step) = (600, Maybe::some(4_000));
        assert!(window.update_is_worth_a_sack());
        window.told = 641;
        assert!(!window.update_is_worth_a_sack());
        // A packet of them takes 1,500 * 193 / 20 bytes of memory: there is no window for less.
        let mut held = 0;
        while window.to_advertise() > 0 {
            window.take(1, 1);
            held += 1;
        }
        assert_eq!(held, (130_000 - 14_475) / 193 + 1);
        (0..held).for_each(|_| window.free(1, 1));
        // A few that are larger tell nothing unless they are no longer tiny.
        window.look(&counters(73, 372, 1));
        assert_eq!(window.to_advertise(), 130_000 / 193);
        assert!(!window.is_too_narrow(&counters(74, 679, 2)));
        assert!(window.is_too_narrow(&counters(74, 680, 2)));
        window.look(&counters(74, 680, 2));
        assert_eq!(window.to_advertise(), 80_000);
    }

    /// A peer who sends one a time, and chunks of 308 bytes, which fill the window first.
    #[test]
    fn other_chunks_do_not_narrow_it() {
        let mut window = window(80_000);
        for sent in 1..1_000 {
            window.look(&counters(sent, sent, sent - 1));
            assert_eq!(window.to_advertise(), 80_000);
        }
        let mut window = self::window(80_000);
        for sent in 1..1_000 {
            window.look(&counters(10 * sent, 3_080 * sent, sent - 1));
            assert_eq!(window.to_advertise(), 80_000);
        }
        // A profile that drops silently tells what the papers' simulator tells.
        let config =
            Config::new(crate::profile::Profile::ns2()).with(|it| it.receive_buffer = 80_000);
        let mut window = ReceiveWindow::new(&config);
        for sent in 1..1_000 {
            window.look(&counters(100 * sent, 100 * sent, sent - 1));
            assert_eq!(window.to_advertise(), 80_000);
        }
    }

    /// One small message that nobody has read yet closes hardly anything.
    #[test]
    fn a_few_tiny_chunks_do_not_show() {
        let mut window = window(80_000);
        window.take(20, 20);
        assert_eq!(window.to_advertise(), 80_000 - 20);
        (0..200).for_each(|_| window.take(1, 1));
        // 38,812 of 130,000 in memory: the free 91,188, of which 130,000 - 77,624 parts of 130,000.
        assert_eq!(window.to_advertise(), 36_738);
    }

    /// Chunks of 400 bytes fill the buffer by their bytes: what keeping them costs does not show.
    #[test]
    fn other_chunks_close_it_by_their_bytes() {
        let mut window = window(80_000);
        for held in 0..200u32 {
            assert_eq!(
                window.to_advertise(),
                match 80_000 - 400 * held {
                    left if left < 1500 => 0,
                    left => left,
                }
            );
            assert!(window.admits(400, 400, false));
            window.take(400, 400);
        }
        assert!(!window.admits(400, 400, false));
    }

    /// What is told without a look at memory is what a look at it would tell.
    #[test]
    fn the_short_way_to_the_window_leads_where_the_long_one_does() {
        let mut told = 0;
        for length in [1, 20, 60, 100, 130, 200, 400] {
            let mut window = window(80_000);
            while window.admits(length, length, false) {
                window.take(length, length as usize);
                let (left, memory) = (window.left(), window.memory());
                let fits = window.fitting(window.soft.saturating_sub(memory), memory);
                if left.min(fits) >= window.least() {
                    let expected = left.min(fits);
                    assert_eq!(u64::from(window.to_advertise()), expected, "{length} B");
                    told += 1;
                }
            }
        }
        assert!(told > 1_000, "{told}");
    }

    #[test]
    fn a_window_that_opens_is_never_as_told() {
        let mut window = window(80_000);
        window.take(80_000, 80_000);
        window.advertised(window.to_advertise());
        assert_eq!((window.told, window.is_as_told()), (0, true));
        window.uncount(1_500);
        assert_eq!(window.to_advertise(), 1_500);
        assert!(!window.is_as_told(), "it was closed");
        window.advertised(1_500);
        window.uncount(10_000);
        assert!(window.is_as_told(), "within an eighth of the buffer");
        window.uncount(1);
        assert!(!window.is_as_told());
    }
}
