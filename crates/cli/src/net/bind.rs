//! Binding of a command's endpoints with its options.

use std::sync::Arc;

use anabranch_engine::arguments::{Sctp, sctp as read_sctp};
#[cfg(feature = "tls")]
use anabranch_net::rfc6083::Rfc6083Settings;
use anabranch_net::sctp::Authentication;
use anabranch_net::{
    BindError, BindOptions, Carrier, Config, ENCAPSULATION_PORT, Endpoint, SharedSockets,
};
use anabranch_scenario::quantity::Size;

use super::address::{ScopedAddr, zone};
use super::address_schedule::AddressSchedule;
use super::arguments::{CarrierKind, NetOptions, Pmtu};
use super::capture::{Recording, RecordingObserver};
use super::certificates::SecuritySettings;
use super::worker_threads::WorkerThreads;
use super::{MAX_MESSAGE, auth_keys};
#[cfg(not(feature = "tls"))]
use crate::absent::rfc6083::Rfc6083Settings;
use crate::failure::Failure;

/// Default size of the receive and send buffer, bytes.
const BUFFER: u32 = 4 << 20;

/// SCTP ports of the endpoints of a command.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ports<'a> {
    /// The first of consecutive ports, or `None` for random ports, and the number of ports. These
    /// endpoints accept no associations.
    Own(Option<u16>, usize),
    /// These ports, which accept associations.
    Served(&'a [u16]),
    /// Like [`Ports::Served`], and each association has as many outbound streams as the peer
    /// requests.
    Echoed(&'a [u16]),
}

/// Bound endpoints, and the settings with which they were bound. Endpoints of one thread share
/// sockets; each thread has separate sockets.
pub(super) struct Bound {
    /// Endpoints of the first thread, one per port, followed by those of the next threads.
    pub(super) endpoints: Vec<Endpoint>,
    /// Number of ports.
    pub(super) ports: usize,
    /// The ports on the command line; 0: random.
    numbers: Vec<u16>,
    pub(super) workers: WorkerThreads,
    pub(super) sctp: Sctp,
    pub(super) watched: Recording,
    pub(super) moves: AddressSchedule,
    /// Settings of RFC 6083, if it is used.
    pub(super) secure: Option<Arc<Rfc6083Settings>>,
    /// The sockets and settings with which the endpoints were bound.
    sockets: Vec<SharedSockets>,
    config: Config,
    watch: Option<RecordingObserver>,
}

impl Bound {
    /// Returns true if the port of the endpoint `number` was chosen at random.
    pub(super) fn is_drawn(&self, number: usize) -> bool {
        self.numbers[number % self.ports] == 0
    }

    /// Binds an endpoint to another random port. It replaces the endpoint `number`, which has
    /// ended.
    pub(super) fn draw_again(&mut self, number: usize) -> Result<(), Failure> {
        let sockets = &self.sockets[number / self.ports];
        let another = bind_at(sockets, &self.config, 0, self.watch.as_ref(), number);
        self.endpoints[number] = another.map_err(unbound)?;
        Ok(())
    }

    /// Addresses and ports of the endpoints, as text.
    pub(super) fn place(&self) -> String {
        let ports = self.endpoints.iter().take(self.ports);
        let ports: Vec<String> = ports.map(|it| it.port().to_string()).collect();
        let word = if ports.len() > 1 { "ports" } else { "port" };
        let first = &self.endpoints[0];
        let carrier = match first.udp_port() {
            0 => "directly over IP".to_owned(),
            port => format!("inside UDP port {port}"),
        };
        let addresses = first.local_addresses().iter();
        let addresses: Vec<String> = addresses.map(|address| address.ip().to_string()).collect();
        let (ports, addresses) = (ports.join(", "), addresses.join(", "));
        let threads = match self.workers.len() {
            1 => String::new(),
            several => format!(", on {several} threads"),
        };
        format!("SCTP {word} {ports}, {carrier}, at {addresses}{threads}")
    }

    /// Addresses and ports of the endpoints, as JSON; `udp_port` is `null` over raw IP.
    pub(super) fn place_json(&self) -> serde_json::Value {
        let first = &self.endpoints[0];
        let ports = self.endpoints.iter().take(self.ports);
        let ports: Vec<u16> = ports.map(Endpoint::port).collect();
        let addresses = first.local_addresses().iter();
        let addresses: Vec<String> = addresses.map(|address| address.ip().to_string()).collect();
        let udp_port = Some(first.udp_port()).filter(|&port| port != 0);
        serde_json::json!({
            "event": "listening",
            "ports": ports,
            "udp_port": udp_port,
            "addresses": addresses,
            "threads": self.workers.len(),
        })
    }
}

impl NetOptions {
    /// Returns true if the command line sets the setting `key`, by an option or by `--set`.
    fn sets(&self, key: &str) -> bool {
        (key == "streams" && self.streams.is_some()) || self.is_in_set(key)
    }

    /// Returns true if `--set` sets the setting `key`.
    fn is_in_set(&self, key: &str) -> bool {
        let named = |setting: &String| {
            let name = setting.split('=').next().unwrap_or_default();
            name.trim() == key
        };
        self.set.iter().any(named)
    }

    /// Refuses an option if `--set` sets the same setting.
    fn check_once(&self) -> Result<(), Failure> {
        let given = [
            ("--profile", "profile", self.profile.is_some()),
            ("--congestion", "congestion", self.congestion.is_some()),
            ("--send-buffer", "send_buffer", self.send_buffer.is_some()),
            ("--minimal-init", "minimal_init", self.minimal_init),
            ("--pmtu", "mtu", matches!(self.pmtu, Pmtu::Fixed(_))),
            (
                "--security",
                "security",
                self.certificates.security.is_some(),
            ),
        ];
        match given.iter().find(|it| it.2 && self.is_in_set(it.1)) {
            Some((option, key, _)) => Err(Failure::Usage(format!(
                "found {option} and --set {key}, which set the same thing; use one of them"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses options that have no effect with RFC 6083.
    fn check_rfc6083(&self, config: &anabranch_net::sctp::Config) -> Result<(), Failure> {
        let partial =
            self.is_in_set("authentication") && config.authentication != Authentication::Required;
        let given = [
            ("--auth-key", !self.auth_key.is_empty()),
            ("--set authentication", partial),
            (
                "--set authenticated_chunks",
                self.is_in_set("authenticated_chunks"),
            ),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Failure::Usage(format!(
                "found {option} with --security rfc6083, which requires authentication and sets its keys and chunks; leave it out"
            ))),
            None => Ok(()),
        }
    }

    /// The settings of the transport, and those of RFC 6083 if it is used.
    fn sctp(&self) -> Result<(Sctp, Option<Arc<Rfc6083Settings>>), Failure> {
        self.check_once()?;
        let flag = |key: &str, value: Option<String>| value.map(|value| format!("{key}={value}"));
        let mut settings: Vec<String> = [
            flag("profile", self.profile.clone()),
            flag("congestion", self.congestion.clone()),
            flag("streams", self.streams.map(|streams| streams.to_string())),
        ]
        .into_iter()
        .flatten()
        .chain(self.set.iter().cloned())
        .collect();
        if !self.sets("receive_buffer") {
            settings.push(format!("receive_buffer={}", Size(BUFFER.into())));
        }
        let mut sctp = read_sctp(&settings)?;
        sctp.config.send_buffer = match self.send_buffer {
            Some(size) => usize::try_from(size.0).unwrap_or(usize::MAX),
            None if self.is_in_set("send_buffer") => sctp.config.send_buffer,
            None => sctp.config.send_buffer.max(BUFFER as usize),
        };
        // Packets are filled by default, as in the library but not in the simulator, because one
        // call can send several packets of equal size.
        if !self.sets("pack_messages") {
            sctp.config.pack_messages = sctp.config.bundling;
        }
        sctp.config.minimal_init |= self.minimal_init;
        if self.preferred_address.is_some() && !sctp.config.address_changes {
            return Err(Failure::Usage(
                "--preferred-address: found with address_changes off; it needs --set address_changes=true and --set authentication=on"
                    .to_owned(),
            ));
        }
        sctp.config.preferred_address = self.preferred_address;
        if let Some(keys) = auth_keys::shared(&self.auth_key)? {
            if sctp.config.authentication == Authentication::Off {
                return Err(Failure::Usage(
                    "--auth-key needs --set authentication=on or required (RFC 4895)".to_owned(),
                ));
            }
            sctp.config.auth_keys = keys;
        }
        let mut secure = None;
        match self.certificates.protection()? {
            Some(SecuritySettings::DtlsChunk(methods)) => {
                auth_keys::protect(&mut sctp.config, methods)
            }
            Some(SecuritySettings::Rfc6083(settings)) => {
                self.check_rfc6083(&sctp.config)?;
                sctp.config.authentication = Authentication::Required;
                secure = Some(settings);
            }
            None => auth_keys::preshared(self.psk_file.as_ref(), &mut sctp.config)?,
        }
        match self.pmtu {
            Pmtu::Auto if self.is_in_set("path_mtu_discovery") => {}
            Pmtu::Auto => sctp.config.path_mtu_discovery = true,
            Pmtu::Fixed(bytes) => sctp.config.mtu = bytes,
        }
        Ok((sctp, secure))
    }

    /// The carrier of a server (`accept`) or a client.
    fn carrier(&self, accept: bool) -> Result<Carrier, Failure> {
        let usual = if accept { ENCAPSULATION_PORT } else { 0 };
        let port = self.udp_port.unwrap_or(usual);
        let peer_port = self.peer_udp_port.unwrap_or(ENCAPSULATION_PORT);
        let ports = [
            ("--udp-port", self.udp_port),
            ("--peer-udp-port", self.peer_udp_port),
        ];
        let asked = ports.iter().find(|(_, port)| port.is_some());
        match (self.carrier, asked) {
            (CarrierKind::Encapsulated, _) => Ok(Carrier::Encapsulated { port, peer_port }),
            (CarrierKind::Udp, _) => Ok(Carrier::Udp { port, peer_port }),
            (CarrierKind::Ip, None) => Ok(Carrier::Ip),
            (CarrierKind::Ip, Some((option, _))) => Err(Failure::Usage(format!(
                "{option}: found with --carrier ip, which has no UDP ports; allowed with --carrier encapsulated or udp"
            ))),
        }
    }

    /// Binds endpoints on sockets that they share: one UDP port serves all SCTP ports (RFC 6951
    /// §5.1).
    pub(super) fn bind(
        &self,
        ports: Ports<'_>,
        peer: Option<ScopedAddr>,
    ) -> Result<Bound, Failure> {
        self.bind_for(ports, peer, WorkerThreads::default(), None)
    }

    /// Like [`Self::bind`], with a maximum number of simultaneous associations that peers may start
    /// per port. With several threads each thread gets an equal share of it.
    pub(super) fn bind_for(
        &self,
        ports: Ports<'_>,
        peer: Option<ScopedAddr>,
        workers: WorkerThreads,
        most: Option<u32>,
    ) -> Result<Bound, Failure> {
        let zone = zone(self.local.iter().copied().chain(peer)).map_err(Failure::Usage)?;
        let (mut sctp, secure) = self.sctp()?;
        let (numbers, accept) = match ports {
            Ports::Own(first, count) => (own_ports(first, count)?, false),
            Ports::Served(numbers) | Ports::Echoed(numbers) => (numbers.to_vec(), true),
        };
        if matches!(ports, Ports::Echoed(_)) && !self.sets("streams") {
            sctp.config.outbound_streams = u16::MAX;
            sctp.config.inbound_streams = u16::MAX;
        }
        let carrier = self.carrier(accept)?;
        let config = Config::default().with(|it| {
            it.sctp = sctp.config.clone();
            it.carrier = carrier;
            it.addresses = self.local.iter().map(|local| local.address).collect();
            it.zone = zone;
            it.dscp = self.dscp;
            it.accept = accept;
            it.max_message_size = MAX_MESSAGE as usize;
            let share = |most: u32| (most as usize).div_ceil(workers.len());
            it.max_associations = most.map_or(it.max_associations, share);
        });
        #[cfg(feature = "tls")]
        let config = match secure {
            Some(_) => config.with_rfc6083(),
            None => config,
        };
        let moves = AddressSchedule::from_options(self, &sctp.config)?;
        let (watch, watched) = RecordingObserver::new(self)?;
        let sockets = workers.open(&config).map_err(unbound)?;
        let each = |sockets| numbers.iter().map(move |port| (sockets, port));
        let all = sockets.iter().flat_map(each).enumerate();
        let endpoints: Result<Vec<Endpoint>, BindError> = all
            .map(|(index, (sockets, &port))| bind_at(sockets, &config, port, watch.as_ref(), index))
            .collect();
        Ok(Bound {
            endpoints: endpoints.map_err(unbound)?,
            ports: numbers.len(),
            numbers,
            workers,
            sctp,
            watched,
            moves,
            secure,
            sockets,
            config,
            watch,
        })
    }
}

/// `count` consecutive ports starting at `first`, or `count` times 0 for random ports.
fn own_ports(first: Option<u16>, count: usize) -> Result<Vec<u16>, Failure> {
    let Some(first) = first else {
        return Ok(vec![0; count]);
    };
    let ports: Vec<u16> = (first..=u16::MAX).take(count).collect();
    match ports.len() == count {
        true => Ok(ports),
        false => Err(Failure::Usage(format!(
            "--local-port: found {first} with {count} associations, a port each; the last port is {}",
            u16::MAX
        ))),
    }
}

/// Binds the endpoint `number` to a port.
fn bind_at(
    sockets: &SharedSockets,
    config: &Config,
    port: u16,
    watch: Option<&RecordingObserver>,
    number: usize,
) -> Result<Endpoint, BindError> {
    let config = config.clone().with(|it| it.port = port);
    match watch {
        Some(watch) => {
            let watch = Box::new(watch.of_endpoint(number));
            Endpoint::bind_with(config, BindOptions::from(sockets).with_observer(watch))
        }
        None => Endpoint::bind_with(config, sockets),
    }
}

fn unbound(error: BindError) -> Failure {
    match error {
        error @ (BindError::Config(_) | BindError::PortTaken(_)) => {
            Failure::Usage(error.to_string())
        }
        error => Failure::Net(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
