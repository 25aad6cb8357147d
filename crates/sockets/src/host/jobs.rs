//! Send queue of an association of a one-to-many socket.
//!
//! All associations of such a socket have one descriptor, which is read regardless of the state of
//! each: messages that an association cannot accept yet wait here, in the order of the program's
//! calls, and the other associations continue. A peer that does not read therefore delays only its
//! own messages. The library asks for buffer space before each message
//! ([`Request::Route`](crate::control::Request::Route)); without buffer space the program waits, or
//! gets EAGAIN.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::frame::Frame;

/// Queued bytes above which a program gets no more buffer space.
pub const SHARE: usize = 256 << 10;
/// Bytes in addition to [`SHARE`] and one message above which the descriptor is not read. Messages
/// that were granted space and are still in the descriptor can arrive: 208 KiB from one thread
/// (`net.core.wmem_default`), and one message from each further thread.
const SPARE: usize = 1 << 20;
/// Bytes counted for each job in addition to its message.
const OVERHEAD: usize = 256;

/// An operation on an association, in the order of the program's calls.
pub enum Job {
    /// Send a message.
    Message(Frame, Bytes),
    /// Shut down the association, because the program closed the socket.
    Close,
}

impl Job {
    /// Bytes counted for it.
    pub fn cost(&self) -> usize {
        match self {
            Self::Message(_, bytes) => bytes.len() + OVERHEAD,
            Self::Close => OVERHEAD,
        }
    }
}

/// Queued jobs of an association.
pub struct Jobs {
    queue: mpsc::UnboundedSender<Job>,
    /// Taken by the task that processes them.
    todo: Mutex<Option<mpsc::UnboundedReceiver<Job>>>,
    /// Bytes of the jobs in the queue or in progress.
    held: AtomicUsize,
    /// A job has finished, or processing has stopped.
    changed: Notify,
}

impl Jobs {
    /// An empty queue.
    pub fn new() -> Self {
        let (queue, todo) = mpsc::unbounded_channel();
        Self {
            queue,
            todo: Mutex::new(Some(todo)),
            held: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }

    /// The receiver for the task that processes the jobs; available once.
    pub fn take(&self) -> Option<mpsc::UnboundedReceiver<Job>> {
        let mut todo = self.todo.lock().unwrap_or_else(PoisonError::into_inner);
        todo.take()
    }

    /// Queues a job.
    pub fn ask(&self, job: Job) {
        let cost = job.cost();
        self.held.fetch_add(cost, Ordering::AcqRel);
        // The task ends with the association, after which no job can run.
        if self.queue.send(job).is_err() {
            self.done(cost);
        }
    }

    /// A job of that cost has finished.
    pub fn done(&self, cost: usize) {
        self.held.fetch_sub(cost, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Stops processing and wakes the waiting tasks.
    pub fn end(&self) {
        drop(self.take());
        self.changed.notify_waiters();
    }

    /// Whether all jobs have finished.
    pub fn are_done(&self) -> bool {
        self.is_within(0)
    }

    /// Whether a program may send another message.
    pub fn have_room(&self) -> bool {
        self.is_within(SHARE)
    }

    /// Waits for [`Self::have_room`].
    pub async fn room(&self) {
        self.within(SHARE).await;
    }

    /// Waits while the queue exceeds the space that was granted, with an allowance for messages of
    /// several threads. `largest`: size of the largest message, bytes.
    pub async fn bounded(&self, largest: usize) {
        self.within(SHARE + SPARE + largest).await;
    }

    /// Waits until all jobs have finished.
    pub async fn all_done(&self) {
        self.within(0).await;
    }

    fn is_within(&self, most: usize) -> bool {
        self.held.load(Ordering::Acquire) <= most || self.queue.is_closed()
    }

    async fn within(&self, most: usize) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.is_within(most) {
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn message(bytes: usize) -> Job {
        Job::Message(Frame::default(), Bytes::from(vec![7; bytes]))
    }

    fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        std::pin::Pin::new(future).poll(&mut cx) == Poll::Pending
    }

    #[test]
    fn there_is_room_for_a_share_and_waiting_ends_when_jobs_are_done() {
        let jobs = Jobs::new();
        let mut todo = jobs.take().expect("nobody has them");
        assert!(jobs.are_done() && jobs.have_room() && jobs.take().is_none());
        jobs.ask(message(SHARE - OVERHEAD));
        assert!(!jobs.are_done() && jobs.have_room());
        jobs.ask(message(1));
        assert!(!jobs.have_room());
        let (mut room, mut all) = (pin!(jobs.room()), pin!(jobs.all_done()));
        let mut bounded = pin!(jobs.bounded(10));
        assert!(is_pending(&mut room) && is_pending(&mut all) && !is_pending(&mut bounded));
        let first = todo.try_recv().expect("the first").cost();
        // The job counts until it has finished.
        assert!(is_pending(&mut room));
        jobs.done(first);
        assert!(!is_pending(&mut room) && is_pending(&mut all));
        jobs.done(todo.try_recv().expect("the second").cost());
        assert!(!is_pending(&mut all));
    }

    #[test]
    fn more_than_was_given_room_is_waited_for() {
        let jobs = Jobs::new();
        jobs.ask(message(SHARE + SPARE));
        let mut bounded = pin!(jobs.bounded(OVERHEAD));
        assert!(!is_pending(&mut bounded));
        jobs.ask(message(1));
        let mut bounded = pin!(jobs.bounded(OVERHEAD));
        assert!(is_pending(&mut bounded));
        // Processing stopped: the association could not be set up.
        jobs.end();
        assert!(!is_pending(&mut bounded) && jobs.have_room() && jobs.are_done());
    }

    #[test]
    fn what_comes_behind_the_end_is_let_go() {
        let jobs = Jobs::new();
        let todo = jobs.take();
        jobs.ask(message(SHARE));
        assert!(!jobs.have_room());
        let mut room = pin!(jobs.room());
        assert!(is_pending(&mut room));
        drop(todo);
        jobs.end();
        assert!(!is_pending(&mut room));
        jobs.ask(message(SHARE));
        assert!(jobs.have_room());
    }
}
