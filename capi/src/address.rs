//! Conversion of C socket addresses (struct sockaddr).

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use crate::memory;

/// Maximum size of an address in bytes: the size of struct sockaddr_storage.
const MAX_LENGTH: usize = size_of::<libc::sockaddr_storage>();

/// Reads the address argument of a call that sends a request to the host.
///
/// # Safety
/// Same as [`memory::read`].
pub unsafe fn given(at: *const c_void, length: libc::socklen_t) -> Result<SocketAddr, c_int> {
    let room = length as usize;
    if room > MAX_LENGTH {
        return Err(libc::EINVAL);
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { memory::read(at, room) }?;
    // SAFETY: the buffer has that size.
    unsafe { read(bytes.as_ptr().cast(), room) }.map(|(address, _)| address)
}

/// Reads the address at `at`, and returns it with its length in bytes.
///
/// # Safety
/// `room` bytes must be readable at `at`.
pub unsafe fn read(at: *const c_void, room: usize) -> Result<(SocketAddr, usize), c_int> {
    if room < 2 {
        return Err(libc::EINVAL);
    }
    if memory::is_out_of_reach(at, room) {
        return Err(libc::EFAULT);
    }
    // SAFETY: two bytes are readable.
    let family = c_int::from(u16::from_ne_bytes(unsafe { at.cast::<[u8; 2]>().read() }));
    match family {
        libc::AF_INET if room >= size_of::<libc::sockaddr_in>() => {
            // SAFETY: the buffer has that size; any bytes are a valid sockaddr_in.
            let it = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            let ip = IpAddr::from(it.sin_addr.s_addr.to_ne_bytes());
            let address = SocketAddr::new(ip, u16::from_be(it.sin_port));
            Ok((address, size_of::<libc::sockaddr_in>()))
        }
        libc::AF_INET6 if room >= size_of::<libc::sockaddr_in6>() => {
            // SAFETY: the buffer has that size; any bytes are a valid sockaddr_in6.
            let it = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            let ip = std::net::Ipv6Addr::from(it.sin6_addr.s6_addr);
            let port = u16::from_be(it.sin6_port);
            // A mapped address is treated as IPv4 (RFC 6458 §3.1.2).
            let address = match ip.to_ipv4_mapped() {
                Some(v4) => SocketAddr::new(v4.into(), port),
                None => SocketAddrV6::new(ip, port, 0, it.sin6_scope_id).into(),
            };
            Ok((address, size_of::<libc::sockaddr_in6>()))
        }
        libc::AF_INET | libc::AF_INET6 => Err(libc::EINVAL),
        _ => Err(libc::EAFNOSUPPORT),
    }
}

/// Reads `count` addresses that are stored one after the other in `room` bytes (sctp_bindx,
/// sctp_connectx).
///
/// # Safety
/// Same as [`read`].
pub unsafe fn read_packed(
    mut at: *const c_void,
    mut room: usize,
    count: usize,
) -> Result<Vec<SocketAddr>, c_int> {
    let mut all = Vec::new();
    while all.len() < count && room > 0 {
        // SAFETY: guaranteed by the caller for the remaining bytes.
        let (address, length) = unsafe { read(at, room) }?;
        all.push(address);
        // SAFETY: `length` is at most `room`.
        at = unsafe { at.cast::<u8>().add(length) }.cast();
        room -= length;
    }
    Ok(all)
}

/// Encodes an address as a C struct. The host decides whether an IPv4 address is passed as a mapped
/// IPv6 address.
pub fn bytes(address: SocketAddr) -> Vec<u8> {
    match address {
        SocketAddr::V4(it) => {
            let mut out = (libc::AF_INET as u16).to_ne_bytes().to_vec();
            out.extend(it.port().to_be_bytes());
            out.extend(it.ip().octets());
            out.extend([0; 8]);
            out
        }
        SocketAddr::V6(it) => {
            let mut out = (libc::AF_INET6 as u16).to_ne_bytes().to_vec();
            out.extend(it.port().to_be_bytes());
            out.extend([0; 4]);
            out.extend(it.ip().octets());
            out.extend(it.scope_id().to_ne_bytes());
            out
        }
    }
}

/// Writes an address like `getsockname`: it is truncated to the buffer, and `*length` is set to its
/// full length.
///
/// # Errors
/// EFAULT, EINVAL.
///
/// # Safety
/// Same as [`memory::write`] for `at` and `length`.
pub unsafe fn write(
    bytes: &[u8],
    at: *mut c_void,
    length: *mut libc::socklen_t,
) -> Result<(), c_int> {
    // SAFETY: guaranteed by the caller.
    let room = unsafe { memory::read(length.cast(), size_of::<libc::socklen_t>()) }?;
    let room = room.try_into().map_or(0, c_int::from_ne_bytes);
    let room = usize::try_from(room).map_err(|_| libc::EINVAL)?;
    let whole = bytes.len() as libc::socklen_t;
    // SAFETY: guaranteed by the caller.
    unsafe {
        memory::write(&bytes[..room.min(bytes.len())], at)?;
        memory::write(&whole.to_ne_bytes(), length.cast())
    }
}

/// Like [`write`], but for the address of a message: the pointers are checked only against the
/// address space of a process, and may be null.
///
/// # Safety
/// If `at` and `length` are not null, `*length` bytes must be writable at `at`.
pub unsafe fn write_with_message(
    bytes: &[u8],
    at: *mut c_void,
    length: *mut libc::socklen_t,
) -> Result<(), c_int> {
    if at.is_null() || length.is_null() {
        return Ok(());
    }
    if memory::is_out_of_reach(at, bytes.len()) || memory::is_out_of_reach(length, 4) {
        return Err(libc::EFAULT);
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        let room = (length.read_unaligned() as usize).min(bytes.len());
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>(), room);
        length.write_unaligned(bytes.len() as libc::socklen_t);
    }
    Ok(())
}
