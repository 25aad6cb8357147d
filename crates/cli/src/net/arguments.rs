//! The command lines of the commands that use real sockets.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::address::ScopedAddr;
use super::timed_address::{TimedAddress, seconds_or_none};
use super::wrap_arguments::Wrap;
use crate::number;
use anabranch_engine::manual;
use anabranch_scenario::quantity::{Rate, Size, TimeSpan};
use clap::{Args, Subcommand, ValueEnum};

/// The default SCTP port.
pub const PORT: u16 = 5001;

/// Encapsulation of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CarrierKind {
    /// Inside UDP (RFC 6951); the UDP port of the peer is learnt from its packets.
    Encapsulated,
    /// In UDP between two fixed ports.
    Udp,
    /// Directly over IP, protocol 132; needs root or CAP_NET_RAW.
    Ip,
}

/// The help of `--set`, which lists all settings.
fn set_help() -> String {
    let settings = manual::help("sctp");
    format!(
        "Set a key of [flow.transport] (repeatable). A dot reaches into a table: stream_allocation.kind=adaptive.\n\n{settings}"
    )
}

// Options of all commands that use SCTP on real sockets.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct NetOptions {
    /// How packets are carried.
    #[arg(long, value_name = "KIND", default_value = "encapsulated")]
    pub carrier: CarrierKind,
    /// Local UDP port; 0: any [default: 9899 for a server, any for a client].
    #[arg(long, value_name = "PORT", value_parser = number::port_or_any())]
    pub udp_port: Option<u16>,
    /// UDP port of the peer [default: 9899].
    #[arg(long, value_name = "PORT", value_parser = number::port())]
    pub peer_udp_port: Option<u16>,
    /// Local address (repeatable: a multihomed endpoint) [default: all, as one].
    #[arg(long, value_name = "ADDRESS")]
    pub local: Vec<ScopedAddr>,
    /// Local address to add to associations (repeatable). TIME counts from the establishment of the
    /// association, on a server from its start [default: at once]. Needs --set address_changes=true
    /// and --set authentication=on (RFC 5061).
    #[arg(long, value_name = "ADDRESS[@TIME]")]
    pub add_address: Vec<TimedAddress>,
    /// Local address to remove (repeatable), as with --add-address. Changes at the same time are
    /// one request, so that the only address can be replaced.
    #[arg(long, value_name = "ADDRESS[@TIME]")]
    pub remove_address: Vec<TimedAddress>,
    /// Local address that the peer is asked to use as its primary path (repeatable), as with
    /// --add-address.
    #[arg(long, value_name = "ADDRESS[@TIME]")]
    pub peer_primary: Vec<TimedAddress>,
    /// Local address that the peer should send to first, requested in the handshake. Needs --set
    /// address_changes=true, and several --local.
    #[arg(long, value_name = "ADDRESS")]
    pub preferred_address: Option<IpAddr>,
    /// Differentiated services code point of sent packets: 0 to 63, or a name (ef, af41, cs1, le).
    #[arg(long, value_name = "DSCP", default_value = "0", value_parser = super::address::dscp)]
    pub dscp: u8,
    /// Profile: rfc9260, rfc4960, rfc2960, ns2.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Congestion control: sctp, cubic, vegas, westwood, ...
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Outbound streams to request.
    #[arg(long, value_name = "N", value_parser = number::port())]
    pub streams: Option<u16>,
    /// Send buffer of an association [default: 4 MiB].
    #[arg(long, value_name = "SIZE", value_parser = super::amount)]
    pub send_buffer: Option<Size>,
    /// Set a key of [flow.transport]: receive_buffer='4 MiB', stream_allocation.kind=adaptive
    /// (repeatable).
    #[arg(long, value_name = "KEY=VALUE", long_help = set_help())]
    pub set: Vec<String>,
    /// Shared key for authenticated chunks (repeatable): an identifier, 0 to 65535, and the file
    /// that contains the key. A line break at the end of the file is not part of the key. The first
    /// key authenticates sent chunks. Needs --set authentication=on or required.
    #[arg(long, value_name = "ID=FILE", value_parser = super::auth_keys::key)]
    pub auth_key: Vec<(u16, PathBuf)>,
    /// Pre-shared secret for the DTLS chunk: the file that contains it, at least 16 bytes. A line
    /// break at the end of the file is not part of the secret. Both ends must have the same secret.
    /// All packets are encrypted, and peers without it are refused, unless --set
    /// security=dtls-chunk-loose.
    #[arg(long, value_name = "FILE")]
    pub psk_file: Option<PathBuf>,
    #[command(flatten)]
    pub certificates: super::certificates::Certificates,
    /// Path MTU: size of the largest IP packet. `auto` discovers it (RFC 8899), up to --set
    /// mtu=SIZE (default 1500 B).
    #[arg(long, value_name = "auto|SIZE", default_value = "auto", value_parser = super::pmtu)]
    pub pmtu: Pmtu,
    /// Send no optional parameters in the INIT, for peers that reject them (pion/sctp, sctp-proto).
    #[arg(long)]
    pub minimal_init: bool,
    /// Write every packet to this file, in pcapng format.
    #[arg(long, value_name = "FILE.pcapng")]
    pub capture: Option<PathBuf>,
    /// Write time series into a results directory, for `anabranch show`.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
}

/// Size of sent packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pmtu {
    /// Discovered by probes (RFC 8899).
    Auto,
    /// A fixed size in bytes, including the IP header.
    Fixed(usize),
}

/// Service that a server offers on its associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// Sends every message back to the client.
    Echo,
    /// Receives and discards.
    Sink,
    /// Sends data: as requested by the client (`perf -R`), or else by --message-size, --bytes and
    /// --unordered.
    Source,
}

// Services without separate associations.
#[derive(Clone, Debug, Subcommand)]
#[command(defer = true)]
pub enum OtherService {
    /// Serve WebRTC data channels to browsers, with a test page; every message is echoed.
    #[command(after_help = crate::status::with_status("data-channels", "Examples:
  anabranch serve data-channels            a page at http://127.0.0.1:8080/
  anabranch serve data-channels --http 127.0.0.1:0 --address 192.0.2.1

POST /offer takes the offer of an RTCPeerConnection as its body and returns the answer. With POST
/offer?open=3 the server also opens three channels. A channel is closed by the server when it
receives the text \"/close\". docs/DATACHANNEL.md lists what works and what is missing."))]
    DataChannels(DataChannels),
}

// Arguments of `serve data-channels`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct DataChannels {
    /// Address of the test page and of /offer. There is no access control: every host that reaches
    /// it can connect.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080", value_parser = super::address::with_port)]
    pub http: SocketAddr,
    /// Address for browsers to connect to. Each connection uses a UDP port of its own.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = super::address::ip)]
    pub address: IpAddr,
    /// Maximum number of simultaneous connections. Further offers get status 503.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = number::port())]
    pub connections: u16,
}

// Arguments of `serve`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Serve {
    /// A service other than those for associations.
    #[command(subcommand)]
    pub other: Option<OtherService>,
    /// Service offered.
    #[arg(value_name = "SERVICE", required = true)]
    pub service: Option<Service>,
    /// SCTP port (repeatable: all share the UDP port).
    #[arg(short, long, value_name = "PORT", default_values_t = [PORT], value_parser = number::port())]
    pub port: Vec<u16>,
    /// Number of serving threads, each with sockets and separate associations (Linux, inside
    /// UDP); a peer is served by one of them.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u16>(1..=256))]
    pub threads: u16,
    /// Exit after the first association.
    #[arg(short = '1', long)]
    pub once: bool,
    /// Print one JSON object per line: event "listening", "metrics", "up" or "end".
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Serve metrics for Prometheus at http://ADDRESS:PORT/metrics; port 0: any.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = super::address::with_port)]
    pub metrics: Option<SocketAddr>,
    /// Maximum number of simultaneous associations per port; with several threads each has its
    /// share, rounded up. Further associations are refused, even if another thread has room.
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = number::count())]
    pub max_associations: u32,
    /// source: message size [default: 1 KiB].
    #[arg(long, value_name = "SIZE", value_parser = super::message_size)]
    pub message_size: Option<Size>,
    /// source: total bytes [default: until the client closes].
    #[arg(long, value_name = "SIZE", value_parser = super::amount)]
    pub bytes: Option<Size>,
    /// source: unordered messages.
    #[arg(long)]
    pub unordered: bool,
    /// source: send when the association is established [default: after the first message of the
    /// client (`perf -R`)].
    #[arg(long)]
    pub send_first: bool,
    /// Options of all commands on real sockets.
    #[command(flatten)]
    pub wire: NetOptions,
}

// Arguments of `perf`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Perf {
    /// Server to connect to: HOST or HOST:PORT (SCTP port, default 5001).
    #[arg(value_name = "HOST")]
    pub host: String,
    /// SCTP port of the server, if HOST names none.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = number::port())]
    pub port: u16,
    /// SCTP port of this side; with --parallel, the first of consecutive ports [default: random].
    #[arg(long, value_name = "PORT", value_parser = number::port())]
    pub local_port: Option<u16>,
    /// Further address of the server (repeatable).
    #[arg(long, value_name = "ADDRESS")]
    pub path: Vec<ScopedAddr>,
    /// Number of parallel associations, from one UDP port.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = number::whole::<u16>(1..=128))]
    pub parallel: u16,
    /// Time to send. At its end unsent data is dropped, and data in flight has 2 s to arrive.
    #[arg(short = 't', long, value_name = "TIME", default_value = "10 s", value_parser = seconds)]
    pub duration: TimeSpan,
    /// Total bytes to send (overrides --duration).
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = super::amount)]
    pub bytes: Option<Size>,
    /// Message size: bytes, or with a unit; K and M are 1024 and 1024 x 1024 bytes.
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "1 KiB", value_parser = super::message_size)]
    pub message_size: Size,
    /// Send unordered messages.
    #[arg(short, long)]
    pub unordered: bool,
    /// Target rate of each association, of user data: 2Mbit/s, or bit/s without a unit and K, M, G
    /// of 1000 [default: no limit].
    #[arg(short, long, value_name = "RATE", value_parser = super::bitrate)]
    pub bitrate: Option<Rate>,
    /// Reverse: the server sends (needs `anabranch serve sink` or `serve source`).
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Both directions at once, each with the number of associations in --parallel.
    #[arg(long, conflicts_with = "reverse")]
    pub bidir: bool,
    /// Report each path: state, MTU, cwnd, bytes in flight, RTT and RTO.
    #[arg(long)]
    pub per_path: bool,
    /// Interval of reports; 0: only the summary.
    #[arg(short, long, value_name = "TIME", default_value = "1 s", value_parser = seconds_or_none)]
    pub interval: TimeSpan,
    /// Print one JSON document instead of lines.
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Give up if the association is not established in this time; 0: after eight retransmissions
    /// of INIT (RFC 9260).
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = seconds_or_none)]
    pub connect_timeout: TimeSpan,
    /// Give up if nothing arrives at either end for this time; 0: never. A failover with the
    /// defaults of RFC 9260 takes 63 s, in which something arrives every 32 s.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = seconds_or_none)]
    pub idle_timeout: TimeSpan,
    /// Options of all commands on real sockets.
    #[command(flatten)]
    pub wire: NetOptions,
}

// Arguments of `cat`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Cat {
    /// Server to connect to: HOST or HOST:PORT (SCTP port, default 5001). Omit with --listen.
    #[arg(
        value_name = "HOST",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub host: Option<String>,
    /// Wait for an association at this SCTP port instead.
    #[arg(short, long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5001", value_parser = number::port())]
    pub listen: Option<u16>,
    /// SCTP port of the peer, if HOST names none.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = number::port())]
    pub port: u16,
    /// SCTP port of this side [default: random].
    #[arg(long, value_name = "PORT", conflicts_with = "listen", value_parser = number::port())]
    pub local_port: Option<u16>,
    /// Further address of the peer (repeatable).
    #[arg(long, value_name = "ADDRESS")]
    pub path: Vec<ScopedAddr>,
    /// Print local and peer addresses on standard error.
    #[arg(short, long)]
    pub verbose: bool,
    /// Give up if the association is not established in this time; 0: after eight retransmissions
    /// of INIT (RFC 9260).
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = seconds_or_none)]
    pub connect_timeout: TimeSpan,
    /// Stream to send on.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = number::whole::<u16>(0..=u16::MAX.into()))]
    pub stream: u16,
    /// Payload protocol identifier of the messages: decimal, or hexadecimal with 0x.
    #[arg(long, value_name = "N", default_value = "0", value_parser = ppid)]
    pub ppid: u32,
    /// Send unordered messages.
    #[arg(short, long)]
    pub unordered: bool,
    /// Send one message per line; otherwise one per read.
    #[arg(long)]
    pub lines: bool,
    /// Largest message to send.
    #[arg(long, value_name = "SIZE", default_value = "16 KiB", value_parser = super::message_size)]
    pub message_size: Size,
    /// After the end of input, close once nothing has arrived for this time [default: 500 ms; with
    /// --listen: wait for the peer to close].
    #[arg(short, long, value_name = "TIME", value_parser = seconds_or_none)]
    pub wait: Option<TimeSpan>,
    /// Options of all commands on real sockets.
    #[command(flatten)]
    pub wire: NetOptions,
}

// Arguments of `emulate`.
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct Emulate {
    /// Spec whose nodes and links are emulated.
    #[arg(value_name = "LINK.toml")]
    pub spec: PathBuf,
    /// Address to which the near side sends its packets.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9900", value_parser = address)]
    pub listen: SocketAddr,
    /// Address of the far side, to which packets are forwarded.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9899", value_parser = address)]
    pub to: SocketAddr,
    /// Source address towards the far side [default: chosen by the system].
    #[arg(long, value_name = "ADDRESS", value_parser = super::address::ip)]
    pub from: Option<IpAddr>,
    /// How packets are carried: udp, or ip (SCTP directly over IP). With ip, --listen, --from and
    /// --to are addresses without ports, the first two of them local and used only by the
    /// emulator; needs root or CAP_NET_RAW.
    #[arg(long, value_name = "KIND", default_value = "udp", value_parser = ["udp", "ip"],
        requires_ifs = [("ip", "from"), ("ip", "listen"), ("ip", "to")])]
    pub carrier: String,
    /// Carry all IP packets of a node over this TUN device instead, which is created if it does not
    /// exist (two or more). Its addresses and routes must be configured separately. Needs
    /// CAP_NET_ADMIN.
    #[cfg(target_os = "linux")]
    #[arg(long, value_name = "NODE=DEVICE", conflicts_with_all = ["listen", "to", "from", "carrier", "between", "no_udp_header"])]
    pub tun: Vec<String>,
    /// Nodes at which packets enter and leave [default: first and last].
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',', num_args = 1)]
    pub between: Vec<String>,
    /// Simulate packets as SCTP directly over IP: without the 8 bytes of the UDP header.
    #[arg(long)]
    pub no_udp_header: bool,
    /// Stop after this time [default: when interrupted].
    #[arg(long, value_name = "TIME", value_parser = super::quantity::<TimeSpan>)]
    pub duration: Option<TimeSpan>,
    /// Interval of reports; 0: only a final report.
    #[arg(short, long, value_name = "TIME", default_value = "10 s", value_parser = seconds_or_none)]
    pub interval: TimeSpan,
    /// Seed of the losses.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = number::seed())]
    pub seed: u64,
    /// Set a parameter of the spec, or a key by its path (repeatable): rate='2 Mbit/s',
    /// link.satellite.delay='10 ms'.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

impl Emulate {
    /// Returns true if packets are carried directly over IP.
    pub fn is_ip(&self) -> bool {
        self.carrier == "ip"
    }
}

// Arguments of `shell`.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug, Args)]
#[command(mut_args = number::signed)]
pub struct ShellArguments {
    /// Spec whose nodes and links are emulated.
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    /// Command to run, with its arguments [default: the program of $SHELL].
    #[arg(value_name = "COMMAND", last = true)]
    pub command: Vec<std::ffi::OsString>,
    /// Node at which the command runs [default: the first].
    #[arg(long, value_name = "NODE")]
    pub at: Option<String>,
    /// Run another command concurrently, by `sh -c`, at this node (repeatable).
    #[arg(long, value_name = "NODE=COMMAND")]
    pub run: Vec<String>,
    /// Start the command once a program listens at this port of TCP or UDP (repeatable).
    #[arg(long, value_name = "NODE:PORT")]
    pub wait_for: Vec<String>,
    /// Create a namespace for another node, so that it responds (repeatable) [default: the first,
    /// the last, and those of --at and --run].
    #[arg(long, value_name = "NODE")]
    pub host: Vec<String>,
    /// Write the packets at the interface of a node to a link into a pcapng file (repeatable).
    #[arg(long, value_name = "NODE@LINK=FILE")]
    pub capture: Vec<String>,
    /// Write the final report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print nodes, links and addresses; run nothing.
    #[arg(long, conflicts_with_all = ["command", "run", "wait_for", "capture", "report", "at", "host"])]
    pub dry_run: bool,
    /// Seed of the losses.
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = number::seed())]
    pub seed: u64,
    /// Set a parameter of the spec, or a key by its path (repeatable): rate='2 Mbit/s',
    /// link.satellite.delay='10 ms'.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Commands on real sockets.
#[derive(Clone, Debug, Subcommand)]
#[command(defer = true)]
pub enum NetCommand {
    /// Accept associations on real sockets: echo, discard or send.
    #[command(after_help = "Examples:
  anabranch serve echo                           SCTP port 5001 in UDP port 9899
  anabranch serve sink --port 7000 --port 7001   two SCTP ports in one UDP port
  anabranch serve sink --port 7000 --local 192.0.2.1 --local 198.51.100.1
                                                 two addresses (multihomed)
  anabranch serve sink --carrier ip              directly over IP, as root
  anabranch serve sink --once --trace run        series for `anabranch show run`

Prints a line when an association starts and when it ends. If the output is not read, up to 1,024 lines are kept, and one line \
says how many were dropped. SIGINT and SIGTERM abort all associations and exit. docs/NET.md describes carriers, ports and \
settings.")]
    Serve(Box<Serve>),
    /// Measure the throughput of associations to a server.
    #[command(after_help = "Examples:
  anabranch perf 192.0.2.1                 messages of 1 KiB for ten seconds
  anabranch perf 192.0.2.1 -l 64K -n 1G --json
  anabranch perf 192.0.2.1 -P 4 -t 30      four associations, half a minute
  anabranch perf 192.0.2.1 --streams 10 --unordered --congestion westwood
  anabranch perf 192.0.2.1 -R              the server sends
  anabranch perf 192.0.2.1 --bidir -b 2M   2 Mbit/s in each direction
  anabranch perf 192.0.2.1 --path 198.51.100.1 \\
      --local 192.0.2.9 --local 198.51.100.9
                                           over two paths
  anabranch perf 127.0.0.1 --peer-udp-port 9900
                                           through `anabranch emulate`
  anabranch perf 192.0.2.1 --local 192.0.2.9 \\
      --set authentication=on --set address_changes=true \\
      --add-address 198.51.100.9@5s --remove-address 192.0.2.9@5s
                                           to another address after 5 s

Counts data acknowledged by the server, and data that the server reports as received. The first SIGINT or SIGTERM ends the \
measurement as --duration does, with a summary; the second aborts. With -R the columns of the sender (Retr, Cwnd, RTT) are in \
the summary only.")]
    Perf(Box<Perf>),
    /// Send standard input, and print received messages.
    #[command(after_help = "Examples:
  echo hello | anabranch cat 127.0.0.1     to `anabranch serve echo`
  anabranch cat --listen > file            at one end
  anabranch cat 192.0.2.1 < file           at the other end")]
    Cat(Box<Cat>),
    /// Emulate a path of the simulator between two UDP ports, in real time.
    #[command(after_help = "Examples:
  anabranch emulate geo.toml       from 127.0.0.1:9900 to 127.0.0.1:9899
  anabranch emulate geo.toml --listen 0.0.0.0:9900 --to 192.0.2.1:9899
  anabranch emulate geo.toml --set rate='2 Mbit/s'
  anabranch perf 127.0.0.1 --peer-udp-port 9900
                                   through it, to `anabranch serve sink`
  anabranch emulate geo.toml --tun near=tun0 --tun far=tun1
                                   any IP packets, between TUN devices

The file is a spec. Its nodes and links with rate, delay, queue, loss, down times and impairments are used; flows are ignored and \
may be missing. Replies go to the address that sent last. Each report ends with the timing error: how much later packets left than \
the simulator computed.")]
    Emulate(Box<Emulate>),
    /// Run any program on simulated links, in network namespaces.
    #[cfg(target_os = "linux")]
    #[command(after_help = "Examples:
  anabranch shell link.toml -- ping -c 3 server
  anabranch shell link.toml --run server='iperf3 -s -1' \\
      --wait-for server:5201 -- iperf3 -c server
  anabranch shell link.toml                a shell at the first node
  anabranch shell link.toml --at server    a shell at another
  anabranch shell link.toml --dry-run      print the addresses of nodes
  anabranch shell link.toml --capture phone@radio=radio.pcapng -- COMMAND

Each host is a network namespace with the device sim0, the addresses of its node and an /etc/hosts with the names of all nodes \
(NODE, and NODE.LINK if it has several addresses). All IP packets cross the links of the spec, in real time; nothing else can be \
reached. Its time starts with COMMAND. When COMMAND ends, the other commands are ended, and its status is the exit status. A \
report goes to standard error: packets, drops by reason, and by how much packets left later than computed. Works as root, and for other users \
if they may create namespaces; COMMAND is root in its namespace then. Needs /dev/net/tun and `ip` (iproute2).")]
    Shell(Box<ShellArguments>),
    /// Run an existing SCTP program on this stack, without SCTP in the kernel.
    #[command(after_help = "Examples:
  anabranch wrap -- socat SCTP-LISTEN:5001,fork EXEC:cat
  anabranch wrap --udp-port 0 -- socat - SCTP:192.0.2.1:5001
  anabranch wrap -- iperf3 -s

The program's SCTP packets travel inside UDP (RFC 6951). It needs no change; docs/SOCKETS.md lists what it may call.")]
    Wrap(Box<Wrap>),
}

/// Parses an address with an optional port, which is 0 by default.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    bare().map_or_else(|| super::address::with_port(text), Ok)
}

/// Parses a payload protocol identifier.
fn ppid(text: &str) -> Result<u32, String> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| {
        format!(
            "found {text:?}; write 0 to {}, or 0x0 to 0xffffffff",
            u32::MAX
        )
    })
}

/// Parses a time greater than 0; a number without a unit is in seconds.
fn seconds(text: &str) -> Result<TimeSpan, String> {
    match seconds_or_none(text)? {
        TimeSpan(0) => Err("found 0; allowed: more than 0".to_owned()),
        span => Ok(span),
    }
}
