//! What waits for an association of a socket with many.
//!
//! All associations of such a socket have one descriptor, which is read on whatever one of them does: what an association does not take yet waits
//! here, in the order of the program's calls, and the others go on. So a peer that reads nothing holds up its own messages alone. The
//! library asks before each message whether there is room ([`Request::Route`](crate::control::Request::Route)); where there is none, the
//! program waits, or is told EAGAIN.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::frame::Frame;

/// Bytes that may wait before a program gets no room for more.
pub const SHARE: usize = 256 << 10;
/// Bytes beyond [`SHARE`] and one message before the descriptor is read no more. What was given room and waits in the descriptor still comes:
/// 208 KiB of one thread (`net.core.wmem_default`), and a message of each further one.
const SPARE: usize = 1 << 20;
/// Bytes that a job counts beside its message.
const OVERHEAD: usize = 256;

/// What is to be done with an association, in the order of the program's calls.
pub enum Job {
    /// Send a message.
    Message(Frame, Bytes),
    /// Shut it down: the program closed the socket.
    Close,
}

impl Job {
    /// Bytes that it counts.
    pub fn cost(&self) -> usize {
        match self {
            Self::Message(_, bytes) => bytes.len() + OVERHEAD,
            Self::Close => OVERHEAD,
        }
    }
}

/// The jobs of an association.
pub struct Jobs {
    queue: mpsc::UnboundedSender<Job>,
    /// Taken by the task that does them.
    todo: Mutex<Option<mpsc::UnboundedReceiver<Job>>>,
    /// Bytes of those that were asked for and not done.
    held: AtomicUsize,
    /// One was done, or none will be.
    changed: Notify,
}

impl Jobs {
    /// None.
    pub fn new() -> Self {
        let (queue, todo) = mpsc::unbounded_channel();
        Self {
            queue,
            todo: Mutex::new(Some(todo)),
            held: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }

    /// Those to come, for whoever does them; once.
    pub fn take(&self) -> Option<mpsc::UnboundedReceiver<Job>> {
        let mut todo = self.todo.lock().unwrap_or_else(PoisonError::into_inner);
        todo.take()
    }

    /// Does a job after those before it.
    pub fn ask(&self, job: Job) {
        let cost = job.cost();
        self.held.fetch_add(cost, Ordering::AcqRel);
        // Whoever does them ends with the association, and then nothing can be done.
        if self.queue.send(job).is_err() {
            self.done(cost);
        }
    }

    /// A job of that cost was done.
    pub fn done(&self, cost: usize) {
        self.held.fetch_sub(cost, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// None will be done any more: nobody waits for that.
    pub fn end(&self) {
        drop(self.take());
        self.changed.notify_waiters();
    }

    /// Whether all were done.
    pub fn are_done(&self) -> bool {
        self.is_within(0)
    }

    /// Whether a program may send another message.
    pub fn have_room(&self) -> bool {
        self.is_within(SHARE)
    }

    /// Waits until [`Self::have_room`].
    pub async fn room(&self) {
        self.within(SHARE).await;
    }

    /// Waits while more waits than was ever given room, but for messages of many threads at once. `largest`: bytes of the largest message.
    pub async fn bounded(&self, largest: usize) {
        self.within(SHARE + SPARE + largest).await;
    }

    /// Waits until all were done.
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
        // It counts until it is done.
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
        // Nobody does them: the association could not be made.
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
