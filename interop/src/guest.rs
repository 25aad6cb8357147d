//! Command line of a User Mode Linux (the guest) whose first process is a peer.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use crate::programs::Linux;

/// Completes the command that starts `linux.kernel`. The guest has a root file system over hostfs
/// (read only), its console on standard output, and for each `ethN` a TAP interface `tapN` on the
/// host. The first `impaired` interfaces lose and reorder packets. The arguments of the peer
/// follow.
pub fn prepare(
    command: &mut Command,
    linux: &Linux,
    interfaces: usize,
    impaired: usize,
    directory: &Path,
) {
    let modules: Vec<_> = linux
        .modules
        .iter()
        .map(|path| path.to_string_lossy())
        .collect();
    command.env("LD_PRELOAD", &linux.preload);
    command.args(["mem=192M", "root=/dev/root", "rootfstype=hostfs", "ro"]);
    command.args([
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        "quiet",
        "loglevel=3",
    ]);
    command.arg(format!("uml_dir={}", directory.display()));
    command.arg("umid=guest");
    command.arg(format!("init={}", linux.init.display()));
    command.args((0..interfaces).map(|n| format!("eth{n}=tuntap,tap{n}")));
    command.args(["--", &format!("modules={}", modules.join(","))]);
    if impaired > 0 {
        command.arg(format!("impair={impaired}"));
    }
}

/// Adds the arguments of a guest that runs a bash script instead of a peer: the guest's address,
/// and the UDP ports of the guest's SCTP and of its peers (`None`: SCTP directly over IP).
pub fn script(command: &mut Command, script: &Path, local: IpAddr, udp: Option<[u16; 2]>) {
    let transport = if udp.is_some() { "encap" } else { "raw" };
    let [own, peers] = udp.unwrap_or_default();
    command.args([
        format!("script={}", script.display()),
        format!("local={local}"),
        format!("transport={transport}"),
        format!("local-udp={own}"),
        format!("remote-udp={peers}"),
    ]);
}
