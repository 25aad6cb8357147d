//! A timer that tokio watches like a socket: a timer descriptor of the system instead of tokio's
//! own timer.
//!
//! While one of tokio's timers is set, each wait for events has a timeout, which costs two clock
//! readings and a timer setup in the system for each packet. A descriptor is set up once. If a test
//! has paused tokio's clock, tokio's timer is used, because the two clocks then differ.

use std::future::Future;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::Sleep;

use super::TokioRuntime;
use super::async_socket::watch;
use crate::runtime::{Runtime, Timer, timer_fd};

/// A timer of a runtime on tokio.
#[derive(Debug)]
pub(super) struct DriverTimer {
    fd: AsyncFd<OwnedFd>,
    at: Instant,
    /// True if the timer has expired.
    rang: bool,
    runtime: TokioRuntime,
    /// tokio's timer, used instead while tokio's clock is paused.
    virtually: Option<Pin<Box<Sleep>>>,
}

/// The system's time, and whether tokio's clock differs from it.
#[allow(
    clippy::disallowed_methods,
    reason = "the clock of the descriptor, and of tokio where no test has paused it"
)]
fn now(runtime: &TokioRuntime) -> (Instant, bool) {
    let before = Instant::now();
    let tokio = runtime.now();
    let now = Instant::now();
    (now, !(before..=now).contains(&tokio))
}

impl DriverTimer {
    /// Creates a timer that expires at `at`; `None` if the system has no descriptors left.
    pub(super) fn new(runtime: TokioRuntime, at: Instant) -> Option<Self> {
        let _here = runtime.handle.enter();
        let fd = watch(timer_fd::open().ok()?, Interest::READABLE).ok()?;
        let mut driver_timer = Self {
            fd,
            at,
            rang: false,
            runtime: runtime.clone(),
            virtually: None,
        };
        driver_timer.set_to(at);
        Some(driver_timer)
    }

    fn set_to(&mut self, at: Instant) {
        (self.at, self.rang) = (at, false);
        let (now, is_another) = now(&self.runtime);
        if !is_another {
            self.virtually = None;
            return timer_fd::set(&self.fd, at.saturating_duration_since(now));
        }
        timer_fd::unset(&self.fd);
        match &mut self.virtually {
            Some(sleep) => sleep.as_mut().reset(at.into()),
            none => *none = Some(Box::pin(tokio::time::sleep_until(at.into()))),
        }
    }
}

impl Future for DriverTimer {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        if let Some(sleep) = &mut this.virtually {
            return sleep.as_mut().poll(cx);
        }
        while !this.rang {
            // Fails only if the runtime is ending, and with it this task.
            let Ok(mut ready) = ready!(this.fd.poll_read_ready(cx)) else {
                return Poll::Pending;
            };
            // The expiry is reported once (edge-triggered), so the descriptor need not be read.
            ready.clear_ready();
            // The expiry may belong to an earlier setting, or to the maximum delay of the
            // descriptor.
            let left = this.at.saturating_duration_since(now(&this.runtime).0);
            match left {
                Duration::ZERO => this.rang = true,
                left => timer_fd::set(&this.fd, left),
            }
        }
        Poll::Ready(())
    }
}

impl Timer for DriverTimer {
    fn reset(self: Pin<&mut Self>, at: Instant) {
        self.get_mut().set_to(at);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn driver_timer(at: Instant) -> DriverTimer {
        let runtime = TokioRuntime::current().expect("a runtime");
        DriverTimer::new(runtime, at).expect("a descriptor")
    }

    fn system() -> Instant {
        now(&TokioRuntime::current().expect("a runtime")).0
    }

    /// Returns true if the timer has expired.
    async fn has_rung(driver_timer: &mut DriverTimer) -> bool {
        poll_fn(|cx| Poll::Ready(Pin::new(&mut *driver_timer).poll(cx).is_ready())).await
    }

    #[tokio::test]
    async fn it_fires_at_its_time_and_until_it_is_reset() {
        let begin = system();
        let (soon, late) = (Duration::from_millis(20), Duration::from_secs(3_600));
        let mut driver_timer = driver_timer(begin + late);
        assert!(!has_rung(&mut driver_timer).await);
        for round in 1..=3 {
            let at = begin + soon * round;
            Pin::new(&mut driver_timer).reset(at);
            Pin::new(&mut driver_timer).await;
            assert!(system() >= at, "round {round}");
            assert!(has_rung(&mut driver_timer).await);
            assert!(driver_timer.virtually.is_none());
        }
        Pin::new(&mut driver_timer).reset(begin + late);
        assert!(!has_rung(&mut driver_timer).await);
        // A timer that is set to a time in the past expires immediately.
        Pin::new(&mut driver_timer).reset(begin);
        Pin::new(&mut driver_timer).await;
    }

    /// An expiry before the timer was set to a later time has no effect.
    #[tokio::test]
    async fn a_ring_for_another_time_does_not_count() {
        let begin = system();
        let mut driver_timer = driver_timer(begin);
        Pin::new(&mut driver_timer).await;
        Pin::new(&mut driver_timer).reset(begin);
        // At this point tokio has processed the event, but the timer was not polled.
        drop(driver_timer.fd.readable().await.expect("it rings"));
        let at = begin + Duration::from_millis(50);
        Pin::new(&mut driver_timer).reset(at);
        Pin::new(&mut driver_timer).await;
        assert!(system() >= at);
    }

    /// A descriptor that expires early, because the time is beyond its range, is set again.
    #[tokio::test]
    async fn a_timer_that_expires_early_is_set_again() {
        let at = system() + Duration::from_millis(40);
        let mut driver_timer = driver_timer(at);
        timer_fd::set(&driver_timer.fd, Duration::from_nanos(1));
        Pin::new(&mut driver_timer).await;
        assert!(system() >= at);
    }

    #[tokio::test(start_paused = true)]
    async fn where_time_is_a_tests_tokios_timer_serves() {
        let begin = TokioRuntime::current().expect("a runtime").now();
        let year = Duration::from_secs(365 * 86_400);
        let mut driver_timer = driver_timer(begin + year);
        assert!(!has_rung(&mut driver_timer).await);
        Pin::new(&mut driver_timer).await;
        let took = TokioRuntime::current().expect("a runtime").now() - begin;
        assert!(took >= year && took < year + Duration::from_secs(1));
        // The timer is set to a later time and then to an earlier one: the last setting applies.
        Pin::new(&mut driver_timer).reset(begin + year * 2);
        assert!(!has_rung(&mut driver_timer).await);
        tokio::time::resume();
        let at = system() + Duration::from_millis(20);
        Pin::new(&mut driver_timer).reset(at);
        // After the clock was resumed it may still differ from the system's, so either timer may be
        // used.
        Pin::new(&mut driver_timer).await;
    }
}
