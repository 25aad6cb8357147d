//! Threads for the shards of a server: each has a runtime of its own, so that an association and what serves it stay on one core.

use std::future::Future;

use anabranch_net::{BindError, Config, Shard, SharedSockets};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot::{Sender, channel};
use tokio::task::JoinHandle;

use crate::failure::Failure;

/// All of them, until this is dropped. None: all is done on the runtime that asks.
#[derive(Default)]
pub struct Crew(Vec<Member>);

struct Member {
    runtime: Handle,
    /// The thread ends with it.
    _stays: Sender<()>,
}

impl Crew {
    /// So many threads; for one, that of who asks.
    pub fn of(threads: u16) -> Result<Self, Failure> {
        let own = if threads > 1 { threads } else { 0 };
        let members: Result<_, _> = (0..own).map(|_| Member::start()).collect();
        Ok(Self(members.map_err(|error: std::io::Error| {
            Failure::Wire(format!("cannot start a thread: {error}"))
        })?))
    }

    /// How many threads serve.
    pub fn len(&self) -> usize {
        self.0.len().max(1)
    }

    /// Opens the sockets that `config` asks for, for each thread some of its own.
    pub fn open(&self, config: &Config) -> Result<Vec<SharedSockets>, BindError> {
        if self.0.is_empty() {
            return Ok(vec![SharedSockets::open(config)?]);
        }
        let shards = Shard::open(config, self.0.len())?;
        let start = |(shard, member): (Shard, &Member)| {
            let _there = member.runtime.enter();
            shard.start()
        };
        shards.into_iter().zip(&self.0).map(start).collect()
    }

    /// Runs a task on the thread of that number.
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

impl Member {
    fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stays, stayed) = channel::<()>();
        std::thread::Builder::new()
            .name("shard".to_owned())
            .spawn(move || {
                // It ends when nobody can say anything any more.
                let _ = runtime.block_on(stayed);
            })?;
        Ok(Self {
            runtime: handle,
            _stays: stays,
        })
    }
}
