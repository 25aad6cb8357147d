//! Commands on real sockets, on the loopback interface: two processes that talk, what they print, what they leave.

mod cat;
#[path = "../common/mod.rs"]
mod commands;
mod common;
mod emulated;
mod ends;
mod extensions;
mod mistakes;
mod perf;
mod serve;
#[cfg(target_os = "linux")]
mod shell;
