//! Commands on real sockets: `serve`, `perf`, `cat`, `emulate`.

pub mod arguments;
mod cat;
mod emulate;
pub mod live;
mod perf;
mod serve;
mod trace;
mod watch;

use std::future::Future;
use std::net::IpAddr;
use std::str::FromStr;

use anabranch_lab::spec::quantity::Size;
use anabranch_lab::spec::transport::{self, Sctp};
use anabranch_net::{BindError, Carrier, Config, Endpoint, Peer};

use crate::work::Failure;
use arguments::{CarrierKind, PORT, Pmtu, Wire, WireCommand};
use watch::{Watch, Watched};

/// The largest message that these commands send, and put together to send back or print.
const MOST_MESSAGE: u64 = 16 << 20;
/// Receive and send buffer where the settings do not say, bytes.
const BUFFER: u32 = 4 << 20;

/// Runs a command.
pub fn run(command: WireCommand) -> Result<(), Failure> {
    match command {
        WireCommand::Serve(arguments) => in_runtime(serve::serve(*arguments)),
        WireCommand::Perf(arguments) => in_runtime(perf::perf(*arguments)),
        WireCommand::Cat(arguments) => in_runtime(cat::cat(*arguments)),
        WireCommand::Emulate(arguments) => in_runtime(emulate::emulate(*arguments)),
    }
}

fn in_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Wire(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(work);
    // What still closes after an error has no more to say.
    runtime.shutdown_background();
    result
}

/// Reads a value with its unit; the space between may be missing.
fn quantity<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

/// Reads the size of a message.
fn message_size(text: &str) -> Result<Size, String> {
    let size: Size = text.parse()?;
    if (1..=MOST_MESSAGE).contains(&size.0) {
        Ok(size)
    } else {
        Err(format!(
            "found {size}; a message has 1 B to {}",
            Size(MOST_MESSAGE)
        ))
    }
}

/// Reads the size of packets.
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

/// A bound endpoint, and what was asked of it.
struct Bound {
    endpoint: Endpoint,
    sctp: Sctp,
    watched: Watched,
}

impl Wire {
    /// The transport's settings.
    fn sctp(&self) -> Result<Sctp, Failure> {
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
        if !settings
            .iter()
            .any(|it| it.trim_start().starts_with("receive_buffer"))
        {
            settings.push(format!("receive_buffer={}", Size(BUFFER.into())));
        }
        let mut sctp = transport::sctp(&settings)?;
        sctp.config.send_buffer = sctp.config.send_buffer.max(BUFFER as usize);
        sctp.config.bare_init = self.bare_init;
        match self.pmtu {
            Pmtu::Auto => sctp.config.path_mtu_discovery = true,
            Pmtu::Fixed(bytes) => sctp.config.mtu = bytes,
        }
        // Somebody waits at a terminal: a quarter of a minute, not four.
        sctp.config.max_init_retransmits = 3;
        Ok(sctp)
    }

    /// Binds an endpoint; at `port` if it accepts, else at any.
    fn bind(&self, accepts: Option<u16>) -> Result<Bound, Failure> {
        let sctp = self.sctp()?;
        let usual = if accepts.is_some() { 9899 } else { 0 };
        let (port, peer_port) = (self.udp_port.unwrap_or(usual), self.peer_udp_port);
        let carrier = match self.carrier {
            CarrierKind::Encapsulated => Carrier::Encapsulated { port, peer_port },
            CarrierKind::Udp => Carrier::Udp { port, peer_port },
            CarrierKind::Ip => Carrier::Ip,
        };
        let config = Config {
            sctp: sctp.config.clone(),
            port: accepts.unwrap_or(0),
            carrier,
            addresses: self.local.clone(),
            accept: accepts.is_some(),
            max_message_size: MOST_MESSAGE as usize,
            ..Config::default()
        };
        let (watch, watched) = Watch::new(self)?;
        let endpoint = match watch {
            Some(watch) => Endpoint::bind_observed(config, Box::new(watch)),
            None => Endpoint::bind(config),
        };
        let endpoint = endpoint.map_err(|error| match error {
            error @ BindError::Config(_) => Failure::Asked(error.to_string()),
            error => Failure::Wire(error.to_string()),
        })?;
        Ok(Bound {
            endpoint,
            sctp,
            watched,
        })
    }
}

/// Finds the peer that `host` and further addresses name.
async fn peer(host: &str, further: &[IpAddr]) -> Result<Peer, Failure> {
    let named = |text: &str| {
        // An IPv6 address alone has colons too.
        let port = text
            .rsplit_once(':')
            .filter(|_| text.parse::<IpAddr>().is_err());
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
        None => PORT,
        Some(text) => match text.parse() {
            Ok(port) if port > 0 => port,
            _ => {
                return Err(Failure::Asked(format!(
                    "found {text:?} as the port of {host}; a port is 1 to 65535"
                )));
            }
        },
    };
    let found = tokio::net::lookup_host((name.as_str(), port)).await;
    let first = found.map(|mut all| all.next().map(|address| address.ip()));
    let Ok(Some(first)) = first else {
        return Err(Failure::Asked(format!("no host is called {name:?}")));
    };
    let mut addresses = vec![first];
    addresses.extend(further.iter().copied().filter(|it| *it != first));
    Ok(Peer::new(addresses, port))
}

/// Waits for Ctrl-C.
async fn interrupted() {
    // Without a handler the signal ends the process anyway.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
