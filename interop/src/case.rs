//! One case: two peers in a network of their own.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use crate::capture::Capture;
use crate::namespace;
use crate::peer::{Peer, Setup, Stack, Transport};
use crate::programs::Programs;
use crate::relay::Relay;
use crate::workload::Plan;

/// What lies between the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Nothing.
    Clean,
    /// 2 % loss and reordering, in both directions.
    Impaired,
    /// The first of two paths goes down when a quarter of the messages has come.
    PathDown,
    /// Nothing, and few messages: what passes is captured and read by tshark.
    Captured,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Impaired => "impaired",
            Self::PathDown => "path-down",
            Self::Captured => "captured",
        })
    }
}

/// Two peers and what lies between them.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Who sends the INIT, and at last the SHUTDOWN.
    pub connecting: Stack,
    /// Who answers.
    pub accepting: Stack,
    /// What carries the packets.
    pub transport: Transport,
    /// What lies between.
    pub condition: Condition,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connecting,
            accepting,
            transport,
            condition,
        } = self;
        write!(f, "{connecting}-to-{accepting}/{transport}/{condition}")
    }
}

/// How a case went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Seconds from the connecting peer's knowing that the association is up to the end of both.
    pub seconds: f64,
    /// Bytes of messages, both directions together.
    pub bytes: u64,
    /// What else there is to say.
    pub remark: String,
}

/// Seeds of the messages: of the connecting peer and of the accepting one.
const SEEDS: [u64; 2] = [2, 1];
/// How long a case may take.
const PATIENCE: Duration = Duration::from_secs(60);

impl Case {
    fn linux(&self) -> bool {
        self.connecting == Stack::Linux || self.accepting == Stack::Linux
    }

    /// Whether the peers can have several addresses each.
    fn multihomed(&self) -> bool {
        let able = |stack| matches!(stack, Stack::Anabranch | Stack::Linux);
        self.linux() && able(self.connecting) && able(self.accepting)
    }

    /// Messages in each direction.
    pub fn messages(&self) -> u32 {
        match self.condition {
            Condition::Captured => 250,
            _ => 10_000,
        }
    }

    /// What the case cannot run without.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn needs(&self, programs: &Programs) -> Result<(), String> {
        for stack in [self.connecting, self.accepting] {
            match stack {
                Stack::Linux => drop(programs.linux()?),
                Stack::Usrsctp => drop(programs.usrsctp()?),
                Stack::Pion => drop(programs.pion()?),
                Stack::Anabranch | Stack::Dcsctp => (),
            }
        }
        Ok(())
    }

    /// Runs it.
    ///
    /// # Errors
    ///
    /// What went wrong, with the seeds.
    pub fn run(&self, programs: &Programs) -> Result<Outcome, String> {
        namespace::inside(|| self.run_here(programs))
            .map_err(|error| format!("{error} (seeds {SEEDS:?})"))
    }

    fn run_here(&self, programs: &Programs) -> Result<Outcome, String> {
        namespace::no_segmentation()?;
        let taps = if self.linux() { 2 } else { 0 };
        (0..taps).try_for_each(namespace::tap)?;
        let relay = match self.condition == Condition::Impaired && !self.linux() {
            true => Some(self.relay()?),
            false => None,
        };
        let capture = match self.condition {
            Condition::Captured => Some(self.capture(programs)?),
            // For whoever wants to see what passes.
            _ if std::env::var_os("INTEROP_CAPTURE").is_some() => Some(self.capture(programs)?),
            _ => None,
        };
        let mut outcome = self.transfer(programs, relay.as_ref())?;
        if let Some(relay) = relay {
            let (all, lost) = relay.counts();
            outcome.remark = format!("{lost} of {all} datagrams lost");
            if lost * 100 < all {
                return Err(format!("the relay did too little: {}", outcome.remark));
            }
        }
        if let Some(capture) = capture.filter(|_| self.condition == Condition::Captured) {
            let remarks = capture.judge()?;
            outcome.remark = remarks
                .iter()
                .map(|(text, count)| format!("{count} x {text}"))
                .collect::<Vec<_>>()
                .join("; ");
        }
        Ok(outcome)
    }

    #[allow(clippy::disallowed_methods)] // real peers take real time
    fn transfer(&self, programs: &Programs, relay: Option<&Relay>) -> Result<Outcome, String> {
        let until = Instant::now() + PATIENCE;
        let mut accepting = Peer::start(&self.setup(false, relay), programs)?;
        accepting.wait("ready", until)?;
        let mut connecting = Peer::start(&self.setup(true, relay), programs)?;
        connecting.wait("established", until)?;
        let begin = Instant::now();
        let outcome = self.attend(&mut connecting, &mut accepting, relay, until);
        let bytes = outcome.map_err(|error| format!("{error}\n{connecting}\n{accepting}"))?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Outcome {
            seconds,
            bytes,
            remark: String::new(),
        })
    }

    /// Waits until both have received everything, and have ended well. Returns the bytes received by both.
    fn attend(
        &self,
        connecting: &mut Peer,
        accepting: &mut Peer,
        relay: Option<&Relay>,
        until: Instant,
    ) -> Result<u64, String> {
        if self.condition == Condition::PathDown {
            connecting.wait("quarter", until)?;
            accepting.wait("quarter", until)?;
            namespace::ip(&["link", "set", "tap0", "down"])?;
            let ours = if self.connecting == Stack::Anabranch {
                &mut *connecting
            } else {
                &mut *accepting
            };
            ours.wait("event: PathDown(10.9.1.2)", until)?;
        }
        let mut bytes = 0;
        for (peer, seed) in [(&mut *connecting, SEEDS[1]), (&mut *accepting, SEEDS[0])] {
            let sum: u64 = Plan::new(seed, self.messages())
                .map(|m| u64::from(m.length))
                .sum();
            let line = peer.wait("received", until)?;
            let expected = format!("received messages={} bytes={sum}", self.messages());
            if line != expected {
                return Err(format!("{line}; expected: {expected}"));
            }
            bytes += sum;
        }
        if let Some(relay) = relay.filter(|_| !self.connecting.answers_when_closed()) {
            relay.calm();
        }
        for peer in [connecting, accepting] {
            peer.wait("sent", until)?;
            peer.wait("closed", until)?;
        }
        Ok(bytes)
    }

    /// The connecting peer at port 9899 sends to the relay's 9901; the accepting one is at 9900.
    fn relay(&self) -> Result<Relay, String> {
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Relay::start(at(9901), at(9900), SEEDS[0])
    }

    fn capture(&self, programs: &Programs) -> Result<Capture, String> {
        let name = self.to_string().replace('/', "-");
        let file = programs.directory().join(format!("{name}.pcapng"));
        let interfaces: &[&str] = if self.linux() {
            &["tap0", "tap1"]
        } else {
            &["lo"]
        };
        Capture::start(interfaces, &file)
    }

    fn setup(&self, connects: bool, relay: Option<&Relay>) -> Setup {
        let stack = if connects {
            self.connecting
        } else {
            self.accepting
        };
        let (local, remote) = self.addresses(stack);
        let ports = match (self.linux(), relay, connects) {
            (true, ..) => (9899, 9899),
            (false, None, true) => (9899, 9900),
            (false, None, false) => (9900, 9899),
            (false, Some(_), true) => (9899, 9901),
            (false, Some(relay), false) => (9900, relay.far_port()),
        };
        let hurried = matches!(self.condition, Condition::Impaired | Condition::PathDown);
        Setup {
            stack,
            connects,
            transport: self.transport,
            local,
            remote,
            local_udp: ports.0,
            remote_udp: ports.1,
            seed: SEEDS[usize::from(!connects)],
            messages: self.messages(),
            rto_min: if hurried { 100 } else { 0 },
            max_retrans: if self.condition == Condition::PathDown {
                2
            } else {
                0
            },
            flood: 0,
            // pion does not answer an INIT with a parameter that it does not know.
            bare_init: self.accepting == Stack::Pion,
            impaired: self.condition == Condition::Impaired,
        }
    }

    /// A peer's own addresses and the other's.
    fn addresses(&self, stack: Stack) -> (Vec<String>, Vec<String>) {
        if !self.linux() {
            let one = vec!["127.0.0.1".to_owned()];
            return (one.clone(), one);
        }
        let paths = if self.multihomed() { 2 } else { 1 };
        let side = |host| {
            (1..=paths)
                .map(|path| format!("10.9.{path}.{host}"))
                .collect()
        };
        match stack {
            Stack::Linux => (side(2), side(1)),
            _ => (side(1), side(2)),
        }
    }
}
