//! Socket options of SCTP, including those with which Linux's `libsctp` implements the functions of
//! RFC 6458 §9. This project's `libsctp` is in `capi/libsctp`.

pub mod control_data;

use std::ffi::{c_int, c_void};
use std::net::SocketAddr;

use anabranch_sockets::control::{HostRequest, OptionValue};
use anabranch_sockets::{SocketStyle, SocketType};
use libc::socklen_t;

use crate::associations::{connect_to, take_over};
use crate::descriptor::{is_v6, socket_type};
use crate::{address, host_client, memory, receive_flags, send_cache, system};

/// Linux's options SCTP_SOCKOPT_BINDX_ADD, _BINDX_REM, _PEELOFF, _CONNECTX_OLD,
/// SCTP_GET_PEER_ADDRS, SCTP_GET_LOCAL_ADDRS, SCTP_SOCKOPT_CONNECTX, _CONNECTX3, _PEELOFF_FLAGS.
const BINDX_ADD: c_int = 100;
const BINDX_REM: c_int = 101;
const PEELOFF: c_int = 102;
const CONNECTX_OLD: c_int = 107;
const GET_PEER_ADDRS: c_int = 108;
const GET_LOCAL_ADDRS: c_int = 109;
const CONNECTX: c_int = 110;
const CONNECTX3: c_int = 111;
const PEELOFF_FLAGS: c_int = 122;

/// Maximum number of bytes that are read from the program's buffer of `getsockopt`.
const MAX_READ: usize = 1 << 20;

/// Whether the socket has options of this level: an IPv4 socket has no IPv6 options.
fn has_level(fd: c_int, level: c_int) -> bool {
    match level {
        libc::IPPROTO_SCTP | libc::IPPROTO_IP => true,
        libc::IPPROTO_IPV6 => is_v6(fd),
        _ => false,
    }
}

/// Implements `setsockopt`, including the options behind sctp_bindx and sctp_connectx.
///
/// # Safety
/// `length` bytes must be readable at `value`.
pub unsafe fn set_option(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: usize,
) -> Result<c_int, c_int> {
    if length > c_int::MAX as usize {
        return Err(libc::EINVAL);
    }
    match (level, option) {
        // The host stores this option.
        (libc::SOL_SOCKET, libc::SO_LINGER) => (),
        // SCTP ignores this option. It is not passed on to the Unix socket, because this library
        // stores other data in that socket's SO_RCVLOWAT (`receive_flags`).
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => return Ok(0),
        (libc::SOL_SOCKET, _) => {
            let arguments = [
                fd as usize,
                level as usize,
                option as usize,
                value as usize,
                length,
                0,
            ];
            // SAFETY: guaranteed by the caller.
            return unsafe { system::call(libc::SYS_setsockopt, arguments) }.map(|it| it as c_int);
        }
        _ if has_level(fd, level) => (),
        _ => return Err(libc::ENOPROTOOPT),
    }
    if level == libc::IPPROTO_SCTP {
        match option {
            BINDX_ADD => {
                // SAFETY: guaranteed by the caller.
                let addresses = unsafe { packed_at(value, length) }?;
                return host_client::tell(fd, HostRequest::BindMore(addresses)).map(|()| 0);
            }
            BINDX_REM => {
                // SAFETY: guaranteed by the caller.
                let addresses = unsafe { packed_at(value, length) }?;
                return host_client::tell(fd, HostRequest::Unbind(addresses)).map(|()| 0);
            }
            CONNECTX_OLD | CONNECTX => {
                // SAFETY: guaranteed by the caller.
                let addresses = unsafe { packed_at(value, length) }?;
                let (number, connected) = connect_to(fd, addresses);
                // Only the newer of the two options returns the association number as its result.
                return connected.map(|()| {
                    if option == CONNECTX {
                        number as c_int
                    } else {
                        0
                    }
                });
            }
            _ => (),
        }
    }
    // SAFETY: guaranteed by the caller.
    let value = unsafe { memory::read(value, length) }?;
    let request = HostRequest::Set {
        level,
        option,
        value: OptionValue(value),
    };
    host_client::tell(fd, request)?;
    send_cache::forget(fd);
    if level == libc::IPPROTO_SCTP {
        receive_flags::changed(fd, option);
    }
    Ok(0)
}

/// Implements `getsockopt`, including the options behind sctp_getpaddrs, sctp_getladdrs and
/// sctp_connectx.
///
/// # Safety
/// `*length` bytes must be writable at `value`.
pub unsafe fn get_option(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> Result<(), c_int> {
    // SAFETY: guaranteed by the caller.
    let room = unsafe { memory::read(length.cast(), size_of::<socklen_t>()) }?;
    let room = room.try_into().map_or(0, c_int::from_ne_bytes);
    let room = usize::try_from(room).map_err(|_| libc::EINVAL)?;
    // Options of level SOL_SOCKET do not read the program's buffer.
    let given = &match level {
        libc::SOL_SOCKET => vec![0; room.min(MAX_READ)],
        // SAFETY: guaranteed by the caller.
        _ => unsafe { memory::read(value, room.min(MAX_READ)) }?,
    };
    let domain = if is_v6(fd) {
        libc::AF_INET6
    } else {
        libc::AF_INET
    };
    let bytes = match (level, option) {
        (libc::SOL_SOCKET, libc::SO_TYPE) => kind(fd).to_ne_bytes().to_vec(),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_SCTP.to_ne_bytes().to_vec(),
        (libc::SOL_SOCKET, libc::SO_RCVLOWAT) => 1_i32.to_ne_bytes().to_vec(),
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => domain.to_ne_bytes().to_vec(),
        (libc::SOL_SOCKET, libc::SO_ERROR | libc::SO_LINGER | libc::SO_ACCEPTCONN) => {
            let value = host_client::option(fd, level, option, given)?;
            if option == libc::SO_ERROR && value != [0; 4] {
                crate::receive::forget_error(fd);
            }
            value
        }
        (libc::IPPROTO_SCTP, GET_PEER_ADDRS) => {
            packed(fd, HostRequest::Peer(named(given)?), given)?
        }
        (libc::IPPROTO_SCTP, GET_LOCAL_ADDRS) => {
            packed(fd, HostRequest::LocalAll(named(given)?), given)?
        }
        (libc::IPPROTO_SCTP, CONNECTX3) => {
            let (number, connected) = connect_of(fd, given)?;
            if connected.is_ok() || connected == Err(libc::EINPROGRESS) {
                // SAFETY: guaranteed by the caller.
                unsafe { memory::write(&number.to_ne_bytes(), value) }?;
            }
            return connected;
        }
        (libc::IPPROTO_SCTP, PEELOFF | PEELOFF_FLAGS) => {
            let taken = peel_off(fd, option, given)?;
            [&given[..4], &taken.to_ne_bytes(), &given[8..]].concat()
        }
        _ if has_level(fd, level) => host_client::option(fd, level, option, given)?,
        _ => {
            // Options of level SOL_SOCKET that the host does not store, and unsupported levels, are
            // read from the Unix socket.
            let arguments = [
                fd as usize,
                level as usize,
                option as usize,
                value as usize,
                length as usize,
                0,
            ];
            // SAFETY: guaranteed by the caller.
            return unsafe { system::call(libc::SYS_getsockopt, arguments) }.map(drop);
        }
    };
    let written = &bytes[..room.min(bytes.len())];
    let whole = (written.len() as socklen_t).to_ne_bytes();
    // SAFETY: guaranteed by the caller.
    unsafe {
        memory::write(written, value)?;
        memory::write(&whole, length.cast())
    }
}

/// The socket type, as SO_TYPE returns it.
fn kind(fd: c_int) -> c_int {
    match socket_type(fd).map(|it| it.style) {
        Some(SocketStyle::OneToMany | SocketStyle::PeeledOff) => libc::SOCK_SEQPACKET,
        _ => libc::SOCK_STREAM,
    }
}

/// Reads the association number at the start of a struct.
fn named(given: &[u8]) -> Result<u32, c_int> {
    let bytes = given.first_chunk().ok_or(libc::EINVAL)?;
    Ok(u32::from_ne_bytes(*bytes))
}

/// Reads addresses that are stored one after the other.
///
/// # Safety
/// Same as [`memory::read`].
unsafe fn packed_at(at: *const c_void, bytes: usize) -> Result<Vec<SocketAddr>, c_int> {
    // SAFETY: guaranteed by the caller.
    let copy = unsafe { memory::read(at, bytes) }?;
    // SAFETY: the buffer has that size.
    unsafe { address::read_packed(copy.as_ptr().cast(), bytes, usize::MAX) }
}

/// Connects as requested by struct sctp_getaddrs_old: association number, length, pointer to
/// addresses.
fn connect_of(fd: c_int, given: &[u8]) -> Result<(u32, Result<(), c_int>), c_int> {
    let bytes = given.get(4..8).and_then(|it| it.try_into().ok());
    let bytes = c_int::from_ne_bytes(bytes.ok_or(libc::EINVAL)?);
    let at = given.get(8..16).and_then(|it| it.try_into().ok());
    let at = usize::from_ne_bytes(at.ok_or(libc::EINVAL)?) as *const c_void;
    // SAFETY: the program guarantees that addresses of this length are readable.
    let all = unsafe { packed_at(at, bytes.max(0) as usize) }?;
    Ok(connect_to(fd, all))
}

/// Peels off as requested by sctp_peeloff_arg_t: association number, descriptor; then, with the
/// newer option, flags of the new descriptor.
fn peel_off(fd: c_int, option: c_int, given: &[u8]) -> Result<c_int, c_int> {
    let number = named(given)?;
    let flags = match (option, given.get(8..12).and_then(|it| it.try_into().ok())) {
        (PEELOFF, _) if given.len() >= 8 => 0,
        (PEELOFF_FLAGS, Some(flags)) => c_int::from_ne_bytes(flags),
        _ => return Err(libc::EINVAL),
    };
    let socket_type = socket_type(fd).ok_or(libc::EBADF)?;
    host_client::association(host_client::peel_off(fd, number)?)?;
    let socket_type = SocketType::new(socket_type.v6, SocketStyle::PeeledOff);
    take_over(
        fd,
        socket_type,
        number,
        flags & (libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK),
    )
}

/// Returns addresses as struct sctp_getaddrs: association number, count, addresses.
fn packed(fd: c_int, request: HostRequest, given: &[u8]) -> Result<Vec<u8>, c_int> {
    let all = host_client::addresses(fd, request)?;
    let mut out = given[..4].to_vec();
    out.extend((all.len() as u32).to_ne_bytes());
    for address in all {
        out.extend(address::bytes(address));
    }
    match out.len() <= given.len() {
        true => Ok(out),
        false => Err(libc::ENOMEM),
    }
}

#[cfg(test)]
mod tests {
    use super::control_data::{RcvInfo, SndInfo, SndRcvInfo};
    use super::*;

    #[test]
    fn structs_have_the_sizes_of_linux() {
        assert_eq!(size_of::<SndRcvInfo>(), 32);
        assert_eq!(size_of::<SndInfo>(), 16);
        assert_eq!(size_of::<RcvInfo>(), 28);
    }

    #[test]
    fn addresses_come_back() {
        let all: [SocketAddr; 2] = [
            "192.0.2.1:7".parse().unwrap(),
            "[2001:db8::1]:8".parse().unwrap(),
        ];
        let bytes: Vec<u8> = all.iter().flat_map(|&it| address::bytes(it)).collect();
        // SAFETY: the buffer has that size.
        let read = unsafe { address::read_packed(bytes.as_ptr().cast(), bytes.len(), 9) };
        assert_eq!(read.as_deref(), Ok(&all[..]));
        // SAFETY: the buffer has that size.
        let cut = unsafe { address::read_packed(bytes.as_ptr().cast(), bytes.len() - 1, 9) };
        assert_eq!(cut, Err(libc::EINVAL));
        // A mapped address is returned as IPv4.
        let mapped = address::bytes("[::ffff:192.0.2.1]:7".parse().unwrap());
        assert_eq!(mapped.len(), 28);
        // SAFETY: the buffer has that size.
        let read = unsafe { address::read(mapped.as_ptr().cast(), mapped.len()) };
        assert_eq!(read, Ok((all[0], 28)));
    }
}
