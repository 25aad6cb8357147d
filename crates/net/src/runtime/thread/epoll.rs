//! The epoll instance of the runtime: one system call waits for sockets, the next timer, and
//! wakeups by other threads.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::runtime::timer_fd;

/// Event numbers of the two descriptors that are not sockets.
pub(super) const BELL: u64 = u64::MAX;
pub(super) const ALARM: u64 = u64::MAX - 1;
const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Descriptors of the runtime.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    /// Event descriptor that other threads write to wake the thread of the runtime.
    bell: OwnedFd,
    /// Timer descriptor for the next timer. It replaces the timeout of `epoll_wait`, which the
    /// system would have to set up at every packet.
    driver_timer: OwnedFd,
}

impl Epoll {
    pub(super) fn open() -> io::Result<Self> {
        let system = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            driver_timer: timer_fd::open()?,
        };
        // Edge-triggered (`ET`), so that each event is reported once and the descriptors need not
        // be read.
        let flags = EventFlags::IN | EventFlags::ET;
        for (number, fd) in [(BELL, &system.bell), (ALARM, &system.driver_timer)] {
            epoll::add(&system.epoll, fd, EventData::new_u64(number), flags)?;
        }
        Ok(system)
    }

    /// Ends the current wait, or the next one if the thread is not waiting.
    pub(super) fn ring(&self) {
        // The counter overflows only after 2^64 writes.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Sets the expiry of the timer, which replaces the previous expiry.
    pub(super) fn set_alarm(&self, after: Duration) {
        timer_fd::set(&self.driver_timer, after);
    }

    /// Appends the available events to `events`. If `sleeps`, waits until there is one.
    pub(super) fn wait(&self, events: &mut Vec<Event>, sleeps: bool) {
        let limit = (!sleeps).then_some(&ZERO);
        match epoll::wait(&self.epoll, spare_capacity(events), limit) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("cannot wait for sockets: {error}"),
        }
    }

    /// Watches a descriptor for readability; `number` is its event number.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, fd, data, interest(false))?)
    }

    /// Starts (`room`) or stops watching a descriptor for writability. If it is writable already,
    /// an event is reported.
    pub(super) fn change(&self, fd: BorrowedFd<'_>, number: u64, room: bool) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::modify(&self.epoll, fd, data, interest(room))?)
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // Fails only if the socket was never added.
        let _ = epoll::delete(&self.epoll, fd);
    }
}

/// The event mask. Writability is watched only while the socket is full, because Linux reports it
/// after each packet that has left a UDP socket.
fn interest(room: bool) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::ET;
    match room {
        true => flags | EventFlags::OUT,
        false => flags,
    }
}
