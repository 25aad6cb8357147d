//! Endpoints on a thread of the program, which runs their tasks and waits for all their events in
//! one system call.

mod epoll;
mod join_handle;
mod sockets;
mod tasks;
mod timers;

#[cfg(feature = "tokio")]
use std::cell::Cell;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::epoll::Event;
#[cfg(feature = "tokio")]
use tokio::runtime::{Handle as Tokio, Id};

use self::epoll::{ALARM, BELL, Epoll};
pub use self::join_handle::{JoinError, JoinHandle, ThreadSpawner};
use self::sockets::{Slots, WatchedSocket};
use self::tasks::{Queue, ROOT, Task, Tasks, Woken};
use self::timers::{At, Timers};
use super::{AsyncSocket, Runtime, Timer};

/// Maximum number of tasks that are polled before the system is polled for events again. If fewer
/// tasks are ready, the system is polled after the last of them.
const MAX_POLLS: usize = 16;
/// Maximum number of events returned by one call; further events are returned by the next call.
const MAX_EVENTS: usize = 64;

thread_local! {
    /// The runtime whose `block_on` this thread executes.
    static CURRENT: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

#[cfg(feature = "tokio")]
thread_local! {
    /// The tokio runtime that was current when the thread entered `block_on`.
    static AROUND: Cell<Option<Id>> = const { Cell::new(None) };
}

/// A runtime for programs without one: the thread within [`block_on`](Self::block_on) polls the
/// program's future, the tasks of the sockets, and [spawned](Self::spawn) futures. Therefore
/// messages are not passed between threads. On Linux only.
///
/// Endpoints that are bound within `block_on` run on this runtime; to use it for endpoints that are
/// bound elsewhere, set [`Config::runtime`](crate::Config::runtime) to its
/// [`handle`](Self::handle). Its endpoints make no progress while no thread is within `block_on`.
/// Dropping the runtime drops its tasks and their sockets.
///
/// ```no_run
/// use anabranch_net::{Config, Endpoint, SendOptions, ThreadRuntime};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// ThreadRuntime::new()?.block_on(async {
///     let client = Endpoint::bind(Config::default())?;
///     let association = client.connect(([127, 0, 0, 1], 5001)).await?;
///     association.send("hello", SendOptions::default()).await?;
///     let echo = association.recv().await?;
///     association.shutdown().await?;
///     Ok(())
/// })
/// # }
/// ```
pub struct ThreadRuntime {
    shared: Arc<Shared>,
    core: RefCell<Core>,
}

/// State that only the thread within `block_on` uses.
struct Core {
    tasks: Tasks,
    rung: Vec<Waker>,
    /// Time for which the thread polls the system before it sleeps.
    busy_poll: Duration,
    /// Number of calls that polled the system for events.
    #[cfg(test)]
    looks: u64,
}

/// State shared between the thread within `block_on` and others.
#[derive(Debug)]
struct Shared {
    system: Epoll,
    queue: Queue,
    timers: Timers,
    sockets: Slots,
}

impl ThreadRuntime {
    /// Creates a runtime without tasks.
    ///
    /// # Errors
    /// The system has no descriptors left.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            shared: Arc::new(Shared {
                system: Epoll::open()?,
                queue: Queue::default(),
                timers: Timers::default(),
                sockets: Slots::default(),
            }),
            core: RefCell::new(Core {
                tasks: Tasks::default(),
                rung: Vec::new(),
                busy_poll: Duration::ZERO,
                #[cfg(test)]
                looks: 0,
            }),
        })
    }

    /// Lets the thread poll the system for this time before it sleeps, as `SO_BUSY_POLL` of
    /// socket(7) does within the system; zero, the default: the thread sleeps immediately. A packet
    /// that arrives within that time finds the thread awake, which shortens the round-trip time
    /// considerably if the two ends are on different processors. The cost is a processor that is
    /// busy for that time whenever the thread is idle; between two polls the thread yields to other
    /// threads ([`thread::yield_now`]).
    #[must_use]
    pub fn busy_poll(mut self, limit: Duration) -> Self {
        self.core.get_mut().busy_poll = limit;
        self
    }

    /// The value for [`Config::runtime`](crate::Config::runtime), on any thread.
    pub fn handle(&self) -> Arc<dyn Runtime> {
        Arc::new(Handle(Arc::clone(&self.shared)))
    }

    /// Runs `future` to its end on this thread, and meanwhile the tasks of the runtime. Tasks that
    /// have not ended by then continue in the next `block_on`: to close an association, await
    /// [`shutdown`](crate::Association::shutdown) before. Endpoints bound within an inner
    /// `block_on` of tokio run on tokio. An inner `block_on` of another library cannot be detected:
    /// endpoints bound within it would run on this runtime, which makes no progress meanwhile. Set
    /// their [`Config::runtime`](crate::Config::runtime).
    ///
    /// # Panics
    /// Panics if this thread is within `block_on` of the same runtime already. Panics of the future
    /// and of tasks are passed on.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Ok(mut core) = self.core.try_borrow_mut() else {
            panic!("`block_on` within `block_on` of the same `ThreadRuntime`");
        };
        let shared = &self.shared;
        let _here = CurrentGuard::enter(shared);
        let mut future = pin!(future);
        let root = Woken::new(ROOT, shared);
        let waker = Waker::from(Arc::clone(&root));
        let mut cx = Context::from_waker(&waker);
        waker.wake_by_ref();
        let mut events = Vec::with_capacity(MAX_EVENTS);
        loop {
            let mut sleeps = false;
            for _ in 0..MAX_POLLS {
                let Some(number) = core.tasks.next(shared) else {
                    sleeps = true;
                    break;
                };
                if number != ROOT {
                    core.tasks.poll(number);
                } else if root.begin()
                    && let Poll::Ready(done) = future.as_mut().poll(&mut cx)
                {
                    return done;
                }
            }
            core.poll_events(shared, &mut events, sleeps);
        }
    }
}

impl Core {
    /// Polls the system until there is an event, or until the polling time is over. Tasks that are
    /// queued meanwhile cause an event.
    #[allow(
        clippy::disallowed_methods,
        reason = "how long the thread has looked, whatever endpoints go by"
    )]
    fn comes_soon(&self, shared: &Shared, events: &mut Vec<Event>) -> bool {
        if self.busy_poll.is_zero() {
            return false;
        }
        let begin = Instant::now();
        while events.is_empty() && begin.elapsed() < self.busy_poll {
            // Yields, because the other end may share this processor and needs it to answer.
            thread::yield_now();
            shared.system.wait(events, false);
        }
        !events.is_empty()
    }

    /// Polls the system for events, and handles them. If `sleeps`, waits until there is one.
    fn poll_events(&mut self, shared: &Shared, events: &mut Vec<Event>, sleeps: bool) {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        if !sleeps || !self.comes_soon(shared, events) {
            shared.system.wait(events, sleeps);
        }
        shared.queue.awake();
        for event in events.drain(..) {
            let (number, flags) = (event.data.u64(), event.flags);
            match number {
                // This event only ends the wait. The thread that sent it has put a task into the
                // queue before.
                BELL => {}
                ALARM => shared.timers.ring(&shared.system, &mut self.rung),
                number => shared.sockets.record_event(number, flags),
            }
        }
    }
}

impl Drop for ThreadRuntime {
    /// Dropped outside the locks, because dropping tasks notifies users, which may call the
    /// runtime.
    fn drop(&mut self) {
        let waiting = self.shared.queue.stop();
        drop(waiting);
        self.core.get_mut().tasks = Tasks::default();
        // Drops the remaining wakers, because they may own tasks that own these wakers.
        self.shared.timers.clear();
        self.shared.sockets.clear();
    }
}

impl fmt::Debug for ThreadRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadRuntime").finish_non_exhaustive()
    }
}

/// Makes a runtime the current one of this thread until the guard is dropped.
struct CurrentGuard {
    before: Option<Arc<Shared>>,
    #[cfg(feature = "tokio")]
    around: Option<Id>,
}

impl CurrentGuard {
    fn enter(shared: &Arc<Shared>) -> Self {
        Self {
            before: CURRENT.replace(Some(Arc::clone(shared))),
            #[cfg(feature = "tokio")]
            around: AROUND.replace(tokio_here()),
        }
    }
}

impl Drop for CurrentGuard {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
        #[cfg(feature = "tokio")]
        AROUND.set(self.around);
    }
}

/// The tokio runtime in whose context this thread is.
#[cfg(feature = "tokio")]
fn tokio_here() -> Option<Id> {
    Tokio::try_current().ok().map(|it| it.id())
}

/// The runtime whose `block_on` this thread executes, unless the thread has since entered a tokio
/// runtime.
pub(super) fn current() -> Option<Arc<dyn Runtime>> {
    #[cfg(feature = "tokio")]
    if tokio_here().is_some_and(|here| AROUND.get() != Some(here)) {
        return None;
    }
    let shared = CURRENT.with_borrow(Option::clone)?;
    Some(Arc::new(Handle(shared)))
}

/// The runtime as the value of `Config::runtime`.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Runtime for Handle {
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        Box::pin(At::new(Arc::clone(&self.0), at))
    }

    fn spawn(&self, task: Task) {
        self.0.queue.spawn(&self.0.system, task);
    }

    /// Starts a thread for each call, because blocking calls are rare and short here.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        let started = thread::Builder::new()
            .name("anabranch-blocking".to_owned())
            .spawn(work);
        if let Err(error) = started {
            // Dropping the work notifies its user.
            tracing::warn!(%error, "no thread for what blocks");
        }
    }

    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
        Ok(Box::new(WatchedSocket::new(socket, Arc::clone(&self.0))?))
    }
}

#[cfg(test)]
mod tests;
