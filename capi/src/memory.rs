//! Access to the program's memory with the semantics of a system call: an invalid pointer results
//! in EFAULT instead of a signal.
//!
//! In calls that send a request to the host, the kernel copies the arguments ([`read`], [`write`]).
//! In calls that transfer a message, this would cost an additional system call. There, the kernel
//! itself accesses the parts of the message. The msghdr and the memory to which it refers are only
//! checked against the address space of a process ([`is_out_of_reach`]).

use std::ffi::{c_int, c_void};

use crate::system;

/// Size of the first page, which is never mapped. The whole page is invalid, so that a null pointer
/// with an offset is detected too.
const FIRST_PAGE: usize = 4096;

/// Whether these bytes cannot be mapped in a process: they are in the first page, or in the
/// kernel's half of the address space.
pub fn is_out_of_reach<T>(at: *const T, bytes: usize) -> bool {
    let (at, last) = (at as usize, isize::MAX as usize);
    at < FIRST_PAGE || at > last || bytes > last - at
}

/// Copies `bytes` bytes of the program's memory at `at`.
///
/// # Errors
/// EFAULT.
///
/// # Safety
/// If the kernel forbids such copies (seccomp), the bytes must be readable.
pub unsafe fn read(at: *const c_void, bytes: usize) -> Result<Vec<u8>, c_int> {
    let mut out = vec![0_u8; bytes];
    let own = out.as_mut_ptr().cast();
    match copy(libc::SYS_process_vm_readv, own, at.cast_mut(), bytes)? {
        true => Ok(out),
        false => {
            // SAFETY: guaranteed by the caller; the copy has that size.
            unsafe { std::ptr::copy_nonoverlapping(at.cast::<u8>(), out.as_mut_ptr(), bytes) };
            Ok(out)
        }
    }
}

/// Copies `bytes` to the program's memory at `at`.
///
/// # Errors
/// EFAULT.
///
/// # Safety
/// If the kernel forbids such copies (seccomp), the bytes must be writable.
pub unsafe fn write(bytes: &[u8], at: *mut c_void) -> Result<(), c_int> {
    let own = bytes.as_ptr().cast_mut().cast();
    if !copy(libc::SYS_process_vm_writev, own, at, bytes.len())? {
        // SAFETY: guaranteed by the caller.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at.cast::<u8>(), bytes.len()) };
    }
    Ok(())
}

/// Makes the kernel copy bytes between `own` and the program's memory at `at`. Returns false if the
/// kernel forbids this call.
fn copy(
    number: libc::c_long,
    own: *mut c_void,
    at: *mut c_void,
    bytes: usize,
) -> Result<bool, c_int> {
    if bytes == 0 {
        return Ok(true);
    }
    if is_out_of_reach(at, bytes) {
        return Err(libc::EFAULT);
    }
    let [own, at] = [own, at].map(|iov_base| libc::iovec {
        iov_base,
        iov_len: bytes,
    });
    // SAFETY: the call has no pointer arguments.
    let process = unsafe { system::call(libc::SYS_getpid, [0; 6]) }?;
    let (own, at) = (&raw const own as usize, &raw const at as usize);
    // SAFETY: the kernel validates both ranges before it copies; `own` belongs to this library and
    // has this size.
    let done = unsafe { system::call(number, [process as usize, own, 1, at, 1, 0]) };
    match done {
        Ok(done) if done as usize == bytes => Ok(true),
        Ok(_) | Err(libc::EFAULT) => Err(libc::EFAULT),
        Err(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_not_there_gives_efault() {
        let mut bytes = *b"some bytes";
        let at: *mut c_void = bytes.as_mut_ptr().cast();
        // SAFETY: the bytes belong to this test.
        unsafe {
            assert_eq!(read(at, 4), Ok(b"some".to_vec()));
            assert_eq!(write(b"more", at), Ok(()));
        }
        assert_eq!(&bytes, b"more bytes");
        // A page at an address without another mapping, which is unmapped again. SAFETY: the kernel
        // chooses the address; the page is not used after it is unmapped.
        let page = unsafe {
            let page = libc::mmap(
                std::ptr::null_mut(),
                FIRST_PAGE,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert_eq!(read(page, 8), Ok(vec![0; 8]));
            // The page is readable, but not writable.
            assert_eq!(write(b"more", page), Err(libc::EFAULT));
            page
        };
        for out_of_reach in [usize::MAX, 0, 8, isize::MAX as usize - 3] {
            let at = out_of_reach as *mut c_void;
            assert!(is_out_of_reach(at, 8));
            // SAFETY: no memory is accessed.
            let (read, written) = unsafe { (read(at, 8), write(b"12345678", at)) };
            assert_eq!((read, written), (Err(libc::EFAULT), Err(libc::EFAULT)));
        }
        // SAFETY: the page belongs to this test.
        unsafe { libc::munmap(page, FIRST_PAGE) };
    }
}
