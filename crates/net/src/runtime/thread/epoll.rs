//! The system's part: one call waits for sockets, for the next timer, and for other threads.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::runtime::timer_fd;

/// Numbers of descriptors that are not sockets.
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
    /// Other threads write to this descriptor to wake the thread of the runtime.
    bell: OwnedFd,
    /// Expires at the next timer, because a timeout of the wait itself would have to be set up by
    /// the system at every packet.
    driver_timer: OwnedFd,
}

impl Epoll {
    pub(super) fn open() -> io::Result<Self> {
        let system = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            driver_timer: timer_fd::open()?,
        };
        // Edge-triggered (`ET`): reported once per event, so they need not be read.
        let flags = EventFlags::IN | EventFlags::ET;
        for (number, fd) in [(BELL, &system.bell), (ALARM, &system.driver_timer)] {
            epoll::add(&system.epoll, fd, EventData::new_u64(number), flags)?;
        }
        Ok(system)
    }

    /// Ends the current wait, or else the next wait.
    pub(super) fn ring(&self) {
        // The counter overflows only after 2^64 writes.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Sets the expiry of the timer, which replaces the previous expiry.
    pub(super) fn set_alarm(&self, after: Duration) {
        timer_fd::set(&self.driver_timer, after);
    }

    /// Puts the available events into `events`; waits for one if `sleeps`.
    pub(super) fn wait(&self, events: &mut Vec<Event>, sleeps: bool) {
        let limit = (!sleeps).then_some(&ZERO);
        match epoll::wait(&self.epoll, spare_capacity(events), limit) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("cannot wait for sockets: {error}"),
        }
    }

    /// Watches a descriptor for readability.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, fd, data, interest(false))?)
    }

    /// Starts or stops watching it for writability. If it is writable now, that is reported.
    pub(super) fn change(&self, fd: BorrowedFd<'_>, number: u64, room: bool) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::modify(&self.epoll, fd, data, interest(room))?)
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // The socket was added before.
        let _ = epoll::delete(&self.epoll, fd);
    }
}

/// Writability is watched only while the socket is full, because Linux reports it after each packet
/// that has left a UDP socket.
fn interest(room: bool) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::ET;
    match room {
        true => flags | EventFlags::OUT,
        false => flags,
    }
}
