//! Worker threads for the shards of a server: each has a separate runtime, so that an association
//! and its service stay on one core.

use std::future::Future;

use anabranch_net::{BindError, Config, Shard, SharedSockets};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot::{Sender, channel};
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// The worker threads of a server, which end when this is dropped. Empty if all work runs on the
/// caller's runtime.
#[derive(Default)]
pub struct WorkerThreads(Vec<Worker>);

struct Worker {
    runtime: Handle,
    /// Dropping the sender ends the thread.
    _stays: Sender<()>,
}

impl WorkerThreads {
    /// Starts `threads` threads; a single one uses the caller's runtime instead.
    pub fn start(threads: u16) -> Result<Self, Failure> {
        let own = if threads > 1 { threads } else { 0 };
        let members: Result<_, _> = (0..own).map(|_| Worker::start()).collect();
        Ok(Self(members.map_err(|error: std::io::Error| {
            Failure::Net(format!("cannot start a thread: {error}"))
        })?))
    }

    /// Number of threads that serve.
    pub fn len(&self) -> usize {
        self.0.len().max(1)
    }

    /// Opens the sockets of `config`, a separate set for each thread.
    pub fn open(&self, config: &Config) -> Result<Vec<SharedSockets>, BindError> {
        if self.0.is_empty() {
            return Ok(vec![SharedSockets::open(config)?]);
        }
        let shards = Shard::open(config, self.0.len())?;
        let start = |(shard, member): (Shard, &Worker)| {
            let _there = member.runtime.enter();
            shard.start()
        };
        shards.into_iter().zip(&self.0).map(start).collect()
    }

    /// Runs a task on the thread with this number.
    pub fn spawn<T: Send + 'static>(
        &self,
        number: usize,
        task: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match self.0.get(number) {
            Some(member) => member.runtime.spawn(task),
            None => tokio::spawn(task),
        }
    }
}

impl Worker {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stays, stayed) = channel::<()>();
        std::thread::Builder::new()
            .name("shard".to_owned())
            .spawn(move || {
                // Runs until the sender is dropped.
                let _ = runtime.block_on(stayed);
            })?;
        Ok(Self {
            runtime: handle,
            _stays: stays,
        })
    }
}
