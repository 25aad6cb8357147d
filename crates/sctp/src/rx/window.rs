//! The receive buffer and the window it advertises (RFC 9260 §6.2).
//!
//! The same chunks are counted twice. The window counts bytes as the profile does, and the peer is
//! notified of the rest. Memory counts the data and a fixed overhead per chunk. Unless chunks are
//! tiny the window is the stricter limit, and memory has no effect.
//!
//! A peer that sends tiny chunks would exceed memory long before the window, because it counts user
//! data alone. Dropped chunks would return by T3-rtx only, because nothing behind them arrives that
//! a SACK could report. While runs of tiny chunks arrive, the window is therefore the user data
//! that fits memory in such chunks, whether any are buffered or not.

use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::profile::WhenFull;
use crate::stats::ReceiverCounters;

/// Memory of a buffered chunk in addition to its data, bytes: its slot in a queue or tree, half
/// filled at worst, and an allocation for the data. Tests compare this with real allocations.
const CHUNK_COST: u64 = 192;
/// Chunks that fit even the smallest buffer: more than a peer with tiny chunks sends at first, 300
/// of 20 bytes in four packets.
const MIN_CHUNKS: u64 = 320;
/// Memory of these chunks.
const FLOOR: u64 = MIN_CHUNKS * CHUNK_COST;
const HARD_FLOOR: u64 = FLOOR + FLOOR / 8;

/// Chunks of fewer bytes fill memory before the window, because their overhead of 192 exceeds 5/8
/// of the data.
const TINY: u32 = 308;
/// Chunks per SACK that form a run: the following ones are assumed to be as large. Fewer, from a
/// peer that sends little at a time, do not exceed memory.
const ROW: u32 = 4;
/// Chunks after which sizes are examined again. While they are tiny this is done for each SACK.
const EXAMINATION_INTERVAL: u64 = 16;
/// Packet bytes per chunk in addition to its data: header and padding (RFC 9260 §3.3.1).
const CHUNK_HEADER: u64 = 19;

/// Totals since the start: chunks, their bytes, and SACKs sent. They may wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArrivalTotals {
    chunks: u32,
    bytes: u32,
    sacks: u32,
}

impl ArrivalTotals {
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

    /// Average bytes of a chunk, at most [`TINY`]; `None` without chunks.
    fn mean(self) -> Option<u32> {
        let mean = self.bytes.checked_div(self.chunks)?;
        Some(mean.clamp(1, TINY))
    }
}

/// Buffered data, free space and the advertised window.
#[derive(Debug, Default)]
pub(super) struct ReceiveWindow {
    size: u32,
    /// Bytes as the profile counts them.
    used: u64,
    /// Buffered user data, read or not by the profile's count, and its chunks.
    data: u64,
    chunks: u32,
    /// Memory limit for new data.
    soft: u64,
    /// Limit below which memory does not affect the advertised window: `soft`; 0 while runs of tiny
    /// chunks arrive; unlimited if the profile drops silently.
    shows: u64,
    /// Upper bound of the datagram bytes that slices keep alive in addition to the data.
    waste: u64,
    /// Smaller windows are not advertised; 0 without silly-window avoidance.
    least: u32,
    /// A longer packet shows that the peer's packets are longer than this side's; with silly-window
    /// avoidance.
    longest: usize,
    /// Window of the last SACK.
    last_advertised: u32,
    /// Bytes of the largest chunk dropped for lack of space, until an advertised window fits it.
    refused: u32,
    /// A window that is wider than advertised by this much is advertised at once.
    step: OptionalNanos,
    /// Average bytes of a chunk in runs; [`TINY`] for all that are not tiny.
    typical: u32,
    /// Chunk count at which sizes are examined next.
    next_look: u64,
    /// Totals at the last examination.
    then: ArrivalTotals,
}

/// Space within which a chunk needs no check.
pub(super) struct AmpleWindow {
    bytes: u64,
    memory: u64,
}

impl AmpleWindow {
    /// Takes the space for a chunk with `data` bytes of user data, `bytes` as the profile counts
    /// them. Returns false if it does not fit.
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
            soft,
            shows: match config.profile.receive_buffer_full {
                WhenFull::Silent => u64::MAX,
                WhenFull::Answer => soft,
            },
            least,
            longest,
            last_advertised: size,
            step: config.window_update.map(u64::from).into(),
            typical: TINY,
            next_look: EXAMINATION_INTERVAL,
            ..Self::default()
        }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether no data is buffered.
    pub fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    fn left(&self) -> u64 {
        u64::from(self.size).saturating_sub(self.used)
    }

    /// Memory limit for chunks that fill a hole.
    fn hard(&self) -> u64 {
        (u64::from(self.size) * 7 / 4).max(HARD_FLOOR)
    }

    fn least(&self) -> u64 {
        self.least.into()
    }

    /// Whether a SACK would report about the same window as the last one: within an eighth of the
    /// buffer, and closed or not as before.
    pub fn is_as_advertised(&self) -> bool {
        let now = self.to_advertise();
        let close = now.abs_diff(self.last_advertised) <= self.size / 8;
        close && (now == 0) == (self.last_advertised == 0)
    }

    #[inline]
    fn memory(&self) -> u64 {
        self.data + u64::from(self.chunks) * CHUNK_COST
    }

    /// Whether a chunk with `data` bytes of user data, `bytes` as the profile counts them, is
    /// accepted. Except under profiles that drop silently, one that fills a hole may exceed the
    /// buffer by half as much again and more.
    pub fn admits(&self, bytes: u64, data: u64, fills_hole: bool) -> bool {
        let memory = self.memory() + data + CHUNK_COST;
        if fills_hole && !self.is_silent() {
            return memory <= self.hard();
        }
        bytes <= self.left() && memory <= self.soft
    }

    /// A conservative amount of space for chunks that [`Self::admits`] accepts and that leave a
    /// window to advertise.
    #[inline]
    pub fn plenty(&self) -> AmpleWindow {
        AmpleWindow {
            bytes: self.left().saturating_sub(self.least()),
            memory: (self.soft / 2).saturating_sub(self.memory()),
        }
    }

    /// Whether memory suffices for data of the association before a restart.
    pub fn has_memory_for(&self, data: u64, chunks: usize) -> bool {
        self.memory() + data + chunks as u64 * CHUNK_COST <= self.hard()
    }

    /// Buffers a chunk.
    #[inline]
    pub fn take(&mut self, bytes: u64, data: usize) {
        self.take_over(bytes, data, 1);
    }

    /// Takes over buffered data in `chunks` from before a restart.
    #[inline]
    pub fn take_over(&mut self, bytes: u64, data: usize, chunks: usize) {
        self.used += bytes;
        self.data += data as u64;
        self.chunks += chunks as u32;
    }

    /// Takes over all buffered data that `before` counts.
    pub fn take_over_all(&mut self, before: &Self) {
        self.used += before.used;
        self.data += before.data;
        self.chunks += before.chunks;
        self.waste += before.waste;
    }

    /// Whether memory suffices for all data that `before` counts.
    pub fn has_memory_for_all(&self, before: &Self) -> bool {
        self.has_memory_for(before.data, before.chunks as usize)
    }

    /// Buffered data no longer counts against the window.
    #[inline]
    pub fn uncount(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "freed more than was taken");
        self.used = self.used.saturating_sub(bytes);
    }

    /// Data of `chunks` is no longer buffered.
    #[inline]
    pub fn forget(&mut self, data: usize, chunks: usize) {
        debug_assert!(data as u64 <= self.data, "forgot more than was held");
        self.data = self.data.saturating_sub(data as u64);
        self.chunks = self.chunks.saturating_sub(chunks as u32);
    }

    /// An accepted chunk is no longer buffered.
    pub fn free(&mut self, bytes: u64, data: usize) {
        self.uncount(bytes);
        self.forget(data, 1);
    }

    /// Counts the datagram bytes that buffered slices keep alive in addition to themselves.
    pub fn wastes(&mut self, bytes: usize) {
        self.waste += bytes as u64;
    }

    /// All buffered data fills its datagrams now.
    pub fn wastes_nothing(&mut self) {
        self.waste = 0;
    }

    /// Whether the buffered data keeps more than twice the buffer alive, including `spare` bytes of
    /// unused queue capacity. It should then be copied out of its datagrams. Slices that nearly
    /// fill their datagrams stay.
    #[inline]
    pub fn is_pressed(&self, spare: usize) -> bool {
        // This is more than the limit for chunks that fill a hole.
        let most = (2 * u64::from(self.size)).max(HARD_FLOOR);
        self.memory() + self.data / 8 + self.waste + spare as u64 > most
    }

    /// The a_rwnd for a SACK. The peer counts user data against it, but memory counts chunks too.
    /// Free memory is therefore converted to the data that fits it in chunks like the buffered
    /// ones, or in larger ones while few are buffered.
    #[inline]
    pub fn to_advertise(&self) -> u32 {
        let left = self.left();
        let memory = self.memory();
        // Memory rarely matters: little is buffered, or chunks that fill the window first.
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

    /// Whether runs of tiny chunks arrive, so that memory limits the window.
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
        // The memory of a packet full of such chunks is worth a packet, like `least` bytes of
        // others.
        let typical = u64::from(self.typical);
        let packet = self.least() * (typical + CHUNK_COST) / (typical + CHUNK_HEADER);
        if left.min(free) < self.least() || free < packet.min(self.soft / 4) {
            return 0;
        }
        self.in_typical_chunks(free).min(left).min(u32::MAX.into()) as u32
    }

    /// User data that fits `free` bytes of memory in typical chunks.
    fn in_typical_chunks(&self, free: u64) -> u64 {
        let typical = u64::from(self.typical);
        free * typical / (typical + CHUNK_COST)
    }

    /// Examines the sizes of arriving chunks from time to time, before a SACK is written.
    #[inline(always)]
    pub fn look(&mut self, statistics: &ReceiverCounters) {
        if statistics.chunks >= self.next_look {
            self.look_closer(statistics);
        }
    }

    /// A run shows the size of later chunks. A few large chunks do too, because the peer's traffic
    /// has changed then.
    #[inline(never)]
    fn look_closer(&mut self, statistics: &ReceiverCounters) {
        let seen = ArrivalTotals::of(statistics);
        let new = seen.since(self.then);
        // Includes the SACK that is about to be written.
        let is_row = new.chunks / ROW > new.sacks;
        self.then = seen;
        self.next_look = statistics.chunks + EXAMINATION_INTERVAL;
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

    /// Whether the next SACK would widen a [narrow](Self::is_narrow) window, because the data since
    /// the last one is not tiny. A peer with such chunks has no space for a second one.
    #[cold]
    pub fn is_too_narrow(&self, statistics: &ReceiverCounters) -> bool {
        let new = ArrivalTotals::of(statistics).since(self.then);
        new.mean() == Some(TINY)
    }

    /// User data that fits `free` bytes in addition to `memory`.
    fn fitting(&self, free: u64, memory: u64) -> u64 {
        if 8 * memory <= 13 * self.data {
            // The window holds fewer of these than memory does.
            return free;
        }
        let [free, memory, data, soft] = [free, memory, self.data, self.soft].map(u128::from);
        let in_such_chunks = free * data / memory;
        let while_few = free * soft.saturating_sub(2 * memory) / soft;
        in_such_chunks.max(while_few) as u64
    }

    /// Records the advertised window.
    #[inline(always)]
    pub fn advertised(&mut self, a_rwnd: u32) {
        self.last_advertised = a_rwnd;
        if self.refused > 0 {
            self.forget_refused();
        }
    }

    #[cold]
    fn forget_refused(&mut self) {
        if self.last_advertised >= self.for_refused() {
            self.refused = 0;
        }
    }

    /// A chunk with `bytes` as the profile counts them was dropped for lack of space, or reneged
    /// for another. The peer has to retransmit it, and waits for its retransmission timeout unless
    /// the new window is advertised earlier.
    #[cold]
    pub fn refuse(&mut self, bytes: u64) {
        self.refused = self.refused.max(bytes.min(u32::MAX.into()) as u32);
    }

    /// The window that is advertised at once after a chunk was dropped: the chunk fits, or it is at
    /// its maximum.
    fn for_refused(&self) -> u32 {
        if self.is_narrow() {
            return self.refused.min(self.widest() as u32);
        }
        self.refused.max(self.least).min(self.size)
    }

    /// Records the length of a packet. The peer's path MTU may be larger than this side's, and a
    /// window below the peer's segment size is a silly window.
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

    /// Whether to advertise at once: the peer believes the window closed and it is open, or a
    /// dropped chunk fits now, or the window has grown by the configured step.
    #[inline(always)]
    pub fn update_is_worth_a_sack(&self) -> bool {
        // Checked for every message: usually the window was not closed, nothing was dropped, and no
        // step is set.
        (self.last_advertised == 0 || self.refused > 0 || !self.step.is_none())
            && self.is_wider_than_told()
    }

    fn is_wider_than_told(&self) -> bool {
        let open = self.to_advertise();
        let avoids_silly = self.least > 0;
        let opens = avoids_silly && self.last_advertised == 0 && open > 0;
        let fits_refused = || {
            let need = self.for_refused();
            avoids_silly && self.refused > 0 && self.last_advertised < need && open >= need
        };
        opens
            || fits_refused()
            || self.step.get().is_some_and(|step| {
                u64::from(open)
                    >= u64::from(self.last_advertised).saturating_add(self.as_wide(step))
            })
    }

    /// The maximum window while it [is narrow](Self::is_narrow).
    fn widest(&self) -> u64 {
        self.in_typical_chunks(self.soft).min(self.size.into())
    }

    /// The part of the maximum window that `step` is of the buffer.
    #[inline(always)]
    fn as_wide(&self, step: u64) -> u64 {
        if self.is_narrow() {
            return (step * self.widest() / u64::from(self.size).max(1)).max(1);
        }
        step
    }
}

/// Half the buffer, or one segment of `mtu` (RFC 1122 §4.2.3.3, which RFC 9260 §6.2 cites).
fn least_window(size: u32, mtu: usize) -> u32 {
    (size / 2).min(u32::try_from(mtu).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
