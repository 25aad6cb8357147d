//! Commands on real sockets over the loopback interface: two processes, their output and their
//! files.

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
