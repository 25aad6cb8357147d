//! Configuration of an endpoint on real sockets.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anabranch_sctp::{Config as SctpConfig, ZeroChecksum};

use crate::error::BindError;
use crate::resume::ResumeCache;
use crate::runtime::Runtime;
use crate::settings::Timers;

/// The registered UDP port of SCTP over UDP (RFC 6951 §5.1, "sctp-tunneling").
pub const ENCAPSULATION_PORT: u16 = 9899;

/// Maximum of [`Config::undecided`], because each undecided peer buffers a packet.
const MAX_UNDECIDED: usize = 65_536;

/// Encapsulation of SCTP packets between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Carrier {
    /// Inside UDP (RFC 6951). The peer's UDP port is taken from its packets after their
    /// verification tags were checked, and updated if it changes.
    Encapsulated {
        /// Local UDP port; 0 selects a free port.
        port: u16,
        /// The peer's UDP port, used for associations that this endpoint starts, unless
        /// [`Peer`](crate::Peer) has one. Usually [`ENCAPSULATION_PORT`]; 0: unknown.
        peer_port: u16,
    },
    /// SCTP packets in UDP datagrams between two fixed ports, as in tests of WebRTC stacks. The
    /// encapsulation is the same as that of [`Carrier::Encapsulated`], but packets from other UDP
    /// ports are dropped.
    Udp {
        /// Local UDP port; 0 selects a free port.
        port: u16,
        /// The peer's UDP port.
        peer_port: u16,
    },
    /// Directly over IP, as protocol 132. Requires the right to open raw sockets, and a kernel
    /// without its own SCTP: the kernel's SCTP aborts associations that it does not know.
    Ip,
}

impl Carrier {
    /// UDP encapsulation from any free port to port 9899 of the peer: for clients.
    pub const fn client() -> Self {
        Self::Encapsulated {
            port: 0,
            peer_port: ENCAPSULATION_PORT,
        }
    }

    /// UDP encapsulation at port 9899: for servers.
    pub const fn server() -> Self {
        Self::Encapsulated {
            port: ENCAPSULATION_PORT,
            peer_port: ENCAPSULATION_PORT,
        }
    }

    /// Size of the headers between IP and SCTP, bytes.
    pub(crate) fn overhead(self) -> usize {
        match self {
            Self::Encapsulated { .. } | Self::Udp { .. } => 8,
            Self::Ip => 0,
        }
    }

    /// The local UDP port to bind; 0 if any port will do, and for raw IP.
    pub(crate) fn port(self) -> u16 {
        match self {
            Self::Encapsulated { port, .. } | Self::Udp { port, .. } => port,
            Self::Ip => 0,
        }
    }

    /// The initial UDP port of a peer: `known`, or else the carrier's `peer_port`; 0 over raw IP.
    /// `None`: unknown.
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
    /// The protocol: profile, congestion control, stream allocation, buffers and timers, with the
    /// same names as in the simulator. `addresses`, `encapsulation`, `timer_slack` and
    /// `max_message` are set by the endpoint.
    ///
    /// Differs from the simulator's defaults in three ways: buffers have 1 MiB each; packets are
    /// filled completely (`pack_messages`), because one system call can send many packets of equal
    /// size; and path MTU discovery is on, because packets carry "don't fragment", so that a tunnel
    /// on the path would silently drop packets of 1,500 bytes.
    pub sctp: SctpConfig,
    /// The SCTP port; 0 selects a free port from 49,152 on.
    pub port: u16,
    /// Encapsulation of packets.
    pub carrier: Carrier,
    /// Local addresses, each with its own socket. An endpoint with several addresses is multihomed,
    /// and lists all of them to its peers. Empty: the endpoint uses all addresses of the host,
    /// through one socket for IPv4 and one for IPv6. It then lists no addresses to its peers, and
    /// is not multihomed.
    pub addresses: Vec<IpAddr>,
    /// The interface index (zone, RFC 4007) of link-local addresses of this host and of the peers.
    /// `None`: no link-local addresses are used, or the system selects the interface.
    pub zone: Option<u32>,
    /// The differentiated services code point of every packet sent, 0 to 63 (RFC 2474 §3); 0: best
    /// effort. Supported on Linux; on other systems it must be 0.
    pub dscp: u8,
    /// True if peers may start associations.
    pub accept: bool,
    /// Maximum number of established associations that wait for
    /// [`accept`](crate::Endpoint::accept), at least 1. Further peers are refused.
    pub backlog: usize,
    /// Maximum number of peers that wait until the application accepts or refuses them, 1 to
    /// 65,536. See [`Endpoint::incoming`](crate::Endpoint::incoming). 0, the default: the endpoint
    /// accepts all peers, and `backlog` limits the associations that wait to be accepted.
    pub undecided: usize,
    /// Maximum number of simultaneous associations that peers may start.
    pub max_associations: usize,
    /// Maximum size of a message that may be sent, bytes; also the maximum size that
    /// [`recv`](crate::Association::recv) assembles if the message does not fit the receive buffer.
    /// The protocol has no limit, but each association may use that much memory in addition to its
    /// buffers. [`recv_part`](crate::Association::recv_part) reads longer messages.
    pub max_message_size: usize,
    /// Receive buffer and send buffer that each socket requests from the system, bytes; the system
    /// may grant less.
    pub socket_buffer: usize,
    /// Sends and receives runs of packets of equal size by one system call (GSO, GRO), if the
    /// system supports it.
    pub offload: bool,
    /// Time limit for closing an association without handles, counted from the drop of its last
    /// handle. When the limit expires, the association is aborted, and messages that the peer has
    /// not acknowledged are lost. To wait longer, keep a handle and call
    /// [`shutdown`](crate::Association::shutdown). 60 s by default.
    pub linger: Duration,
    /// Time limit of [`connect`](crate::Endpoint::connect); 30 s by default. [`Duration::MAX`]: the
    /// attempt lasts until the protocol stops retransmitting INIT and COOKIE ECHO
    /// (`sctp.max_init_retransmits`; some four minutes by the defaults of RFC 9260).
    pub connect_timeout: Duration,
    /// Cache of saved congestion control parameters, from which associations start on a path
    /// (Careful Resume, RFC 9959). With a cache, the endpoint sets `sctp.careful_resume` to its
    /// default parameters if that setting is `None`. Without a cache, the default, associations
    /// start with the initial window.
    pub resume_cache: Option<ResumeCache>,
    /// The runtime of the task that drives the sockets. `None`, the default: the `ThreadRuntime` or
    /// the tokio runtime that [`bind`](crate::Endpoint::bind) is called on; outside of both, smol
    /// if the feature `smol` is enabled. Endpoints on [`SharedSockets`](crate::SharedSockets) run
    /// on the runtime of the shared sockets.
    pub runtime: Option<Arc<dyn Runtime>>,
}

impl Default for Config {
    /// A client over [`Carrier::client`] that accepts no associations.
    fn default() -> Self {
        let sctp = SctpConfig::default().with(|it| {
            it.receive_buffer = 1 << 20;
            it.send_buffer = 1 << 20;
            it.path_mtu_discovery = true;
            it.pack_messages = true;
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
            resume_cache: None,
            runtime: None,
        }
    }
}

impl Config {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns a copy whose protocol timers ([`Config::sctp`]) are modified by `change`, as
    /// durations.
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

    /// The timers of the protocol as durations.
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

    /// The local addresses to list to peers; empty if the system selects them.
    pub(crate) fn own_addresses(&self) -> Vec<IpAddr> {
        let all = self.addresses.iter().copied();
        all.filter(|it| !it.is_unspecified()).collect()
    }

    /// Checks the settings of an endpoint whose sockets were checked before.
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
        check_effects(&self.sctp, self.resume_cache.is_some())?;
        if self.undecided > MAX_UNDECIDED {
            let found = self.undecided;
            return complain(format!(
                "undecided: found {found}; allowed: 0 to {MAX_UNDECIDED}"
            ));
        }
        if self.backlog == 0 || self.max_message_size == 0 {
            return complain(
                "found 0 for backlog or max_message_size; both are at least 1".to_owned(),
            );
        }
        Ok(())
    }

    /// Checks the settings of the sockets.
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

/// Refuses settings of SCTP that have no effect in an endpoint. `resumes`: whether the endpoint has
/// a cache ([`Config::resume_cache`]).
pub(crate) fn check_effects(sctp: &SctpConfig, resumes: bool) -> Result<(), BindError> {
    let complain = |what: &str| Err(BindError::Config(what.to_owned()));
    if sctp.zero_checksum != ZeroChecksum::Off {
        return complain(
            "zero_checksum: found \"dtls\"; allowed: \"off\": nothing below SCTP finds damaged packets here",
        );
    }
    if sctp.careful_resume.is_some() && !resumes {
        return complain("found careful_resume without resume_cache; set both");
    }
    Ok(())
}
