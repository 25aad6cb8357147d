//! Commands on real sockets: `serve`, `perf`, `cat`, `emulate`, `shell`, `wrap`.

mod address;
mod address_schedule;
pub mod arguments;
mod auth_keys;
mod bind;
mod capture;
mod cat;
mod certificates;
mod connecting;
mod connection;
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
mod wrap_arguments;

use std::future::Future;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use anabranch_net::{Association, Peer, Status};
use anabranch_scenario::quantity::{Rate, Size, TimeSpan};
use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(not(feature = "data-channels"))]
use crate::absent::data_channels;
#[cfg(not(feature = "metrics"))]
use crate::absent::metrics;
use crate::failure::Failure;
use address::{ScopedAddr, one_zone};
use arguments::{NetCommand, OtherService, Pmtu};
use connecting::connect;

/// Maximum size of a message that these commands send, or that they assemble to echo or print it,
/// bytes.
const MAX_MESSAGE: u64 = 16 << 20;

/// Time limit at the end of a command for notifying peers and for printing the last lines.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A duration longer than any wait.
const FAR_FUTURE: Duration = Duration::from_secs(365 * 86_400);
/// Interval at which acknowledgements are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Executes another program, if this process was started by [`shell`] for that purpose.
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

/// Runs `work` as a task of a runtime, because a task can share its thread with the task that owns
/// the sockets. The future of `block_on` runs on a separate thread, and passing messages between
/// threads takes twice the time.
fn in_runtime<T: Send + 'static>(
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    on_this_thread(async {
        let done = tokio::spawn(work).await;
        done.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
    })
}

/// Runs `work` on the caller's thread while a runtime exists.
fn on_this_thread<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::Net(format!("cannot start the runtime: {error}")))?;
    let result = runtime.block_on(work);
    // Does not wait for associations that are still closing after an error.
    runtime.shutdown_background();
    result
}

/// Parses a quantity with its unit; the space between number and unit is optional.
fn quantity<T: FromStr<Err = String>>(text: &str) -> Result<T, String> {
    text.parse()
}

/// Parses a size with its unit or in iperf3's notation: bytes without a unit, or K, M, G, T with
/// factors of 1024.
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

/// Parses a rate with its unit or in iperf3's notation: bit/s without a unit, or K, M, G with
/// factors of 1000.
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

/// Parses the packet size of --pmtu.
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

/// Resolves `host` and further addresses to a peer. Its port is `usual` unless `host` contains one.
/// Also returns one of its addresses that has a zone, if any.
async fn peer(
    host: &str,
    usual: u16,
    further: &[ScopedAddr],
) -> Result<(Peer, Option<ScopedAddr>), Failure> {
    let bare = |text: &str| text.split('%').next().unwrap_or_default().to_owned();
    let named = |text: &str| {
        // Checks for an IPv6 address first, because it contains colons too.
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
    // An address that has a zone, or else one that needs a zone.
    let zoned = all().find(|it| it.zone.is_some());
    let zoned = zoned.or_else(|| all().find(ScopedAddr::is_link_local));
    Ok((Peer::new(addresses, port), zoned))
}

/// The duration of a timeout; 0 means no timeout.
fn limit(span: TimeSpan) -> Duration {
    match span {
        TimeSpan(0) => FAR_FUTURE,
        TimeSpan(nanoseconds) => Duration::from_nanos(nanoseconds),
    }
}

/// The names in brackets, to follow a word; empty if there are none.
fn in_brackets(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        names => format!(" ({})", names.join(", ")),
    }
}

/// Waits until all queued data is acknowledged, or the association has ended.
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

/// Handler of SIGINT and SIGTERM. From its creation on, every signal is reported and none ends the
/// process directly.
struct Interrupts {
    /// `None` if the system permits no handler; a signal then ends the process.
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

    /// Waits for the next signal. Cancel-safe.
    async fn next(&mut self) {
        self.next_signal().await;
    }

    /// Waits for the next signal and returns it.
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
