//! The runtime interface of endpoints: tasks, timers, socket readiness, and threads for blocking
//! calls.

#[cfg(feature = "smol")]
mod smol;
#[cfg(all(feature = "thread", target_os = "linux"))]
mod thread;
#[cfg(all(any(feature = "thread", feature = "tokio"), target_os = "linux"))]
mod timer_fd;
#[cfg(feature = "tokio")]
mod tokio;

use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::UdpSocket;
#[cfg(unix)]
pub(crate) use std::os::fd::AsFd as AsSystemSocket;
#[cfg(windows)]
pub(crate) use std::os::windows::io::AsSocket as AsSystemSocket;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

#[cfg(feature = "smol")]
pub use self::smol::SmolRuntime;
#[cfg(all(feature = "thread", target_os = "linux"))]
pub use self::thread::{JoinError, JoinHandle, ThreadRuntime, ThreadSpawner};
#[cfg(feature = "tokio")]
pub use self::tokio::TokioRuntime;

/// The part of an async runtime that endpoints need. Implementations: `TokioRuntime` (the feature
/// `tokio`, a default), `SmolRuntime` (the feature `smol`), `ThreadRuntime` (the feature `thread`,
/// on Linux), or a program's own, selected by [`Config::runtime`](crate::Config::runtime).
///
/// Only the task that owns the sockets runs on this runtime; the futures of this crate may be
/// polled by any executor.
pub trait Runtime: Debug + Send + Sync + 'static {
    /// The current time for the timers. Called under the locks of endpoints, so it must not call an
    /// endpoint.
    #[allow(
        clippy::disallowed_methods,
        reason = "the clock of endpoints, in addition to tokio's"
    )]
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Creates a timer that expires at `at`.
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>>;

    /// Like [`Runtime::timer`], for a timer that exists for long and is rarely set: the shared
    /// timer of a driver's endpoints.
    fn driver_timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        self.timer(at)
    }

    /// Starts `task`, which runs until it ends or is dropped with the runtime.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// Runs blocking work on a new thread or one of a pool, so that it does not delay tasks.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// Registers a non-blocking socket, and watches its readiness. Raw sockets are also passed as
    /// `UdpSocket`, because the system calls are the same.
    ///
    /// # Errors
    /// The error of the system.
    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>>;
}

/// A timer of a [`Runtime`]: ready from its expiry until it is set again.
pub trait Timer: Future<Output = ()> + Send {
    /// Sets the timer to expire at `at` instead. A waiting task is woken at the new time.
    fn reset(self: Pin<&mut Self>, at: Instant);
}

/// A kind of socket readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// A packet can be received.
    Read,
    /// A packet can be sent.
    Write,
}

/// Hint of a socket call whether the next call would block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadinessHint {
    /// The call may be repeated immediately.
    MayBeReady,
    /// The next call would block. A runtime may use this to skip the call, or ignore it.
    NotReady,
}

/// A socket that a [`Runtime`] watches. Only one task at a time waits for each [`Readiness`].
pub trait AsyncSocket: AsSystemSocket + Debug + Send + Sync + 'static {
    /// Makes `call` on the socket now, or when the socket is ready. If the call returns
    /// `WouldBlock` although the socket seemed ready, waits and repeats it.
    ///
    /// # Errors
    /// The error of `call`, except `WouldBlock`, or an error of watching the socket.
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>>;
}

/// The runtime of the current task: the `ThreadRuntime` of this thread, or else tokio's, or else
/// smol's if that feature is enabled.
pub(crate) fn current() -> Option<Arc<dyn Runtime>> {
    #[cfg(all(feature = "thread", target_os = "linux"))]
    if let Some(runtime) = thread::current() {
        return Some(runtime);
    }
    #[cfg(feature = "tokio")]
    if let Some(runtime) = TokioRuntime::current() {
        return Some(Arc::new(runtime));
    }
    #[cfg(feature = "smol")]
    return Some(Arc::new(SmolRuntime));
    #[cfg(not(feature = "smol"))]
    None
}

/// Waits for `future` with a timeout; returns `None` if the timeout expires.
pub(crate) async fn within<T>(
    runtime: &dyn Runtime,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    // If the expiry is beyond the range of the clock, there is no timeout.
    let at = runtime.now().checked_add(limit);
    let mut timer = at.map(|at| runtime.timer(at));
    std::future::poll_fn(move |cx| {
        if let Poll::Ready(done) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(done));
        }
        match &mut timer {
            Some(timer) => timer.as_mut().poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    })
    .await
}
