//! One test case: two peers in an isolated network namespace.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_emulate::Carrier;

use crate::capture::{Capture, Sender};
use crate::extension::Extension;
use crate::namespace::{self, Family};
use crate::peer::{Peer, Setup, Stack, Transport};
use crate::programs::Programs;
use crate::relay::{Relay, RelayAddresses};
use crate::workload::Plan;

/// Condition of the network between the peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No impairment.
    Clean,
    /// 2 % loss and reordering in both directions, produced by the emulator of this project.
    Impaired,
    /// Loss and reordering by Linux's netem in the guest. The first of two paths is impaired; if
    /// the peers change addresses, both paths are impaired.
    Netem,
    /// The first of two paths fails when a quarter of the messages has arrived.
    PathDown,
    /// No impairment and few messages; the packets are captured and analysed by tshark.
    Captured,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "clean",
            Self::Impaired => "impaired",
            Self::Netem => "netem",
            Self::PathDown => "path-down",
            Self::Captured => "captured",
        })
    }
}

/// Two peers, and the encapsulation, network and extension with which they are tested.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Stack of the connecting peer, which sends the INIT.
    pub connecting: Stack,
    /// Stack of the accepting peer, which answers the INIT.
    pub accepting: Stack,
    /// Encapsulation of the SCTP packets.
    pub transport: Transport,
    /// IP version of all addresses.
    pub family: Family,
    /// Condition of the network between the peers.
    pub condition: Condition,
    /// SCTP extension that both peers offer.
    pub extension: Extension,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connecting,
            accepting,
            transport,
            family,
            condition,
            extension,
        } = self;
        write!(
            f,
            "{connecting}-to-{accepting}/{transport}{family}/{condition}"
        )?;
        match extension {
            Extension::None => Ok(()),
            extension => write!(f, "/{extension}"),
        }
    }
}

/// Result of a successful case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Seconds from the establishment of the association at the connecting peer until both peers
    /// have closed it.
    pub seconds: f64,
    /// Bytes of messages received by both peers together.
    pub bytes: u64,
    /// Additional information, for example the number of lost datagrams; may be empty.
    pub remark: String,
}

/// Message seeds of the connecting and the accepting peer.
const SEEDS: [u64; 2] = [2, 1];
/// Timeout of a case, long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// UDP ports of the connecting peer, the accepting peer, and the relay.
const PORTS: [u16; 3] = [9899, 9900, 9901];

impl Case {
    fn linux(&self) -> bool {
        self.connecting == Stack::Linux || self.accepting == Stack::Linux
    }

    /// Whether the peers have several addresses each. The relay supports only one address per peer.
    fn multihomed(&self) -> bool {
        let able = |stack| matches!(stack, Stack::Anabranch | Stack::Linux);
        let shown = self.condition != Condition::Impaired;
        let plain = self.extension == Extension::None;
        self.linux() && plain && shown && able(self.connecting) && able(self.accepting)
    }

    /// Number of messages in each direction.
    pub fn messages(&self) -> u32 {
        match (self.condition, self.family) {
            (Condition::Captured, _) => 250,
            (..) if self.extension != Extension::None => 2_500,
            // Fewer messages suffice for IPv6, because only the IP version differs from the IPv4
            // cases. The first 402 messages already have all lengths close to the packet size.
            (_, Family::V6) => 2_500,
            (_, Family::V4) => 10_000,
        }
    }

    /// Checks that the programs of both peers are available.
    ///
    /// # Errors
    ///
    /// Description of the missing requirement.
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

    /// Runs the case.
    ///
    /// # Errors
    ///
    /// Description of the failure, with the seeds of the messages.
    pub fn run(&self, programs: &Programs) -> Result<Outcome, String> {
        namespace::inside(|| self.run_here(programs))
            .map_err(|error| format!("{error} (seeds {SEEDS:?})"))
    }

    fn run_here(&self, programs: &Programs) -> Result<Outcome, String> {
        namespace::no_segmentation()?;
        let taps = if self.linux() { 2 } else { 0 };
        (0..taps).try_for_each(|number| namespace::tap(number, self.family))?;
        if self.apart() && !self.linux() {
            namespace::more_loopback(self.family)?;
        }
        let relay = match self.condition == Condition::Impaired {
            true => Some(self.relay()?),
            false => None,
        };
        let capture = match self.condition {
            Condition::Captured => Some(self.capture(programs)?),
            // With this environment variable, a developer can inspect the packets of any case.
            _ if std::env::var_os("INTEROP_CAPTURE").is_some() => Some(self.capture(programs)?),
            _ => None,
        };
        let mut outcome = self.transfer(programs, relay.as_ref())?;
        if let Some(relay) = relay {
            let (all, lost) = relay.counts();
            let remark = format!("{lost} of {all} datagrams lost");
            if lost * 100 < all {
                return Err(format!("the relay did too little: {remark}"));
            }
            outcome.remark = match outcome.remark.as_str() {
                "" => remark,
                more => format!("{remark}; {more}"),
            };
        }
        if let Some(capture) = capture.filter(|_| self.condition == Condition::Captured) {
            let remarks = capture.judge(&self.ours())?;
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
        let until = Instant::now() + TIMEOUT;
        let mut accepting = Peer::start(&self.setup(false, relay), programs)?;
        accepting.wait("ready", until)?;
        let mut connecting = Peer::start(&self.setup(true, relay), programs)?;
        connecting.wait("established", until)?;
        let begin = Instant::now();
        let outcome = self.attend(&mut connecting, &mut accepting, until);
        let (bytes, remark) =
            outcome.map_err(|error| format!("{error}\n{connecting}\n{accepting}"))?;
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Outcome {
            seconds,
            bytes,
            remark,
        })
    }

    /// Waits until both peers have received all messages and closed the association gracefully.
    /// Returns the number of bytes received by both, and additional information.
    fn attend(
        &self,
        connecting: &mut Peer,
        accepting: &mut Peer,
        until: Instant,
    ) -> Result<(u64, String), String> {
        if self.extension != Extension::None {
            let spoken = format!("speaks {}", self.extension);
            for (peer, stack) in [
                (&mut *connecting, self.connecting),
                (&mut *accepting, self.accepting),
            ] {
                if stack == Stack::Anabranch {
                    peer.wait(&spoken, until)?;
                }
            }
        }
        if self.extension == Extension::Partial {
            return self.attend_partial(connecting, accepting, until);
        }
        if self.extension == Extension::Addresses {
            self.attend_moves(connecting, accepting, until)?;
        }
        if self.condition == Condition::PathDown {
            connecting.wait("quarter", until)?;
            accepting.wait("quarter", until)?;
            namespace::ip(&["link", "set", "tap0", "down"])?;
            let ours = if self.connecting == Stack::Anabranch {
                &mut *connecting
            } else {
                &mut *accepting
            };
            // The sender withholds its last message until it has noticed the path failure, so the
            // transfer cannot complete earlier.
            let first = namespace::address(self.family, 0, namespace::GUEST);
            let failed =
                format!("event: PathChanged {{ path: PathId(0), address: {first}, state: Inactive");
            ours.wait(&failed, until)?;
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
        for (peer, stack) in [(connecting, self.connecting), (accepting, self.accepting)] {
            peer.wait("sent", until)?;
            peer.wait("closed", until)?;
            if self.extension == Extension::Resets && stack == Stack::Anabranch {
                peer.wait("reset outgoing", until)?;
                peer.wait("reset incoming", until)?;
            }
        }
        Ok((bytes, String::new()))
    }

    /// Checks that this stack has changed its address, and that each peer has noticed the change of
    /// the other, if its program reports such changes.
    fn attend_moves(
        &self,
        connecting: &mut Peer,
        accepting: &mut Peer,
        until: Instant,
    ) -> Result<(), String> {
        for (peer, connects) in [(connecting, true), (accepting, false)] {
            let (stack, _) = self.stacks(connects);
            let setup = self.setup(connects, None);
            let other = self.setup(!connects, None);
            if stack == Stack::Anabranch && setup.moves_to.is_some() {
                peer.wait("moved", until)?;
            }
            if let Some(address) = other.moves_to.filter(|_| stack.tells_of_addresses()) {
                peer.wait(&format!("peer address added: {address}"), until)?;
                for address in other.local {
                    peer.wait(&format!("peer address removed: {address}"), until)?;
                }
            }
        }
        Ok(())
    }

    /// Checks a transfer with partial reliability. All reliable messages must arrive. Each
    /// expendable message must arrive or be reported as abandoned, provided that the sender reports
    /// this and the receiver drops no complete messages. With packet loss, some messages must be
    /// abandoned.
    fn attend_partial(
        &self,
        connecting: &mut Peer,
        accepting: &mut Peer,
        until: Instant,
    ) -> Result<(u64, String), String> {
        for peer in [&mut *connecting, &mut *accepting] {
            peer.wait("sent", until)?;
            peer.wait("closed", until)?;
        }
        let number = |line: &str, key: &str| {
            let value = line.split_whitespace().find_map(|it| it.strip_prefix(key));
            let value = value.and_then(|it| it.strip_prefix('='));
            let value = value.and_then(|it| it.parse::<u64>().ok());
            value.ok_or_else(|| format!("{line}: no {key}"))
        };
        let (mut bytes, mut remarks) = (0, Vec::new());
        for connects in [true, false] {
            let (sender, receiver) = match connects {
                true => (&mut *connecting, &mut *accepting),
                false => (&mut *accepting, &mut *connecting),
            };
            let (stack, receives) = self.stacks(connects);
            let seed = SEEDS[usize::from(!connects)];
            let all = u64::from(self.messages());
            let reliable = u64::from(self.reliable(seed));
            let line = receiver.wait("received", until)?;
            let came = number(&line, "messages")?;
            if number(&line, "reliable")? != reliable {
                return Err(format!("{line}; {reliable} are reliable"));
            }
            bytes += number(&line, "bytes")?;
            let mut remark = format!("{came} of {all} came");
            if stack == Stack::Anabranch {
                let told = number(&sender.wait("abandoned", until)?, "messages")?;
                if came + told < all && receives.delivers_stranded_messages() {
                    return Err(format!("{came} came and {told} were given up, of {all}"));
                }
                remark.push_str(&format!(", {told} given up"));
            }
            if self.condition == Condition::Impaired && came == all {
                return Err("nothing was given up at 2 % loss".into());
            }
            remarks.push(remark);
        }
        Ok((bytes, remarks.join(" and ")))
    }

    /// Number of messages of this seed that are never abandoned.
    fn reliable(&self, seed: u64) -> u32 {
        let plan = Plan::new(seed, self.messages());
        plan.filter(|it| !it.is_expendable()).count() as u32
    }

    fn relay(&self) -> Result<Relay, String> {
        let [_, accepting, listen] = PORTS;
        let [near, far] = self.relay_addresses();
        let to = self.place(false);
        let place = RelayAddresses {
            carrier: match self.transport {
                Transport::Raw => Carrier::Ip,
                Transport::Encap | Transport::Plain => Carrier::Udp,
            },
            listen: SocketAddr::new(near, listen),
            from: far,
            to: SocketAddr::new(to, accepting),
            spares_the_last: !self.connecting.answers_when_closed(),
        };
        Relay::start(place, SEEDS[0])
    }

    /// Whether peers are distinguished by their IP addresses: packets have no UDP ports, or one
    /// peer is a guest.
    fn apart(&self) -> bool {
        self.linux() || self.transport == Transport::Raw
    }

    /// The relay's addresses: the first is used by the connecting peer, the second by the accepting
    /// peer.
    fn relay_addresses(&self) -> [IpAddr; 2] {
        match self.apart() {
            true => namespace::RELAY.map(|host| namespace::address(self.family, 0, host)),
            false => [self.family.loopback(); 2],
        }
    }

    /// First address of a peer.
    fn place(&self, connects: bool) -> IpAddr {
        match self.apart() {
            true => namespace::address(self.family, 0, self.host(connects)),
            false => self.family.loopback(),
        }
    }

    /// Host part of a peer's addresses, if peers are distinguished by addresses.
    fn host(&self, connects: bool) -> u8 {
        let (own, other) = self.stacks(connects);
        let guest = own == Stack::Linux || (other != Stack::Linux && !connects);
        if guest {
            namespace::GUEST
        } else {
            namespace::HOST
        }
    }

    /// The stack of one peer, and the stack of the other peer.
    fn stacks(&self, connects: bool) -> (Stack, Stack) {
        match connects {
            true => (self.connecting, self.accepting),
            false => (self.accepting, self.connecting),
        }
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

    /// The peers that run this stack, as senders in a capture.
    fn ours(&self) -> Vec<Sender> {
        let ours = |&connects: &bool| self.stacks(connects).0 == Stack::Anabranch;
        let sides = [true, false].into_iter().filter(ours);
        let sender = |connects| {
            let setup = self.setup(connects, None);
            Sender {
                addresses: setup.local,
                udp_port: (!self.apart()).then_some(setup.local_udp),
            }
        };
        sides.map(sender).collect()
    }

    fn setup(&self, connects: bool, relay: Option<&Relay>) -> Setup {
        let (stack, other) = self.stacks(connects);
        let (local, remote) = self.addresses(connects);
        let [connecting, accepting, listen] = PORTS;
        let ports = match (relay, connects) {
            (None, true) => (connecting, accepting),
            (None, false) => (accepting, connecting),
            (Some(_), true) => (connecting, listen),
            (Some(relay), false) => (accepting, relay.far_port()),
        };
        let hurried = !matches!(self.condition, Condition::Clean | Condition::Captured);
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
            // pion does not answer an INIT that contains an unknown parameter.
            minimal_init: self.accepting == Stack::Pion,
            // pion interprets a reset request without stream numbers as a reset of no stream; RFC
            // 6525 defines it as a reset of all streams.
            names_streams: other == Stack::Pion,
            hold: match self.extension {
                Extension::Addresses => other.changes_addresses(),
                Extension::Resets => true,
                _ => self.condition == Condition::PathDown,
            },
            impaired: match (self.condition, self.extension) {
                (Condition::Netem, Extension::Addresses) => 2,
                (Condition::Netem, _) => 1,
                _ => 0,
            },
            moves_to: self.moves_to(connects),
            // The whole change in one chunk is sent from the new address. Of the other stacks, only
            // Linux finds the association of a packet from an unknown address.
            at_once: connects && self.linux(),
            // Linux may wait forever for the acknowledgement of data in flight to an address that
            // is removed.
            leaves_late: self.condition == Condition::Netem,
            extension: self.extension,
            expects: self.reliable(SEEDS[usize::from(connects)]),
        }
    }

    /// New address of a peer that changes its address.
    fn moves_to(&self, connects: bool) -> Option<IpAddr> {
        let (stack, _) = self.stacks(connects);
        let moves = self.extension == Extension::Addresses && stack.changes_addresses();
        let host = self.host(connects);
        moves.then(|| match self.apart() {
            true => namespace::address(self.family, 1, host),
            // All addresses of 127.0.0.0/8 exist on the loopback interface.
            false => Ipv4Addr::new(127, 0, 0, 1 + host).into(),
        })
    }

    /// Addresses of a peer, and the destination addresses that it uses for the other peer.
    fn addresses(&self, connects: bool) -> (Vec<IpAddr>, Vec<IpAddr>) {
        if self.condition == Condition::Impaired {
            let seen = self.relay_addresses()[usize::from(!connects)];
            return (vec![self.place(connects)], vec![seen]);
        }
        if !self.multihomed() {
            return (vec![self.place(connects)], vec![self.place(!connects)]);
        }
        let side = |connects| {
            let host = self.host(connects);
            let path = |number| namespace::address(self.family, number, host);
            (0..2).map(path).collect()
        };
        (side(connects), side(!connects))
    }
}
