//! The programs that peers are made of: building those in C and Go, finding those that Debian brings.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::socket::{setsockopt, sockopt};

/// Where this crate's sources are.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Asks for room for 4 MiB of datagrams that have come and are not read yet; less where the system allows only less.
pub fn receive_room(socket: &UdpSocket) {
    const ROOM: usize = 4 << 20;
    if setsockopt(socket, sockopt::RcvBufForce, &ROOM).is_err() {
        // Without privilege the system's limit holds; a peer with little room loses more, and is right all the same.
        let _ = setsockopt(socket, sockopt::RcvBuf, &ROOM);
    }
}

/// The peers. Those that cargo does not build are built at most once in a process; an error says what is missing.
#[derive(Debug)]
pub struct Programs {
    directory: PathBuf,
    /// This stack.
    pub anabranch: PathBuf,
    /// dcsctp.
    pub dcsctp: PathBuf,
    usrsctp: OnceLock<Result<PathBuf, String>>,
    linux: OnceLock<Result<Linux, String>>,
    pion: OnceLock<Result<PathBuf, String>>,
}

/// What a User Mode Linux is started with.
#[derive(Clone, Debug)]
pub struct Linux {
    /// The kernel, Debian's `linux.uml`.
    pub kernel: PathBuf,
    /// Preloaded into it: see `peers/linux/xstate.c`.
    pub preload: PathBuf,
    /// The guest's first process, which is the peer.
    pub init: PathBuf,
    /// Kernel modules in the order of loading.
    pub modules: Vec<PathBuf>,
}

impl Programs {
    /// Two programs of cargo's, and others to be built into `directory`, which exists.
    pub fn new(directory: &str, anabranch: &str, dcsctp: &str) -> Self {
        Self {
            directory: directory.into(),
            anabranch: anabranch.into(),
            dcsctp: dcsctp.into(),
            usrsctp: OnceLock::new(),
            linux: OnceLock::new(),
            pion: OnceLock::new(),
        }
    }

    /// Where files may be left.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// A directory of its own for a process; it does not exist yet.
    pub fn new_scratch(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.directory.join(format!("{process}-{number}"))
    }

    /// The usrsctp peer.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn usrsctp(&self) -> Result<&Path, String> {
        let built = self.usrsctp.get_or_init(|| {
            let arguments = ["-lusrsctp", "-lpthread"];
            self.compile("usrsctp-peer", &["usrsctp/usrsctp.c"], &arguments)
        });
        built.as_deref().map_err(Clone::clone)
    }

    /// The pion peer.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn pion(&self) -> Result<&Path, String> {
        let built = self.pion.get_or_init(|| {
            let out = self.directory.join("pion-peer");
            let mut go = Command::new(if Path::new(GO).exists() { GO } else { "go" });
            go.current_dir(root().join("peers/pion"))
                .args(["build", "-o"]);
            run(go.arg(&out).arg(".")).map(|()| out)
        });
        built.as_deref().map_err(Clone::clone)
    }

    /// Linux's own SCTP.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn linux(&self) -> Result<&Linux, String> {
        let built = self.linux.get_or_init(|| {
            let sources = ["linux/linux.c", "linux/guest.c"];
            let init = self.compile("linux-peer", &sources, &["-static", "-lpthread"])?;
            let preload = self.compile("xstate.so", &["linux/xstate.c"], &["-shared", "-fPIC"])?;
            let kernel = PathBuf::from("/usr/bin/linux.uml");
            if !kernel.exists() {
                return Err(format!("there is no {}", kernel.display()));
            }
            Ok(Linux {
                kernel,
                preload,
                init,
                modules: modules()?,
            })
        });
        built.as_ref().map_err(Clone::clone)
    }

    fn compile(&self, name: &str, sources: &[&str], arguments: &[&str]) -> Result<PathBuf, String> {
        let out = self.directory.join(name);
        let mut cc = Command::new("cc");
        cc.current_dir(root().join("peers"));
        cc.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&out);
        run(cc.args(sources).args(arguments)).map(|()| out)
    }
}

/// Where Go's own distribution puts it; a newer one than Debian's, where there is one.
const GO: &str = "/usr/local/go/bin/go";

fn run(command: &mut Command) -> Result<(), String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{name}: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// Debian's modules for User Mode Linux: SCTP with what it needs, and what impairs a link.
fn modules() -> Result<Vec<PathBuf>, String> {
    const NEEDED: [&str; 11] = [
        "lib/crc-ccitt",
        "net/ipv6/ipv6",
        "net/ipv6/ip6_udp_tunnel",
        "net/ipv4/udp_tunnel",
        "crypto/hmac",
        "net/sctp/sctp",
        "net/sched/sch_netem",
        "net/sched/sch_ingress",
        "drivers/net/ifb",
        "net/sched/act_mirred",
        "net/sched/cls_matchall",
    ];
    let place = Path::new("/usr/lib/uml/modules");
    let versions =
        std::fs::read_dir(place).map_err(|error| format!("{}: {error}", place.display()))?;
    let version = versions.flatten().map(|entry| entry.path()).max();
    let version = version.ok_or_else(|| format!("{} is empty", place.display()))?;
    // What a later kernel has built in is no file.
    let builtin = std::fs::read_to_string(version.join("modules.builtin")).unwrap_or_default();
    let mut found = Vec::new();
    for name in NEEDED {
        let file = format!("kernel/{name}.ko");
        let path = version.join(&file);
        match path.exists() {
            true => found.push(path),
            false if builtin.lines().any(|line| line == file) => (),
            false => return Err(format!("there is no {}", path.display())),
        }
    }
    Ok(found)
}
