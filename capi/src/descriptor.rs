//! Which descriptors are SCTP sockets.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_sockets::{HOST_VARIABLE, PREFIX};

use crate::system;

/// Descriptors that are remembered; others are asked each time.
const REMEMBERED: usize = 65_536;

/// Descriptors that are known not to be ours. Every way in which a descriptor becomes a socket of ours clears it.
static OTHERS: [AtomicBool; REMEMBERED] = [const { AtomicBool::new(false) }; REMEMBERED];

/// The host's name, if this process has one.
pub fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    HOST.get_or_init(|| {
        std::env::var(HOST_VARIABLE)
            .ok()
            .filter(|it| !it.is_empty())
    })
    .as_deref()
}

/// Whether the descriptor is an SCTP socket.
pub fn is_ours(fd: c_int) -> bool {
    let place = usize::try_from(fd).ok().and_then(|fd| OTHERS.get(fd));
    if place.is_some_and(|it| it.load(Ordering::Relaxed)) || host().is_none() {
        return false;
    }
    let before = system::errno();
    let peer = system::name(libc::SYS_getpeername, fd);
    let ours = peer.is_some_and(|peer| peer.starts_with(PREFIX));
    if !ours {
        // Asking is no error of the program's.
        system::answer(Err(before));
        if let Some(place) = place {
            place.store(true, Ordering::Relaxed);
        }
    }
    ours
}

/// The number means another descriptor from now on.
pub fn forget(fd: c_int) {
    if let Some(place) = usize::try_from(fd).ok().and_then(|fd| OTHERS.get(fd)) {
        place.store(false, Ordering::Relaxed);
    }
}
