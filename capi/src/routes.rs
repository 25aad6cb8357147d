//! What is known of where a one-to-one socket's messages go: asked once for each descriptor, since a wrong stream or a message that is too
//! long must be refused at once, and the host takes messages without a word.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

/// Descriptors whose routes are remembered; of others it is asked each time.
const REMEMBERED: usize = 4_096;

/// The streams (16 bits) and the largest message (48 bits); 0: not known.
static ROUTES: [AtomicU64; REMEMBERED] = [const { AtomicU64::new(0) }; REMEMBERED];

fn place(fd: c_int) -> Option<&'static AtomicU64> {
    usize::try_from(fd).ok().and_then(|fd| ROUTES.get(fd))
}

/// Whether a message so long may go out on that stream, as far as is known.
pub fn allows(fd: c_int, stream: u16, length: usize) -> bool {
    let known = place(fd).map_or(0, |it| it.load(Ordering::Relaxed));
    u64::from(stream) < known & 0xffff && length as u64 <= known >> 16
}

/// It is known from now on.
pub fn remember(fd: c_int, streams: u16, most: usize) {
    if let Some(place) = place(fd) {
        place.store(u64::from(streams) | (most as u64) << 16, Ordering::Relaxed);
    }
}

/// It is not known any more: the number means another descriptor, or an option or the association changed.
pub fn forget(fd: c_int) {
    if let Some(place) = place(fd) {
        place.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_allowed_and_no_more() {
        const FD: c_int = 4_000;
        assert!(!allows(FD, 0, 1));
        remember(FD, 3, 100);
        assert!(allows(FD, 2, 100));
        assert!(!allows(FD, 3, 100) && !allows(FD, 2, 101));
        forget(FD);
        assert!(!allows(FD, 0, 1));
        // A number beyond those remembered is asked for each time.
        remember(5_000, 3, 100);
        assert!(!allows(5_000, 0, 1));
    }
}
