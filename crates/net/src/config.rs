//! Settings of an endpoint on real sockets.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sctp::Config as SctpConfig;

use crate::error::BindError;
use crate::runtime::Runtime;
use crate::settings::Timers;

/// The UDP port of SCTP inside UDP (RFC 6951 §5.1, "sctp-tunneling").
pub const ENCAPSULATION_PORT: u16 = 9899;

/// The most that [`Config::undecided`] may be: each keeps a packet.
const MOST_UNDECIDED: usize = 65_536;

/// How packets travel between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// Inside UDP (RFC 6951). The peer's port is learnt from what it sends, as far as verification tags prove it, and
    /// followed if it moves.
    Encapsulated {
        /// Our UDP port; 0: any.
        port: u16,
        /// The peer's UDP port, where an association begins here and the [`Peer`](crate::Peer) does not say otherwise: usually
        /// [`ENCAPSULATION_PORT`]; 0: it is not known.
        peer_port: u16,
    },
    /// SCTP packets in UDP datagrams between two fixed ports, as WebRTC stacks in tests have it. The same bytes as
    /// [`Carrier::Encapsulated`], but nothing is learnt: what comes from another UDP port is thrown away.
    Udp {
        /// Our UDP port; 0: any.
        port: u16,
        /// The peer's UDP port.
        peer_port: u16,
    },
    /// Directly over IP, as protocol 132. Needs the right to open raw sockets, and a kernel that does not answer SCTP itself:
    /// where its own SCTP is loaded it aborts what it does not know.
    Ip,
}

impl Carrier {
    /// Inside UDP from any port to the registered one: what a client wants.
    pub const fn client() -> Self {
        Self::Encapsulated {
            port: 0,
            peer_port: ENCAPSULATION_PORT,
        }
    }

    /// Inside UDP at the registered port: what a server wants.
    pub const fn server() -> Self {
        Self::Encapsulated {
            port: ENCAPSULATION_PORT,
            peer_port: ENCAPSULATION_PORT,
        }
    }

    /// Bytes between IP and SCTP.
    pub(crate) fn overhead(self) -> usize {
        match self {
            Self::Encapsulated { .. } | Self::Udp { .. } => 8,
            Self::Ip => 0,
        }
    }

    /// The UDP port to bind; 0 for any and for none.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Encapsulated { port, .. } | Self::Udp { port, .. } => port,
            Self::Ip => 0,
        }
    }

    /// The UDP port to begin with at a peer of whom perhaps `known` is known; 0 over raw IP. `None`: it is not known.
    pub(crate) fn port_of_peer(self, known: Option<u16>) -> Option<u16> {
        match self {
            Self::Encapsulated { peer_port, .. } => {
                Some(known.unwrap_or(peer_port)).filter(|&port| port != 0)
            }
            Self::Udp { peer_port, .. } => Some(peer_port),
            Self::Ip => Some(0),
        }
    }
}

/// Settings of an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The protocol: profile, congestion control, stream allocation, buffers, timers, by the names that the simulator has.
    /// `addresses`, `encapsulation` and `timer_slack` in it are set by the endpoint.
    ///
    /// Differs from the simulator's defaults in the buffers, 1 MiB each, in that packets are filled (`fill_packets`), since the
    /// system sends those of one size by one call, and in that path MTUs are found out: packets carry
    /// "don't fragment", so that a tunnel on the way would swallow those of 1,500 bytes without a word. `max_message` in it is set by the endpoint, too.
    pub sctp: SctpConfig,
    /// The SCTP port; 0: any from 49,152 on.
    pub port: u16,
    /// How packets travel.
    pub carrier: Carrier,
    /// Local addresses, a socket each; several make the endpoint multihomed, and peers are told all of them. Empty: all
    /// that the host has, of both families, as one home.
    pub addresses: Vec<IpAddr>,
    /// The interface (its index) of the link-local addresses among ours and the peers': their zone (RFC 4007). `None`: there are none, or
    /// the system finds the interface.
    pub zone: Option<u32>,
    /// The differentiated services code point of every packet sent, 0 to 63 (RFC 2474 §3); 0: best effort. On Linux; elsewhere it must be 0.
    pub dscp: u8,
    /// Whether peers may begin associations.
    pub accept: bool,
    /// Associations that wait to be accepted; peers that come beyond it are refused. At least 1.
    pub backlog: usize,
    /// The application decides which associations that peers begin are accepted: so many may wait for its decision at a time, 1 to 65,536.
    /// See [`Endpoint::incoming`](crate::Endpoint::incoming). 0, the default: the endpoint accepts all, and `backlog` bounds those that
    /// wait to be taken.
    pub undecided: usize,
    /// Associations of this endpoint at a time that peers may bring it to.
    pub max_associations: usize,
    /// The largest message that may be sent, and the largest that [`recv`](crate::Association::recv) puts together where
    /// it does not fit the receive buffer, bytes. The protocol has no limit, but each association may take so much memory
    /// beside its buffers; [`recv_part`](crate::Association::recv_part) reads longer ones.
    pub max_message_size: usize,
    /// Receive and send buffer asked of the system for each socket, bytes; what it grants may be less.
    pub socket_buffer: usize,
    /// Sends runs of equal packets by one call where the system can (GSO), and takes them so (GRO).
    pub offload: bool,
    /// How long an association that nobody holds any more may take to close, counted from the drop of its last handle: what
    /// the peer has not taken by then is lost, and the association is aborted. Whoever wants to wait longer holds it and
    /// calls [`shutdown`](crate::Association::shutdown). 60 s by default.
    pub linger: Duration,
    /// The longest that [`connect`](crate::Endpoint::connect) may take; 30 s by default.
    /// [`Duration::MAX`]: as long as the protocol repeats INIT and COOKIE ECHO
    /// (`sctp.max_init_retransmits`; some four minutes by the defaults of RFC 9260).
    pub connect_timeout: Duration,
    /// What the task of the sockets runs on. `None`, the default: the `ThreadRuntime` or the tokio runtime that
    /// [`bind`](crate::Endpoint::bind) is called on; where there is none and this crate has the feature `smol`, that. Endpoints on [`SharedSockets`](crate::SharedSockets) run where those do.
    pub runtime: Option<Arc<dyn Runtime>>,
}

impl Default for Config {
    /// A client over [`Carrier::client`], that also accepts nobody.
    fn default() -> Self {
        let sctp = SctpConfig::default().with(|it| {
            it.receive_buffer = 1 << 20;
            it.send_buffer = 1 << 20;
            it.path_mtu_discovery = true;
            it.fill_packets = true;
        });
        Self {
            sctp,
            port: 0,
            carrier: Carrier::client(),
            addresses: Vec::new(),
            zone: None,
            dscp: 0,
            accept: false,
            backlog: 128,
            undecided: 0,
            max_associations: 65_536,
            max_message_size: 1 << 20,
            socket_buffer: 4 << 20,
            offload: true,
            linger: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(30),
            runtime: None,
        }
    }
}

impl Config {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// The same with other timers of the protocol ([`Config::sctp`]), which are durations here.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use anabranch_net::Config;
    ///
    /// let config = Config::default().with_timers(|timers| {
    ///     timers.rto_min = Duration::from_millis(200);
    ///     timers.heartbeat_interval = Some(Duration::from_secs(5));
    /// });
    /// ```
    #[must_use]
    pub fn with_timers(mut self, change: impl FnOnce(&mut Timers)) -> Self {
        let mut timers = self.timers();
        change(&mut timers);
        timers.put_in(&mut self.sctp);
        self
    }

    /// The timers of the protocol.
    pub fn timers(&self) -> Timers {
        Timers::of(&self.sctp)
    }

    /// A server at SCTP port `port` over [`Carrier::server`].
    pub fn server(port: u16) -> Self {
        Self {
            port,
            carrier: Carrier::server(),
            accept: true,
            ..Self::default()
        }
    }

    /// The addresses of an endpoint; none where the system chooses.
    pub(crate) fn own_addresses(&self) -> Vec<IpAddr> {
        let all = self.addresses.iter().copied();
        all.filter(|it| !it.is_unspecified()).collect()
    }

    /// Checks what would go wrong later, for an endpoint on sockets that were checked.
    pub(crate) fn check(&self) -> Result<(), BindError> {
        let complain = |what: String| Err(BindError::Config(what));
        if self.accept && self.port == 0 && self.carrier == Carrier::Ip {
            return complain("an endpoint that accepts over raw IP needs a port".to_owned());
        }
        let sctp = self.sctp.clone();
        let sctp = sctp.with(|it| it.addresses = self.own_addresses());
        if let Err(error) = sctp.check() {
            return complain(error.to_string());
        }
        if self.undecided > MOST_UNDECIDED {
            let found = self.undecided;
            return complain(format!(
                "undecided: found {found}; allowed: 0 to {MOST_UNDECIDED}"
            ));
        }
        if self.backlog == 0 || self.max_message_size == 0 {
            return complain(
                "found 0 for backlog or max_message_size; both are at least 1".to_owned(),
            );
        }
        Ok(())
    }

    /// Checks what would go wrong with sockets later.
    pub(crate) fn check_sockets(&self) -> Result<(), BindError> {
        let complain = |what: String| Err(BindError::Config(what));
        if let Carrier::Udp { peer_port: 0, .. } = self.carrier {
            return complain("found peer_port 0; plain UDP needs the peer's fixed port".to_owned());
        }
        if self.dscp > 63 {
            return complain(format!("found dscp {}; it is 0 to 63", self.dscp));
        }
        if self.dscp != 0 && !cfg!(target_os = "linux") {
            return complain("found a dscp; only Linux sends one".to_owned());
        }
        for (index, address) in self.addresses.iter().enumerate() {
            if address.is_multicast() || self.addresses[..index].contains(address) {
                return complain(format!(
                    "found local address {address} twice, or multicast; list each unicast address once"
                ));
            }
            if address.is_unspecified() && self.addresses.len() > 1 {
                return complain(format!(
                    "found {address} among other local addresses; it stands alone"
                ));
            }
        }
        Ok(())
    }
}
