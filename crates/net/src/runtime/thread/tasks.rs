//! Tasks of the runtime, and the queue of ready tasks.

use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use super::Shared;
use super::epoll::Epoll;

/// The number of the future of `block_on`. The tasks have the following numbers.
pub(super) const ROOT: usize = 0;

pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Queue of woken and spawned tasks, which any thread may append to.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    /// True if the thread waits for the system, or is about to wait: after adding a task it must be
    /// woken.
    sleeps: AtomicBool,
}

#[derive(Default)]
pub(super) struct Waiting {
    ready: VecDeque<usize>,
    spawned: Vec<Task>,
    /// True after the runtime has ended.
    over: bool,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("ready", &self.ready)
            .field("spawned", &self.spawned.len())
            .finish_non_exhaustive()
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, system: &Epoll, number: usize) {
        let mut state = self.lock();
        if !state.over {
            state.ready.push_back(number);
        }
        drop(state);
        self.ring_if_asleep(system);
    }

    pub(super) fn spawn(&self, system: &Epoll, task: Task) {
        let mut state = self.lock();
        if state.over {
            drop(state);
            // The future is dropped without the lock, because its drop may call this method again.
            return drop(task);
        }
        state.spawned.push(task);
        drop(state);
        self.ring_if_asleep(system);
    }

    /// Wakes the thread if it sleeps. No wakeup is lost, because the thread sets `sleeps` under the
    /// lock of the queue: either it finds the added task before it sleeps, or this check finds
    /// `sleeps` set.
    fn ring_if_asleep(&self, system: &Epoll) {
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::Relaxed) {
            system.ring();
        }
    }

    /// Records that the thread no longer waits.
    pub(super) fn awake(&self) {
        self.sleeps.store(false, Ordering::Relaxed);
    }

    /// Stops the queue, and returns its content to be dropped.
    pub(super) fn stop(&self) -> Waiting {
        let over = Waiting {
            over: true,
            ..Waiting::default()
        };
        std::mem::replace(&mut *self.lock(), over)
    }
}

/// Waker data of a task.
#[derive(Debug)]
pub(super) struct Woken {
    number: usize,
    /// True while the task is in the queue.
    queued: AtomicBool,
    shared: Arc<Shared>,
}

impl Woken {
    pub(super) fn new(number: usize, shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Self {
            number,
            queued: AtomicBool::new(false),
            shared: Arc::clone(shared),
        })
    }

    /// Called before the task is polled, so that a later wakeup queues it again. Returns false if
    /// the task was not woken, because the queue entry belongs to an earlier task with this number.
    pub(super) fn begin(&self) -> bool {
        self.queued.swap(false, Ordering::AcqRel)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.shared.queue.push(&self.shared.system, self.number);
        }
    }
}

/// All tasks; only the thread within `block_on` polls them.
#[derive(Default)]
pub(super) struct Tasks {
    all: Vec<Option<Running>>,
    free: Vec<usize>,
    /// Numbers of tasks that were taken from the queue and will be polled next.
    ready: VecDeque<usize>,
}

struct Running {
    task: Task,
    woken: Arc<Woken>,
    waker: Waker,
}

impl Tasks {
    /// The number of the next ready task. `None`: no task is ready, and the next wakeup must wake
    /// the thread.
    pub(super) fn next(&mut self, shared: &Arc<Shared>) -> Option<usize> {
        if self.ready.is_empty() {
            let mut state = shared.queue.lock();
            std::mem::swap(&mut self.ready, &mut state.ready);
            if !state.spawned.is_empty() {
                let spawned = std::mem::take(&mut state.spawned);
                drop(state);
                spawned.into_iter().for_each(|it| self.add(it, shared));
            } else if self.ready.is_empty() {
                shared.queue.sleeps.store(true, Ordering::Relaxed);
            }
        }
        self.ready.pop_front()
    }

    fn add(&mut self, task: Task, shared: &Arc<Shared>) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        let number = ROOT + 1 + index;
        let woken = Woken::new(number, shared);
        woken.queued.store(true, Ordering::Relaxed);
        self.ready.push_back(number);
        self.all[index] = Some(Running {
            waker: Waker::from(Arc::clone(&woken)),
            task,
            woken,
        });
    }

    /// Polls the task with this number, if it was woken. A task that panics is removed.
    pub(super) fn poll(&mut self, number: usize) {
        let index = number - ROOT - 1;
        let Some(mut running) = self.all.get_mut(index).and_then(Option::take) else {
            return;
        };
        // The slot is marked free before the poll, so that it is free even if the task panics. No
        // task is added during the poll.
        self.free.push(index);
        let ended = running.woken.begin() && {
            let mut cx = Context::from_waker(&running.waker);
            match running.task.as_mut().poll(&mut cx) {
                Poll::Ready(()) => true,
                Poll::Pending => false,
            }
        };
        if !ended {
            self.free.pop();
            self.all[index] = Some(running);
        }
    }
}
