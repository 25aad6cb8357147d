//! What existing programs load in front of libc (LD_PRELOAD): their SCTP sockets become those of a host
//! (`anabranch wrap`, crate `anabranch-sockets`); every other descriptor is left alone.
//!
//! A socket of ours is a Unix socket whose peer has the address of a host, which is how every call knows it, in whichever process and by
//! whichever number: nothing is kept about it here, so `fork`, `exec`, `dup` and SCM_RIGHTS need no care. One byte for each
//! descriptor remembers that it is *not* ours, or that this process opened it as a socket of ours ([`descriptor`]), to spare the question.
//!
//! - [`calls`]: libc's functions. - [`sctp`]: options and ancillary data. - [`receive`], [`send`]: messages. - [`ask`]: requests to the host.
//! - [`associations`]: begun and taken over. - [`waiting`]: as libc waits.
//!
//! All system calls are made directly ([`system`]), since libc's own names lead back here.

mod address;
mod again;
mod ask;
mod associations;
mod calls;
mod descriptor;
mod generations;
mod memory;
mod next;
mod receive;
mod routes;
mod sctp;
mod send;
mod system;
mod waiting;
mod wants;
mod watch;
