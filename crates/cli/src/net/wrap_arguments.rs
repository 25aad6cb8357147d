//! The command line of `wrap`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

use super::certificates::Certificates;
use crate::number;

// Arguments of `wrap`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Wrap {
    /// Program to run, with its arguments.
    #[arg(
        value_name = "COMMAND",
        required_unless_present_any = ["host", "again"],
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<std::ffi::OsString>,
    /// Run no program, only the host that further commands with the same options join, until
    /// interrupted.
    #[arg(long, conflicts_with = "command")]
    pub host: bool,
    /// Start a host in place of one that has ended (used by programs).
    #[arg(long, hide = true, conflicts_with_all = ["command", "host"])]
    pub again: bool,
    /// UDP port of this side; 0: any. A port of another `wrap` of this user is shared: the programs
    /// use its host [default: 9899].
    #[arg(long, value_name = "PORT", value_parser = number::port_or_any())]
    pub udp_port: Option<u16>,
    /// UDP port of peers [default: 9899].
    #[arg(long, value_name = "PORT", value_parser = number::port())]
    pub peer_udp_port: Option<u16>,
    /// How packets are carried: inside UDP (encapsulated), or directly over IP (ip), without the
    /// UDP ports; needs root or CAP_NET_RAW.
    #[arg(long, value_name = "KIND", default_value = "encapsulated", value_parser = ["encapsulated", "ip"])]
    pub carrier: String,
    /// Local address (repeatable) [default: all of the host].
    #[arg(long, value_name = "ADDRESS", value_parser = super::address::ip)]
    pub local: Vec<IpAddr>,
    /// Enable AUTH (RFC 4895) for the program's sockets, as net.sctp.auth_enable=1 does with Linux.
    /// Otherwise a program enables it by the socket option SCTP_AUTH_SUPPORTED.
    #[arg(long)]
    pub auth: bool,
    /// Protect all associations of the program by the DTLS chunk, opposite another `wrap --secure`
    /// or opposite `serve`, `perf` or `cat` with the same options. All packets are encrypted, and
    /// peers without it are refused. Needs --tls-cert, --tls-key and --tls-ca (or
    /// --tls-fingerprint), or --psk-file.
    #[arg(long)]
    pub secure: bool,
    /// Pre-shared secret for --secure: the file that contains it, at least 16 bytes. A line break
    /// at the end of the file is not part of the secret. Both ends must have the same secret.
    #[arg(long, value_name = "FILE")]
    pub psk_file: Option<PathBuf>,
    #[command(flatten)]
    pub certificates: Certificates,
    /// Do not watch for programs that request SCTP sockets directly from the kernel. Watching
    /// prevents the program from gaining privileges by `exec` (sudo), unless it has CAP_SYS_ADMIN.
    #[arg(long)]
    pub no_seccomp: bool,
}

impl Wrap {
    /// Returns true if packets are carried directly over IP.
    pub fn is_ip(&self) -> bool {
        self.carrier == "ip"
    }

    /// UDP ports of this host and of peers.
    pub fn udp_ports(&self) -> [u16; 2] {
        let ports = [self.udp_port, self.peer_udp_port];
        ports.map(|port| port.unwrap_or(anabranch_net::ENCAPSULATION_PORT))
    }
}
