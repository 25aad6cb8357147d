//! The command lines of the commands that use real sockets.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anabranch_engine::manual;
use anabranch_scenario::quantity::{Size, Span};
use clap::{Args, Subcommand, ValueEnum};

/// The SCTP port where none is named.
pub const PORT: u16 = 5001;

/// How packets travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CarrierKind {
    /// Inside UDP (RFC 6951); the peer's UDP port is learnt and followed.
    Encapsulated,
    /// In UDP between two fixed ports.
    Udp,
    /// Right above IP, protocol 132; needs root or CAP_NET_RAW.
    Ip,
}

/// The help of `--set`: every setting of the transport.
fn set_help() -> String {
    let settings = manual::help("sctp");
    format!(
        "Set a key of a spec's [flow.transport] (repeatable); allocation.kind=adaptive reaches into a table.\n\n{settings}"
    )
}

/// What all commands on real sockets have.
#[derive(Clone, Debug, Args)]
pub struct Wire {
    /// How packets travel.
    #[arg(long, value_name = "KIND", default_value = "encapsulated")]
    pub carrier: CarrierKind,
    /// Our UDP port [default: 9899 where associations are accepted, else any].
    #[arg(long, value_name = "PORT")]
    pub udp_port: Option<u16>,
    /// The peer's UDP port.
    #[arg(long, value_name = "PORT", default_value_t = 9899)]
    pub peer_udp_port: u16,
    /// A local address; several make this end multihomed (repeatable) [default: all, as one].
    #[arg(long, value_name = "ADDRESS")]
    pub local: Vec<IpAddr>,
    /// Profile: rfc9260, rfc4960, rfc2960, ns2.
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Congestion control: sctp, westwood, binomial, ...
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Streams to negotiate outwards.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub streams: Option<u16>,
    /// Send buffer of an association, for what is accepted and not yet sent [default: 4 MiB].
    #[arg(long, value_name = "SIZE", value_parser = super::amount)]
    pub send_buffer: Option<Size>,
    /// Set a key of a spec's [flow.transport], such as receive_buffer='4 MiB' or allocation.kind=adaptive (repeatable).
    #[arg(long, value_name = "KEY=VALUE", long_help = set_help())]
    pub set: Vec<String>,
    /// The largest IP packet: `auto` finds out what the path carries (RFC 8899), up to mtu of --set (1500 B if left out); a size
    /// is used as it is.
    #[arg(long, value_name = "auto|SIZE", default_value = "auto", value_parser = super::pmtu)]
    pub pmtu: Pmtu,
    /// No optional parameter in the INIT, for peers that misread one (pion/sctp, sctp-proto).
    #[arg(long)]
    pub bare_init: bool,
    /// Write every packet to a file that Wireshark opens.
    #[arg(long, value_name = "FILE.pcapng")]
    pub capture: Option<PathBuf>,
    /// Write the same series as a simulation into a results directory, for `anabranch show`.
    #[arg(long, value_name = "DIR")]
    pub trace: Option<PathBuf>,
}

/// How large packets are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pmtu {
    /// As the path carries.
    Auto,
    /// So many bytes with the IP header.
    Fixed(usize),
}

/// What a server does with its associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Service {
    /// Sends every message back.
    Echo,
    /// Takes what comes.
    Sink,
    /// Sends, as the client asks or as the options here say.
    Source,
}

/// `serve`.
#[derive(Clone, Debug, Args)]
pub struct Serve {
    /// What to do with an association.
    #[arg(value_name = "SERVICE")]
    pub service: Service,
    /// The SCTP port; several share the UDP port (repeatable).
    #[arg(short, long, value_name = "PORT", default_values_t = [PORT], value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// End after the first association.
    #[arg(short = '1', long)]
    pub once: bool,
    /// source: size of a message.
    #[arg(long, value_name = "SIZE", default_value = "1 KiB", value_parser = super::message_size)]
    pub message: Size,
    /// source: how much [default: until the client closes].
    #[arg(long, value_name = "SIZE", value_parser = super::amount)]
    pub bytes: Option<Size>,
    /// source: messages may overtake one another.
    #[arg(long)]
    pub unordered: bool,
    /// source: send without waiting for the client's first message, which asks for how much (`perf -R`) or just begins it.
    #[arg(long)]
    pub at_once: bool,
    /// What all commands on real sockets have.
    #[command(flatten)]
    pub wire: Wire,
}

/// `perf`.
#[derive(Clone, Debug, Args)]
pub struct Perf {
    /// Where a server runs: HOST or HOST:PORT (the SCTP port; 5001 if left out).
    #[arg(value_name = "HOST")]
    pub host: String,
    /// The server's SCTP port, where HOST names none.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// A further address of the server's (repeatable).
    #[arg(long, value_name = "ADDRESS")]
    pub path: Vec<IpAddr>,
    /// Associations at a time, from one UDP port.
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=128))]
    pub parallel: u16,
    /// How long to send. What was not sent by then is withdrawn; what is in flight has 2 s to arrive.
    #[arg(short, long, value_name = "TIME", default_value = "10 s", value_parser = seconds)]
    pub time: Span,
    /// How much to send in all, instead of for how long.
    #[arg(short = 'n', long, value_name = "SIZE", value_parser = super::amount)]
    pub bytes: Option<Size>,
    /// Size of a message; without a unit bytes, and K, M are 1024 and 1024 of them.
    #[arg(short = 'l', long, value_name = "SIZE", default_value = "1 KiB", value_parser = super::message_size)]
    pub message: Size,
    /// Messages may overtake one another.
    #[arg(short, long)]
    pub unordered: bool,
    /// The server sends (it runs `anabranch serve sink` or `source`).
    #[arg(short = 'R', long)]
    pub reverse: bool,
    /// Time between two lines; 0: none but the last.
    #[arg(short, long, value_name = "TIME", default_value = "1 s", value_parser = seconds_or_none)]
    pub interval: Span,
    /// One JSON document instead of lines.
    #[arg(short = 'J', long)]
    pub json: bool,
    /// Give up if the association is not up after this time; 0: after RFC 9260's eight retransmissions of INIT.
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = seconds_or_none)]
    pub connect_timeout: Span,
    /// Give up if nothing arrives, at either end, for this time; 0: never. A failover takes 63 s by RFC 9260's defaults, in
    /// which something arrives every 32 s at least.
    #[arg(long, value_name = "TIME", default_value = "60 s", value_parser = seconds_or_none)]
    pub idle_timeout: Span,
    /// What all commands on real sockets have.
    #[command(flatten)]
    pub wire: Wire,
}

/// `cat`.
#[derive(Clone, Debug, Args)]
pub struct Cat {
    /// Whom to talk to: HOST or HOST:PORT (the SCTP port; 5001 if left out). With --listen: nobody in particular.
    #[arg(
        value_name = "HOST",
        required_unless_present = "listen",
        conflicts_with = "listen"
    )]
    pub host: Option<String>,
    /// Wait for somebody instead, at this SCTP port.
    #[arg(short, long, value_name = "PORT", num_args = 0..=1, default_missing_value = "5001", value_parser = clap::value_parser!(u16).range(1..))]
    pub listen: Option<u16>,
    /// The peer's SCTP port, where HOST names none.
    #[arg(short, long, value_name = "PORT", default_value_t = PORT, value_parser = clap::value_parser!(u16).range(1..))]
    pub port: u16,
    /// A further address of the peer's (repeatable).
    #[arg(long, value_name = "ADDRESS")]
    pub path: Vec<IpAddr>,
    /// Say where it listens, and who is there, on standard error.
    #[arg(short, long)]
    pub verbose: bool,
    /// Give up if the association is not up after this time; 0: after RFC 9260's eight retransmissions of INIT.
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = seconds_or_none)]
    pub connect_timeout: Span,
    /// The stream to send on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub stream: u16,
    /// Messages may overtake one another.
    #[arg(short, long)]
    pub unordered: bool,
    /// A message for each line; otherwise for each piece that is read.
    #[arg(long)]
    pub lines: bool,
    /// The largest message.
    #[arg(long, value_name = "SIZE", default_value = "16 KiB", value_parser = super::message_size)]
    pub message: Size,
    /// After the end of the input, close once nothing has come for so long [default: 500 ms; with --listen: when the peer
    /// closes].
    #[arg(short, long, value_name = "TIME", value_parser = seconds_or_none)]
    pub wait: Option<Span>,
    /// What all commands on real sockets have.
    #[command(flatten)]
    pub wire: Wire,
}

/// `emulate`.
#[derive(Clone, Debug, Args)]
pub struct Emulate {
    /// A spec; its nodes and links are used, its flows are not.
    #[arg(value_name = "LINK.toml")]
    pub spec: PathBuf,
    /// Where to listen for the one side.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9900", value_parser = address)]
    pub listen: SocketAddr,
    /// Where the other side listens.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9899", value_parser = address)]
    pub to: SocketAddr,
    /// The address of this host's that the other side sees [default: the system's choice].
    #[arg(long, value_name = "ADDRESS")]
    pub from: Option<IpAddr>,
    /// Between two addresses, for SCTP right above IP: --listen, --from and --to are addresses without ports, the first two
    /// of this host's, for the emulator alone; needs root or CAP_NET_RAW.
    #[arg(long, requires = "from", requires = "listen", requires = "to")]
    pub ip: bool,
    /// The nodes where packets enter and leave [default: the first and the last].
    #[arg(long, value_name = "NODE,NODE", value_delimiter = ',', num_args = 1)]
    pub between: Vec<String>,
    /// Count packets as SCTP right above IP, without the 8 bytes of UDP.
    #[arg(long)]
    pub bare: bool,
    /// Stop after so long [default: when interrupted].
    #[arg(long, value_name = "TIME", value_parser = super::quantity::<Span>)]
    pub time: Option<Span>,
    /// Time between two reports.
    #[arg(short, long, value_name = "TIME", default_value = "10 s", value_parser = seconds)]
    pub interval: Span,
    /// The seed that the losses come from.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
    /// Set a parameter, or a key by its path (repeatable).
    #[arg(long, value_name = "KEY=VALUE", long_help = set_help())]
    pub set: Vec<String>,
}

/// Commands on real sockets.
#[derive(Clone, Debug, Subcommand)]
pub enum WireCommand {
    /// Accept associations over real sockets, and echo, swallow or send.
    #[command(after_help = "Examples:
  anabranch serve echo                            SCTP port 5001, inside UDP port 9899
  anabranch serve sink --port 7000 --port 7001    two SCTP ports inside the one UDP port
  anabranch serve sink --port 7000 --local 192.0.2.1 --local 198.51.100.1
                                                  two homes, which peers are told
  anabranch serve sink --carrier ip               right above IP, as root
  anabranch serve sink --once --trace run         the first association's series, for `anabranch show run`

It prints a line when an association begins and when it ends. Where nobody reads, 1,024 lines wait; the rest is dropped, and
one line says how many. SIGINT or SIGTERM aborts all associations and ends it. docs/NET.md tells about carriers, ports and
settings.")]
    Serve(Box<Serve>),
    /// Measure what an association carries to a server.
    #[command(after_help = "Examples:
  anabranch perf 192.0.2.1                        ten seconds of 1 KiB messages to `anabranch serve sink`
  anabranch perf 192.0.2.1 -l 64K -n 1G --json
  anabranch perf 192.0.2.1 -P 4 -t 30             four associations, half a minute
  anabranch perf 192.0.2.1 --streams 10 --unordered --congestion westwood
  anabranch perf 192.0.2.1 -R                     the other way
  anabranch perf 192.0.2.1 --path 198.51.100.1 --local 192.0.2.9 --local 198.51.100.9
                                                  over two paths
  anabranch perf 127.0.0.1 --peer-udp-port 9900   through `anabranch emulate`

Counted is what was acknowledged, and what the server says it received. The first SIGINT or SIGTERM ends it as when time is
over, with the report; the second aborts. Columns of the sender are a dash with -R; the summary has the server's.")]
    Perf(Box<Perf>),
    /// Send standard input and print what comes, a message at a time.
    #[command(after_help = "Examples:
  echo hello | anabranch cat 127.0.0.1            to `anabranch serve echo`
  anabranch cat --listen > file                   at the one end
  anabranch cat 192.0.2.1 < file                  at the other")]
    Cat(Box<Cat>),
    /// Put a path of the simulator's between two UDP ports, in real time.
    #[command(after_help = "Examples:
  anabranch emulate geo.toml                      from 127.0.0.1:9900 to 127.0.0.1:9899
  anabranch emulate geo.toml --set rate='2 Mbit/s' --listen 0.0.0.0:9900 --to 192.0.2.1:9899
  anabranch serve sink & anabranch emulate geo.toml & anabranch perf 127.0.0.1 --peer-udp-port 9900

The file is a spec: nodes and links with rate, delay, queue, loss, down times and impairments are used, flows are not and
may be missing. Answers go back to whoever sent last. On each report, and at the end, it says by how much packets left later
than the simulator wanted: its own error.")]
    Emulate(Box<Emulate>),
}

/// Reads an address with its port, which is 0 where it is missing.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = || text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, 0));
    text.parse().ok().or_else(bare).ok_or_else(|| {
        format!(
            "found {text:?}; write an IP address and a port: 192.0.2.1:9899 or [2001:db8::1]:9899"
        )
    })
}

/// Reads a time of more than nothing; a bare number is seconds.
fn seconds(text: &str) -> Result<Span, String> {
    match seconds_or_none(text)? {
        Span(0) => Err("found 0; it must be more".to_owned()),
        span => Ok(span),
    }
}

/// Reads a time; a bare number is seconds.
fn seconds_or_none(text: &str) -> Result<Span, String> {
    let bare = text.trim().parse::<f64>().is_ok();
    let span: Span = if bare {
        format!("{} s", text.trim()).parse()?
    } else {
        text.parse()?
    };
    Ok(span)
}
