//! What is asked: a path, a share of what it could carry, and who may be asked to carry it.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_congestion::{Needs, Protocol, registry};
use anabranch_scenario::quantity::{Amount, Probability, Rate, Size, Span};
use anabranch_sctp::Profile;
use anabranch_transport::time::{MILLISECOND, SECOND};

use crate::refused::Refused;
use crate::satellites::Satellites;
use crate::{AdviseError, discipline, grid, recovery};

/// Who decides what may fly: a profile, a congestion control and a loss recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// The profile's name.
    pub profile: String,
    /// The algorithm's name.
    pub congestion: String,
    /// The name of a [loss recovery](recovery::RECOVERIES).
    pub recovery: String,
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.profile, self.congestion)?;
        match self.recovery.as_str() {
            recovery::STANDARD => Ok(()),
            other => write!(f, " {other}"),
        }
    }
}

impl Control {
    /// Whether it is the sender that stacks have which follow a standard: the protocol's own congestion control (additive
    /// increase, and half at a loss), which the registry has before those that build on it, by the rules of an RFC.
    pub fn is_standard(&self) -> bool {
        let own = registry::all(Protocol::Sctp).first().copied();
        let algorithm = registry::by_name(Protocol::Sctp, &self.congestion);
        let of_an_rfc = Profile::by_name(&self.profile)
            .is_some_and(|profile| profile.name != Profile::ns2().name);
        let recovers = self.recovery == recovery::STANDARD;
        algorithm.is_some() && algorithm == own && of_an_rfc && recovers
    }

    /// Whether its windows keep their shape on a [smaller path](Question::scale_for).
    fn keeps_its_shape(&self) -> bool {
        !FULL_SIZE.contains(&self.congestion.as_str())
    }
}

/// A path, the share wanted, and the candidates.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Round-trip time of the empty path, without the time to put a packet on the link.
    pub rtt: Span,
    /// Rate of the link, in each direction.
    pub rate: Rate,
    /// Probability that a packet of the data direction is lost in the air.
    pub loss: Probability,
    /// The share wanted of the goodput with a buffer without limit: 0.01 to 0.99.
    pub share: f64,
    /// Largest IP packet, bytes: 512 to 65535.
    pub mtu: Size,
    /// Size of a message; one that fills a packet if left out.
    pub message: Option<Size>,
    /// What the link's queue holds; a round trip's worth of packets if left out.
    pub queue: Option<Amount>,
    /// The discipline of the link's queue, one of [`discipline::names`].
    pub discipline: String,
    /// The link is a path over satellites, and `rtt` the median of its round-trip time.
    pub satellites: Option<Satellites>,
    /// Numbers of streams to try.
    pub streams: Vec<u16>,
    /// Profiles to try, the one to be preferred first.
    pub profiles: Vec<String>,
    /// Congestion controls to try, the one to be preferred first.
    pub congestion: Vec<String>,
    /// Loss recoveries to try with each of these. None named: the standard's with controls that were named, else the
    /// [usual](recovery::usual) ones.
    pub recovery: Vec<String>,
    /// Congestion controls that would have been tried, and would cost too much on this path.
    pub left_out: Vec<String>,
    /// How long each run is measured, after its begin; [`crate::ranking`] and [`crate::Ranking::question`] choose if left out.
    pub duration: Option<Span>,
    /// What is left out of each run at least, before what is measured; 20 round trips and a second are, however short it is.
    pub begin: Span,
    /// The path is simulated at one part in so many of its size, see [`Question::scale_for`]; 1: as it is.
    pub scale: u32,
    /// The seed of all randomness.
    pub seed: u64,
}

/// The profile that is tried unless others are named: the text in force.
pub const PROFILES: &[&str] = &["rfc9260"];
/// Numbers of streams that are tried unless others are named.
pub const STREAMS: &[u16] = &[1, 2, 4, 8];

/// IPv4 header, common header and the header of a DATA chunk.
const HEADERS: u64 = 20 + 12 + 16;
/// Fewer packets make no queue.
const LEAST_QUEUE: u64 = 20;
/// The largest message: larger ones say nothing new of a path.
const LARGEST_MESSAGE: u64 = 64 << 10;

/// Windows of more packets than this are simulated at a smaller scale, at about [`SMALL_WINDOW`].
const LARGE_WINDOW: f64 = 256.0;
/// See [`Question::scale_for`].
const SMALL_WINDOW: f64 = 64.0;
/// The probability of a loss that a smaller scale does not exceed.
const SCARCE: f64 = 0.002;

/// How long a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// What comes before is not measured.
    pub begin: Span,
    /// The end of the run.
    pub end: Span,
}

/// The congestion controls that need nothing beside a path.
fn algorithms() -> Vec<&'static str> {
    let all = registry::all(Protocol::Sctp).into_iter();
    let alone = all.filter(|algorithm| algorithm.needs == Needs::Nothing);
    alone.map(|algorithm| algorithm.name).collect()
}

/// The congestion controls tried where a question names none. Each more would make the search longer; any other can be named.
const TRIED: &[&str] = &["sctp", "westwood", "binomial", "cubic", "bbr"];

/// Those that are simulated at the size of the path: CUBIC's window follows the clock, BBR's the rate, Vegas and Veno count packets in
/// the queue.
const FULL_SIZE: &[&str] = &["cubic", "bbr", "vegas", "veno"];
/// The most packets of the shortest run that is simulated at the size of its path: more would not leave an answer in a minute.
const MOST_PACKETS: f64 = 300_000.0;
/// What is measured of a path over satellites at least: four intervals of 15 s, each with another path, perhaps.
const SATELLITES_MEASURED: Span = Span(60 * SECOND);

/// What of a question may be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Setting {
    /// Place among [`Question::controls`].
    pub control: usize,
    /// Streams.
    pub streams: u16,
    /// Receive buffer, bytes; `None`: without limit.
    pub buffer: Option<u64>,
}

impl Question {
    /// A question about a path, all else as it is if nobody says otherwise.
    pub fn new(rtt: Span, rate: Rate, loss: Probability) -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            rtt,
            rate,
            loss,
            share: 0.95,
            mtu: Size(1500),
            message: None,
            queue: None,
            discipline: discipline::DROP_TAIL.to_owned(),
            satellites: None,
            streams: STREAMS.to_vec(),
            profiles: names(PROFILES),
            congestion: names(TRIED),
            recovery: Vec::new(),
            left_out: Vec::new(),
            duration: None,
            begin: Span(0),
            scale: 1,
            seed: 1,
        }
    }

    /// A question about a path over satellites, whose round-trip time is the median one.
    ///
    /// # Errors
    /// As [`Satellites::rtt`].
    pub fn over(
        satellites: Satellites,
        rate: Rate,
        loss: Probability,
    ) -> Result<Self, AdviseError> {
        let rtt = satellites.rtt()?;
        Ok(Self {
            satellites: Some(satellites),
            ..Self::new(rtt, rate, loss)
        })
    }

    /// The same, with what `change` changes.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Puts what is asked in order and refuses what makes no sense.
    ///
    /// # Errors
    /// [`AdviseError::Question`]: the key, what was found, what is allowed.
    pub fn checked(mut self) -> Result<Self, AdviseError> {
        self.path_makes_sense()?;
        let wrong = |key, found: String, allowed| Err(Refused::new(key, found, allowed).into());
        if !(0.01..=0.99).contains(&self.share) {
            let found = format!("{} %", self.share * 100.0);
            return wrong(
                "goodput",
                found,
                "1 % to 99 % (all of it no buffer reaches surely)",
            );
        }
        let duration = self.duration;
        if let Some(duration) = duration.filter(|it| it.0 < SECOND || it.0 > 3600 * SECOND) {
            return wrong("duration", duration.to_string(), "1 s to 1 h");
        }
        self.streams.sort_unstable();
        self.streams.dedup();
        if self.streams.first().is_none_or(|&least| least == 0) {
            let found = format!("{:?}", self.streams);
            return wrong("streams", found, "1 to 65535, one number at least");
        }
        let discipline = std::slice::from_ref(&self.discipline);
        let known: [(_, &[String], &[&str]); 4] = [
            ("profile", &self.profiles, Profile::NAMES),
            ("congestion", &self.congestion, &algorithms()),
            ("recovery", &self.recovery, &recovery::names()),
            ("discipline", discipline, &discipline::names()),
        ];
        for (key, names, known) in known {
            if names.is_empty() && key != "recovery" {
                return wrong(key, "none".to_owned(), "one name at least");
            }
            if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(Refused::unknown(key, name, known).into());
            }
        }
        self.leave_out_what_costs_too_much()?;
        Ok(self)
    }

    /// Leaves out the usual controls that would have to be simulated at the size of a path that is too large for it, and refuses
    /// others.
    fn leave_out_what_costs_too_much(&mut self) -> Result<(), Refused> {
        let run = self.timing_of(self.least_measured()).end.seconds();
        let packets = run * self.rate.0 as f64 / 8.0 / self.mtu.0 as f64;
        if packets <= MOST_PACKETS {
            return Ok(());
        }
        let allowed = format!(
            "a path whose shortest run, {run:.1} s here, has at most {MOST_PACKETS} packets: what goes by the clock cannot be simulated smaller"
        );
        let path = format!("on a path of {packets:.0} packets in a run");
        if self.discipline != discipline::DROP_TAIL {
            let found = format!("{:?} {path}", self.discipline);
            return Err(Refused::new("discipline", found, &allowed));
        }
        let usual = self.congestion == TRIED;
        let costs = |name: &String| FULL_SIZE.contains(&name.as_str());
        let (left_out, kept) = self.congestion.iter().cloned().partition(costs);
        (self.left_out, self.congestion) = (left_out, kept);
        match (usual, self.left_out.first()) {
            (false, Some(name)) => Err(Refused::new(
                "congestion",
                format!("{name:?} {path}"),
                &allowed,
            )),
            _ => Ok(()),
        }
    }

    fn path_makes_sense(&self) -> Result<(), Refused> {
        let wrong = |key, found: String, allowed| Err(Refused::new(key, found, allowed));
        if self.rtt.0 < 1_000 || self.rtt.0 > 60 * SECOND {
            return wrong("rtt", self.rtt.to_string(), "1 us to 60 s");
        }
        if !(1_000..=100_000_000_000).contains(&self.rate.0) {
            return wrong("rate", self.rate.to_string(), "1 kbit/s to 100 Gbit/s");
        }
        if !(0.0..=0.5).contains(&self.loss.0) {
            let found = format!("{} %", self.loss.0 * 100.0);
            return wrong("loss", found, "0 % to 50 %");
        }
        if !(512..=65_535).contains(&self.mtu.0) {
            return wrong("mtu", self.mtu.to_string(), "512 B to 65535 B");
        }
        let message = self.message;
        if let Some(message) = message.filter(|it| !(1..=LARGEST_MESSAGE).contains(&it.0)) {
            return wrong("message", message.to_string(), "1 B to 64 KiB");
        }
        let queue = self.queue;
        if let Some(queue) = queue.filter(|queue| queue.bytes(self.mtu.0) < self.mtu.0) {
            return wrong(
                "queue",
                queue.to_string(),
                "room for a packet of the MTU at least",
            );
        }
        Ok(())
    }

    /// The candidates, the one to be preferred among equals first: all algorithms of the first profile, then of the next.
    pub fn controls(&self) -> Vec<Control> {
        let mut controls = Vec::new();
        for profile in &self.profiles {
            for congestion in &self.congestion {
                let control = |recovery: String| Control {
                    profile: profile.clone(),
                    congestion: congestion.clone(),
                    recovery,
                };
                controls.extend(self.recoveries(congestion).into_iter().map(control));
            }
        }
        controls
    }

    /// The loss recoveries that a congestion control is tried with.
    fn recoveries(&self, congestion: &str) -> Vec<String> {
        if !self.recovery.is_empty() {
            let named = self.recovery.iter();
            let beside = named.map(|name| recovery::beside(congestion, name).to_owned());
            let mut all: Vec<String> = beside.collect();
            let mut seen = BTreeSet::new();
            all.retain(|name| seen.insert(name.clone()));
            return all;
        }
        let usual = self.congestion == TRIED || !self.left_out.is_empty();
        let names = match usual {
            true => recovery::usual(congestion),
            false => &[recovery::STANDARD],
        };
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// What the pipe holds: rate x round-trip time, bytes.
    pub fn bandwidth_delay(&self) -> u64 {
        let bits = u128::from(self.rate.0) * u128::from(self.rtt.0) / u128::from(SECOND);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// How long a window takes that grows by a packet a round trip from nothing to all that link and queue hold.
    pub fn filling(&self) -> Span {
        let bytes = self.bandwidth_delay() + self.queue().bytes(self.mtu.0);
        Span((bytes / self.mtu.0).saturating_mul(self.rtt.0))
    }

    /// The link, as queue disciplines ask for it.
    pub fn link(&self) -> discipline::Link {
        discipline::Link {
            rate: self.rate,
            mtu: self.mtu,
            queue: self.queue(),
        }
    }

    /// What the link's queue holds.
    pub fn queue(&self) -> Amount {
        self.queue.unwrap_or_else(|| {
            Amount::Packets(self.bandwidth_delay().div_ceil(self.mtu.0).max(LEAST_QUEUE))
        })
    }

    /// How many times smaller a path may be simulated whose sender's window comes to so many packets.
    ///
    /// Where windows are large, what decides is how they move from round trip to round trip. Additive increase and halving keep
    /// their shape when rate, queue, buffers and windows are divided by k and the probability of a loss is multiplied by k^2,
    /// since the mean window of such a sender follows 1/sqrt(p) (Mathis, Semke, Mahdavi, Ott 1997); a run then costs k times
    /// less a second, and sees k times as many losses. Windows stay at some [`SMALL_WINDOW`] packets and losses below
    /// [`SCARCE`], where timeouts are still rare.
    ///
    /// A discipline other than drop-tail goes by the clock, which does not shrink.
    pub fn scale_for(&self, window: f64) -> u32 {
        if window <= LARGE_WINDOW || self.discipline != discipline::DROP_TAIL {
            return 1;
        }
        let of_loss = match self.loss.0 {
            0.0 => f64::INFINITY,
            loss => (SCARCE / loss).sqrt(),
        };
        (window / SMALL_WINDOW).min(of_loss).max(1.0) as u32
    }

    /// The scale at which a candidate is simulated, where the others are at that of the question.
    pub fn scale_of(&self, control: &Control) -> u32 {
        match control.keeps_its_shape() {
            true => self.scale,
            false => 1,
        }
    }

    /// The scale for one candidate alone whose window comes to so many packets.
    pub fn scale_alone(&self, control: &Control, window: f64) -> u32 {
        match control.keeps_its_shape() {
            true => self.scale_for(window),
            false => 1,
        }
    }

    /// Whether nothing of the path is left to chance.
    pub fn is_certain(&self) -> bool {
        self.loss.0 == 0.0 && self.discipline == discipline::DROP_TAIL
    }

    /// The rate simulated.
    pub fn simulated_rate(&self) -> Rate {
        Rate(self.rate.0 / u64::from(self.scale))
    }

    /// The probability of a loss simulated.
    pub fn simulated_loss(&self) -> Probability {
        Probability(self.loss.0 * f64::from(self.scale).powi(2))
    }

    /// The queue simulated.
    pub fn simulated_queue(&self) -> Amount {
        match self.queue() {
            Amount::Packets(packets) => Amount::Packets((packets / u64::from(self.scale)).max(1)),
            other => {
                Amount::Bytes((other.bytes(self.mtu.0) / u64::from(self.scale)).max(self.mtu.0))
            }
        }
    }

    /// A receive buffer as it is simulated; without limit it is one that is never full.
    pub fn simulated_buffer(&self, buffer: Option<u64>) -> Size {
        Size(buffer.map_or(grid::UNLIMITED, |buffer| buffer / u64::from(self.scale)))
    }

    /// The buffers that are tried, bytes, rising.
    pub fn buffers(&self) -> Vec<u64> {
        grid::buffers(self.least_buffer() * u64::from(self.scale))
    }

    /// User data of a message, bytes.
    pub fn message(&self) -> u64 {
        self.message
            .map_or(self.mtu.0 - HEADERS, |message| message.0)
    }

    /// The least buffer that makes sense, bytes: a packet, a whole message, and what RFC 9260 §6 asks of a receiver.
    pub fn least_buffer(&self) -> u64 {
        let chunks = self.message().div_ceil(self.mtu.0 - HEADERS);
        (self.message() + 16 * chunks).max(self.mtu.0).max(1500)
    }

    /// The least that is measured of a run: 50 round trips, or 5 s where these are longer, or a second where they are shorter.
    /// Over satellites it is a minute.
    pub fn least_measured(&self) -> Span {
        match self.satellites {
            Some(_) => SATELLITES_MEASURED,
            None => Span((50 * self.rtt.0).clamp(SECOND, 5 * SECOND)),
        }
    }

    /// The most that is measured of a run where nothing is lost: 400 round trips, at least 20 s and at most 400 s.
    pub fn most_measured(&self) -> Span {
        let most = Span((400 * self.rtt.0).clamp(20 * SECOND, 400 * SECOND));
        most.max(self.least_measured())
    }

    /// How long a run is. Before what is measured come 20 round trips and a second for the handshake and the first slow
    /// start, or more where [`Question::begin`] asks for it.
    pub fn timing(&self) -> Timing {
        self.timing_of(self.duration.unwrap_or(self.most_measured()))
    }

    fn timing_of(&self, measured: Span) -> Timing {
        let whole = |nanos: u64| nanos.div_ceil(100 * MILLISECOND) * 100 * MILLISECOND;
        let begin = whole((SECOND + 20 * self.rtt.0).max(self.begin.0));
        Timing {
            begin: Span(begin),
            end: Span(begin + whole(measured.0)),
        }
    }
}

#[cfg(test)]
mod tests;
