//! Library that existing programs load in front of libc (LD_PRELOAD): their SCTP sockets become
//! sockets of a host (`anabranch wrap`, crate `anabranch-sockets`); all other descriptors are
//! unaffected.
//!
//! An SCTP socket is a Unix socket whose peer has the address of a host. Every call recognizes it
//! by that, in any process and under any number: the library keeps no state about it, so `fork`,
//! `exec`, `dup` and SCM_RIGHTS need no special handling. One byte per descriptor caches that it is
//! *not* ours, or that this process opened it as ours ([`descriptor`]), to save the query.
//!
//! - [`calls`]: libc's functions.
//! - [`sctp`]: options and ancillary data.
//! - [`receive`], [`send`]: messages.
//! - [`host_client`]: requests to the host.
//! - [`associations`]: setup and transfer.
//! - [`waiting`]: blocking, as in libc.
//!
//! All system calls are made directly ([`system`]), because libc's symbols resolve to this library.

mod address;
mod associations;
mod calls;
mod descriptor;
mod generations;
mod host_client;
mod host_restart;
mod libc_next;
mod memory;
mod receive;
mod receive_flags;
mod sctp;
mod seccomp;
mod send;
mod send_cache;
mod system;
mod waiting;
