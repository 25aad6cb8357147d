//! Connections that programs make to the host, taken for as long as it lives.
//!
//! An error of one connection, or one that passes, is no reason to take no more: a peer that opens
//! more associations than this process may have descriptors would end `accept` of every program for
//! good. Where few descriptors are left, new sockets are refused, and the last ones are for
//! requests: a program that closes its sockets must be heard.

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

use super::{Known, name_of, watched_by};

/// Descriptors that are kept for requests, where the limit allows for that.
const RESERVE: u64 = 64;
/// Time before the next try after an error; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LAST_PAUSE: Duration = Duration::from_millis(250);
/// How long a program of another user has to say the secret, and how many of them may be about to.
const INTRODUCTION: Duration = Duration::from_secs(5);
pub const MAX_STRANGERS: usize = 64;

/// What the system did not give the host, since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shortage {
    /// Sockets of programs, and associations to be accepted, that were refused since few
    /// descriptors were left.
    pub refused: u64,
    /// Errors of the system after which the host went on.
    pub errors: u64,
    /// The last of these, an `errno`.
    pub last: Option<i32>,
}

/// Who is at the other end of a connection.
pub struct Caller {
    /// It is of another user, and has to say the secret.
    stranger: Option<OwnedSemaphorePermit>,
    /// A socket of it finds a place.
    pub has_room: bool,
}

impl Caller {
    /// Waits for the first message, but of a stranger not for long.
    pub async fn hear<T>(&self, first: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        match &self.stranger {
            None => first.await,
            Some(_) => tokio::time::timeout(INTRODUCTION, first)
                .await
                .unwrap_or(Err(io::ErrorKind::TimedOut.into())),
        }
    }

    /// Whether it is served, by what it says. A secret may be right although none is needed.
    pub fn is_welcome(&mut self, known: &Known, secret: &[u8]) -> bool {
        match self.stranger.take() {
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

/// Compares without telling by the time how much is right.
fn same(one: &str, other: &[u8]) -> bool {
    let one = one.as_bytes();
    let differs = one.iter().zip(other).fold(0, |all, (a, b)| all | (a ^ b));
    one.len() == other.len() && differs == 0
}

/// 128 random bits as text: a name that nobody can take before, or a secret.
///
/// # Errors
/// The system gives no random bits.
pub fn random() -> io::Result<String> {
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
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Takes every connection; `each` gets it with the name of its other end.
///
/// # Errors
/// The listener is of no use any more.
pub async fn accept_all(
    known: &Known,
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

/// Who made this connection; `None`: somebody who is not served.
fn take(known: &Known, unix: Unix) -> io::Result<Option<(Caller, AsyncFd<Unix>)>> {
    let stranger = match is_trusted(&unix) {
        true => None,
        false => {
            let permit = known.strangers.clone().try_acquire_owned().ok();
            let Some(permit) = permit.filter(|_| known.secret.is_some()) else {
                tracing::warn!("a program of another user was refused");
                return Ok(None);
            };
            Some(permit)
        }
    };
    unix.set_nonblocking(true)?;
    let has_room = has_room(&unix);
    Ok(Some((Caller { stranger, has_room }, watched_by(unix)?)))
}

/// An abstract address has no permissions: programs of this process's user, and of root, are
/// served, and others that know the secret.
pub fn is_trusted(unix: &Unix) -> bool {
    let peer = getsockopt(unix, PeerCredentials).map(|it| it.uid());
    peer.is_ok_and(|uid| uid == 0 || uid == nix::unistd::geteuid().as_raw())
}

/// Whether more descriptors are left than are kept for requests. The system gives the lowest number
/// that is free.
fn has_room(unix: &Unix) -> bool {
    let Ok((limit, _)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return true;
    };
    u64::try_from(unix.as_raw_fd()).is_ok_and(|fd| fd < limit - RESERVE.min(limit / 4))
}

/// Whether the listener itself is wrong. All else is of one connection (ECONNABORTED), or passes:
/// EMFILE, ENFILE, ENOMEM, ENOBUFS, EINTR.
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

impl Known {
    /// The system did not give something, and the host goes on.
    pub fn count_error(&self, error: &io::Error) {
        tracing::debug!(%error, "an error of the system");
        self.shortage.send_modify(|it| {
            it.errors += 1;
            it.last = error.raw_os_error();
        });
    }

    /// A socket found no place.
    pub fn count_refused(&self) {
        self.shortage.send_modify(|it| it.refused += 1);
    }

    /// What the system did not give, each time that there is more.
    pub fn shortage(&self) -> watch::Receiver<Shortage> {
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
