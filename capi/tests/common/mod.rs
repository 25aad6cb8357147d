//! Functions for tests that run programs on a host in this process.
// Each test uses only some of these functions.
#![allow(dead_code)]

pub mod networks;

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_net::{Carrier, Config};
use anabranch_sockets::host::{BypassStatus, Host};

/// Timeout of a program, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Timeout for the host to send the remaining data of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(20);

/// Path of the preloaded library: as built for this test, or as set by CAPI_LIBRARY ([`words`]).
pub fn library() -> PathBuf {
    if let Some(other) = std::env::var_os("CAPI_LIBRARY") {
        return other.into();
    }
    let test = std::env::current_exe().expect("a test is a file");
    let folder = test.parent().expect("target/*/deps");
    folder.join("libanabranch_preload.so")
}

/// Path of the replacement for Debian's libsctp.so.1: as built for this test, or as set by
/// CAPI_LIBSCTP.
pub fn libsctp() -> PathBuf {
    if let Some(other) = std::env::var_os("CAPI_LIBSCTP") {
        return other.into();
    }
    Path::new(env!("OUT_DIR")).join("libsctp.so.1")
}

/// Compiles a C program of this directory, linked with libsctp.
pub fn compile(name: &str, into: &Path) -> PathBuf {
    compile_with(name, into, &["-lsctp"])
}

/// Compiles a C program of this directory with these additional compiler arguments.
pub fn compile_with(name: &str, into: &Path, arguments: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    let program = into.join(name);
    let output = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .args([&program, &source])
        .args(arguments)
        .args(words("CAPI_CFLAGS"))
        .output()
        .expect("cc is there");
    assert!(output.status.success(), "{}", text(&output));
    program
}

/// Splits an environment variable into words. With these variables, `scripts/check-sanitizers`
/// instruments the programs: CAPI_CFLAGS are compiler flags, CAPI_TOOL is a command that runs the
/// programs, CAPI_PRELOAD is loaded before all other libraries.
fn words(variable: &str) -> Vec<String> {
    let value = std::env::var(variable).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}

/// Returns the command that runs `command` under CAPI_TOOL.
fn checked(command: &Command) -> Command {
    let mut words = words("CAPI_TOOL").into_iter();
    let Some(tool) = words.next() else {
        return tied(command);
    };
    let mut out = Command::new(tool);
    out.args(words)
        .arg(command.get_program())
        .args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        out.current_dir(folder);
    }
    tied(&out)
}

pub fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    format!("{out}{error}")
}

/// Runs a program whose SCTP sockets use a new host. The host expects peers at its own UDP port.
pub fn run(command: &mut Command) -> Output {
    run_with(command, &[library()])
}

/// Runs the command with these libraries preloaded.
pub fn run_with(command: &mut Command, preload: &[PathBuf]) -> Output {
    run_at(command, preload, encapsulated(&[]))
}

/// Configuration of a host with UDP encapsulation and these local addresses; if the list is empty,
/// it has all addresses of the machine.
pub fn encapsulated(addresses: &[IpAddr]) -> Config {
    Config::default().with(|it| {
        it.carrier = Carrier::Encapsulated {
            port: 0,
            peer_port: 0,
        };
        it.addresses = addresses.to_vec();
    })
}

/// Runs the command with a host that has this configuration, in the network namespace of this
/// thread.
pub fn run_at(command: &mut Command, preload: &[PathBuf], config: Config) -> Output {
    run_by(command, preload, config, false).0
}

/// Like [`run`], with detection of system calls that bypass the library. Also returns the result of
/// the detection.
pub fn run_watched(command: &mut Command) -> (Output, BypassStatus) {
    run_by(command, &[library()], encapsulated(&[]), true)
}

fn run_by(
    command: &mut Command,
    preload: &[PathBuf],
    config: Config,
    watched: bool,
) -> (Output, BypassStatus) {
    let ours = preload.iter().map(|it| it.to_string_lossy().into_owned());
    let preload: Vec<_> = words("CAPI_PRELOAD").into_iter().chain(ours).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    static HOSTS: AtomicUsize = AtomicUsize::new(0);
    let number = HOSTS.fetch_add(1, Ordering::Relaxed);
    let name = format!("test-{}-{number}", std::process::id());
    let (output, missed) = runtime.block_on(async {
        let host = Host::start(&name, config).expect("a host");
        let idle = host.idle();
        let missed = host.bypass_status();
        tokio::spawn(host.serve());
        let mut command = tokio::process::Command::from(checked(command));
        command.env("LD_PRELOAD", preload.join(":"));
        command.env("ANABRANCH_HOST", &name).kill_on_drop(true);
        if watched {
            command.env("ANABRANCH_WATCH", "1");
        }
        let child = command.output();
        let output = tokio::time::timeout(TIMEOUT, child).await;
        // The host may still be sending the last data of the program. The timeout limits the wait
        // for a peer that does not respond.
        let _ = tokio::time::timeout(LAST_WORDS, idle).await;
        (output, missed.borrow().clone())
    });
    let output = output.expect("the program ends").expect("it runs");
    (output, missed)
}

/// Returns a command whose processes end with this thread: its program becomes the first process of
/// a new PID namespace, if that is allowed.
pub fn tied(command: &Command) -> Command {
    let mut out = match anabranch_interop::namespace::allowed() {
        Ok(()) => {
            let mut out = Command::new("setpriv");
            out.args(["--pdeathsig", "KILL", "unshare", "--pid", "--fork"]);
            out.arg("--kill-child=KILL").arg(command.get_program());
            out
        }
        Err(_) => Command::new(command.get_program()),
    };
    out.args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        out.current_dir(folder);
    }
    out
}
