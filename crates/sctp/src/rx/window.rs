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
    /// A packet that is longer shows that the peer's packets are longer than this side's; with silly-window avoidance.
    longest: usize,
    /// What the last SACK said.
    told: u32,
    /// The bytes of the largest chunk that was dropped for want of room, until a window is advertised that it fits.
    refused: u32,
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
        let (least, longest) = if config.profile.silly_window_avoidance {
            (least_window(size, config.mtu), config.mtu)
        } else {
            (0, usize::MAX)
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
            longest,
            told: size,
            refused: 0,
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
    #[inline(always)]
    pub fn advertised(&mut self, a_rwnd: u32) {
        self.told = a_rwnd;
        if self.refused > 0 {
            self.forget_refused();
        }
    }

    #[cold]
    fn forget_refused(&mut self) {
        if self.told >= self.for_refused() {
            self.refused = 0;
        }
    }

    /// A chunk with `bytes` as the profile counts them finds no room, or is taken back for one that does: the peer has to send it
    /// again, and waits for its retransmission timeout unless it learns earlier that there is room.
    #[cold]
    pub fn refuse(&mut self, bytes: u64) {
        self.refused = self.refused.max(bytes.min(u32::MAX.into()) as u32);
    }

    /// The window that is advertised at once after a chunk was refused: the chunk fits it, or it is as wide as it can be.
    fn for_refused(&self) -> u32 {
        if self.is_narrow() {
            return self.refused.min(self.widest() as u32);
        }
        self.refused.max(self.least).min(self.size)
    }

    /// A packet of so many bytes came. The peer's path MTU may be larger than this side's: a window that is smaller than a segment
    /// of the peer's is a silly one, whatever this side's segments are.
    #[inline(always)]
    pub fn note_packet(&mut self, bytes: usize) {
        if bytes > self.longest {
            self.note_longer(bytes);
        }
    }

    #[cold]
    fn note_longer(&mut self, bytes: usize) {
        self.longest = bytes;
        self.least = least_window(self.size, bytes);
    }

    /// The peer believes the window closed, and it is open; or too narrow for what was refused, and that fits; or much narrower than it
    /// is, where that is to be told.
    #[inline(always)]
    pub fn update_is_worth_a_sack(&self) -> bool {
        // Asked for every message: nearly always the window was not closed, nothing was refused, and no step is set.
        (self.told == 0 || self.refused > 0 || !self.step.is_none()) && self.is_wider_than_told()
    }

    fn is_wider_than_told(&self) -> bool {
        let open = self.to_advertise();
        let avoids_silly = self.least > 0;
        let opens = avoids_silly && self.told == 0 && open > 0;
        let fits_refused = || {
            let need = self.for_refused();
            avoids_silly && self.refused > 0 && self.told < need && open >= need
        };
        opens
            || fits_refused()
            || self.step.get().is_some_and(|step| {
                u64::from(open) >= u64::from(self.told).saturating_add(self.as_wide(step))
            })
    }

    /// The widest window while it [is narrow](Self::is_narrow).
    fn widest(&self) -> u64 {
        self.in_typical_chunks(self.soft).min(self.size.into())
    }

    /// As much of the widest window as `step` is of the buffer.
    #[inline(always)]
    fn as_wide(&self, step: u64) -> u64 {
        if self.is_narrow() {
            return (step * self.widest() / u64::from(self.size).max(1)).max(1);
        }
        step
    }
}

/// Half the buffer, or one segment of `mtu` (RFC 1122 §4.2.3.3, which RFC 9260 §6.2 refers to).
fn least_window(size: u32, mtu: usize) -> u32 {
    (size / 2).min(u32::try_from(mtu).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
