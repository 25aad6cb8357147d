//! What an endpoint asks of the runtime that it lives on: a task, timers, readiness of sockets, and a thread for what blocks.

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

/// An async runtime, as far as endpoints need one: `TokioRuntime` (the feature `tokio`, a default), `SmolRuntime` (the feature `smol`),
/// `ThreadRuntime` (the feature `thread`, on Linux), or a program's own. [`Config::runtime`](crate::Config::runtime) names it.
///
/// The futures of this crate ask nothing of the executor that polls them: only the task that owns the sockets lives on this runtime.
pub trait Runtime: Debug + Send + Sync + 'static {
    /// The time that its timers go by. It is asked under the locks of endpoints, and calls nothing of theirs.
    #[allow(
        clippy::disallowed_methods,
        reason = "the clock of endpoints, beside tokio's"
    )]
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// A timer that ends at `at`.
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>>;

    /// As [`Runtime::timer`], for who keeps it long and seldom sets it: an endpoint's timers share one such.
    fn driver_timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        self.timer(at)
    }

    /// Runs `task` to its end, or until the runtime goes down: then it is dropped.
    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>);

    /// Runs what blocks, on a thread where that holds up no task.
    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>);

    /// Takes a socket, which does not block, and watches when it can be read and written. Raw sockets come as this type, too: the calls are
    /// the same.
    ///
    /// # Errors
    /// What the system says.
    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>>;
}

/// A timer of a [`Runtime`]: ready when its time has come, and from then on until it is set anew.
pub trait Timer: Future<Output = ()> + Send {
    /// Lets it end at `at` instead. Whoever waits is woken at the new time.
    fn reset(self: Pin<&mut Self>, at: Instant);
}

/// A way to use a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// Something can be received.
    Read,
    /// Something can be sent.
    Write,
}

/// What a call on a socket left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadinessHint {
    /// Perhaps it can be made again at once.
    MayBeReady,
    /// It would block if it were made again now. A runtime may take that as a hint that saves the call, or not look at it.
    NotReady,
}

/// A socket that a [`Runtime`] watches. One task at a time waits for each [`Readiness`].
pub trait AsyncSocket: AsSystemSocket + Debug + Send + Sync + 'static {
    /// Makes `call` on the socket, now or when that is ready for it; again, as long as it gives `WouldBlock` although the socket seemed ready.
    ///
    /// # Errors
    /// What `call` gives, beside `WouldBlock`, or what the system says of the readiness.
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>>;
}

/// The runtime of the task that asks: the one that its thread blocks on, or tokio's if it runs there, else smol's if that feature is on.
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

/// Waits for `future`, but for so long at most; `None`: that was not long enough.
pub(crate) async fn within<T>(
    runtime: &dyn Runtime,
    limit: Duration,
    future: impl Future<Output = T>,
) -> Option<T> {
    let mut future = std::pin::pin!(future);
    // A limit beyond what clocks can tell is none.
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
