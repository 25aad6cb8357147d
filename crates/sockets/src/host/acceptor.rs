//! Accepts connections from programs, as long as the host runs.
//!
//! Errors of a single connection and transient errors must not end the accept loop. Otherwise a
//! peer that opens more associations than this process has descriptors would prevent `accept` for
//! every program. When few descriptors are left, new sockets are refused, and the last descriptors
//! are reserved for requests, because a program that closes its sockets must still reach the host.

use std::fmt::Write;
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use socket2::Socket as Unix;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{HostState, name_of, watched_by};

/// Descriptors reserved for requests, if the limit allows it.
const RESERVED_DESCRIPTORS: u64 = 64;
/// Delay before accepting is tried again after an error. It doubles with each error, up to the
/// maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(250);
/// Time within which a program of another user must present the secret, and maximum number of
/// programs that have not done so yet.
const SECRET_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const MAX_UNAUTHENTICATED: usize = 64;

/// Shortages of system resources since the host started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// Number of programs' sockets and of incoming associations that were refused because few
    /// descriptors were left.
    pub refused: u64,
    /// Number of system errors after which the host continued.
    pub errors: u64,
    /// The last system error after which the host continued, as an `errno`.
    pub last: Option<i32>,
}

/// The program at the other end of a connection.
pub(super) struct Caller {
    /// Set if the program belongs to another user, and has not presented the secret yet.
    unauthenticated: Option<OwnedSemaphorePermit>,
    /// Whether descriptors are available for a new socket.
    pub has_room: bool,
}

impl Caller {
    /// Waits for the first message, with a timeout if the program is of another user.
    pub(super) async fn receive_first<T>(
        &self,
        first: impl Future<Output = io::Result<T>>,
    ) -> io::Result<T> {
        match &self.unauthenticated {
            None => first.await,
            Some(_) => tokio::time::timeout(SECRET_TIMEOUT, first)
                .await
                .unwrap_or(Err(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Whether the program may be served, given the secret that it has presented. Programs of the
    /// same user need no secret.
    pub(super) fn authenticate(&mut self, known: &HostState, secret: &[u8]) -> bool {
        match self.unauthenticated.take() {
            None => true,
            Some(_) => {
                let right = known.secret.as_deref().is_some_and(|it| same(it, secret));
                if !right {
                    tracing::warn!("a program of another user was refused");
                }
                right
            }
        }
    }
}

/// Compares in constant time.
fn same(one: &str, other: &[u8]) -> bool {
    let one = one.as_bytes();
    let differs = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differs == 0
}

/// A text of 128 random bits, used as unpredictable name or as secret.
///
/// # Errors
/// The system provides no random bits.
pub(super) fn random() -> io::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        match rustix::rand::getrandom(&mut bytes[filled..], flags) {
            Ok(more) => filled += more,
            Err(rustix::io::Errno::INTR) => (),
            Err(error) => return Err(error.into()),
        }
    }
    let mut text = String::new();
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Accepts all connections, and passes each one with the peer's address to `each`.
///
/// # Errors
/// The listener is no longer usable.
pub(super) async fn accept_all(
    known: &HostState,
    listener: &AsyncFd<Unix>,
    each: impl Fn(Caller, AsyncFd<Unix>, Vec<u8>),
) -> io::Result<()> {
    let mut pause = FIRST_PAUSE;
    loop {
        let accepted = listener.async_io(Interest::READABLE, Unix::accept).await;
        let taken = match accepted {
            Ok((unix, from)) => take(known, unix).map(|it| (it, name_of(&from))),
            Err(error) if is_lasting(&error) => return Err(error),
            Err(error) => Err(error),
        };
        match taken {
            Ok((Some((caller, unix)), name)) => {
                pause = FIRST_PAUSE;
                each(caller, unix, name);
            }
            Ok((None, _)) => (),
            Err(error) => {
                known.count_error(&error);
                tokio::time::sleep(pause).await;
                pause = (2 * pause).min(LAST_PAUSE);
            }
        }
    }
}

/// Identifies the program at the other end of a connection; `None` if it is not served.
fn take(known: &HostState, unix: Unix) -> io::Result<Option<(Caller, AsyncFd<Unix>)>> {
    let unauthenticated = match is_trusted(&unix) {
        true => None,
        false => {
            let permit = known.unauthenticated.clone().try_acquire_owned().ok();
            let Some(permit) = permit.filter(|_| known.secret.is_some()) else {
                tracing::warn!("a program of another user was refused");
                return Ok(None);
            };
            Some(permit)
        }
    };
    unix.set_nonblocking(true)?;
    let has_room = has_room(&unix);
    Ok(Some((
        Caller {
            unauthenticated,
            has_room,
        },
        watched_by(unix)?,
    )))
}

/// Whether the program belongs to the user of this process or to root; others must present the
/// secret. The host must check this itself, because abstract addresses have no permissions.
pub(super) fn is_trusted(unix: &Unix) -> bool {
    let peer = getsockopt(unix, PeerCredentials).map(|it| it.uid());
    peer.is_ok_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
}

/// Whether more descriptors are free than are reserved for requests. Concluded from the number of a
/// new descriptor, because the system allocates the lowest free number.
fn has_room(unix: &Unix) -> bool {
    let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return true;
    };
    u64::try_from(unix.as_raw_fd()).is_ok_and(|fd| fd < limit - RESERVED_DESCRIPTORS.min(limit / 4))
}

/// Whether an error of `accept` concerns the listener itself. All other errors concern a single
/// connection (ECONNABORTED) or are transient: EMFILE, ENFILE, ENOMEM, ENOBUFS, EINTR.
fn is_lasting(error: &io::Error) -> bool {
    let lasting = [
        Errno::EBADF,
        Errno::EINVAL,
        Errno::ENOTSOCK,
        Errno::EOPNOTSUPP,
        Errno::EFAULT,
    ];
    let code = error.raw_os_error().map(Errno::from_raw);
    code.is_some_and(|it| lasting.contains(&it))
}

impl HostState {
    /// Counts a system error after which the host continues.
    pub(crate) fn count_error(&self, error: &io::Error) {
        tracing::debug!(%error, "an error of the system");
        self.shortage.send_modify(|it| {
            it.errors += 1;
            it.last = error.raw_os_error();
        });
    }

    /// Counts a refused socket.
    pub(crate) fn count_refused(&self) {
        self.shortage.send_modify(|it| it.refused += 1);
    }

    /// The shortages of system resources, with a notification for each new one.
    pub(crate) fn shortage(&self) -> watch::Receiver<Shortage> {
        self.shortage.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_not_the_end() {
        let error = |it: Errno| io::Error::from_raw_os_error(it as i32);
        for passing in [
            Errno::EMFILE,
            Errno::ENFILE,
            Errno::ENOMEM,
            Errno::ENOBUFS,
            Errno::ECONNABORTED,
            Errno::EINTR,
            Errno::EPERM,
        ] {
            assert!(!is_lasting(&error(passing)), "{passing}");
        }
        assert!(is_lasting(&error(Errno::EBADF)));
        assert!(!is_lasting(&io::ErrorKind::Other.into()));
    }

    #[test]
    fn names_are_random_and_secrets_are_compared_whole() {
        let [one, other] = [(); 2].map(|()| random().expect("random bits"));
        assert_eq!(one.len(), 32);
        assert_ne!(one, other);
        assert!(same(&one, one.as_bytes()));
        for wrong in [&one[1..], &one[..31], &other, ""] {
            assert!(!same(&one, wrong.as_bytes()));
        }
    }
}
