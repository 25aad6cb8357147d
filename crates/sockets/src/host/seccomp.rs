//! Detection of programs that request an SCTP socket from the kernel by system calls. Such calls
//! bypass the library, so this stack cannot serve them.
//!
//! The library installs a seccomp filter that suspends and reports such a call
//! (`SECCOMP_RET_USER_NOTIF`). Only the host has the notification descriptor. When the host closes
//! this descriptor, the suspended call and all later ones fail with ENOSYS.

use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::HostState;

/// Status of the detection of calls that bypass the library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BypassStatus {
    /// No such call was detected.
    Nothing,
    /// A program requested an SCTP socket from the kernel.
    Socket,
    /// Such calls cannot be detected, with the reason (an `errno`).
    Undetectable(i32),
}

/// Waits for a call that bypasses the library.
pub(super) async fn watch(host: &HostState, descriptor: Option<OwnedFd>, error: i32) {
    let Some(descriptor) = descriptor else {
        tell(host, BypassStatus::Undetectable(error));
        return;
    };
    if let Err(error) = wait(host, descriptor).await {
        tell(
            host,
            BypassStatus::Undetectable(error.raw_os_error().unwrap_or(0)),
        );
    }
}

/// Reports the first such call, if one arrives before all watched processes have ended. The call
/// stays suspended until it was reported, because the descriptor is closed afterwards.
// This function is deprecated in favour of an `unsafe` one, because the descriptor of some types
// changes while it is registered. The descriptor of this type does not change.
#[allow(deprecated)]
async fn wait(host: &HostState, descriptor: OwnedFd) -> std::io::Result<()> {
    let watched = AsyncFd::with_interest(descriptor, Interest::READABLE | Interest::WRITABLE)?;
    let ready = watched.ready(Interest::READABLE).await?;
    if ready.ready().is_readable() && !ready.ready().is_read_closed() {
        tell(host, BypassStatus::Socket);
    }
    Ok(())
}

fn tell(host: &HostState, bypass_status: BypassStatus) {
    // Several processes may make such calls; only the first call is reported.
    host.bypass_status.send_if_modified(|known| {
        let new = *known != bypass_status;
        if new {
            tracing::warn!(?bypass_status, "system calls past the library");
            *known = bypass_status;
        }
        new
    });
}
