//! Programs of the peers. This module builds the programs in C and Go, and locates those of Debian.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::sys::socket::{setsockopt, sockopt};

/// Source directory of this crate.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Requests a receive buffer of 4 MiB for a UDP socket; the system may grant a smaller one.
pub fn receive_room(socket: &UdpSocket) {
    const ROOM: usize = 4 << 20;
    if setsockopt(socket, sockopt::RcvBufForce, &ROOM).is_err() {
        // The kernel limits the buffer of unprivileged processes. A peer with a smaller buffer
        // loses more packets, but works correctly.
        let _ = setsockopt(socket, sockopt::RcvBuf, &ROOM);
    }
}

/// The peer programs. Programs that cargo does not build are built at most once per process. The
/// errors describe the missing requirement.
#[derive(Debug)]
pub struct Programs {
    directory: PathBuf,
    /// Peer program with this stack.
    pub anabranch: PathBuf,
    /// Peer program with dcsctp.
    pub dcsctp: PathBuf,
    usrsctp: OnceLock<Result<PathBuf, String>>,
    linux: OnceLock<Result<Linux, String>>,
    pion: OnceLock<Result<PathBuf, String>>,
}

/// Files with which a User Mode Linux is started.
#[derive(Clone, Debug)]
pub struct Linux {
    /// The kernel: `linux.uml` of Debian.
    pub kernel: PathBuf,
    /// Library that is preloaded into the kernel program: see `peers/linux/xstate.c`.
    pub preload: PathBuf,
    /// First process of the guest: the peer program.
    pub init: PathBuf,
    /// Kernel modules, in the order in which they must be loaded.
    pub modules: Vec<PathBuf>,
}

impl Programs {
    /// Creates the set from the paths of two programs built by cargo. Other programs are built in
    /// `directory`, which must exist.
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

    /// Directory for built programs and captures.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Path of a new directory for one process. The process must create the directory.
    pub fn new_scratch(&self) -> PathBuf {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.directory.join(format!("{process}-{number}"))
    }

    /// Path of the usrsctp peer program.
    ///
    /// # Errors
    ///
    /// Description of the missing requirement.
    pub fn usrsctp(&self) -> Result<&Path, String> {
        let built = self.usrsctp.get_or_init(|| {
            let arguments = ["-lusrsctp", "-lpthread"];
            self.compile("usrsctp-peer", &["usrsctp/usrsctp.c"], &arguments)
        });
        built.as_deref().map_err(Clone::clone)
    }

    /// Path of the pion peer program.
    ///
    /// # Errors
    ///
    /// Description of the missing requirement.
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

    /// Files of User Mode Linux with SCTP.
    ///
    /// # Errors
    ///
    /// Description of the missing requirement.
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

/// Path of Go in the official distribution, which is preferred because it is newer than Debian's.
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

/// Kernel modules of Debian's User Mode Linux: SCTP with its dependencies, and link impairments
/// (netem).
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
    // Later kernels contain some modules as built-in code, so that they have no file.
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
