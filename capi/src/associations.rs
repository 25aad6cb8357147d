//! Association setup, and transfer of associations to new sockets.

use std::ffi::c_int;
use std::net::SocketAddr;

use anabranch_sockets::SocketType;
use anabranch_sockets::control::Request;

use crate::descriptor::socket_type;
use crate::{host_client, receive, receive_flags, send, system, waiting};

/// Connects to a peer with these addresses; returns immediately if the descriptor is non-blocking.
/// The association number is valid unless there is an error.
pub fn connect_to(fd: c_int, addresses: Vec<SocketAddr>) -> (u32, Result<(), c_int>) {
    let wait = !system::is_nonblocking(fd);
    if socket_type(fd).is_some_and(|it| !it.is_one_to_many()) {
        // The reason for a previous failure.
        receive::forget_error(fd);
    }
    match waiting::for_association(fd, Request::Connect { addresses, wait }) {
        Err(error) => (0, Err(error)),
        Ok(number) if wait => (number, Ok(())),
        Ok(number) => {
            if socket_type(fd).is_some_and(|it| !it.is_one_to_many()) {
                // `poll` should report it as writable when the association is established.
                send::fill(fd);
            }
            (number, Err(libc::EINPROGRESS))
        }
    }
}

/// A new socket that takes over an association from another socket.
pub fn take_over(
    fd: c_int,
    socket_type: SocketType,
    number: u32,
    flags: c_int,
) -> Result<c_int, c_int> {
    let taken = host_client::open(socket_type, number, flags)?;
    // The host must register the new owner before the other socket may be closed.
    if host_client::tell(taken, Request::Local(number)).is_err() {
        system::close(taken);
        return Err(libc::ECONNABORTED);
    }
    receive_flags::copy(taken, fd);
    Ok(taken)
}
