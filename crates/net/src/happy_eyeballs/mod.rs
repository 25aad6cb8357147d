//! Connecting by name with several attempts (Happy Eyeballs, RFC 8305).

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

use crate::runtime::{self, Runtime, Timer};
use attempts::{Race, Step};

/// Stream of a resolver's answers: each contains addresses of one family or of both.
pub type ResolverStream = Pin<Box<dyn Stream<Item = io::Result<Vec<IpAddr>>> + Send>>;

/// A resolver, which finds the addresses of a name.
pub trait Resolve: Send + Sync {
    /// Starts to resolve a name. RFC 8305 §3 requires that AAAA and A are queried at the same time,
    /// and that each answer is used when it arrives. An error item does not end the resolution,
    /// because the other answer may still arrive.
    fn resolve(&self, name: &str) -> ResolverStream;
}

/// The system's resolver: `getaddrinfo`, called on a thread of the current runtime for blocking
/// calls. It returns one answer with the addresses of both families.
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

/// Resolves a name by the system's resolver.
fn look_up(runtime: &dyn Runtime, name: &str) -> ResolverStream {
    let name = name.to_owned();
    let (tell, answer) = oneshot::channel();
    runtime.spawn_blocking(Box::new(move || {
        // Fails if the receiver was dropped, which needs no action.
        let _ = tell.send(addresses_of(&name));
    }));
    Once::of(async move { answer.await.unwrap_or_else(|_| Err(no_answer())) })
}

/// The error if the runtime has ended, or if there is none.
fn no_answer() -> io::Error {
    io::Error::other("there is no runtime to ask the system on")
}

/// The addresses of a name without duplicates. Blocks.
fn addresses_of(name: &str) -> io::Result<Vec<IpAddr>> {
    let mut addresses: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()?.map(|it| it.ip()) {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

type Answer = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// A stream of a single answer.
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

/// Delays between attempts, with the defaults of RFC 8305 §8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HappyEyeballsTiming {
    /// Time for which IPv4 addresses wait for IPv6 addresses (Resolution Delay); 50 ms by default.
    pub resolution_delay: Duration,
    /// Delay between the starts of two attempts (Connection Attempt Delay); 250 ms by default. RFC
    /// 8305 §5 recommends 100 ms to 2 s. The minimum is 10 ms, because shorter delays let a name
    /// with many addresses flood the network.
    pub attempt_delay: Duration,
}

/// Minimum of [`HappyEyeballsTiming::attempt_delay`].
const MIN_ATTEMPT_DELAY: Duration = Duration::from_millis(10);

impl Default for HappyEyeballsTiming {
    fn default() -> Self {
        Self {
            resolution_delay: Duration::from_millis(50),
            attempt_delay: Duration::from_millis(250),
        }
    }
}

impl HappyEyeballsTiming {
    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

/// Resolves `name` and connects to its addresses by `attempt` (RFC 8305). `local` are the addresses
/// of the endpoint. If no attempt succeeds, returns the error of the last attempt, if any, and of
/// the resolver.
pub(crate) async fn connect<T, E, F>(
    runtime: &dyn Runtime,
    name: &str,
    resolver: Option<&dyn Resolve>,
    timing: HappyEyeballsTiming,
    local: &[SocketAddr],
    attempt: impl Fn(IpAddr) -> F,
) -> (Option<Result<T, E>>, Option<io::Error>)
where
    F: Future<Output = Result<T, E>>,
{
    let usable = |to: IpAddr| local.iter().any(|it| it.is_ipv4() == to.is_ipv4());
    let answers = match resolver {
        Some(resolver) => resolver.resolve(name),
        None => look_up(runtime, name),
    };
    let sort = |all: &mut [IpAddr]| address_selection::sort(all, |to| source_for(local, to));
    run(runtime, answers, timing, usable, sort, attempt).await
}

/// The source address of packets from this host to `to`.
fn source_for(local: &[SocketAddr], to: IpAddr) -> Option<IpAddr> {
    let mut of_family = local.iter().map(SocketAddr::ip);
    let bound = of_family.find(|it| it.is_ipv4() == to.is_ipv4())?;
    if !bound.is_unspecified() {
        return Some(bound);
    }
    // An unconnected socket lets the system select the source address; no packet is sent.
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((to, 9)).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Runs the attempts. Returns the result of the first that succeeds or else of the last that
/// failed, and the resolver's error.
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
    let timing = timing.with(|it| it.attempt_delay = it.attempt_delay.max(MIN_ATTEMPT_DELAY));
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
                    // A time beyond the range of the clock is never reached.
                    let Some(at) = began.checked_add(until) else {
                        return Poll::Pending;
                    };
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
