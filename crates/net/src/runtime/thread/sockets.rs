//! Sockets that the runtime watches: always for readability, and for writability only while they
//! are full.

use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use rustix::event::epoll::EventFlags;

use super::Shared;
use crate::runtime::{AsyncSocket, Readiness, ReadinessHint};

/// Watched sockets by event number.
#[derive(Debug, Default)]
pub(super) struct Slots(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    slots: BTreeMap<u64, Arc<Slot>>,
    next: u64,
}

/// State of a watched socket.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// Number of readability events so far.
    told: AtomicU32,
    /// Number of readability events up to the last time at which the socket was found empty.
    emptied: AtomicU32,
    reader: Mutex<Option<Waker>>,
    writer: Mutex<Option<Waker>>,
    /// True while the socket is watched for writability.
    pub full: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waiting: &Mutex<Option<Waker>>) {
    let waker = lock(waiting).take();
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Sets the waker of `waiting`. The waker is cloned, and the previous one dropped, without the
/// lock, because both may run any code. No other task sets it meanwhile, because only one task
/// waits.
fn set(waiting: &Mutex<Option<Waker>>, waker: &Waker) {
    if lock(waiting).as_ref().is_some_and(|it| it.will_wake(waker)) {
        return;
    }
    let own = waker.clone();
    let former = lock(waiting).replace(own);
    drop(former);
}

impl Slots {
    /// Adds a socket; returns its event number.
    fn add(&self, slot: Arc<Slot>) -> u64 {
        let mut numbered = lock(&self.0);
        let number = numbered.next;
        numbered.next += 1;
        numbered.slots.insert(number, slot);
        number
    }

    fn remove(&self, number: u64) {
        let removed = lock(&self.0).slots.remove(&number);
        drop(removed);
    }

    /// Records an event of the socket with this number. The socket may have been removed.
    pub(super) fn record_event(&self, number: u64, flags: EventFlags) {
        let slot = lock(&self.0).slots.get(&number).cloned();
        let Some(slot) = slot else { return };
        let broken = EventFlags::ERR | EventFlags::HUP;
        if flags.intersects(EventFlags::IN | broken) {
            slot.told.fetch_add(1, Ordering::Release);
            wake(&slot.reader);
        }
        if flags.intersects(EventFlags::OUT | broken) {
            wake(&slot.writer);
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        lock(&self.0).slots.is_empty()
    }

    /// Drops all wakers.
    pub(super) fn clear(&self) {
        let slots: Vec<_> = lock(&self.0).slots.values().cloned().collect();
        for slot in slots {
            // The wakers are dropped without the lock, because dropping them may run any code.
            let reader = lock(&slot.reader).take();
            let writer = lock(&slot.writer).take();
            drop((reader, writer));
        }
    }
}

#[derive(Debug)]
pub(super) struct WatchedSocket {
    socket: UdpSocket,
    pub number: u64,
    pub slot: Arc<Slot>,
    shared: Arc<Shared>,
}

impl WatchedSocket {
    /// Watches `socket`, which is non-blocking.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn new(socket: UdpSocket, shared: Arc<Shared>) -> io::Result<Self> {
        let slot = Arc::new(Slot::default());
        // Counts one event, because packets may have arrived before the socket was watched.
        slot.told.store(1, Ordering::Relaxed);
        let number = shared.sockets.add(Arc::clone(&slot));
        let added = shared.system.add(socket.as_fd(), number);
        if added.is_err() {
            shared.sockets.remove(number);
        }
        added.map(|()| Self {
            socket,
            number,
            slot,
            shared,
        })
    }

    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        let slot = &self.slot;
        loop {
            let told = slot.told.load(Ordering::Acquire);
            if told == slot.emptied.load(Ordering::Relaxed) {
                set(&slot.reader, cx.waker());
                // An event that came before the waker was set is found here.
                if told != slot.told.load(Ordering::Acquire) {
                    continue;
                }
                return Poll::Pending;
            }
            let called = call();
            // If the call left the socket empty, the next call is skipped until a new event,
            // because it would return no packet.
            match called {
                Ok(ReadinessHint::NotReady) => slot.emptied.store(told, Ordering::Relaxed),
                Err(ref error) if error.kind() == io::ErrorKind::WouldBlock => {
                    slot.emptied.store(told, Ordering::Relaxed);
                    continue;
                }
                _ => {}
            }
            return Poll::Ready(called.map(|_| ()));
        }
    }

    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            called => {
                let full = &self.slot.full;
                if full.load(Ordering::Relaxed) && full.swap(false, Ordering::Relaxed) {
                    // If this fails, the only effect is that writability is reported without need.
                    let _ = self.watch_for_room(false);
                }
                return Poll::Ready(called.map(|_| ()));
            }
        }
        set(&self.slot.writer, cx.waker());
        self.slot.full.store(true, Ordering::Relaxed);
        // If the socket has become writable since the call, this reports an event immediately.
        self.watch_for_room(true)?;
        Poll::Pending
    }

    fn watch_for_room(&self, room: bool) -> io::Result<()> {
        let fd = self.socket.as_fd();
        self.shared.system.change(fd, self.number, room)
    }
}

impl Drop for WatchedSocket {
    fn drop(&mut self) {
        self.shared.system.remove(self.socket.as_fd());
        self.shared.sockets.remove(self.number);
    }
}

impl AsFd for WatchedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsyncSocket for WatchedSocket {
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        match readiness {
            Readiness::Read => self.poll_read(cx, call),
            Readiness::Write => self.poll_write(cx, call),
        }
    }
}
