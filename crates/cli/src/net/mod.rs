//! Commands on real sockets: `serve`, `perf`, `cat`, `emulate`, `shell`, `wrap`.

mod address;
mod address_schedule;
pub mod arguments;
mod auth_keys;
mod capture;
mod cat;
mod connecting;
mod control_protocol;
#[cfg(feature = "data-channels")]
mod data_channels;
mod emulate;
pub mod live;
#[cfg(feature = "metrics")]
mod metrics;
mod perf;
mod print;
mod rate_limiter;
mod sample_writer;
mod serve;
#[cfg(target_os = "linux")]
mod shell;
mod timed_address;
mod trace;
mod worker_threads;
mod wrap;

use std::future::Future;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use anabranch_engine::arguments::{Sctp, sctp as read_sctp};
use anabranch_net::sctp::Authentication;
use anabranch_net::{
    Association, BindError, BindOptions, Carrier, Config, ENCAPSULATION_PORT, Endpoint, Peer,
    SharedSockets, Status,
};
use anabranch_scenario::quantity::{Rate, Size, Span};
use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(not(feature = "data-channels"))]
use crate::absent::data_channels;
#[cfg(not(feature = "metrics"))]
use crate::absent::metrics;
use crate::failure::Failure;
use address::{ScopedAddr, one_zone, zone};
use address_schedule::AddressSchedule;
use arguments::{CarrierKind, NetCommand, NetOptions, OtherService, Pmtu};
use capture::{Recording, RecordingObserver};
use connecting::connect;
use worker_threads::WorkerThreads;

/// Size of the largest message that these commands send, or assemble to echo or print it, bytes.
const MAX_MESSAGE: u64 = 16 << 20;
/// Default size of the receive and send buffer, bytes.
const BUFFER: u32 = 4 << 20;

/// Time for which a command that ends waits until peers are notified and its lines are read.
const PATIENCE: Duration = Duration::from_secs(2);

/// Longer than any wait.
const NEVER: Duration = Duration::from_secs(365 * 86_400);
/// Interval of checks for acknowledgements.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Executes another program, if this one was started for that ([`shell`]).
pub fn become_one() -> Option<std::process::ExitCode> {
    #[cfg(target_os = "linux")]
    return shell::become_one();
    #[cfg(not(target_os = "linux"))]
    None
}

/// Runs a command.
pub fn run(command: NetCommand) -> Result<(), Failure> {
    match command {
        NetCommand::Serve(arguments) => match (arguments.other.clone(), arguments.service) {
            (Some(OtherService::DataChannels(it)), _) => in_runtime(data_channels::serve(it)),
            (None, Some(service)) => in_runtime(serve::serve(service, *arguments)),
            (None, None) => Err(Failure::Usage(
                "the service is missing; `anabranch serve --help` lists them".to_owned(),
            )),
        },
        NetCommand::Perf(arguments) => in_runtime(perf::perf(*arguments)),
        NetCommand::Cat(arguments) => in_runtime(cat::cat(*arguments)),
        NetCommand::Emulate(arguments) => on_this_thread(emulate::emulate(*arguments)),
        #[cfg(target_os = "linux")]
        NetCommand::Shell(arguments) => shell::shell(*arguments),
        NetCommand::Wrap(arguments) => in_runtime(wrap::wrap(*arguments)),
    }
}

/// Runs `work` as a task of a runtime: a task shares its thread with the one that owns the sockets.
/// The future that a runtime blocks on has a thread of its own, and messages that change threads
/// cost twice the time.
fn in_runtime<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    on_this_thread(async {
        let done = tokio::spawn(work).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    })
}

/// Runs `work` on the caller's thread, next to a runtime.
fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Net(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(work);
    // Associations that are still closing after an error have nothing to report.
    runtime.shutdown_background();
    result
}

/// Parses a value with its unit; the space between is optional.
fn quantity<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

/// Parses a size with its unit, or in iperf3's form: bytes without one, or K, M, G, T of 1024 each.
fn size(text: &str) -> Result<Size, String> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let step: f64 = match &text[digits.len()..] {
        "" => 1.0,
        "K" | "k" => 1024.0,
        "M" | "m" => 1048576.0,
        "G" | "g" => 1073741824.0,
        "T" | "t" => 1099511627776.0,
        _ => return text.parse(),
    };
    match digits.parse::<f64>() {
        Ok(count) if count >= 0.0 && count * step < u64::MAX as f64 => {
            Ok(Size((count * step) as u64))
        }
        _ => text.parse(),
    }
}

/// Parses a rate with its unit, or in iperf3's form: bit/s without one, or K, M, G of 1000 each.
fn bitrate(text: &str) -> Result<Rate, String> {
    let digits = text.trim_end_matches(|last: char| last.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => "bit/s",
        "K" | "k" => "kbit/s",
        "M" | "m" => "Mbit/s",
        "G" | "g" => "Gbit/s",
        _ => return text.parse(),
    };
    format!("{digits} {unit}").parse()
}

/// Parses an amount of data to send.
fn amount(text: &str) -> Result<Size, String> {
    match size(text)? {
        Size(0) => Err("found 0; allowed: more than 0".to_owned()),
        amount => Ok(amount),
    }
}

/// Parses the size of a message.
fn message_size(text: &str) -> Result<Size, String> {
    let size = size(text)?;
    if (1..=MAX_MESSAGE).contains(&size.0) {
        Ok(size)
    } else {
        Err(format!(
            "found {size}; a message has 1 B to {}",
            Size(MAX_MESSAGE)
        ))
    }
}

/// SCTP ports of the endpoints of a command.
#[derive(Clone, Copy, Debug)]
enum Ports<'a> {
    /// This port and the following ones, or as many random ones. They accept no associations.
    Own(Option<u16>, usize),
    /// These ports, which accept associations.
    Served(&'a [u16]),
    /// Like [`Ports::Served`], with as many outbound streams as a peer requests.
    Echoed(&'a [u16]),
}

/// Parses the size of packets.
fn pmtu(text: &str) -> Result<Pmtu, String> {
    if text == "auto" {
        return Ok(Pmtu::Auto);
    }
    let size: Size = text
        .parse()
        .map_err(|error: String| format!("{error}; or auto"))?;
    match usize::try_from(size.0) {
        Ok(bytes @ 512..=65_535) => Ok(Pmtu::Fixed(bytes)),
        _ => Err(format!(
            "found {size}; a packet has 512 B to 65535 B, or auto"
        )),
    }
}

/// Bound endpoints, and the parameters of their binding. Those of a thread share sockets; with
/// several threads, each has its own.
struct Bound {
    /// Those of the first thread, one per port, then those of the next.
    endpoints: Vec<Endpoint>,
    /// Number of ports.
    ports: usize,
    /// The requested ports; 0: random.
    numbers: Vec<u16>,
    crew: WorkerThreads,
    sctp: Sctp,
    watched: Recording,
    moves: AddressSchedule,
    /// The sockets and settings of their binding.
    sockets: Vec<SharedSockets>,
    config: Config,
    watch: Option<RecordingObserver>,
}

impl Bound {
    /// Returns true if the port of the endpoint of that number is random.
    fn is_drawn(&self, number: usize) -> bool {
        self.numbers[number % self.ports] == 0
    }

    /// Binds an endpoint at another random port, in place of the one of that number, which has
    /// ended.
    fn draw_again(&mut self, number: usize) -> Result<(), Failure> {
        let sockets = &self.sockets[number / self.ports];
        let another = bind_at(sockets, &self.config, 0, self.watch.as_ref(), number);
        self.endpoints[number] = another.map_err(unbound)?;
        Ok(())
    }

    /// Addresses and ports of the endpoints.
    fn place(&self) -> String {
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
        let threads = match self.crew.len() {
            1 => String::new(),
            several => format!(", on {several} threads"),
        };
        format!("SCTP {word} {ports}, {carrier}, at {addresses}{threads}")
    }

    /// The same as JSON; `udp_port` is `null` directly over IP.
    fn place_json(&self) -> serde_json::Value {
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
            "threads": self.crew.len(),
        })
    }
}

impl NetOptions {
    /// Returns true if the command line sets that key.
    fn sets(&self, key: &str) -> bool {
        (key == "streams" && self.streams.is_some()) || self.is_in_set(key)
    }

    /// Returns true if `--set` sets that key.
    fn is_in_set(&self, key: &str) -> bool {
        let named = |setting: &String| {
            let name = setting.split('=').next().unwrap_or_default();
            name.trim() == key
        };
        self.set.iter().any(named)
    }

    /// Refuses an option together with the setting of `--set` that has the same meaning.
    fn check_once(&self) -> Result<(), Failure> {
        let given = [
            ("--profile", "profile", self.profile.is_some()),
            ("--congestion", "congestion", self.congestion.is_some()),
            ("--send-buffer", "send_buffer", self.send_buffer.is_some()),
            ("--bare-init", "bare_init", self.bare_init),
            ("--pmtu", "mtu", matches!(self.pmtu, Pmtu::Fixed(_))),
        ];
        match given.iter().find(|it| it.2 && self.is_in_set(it.1)) {
            Some((option, key, _)) => Err(Failure::Usage(format!(
                "found {option} and --set {key}, which set the same thing; use one of them"
            ))),
            None => Ok(()),
        }
    }

    /// The transport's settings.
    fn sctp(&self) -> Result<Sctp, Failure> {
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
        // As in the library, unlike the simulator, because packets of one size are sent by one
        // call.
        if !self.sets("fill_packets") {
            sctp.config.fill_packets = sctp.config.bundling;
        }
        sctp.config.bare_init |= self.bare_init;
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
        auth_keys::preshared(self.psk_file.as_ref(), &mut sctp.config)?;
        match self.pmtu {
            Pmtu::Auto if self.is_in_set("path_mtu_discovery") => {}
            Pmtu::Auto => sctp.config.path_mtu_discovery = true,
            Pmtu::Fixed(bytes) => sctp.config.mtu = bytes,
        }
        Ok(sctp)
    }

    /// The carrier of packets, for a server or a client.
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

    /// Binds endpoints on sockets of their own, which they share: one UDP port serves all SCTP
    /// ports (RFC 6951 §5.1).
    fn bind(&self, ports: Ports<'_>, peer: Option<ScopedAddr>) -> Result<Bound, Failure> {
        self.bind_for(ports, peer, WorkerThreads::default(), None)
    }

    /// The same with a maximum of simultaneous associations per port that peers may start. With
    /// several threads each has its share of the maximum, and a peer is served by one of them.
    fn bind_for(
        &self,
        ports: Ports<'_>,
        peer: Option<ScopedAddr>,
        crew: WorkerThreads,
        most: Option<u32>,
    ) -> Result<Bound, Failure> {
        let zone = zone(self.local.iter().copied().chain(peer)).map_err(Failure::Usage)?;
        let mut sctp = self.sctp()?;
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
            let share = |most: u32| (most as usize).div_ceil(crew.len());
            it.max_associations = most.map_or(it.max_associations, share);
        });
        let moves = AddressSchedule::from_options(self, &sctp.config)?;
        let (watch, watched) = RecordingObserver::new(self)?;
        let sockets = crew.open(&config).map_err(unbound)?;
        let each = |sockets| numbers.iter().map(move |port| (sockets, port));
        let all = sockets.iter().flat_map(each).enumerate();
        let endpoints: Result<Vec<Endpoint>, BindError> = all
            .map(|(index, (sockets, &port))| bind_at(sockets, &config, port, watch.as_ref(), index))
            .collect();
        Ok(Bound {
            endpoints: endpoints.map_err(unbound)?,
            ports: numbers.len(),
            numbers,
            crew,
            sctp,
            watched,
            moves,
            sockets,
            config,
            watch,
        })
    }
}

/// `count` consecutive ports from the first on; 0 stands for a random one.
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

/// Binds the endpoint of that number at a port.
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

/// Resolves the peer that `host` and further addresses name, at the port `usual` unless `host`
/// names another; also returns one of its addresses with a zone, if there is one.
async fn peer(
    host: &str,
    usual: u16,
    further: &[ScopedAddr],
) -> Result<(Peer, Option<ScopedAddr>), Failure> {
    let bare = |text: &str| text.split('%').next().unwrap_or_default().to_owned();
    let named = |text: &str| {
        // A plain IPv6 address contains colons too.
        let port = text
            .rsplit_once(':')
            .filter(|_| bare(text).parse::<IpAddr>().is_err() && !text.ends_with(']'));
        match port {
            Some((name, port)) => (
                name.trim_matches(['[', ']']).to_owned(),
                Some(port.to_owned()),
            ),
            None => (text.trim_matches(['[', ']']).to_owned(), None),
        }
    };
    let (name, port) = named(host);
    let port = match port {
        None => usual,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => {
                return Err(Failure::Usage(format!(
                    "HOST: found the port {text:?} in {host:?}; a port is a whole number, 1 to 65535"
                )));
            }
        },
    };
    let first = if name.contains('%') {
        name.parse().map_err(Failure::Usage)?
    } else {
        let found = tokio::net::lookup_host((name.as_str(), port)).await;
        let first = found.map(|mut all| all.next().map(|address| address.ip()));
        let Ok(Some(address)) = first else {
            return Err(Failure::Usage(format!(
                "HOST: found {name:?}, which is neither an IP address nor a name that the system can resolve"
            )));
        };
        ScopedAddr {
            address,
            zone: None,
        }
    };
    let all = || std::iter::once(first).chain(further.iter().copied());
    one_zone(all()).map_err(Failure::Usage)?;
    let mut addresses = vec![first.address];
    addresses.extend(
        further
            .iter()
            .map(|it| it.address)
            .filter(|it| *it != first.address),
    );
    // One that has a zone, or one that needs one.
    let zoned = all().find(|it| it.zone.is_some());
    let zoned = zoned.or_else(|| all().find(ScopedAddr::is_link_local));
    Ok((Peer::new(addresses, port), zoned))
}

/// The duration of a limit; 0 stands for none.
fn limit(span: Span) -> Duration {
    match span {
        Span(0) => NEVER,
        Span(nanoseconds) => Duration::from_nanos(nanoseconds),
    }
}

/// Names in brackets after a word, if there are any.
fn in_brackets(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        names => format!(" ({})", names.join(", ")),
    }
}

/// Waits until everything queued is acknowledged, or the association has ended.
async fn all_acknowledged(association: &Association) {
    let acknowledged = async {
        let waits = |it: Status| it.unackdata > 0 || it.penddata > 0;
        while association.status().is_some_and(waits) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::select! {
        () = acknowledged => {}
        _ = association.closed() => {}
    }
}

/// Ctrl-C and SIGTERM. From its creation on, none is missed, and none ends the process by itself.
struct Interrupts {
    /// `None`: the system permits no handler, and a signal ends the process.
    signals: Option<[Signal; 2]>,
}

impl Interrupts {
    fn new() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()];
        let [interrupt, terminate] = kinds.map(signal);
        Self {
            signals: interrupt.ok().zip(terminate.ok()).map(<[Signal; 2]>::from),
        }
    }

    /// Waits for the next one. Cancel-safe.
    async fn next(&mut self) {
        self.next_signal().await;
    }

    /// The same; returns the signal.
    async fn next_signal(&mut self) -> nix::sys::signal::Signal {
        use nix::sys::signal::Signal;
        let Some([interrupt, terminate]) = &mut self.signals else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = interrupt.recv() => Signal::SIGINT,
            _ = terminate.recv() => Signal::SIGTERM,
        }
    }
}

#[cfg(test)]
mod tests;
