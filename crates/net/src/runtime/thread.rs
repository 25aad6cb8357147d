//! Endpoints on the thread of the program: it runs the tasks of its sockets, and waits for all that they wait for in one call of the system.

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
use self::sockets::{Slots, Watched};
use self::tasks::{Queue, ROOT, Task, Tasks, Woken};
use self::timers::{At, Timers};
use super::{AsyncSocket, Runtime, Timer};

/// Tasks that are polled before the system is asked again what has come. Where fewer are ready it is asked when none is.
const MOST_POLLS: usize = 16;
/// Events that one call brings; more wait for the next.
const MOST_EVENTS: usize = 64;

thread_local! {
    /// What this thread is within `block_on` of.
    static CURRENT: RefCell<Option<Arc<Shared>>> = const { RefCell::new(None) };
}

#[cfg(feature = "tokio")]
thread_local! {
    /// The runtime of tokio's that it was on when it came there.
    static AROUND: Cell<Option<Id>> = const { Cell::new(None) };
}

/// A runtime for programs that have none: the thread that is within [`block_on`](Self::block_on) polls the program's future and the tasks of the
/// sockets in turn, and the futures that it [spawns](Self::spawn). So a message neither changes threads nor waits in the queues of another library. On Linux.
///
/// What is bound within `block_on` lives on this runtime; elsewhere [`Config::runtime`](crate::Config::runtime) takes its
/// [`handle`](Self::handle). Nothing happens at its endpoints while no thread is within `block_on`. Where the runtime is dropped, its tasks
/// and their sockets are, too.
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

/// What the thread has for itself while it runs.
struct Core {
    tasks: Tasks,
    rung: Vec<Waker>,
    /// How long it asks the system again and again before it sleeps.
    busy_poll: Duration,
    /// Calls that asked the system what has come.
    #[cfg(test)]
    looks: u64,
}

/// What any thread may use.
#[derive(Debug)]
struct Shared {
    system: Epoll,
    queue: Queue,
    timers: Timers,
    sockets: Slots,
}

impl ThreadRuntime {
    /// A runtime without tasks.
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

    /// Lets the thread ask the system again and again for that long before it sleeps, as `SO_BUSY_POLL` of socket(7) does within the system;
    /// zero, none, unless called. An answer that comes within that time finds the thread awake: with an end on each of two processors a
    /// ping takes a fraction of the time. The price is a processor that is busy for so long each time there is nothing to do; between two
    /// looks the thread offers it to others ([`thread::yield_now`]).
    #[must_use]
    pub fn busy_poll(mut self, limit: Duration) -> Self {
        self.core.get_mut().busy_poll = limit;
        self
    }

    /// What [`Config::runtime`](crate::Config::runtime) takes, on any thread.
    pub fn handle(&self) -> Arc<dyn Runtime> {
        Arc::new(Handle(Arc::clone(&self.shared)))
    }

    /// Runs `future` to its end on this thread, and meanwhile the tasks of the runtime. Those that have not ended then go on in the next
    /// `block_on`: whoever wants an association to be closed awaits [`shutdown`](crate::Association::shutdown) before.
    /// What is bound where tokio's `block_on` runs within this one lives there. Where another library's does, nothing tells of that: it lives here,
    /// and would wait for ever. Name that library's runtime in [`Config::runtime`](crate::Config::runtime).
    ///
    /// # Panics
    /// Where this thread is within `block_on` of the same runtime already. A panic of the future or of a task goes through.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let Ok(mut core) = self.core.try_borrow_mut() else {
            panic!("`block_on` within `block_on` of the same `ThreadRuntime`");
        };
        let shared = &self.shared;
        let _here = Here::enter(shared);
        let mut future = pin!(future);
        let root = Woken::new(ROOT, shared);
        let waker = Waker::from(Arc::clone(&root));
        let mut cx = Context::from_waker(&waker);
        waker.wake_by_ref();
        let mut events = Vec::with_capacity(MOST_EVENTS);
        loop {
            let mut sleeps = false;
            for _ in 0..MOST_POLLS {
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
            core.look(shared, &mut events, sleeps);
        }
    }
}

impl Core {
    /// Asks the system until something has come, or the time for that is over. Whoever puts something into the queue rings meanwhile.
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
            // On a processor that both ends share, the answer needs it first.
            thread::yield_now();
            shared.system.wait(events, false);
        }
        !events.is_empty()
    }

    /// Asks the system what has come; waits for it where no task is ready.
    fn look(&mut self, shared: &Shared, events: &mut Vec<Event>, sleeps: bool) {
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
                // Whoever rang has put something into the queue.
                BELL => {}
                ALARM => shared.timers.ring(&shared.system, &mut self.rung),
                number => shared.sockets.tell(number, flags),
            }
        }
    }
}

impl Drop for ThreadRuntime {
    /// What waits for its end learns of it as the tasks are dropped, and may come here meanwhile.
    fn drop(&mut self) {
        let waiting = self.shared.queue.stop();
        drop(waiting);
        self.core.get_mut().tasks = Tasks::default();
        // Whoever waits is waited for by nobody: wakers hold what they are held by.
        self.shared.timers.clear();
        self.shared.sockets.clear();
    }
}

impl fmt::Debug for ThreadRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadRuntime").finish_non_exhaustive()
    }
}

/// Makes a runtime the current one, until it is dropped.
struct Here {
    before: Option<Arc<Shared>>,
    #[cfg(feature = "tokio")]
    around: Option<Id>,
}

impl Here {
    fn enter(shared: &Arc<Shared>) -> Self {
        Self {
            before: CURRENT.replace(Some(Arc::clone(shared))),
            #[cfg(feature = "tokio")]
            around: AROUND.replace(tokio_here()),
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
        #[cfg(feature = "tokio")]
        AROUND.set(self.around);
    }
}

/// The runtime of tokio's that this thread is on.
#[cfg(feature = "tokio")]
fn tokio_here() -> Option<Id> {
    Tokio::try_current().ok().map(|it| it.id())
}

/// The runtime that this thread is within `block_on` of, unless it has come from there to one of tokio's.
pub(super) fn current() -> Option<Arc<dyn Runtime>> {
    #[cfg(feature = "tokio")]
    if tokio_here().is_some_and(|here| AROUND.get() != Some(here)) {
        return None;
    }
    let shared = CURRENT.with_borrow(Option::clone)?;
    Some(Arc::new(Handle(shared)))
}

/// The runtime as endpoints have it.
#[derive(Debug)]
struct Handle(Arc<Shared>);

impl Runtime for Handle {
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        Box::pin(At::new(Arc::clone(&self.0), at))
    }

    fn spawn(&self, task: Task) {
        self.0.queue.spawn(&self.0.system, task);
    }

    /// A thread for each: what blocks here is seldom, and short.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        let started = thread::Builder::new()
            .name("anabranch-blocking".to_owned())
            .spawn(work);
        if let Err(error) = started {
            // The work is dropped, which tells who waits for it.
            tracing::warn!(%error, "no thread for what blocks");
        }
    }

    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
        Ok(Box::new(Watched::new(socket, Arc::clone(&self.0))?))
    }
}

#[cfg(test)]
mod tests;
