//! Calls that close, duplicate or query descriptors.

use std::ffi::{c_char, c_int, c_uint, c_ulong, c_void};

use super::done;
use crate::descriptor::{forget, forget_from, is_ours};
use crate::libc_next::next;
use crate::receive;

/// This function is variadic in C. On the supported machines, the third argument is passed as in a
/// function with three parameters.
///
/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if request != libc::FIONREAD as c_ulong || !is_ours(fd) {
        let next = next!(ioctl(c_int, c_ulong, *mut c_void) -> c_int);
        // SAFETY: guaranteed by the caller.
        return unsafe { next(fd, request, argument) };
    }
    if argument.is_null() {
        return done(Err(libc::EFAULT));
    }
    done(receive::waiting(fd).map(|bytes| {
        // SAFETY: guaranteed by the caller; the argument points to an int.
        unsafe { argument.cast::<c_int>().write(bytes as c_int) };
    }))
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    forget(fd);
    let next = next!(close(c_int) -> c_int);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    forget_from(first, last);
    let next = next!(close_range(c_uint, c_uint, c_int) -> c_int);
    // SAFETY: guaranteed by the caller.
    unsafe { next(first, last, flags) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn closefrom(first: c_int) {
    forget_from(first.max(0) as u32, u32::MAX);
    // SAFETY: the name ends with a 0, and libc's function of this name has this type.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"closefrom".as_ptr());
        if !next.is_null() {
            std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(c_int)>(next)(first);
        }
    }
}

/// Interposed because `fclose` will close the descriptor without a visible call of `close`.
///
/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn fdopen(fd: c_int, mode: *const c_char) -> *mut libc::FILE {
    forget(fd);
    let next = next!(fdopen(c_int, *const c_char) -> *mut libc::FILE);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, mode) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    let next = next!(dup(c_int) -> c_int);
    // SAFETY: guaranteed by the caller.
    let copy = unsafe { next(fd) };
    forget(copy);
    copy
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(fd: c_int, copy: c_int) -> c_int {
    forget(copy);
    let next = next!(dup2(c_int, c_int) -> c_int);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, copy) }
}

/// # Safety
/// The requirements are those of libc's function with this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(fd: c_int, copy: c_int, flags: c_int) -> c_int {
    forget(copy);
    let next = next!(dup3(c_int, c_int, c_int) -> c_int);
    // SAFETY: guaranteed by the caller.
    unsafe { next(fd, copy, flags) }
}

macro_rules! copies_descriptors {
    ($name:ident) => {
        /// This function is variadic in C, like `ioctl`.
        ///
        /// # Safety
        /// The requirements are those of libc's function with this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            fd: c_int,
            command: c_int,
            argument: *mut c_void,
        ) -> c_int {
            let next = next!($name(c_int, c_int, *mut c_void) -> c_int);
            // SAFETY: guaranteed by the caller.
            let result = unsafe { next(fd, command, argument) };
            if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                forget(result);
            }
            result
        }
    };
}

copies_descriptors!(fcntl);
copies_descriptors!(fcntl64);
