//! Interposed `syscall`: system calls that programs make through this libc function.

use std::ffi::{c_int, c_long};

use super::messages::*;
use super::*;
use crate::system;

/// This function is variadic in C. On the supported machines, the arguments are passed as in a
/// function with this number of parameters.
///
/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let fd = a as c_int;
    // SAFETY: the arguments of the kernel's call with this number are those of libc's function.
    unsafe {
        match number {
            libc::SYS_socket => c_long::from(socket(fd, b as c_int, c as c_int)),
            libc::SYS_bind => c_long::from(bind(fd, b as _, c as _)),
            libc::SYS_listen => c_long::from(listen(fd, b as _)),
            libc::SYS_connect => c_long::from(connect(fd, b as _, c as _)),
            libc::SYS_accept => c_long::from(accept(fd, b as _, c as _)),
            libc::SYS_accept4 => c_long::from(accept4(fd, b as _, c as _, d as _)),
            libc::SYS_getsockname => c_long::from(getsockname(fd, b as _, c as _)),
            libc::SYS_getpeername => c_long::from(getpeername(fd, b as _, c as _)),
            libc::SYS_shutdown => c_long::from(shutdown(fd, b as _)),
            libc::SYS_setsockopt => c_long::from(setsockopt(fd, b as _, c as _, d as _, e as _)),
            libc::SYS_getsockopt => c_long::from(getsockopt(fd, b as _, c as _, d as _, e as _)),
            libc::SYS_sendto => sendto(fd, b as _, c, d as _, e as _, f as _) as c_long,
            libc::SYS_sendmsg => sendmsg(fd, b as _, c as _) as c_long,
            libc::SYS_recvfrom => recvfrom(fd, b as _, c, d as _, e as _, f as _) as c_long,
            libc::SYS_recvmsg => recvmsg(fd, b as _, c as _) as c_long,
            libc::SYS_read => read(fd, b as _, c) as c_long,
            libc::SYS_write => write(fd, b as _, c) as c_long,
            libc::SYS_readv => readv(fd, b as _, c as _) as c_long,
            libc::SYS_writev => writev(fd, b as _, c as _) as c_long,
            libc::SYS_close => {
                crate::descriptor::forget(fd);
                system::next()(number, a, b, c, d, e, f)
            }
            libc::SYS_dup => c_long::from(dup::dup(fd)),
            libc::SYS_dup3 => c_long::from(dup::dup3(fd, b as _, c as _)),
            libc::SYS_ioctl => c_long::from(dup::ioctl(fd, b as _, c as _)),
            _ => system::next()(number, a, b, c, d, e, f),
        }
    }
}
