//! Send queue of an association of a one-to-many socket.
//!
//! All associations of such a socket share one descriptor, which is always read. Messages that an
//! association cannot accept yet are queued here, in the order of the program's calls. Therefore a
//! peer that does not read delays only messages to itself. The library requests buffer space before
//! each message ([`HostRequest::Route`](crate::control::HostRequest::Route)); if there is none, the
//! program waits or gets EAGAIN.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::frame::HostFrameHeader;

/// Number of queued bytes from which on a program gets no more buffer space.
pub(super) const MAX_QUEUED: usize = 256 << 10;
/// Margin in bytes: the descriptor is not read while the queue has more than [`MAX_QUEUED`], one
/// message and this margin. The margin is for messages that were granted space and are still in the
/// descriptor: 208 KiB from one thread (`net.core.wmem_default`), and one message from each further
/// thread.
const QUEUE_MARGIN: usize = 1 << 20;
/// Size that is counted for each operation in addition to its message, bytes.
const JOB_OVERHEAD: usize = 256;

/// A queued operation on an association, in the order of the program's calls.
pub(super) enum QueuedOperation {
    /// Send a message.
    Message(HostFrameHeader, Bytes),
    /// Shut down the association, because the program closed the socket.
    Close,
}

impl QueuedOperation {
    /// Size that is counted for the operation, bytes.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Message(_, bytes) => bytes.len() + JOB_OVERHEAD,
            Self::Close => JOB_OVERHEAD,
        }
    }
}

/// Queued operations on an association.
pub(super) struct SendQueue {
    queue: mpsc::UnboundedSender<QueuedOperation>,
    /// Receiver of the operations, until the task that processes them takes it.
    todo: Mutex<Option<mpsc::UnboundedReceiver<QueuedOperation>>>,
    /// Size of the operations that are queued or in progress, bytes.
    held: AtomicUsize,
    /// Notified when an operation has finished, or when processing has stopped.
    changed: Notify,
}

impl SendQueue {
    /// Creates an empty queue.
    pub(super) fn new() -> Self {
        let (queue, todo) = mpsc::unbounded_channel();
        Self {
            queue,
            todo: Mutex::new(Some(todo)),
            held: AtomicUsize::new(0),
            changed: Notify::new(),
        }
    }

    /// Takes the receiver, for the task that processes the operations; available only once.
    pub(super) fn take(&self) -> Option<mpsc::UnboundedReceiver<QueuedOperation>> {
        let mut todo = self.todo.lock().unwrap_or_else(PoisonError::into_inner);
        todo.take()
    }

    /// Queues an operation.
    pub(super) fn ask(&self, job: QueuedOperation) {
        let cost = job.cost();
        self.held.fetch_add(cost, Ordering::AcqRel);
        // The task has ended with the association, so the operation is dropped.
        if self.queue.send(job).is_err() {
            self.done(cost);
        }
    }

    /// Records that an operation of this size has finished.
    pub(super) fn done(&self, cost: usize) {
        self.held.fetch_sub(cost, Ordering::AcqRel);
        self.changed.notify_waiters();
    }

    /// Stops processing and wakes the waiting tasks.
    pub(super) fn end(&self) {
        drop(self.take());
        self.changed.notify_waiters();
    }

    /// Whether all operations have finished.
    pub(super) fn are_done(&self) -> bool {
        self.is_within(0)
    }

    /// Whether a program may send another message.
    pub(super) fn have_room(&self) -> bool {
        self.is_within(MAX_QUEUED)
    }

    /// Waits for [`Self::have_room`].
    pub(super) async fn room(&self) {
        self.within(MAX_QUEUED).await;
    }

    /// Waits while the queue has more than [`MAX_QUEUED`], [`QUEUE_MARGIN`] and one message of the
    /// maximum size `largest` together, bytes.
    pub(super) async fn bounded(&self, largest: usize) {
        self.within(MAX_QUEUED + QUEUE_MARGIN + largest).await;
    }

    /// Waits until all operations have finished.
    pub(super) async fn all_done(&self) {
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

    fn message(bytes: usize) -> QueuedOperation {
        QueuedOperation::Message(HostFrameHeader::default(), Bytes::from(vec![7; bytes]))
    }

    fn is_pending(future: &mut (impl Future<Output = ()> + Unpin)) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        std::pin::Pin::new(future).poll(&mut cx) == Poll::Pending
    }

    #[test]
    fn there_is_space_for_a_share_and_waiting_ends_when_jobs_are_done() {
        let send_queue = SendQueue::new();
        let mut todo = send_queue.take().expect("nobody has them");
        assert!(send_queue.are_done() && send_queue.have_room() && send_queue.take().is_none());
        send_queue.ask(message(MAX_QUEUED - JOB_OVERHEAD));
        assert!(!send_queue.are_done() && send_queue.have_room());
        send_queue.ask(message(1));
        assert!(!send_queue.have_room());
        let (mut room, mut all) = (pin!(send_queue.room()), pin!(send_queue.all_done()));
        let mut bounded = pin!(send_queue.bounded(10));
        assert!(is_pending(&mut room) && is_pending(&mut all) && !is_pending(&mut bounded));
        let first = todo.try_recv().expect("the first").cost();
        // An operation occupies space in the queue until it has finished, even after it was
        // received.
        assert!(is_pending(&mut room));
        send_queue.done(first);
        assert!(!is_pending(&mut room) && is_pending(&mut all));
        send_queue.done(todo.try_recv().expect("the second").cost());
        assert!(!is_pending(&mut all));
    }

    #[test]
    fn more_than_was_given_space_is_waited_for() {
        let send_queue = SendQueue::new();
        send_queue.ask(message(MAX_QUEUED + QUEUE_MARGIN));
        let mut bounded = pin!(send_queue.bounded(JOB_OVERHEAD));
        assert!(!is_pending(&mut bounded));
        send_queue.ask(message(1));
        let mut bounded = pin!(send_queue.bounded(JOB_OVERHEAD));
        assert!(is_pending(&mut bounded));
        // Processing has stopped, because the association could not be set up.
        send_queue.end();
        assert!(!is_pending(&mut bounded) && send_queue.have_room() && send_queue.are_done());
    }

    #[test]
    fn requests_after_the_end_are_dropped() {
        let send_queue = SendQueue::new();
        let todo = send_queue.take();
        send_queue.ask(message(MAX_QUEUED));
        assert!(!send_queue.have_room());
        let mut room = pin!(send_queue.room());
        assert!(is_pending(&mut room));
        drop(todo);
        send_queue.end();
        assert!(!is_pending(&mut room));
        send_queue.ask(message(MAX_QUEUED));
        assert!(send_queue.have_room());
    }
}
