//! The functions of RFC 6458 §9, as Linux's `libsctp` has them, and the options behind them.

pub mod control_data;

use std::ffi::{c_int, c_void};

use anabranch_sockets::control::Request;
use libc::{iovec, msghdr, size_t, sockaddr, socklen_t, ssize_t};

use crate::calls::{connect_to, is_v6, receive_into};
use crate::descriptor::is_ours;
use crate::send::{self, How, Info};
use crate::{address, ask, receive, system, wants};
use control_data::{SndInfo, SndRcvInfo};

/// SCTP_SOCKOPT_BINDX_ADD, _REM, _CONNECTX_OLD, GET_PEER_ADDRS, GET_LOCAL_ADDRS, _CONNECTX, _CONNECTX3.
const BINDX_ADD: c_int = 100;
const BINDX_REM: c_int = 101;
const CONNECTX_OLD: c_int = 107;
const GET_PEER_ADDRS: c_int = 108;
const GET_LOCAL_ADDRS: c_int = 109;
const CONNECTX: c_int = 110;
const CONNECTX3: c_int = 111;

/// Options beside those of SCTP that the host keeps; all others are the descriptor's own.
const KEPT: [(c_int, c_int); 2] = [
    (libc::SOL_SOCKET, libc::SO_LINGER),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
];

/// `setsockopt`, with the forms behind sctp_bindx and sctp_connectx.
///
/// # Safety
/// `length` bytes can be read at `value`.
pub unsafe fn set_option(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: usize,
) -> Result<c_int, c_int> {
    if level != libc::IPPROTO_SCTP && !KEPT.contains(&(level, option)) {
        // IP options say how packets go, which is the host's business.
        if level != libc::SOL_SOCKET {
            return Ok(0);
        }
        let arguments = [
            fd as usize,
            level as usize,
            option as usize,
            value as usize,
            length,
            0,
        ];
        // SAFETY: as the caller promises.
        return unsafe { system::call(libc::SYS_setsockopt, arguments) }.map(|it| it as c_int);
    }
    if level == libc::IPPROTO_SCTP {
        match option {
            BINDX_ADD => {
                // SAFETY: as the caller promises.
                let addresses = unsafe { address::read_packed(value, length, usize::MAX) }?;
                return ask::tell(fd, Request::Bind(addresses)).map(|()| 0);
            }
            BINDX_REM => return Err(libc::EOPNOTSUPP),
            CONNECTX_OLD | CONNECTX => {
                // SAFETY: as the caller promises.
                let addresses = unsafe { address::read_packed(value, length, usize::MAX) }?;
                return connect_to(fd, addresses).map(|()| 0);
            }
            _ => (),
        }
    }
    if value.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: as the caller promises.
    let value = unsafe { std::slice::from_raw_parts(value.cast::<u8>(), length) }.to_vec();
    let request = Request::Set {
        level,
        option,
        value,
    };
    ask::tell(fd, request)?;
    if level == libc::IPPROTO_SCTP {
        wants::changed(fd, option);
    }
    Ok(0)
}

/// `getsockopt`, with the forms behind sctp_getpaddrs, sctp_getladdrs and sctp_connectx.
///
/// # Safety
/// `*length` bytes can be written at `value`.
pub unsafe fn get_option(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> Result<(), c_int> {
    if value.is_null() || length.is_null() {
        return Err(libc::EFAULT);
    }
    // SAFETY: it is not null.
    let room = unsafe { *length } as usize;
    let bytes = match (level, option) {
        (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM.to_ne_bytes().to_vec(),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_SCTP.to_ne_bytes().to_vec(),
        (
            libc::SOL_SOCKET,
            libc::SO_DOMAIN | libc::SO_ERROR | libc::SO_LINGER | libc::SO_ACCEPTCONN,
        ) => ask::option(fd, level, option, room)?,
        (libc::IPPROTO_SCTP, GET_PEER_ADDRS) => packed(fd, Request::Peer, room)?,
        (libc::IPPROTO_SCTP, GET_LOCAL_ADDRS) => packed(fd, Request::Local, room)?,
        (libc::IPPROTO_SCTP, CONNECTX3) => {
            // struct sctp_getaddrs_old: association, length, pointer.
            // SAFETY: as the caller promises, and there is room.
            unsafe {
                if room < 16 {
                    return Err(libc::EINVAL);
                }
                let bytes = value.cast::<u8>().add(4).cast::<c_int>().read_unaligned();
                let at = value
                    .cast::<u8>()
                    .add(8)
                    .cast::<*const c_void>()
                    .read_unaligned();
                let all = address::read_packed(at, bytes.max(0) as usize, usize::MAX)?;
                let connected = connect_to(fd, all);
                value.cast::<c_int>().write_unaligned(1);
                return connected;
            }
        }
        (libc::IPPROTO_SCTP, _) | (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) => {
            ask::option(fd, level, option, room)?
        }
        _ => {
            let arguments = [
                fd as usize,
                level as usize,
                option as usize,
                value as usize,
                length as usize,
                0,
            ];
            // SAFETY: as the caller promises.
            return unsafe { system::call(libc::SYS_getsockopt, arguments) }.map(drop);
        }
    };
    // SAFETY: as the caller promises.
    unsafe {
        let written = room.min(bytes.len());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), value.cast::<u8>(), written);
        *length = written as socklen_t;
    }
    Ok(())
}

/// struct sctp_getaddrs: association, count, addresses.
fn packed(fd: c_int, request: Request, room: usize) -> Result<Vec<u8>, c_int> {
    let all = ask::addresses(fd, request)?;
    let v6 = is_v6(fd);
    let mut out = 1_i32.to_ne_bytes().to_vec();
    out.extend((all.len() as u32).to_ne_bytes());
    for address in all {
        out.extend(address::bytes(address, v6));
    }
    match out.len() <= room {
        true => Ok(out),
        false => Err(libc::ENOMEM),
    }
}

fn done(outcome: Result<(), c_int>) -> c_int {
    system::answer(outcome.map(|()| 0)) as c_int
}

/// Only for sockets of a host: programs that run on the kernel's SCTP have the kernel's library.
fn ours(fd: c_int) -> Result<(), c_int> {
    match is_ours(fd) {
        true => Ok(()),
        false => Err(libc::EBADF),
    }
}

/// # Safety
/// As RFC 6458 §9.1 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_bindx(
    fd: c_int,
    at: *mut sockaddr,
    count: c_int,
    flags: c_int,
) -> c_int {
    const ADD: c_int = 1;
    const REMOVE: c_int = 2;
    let bound = ours(fd).and_then(|()| match flags {
        ADD => {
            // SAFETY: the caller gives `count` addresses.
            let all =
                unsafe { address::read_packed(at.cast(), usize::MAX, count.max(0) as usize) }?;
            ask::tell(fd, Request::Bind(all))
        }
        REMOVE => Err(libc::EOPNOTSUPP),
        _ => Err(libc::EINVAL),
    });
    done(bound)
}

/// # Safety
/// As RFC 6458 §9.9 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_connectx(
    fd: c_int,
    at: *mut sockaddr,
    count: c_int,
    association: *mut c_int,
) -> c_int {
    let connected = ours(fd).and_then(|()| {
        // SAFETY: the caller gives `count` addresses.
        let all = unsafe { address::read_packed(at.cast(), usize::MAX, count.max(0) as usize) }?;
        if !association.is_null() {
            // SAFETY: it is the caller's.
            unsafe { association.write(1) };
        }
        connect_to(fd, all)
    });
    done(connected)
}

/// # Safety
/// As RFC 6458 §9.3 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_getpaddrs(fd: c_int, _: c_int, all: *mut *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { give_addresses(fd, Request::Peer, all) }
}

/// # Safety
/// As RFC 6458 §9.5 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_getladdrs(fd: c_int, _: c_int, all: *mut *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { give_addresses(fd, Request::Local, all) }
}

/// # Safety
/// A pointer can be written at `to`.
unsafe fn give_addresses(fd: c_int, request: Request, to: *mut *mut sockaddr) -> c_int {
    let given = ours(fd)
        .and_then(|()| ask::addresses(fd, request))
        .and_then(|all| {
            let v6 = is_v6(fd);
            let bytes: Vec<u8> = all.iter().flat_map(|&it| address::bytes(it, v6)).collect();
            // SAFETY: `malloc` may give null, which is looked at; the program frees it by sctp_freepaddrs.
            unsafe {
                let at = libc::malloc(bytes.len());
                if at.is_null() {
                    return Err(libc::ENOMEM);
                }
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>(), bytes.len());
                to.write(at.cast());
            }
            Ok(all.len() as isize)
        });
    system::answer(given) as c_int
}

/// # Safety
/// What sctp_getpaddrs gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_freepaddrs(all: *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { libc::free(all.cast()) };
    0
}

/// # Safety
/// What sctp_getladdrs gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_freeladdrs(all: *mut sockaddr) -> c_int {
    // SAFETY: as the caller promises.
    unsafe { sctp_freepaddrs(all) }
}

/// # Safety
/// As RFC 6458 §9.7 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_opt_info(
    fd: c_int,
    _: c_int,
    option: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: as the caller promises.
    done(
        ours(fd)
            .and_then(|()| unsafe { get_option(fd, libc::IPPROTO_SCTP, option, value, length) }),
    )
}

/// # Safety
/// As RFC 6458 §9.10 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_sendmsg(
    fd: c_int,
    at: *const c_void,
    length: size_t,
    _to: *mut sockaddr,
    _to_length: socklen_t,
    ppid: u32,
    flags: u32,
    stream: u16,
    lifetime: u32,
    context: u32,
) -> c_int {
    let info = Info {
        stream,
        flags: flags as u16,
        ppid,
        context,
        lifetime,
    };
    // SAFETY: as the caller promises.
    system::answer(unsafe { send_one(fd, at, length, info, 0) }) as c_int
}

/// # Safety
/// As RFC 6458 §9.11 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_send(
    fd: c_int,
    at: *const c_void,
    length: size_t,
    info: *const SndRcvInfo,
    flags: c_int,
) -> c_int {
    // SAFETY: as the caller promises; null means the defaults.
    let info = unsafe { info.as_ref() }.copied().unwrap_or_default();
    // SAFETY: as the caller promises.
    system::answer(unsafe { send_one(fd, at, length, info.into(), flags) }) as c_int
}

/// # Safety
/// `length` bytes can be read at `at`.
unsafe fn send_one(
    fd: c_int,
    at: *const c_void,
    length: usize,
    info: Info,
    flags: c_int,
) -> system::Outcome {
    ours(fd)?;
    let part: &[u8] = match length {
        0 => &[],
        // SAFETY: as the caller promises.
        _ => unsafe { std::slice::from_raw_parts(at.cast(), length) },
    };
    let info = Some(info);
    send::message(fd, &[part], How { info, flags })
}

/// # Safety
/// As RFC 6458 §9.12 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_sendv(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    _to: *mut sockaddr,
    _to_count: c_int,
    info: *mut c_void,
    info_length: socklen_t,
    info_type: u32,
    flags: c_int,
) -> c_int {
    /// SCTP_SENDV_SNDINFO, and SCTP_SENDV_SPA: flags, and struct sctp_sndinfo if bit 0 of them is set.
    const SNDINFO: u32 = 1;
    const SPA: u32 = 4;
    let room = info_length as usize;
    let found = match info_type {
        SNDINFO if room >= size_of::<SndInfo>() => {
            // SAFETY: so many bytes are there.
            Some(unsafe { info.cast::<SndInfo>().read_unaligned() }.into())
        }
        SPA if room >= 4 + size_of::<SndInfo>() => {
            // SAFETY: so many bytes are there.
            let (valid, it) = unsafe {
                let it = info.cast::<u8>().add(4).cast::<SndInfo>();
                (info.cast::<u32>().read_unaligned(), it.read_unaligned())
            };
            (valid & 1 != 0).then(|| it.into())
        }
        _ => None,
    };
    let sent = ours(fd).and_then(|()| {
        let parts: Vec<&[u8]> = match count {
            ..=0 => Vec::new(),
            count => {
                // SAFETY: as the caller promises.
                let parts = unsafe { std::slice::from_raw_parts(parts, count as usize) };
                let filled = parts.iter().filter(|part| part.iov_len > 0);
                filled
                    // SAFETY: as the caller promises.
                    .map(|it| unsafe { std::slice::from_raw_parts(it.iov_base.cast(), it.iov_len) })
                    .collect()
            }
        };
        send::message(fd, &parts, How { info: found, flags })
    });
    system::answer(sent) as c_int
}

/// # Safety
/// As RFC 6458 §9.13 says, but for `flags`, which only comes out.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_recvmsg(
    fd: c_int,
    at: *mut c_void,
    length: size_t,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut SndRcvInfo,
    flags: *mut c_int,
) -> c_int {
    // SAFETY: as the caller promises.
    let received = ours(fd).and_then(|()| unsafe { receive_into(fd, at, length, 0) });
    let outcome = received.map(|received| {
        // SAFETY: as the caller promises.
        unsafe { give_info(fd, &received, from, from_length, info, flags) };
        received.length as isize
    });
    system::answer(outcome) as c_int
}

/// # Safety
/// Each pointer is null, or good.
unsafe fn give_info(
    fd: c_int,
    received: &receive::Received,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut SndRcvInfo,
    flags: *mut c_int,
) {
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(address) = received.address()
            && !from.is_null()
        {
            address::write(
                &address::bytes(address, is_v6(fd)),
                from.cast(),
                from_length,
            );
        }
        if let Some(frame) = received.frame
            && !info.is_null()
            && wants::of(fd) & wants::SNDRCV != 0
        {
            info.write(control_data::sndrcv(&frame));
        }
        if !flags.is_null() {
            flags.write(received.flags);
        }
    }
}

/// # Safety
/// As RFC 6458 §9.8 says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sctp_recvv(
    fd: c_int,
    parts: *const iovec,
    count: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
    info: *mut c_void,
    info_length: *mut socklen_t,
    info_type: *mut u32,
    flags: *mut c_int,
) -> ssize_t {
    /// SCTP_RECVV_RCVINFO.
    const RCVINFO: u32 = 1;
    const CONTROL: usize = 128;
    let mut control = [0_u64; CONTROL / 8];
    // SAFETY: an empty msghdr is one of zeros.
    let mut message: msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.cast_mut();
    message.msg_iovlen = count.max(0) as _;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    message.msg_name = from.cast();
    if !from_length.is_null() {
        // SAFETY: it is not null.
        message.msg_namelen = unsafe { *from_length };
    }
    // SAFETY: the message is whole, and its parts are the caller's.
    unsafe {
        let length = crate::calls::recvmsg(fd, &raw mut message, 0);
        if length < 0 {
            return length;
        }
        if !from_length.is_null() {
            *from_length = message.msg_namelen;
        }
        if !flags.is_null() {
            *flags = message.msg_flags;
        }
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let size = size_of::<control_data::RcvInfo>();
        let told = header.as_ref().is_some_and(|it| it.cmsg_type == 3)
            && !info_length.is_null()
            && *info_length as usize >= size;
        if told {
            let data = libc::CMSG_DATA(header);
            std::ptr::copy_nonoverlapping(data, info.cast::<u8>(), size);
            *info_length = size as socklen_t;
        }
        if !info_type.is_null() {
            *info_type = if told { RCVINFO } else { 0 };
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn structs_have_the_sizes_of_linux() {
        assert_eq!(size_of::<SndRcvInfo>(), 32);
        assert_eq!(size_of::<SndInfo>(), 16);
        assert_eq!(size_of::<control_data::RcvInfo>(), 28);
    }

    #[test]
    fn addresses_come_back() {
        let all: [SocketAddr; 2] = [
            "192.0.2.1:7".parse().unwrap(),
            "[2001:db8::1]:8".parse().unwrap(),
        ];
        let bytes: Vec<u8> = all
            .iter()
            .flat_map(|&it| address::bytes(it, false))
            .collect();
        // SAFETY: so many bytes are there.
        let read = unsafe { address::read_packed(bytes.as_ptr().cast(), bytes.len(), 9) };
        assert_eq!(read.as_deref(), Ok(&all[..]));
        // SAFETY: so many bytes are there.
        let cut = unsafe { address::read_packed(bytes.as_ptr().cast(), bytes.len() - 1, 9) };
        assert_eq!(cut, Err(libc::EINVAL));
        // An address of IPv4 is a mapped one at a socket of IPv6, and comes back as what it is.
        let mapped = address::bytes(all[0], true);
        assert_eq!(mapped.len(), 28);
        // SAFETY: so many bytes are there.
        let read = unsafe { address::read(mapped.as_ptr().cast(), mapped.len()) };
        assert_eq!(read, Ok((all[0], 28)));
    }
}
