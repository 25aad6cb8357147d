//! Minimal drivers for sans-IO stacks: a plain loop, or one tokio task, each with one socket.

use std::collections::VecDeque;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_bench::harness::{Conditions, End};
use anabranch_transport::Nanos;
use bytes::Bytes;

use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};

use super::{BUSY, Outcome, Score, WARM_UP, Watch, between, runtime};

/// Interval at which a plain loop checks its timers while it waits. The responder ends after this
/// time without requests.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time without a packet after which an end fails.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(10);
/// Size of the receive buffer, more than the longest packet, bytes.
const ROOM: usize = 2048;

/// One end of an association, with its unsent packets and messages. End 0 connects and sends
/// requests; end 1 replies.
struct Turns<E: End> {
    end: E,
    begin: Instant,
    /// Packets that should be sent.
    wire: VecDeque<E::Packet>,
    payload: Bytes,
    /// Number of messages that should be sent next.
    due: u32,
    /// Number of messages that were received, and total number of messages.
    came: u32,
    all: u32,
    watch: Option<Watch>,
    score: Option<Score>,
}

impl<E: End<Packet: From<Vec<u8>>>> Turns<E> {
    fn new(which: usize, pings: u32) -> Outcome<Self> {
        let mut ends = VecDeque::from(E::pair(&Conditions::PINGS).map_err(text)?);
        Ok(Self {
            end: ends.remove(which).ok_or("no such end")?,
            begin: Instant::now(),
            wire: VecDeque::new(),
            payload: Bytes::from(vec![0x5a; Conditions::PINGS.message]),
            // End 0 starts with one request.
            due: 1 - which as u32,
            came: 0,
            all: WARM_UP + pings,
            watch: (which == 0).then(|| Watch::of(pings)),
            score: None,
        })
    }

    fn now(&self) -> Nanos {
        self.begin.elapsed().as_nanos() as Nanos
    }

    /// Moves outgoing packets to `wire`.
    fn give(&mut self) -> Outcome<()> {
        let now = self.now();
        self.end.give(now, &mut self.wire);
        if self.due > 0 && self.end.is_up() {
            let (due, payload) = (&mut self.due, &self.payload);
            let mut source = || {
                *due = due.checked_sub(1)?;
                Some((0, payload))
            };
            self.end.fill(now, &mut source).map_err(text)?;
            self.end.give(now, &mut self.wire);
        }
        Ok(())
    }

    /// Processes a received packet and reads the messages in it.
    fn take(&mut self, packet: &[u8]) -> Outcome<()> {
        let now = self.now();
        self.end.take(now, packet.to_vec().into());
        let (due, came) = (&mut self.due, &mut self.came);
        let (watch, score) = (&mut self.watch, &mut self.score);
        let mut accept = |_| {
            *due += 1;
            *came += 1;
            *score = watch.as_mut().and_then(Watch::answered);
            Ok(())
        };
        self.end.read(&mut accept).map_err(text)?;
        Ok(())
    }

    /// Handles expired timers.
    fn look_at_timers(&mut self) {
        let now = self.now();
        if self.end.deadline().is_some_and(|at| at <= now) {
            self.end.expire(now);
        }
    }

    /// Whether all replies have been sent.
    fn is_done(&self) -> bool {
        self.watch.is_none() && self.came == self.all
    }
}

fn text(error: Box<dyn Error>) -> String {
    error.to_string()
}

/// Runs both ends with a plain loop.
pub fn by_a_loop<E: End<Packet: From<Vec<u8>>>>(pings: u32) -> Outcome<Score> {
    by_loops::<E>(pings, Duration::ZERO)
}

/// Runs both ends with a plain loop that polls the socket for some time before it blocks.
pub fn by_a_busy_loop<E: End<Packet: From<Vec<u8>>>>(pings: u32) -> Outcome<Score> {
    by_loops::<E>(pings, BUSY)
}

fn by_loops<E: End<Packet: From<Vec<u8>>>>(pings: u32, busy: Duration) -> Outcome<Score> {
    between(
        |socket, to| {
            let score = turn_by_turn(Turns::<E>::new(0, pings)?, &socket, to, busy)?;
            Ok(score.ok_or("it ended without a score")?)
        },
        move |socket, to| turn_by_turn(Turns::<E>::new(1, pings)?, &socket, to, busy).map(|_| ()),
    )
}

/// Receives the next packet, polling for `busy` before blocking.
fn receive(socket: &UdpSocket, buffer: &mut [u8], busy: Duration) -> std::io::Result<usize> {
    if !busy.is_zero() {
        let begin = Instant::now();
        while begin.elapsed() < busy {
            match recv(socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
                Err(Errno::EAGAIN) => thread::yield_now(),
                result => return Ok(result?),
            }
        }
    }
    socket.recv(buffer)
}

/// Loop of receiving, processing, reading and sending. Returns the score of end 0; end 1 ends when
/// there are no more requests.
fn turn_by_turn<E: End<Packet: From<Vec<u8>>>>(
    mut turns: Turns<E>,
    socket: &UdpSocket,
    to: SocketAddr,
    busy: Duration,
) -> Outcome<Option<Score>> {
    socket.set_read_timeout(Some(POLL_INTERVAL))?;
    let (mut buffer, mut quiet) = ([0; ROOM], Duration::ZERO);
    while turns.score.is_none() && !(turns.is_done() && quiet > POLL_INTERVAL) {
        turns.give()?;
        for packet in turns.wire.drain(..) {
            socket.send_to(packet.as_ref(), to)?;
        }
        match receive(socket, &mut buffer, busy) {
            Ok(length) => {
                quiet = Duration::ZERO;
                turns.take(&buffer[..length])?;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                quiet += POLL_INTERVAL;
                turns.look_at_timers();
                if quiet > FAILURE_TIMEOUT {
                    return Err("nothing came for ten seconds".into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(turns.score)
}

/// Runs each end in a tokio task, as in a program that has other work on the same thread. The task
/// waits for the socket and for the next timer.
pub fn by_a_task<E: End<Packet: From<Vec<u8>>> + 'static>(pings: u32) -> Outcome<Score> {
    let run = move |which, socket: UdpSocket, to| {
        socket.set_nonblocking(true)?;
        runtime()?.block_on(async move {
            let socket = tokio::net::UdpSocket::from_std(socket)?;
            waiting(Turns::<E>::new(which, pings)?, &socket, to).await
        })
    };
    between(
        move |socket, to| Ok(run(0, socket, to)?.ok_or("it ended without a score")?),
        move |socket, to| run(1, socket, to).map(|_| ()),
    )
}

/// Like [`turn_by_turn`], as a future. The timer is changed only if it would expire too late,
/// because an early expiry does no harm.
async fn waiting<E: End<Packet: From<Vec<u8>>>>(
    mut turns: Turns<E>,
    socket: &tokio::net::UdpSocket,
    to: SocketAddr,
) -> Outcome<Option<Score>> {
    let begin = tokio::time::Instant::from_std(turns.begin);
    let longest = begin + FAILURE_TIMEOUT;
    let mut alarm = pin!(tokio::time::sleep_until(longest));
    let mut buffer = [0; ROOM];
    while turns.score.is_none() {
        turns.give()?;
        for packet in turns.wire.drain(..) {
            socket.send_to(packet.as_ref(), to).await?;
        }
        if turns.is_done() {
            break;
        }
        let due = turns.end.deadline().map(Duration::from_nanos);
        let due = due.map_or(longest, |after| begin + after);
        if due < alarm.deadline() {
            alarm.as_mut().reset(due);
        }
        let received = tokio::select! {
            biased;
            received = socket.recv(&mut buffer) => Some(received?),
            () = &mut alarm => None,
        };
        match received {
            Some(length) => turns.take(&buffer[..length])?,
            None => {
                turns.look_at_timers();
                let due = turns.end.deadline().map(Duration::from_nanos);
                alarm
                    .as_mut()
                    .reset(due.map_or(longest, |after| begin + after));
            }
        }
    }
    Ok(turns.score)
}
