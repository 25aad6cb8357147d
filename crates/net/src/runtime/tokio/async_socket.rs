//! A socket that tokio watches permanently only for readability.
//!
//! tokio watches its own sockets for both directions. Linux reports writability after each packet
//! that has left a UDP socket, which causes one unnecessary return of `epoll_wait` per packet.
//! Therefore writability is watched by a second descriptor, only while the socket is full.

use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;

use crate::runtime::{AsyncSocket, Readiness, ReadinessHint};

#[derive(Debug)]
pub(super) struct WatchedSocket {
    socket: AsyncFd<UdpSocket>,
    /// A second descriptor of the socket, present while the socket is full.
    full: Mutex<Option<AsyncFd<OwnedFd>>>,
    handle: Handle,
}

/// Watches a descriptor on the current runtime.
#[allow(
    deprecated,
    reason = "in its place tokio has an `unsafe` call, which asks that the descriptor stays open and the same: so it does in what owns it"
)]
pub(super) fn watch<T: AsRawFd + Into<OwnedFd>>(
    socket: T,
    interest: Interest,
) -> io::Result<AsyncFd<T>> {
    AsyncFd::with_interest(socket, interest)
}

impl WatchedSocket {
    /// Watches `socket` on the current runtime, whose handle is `handle`.
    ///
    /// # Errors
    /// The error of the system.
    pub(super) fn new(socket: UdpSocket, handle: Handle) -> io::Result<Self> {
        Ok(Self {
            socket: watch(socket, Interest::READABLE)?,
            full: Mutex::default(),
            handle,
        })
    }

    fn poll_read(
        &self,
        cx: &mut Context<'_>,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut ready = ready!(self.socket.poll_read_ready(cx))?;
            let called = call();
            // If the call left the socket empty, readiness is cleared so that the next call, which
            // would return no packet, is skipped. Events after `ready` was obtained are kept.
            match called {
                Ok(ReadinessHint::NotReady) => ready.clear_ready(),
                Err(ref error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready.clear_ready();
                    continue;
                }
                _ => {}
            }
            return Poll::Ready(called.map(|_| ()));
        }
    }

    fn poll_write(
        &self,
        cx: &mut Context<'_>,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        let mut full = self.full.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                called => {
                    *full = None;
                    return Poll::Ready(called.map(|_| ()));
                }
            }
            let watched = match &mut *full {
                Some(watched) => watched,
                none => {
                    let _here = self.handle.enter();
                    let again = self.socket.as_fd().try_clone_to_owned()?;
                    none.insert(watch(again, Interest::WRITABLE)?)
                }
            };
            ready!(watched.poll_write_ready(cx))?.clear_ready();
        }
    }
}

impl AsFd for WatchedSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsyncSocket for WatchedSocket {
    fn poll_io(
        &self,
        cx: &mut Context<'_>,
        readiness: Readiness,
        call: &mut dyn FnMut() -> io::Result<ReadinessHint>,
    ) -> Poll<io::Result<()>> {
        match readiness {
            Readiness::Read => self.poll_read(cx, call),
            Readiness::Write => self.poll_write(cx, call),
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use std::collections::BTreeSet;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    use super::*;

    fn watched() -> WatchedSocket {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback");
        socket.set_nonblocking(true).expect("a socket");
        WatchedSocket::new(socket, Handle::current()).expect("a runtime")
    }

    /// The event masks with which `epoll` watches the descriptors of the socket.
    #[cfg(target_os = "linux")]
    fn asked_for(watched: &WatchedSocket) -> Vec<u32> {
        let numbers = |watched: &WatchedSocket| {
            let full = watched.full.lock().expect("no panic");
            let own = watched.socket.as_raw_fd();
            [Some(own), full.as_ref().map(AsRawFd::as_raw_fd)]
        };
        let wanted: Vec<String> = numbers(watched)
            .into_iter()
            .flatten()
            .map(|it| it.to_string())
            .collect();
        // The directory may list another descriptor of the same `epoll` instance with the same
        // content, which the set removes.
        let mut masks = BTreeSet::new();
        for entry in std::fs::read_dir("/proc/self/fdinfo").expect("Linux") {
            // Errors are ignored, because other tests open and close descriptors meanwhile.
            let text = entry.and_then(|it| std::fs::read_to_string(it.path()));
            for line in text.unwrap_or_default().lines() {
                let words: Vec<&str> = line.split_whitespace().collect();
                if let ["tfd:", number, "events:", mask, ..] = words[..]
                    && wanted.iter().any(|it| it == number)
                {
                    masks.insert((
                        number.to_string(),
                        u32::from_str_radix(mask, 16).expect("hexadecimal"),
                    ));
                }
            }
        }
        masks.into_iter().map(|(_, mask)| mask).collect()
    }

    /// `EPOLLOUT` of Linux.
    #[cfg(target_os = "linux")]
    const OUT: u32 = 4;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn writability_is_polled_only_while_there_is_no_space() {
        let watched = watched();
        let masks = asked_for(&watched);
        assert_eq!(masks.len(), 1);
        assert_eq!(masks[0] & OUT, 0);
        // The socket is writable in fact, so the task is woken as soon as the system is polled.
        let mut calls = 0;
        let mut with_receipt = Vec::new();
        let sent = poll_fn(|cx| {
            let polled = watched.poll_io(cx, Readiness::Write, &mut || {
                calls += 1;
                match calls {
                    1 => Err(io::ErrorKind::WouldBlock.into()),
                    _ => Ok(ReadinessHint::MayBeReady),
                }
            });
            with_receipt.push(asked_for(&watched));
            polled
        });
        sent.await.expect("it is sent in the end");
        assert_eq!(calls, 2);
        assert!(
            with_receipt[0].iter().any(|mask| mask & OUT != 0),
            "{with_receipt:x?}"
        );
        let after = asked_for(&watched);
        assert!(after.len() == 1 && after[0] & OUT == 0, "{after:x?}");
    }

    #[tokio::test]
    async fn an_error_of_a_call_is_the_callers() {
        let watched = watched();
        for readiness in [Readiness::Write, Readiness::Read] {
            let own = watched.socket.get_ref();
            own.send_to(&[1], own.local_addr().expect("bound"))
                .expect("loopback");
            let mut fails = || Err(io::ErrorKind::PermissionDenied.into());
            let failed = poll_fn(|cx| watched.poll_io(cx, readiness, &mut fails)).await;
            let failed = failed.expect_err("it fails");
            assert_eq!(failed.kind(), io::ErrorKind::PermissionDenied);
        }
    }

    /// After a call that left the socket empty, no call is made before the next event.
    #[tokio::test]
    async fn later_readiness_is_reported() {
        let watched = watched();
        let own = watched.socket.get_ref();
        let to = own.local_addr().expect("bound");
        for round in 0..20_u8 {
            own.send_to(&[round], to).expect("loopback");
            let mut buffer = [0; 8];
            let received = poll_fn(|cx| {
                watched.poll_io(cx, Readiness::Read, &mut || {
                    own.recv(&mut buffer)?;
                    Ok(ReadinessHint::NotReady)
                })
            });
            received.await.expect("it comes");
            assert_eq!(buffer[0], round);
            let mut called = false;
            let again = poll_fn(|cx| {
                let polled = watched.poll_io(cx, Readiness::Read, &mut || {
                    called = true;
                    Err(io::ErrorKind::WouldBlock.into())
                });
                std::task::Poll::Ready(polled.is_pending())
            });
            assert!(again.await && !called, "round {round}");
        }
    }
}
