//! Recognition of descriptors that are SCTP sockets.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use anabranch_sockets::{HOST_VARIABLE, SECRET_VARIABLE, SocketType};

use crate::{send_cache, system};

/// Number of descriptors whose type is cached; for higher numbers the kernel is queried each time.
const REMEMBERED: usize = 65_536;

/// Cached type of each descriptor number: unknown, not an SCTP socket, or the type of the SCTP
/// socket. Every operation that reassigns a number resets it to unknown. An SCTP socket is cached
/// only if this process opened it and has kept it since ([`remember`]). The result of a query is
/// not cached, because another thread may close the descriptor at the same time.
static CACHE: [AtomicU8; REMEMBERED] = [const { AtomicU8::new(UNKNOWN) }; REMEMBERED];
const UNKNOWN: u8 = 0;
const OTHER: u8 = 1;
/// For an SCTP socket, the cached value is this number plus the index of its type in
/// [`SocketType::ALL`].
const OURS: u8 = 2;
/// First number after standard input, output and error. These three descriptors are not cached,
/// because libc itself may replace them (`daemon`).
const STANDARD: c_int = 3;

fn place(fd: c_int) -> Option<&'static AtomicU8> {
    usize::try_from(fd).ok().and_then(|fd| CACHE.get(fd))
}

/// The host's name from the environment; `None`: this process has no host.
pub fn host() -> Option<&'static str> {
    static HOST: OnceLock<Option<String>> = OnceLock::new();
    HOST.get_or_init(|| {
        std::env::var(HOST_VARIABLE)
            .ok()
            .filter(|it| !it.is_empty())
    })
    .as_deref()
}

/// The host's secret from the environment, which authenticates programs of other users.
pub fn secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| std::env::var(SECRET_VARIABLE).unwrap_or_default())
}

/// Whether the descriptor is an SCTP socket.
pub fn is_ours(fd: c_int) -> bool {
    socket_type(fd).is_some()
}

/// The type of the SCTP socket behind the descriptor; `None`: it is not an SCTP socket.
pub fn socket_type(fd: c_int) -> Option<SocketType> {
    let place = place(fd);
    match place.map_or(UNKNOWN, |it| it.load(Ordering::Relaxed)) {
        UNKNOWN => (),
        OTHER => return None,
        known => return SocketType::ALL.get(usize::from(known - OURS)).copied(),
    }
    host()?;
    // This query does not change the program's `errno`.
    let peer = system::name(libc::SYS_getpeername, fd);
    let socket_type = peer.and_then(|peer| SocketType::of(&peer));
    if let (None, Some(place)) = (socket_type, place) {
        place.store(OTHER, Ordering::Relaxed);
    }
    socket_type
}

/// Whether the descriptor is an SCTP socket of family AF_INET6.
pub fn is_v6(fd: c_int) -> bool {
    socket_type(fd).is_some_and(|it| it.v6)
}

/// Caches the type of a socket that this process has just opened.
pub fn remember(fd: c_int, socket_type: SocketType) {
    forget(fd);
    let known = SocketType::ALL.iter().position(|&it| it == socket_type);
    if let (Some(place), Some(known), STANDARD..) = (place(fd), known, fd) {
        place.store(OURS + known as u8, Ordering::Relaxed);
    }
}

/// Resets a descriptor number that refers to another descriptor, or soon will.
pub fn forget(fd: c_int) {
    if let Some(place) = place(fd) {
        place.store(UNKNOWN, Ordering::Relaxed);
    }
    send_cache::forget(fd);
}

/// Resets all descriptor numbers from `first` to `last`.
pub fn forget_from(first: u32, last: u32) {
    let most = last.min(REMEMBERED as u32 - 1);
    (first..=most).for_each(|fd| forget(fd as c_int));
}

#[cfg(test)]
mod tests {
    use anabranch_sockets::SocketStyle;

    use super::*;

    #[test]
    fn a_socket_type_is_known_until_its_descriptor_may_be_another() {
        const FD: c_int = 5_000;
        for expected in SocketType::ALL {
            remember(FD, expected);
            assert_eq!(socket_type(FD), Some(expected));
            forget(FD);
            // The type is no longer cached, and the query of the kernel fails because no open
            // descriptor has this number.
            assert_eq!(socket_type(FD), None);
        }
        remember(FD, SocketType::new(true, SocketStyle::OneToMany));
        forget_from(4_000, u32::MAX);
        assert_eq!(socket_type(FD), None);
        // Descriptors that libc may replace are not cached.
        remember(2, SocketType::new(false, SocketStyle::OneToOne));
        assert_eq!(socket_type(2), None);
    }
}
