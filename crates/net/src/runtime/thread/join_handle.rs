//! Spawned futures, which run concurrently with the future of `block_on`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use thiserror::Error;
use tokio::sync::oneshot;

use super::{CURRENT, Shared, ThreadRuntime};

/// A spawned future on a [`ThreadRuntime`] ([`ThreadRuntime::spawn`]). Awaiting the handle returns
/// the result of the future. If the handle is dropped, the future continues to run.
#[must_use = "a result that nobody wants is dropped by `drop`"]
pub struct JoinHandle<T>(oneshot::Receiver<T>);

/// Error of a spawned future without a result: it panicked, or its runtime was dropped before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the future panicked, or its runtime was dropped")]
pub struct JoinError;

/// A handle for spawning on a [`ThreadRuntime`] from any thread, and from futures that do not have
/// the runtime itself. Clones spawn on the same runtime.
#[derive(Clone)]
pub struct ThreadSpawner(Arc<Shared>);

impl ThreadRuntime {
    /// Runs `future` on the thread that executes [`block_on`](Self::block_on), concurrently with
    /// its future. May be called by any thread, also before `block_on`; spawned futures run only
    /// while a thread is within `block_on`. `Send` is required because the runtime may move to
    /// another thread between two calls.
    ///
    /// ```no_run
    /// use anabranch_net::{Config, Endpoint, SendOptions, ThreadRuntime, ThreadSpawner};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// ThreadRuntime::new()?.block_on(async {
    ///     let spawner = ThreadSpawner::current().ok_or("within `block_on`")?;
    ///     let server = Endpoint::bind(Config::server(7))?;
    ///     loop {
    ///         let association = server.accept().await?;
    ///         // Each is served by itself.
    ///         drop(spawner.spawn(async move {
    ///             while let Ok(Some(it)) = association.recv().await {
    ///                 let echo = association.send(it.bytes, SendOptions::on(it.stream));
    ///                 if echo.await.is_err() {
    ///                     break;
    ///                 }
    ///             }
    ///         }));
    ///     }
    /// })
    /// # }
    /// ```
    ///
    /// If the future panics, `block_on` passes the panic on.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn(&self.shared, future)
    }

    /// A spawner for this runtime, to be passed to futures and other threads.
    pub fn spawner(&self) -> ThreadSpawner {
        ThreadSpawner(Arc::clone(&self.shared))
    }
}

impl ThreadSpawner {
    /// A spawner for the runtime whose [`block_on`](ThreadRuntime::block_on) this thread executes;
    /// `None` outside of `block_on`.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Option::clone).map(Self)
    }

    /// Like [`ThreadRuntime::spawn`]. If the runtime no longer exists, the future is dropped
    /// immediately.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        spawn(&self.0, future)
    }
}

fn spawn<F>(shared: &Shared, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (tell, told) = oneshot::channel();
    let task = async move {
        // Fails if the join handle was dropped, which needs no action.
        let _ = tell.send(future.await);
    };
    shared.queue.spawn(&shared.system, Box::pin(task));
    JoinHandle(told)
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let told = Pin::new(&mut self.0).poll(cx);
        told.map(|result| result.map_err(|_| JoinError))
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for ThreadSpawner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadSpawner").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Spawned futures run on the thread within `block_on` even if they are not joined. This
    /// includes futures that they spawn.
    #[test]
    fn spawned_futures_run_without_being_joined_and_return_their_results() {
        let runtime = ThreadRuntime::new().expect("descriptors");
        let before = runtime.spawn(async { thread::current().id() });
        let from_afar = runtime.spawner();
        let other = thread::spawn(move || from_afar.spawn(async { 2 }));
        let far = other.join().expect("no panic");
        let (sends, waits) = oneshot::channel();
        let sum = runtime.block_on(async {
            let spawner = ThreadSpawner::current().expect("within `block_on`");
            let waits = runtime.spawn(async move { waits.await.expect("it is sent") });
            let inner = spawner.clone();
            let nested = spawner.spawn(async move { inner.spawn(async { 3 }).await });
            // The join handle is dropped, and the future still runs.
            drop(spawner.spawn(async move { sends.send(4) }));
            let far = far.await.expect("it ran");
            far + nested.await.expect("it ran").expect("it ran") + waits.await.expect("it ran")
        });
        assert_eq!(sum, 9);
        let id = runtime.block_on(before);
        assert_eq!(id, Ok(thread::current().id()));
        assert!(ThreadSpawner::current().is_none(), "out of `block_on`");
    }

    #[test]
    fn futures_that_end_without_a_result_give_a_join_error() {
        let runtime = ThreadRuntime::new().expect("descriptors");
        let spawner = runtime.spawner();
        let panics = spawner.spawn(async { panic!("a future does") });
        let blocks = || runtime.block_on(std::future::pending::<()>());
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(blocks)).expect_err("it panics");
        let lost: Result<(), _> = runtime.block_on(panics);
        assert_eq!(lost, Err(JoinError));
        let never = spawner.spawn(std::future::pending::<()>());
        runtime.block_on(async {});
        drop(runtime);
        let late = spawner.spawn(async {});
        let other = ThreadRuntime::new().expect("descriptors");
        assert_eq!(other.block_on(never), Err(JoinError));
        assert_eq!(other.block_on(late), Err(JoinError));
    }
}
