//! The receive buffer and the window it leaves (RFC 9260 §6.2).

use crate::config::Config;
use crate::profile::WhenFull;

/// Each chunk held costs about so many bytes beside its data: the most chunks held is the buffer over this, and at
/// least [`LEAST_CHUNKS`].
const CHUNK_COST: u64 = 16;
/// A buffer however small holds so many chunks.
const LEAST_CHUNKS: u64 = 64;

/// Bytes held, bytes free, and what the peer was told. Bytes as the profile counts them.
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    size: u64,
    used: u64,
    /// Chunks held, and the most that are.
    held: u64,
    most_chunks: u64,
    /// Windows smaller than this are not advertised; 0 without silly-window avoidance.
    least: u64,
    /// What the last SACK said.
    told: u64,
    /// A window wider than told by so much is told at once.
    step: Option<u64>,
    silent: bool,
}

impl ReceiveWindow {
    pub fn new(config: &Config) -> Self {
        let size = u64::from(config.receive_buffer);
        // RFC 1122 §4.2.3.3, which RFC 9260 §6.2 refers to: half the buffer or one segment.
        let least = if config.profile.silly_window_avoidance {
            (size / 2).min(config.mtu as u64)
        } else {
            0
        };
        Self {
            size,
            used: 0,
            held: 0,
            most_chunks: size.div_ceil(CHUNK_COST).max(LEAST_CHUNKS),
            least,
            told: size,
            step: config.window_update.map(u64::from),
            silent: config.profile.when_full == WhenFull::Silent,
        }
    }

    pub fn used(&self) -> u64 {
        self.used
    }

    fn left(&self) -> u64 {
        self.size.saturating_sub(self.used)
    }

    /// Whether a SACK would tell about the window that the last one told: within an eighth of the buffer, and closed or not
    /// as it was.
    pub fn is_as_told(&self) -> bool {
        let now = u64::from(self.to_advertise());
        let close = now.abs_diff(self.told) <= self.size / 8;
        close && (now == 0) == (self.told == 0)
    }

    /// Whether `bytes` more fit.
    pub fn fits(&self, bytes: u64) -> bool {
        bytes <= self.left()
    }

    /// Whether a chunk of `bytes` is taken. Except where the profile drops silently, one that fills a hole may overrun
    /// the buffer by as much again.
    pub fn admits(&self, bytes: u64, fills_hole: bool) -> bool {
        if self.silent {
            return self.fits(bytes);
        }
        if fills_hole {
            return self.held < 2 * self.most_chunks && self.used + bytes <= 2 * self.size;
        }
        self.held < self.most_chunks && self.fits(bytes)
    }

    /// A chunk of `bytes` is held.
    pub fn take(&mut self, bytes: u64) {
        self.used += bytes;
        self.held += 1;
    }

    /// `chunks` of `bytes` in all are no longer held.
    pub fn free(&mut self, bytes: u64, chunks: usize) {
        debug_assert!(bytes <= self.used, "freed more than was taken");
        self.used = self.used.saturating_sub(bytes);
        self.held = self.held.saturating_sub(chunks as u64);
    }

    /// The a_rwnd to put in a SACK.
    pub fn to_advertise(&self) -> u32 {
        // Many tiny chunks fill the buffer before their bytes do.
        let tiny = self.most_chunks.saturating_sub(self.held) * CHUNK_COST;
        let left = if self.silent {
            self.left()
        } else {
            self.left().min(tiny)
        };
        if left < self.least {
            0
        } else {
            left.min(u32::MAX.into()) as u32
        }
    }

    /// The peer has been told this window.
    pub fn advertised(&mut self, a_rwnd: u32) {
        self.told = a_rwnd.into();
    }

    /// The peer believes the window closed, and it is open; or much narrower than it is, where that is to be told.
    pub fn update_is_worth_a_sack(&self) -> bool {
        let open = u64::from(self.to_advertise());
        let opened = self.told < self.least && open >= self.least;
        opened
            || self
                .step
                .is_some_and(|step| open >= self.told.saturating_add(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_much_wider_than_told_is_told() {
        let config = Config {
            receive_buffer: 10_000,
            window_update: Some(4_000),
            ..Config::default()
        };
        let mut window = ReceiveWindow::new(&config);
        window.take(8_000);
        window.told = 2_000;
        window.free(3_999, 1);
        assert!(!window.update_is_worth_a_sack(), "5,999 against 2,000");
        window.free(1, 1);
        assert!(window.update_is_worth_a_sack());
        window.advertised(6_000);
        assert!(!window.update_is_worth_a_sack(), "it was told");
    }
}
