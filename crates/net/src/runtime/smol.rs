//! Endpoints on smol: tasks on its global executor, sockets and timers on the reactor of
//! `async-io`.

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use smol::Async;

use super::{AsyncSocket, Readiness, ReadinessHint, Runtime, Timer};

/// The runtime smol. Tasks run on its global executor with `SMOL_THREADS` threads (default: 1),
/// until they end or the process exits. A program with its own executor should implement a
/// [`Runtime`] for that.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmolRuntime;

impl Runtime for SmolRuntime {
    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        Box::pin(At {
            timer: smol::Timer::at(at),
            over: false,
        })
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        smol::spawn(task).detach();
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        smol::unblock(work).detach();
    }

    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
        Ok(Box::new(Async::new(socket)?))
    }
}

/// A timer that stays ready after its expiry; smol's timer reports the expiry only once.
#[derive(Debug)]
struct At {
    timer: smol::Timer,
    over: bool,
}

impl Future for At {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.over {
            ready!(Pin::new(&mut self.timer).poll(cx));
            self.over = true;
        }
        Poll::Ready(())
    }
}

impl Timer for At {
    fn reset(mut self: Pin<&mut Self>, at: Instant) {
        self.timer.set_at(at);
        self.over = false;
    }
}

impl AsyncSocket for Async<UdpSocket> {
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        loop {
            // The call is made before waiting, because the reactor reports readiness only to tasks
            // that wait already.
            match call() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                called => return Poll::Ready(called.map(|_| ())),
            }
            ready!(match readiness {
                Readiness::Read => self.poll_readable(cx),
                Readiness::Write => self.poll_writable(cx),
            })?;
        }
    }
}
