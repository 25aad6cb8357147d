//! Programs that ask the kernel itself for an SCTP socket: their system calls pass the library, and this stack cannot serve them.
//!
//! The library has the kernel stop such a call and tell of it (seccomp, `SECCOMP_RET_USER_NOTIF`). The descriptor that tells is held here, and
//! nobody else has it: when it is closed, the call fails with ENOSYS, as all such calls do from then on.

use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::Known;

/// What is known of calls past the library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// None was seen.
    Nothing,
    /// A program asked the kernel for an SCTP socket.
    Socket,
    /// They cannot be seen, for that reason (an `errno`).
    Unseen(i32),
}

/// Waits for a call past the library.
pub async fn watch(host: &Known, descriptor: Option<OwnedFd>, error: i32) {
    let Some(descriptor) = descriptor else {
        tell(host, Missed::Unseen(error));
        return;
    };
    if let Err(error) = wait(host, descriptor).await {
        tell(host, Missed::Unseen(error.raw_os_error().unwrap_or(0)));
    }
}

/// Tells of a call, if one comes before all watched processes end. The call waits until that is told: the descriptor is closed last.
// What took its place is `unsafe`, since there are types whose descriptor changes while it is watched; this one's does not.
#[allow(deprecated)]
async fn wait(host: &Known, descriptor: OwnedFd) -> std::io::Result<()> {
    let watched = AsyncFd::with_interest(descriptor, Interest::READABLE | Interest::WRITABLE)?;
    let ready = watched.ready(Interest::READABLE).await?;
    if ready.ready().is_readable() && !ready.ready().is_read_closed() {
        tell(host, Missed::Socket);
    }
    Ok(())
}

fn tell(host: &Known, missed: Missed) {
    // Many processes may find the same: it is said once.
    host.missed.send_if_modified(|known| {
        let new = *known != missed;
        if new {
            tracing::warn!(?missed, "system calls past the library");
            *known = missed;
        }
        new
    });
}
