//! The receive buffer and the window it advertises (RFC 9260 §6.2).
//!
//! Each buffered chunk is counted twice. The window counts bytes as the profile does, and the
//! remaining window is advertised to the peer. Memory counts the data and a fixed overhead per
//! chunk. Unless chunks are tiny, the window is the stricter limit, and memory has no effect.
//!
//! A peer that sends tiny chunks would exceed the memory limit long before it fills the window,
//! because the peer counts only user data. Chunks dropped for this reason would be retransmitted
//! only after T3-rtx, because no later chunks arrive that a SACK could report. While runs of tiny
//! chunks arrive, the window is therefore the user data that fits into memory in such chunks, even
//! if no chunk is buffered.

use crate::compact_option::OptionalNanos;
use crate::config::Config;
use crate::profile::WhenFull;
use crate::stats::ReceiverCounters;

/// Memory in bytes of a buffered chunk in addition to its data: an allocation for the data, and its
/// slot in a queue or tree, of which at least half is filled. Tests compare this value with real
/// allocations.
const CHUNK_COST: u64 = 192;
/// Memory in bytes of a message in partial delivery: its entries in three trees, and in a fourth if
/// the user reads messages, which are then assembled.
const OPEN_COST: u64 = 3 * CHUNK_COST;
/// Number of partial deliveries whose memory is not counted. A higher number is possible only with
/// interleaving; without it, only a peer that deliberately omits data reaches this number.
pub(super) const FREE_OPEN: usize = 64;
/// Number of chunks that fit even into the smallest buffer. A peer with tiny chunks initially sends
/// fewer: 300 chunks of 20 bytes in four packets.
const MIN_CHUNKS: u64 = 320;
/// Memory limit of the smallest buffer in bytes: the overhead of [`MIN_CHUNKS`] chunks.
const FLOOR: u64 = MIN_CHUNKS * CHUNK_COST;
const HARD_FLOOR: u64 = FLOOR + FLOOR / 8;

/// Length in bytes below which chunks exhaust memory before the window, because the overhead of 192
/// bytes exceeds 5/8 of the data.
const TINY: u32 = 308;
/// Number of chunks per SACK that form a run. After a run, the following chunks are assumed to have
/// similar sizes. A peer that sends fewer chunks per SACK does not exceed memory.
const ROW: u32 = 4;
/// Number of chunks after which sizes are examined again. While chunks are tiny, sizes are examined
/// for each SACK.
const EXAMINATION_INTERVAL: u64 = 16;
/// Bytes of a chunk in its packet in addition to the data: header and padding (RFC 9260 §3.3.1).
const CHUNK_HEADER: u64 = 19;

/// Totals since the start: chunks, their bytes, and SACKs sent. They may wrap around.
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

    /// Average length of a chunk in bytes, at most [`TINY`]; `None` if there are no chunks.
    fn mean(self) -> Option<u32> {
        let mean = self.bytes.checked_div(self.chunks)?;
        Some(mean.clamp(1, TINY))
    }
}

/// Accounting of the receive buffer: buffered data, free space and the advertised window.
#[derive(Debug, Default)]
pub(super) struct ReceiveWindow {
    size: u32,
    /// Number of buffered bytes, as the profile counts them.
    used: u64,
    /// Bytes of buffered user data (`data`) in all chunks (`chunks`). Both include data that the
    /// profile counts as read.
    data: u64,
    chunks: u32,
    /// Number of messages in partial delivery beyond [`FREE_OPEN`].
    open: u32,
    /// Memory limit for new data in bytes.
    soft: u64,
    /// Memory use below which memory does not affect the advertised window: usually `soft`; 0 while
    /// runs of tiny chunks arrive; unlimited if the profile drops silently.
    shows: u64,
    /// Upper bound for the bytes of packets that buffered slices keep alive in addition to the
    /// data.
    waste: u64,
    /// Minimum window to advertise in bytes (silly window avoidance); 0 if that is off.
    least: u32,
    /// Length in bytes of the longest packet so far, for silly window avoidance. A longer packet
    /// shows that the peer's packets are longer than those of this side.
    longest: usize,
    /// Window advertised in the last SACK, in bytes.
    last_advertised: u32,
    /// Number of bytes of the largest chunk that was dropped for lack of space, until the
    /// advertised window is large enough for it.
    refused: u32,
    /// If the window is wider than the advertised one by this number of bytes, a SACK is sent
    /// immediately.
    step: OptionalNanos,
    /// Average length of a chunk in runs, in bytes; [`TINY`] if chunks are not tiny.
    typical: u32,
    /// Chunk count at which sizes are next examined.
    next_look: u64,
    /// Totals at the last examination.
    then: ArrivalTotals,
}

/// Free space of the receive buffer in which chunks are accepted without further checks.
pub(super) struct AmpleWindow {
    bytes: u64,
    memory: u64,
}

impl AmpleWindow {
    /// Reserves space for a chunk with `data` bytes of user data, which counts for `bytes` bytes in
    /// the window. Returns `false` if it does not fit.
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

    /// Memory limit in bytes for chunks that fill a gap.
    fn hard(&self) -> u64 {
        (u64::from(self.size) * 7 / 4).max(HARD_FLOOR)
    }

    fn least(&self) -> u64 {
        self.least.into()
    }

    /// Whether a SACK would advertise about the same window as the last SACK: the difference is at
    /// most an eighth of the buffer, and either both windows are closed or neither is.
    pub fn is_as_advertised(&self) -> bool {
        let now = self.to_advertise();
        let close = now.abs_diff(self.last_advertised) <= self.size / 8;
        close && (now == 0) == (self.last_advertised == 0)
    }

    #[inline]
    fn memory(&self) -> u64 {
        self.data + u64::from(self.chunks) * CHUNK_COST + u64::from(self.open) * OPEN_COST
    }

    /// Whether memory suffices for partial delivery of another message beyond [`FREE_OPEN`]. The
    /// limit is above that for chunks in order, because partial delivery frees a buffer that is
    /// full of such chunks. Half of the memory for chunks that fill a gap is left for chunks that
    /// continue the messages in delivery.
    pub fn has_memory_to_open(&self) -> bool {
        self.memory() + OPEN_COST <= u64::midpoint(self.soft, self.hard())
    }

    /// Sets the number of messages in partial delivery.
    pub fn count_open(&mut self, open: usize) {
        self.open = open.saturating_sub(FREE_OPEN) as u32;
    }

    /// Whether a chunk with `data` bytes of user data, which counts for `bytes` bytes in the
    /// window, is accepted. Except under profiles that drop silently, a chunk that fills a gap may
    /// exceed the buffer by three quarters of the buffer's size, and a small buffer by more.
    pub fn admits(&self, bytes: u64, data: u64, fills_hole: bool) -> bool {
        let memory = self.memory() + data + CHUNK_COST;
        if fills_hole && !self.is_silent() {
            return memory <= self.hard();
        }
        bytes <= self.left() && memory <= self.soft
    }

    /// Conservative estimate of the free space. Within this space, [`Self::admits`] accepts every
    /// chunk, and a window remains to advertise.
    #[inline]
    pub fn ample_window(&self) -> AmpleWindow {
        AmpleWindow {
            bytes: self.left().saturating_sub(self.least()),
            memory: (self.soft / 2).saturating_sub(self.memory()),
        }
    }

    /// Whether memory is sufficient for `data` bytes of user data in `chunks` chunks from before a
    /// restart.
    pub fn has_memory_for(&self, data: u64, chunks: usize) -> bool {
        self.memory() + data + chunks as u64 * CHUNK_COST <= self.hard()
    }

    /// Accounts for a buffered chunk.
    #[inline]
    pub fn take(&mut self, bytes: u64, data: usize) {
        self.take_over(bytes, data, 1);
    }

    /// Accounts for buffered data in `chunks` chunks from before a restart.
    #[inline]
    pub fn take_over(&mut self, bytes: u64, data: usize, chunks: usize) {
        self.used += bytes;
        self.data += data as u64;
        self.chunks += chunks as u32;
    }

    /// Accounts for all buffered data that `before` counts.
    pub fn take_over_all(&mut self, before: &Self) {
        self.used += before.used;
        self.data += before.data;
        self.chunks += before.chunks;
        self.waste += before.waste;
    }

    /// Whether memory is sufficient for all data that `before` counts.
    pub fn has_memory_for_all(&self, before: &Self) -> bool {
        self.has_memory_for(before.data, before.chunks as usize)
    }

    /// Removes buffered data from the window's count.
    #[inline]
    pub fn uncount(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.used, "freed more than was taken");
        self.used = self.used.saturating_sub(bytes);
    }

    /// Removes data in `chunks` chunks from the memory count.
    #[inline]
    pub fn forget(&mut self, data: usize, chunks: usize) {
        debug_assert!(data as u64 <= self.data, "forgot more than was held");
        self.data = self.data.saturating_sub(data as u64);
        self.chunks = self.chunks.saturating_sub(chunks as u32);
    }

    /// Removes a buffered chunk from the count for the window and from that for memory.
    pub fn free(&mut self, bytes: u64, data: usize) {
        self.uncount(bytes);
        self.forget(data, 1);
    }

    /// Counts bytes of packets that buffered slices keep alive in addition to their own bytes.
    pub fn wastes(&mut self, bytes: usize) {
        self.waste += bytes as u64;
    }

    /// Records that all buffered data was copied out of its packets.
    pub fn wastes_nothing(&mut self) {
        self.waste = 0;
    }

    /// Whether the buffered data keeps more than twice the size of the buffer alive, including
    /// `spare` bytes of unused queue capacity. The data should then be copied out of its packets,
    /// except slices that nearly fill their packets.
    #[inline]
    pub fn is_pressed(&self, spare: usize) -> bool {
        // This limit is higher than the one for chunks that fill a gap.
        let most = (2 * u64::from(self.size)).max(HARD_FLOOR);
        self.memory() + self.data / 8 + self.waste + spare as u64 > most
    }

    /// Value of a_rwnd for a SACK, in bytes. The peer counts only user data against it, but memory
    /// includes an overhead for each chunk. Free memory is therefore converted to the user data
    /// that fits into it, assuming chunks like the buffered ones, or larger chunks while few are
    /// buffered.
    #[inline]
    pub fn to_advertise(&self) -> u32 {
        let left = self.left();
        let memory = self.memory();
        // Memory is rarely the limit: little data is buffered, or the chunks fill the window first.
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
            // Partial deliveries are not included, because they are no chunks that later chunks
            // could resemble.
            let of_chunks = memory - u64::from(self.open) * OPEN_COST;
            self.fitting(free, of_chunks).min(left)
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

    /// Value of a_rwnd while it [is narrow](Self::is_narrow).
    #[cold]
    fn narrow(&self, left: u64, memory: u64) -> u32 {
        let free = self.soft.saturating_sub(memory);
        // Memory of a packet of `least` bytes that is full of typical chunks. If less memory is
        // free, the window is closed, as if less than `least` bytes were free.
        let typical = u64::from(self.typical);
        let packet = self.least() * (typical + CHUNK_COST) / (typical + CHUNK_HEADER);
        if left.min(free) < self.least() || free < packet.min(self.soft / 4) {
            return 0;
        }
        self.in_typical_chunks(free).min(left).min(u32::MAX.into()) as u32
    }

    /// Number of bytes of user data in typical chunks that fits into `free` bytes of memory.
    fn in_typical_chunks(&self, free: u64) -> u64 {
        let typical = u64::from(self.typical);
        free * typical / (typical + CHUNK_COST)
    }

    /// Examines the sizes of received chunks from time to time, before a SACK is written.
    #[inline(always)]
    pub fn look(&mut self, statistics: &ReceiverCounters) {
        if statistics.chunks >= self.next_look {
            self.look_closer(statistics);
        }
    }

    /// Estimates the size of later chunks by the mean of recent chunks. The mean counts if they
    /// came in a run, or if they are not tiny, because the peer's traffic has then changed.
    #[inline(never)]
    fn look_closer(&mut self, statistics: &ReceiverCounters) {
        let seen = ArrivalTotals::of(statistics);
        let new = seen.since(self.then);
        // The number of SACKs includes the SACK that is about to be written.
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
    /// the last SACK is not tiny. The narrow window has space for only one such chunk, so the peer
    /// may be waiting.
    #[cold]
    pub fn is_too_narrow(&self, statistics: &ReceiverCounters) -> bool {
        let new = ArrivalTotals::of(statistics).since(self.then);
        new.mean() == Some(TINY)
    }

    /// Number of bytes of user data that fits into `free` bytes, while chunks use `memory` bytes.
    fn fitting(&self, free: u64, memory: u64) -> u64 {
        if 8 * memory <= 13 * self.data {
            // Such chunks fill the window before they fill memory.
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

    /// Records that a chunk, which counts for `bytes` bytes in the window, was dropped for lack of
    /// space or reneged. The peer must retransmit it, and waits for its RTO unless a sufficient
    /// window is advertised earlier.
    #[cold]
    pub fn refuse(&mut self, bytes: u64) {
        self.refused = self.refused.max(bytes.min(u32::MAX.into()) as u32);
    }

    /// Smallest window for which a SACK is sent immediately after a chunk was dropped: the size of
    /// the chunk, or the maximum window if that is smaller.
    fn for_refused(&self) -> u32 {
        if self.is_narrow() {
            return self.refused.min(self.widest() as u32);
        }
        self.refused.max(self.least).min(self.size)
    }

    /// Records the length of a packet. The peer's path MTU may be larger than that of this side,
    /// and a window below the peer's segment size is a silly window.
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

    /// Whether a SACK should be sent because of the window. Reasons are: the last advertised window
    /// was closed and the window is now open, a dropped chunk would now fit, or the window has
    /// grown by the configured step.
    #[inline(always)]
    pub fn update_is_worth_a_sack(&self) -> bool {
        // Shortcut, because this is called for every message: usually the window was not closed, no
        // chunk was dropped, and no step is set.
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

    /// Maximum window in bytes while it [is narrow](Self::is_narrow).
    fn widest(&self) -> u64 {
        self.in_typical_chunks(self.soft).min(self.size.into())
    }

    /// Scales `step`, given for the whole buffer, to the maximum window.
    #[inline(always)]
    fn as_wide(&self, step: u64) -> u64 {
        if self.is_narrow() {
            return (step * self.widest() / u64::from(self.size).max(1)).max(1);
        }
        step
    }
}

/// Minimum window to advertise in bytes: half of the buffer, or one segment of `mtu` bytes if that
/// is smaller (RFC 1122 §4.2.3.3, which RFC 9260 §6.2 cites).
fn least_window(size: u32, mtu: usize) -> u32 {
    (size / 2).min(u32::try_from(mtu).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests;
