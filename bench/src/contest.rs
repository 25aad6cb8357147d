//! One race in memory: two ends of one SCTP stack on one thread, a wire of two queues between them, and a source that
//! always has a message more. The same loop drives every stack, by its own contract: datagrams in, messages out,
//! datagrams out.

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

/// How long a datagram is on the wire.
const DELAY: Nanos = MILLISECOND;
/// Packets between two looks at the processor's clock.
const LOOK: u64 = 256;
/// Round trips in a row without a datagram, of which each lets a timer run.
const MOST_IDLE: u32 = 100;
/// Messages that are compared byte by byte before the race.
const TRIALS: u32 = 20;

/// What is the same for all.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// Bytes of a message.
    pub message: usize,
    /// The longest SCTP packet, bytes with the common header.
    pub packet: usize,
    /// Receive window, bytes.
    pub window: usize,
    /// Streams, used in turn.
    pub streams: u16,
    /// Datagrams that an end takes in before it is asked for messages and for what it has to send.
    pub batch: usize,
}

impl Conditions {
    /// Small messages, each answered before the next.
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
    /// A datagram as the stack gives it out.
    type Packet: AsRef<[u8]>;
    /// A message as the stack hands it to its user.
    type Message;

    /// Two ends, the first of which will connect.
    ///
    /// # Errors
    /// The stack refuses the conditions.
    fn pair(conditions: &Conditions) -> Result<[Self; 2], Box<dyn Error>>;

    /// Whether messages may be sent.
    fn is_up(&self) -> bool;

    /// Queues messages of `source`, a stream and a payload each, until the send buffer has no room for one more or the source
    /// ends: one call, so that each adapter asks its stack no more often than the API makes it.
    ///
    /// # Errors
    /// The stack refuses a message although there is room.
    fn fill<'a>(
        &mut self,
        now: Nanos,
        source: &mut impl FnMut() -> Option<(u16, &'a Bytes)>,
    ) -> Result<(), Box<dyn Error>>;

    /// Takes a datagram.
    fn take(&mut self, now: Nanos, packet: Self::Packet);

    /// Everything that may be sent now.
    fn give(&mut self, now: Nanos, wire: &mut VecDeque<Self::Packet>);

    /// All messages that can be read.
    ///
    /// # Errors
    /// What `accept` says.
    fn read(
        &mut self,
        accept: &mut impl FnMut(Self::Message) -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>>;

    /// Its length, bytes.
    fn length(message: &Self::Message) -> usize;

    /// Its bytes, in one piece.
    fn contents(message: Self::Message) -> Vec<u8>;

    /// Chunks sent and not acknowledged; 0 where the stack does not tell.
    fn outstanding(&self) -> usize {
        0
    }

    /// Gives back memory that is the adapter's and not the stack's: it will be idle.
    fn rest(&mut self) {}

    /// When [`End::expire`] must be called.
    fn deadline(&self) -> Option<Nanos>;

    /// Runs the timers that are due.
    fn expire(&mut self, now: Nanos);
}

/// What a race came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Score {
    /// Processor time of the thread, seconds.
    pub cpu: f64,
    /// Messages that the receiver's user got.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Datagrams that crossed the wire, both ways.
    pub packets: u64,
    /// The most chunks that were sent and not acknowledged, where the stack tells.
    pub outstanding: usize,
}

impl Score {
    /// Messages in a second of processor time.
    pub fn messages_per_second(&self) -> f64 {
        self.messages as f64 / self.cpu
    }

    /// Bytes of user data, in millions, in a second of processor time.
    pub fn megabytes_per_second(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.cpu
    }

    /// Processor time by datagrams, both ends and both ways, ns.
    pub fn ns_per_packet(&self) -> f64 {
        self.cpu * 1e9 / self.packets as f64
    }
}

/// Two ends and the wire between them.
struct Course<E: End> {
    conditions: Conditions,
    ends: [E; 2],
    /// What is on its way to the end of that number.
    wire: [VecDeque<E::Packet>; 2],
    now: Nanos,
    longest: usize,
    /// Round trips in a row with nothing on the wire.
    idle: u32,
    score: Score,
}

/// Lets a stack run for `warm_up` of processor time, so that slow start is over, and then measures it for `long`.
///
/// # Errors
/// The two ends do not come together, a message is damaged, or nothing moves any more.
pub fn race<E: End>(
    conditions: &Conditions,
    warm_up: Duration,
    long: Duration,
) -> Result<Score, Box<dyn Error>> {
    let mut course = Course::<E>::new(conditions)?;
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

/// Lets a stack carry at least so many messages, the same work each time: for a count of instructions.
///
/// # Errors
/// As [`race`].
pub fn work<E: End>(conditions: &Conditions, messages: u64) -> Result<Score, Box<dyn Error>> {
    let mut course = Course::<E>::new(conditions)?;
    course.connect()?;
    course.try_out()?;
    let payload = Bytes::from(vec![0x5a; conditions.message]);
    course.run_while(&payload, |score| score.messages < messages)?;
    Ok(course.score)
}

impl<E: End> Course<E> {
    #[inline(always)] // its ends are moved less
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

    /// A few messages, each with a content of its own, compared at the far end.
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
            if score.packets - looked >= LOOK {
                looked = score.packets;
                spent = begin.elapsed();
            }
            spent < long
        })?;
        self.score.cpu = spent.as_secs_f64();
        Ok(())
    }

    /// Round trips, each with as many messages as the sender takes, while `more` says so.
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

    /// What is on the wire arrives at the receiver, and then what is on the wire to the sender.
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

    /// Runs the timers of an end; with nothing on the wire, time goes on to the next of either end first.
    fn wait_if_quiet(&mut self, to: usize) -> Result<(), Box<dyn Error>> {
        if to == 1 && self.wire.iter().all(VecDeque::is_empty) {
            self.idle += 1;
            if self.idle > MOST_IDLE {
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
