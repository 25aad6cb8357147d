//! Endpoints on tokio.

#[cfg(unix)]
mod async_socket;
#[cfg(target_os = "linux")]
mod driver_timer;

use std::future::Future;
use std::io;
use std::net::UdpSocket;
use std::pin::Pin;
#[cfg(not(unix))]
use std::task::{Context, Poll, ready};
use std::time::Instant;

#[cfg(not(unix))]
use tokio::io::Interest;
use tokio::runtime::Handle;
use tokio::time::Sleep;

use super::{AsyncSocket, Runtime, Timer};
#[cfg(not(unix))]
use super::{Readiness, ReadinessHint};

/// The runtime tokio, with its drivers for I/O and time. Endpoints use tokio's clock: if a test has
/// paused it before it binds an endpoint, the protocol runs in virtual time. A timer that was set
/// before the pause continues by the system's time.
#[derive(Clone, Debug)]
pub struct TokioRuntime {
    handle: Handle,
}

impl TokioRuntime {
    /// The runtime with this handle.
    pub fn new(handle: Handle) -> Self {
        Self { handle }
    }

    /// The current tokio runtime; `None` outside of tokio.
    pub fn current() -> Option<Self> {
        Handle::try_current().ok().map(Self::new)
    }
}

impl Runtime for TokioRuntime {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        let _here = self.handle.enter();
        Box::pin(tokio::time::sleep_until(at.into()))
    }

    #[cfg(target_os = "linux")]
    fn driver_timer(&self, at: Instant) -> Pin<Box<dyn Timer>> {
        match driver_timer::DriverTimer::new(self.clone(), at) {
            Some(driver_timer) => Box::pin(driver_timer),
            None => self.timer(at),
        }
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.handle.spawn(task);
    }

    fn spawn_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        self.handle.spawn_blocking(work);
    }

    fn watch(&self, socket: UdpSocket) -> io::Result<Box<dyn AsyncSocket>> {
        let _here = self.handle.enter();
        #[cfg(unix)]
        return Ok(Box::new(async_socket::WatchedSocket::new(
            socket,
            self.handle.clone(),
        )?));
        #[cfg(not(unix))]
        Ok(Box::new(tokio::net::UdpSocket::from_std(socket)?))
    }
}

impl Timer for Sleep {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        Self::reset(self, at.into());
    }
}

#[cfg(not(unix))]
impl AsyncSocket for tokio::net::UdpSocket {
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        loop {
            let interest = match readiness {
                Readiness::Read => {
                    ready!(self.poll_recv_ready(cx))?;
                    Interest::READABLE
                }
                Readiness::Write => {
                    ready!(self.poll_send_ready(cx))?;
                    Interest::WRITABLE
                }
            };
            // tokio clears the readiness of the socket after `WouldBlock`, unless the socket has
            // become ready meanwhile. A call that left the socket empty has the same meaning, so
            // `WouldBlock` is returned for it, which saves the next call.
            let mut done = None;
            let called = self.try_io(interest, || {
                let left = call()?;
                done = Some(());
                match left {
                    ReadinessHint::MayBeReady => Ok(()),
                    ReadinessHint::NotReady => Err(io::ErrorKind::WouldBlock.into()),
                }
            });
            match called {
                _ if done.is_some() => return Poll::Ready(Ok(())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                called => return Poll::Ready(called),
            }
        }
    }
}
