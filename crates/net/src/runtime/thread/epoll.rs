//! The system's part: one call waits for sockets, for the next timer, and for other threads.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use crate::runtime::timer_fd;

/// Numbers of what is no socket.
pub(super) const BELL: u64 = u64::MAX;
pub(super) const ALARM: u64 = u64::MAX - 1;
const ZERO: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// Descriptors of the runtime's own.
#[derive(Debug)]
pub(super) struct Epoll {
    epoll: OwnedFd,
    /// Rung by other threads.
    bell: OwnedFd,
    /// Rings at the next timer. So the wait has no limit of its own, which the system would have to set up at every packet.
    driver_timer: OwnedFd,
}

impl Epoll {
    pub(super) fn open() -> io::Result<Self> {
        let system = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            driver_timer: timer_fd::open()?,
        };
        // Told once each time that they ring (`ET`): nobody has to read them.
        let flags = EventFlags::IN | EventFlags::ET;
        for (number, fd) in [(BELL, &system.bell), (ALARM, &system.driver_timer)] {
            epoll::add(&system.epoll, fd, EventData::new_u64(number), flags)?;
        }
        Ok(system)
    }

    /// Ends the wait, or the next one.
    pub(super) fn ring(&self) {
        // It counts to 2^64 before it is full.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// Lets the alarm ring after that time, and not when it would have.
    pub(super) fn set_alarm(&self, after: Duration) {
        timer_fd::set(&self.driver_timer, after);
    }

    /// Puts into `events` what has come; waits until something has where it `sleeps`.
    pub(super) fn wait(&self, events: &mut Vec<Event>, sleeps: bool) {
        let limit = (!sleeps).then_some(&ZERO);
        match epoll::wait(&self.epoll, spare_capacity(events), limit) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("cannot wait for sockets: {error}"),
        }
    }

    /// Watches a descriptor, for what comes.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, number: u64) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::add(&self.epoll, fd, data, interest(false))?)
    }

    /// Watches it for room to send, too, or no more. Where there is room now that is told.
    pub(super) fn change(&self, fd: BorrowedFd<'_>, number: u64, room: bool) -> io::Result<()> {
        let data = EventData::new_u64(number);
        Ok(epoll::modify(&self.epoll, fd, data, interest(room))?)
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        // It is watched since it was added.
        let _ = epoll::delete(&self.epoll, fd);
    }
}

/// Room to send is asked for only while there is none: Linux tells of it after each packet that has left a UDP socket.
fn interest(room: bool) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::ET;
    match room {
        true => flags | EventFlags::OUT,
        false => flags,
    }
}
