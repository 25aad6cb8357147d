//! Library that is loaded into existing programs in front of libc (LD_PRELOAD). Their SCTP sockets
//! become sockets of a host (`anabranch wrap`, crate `anabranch-sockets`); all other descriptors
//! are unaffected.
//!
//! To the kernel, an SCTP socket is a Unix socket whose peer has the address of a host. Every call
//! recognizes it by this address, in any process and under any descriptor number. The library keeps
//! no other state about a socket, so `fork`, `exec`, `dup` and SCM_RIGHTS need no special handling.
//! To save the query, one byte per descriptor caches that it is *not* an SCTP socket, or that this
//! process opened it as one ([`descriptor`]).
//!
//! - [`calls`]: the interposed libc functions.
//! - [`sctp`]: socket options and ancillary data of SCTP.
//! - [`receive`], [`send`]: transfer of messages.
//! - [`host_client`]: requests to the host.
//! - [`associations`]: setup of associations, and their transfer to new sockets.
//! - [`waiting`]: blocking calls, which can be cancelled as in libc.
//!
//! The library makes all system calls directly ([`system`]), because libc's symbols resolve to its
//! own functions.

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
