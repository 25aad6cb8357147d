//! Direct system calls. They are needed because this library interposes libc's functions of the
//! same names.

use std::ffi::{c_int, c_long, c_void};

/// Result of a system call; the error is an `errno` value.
pub type SyscallResult = Result<isize, c_int>;

type Syscall = unsafe extern "C" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// Returns libc's own `syscall`, which this library interposes. The function is variadic in C; on
/// the supported machines, the arguments are passed as in a function with this number of
/// parameters.
pub fn next() -> Syscall {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let mut at = NEXT.load(Ordering::Relaxed);
    if at == 0 {
        // SAFETY: the name ends with a 0.
        at = unsafe { libc::dlsym(libc::RTLD_NEXT, c"syscall".as_ptr()) as usize };
        NEXT.store(at, Ordering::Relaxed);
    }
    // SAFETY: every libc has this function, with this type.
    unsafe { std::mem::transmute::<usize, Syscall>(at) }
}

/// Makes a system call.
///
/// # Safety
/// The arguments must be valid for the call, including any pointers.
pub unsafe fn call(number: c_long, arguments: [usize; 6]) -> SyscallResult {
    let [a, b, c, d, e, f] = arguments;
    let before = errno();
    // SAFETY: guaranteed by the caller. The called function is libc's own, not the interposing one.
    let result = unsafe { next()(number, a, b, c, d, e, f) };
    match result {
        -1 => Err(take_errno(before)),
        result => Ok(result as isize),
    }
}

/// Returns the error of a libc call that this library made, and restores the program's `errno`,
/// because the program's call may still succeed.
pub fn take_errno(before: c_int) -> c_int {
    let error = errno();
    set_errno(before);
    error
}

fn set_errno(error: c_int) {
    // SAFETY: libc returns the location for this thread.
    unsafe { *libc::__errno_location() = error };
}

/// The value of `errno` of this thread.
pub fn errno() -> c_int {
    // SAFETY: libc returns the location for this thread.
    unsafe { *libc::__errno_location() }
}

/// Converts a result to C: the value, or -1 with `errno`.
pub fn answer(outcome: SyscallResult) -> isize {
    match outcome {
        Ok(result) => result,
        Err(error) => {
            set_errno(error);
            -1
        }
    }
}

/// Calls `socket` with AF_UNIX and SOCK_SEQPACKET; `flags` may contain SOCK_CLOEXEC and
/// SOCK_NONBLOCK.
pub fn unix_socket(flags: c_int) -> Result<c_int, c_int> {
    let kind = (libc::SOCK_SEQPACKET | flags) as usize;
    // SAFETY: the call has no pointer arguments.
    unsafe { call(libc::SYS_socket, [libc::AF_UNIX as usize, kind, 0, 0, 0, 0]) }
        .map(|fd| fd as c_int)
}

/// Calls `close`.
pub fn close(fd: c_int) {
    // SAFETY: no pointers; the callers own the descriptor.
    let _ = unsafe { call(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Builds a Unix address. `path` begins with a 0 byte for an abstract address, and is empty if the
/// system should choose the address.
fn unix_address(path: &[u8]) -> ([u8; 110], usize) {
    let mut out = [0; 110];
    out[..2].copy_from_slice(&(libc::AF_UNIX as u16).to_ne_bytes());
    let length = path.len().min(108);
    out[2..2 + length].copy_from_slice(&path[..length]);
    (out, 2 + length)
}

/// Calls `bind` with an abstract address that the system chooses. The address then identifies the
/// descriptor.
pub fn bind_anywhere(fd: c_int) -> SyscallResult {
    let (address, length) = unix_address(&[]);
    // SAFETY: the kernel only reads the address, which has this length.
    unsafe {
        call(
            libc::SYS_bind,
            [fd as usize, address.as_ptr() as usize, length, 0, 0, 0],
        )
    }
}

/// Calls `connect` with an abstract address.
pub fn connect(fd: c_int, path: &[u8]) -> SyscallResult {
    let (address, length) = unix_address(path);
    // SAFETY: the kernel only reads the address, which has this length.
    unsafe {
        call(
            libc::SYS_connect,
            [fd as usize, address.as_ptr() as usize, length, 0, 0, 0],
        )
    }
}

/// The abstract Unix address of the descriptor (`SYS_getsockname`) or of its peer
/// (`SYS_getpeername`); `None` if it has none.
pub fn name(number: c_long, fd: c_int) -> Option<Vec<u8>> {
    let mut address = [0_u8; 110];
    let mut length = address.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to the address, and updates the length.
    let done = unsafe {
        call(
            number,
            [
                fd as usize,
                address.as_mut_ptr() as usize,
                &raw mut length as usize,
                0,
                0,
                0,
            ],
        )
    };
    let length = (length as usize).min(address.len());
    let unix = done.is_ok() && address[..2] == (libc::AF_UNIX as u16).to_ne_bytes();
    (unix && length > 2).then(|| address[2..length].to_vec())
}

/// Credentials of the process at the other end (SO_PEERCRED). For a connection to a listener, they
/// are those of the process that called `listen`.
pub fn peer(fd: c_int) -> Result<libc::ucred, c_int> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: libc::uid_t::MAX,
        gid: libc::gid_t::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    let arguments = [
        fd as usize,
        libc::SOL_SOCKET as usize,
        libc::SO_PEERCRED as usize,
        &raw mut peer as usize,
        &raw mut length as usize,
        0,
    ];
    // SAFETY: the kernel writes a `ucred`, and its length.
    unsafe { call(libc::SYS_getsockopt, arguments) }?;
    Ok(peer)
}

/// Whether a process of the user `uid` may be the host of this process: `uid` must be root or the
/// user of this process.
pub fn is_trusted(uid: libc::uid_t) -> bool {
    // SAFETY: the call has no pointer arguments.
    let own = |number| unsafe { call(number, [0; 6]) }.map(|it| it as libc::uid_t);
    uid == 0
        || [libc::SYS_geteuid, libc::SYS_getuid]
            .into_iter()
            .any(|it| own(it) == Ok(uid))
}

/// Calls `sendmsg` with these parts.
pub fn send(fd: c_int, parts: &[&[u8]], flags: c_int) -> SyscallResult {
    let parts: Vec<libc::iovec> = parts
        .iter()
        .map(|part| libc::iovec {
            iov_base: part.as_ptr().cast_mut().cast::<c_void>(),
            iov_len: part.len(),
        })
        .collect();
    send_parts(fd, &parts, flags)
}

/// Calls `sendmsg` with these bytes and a copy of a descriptor (SCM_RIGHTS).
pub fn send_with(fd: c_int, bytes: &[u8], passed: c_int) -> SyscallResult {
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast::<c_void>(),
        iov_len: bytes.len(),
    };
    // Control data of one descriptor, aligned: 32 bytes.
    let mut control = [0_usize; 4];
    // SAFETY: an all-zero msghdr is valid and empty. The control data is written at the positions
    // that the macros return, within `control`, which is large enough. The kernel only reads the
    // message and its part.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(size_of::<c_int>() as u32) as _;
        libc::CMSG_DATA(header)
            .cast::<c_int>()
            .write_unaligned(passed);
        let at = &raw const message as usize;
        let flags = libc::MSG_NOSIGNAL as usize;
        call(libc::SYS_sendmsg, [fd as usize, at, flags, 0, 0, 0])
    }
}

/// Calls `sendmsg` with an array of parts.
fn send_parts(fd: c_int, parts: &[libc::iovec], flags: c_int) -> SyscallResult {
    // SAFETY: an all-zero msghdr is valid and empty.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_ptr().cast_mut();
    message.msg_iovlen = parts.len();
    let at = &raw const message as usize;
    // SAFETY: the kernel only reads the message and its parts; the parts come from slices, or from
    // a program that guarantees them.
    unsafe {
        call(
            libc::SYS_sendmsg,
            [fd as usize, at, flags as usize, 0, 0, 0],
        )
    }
}

/// Calls `recvmsg` with these parts. Returns the full length of the message, which may exceed the
/// total size of the parts, and the flags that the kernel sets for the message.
pub fn receive(
    fd: c_int,
    parts: &mut [libc::iovec],
    flags: c_int,
) -> Result<(usize, c_int), c_int> {
    // SAFETY: an all-zero msghdr is valid and empty.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    let at = &raw mut message as usize;
    // SAFETY: the kernel writes into the parts, which the caller or the program guarantees.
    let length = unsafe {
        call(
            libc::SYS_recvmsg,
            [fd as usize, at, flags as usize, 0, 0, 0],
        )
    }?;
    Ok((length as usize, message.msg_flags))
}

/// Calls `recvmsg` with this buffer. Returns the length, and the descriptor received with the
/// message (SCM_RIGHTS), if any.
pub fn receive_with(fd: c_int, bytes: &mut [u8]) -> Result<(usize, Option<c_int>), c_int> {
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // Control data of one descriptor, as in `send_with`.
    let mut control = [0_usize; 4];
    // SAFETY: an all-zero msghdr is valid and empty. The kernel writes within `bytes` and
    // `control`; the macros read its output.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<c_int>() as u32) as _;
        let at = &raw mut message as usize;
        let flags = libc::MSG_CMSG_CLOEXEC as usize;
        let length = call(libc::SYS_recvmsg, [fd as usize, at, flags, 0, 0, 0])?;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        let descriptor = header.as_ref().and_then(|it| {
            let is_one = (it.cmsg_level, it.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS);
            is_one.then(|| libc::CMSG_DATA(header).cast::<c_int>().read_unaligned())
        });
        Ok((length as usize, descriptor))
    }
}

/// Calls `shutdown` for the receive direction.
pub fn end_of_reading(fd: c_int) -> SyscallResult {
    // SAFETY: the call has no pointer arguments.
    unsafe {
        call(
            libc::SYS_shutdown,
            [fd as usize, libc::SHUT_RD as usize, 0, 0, 0, 0],
        )
    }
}

/// Calls `getsockopt` for an option of type int.
pub fn int_option(fd: c_int, level: c_int, option: c_int) -> Result<c_int, c_int> {
    let mut value: c_int = 0;
    let mut length = size_of::<c_int>() as libc::socklen_t;
    let (value_at, length_at) = (&raw mut value as usize, &raw mut length as usize);
    let arguments = [
        fd as usize,
        level as usize,
        option as usize,
        value_at,
        length_at,
        0,
    ];
    // SAFETY: the kernel writes an int, and its length.
    unsafe { call(libc::SYS_getsockopt, arguments) }?;
    Ok(value)
}

/// Number of bytes that the other end has not read yet, including kernel overhead (SIOCOUTQ).
pub fn unread(fd: c_int) -> Result<usize, c_int> {
    let mut bytes: c_int = 0;
    let arguments = [
        fd as usize,
        libc::TIOCOUTQ as usize,
        &raw mut bytes as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel writes an int.
    unsafe { call(libc::SYS_ioctl, arguments) }?;
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Calls `setsockopt` for an option of type int.
pub fn set_int_option(fd: c_int, level: c_int, option: c_int, value: c_int) -> SyscallResult {
    let arguments = [
        fd as usize,
        level as usize,
        option as usize,
        &raw const value as usize,
        size_of::<c_int>(),
        0,
    ];
    // SAFETY: the kernel reads an int.
    unsafe { call(libc::SYS_setsockopt, arguments) }
}

/// Sets the receive timeout of `line` to the send timeout of `fd` (SO_SNDTIMEO).
pub fn wait_as_writing(fd: c_int, line: c_int) -> SyscallResult {
    let mut limit = [0_u8; size_of::<libc::timeval>()];
    let mut length = limit.len() as libc::socklen_t;
    let mut arguments = [
        fd as usize,
        libc::SOL_SOCKET as usize,
        libc::SO_SNDTIMEO as usize,
        limit.as_mut_ptr() as usize,
        &raw mut length as usize,
        0,
    ];
    // SAFETY: the kernel writes a `timeval`, and its length.
    let read = unsafe { call(libc::SYS_getsockopt, arguments) }?;
    if limit.iter().all(|it| *it == 0) {
        return Ok(read);
    }
    arguments[0] = line as usize;
    arguments[2] = libc::SO_RCVTIMEO as usize;
    arguments[4] = limit.len();
    // SAFETY: the kernel reads a `timeval`.
    unsafe { call(libc::SYS_setsockopt, arguments) }
}

/// ID of this thread (`gettid`).
pub fn thread() -> u32 {
    // SAFETY: the call has no pointer arguments.
    let number = unsafe { call(libc::SYS_gettid, [0; 6]) };
    number.map_or(1, |it| it as u32)
}

/// Whether the descriptor is non-blocking (O_NONBLOCK).
pub fn is_nonblocking(fd: c_int) -> bool {
    // SAFETY: the call has no pointer arguments.
    let flags = unsafe {
        call(
            libc::SYS_fcntl,
            [fd as usize, libc::F_GETFL as usize, 0, 0, 0, 0],
        )
    };
    flags.is_ok_and(|flags| flags as c_int & libc::O_NONBLOCK != 0)
}

/// Waits until the descriptor is ready for `events`, that is, readable (POLLIN) or writable
/// (POLLOUT), or is closed.
pub fn wait(fd: c_int, events: i16) {
    let mut wanted = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let at = &raw mut wanted as usize;
    // SAFETY: the kernel reads and writes one pollfd. A null pointer means no timeout.
    let _ = unsafe { call(libc::SYS_ppoll, [at, 1, 0, 0, 0, 0]) };
}
