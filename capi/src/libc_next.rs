//! Access to libc's implementations of the functions that this library interposes.

/// Returns libc's function with this name: the next definition after that of this library.
macro_rules! next {
    ($name:ident($($type:ty),* $(,)?) -> $result:ty) => {{
        static NEXT: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
        let at = *NEXT.get_or_init(|| {
            let name = concat!(stringify!($name), "\0");
            // SAFETY: the name ends with a 0.
            unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr().cast()) as usize }
        });
        if at == 0 {
            return $crate::system::answer(Err(libc::ENOSYS)) as $result;
        }
        // SAFETY: libc's function of this name has this type.
        unsafe { std::mem::transmute::<usize, unsafe extern "C-unwind" fn($($type),*) -> $result>(at) }
    }};
}

pub(crate) use next;
