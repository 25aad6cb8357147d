//! Connecting by name, with the addresses tried as RFC 8305 (Happy Eyeballs) says.

mod address_selection;
mod attempts;

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use tokio::sync::oneshot;

use crate::association::Association;
use crate::endpoint::Endpoint;
use crate::error::ConnectError;
use crate::peer::Peer;
use crate::runtime::{self, Runtime, Timer};
use attempts::{Race, Step};

/// Answers of a resolver, as they come: each has addresses of one family or of both.
pub type ResolverStream = Pin<Box<dyn Stream<Item = io::Result<Vec<IpAddr>>> + Send>>;

/// Whoever finds the addresses of a name.
pub trait Resolve: Send + Sync {
    /// Begins to look a name up. RFC 8305 §3 wants AAAA and A asked for at once, and each answer given when it is there. An error does not
    /// end the attempt: the other answer may still come.
    fn resolve(&self, name: &str) -> ResolverStream;
}

/// The system's resolver: `getaddrinfo`, on the current runtime's threads for what blocks. It gives one answer, with both families.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> ResolverStream {
        match runtime::current() {
            Some(runtime) => look_up(&*runtime, name),
            None => Once::of(std::future::ready(Err(no_answer()))),
        }
    }
}

/// Asks the system for the addresses of a name.
fn look_up(runtime: &dyn Runtime, name: &str) -> ResolverStream {
    let name = name.to_owned();
    let (tell, answer) = oneshot::channel();
    runtime.spawn_blocking(Box::new(move || {
        // Nobody may wait any more.
        let _ = tell.send(addresses_of(&name));
    }));
    Once::of(async move { answer.await.unwrap_or_else(|_| Err(no_answer())) })
}

/// The runtime is gone, or there is none.
fn no_answer() -> io::Error {
    io::Error::other("there is no runtime to ask the system on")
}

/// The addresses of a name, each once; waits for the system.
fn addresses_of(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()?.map(|it| it.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// The system's resolver on the runtime of an endpoint.
struct OnRuntime<'a>(&'a dyn Runtime);

impl Resolve for OnRuntime<'_> {
    fn resolve(&self, name: &str) -> ResolverStream {
        look_up(self.0, name)
    }
}

type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A stream of one answer.
struct Once(Option<Answer>);

impl Once {
    fn of(
        answer: impl Future<Output = io::Result<Vec<IpAddr>>> + Send + 'static,
    ) -> ResolverStream {
        Box::pin(Self(Some(Box::pin(answer))))
    }
}

impl Stream for Once {
    type Item = io::Result<Vec<IpAddr>>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(answer) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let answer = ready!(answer.as_mut().poll(cx));
        self.0 = None;
        Poll::Ready(Some(answer))
    }
}

/// The delays of RFC 8305 §8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HappyEyeballsTiming {
    /// How long IPv4 addresses wait for IPv6 ones to be found; 50 ms.
    pub resolution_delay: Duration,
    /// How long after an attempt the next one begins; 250 ms. RFC 8305 §5 wants 100 ms to 2 s; below 10 ms a name with many addresses
    /// floods the network, so that 10 ms is the least that counts.
    pub attempt_delay: Duration,
}

/// See [`HappyEyeballsTiming::attempt_delay`].
const LEAST_DELAY: Duration = Duration::from_millis(10);

impl Default for HappyEyeballsTiming {
    fn default() -> Self {
        Self {
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
        }
    }
}

impl HappyEyeballsTiming {
    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Whom to connect to by name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NamedPeer {
    /// Its name, or an address as text.
    pub name: String,
    /// Its SCTP port.
    pub port: u16,
    /// Its UDP port where it differs from the carrier's `peer_port`.
    pub udp_port: Option<u16>,
}

impl NamedPeer {
    /// The same with another UDP port.
    #[must_use]
    pub fn over_udp(self, port: u16) -> Self {
        Self {
            udp_port: Some(port),
            ..self
        }
    }

    fn at(&self, address: IpAddr) -> Peer {
        Peer {
            udp_port: self.udp_port,
            ..Peer::new([address], self.port)
        }
    }
}

impl<N: Into<String>> From<(N, u16)> for NamedPeer {
    /// A name and an SCTP port.
    fn from((name, port): (N, u16)) -> Self {
        Self {
            name: name.into(),
            port,
            udp_port: None,
        }
    }
}

impl Endpoint {
    /// As [`Endpoint::connect`], to a peer by its name, which the system resolves; see [`Endpoint::connect_by_name_with`].
    ///
    /// # Errors
    /// As there.
    pub async fn connect_by_name(
        &self,
        peer: impl Into<NamedPeer>,
    ) -> Result<Association, ConnectError> {
        let resolver = OnRuntime(&**self.runtime());
        self.connect_by_name_with(peer, &resolver, HappyEyeballsTiming::default())
            .await
    }

    /// As [`Endpoint::connect`], to a peer by its name: its addresses are sorted (RFC 6724 §6), the families take turns, and an attempt at
    /// the next address begins when the one before has failed or has lasted `attempt_delay` (RFC 8305). The first that is up is given.
    ///
    /// Each attempt is at one address: where the peer has several, it lists them itself in INIT ACK (RFC 9260 §5.1.2). Several of a name's
    /// addresses may be one host's. So that it does not take the later attempt for a restart (RFC 9260 §5.2.4), only one attempt at a time
    /// goes on behind INIT ACK; and as a peer keeps nothing before COOKIE ECHO, the losers leave no trace there.
    ///
    /// Cancel-safe: if the future is dropped, every attempt is aborted.
    ///
    /// # Errors
    /// The name has no address of a family that this endpoint has sockets of; or every attempt failed: then the last one's error.
    pub async fn connect_by_name_with(
        &self,
        peer: impl Into<NamedPeer>,
        resolver: &dyn Resolve,
        timing: HappyEyeballsTiming,
    ) -> Result<Association, ConnectError> {
        let peer = peer.into();
        let local = self.local_addresses();
        let usable = |to: IpAddr| local.iter().any(|it| it.is_ipv4() == to.is_ipv4());
        let race = self.next_race();
        let attempt = |address: IpAddr| {
            let begun = self.begin(&peer.at(address), Some(race));
            async move { Self::finish(begun?).await }
        };
        let answers = match peer.name.parse::<IpAddr>() {
            Ok(address) => Once::of(std::future::ready(Ok(vec![address]))),
            Err(_) => resolver.resolve(&peer.name),
        };
        let sort = |all: &mut [IpAddr]| address_selection::sort(all, |to| source_for(local, to));
        let runtime = &**self.runtime();
        let (won, why) = run(runtime, answers, timing, usable, sort, attempt).await;
        won.unwrap_or_else(|| {
            Err(ConnectError::Name {
                name: peer.name,
                why: why.map_or_else(|| "it has no address here".to_owned(), |it| it.to_string()),
            })
        })
    }
}

/// The address that packets from here to `to` would have.
fn source_for(local: &[SocketAddr], to: IpAddr) -> Option<IpAddr> {
    let mut of_family = local.iter().map(SocketAddr::ip);
    let bound = of_family.find(|it| it.is_ipv4() == to.is_ipv4())?;
    if !bound.is_unspecified() {
        return Some(bound);
    }
    // The system chooses; nothing is sent.
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Runs the race. Gives what the winner or else the last attempt came to, and what the resolver complained of.
async fn run<T, E, F>(
    runtime: &dyn Runtime,
    mut answers: ResolverStream,
    timing: HappyEyeballsTiming,
    usable: impl Fn(IpAddr) -> bool,
    sort: impl Fn(&mut [IpAddr]),
    attempt: impl Fn(IpAddr) -> F,
) -> (Option<Result<T, E>>, Option<io::Error>)
where
    F: Future<Output = Result<T, E>>,
{
    let timing = timing.with(|it| it.attempt_delay = it.attempt_delay.max(LEAST_DELAY));
    let began = runtime.now();
    let elapsed = || runtime.now().saturating_duration_since(began);
    let mut race = Race::new(timing);
    let mut attempts: Vec<Pin<Box<F>>> = Vec::new();
    let (mut failed, mut complaint) = (None, None);
    let mut resolving = true;
    let mut alarm: Option<Pin<Box<dyn Timer>>> = None;
    std::future::poll_fn(move |cx| {
        loop {
            while resolving && let Poll::Ready(answer) = answers.as_mut().poll_next(cx) {
                match answer {
                    Some(Ok(addresses)) => {
                        let of_use = |it: &IpAddr| usable(*it);
                        let addresses: Vec<IpAddr> = addresses.into_iter().filter(of_use).collect();
                        race.answer(elapsed(), &addresses, &sort);
                    }
                    Some(Err(error)) => complaint = Some(error),
                    None => {
                        resolving = false;
                        race.resolved();
                    }
                }
            }
            let mut index = 0;
            while let Some(running) = attempts.get_mut(index) {
                match running.as_mut().poll(cx) {
                    Poll::Ready(Ok(won)) => {
                        return Poll::Ready((Some(Ok(won)), complaint.take()));
                    }
                    Poll::Ready(Err(error)) => {
                        failed = Some(Err(error));
                        drop(attempts.remove(index));
                        race.failed();
                    }
                    Poll::Pending => index += 1,
                }
            }
            match race.next(elapsed()) {
                Step::Begin(address) => attempts.push(Box::pin(attempt(address))),
                Step::Over => return Poll::Ready((failed.take(), complaint.take())),
                Step::Wait(None) => return Poll::Pending,
                Step::Wait(Some(until)) => {
                    let at = began + until;
                    let alarm = alarm.get_or_insert_with(|| runtime.timer(at));
                    alarm.as_mut().reset(at);
                    if alarm.as_mut().poll(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests;
