//! Which descriptors are SCTP sockets.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_sockets::{Form, HOST_VARIABLE};

use crate::{routes, system};

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
    form(fd).is_some()
}

/// What SCTP socket the descriptor is, if it is one.
pub fn form(fd: c_int) -> Option<Form> {
    let place = usize::try_from(fd).ok().and_then(|fd| OTHERS.get(fd));
    if place.is_some_and(|it| it.load(Ordering::Relaxed)) || host().is_none() {
        return None;
    }
    let before = system::errno();
    let peer = system::name(libc::SYS_getpeername, fd);
    let form = peer.and_then(|peer| Form::of(&peer));
    if form.is_none() {
        // Asking is no error of the program's.
        system::answer(Err(before));
        if let Some(place) = place {
            place.store(true, Ordering::Relaxed);
        }
    }
    form
}

/// The number means another descriptor from now on.
pub fn forget(fd: c_int) {
    if let Some(place) = usize::try_from(fd).ok().and_then(|fd| OTHERS.get(fd)) {
        place.store(false, Ordering::Relaxed);
    }
    routes::forget(fd);
}
