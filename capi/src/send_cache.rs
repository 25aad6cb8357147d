//! Cache for one-to-one sockets: the route of their messages, and whether data may arrive.
//!
//! The host does not answer messages, but an invalid stream or a message that is too long must be
//! refused immediately. Therefore the library requests the limits of a descriptor's messages (the
//! route) once, and checks each message itself. The cached state is valid until the host
//! invalidates it ([`generations`]).

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_sockets::control::Generation;

use crate::generations;

/// Number of descriptors whose route is cached; for higher numbers the host is queried each time.
const REMEMBERED: usize = 4_096;

/// Cached state of one descriptor.
struct CachedRoute {
    /// Number of outgoing streams (lower 16 bits) and maximum message size in bytes (upper 48
    /// bits); 0: unknown.
    route: AtomicU64,
    /// Generation of the cached route: slot and number.
    routed_in: AtomicU64,
    /// Generation in which the socket awaits data, in the format of `routed_in`; `u64::MAX`:
    /// unknown.
    awaited_in: AtomicU64,
}

const UNKNOWN: u64 = u64::MAX;

static CACHE: [CachedRoute; REMEMBERED] = [const {
    CachedRoute {
        route: AtomicU64::new(0),
        routed_in: AtomicU64::new(UNKNOWN),
        awaited_in: AtomicU64::new(UNKNOWN),
    }
}; REMEMBERED];

fn place(fd: c_int) -> Option<&'static CachedRoute> {
    usize::try_from(fd).ok().and_then(|fd| CACHE.get(fd))
}

fn packed(generation: Generation) -> u64 {
    u64::from(generation.slot) << 32 | u64::from(generation.number)
}

fn holds(packed: u64) -> bool {
    let generation = Generation {
        slot: (packed >> 32) as u32,
        number: packed as u32,
    };
    packed != UNKNOWN && generations::is_current(generation)
}

/// Whether the cached route allows a message of this length on this stream.
pub fn allows(fd: c_int, stream: u16, length: usize) -> bool {
    let Some(known) = place(fd) else { return false };
    let route = known.route.load(Ordering::Acquire);
    let fits = u64::from(stream) < route & 0xffff && length as u64 <= route >> 16;
    fits && holds(known.routed_in.load(Ordering::Acquire))
}

/// Caches the route, which is valid while the socket has this generation.
pub fn remember(fd: c_int, streams: u16, most: usize, generation: Generation) {
    if let Some(known) = place(fd) {
        known.routed_in.store(packed(generation), Ordering::Release);
        let route = u64::from(streams) | (most as u64) << 16;
        known.route.store(route, Ordering::Release);
    }
}

/// Whether the cache knows that data, or the end of the data, may arrive.
pub fn awaits(fd: c_int) -> bool {
    place(fd).is_some_and(|it| holds(it.awaited_in.load(Ordering::Acquire)))
}

/// Caches that data may arrive, which is valid while the socket has this generation.
pub fn remember_awaited(fd: c_int, generation: Generation) {
    if let Some(known) = place(fd) {
        let packed = packed(generation);
        known.awaited_in.store(packed, Ordering::Release);
    }
}

/// Invalidates the cached state: the number refers to another descriptor, or an option or the
/// association has changed.
pub fn forget(fd: c_int) {
    if let Some(known) = place(fd) {
        known.route.store(0, Ordering::Release);
        known.awaited_in.store(UNKNOWN, Ordering::Release);
    }
}
