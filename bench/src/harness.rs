//! Benchmark of SCTP stacks in memory: two ends of one stack run on one thread, with two queues as
//! the wire between them and a source that always has another message. The same loop drives every
//! stack: it passes datagrams in, reads messages, and polls datagrams.

pub mod crowd;
pub mod dcsctp;
pub mod dcsctp_gathered;
pub mod dcsctp_silent;
pub mod gathered;
pub mod limit;
pub mod many;
pub mod ours;
pub mod rtc_gathered;
pub mod rtc_sctp;
pub mod sctp_proto;

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use anabranch_transport::Nanos;
use anabranch_transport::time::MILLISECOND;
use bytes::Bytes;
use cpu_time::ThreadTime;

/// Delay of a datagram on the wire.
const DELAY: Nanos = MILLISECOND;
/// Number of packets after which the processor clock is read.
const CLOCK_INTERVAL: u64 = 256;
/// Maximum number of consecutive round trips without a datagram, in each of which a timer expires.
const MAX_IDLE: u32 = 100;
/// Number of messages whose bytes are compared before the measurement.
const TRIALS: u32 = 20;

/// Conditions common to all stacks.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Message size, bytes.
    pub message: usize,
    /// Maximum size of an SCTP packet including the common header, bytes.
    pub packet: usize,
    /// Receive window, bytes.
    pub window: usize,
    /// Number of streams, which are used round robin.
    pub streams: u16,
    /// Number of datagrams that an end receives before it is polled for messages and datagrams.
    pub batch: usize,
}

impl Conditions {
    /// Small messages, each of which is answered before the next is sent.
    pub const PINGS: Self = Self {
        message: 100,
        packet: 1200,
        window: 1 << 20,
        streams: 1,
        batch: 1,
    };
}

/// One end of an association.
pub trait End: Sized {
    /// Type of a datagram that the stack sends.
    type Packet: AsRef<[u8]>;
    /// Type of a message that the stack delivers.
    type Message;

    /// Creates the two ends of an association; the first one connects.
    ///
    /// # Errors
    /// The stack rejects the conditions.
    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>>;

    /// Whether messages can be sent.
    fn is_up(&self) -> bool;

    /// Queues messages of `source` (stream and payload) until the send buffer has no space for
    /// another one, or the source ends. This is one call for all messages, so that an adapter can
    /// use the cheapest function of its stack.
    ///
    /// # Errors
    /// The stack rejects a message although it has space.
    fn fill<'a>(
        &mut self,
        now: Nanos,
        source: &mut impl FnMut() -> Option<(u16, &'a Bytes)>,
    ) -> Result<(), Box<dyn Error>>;

    /// Processes a datagram.
    fn take(&mut self, now: Nanos, packet: Self::Packet);

    /// Moves all datagrams that can be sent now to `wire`.
    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Self::Packet>);

    /// Passes all readable messages to `accept`.
    ///
    /// # Errors
    /// Any error of `accept`.
    fn read(
        &mut self,
        accept: &mut impl FnMut(Self::Message) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>>;

    /// Length of a message, bytes.
    fn length(message: &Self::Message) -> usize;

    /// Contents of a message, as one vector.
    fn contents(message: Self::Message) -> Vec<u8>;

    /// Number of chunks that were sent but not acknowledged; 0 if the stack does not report it.
    fn outstanding(&self) -> usize {
        0
    }

    /// Releases memory that only the adapter uses, before the memory of an idle association is
    /// measured.
    fn rest(&mut self) {}

    /// Time at which [`End::expire`] should be called.
    fn deadline(&self) -> Option<Nanos>;

    /// Handles expired timers.
    fn expire(&mut self, now: Nanos);
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Processor time of the thread, seconds.
    pub cpu: f64,
    /// Number of messages that the receiver delivered.
    pub messages: u64,
    /// Number of bytes in these messages.
    pub bytes: u64,
    /// Number of datagrams in both directions.
    pub packets: u64,
    /// Maximum number of chunks that were sent but not acknowledged, if the stack reports it.
    pub outstanding: usize,
}

impl Score {
    /// Messages per second of processor time.
    pub fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.cpu
    }

    /// User data per second of processor time, MB.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.cpu
    }

    /// Processor time of both ends per datagram in either direction, nanoseconds.
    pub fn ns_per_packet(&self) -> f64 {
        self.cpu * 1e9 / self.packets as f64
    }
}

/// Two ends, and the wire between them.
struct Transfer<E: End> {
    conditions: Conditions,
    ends: [E; 2],
    /// Datagrams in transit, by the end to which they go.
    wire: [VecDeque<E::Packet>; 2],
    now: Nanos,
    longest: usize,
    /// Number of consecutive round trips without datagrams.
    idle: u32,
    score: Score,
}

/// Runs a stack for `warm_up` of processor time, so that slow start has ended, and then measures it
/// for `long`.
///
/// # Errors
/// The handshake fails, a message is damaged, or no more datagrams are sent.
pub fn race<E: End>(
    conditions: &Conditions,
    warm_up: Duration,
    long: Duration,
) -> Result<Score, Box<dyn Error>> {
    let mut course = Transfer::<E>::new(conditions)?;
    course.connect()?;
    course.try_out()?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    course.run(&payload, warm_up)?;
    course.score = Score::default();
    course.run(&payload, long)?;
    if course.longest > conditions.packet {
        return Err(format!("a packet of {} bytes", course.longest).into());
    }
    Ok(course.score)
}

/// Transfers at least `messages` messages, for counting instructions: the work is the same in every
/// run.
///
/// # Errors
/// The errors of [`race`].
pub fn work<E: End>(conditions: &Conditions, messages: u64) -> Result<Score, Box<dyn Error>> {
    let mut course = Transfer::<E>::new(conditions)?;
    course.connect()?;
    course.try_out()?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    course.run_while(&payload, |score| score.messages < messages)?;
    Ok(course.score)
}

impl<E: End> Transfer<E> {
    #[inline(always)] // avoids moving the ends
    fn new(conditions: &Conditions) -> Result<Self, Box<dyn Error>> {
        Ok(Self {
            conditions: *conditions,
            ends: E::pair(conditions)?,
            wire: [VecDeque::new(), VecDeque::new()],
            now: 0,
            longest: 0,
            idle: 0,
            score: Score::default(),
        })
    }

    fn connect(&mut self) -> Result<(), Box<dyn Error>> {
        self.ends[0].give(self.now, &mut self.wire[1]);
        for _ in 0..100 {
            if self.ends.iter().all(E::is_up) {
                return Ok(());
            }
            self.round_trip(&mut || None, |_| Ok(()))?;
        }
        Err("the two ends do not come together".into())
    }

    /// Transfers some messages with different contents, and compares them at the receiver.
    fn try_out(&mut self) -> Result<(), Box<dyn Error>> {
        let length = self.conditions.message;
        let compose = |number: u32| -> Bytes {
            let place = |at: usize| (at as u32).wrapping_mul(31).wrapping_add(number * 7) as u8;
            (0..length).map(place).collect()
        };
        let trials: Vec<Bytes> = (0..TRIALS).map(compose).collect();
        let (mut unsent, mut expected) = (trials.iter(), trials.iter());
        while expected.len() > 0 {
            self.round_trip(&mut || Some((0, unsent.next()?)), |message| {
                let number = trials.len() - expected.len();
                if expected.next().is_none_or(|it| E::contents(message) != *it) {
                    return Err(format!("message {number} came damaged or out of order").into());
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn run(&mut self, payload: &Bytes, long: Duration) -> Result<(), Box<dyn Error>> {
        let mut looked = self.score.packets;
        let begin = ThreadTime::now();
        let mut spent = Duration::ZERO;
        self.run_while(payload, |score| {
            if score.packets - looked >= CLOCK_INTERVAL {
                looked = score.packets;
                spent = begin.elapsed();
            }
            spent < long
        })?;
        self.score.cpu = spent.as_secs_f64();
        Ok(())
    }

    /// Runs round trips while `more` returns true. In each round trip, the sender queues as many
    /// messages as it accepts.
    fn run_while(
        &mut self,
        payload: &Bytes,
        mut more: impl FnMut(&Score) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let (mut stream, streams) = (0, self.conditions.streams);
        let (mut messages, mut bytes) = (0, 0);
        while more(&self.score) {
            let mut next = || {
                let this = stream;
                stream = if this + 1 == streams { 0 } else { this + 1 };
                Some((this, payload))
            };
            self.round_trip(&mut next, |message| {
                messages += 1;
                bytes += E::length(&message) as u64;
                Ok(())
            })?;
            let outstanding = self.ends[0].outstanding();
            self.score.outstanding = self.score.outstanding.max(outstanding);
            (self.score.messages, self.score.bytes) = (messages, bytes);
        }
        if bytes != messages * payload.len() as u64 || messages == 0 {
            return Err(format!("{messages} messages came as {bytes} bytes").into());
        }
        Ok(())
    }

    /// Delivers the datagrams in transit to the receiver, and then those in transit to the sender.
    fn round_trip<'a>(
        &mut self,
        source: &mut impl FnMut() -> Option<(u16, &'a Bytes)>,
        mut accept: impl FnMut(E::Message) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        for to in [1, 0] {
            self.now += DELAY;
            self.wait_if_quiet(to)?;
            let mut left = self.wire[to].len();
            loop {
                let batch = left.min(self.conditions.batch);
                for packet in self.wire[to].drain(..batch) {
                    self.longest = self.longest.max(packet.as_ref().len());
                    self.ends[to].take(self.now, packet);
                }
                self.score.packets += batch as u64;
                left -= batch;
                if to == 1 {
                    self.ends[1].read(&mut accept)?;
                } else if self.ends[0].is_up() {
                    self.ends[0].fill(self.now, source)?;
                }
                self.ends[to].give(self.now, &mut self.wire[1 - to]);
                if left == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs the expired timers of an end. Before that, if no datagram is in transit, advances the
    /// time to the next timer of either end.
    fn wait_if_quiet(&mut self, to: usize) -> Result<(), Box<dyn Error>> {
        if to == 1 && self.wire.iter().all(VecDeque::is_empty) {
            self.idle += 1;
            if self.idle > MAX_IDLE {
                return Err("nothing moves any more".into());
            }
            let next = self.ends.iter().filter_map(E::deadline).min();
            self.now = self.now.max(next.unwrap_or(self.now));
        } else if to == 1 {
            self.idle = 0;
        }
        if self.ends[to].deadline().is_some_and(|at| at <= self.now) {
            self.ends[to].expire(self.now);
        }
        Ok(())
    }
}
