//! A running peer program. It prints `ready`, `established`, `quarter` (of its messages received),
//! `sent messages=N`, `received messages=N bytes=B` and `closed`, or `error: ...`, and then runs
//! until it is stopped.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::extension::Extension;
use crate::guest;
use crate::programs::Programs;

/// SCTP stack of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// This project's stack.
    Anabranch,
    /// Linux kernel, in a User Mode Linux.
    Linux,
    /// usrsctp: the FreeBSD stack as a library.
    Usrsctp,
    /// pion/sctp, written in Go.
    Pion,
    /// dcsctp, written in Rust.
    Dcsctp,
}

impl Stack {
    /// Whether the stack can change addresses during an association (ASCONF).
    pub fn changes_addresses(self) -> bool {
        matches!(self, Self::Anabranch | Self::Linux)
    }

    /// Whether the peer program with this stack reports the addresses that the other peer adds and
    /// removes.
    pub fn tells_of_addresses(self) -> bool {
        matches!(self, Self::Anabranch | Self::Linux)
    }

    /// Whether the stack delivers complete messages that were waiting for an abandoned message (RFC
    /// 3758 §3.6). The other stacks drop these messages.
    pub fn delivers_stranded_messages(self) -> bool {
        self != Self::Usrsctp
    }

    /// Whether the stack still responds to packets of an association that it has already shut down.
    /// If it does not and the last packet is lost, the other peer must wait for its timers.
    pub fn answers_when_closed(self) -> bool {
        !matches!(self, Self::Pion | Self::Dcsctp)
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anabranch => "anabranch",
            Self::Linux => "linux",
            Self::Usrsctp => "usrsctp",
            Self::Pion => "pion",
            Self::Dcsctp => "dcsctp",
        })
    }
}

/// Encapsulation of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP encapsulation (RFC 6951).
    Encap,
    /// SCTP packets in UDP datagrams between two fixed ports.
    Plain,
    /// SCTP directly over IP, protocol 132.
    Raw,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Encap => "encap",
            Self::Plain => "plain",
            Self::Raw => "raw",
        })
    }
}

/// Parameters of a peer.
#[derive(Clone, Debug)]
pub struct Setup {
    /// SCTP stack of the peer.
    pub stack: Stack,
    /// Whether this peer sends the INIT.
    pub connects: bool,
    /// Encapsulation of the packets.
    pub transport: Transport,
    /// IP addresses of the peer.
    pub local: Vec<IpAddr>,
    /// Address to which this peer changes, in cases with ASCONF; `None`: it keeps its address.
    pub moves_to: Option<IpAddr>,
    /// Whether this stack requests the whole address change in one chunk sent from the new address;
    /// if false, it sends one request after the other.
    pub at_once: bool,
    /// Destination addresses that this peer uses for the other peer.
    pub remote: Vec<IpAddr>,
    /// UDP port of this peer.
    pub local_udp: u16,
    /// UDP port to which this peer sends.
    pub remote_udp: u16,
    /// Seed of the messages that this peer sends.
    pub seed: u64,
    /// Number of messages in each direction.
    pub messages: u32,
    /// RTO.Min in milliseconds; 0 for the default of the stack.
    pub rto_min: u32,
    /// Path.Max.Retrans; 0 for the default of the stack.
    pub max_retrans: u32,
    /// If not 0, the peer measures throughput and checks no messages: the connecting peer sends
    /// messages of this size in bytes for 3 seconds, and the accepting peer counts them.
    pub flood: u32,
    /// Whether this stack sends an INIT without optional parameters.
    pub minimal_init: bool,
    /// Whether this stack should keep its first address until all data of the other peer has
    /// arrived.
    pub leaves_late: bool,
    /// Whether this stack names the streams to reset, which are all except stream 0; if false, it
    /// names none, which requests a reset of all streams.
    pub names_streams: bool,
    /// Whether this stack should withhold its last message until a path is down, or the other peer
    /// has removed its first address or reset its streams. Without this, the association might end
    /// before the event.
    pub hold: bool,
    /// Number of interfaces of the guest that lose and reorder packets.
    pub impaired: usize,
    /// SCTP extension offered by both peers.
    pub extension: Extension,
    /// Number of the other peer's messages that must arrive, in cases with partial reliability.
    pub expects: u32,
}

impl Setup {
    fn arguments(&self) -> Vec<String> {
        let mut all = vec![
            if self.connects { "connect" } else { "accept" }.to_owned(),
            format!("transport={}", self.transport),
            format!("local={}", list(&self.local)),
            format!("remote={}", list(&self.remote)),
            format!("local-udp={}", self.local_udp),
            format!("remote-udp={}", self.remote_udp),
            format!("messages={}", self.messages),
            format!("seed={}", self.seed),
        ];
        if self.rto_min > 0 {
            all.push(format!("rto-min={}", self.rto_min));
        }
        if self.max_retrans > 0 {
            all.push(format!("max-retrans={}", self.max_retrans));
        }
        if self.flood > 0 {
            all.push(format!("size={}", self.flood));
        }
        if self.extension != Extension::None {
            all.push(format!("speaks={}", self.extension));
            all.push(format!("expects={}", self.expects));
        }
        if let Some(address) = self.moves_to {
            all.push(format!("moves-to={address}"));
        }
        if self.at_once && self.stack == Stack::Anabranch {
            all.push("at-once=1".to_owned());
        }
        if self.leaves_late && self.stack == Stack::Anabranch {
            all.push("leaves-late=1".to_owned());
        }
        if self.names_streams && self.stack == Stack::Anabranch {
            all.push("names-streams=1".to_owned());
        }
        if self.minimal_init && self.stack == Stack::Anabranch {
            all.push("minimal-init=1".to_owned());
        }
        if self.hold && self.stack == Stack::Anabranch {
            all.push("hold=1".to_owned());
        }
        all
    }

    fn command(&self, programs: &Programs, scratch: &Path) -> Result<Command, String> {
        let with = ends_with_us;
        let mut command = match self.stack {
            Stack::Anabranch => with(&programs.anabranch),
            Stack::Dcsctp => with(&programs.dcsctp),
            Stack::Usrsctp => with(programs.usrsctp()?),
            Stack::Pion => with(programs.pion()?),
            Stack::Linux => {
                let linux = programs.linux()?;
                let mut command = with(&linux.kernel);
                let interfaces = self.local.len() + usize::from(self.moves_to.is_some());
                guest::prepare(&mut command, linux, interfaces, self.impaired, scratch);
                command
            }
        };
        command.args(self.arguments());
        Ok(command)
    }
}

/// Returns a command whose process is terminated when the thread that started it ends for any
/// reason.
fn ends_with_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

fn list(addresses: &[IpAddr]) -> String {
    let all: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    all.join(",")
}

/// A running peer, which is stopped when it is dropped.
#[derive(Debug)]
pub struct Peer {
    name: String,
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    scratch: PathBuf,
}

impl Peer {
    /// Starts a peer in the network namespace of this thread.
    ///
    /// # Errors
    ///
    /// The program of the peer is missing or cannot be started.
    pub fn start(setup: &Setup, programs: &Programs) -> Result<Self, String> {
        let scratch = programs.new_scratch();
        let command = setup.command(programs, &scratch)?;
        let side = if setup.connects {
            "connecting"
        } else {
            "accepting"
        };
        Self::run(format!("{} ({side})", setup.stack), command, scratch)
    }

    /// Starts a User Mode Linux with one interface in the network namespace of this thread. The
    /// guest runs a script with kernel SCTP ([`guest::script`]), and at its end prints `ended` and
    /// the exit status.
    ///
    /// # Errors
    ///
    /// A requirement is missing, or the guest cannot be started.
    pub fn script(
        script: &Path,
        local: IpAddr,
        udp: Option<[u16; 2]>,
        programs: &Programs,
    ) -> Result<Self, String> {
        let scratch = programs.new_scratch();
        let linux = programs.linux()?;
        let mut command = ends_with_us(&linux.kernel);
        guest::prepare(&mut command, linux, 1, 0, &scratch);
        guest::script(&mut command, script, local, udp);
        Self::run("a script in the guest".to_owned(), command, scratch)
    }

    fn run(name: String, mut command: Command, scratch: PathBuf) -> Result<Self, String> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let out = child.stdout.take().ok_or("no standard output")?;
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self {
            name,
            child,
            lines,
            said: Vec::new(),
            scratch,
        })
    }

    /// Waits for a line that begins with `begin`, and returns it. Lines already read are searched
    /// first.
    ///
    /// # Errors
    ///
    /// The peer reports an error or ends, or the wait times out.
    pub fn wait(&mut self, begin: &str, until: Instant) -> Result<String, String> {
        if let Some(line) = self.said.iter().find(|line| line.starts_with(begin)) {
            return Ok(line.clone());
        }
        loop {
            match self.lines.recv_timeout(left(until)) {
                Ok(line) => {
                    let wanted = line.starts_with(begin);
                    let error = line.starts_with("error: ");
                    self.said.push(line.clone());
                    if error {
                        return Err(format!("{}: {line}", self.name));
                    }
                    if wanted {
                        return Ok(line);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(self.waited_for(begin, "the time is over"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.waited_for(begin, "it ended"));
                }
            }
        }
    }

    /// The lines that the peer has printed so far.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    fn waited_for(&self, begin: &str, why: &str) -> String {
        format!("{}: waited for {begin:?}: {why}", self.name)
    }
}

impl fmt::Display for Peer {
    /// Formats the lines that the peer has printed so far.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} said:", self.name)?;
        let rest: Vec<_> = self.lines.try_iter().collect();
        let mut all = self.said.iter().chain(&rest);
        all.try_for_each(|line| write!(f, " {line};"))
    }
}

/// Remaining time until the deadline `until`.
#[allow(clippy::disallowed_methods)] // real peers take real time
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A User Mode Linux consists of many processes, which are all in the process group of the
        // peer.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
        // The directory exists only if the peer has created it; most peers do not.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
