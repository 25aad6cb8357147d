//! Setup of associations, and their transfer to new sockets.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::SocketType;
use anabranch_sockets::control::HostRequest;

use crate::descriptor::socket_type;
use crate::{host_client, receive, receive_flags, send, system, waiting};

/// Connects to the peer with these addresses. If the descriptor is non-blocking, returns
/// EINPROGRESS without waiting. The association number is 0 after any other error.
pub fn connect_to(fd: c_int, addresses: Vec<SocketAddr>) -> (u32, Result<(), c_int>) {
    let wait = !system::is_nonblocking(fd);
    if socket_type(fd).is_some_and(|it| !it.is_one_to_many()) {
        // A previous attempt may have failed and left its error in the descriptor.
        receive::forget_error(fd);
    }
    match waiting::for_association(fd, HostRequest::Connect { addresses, wait }) {
        Err(error) => (0, Err(error)),
        Ok(number) if wait => (number, Ok(())),
        Ok(number) => {
            if socket_type(fd).is_some_and(|it| !it.is_one_to_many()) {
                // The buffer of the descriptor is kept full, so that `poll` reports the descriptor
                // as writable only when the association is established.
                send::fill(fd);
            }
            (number, Err(libc::EINPROGRESS))
        }
    }
}

/// Creates a socket that takes over the association `number` from the socket `fd`.
pub fn take_over(
    fd: c_int,
    socket_type: SocketType,
    number: u32,
    flags: c_int,
) -> Result<c_int, c_int> {
    let taken = host_client::open(socket_type, number, flags)?;
    // The host must register the new owner before the other socket may be closed.
    if host_client::tell(taken, HostRequest::Local(number)).is_err() {
        system::close(taken);
        return Err(libc::ECONNABORTED);
    }
    receive_flags::copy(taken, fd);
    Ok(taken)
}
