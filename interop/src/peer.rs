//! A running peer: a program that prints `ready`, `established`, `quarter` (of its messages received), `sent messages=N`,
//! `received messages=N bytes=B` and `closed`, or `error: ...`, and that stays until it is ended.

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

/// Whose stack it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// This one.
    Anabranch,
    /// The kernel's, in a User Mode Linux.
    Linux,
    /// FreeBSD's as a library.
    Usrsctp,
    /// pion/sctp, in Go.
    Pion,
    /// dcsctp, in Rust.
    Dcsctp,
}

impl Stack {
    /// Whether it can leave an address for another while an association lives.
    pub fn changes_addresses(self) -> bool {
        matches!(self, Self::Anabranch | Self::Linux)
    }

    /// Whether its program tells of addresses that the peer adds and removes.
    pub fn tells_of_addresses(self) -> bool {
        matches!(self, Self::Anabranch | Self::Linux)
    }

    /// Whether it hands over the whole messages that wait for one that is given up (RFC 3758 §3.6). One that does not drops them.
    pub fn delivers_stranded_messages(self) -> bool {
        self != Self::Usrsctp
    }

    /// Whether it answers for an association that it has shut down. One that does not leaves its peer to its timers if
    /// the last packet is lost.
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

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP encapsulation (RFC 6951).
    Encap,
    /// SCTP packets in UDP datagrams between two fixed ports.
    Plain,
    /// IP protocol 132.
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

/// How a peer is started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Whose stack.
    pub stack: Stack,
    /// Whether it sends the INIT.
    pub connects: bool,
    /// What carries the packets.
    pub transport: Transport,
    /// Its addresses.
    pub local: Vec<IpAddr>,
    /// The address that it moves to, where the peers speak of addresses.
    pub moves_to: Option<IpAddr>,
    /// Whether this stack asks for the whole move in one chunk, from the new address; else step by step.
    pub at_once: bool,
    /// The other's addresses, as this peer sees them.
    pub remote: Vec<IpAddr>,
    /// Its UDP port.
    pub local_udp: u16,
    /// The UDP port it sends to.
    pub remote_udp: u16,
    /// Of the messages it sends.
    pub seed: u64,
    /// Number of messages in each direction.
    pub messages: u32,
    /// RTO.Min in milliseconds; 0 for the stack's own.
    pub rto_min: u32,
    /// Path.Max.Retrans; 0 for the stack's own.
    pub max_retrans: u32,
    /// If not 0: nothing is checked, but messages of so many bytes are sent from the connecting peer to the other for 3
    /// seconds, and counted.
    pub flood: u32,
    /// Whether this stack sends an INIT without optional parameters.
    pub bare_init: bool,
    /// Whether this stack leaves its first address only when all that the other sends has come.
    pub leaves_late: bool,
    /// Whether this stack names the streams that it resets, which are all but one; else it resets all by naming none.
    pub names_streams: bool,
    /// Whether this stack holds its last message back until a path of its is down, or the other has left its first address or reset
    /// its streams: else the association might end before.
    pub hold: bool,
    /// Of a guest's interfaces, how many lose and reorder what passes.
    pub impaired: usize,
    /// What both peers offer.
    pub extension: Extension,
    /// Messages of the other that it may not give up, where it may any.
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
        if self.bare_init && self.stack == Stack::Anabranch {
            all.push("bare-init=1".to_owned());
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

/// A program that ends when the thread that started it does, however that ends.
fn ends_with_us(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

fn list(addresses: &[IpAddr]) -> String {
    let all: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    all.join(",")
}

/// A peer that runs until it is dropped.
#[derive(Debug)]
pub struct Peer {
    name: String,
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    scratch: PathBuf,
}

impl Peer {
    /// Starts it, in the network of this thread.
    ///
    /// # Errors
    ///
    /// Its program is missing or cannot be started.
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

    /// Starts a User Mode Linux with one interface, in the network of this thread, which runs a script with the kernel's SCTP
    /// ([`guest::script`]). When the script ends it says `ended` and its status.
    ///
    /// # Errors
    ///
    /// Something is missing or cannot be started.
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

    /// Waits for a line that begins so, and returns it. A line that has been passed over counts.
    ///
    /// # Errors
    ///
    /// The peer's own error; it ended; the time is over.
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

    /// The lines that have been waited for or passed over.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    fn waited_for(&self, begin: &str, why: &str) -> String {
        format!("{}: waited for {begin:?}: {why}", self.name)
    }
}

impl fmt::Display for Peer {
    /// Everything it has said that has been waited for or passed over.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} said:", self.name)?;
        let rest: Vec<_> = self.lines.try_iter().collect();
        let mut all = self.said.iter().chain(&rest);
        all.try_for_each(|line| write!(f, " {line};"))
    }
}

/// Time that is left until then.
#[allow(clippy::disallowed_methods)] // real peers take real time
fn left(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A User Mode Linux is many processes; all are of the peer's group.
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
        // Most peers make none.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
