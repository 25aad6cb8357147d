//! Questions: a path, a requested share of its achievable goodput, and candidate senders.

use std::collections::BTreeSet;
use std::fmt;

use anabranch_congestion::{
    Algorithm, Property, Protocol, Requirement, bbr, binomial, cubic, registry, sctp_newreno,
    westwood,
};
use anabranch_scenario::quantity::{Capacity, Probability, Rate, Size, TimeSpan};
use anabranch_sctp::Profile;
use anabranch_transport::time::{MILLISECOND, SECOND};

use crate::invalid_question::InvalidQuestion;
use crate::recovery::{RACK, STANDARD};
use crate::satellites::Satellites;
use crate::{AdviseError, discipline, grid, recovery};

/// A candidate sender: profile, congestion control and loss recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateSender {
    /// Name of the profile.
    pub profile: String,
    /// Name of the algorithm.
    pub congestion: String,
    /// Name of a [loss recovery](recovery::RECOVERIES).
    pub recovery: String,
}

impl fmt::Display for CandidateSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.profile, self.congestion)?;
        match self.recovery.as_str() {
            STANDARD => Ok(()),
            other => write!(f, " {other}"),
        }
    }
}

impl CandidateSender {
    /// Whether this is the standard sender: the congestion control of the protocol itself (additive
    /// increase, halving after a loss), which the registry lists first, with the profile of an RFC
    /// and the standard loss recovery.
    pub fn is_standard(&self) -> bool {
        let own = registry::all(Protocol::Sctp).first().copied();
        let algorithm = registry::by_name(Protocol::Sctp, &self.congestion);
        let of_an_rfc = Profile::by_name(&self.profile)
            .is_some_and(|profile| profile.name != Profile::ns2().name);
        let recovers = self.recovery == STANDARD;
        algorithm.is_some() && algorithm == own && of_an_rfc && recovers
    }

    /// Whether the shape of its window over time is the same on a [smaller
    /// path](Question::scale_for).
    fn keeps_its_shape(&self) -> bool {
        keeps_its_shape(&self.congestion)
    }
}

/// A path, the requested share, and the candidates.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// Round-trip time of the empty path, without the transmission time of packets.
    pub rtt: TimeSpan,
    /// Rate of the link in each direction.
    pub rate: Rate,
    /// Probability that a packet in the data direction is lost on the link.
    pub loss: Probability,
    /// Requested share of the goodput with an unlimited buffer: 0.01 to 0.99.
    pub share: f64,
    /// Maximum IP packet size, bytes: 512 to 65535.
    pub mtu: Size,
    /// Message size; by default a message fills a packet.
    pub message_size: Option<Size>,
    /// Capacity of the queue of the link; by default one bandwidth-delay product in packets.
    pub queue: Option<Capacity>,
    /// Discipline of the queue, one of [`discipline::names`].
    pub qdisc: String,
    /// Set if the link is a satellite path; `rtt` is then the median of its round-trip time.
    pub satellites: Option<Satellites>,
    /// Numbers of streams to test.
    pub streams: Vec<u16>,
    /// Profiles to test, in order of preference.
    pub profiles: Vec<String>,
    /// Congestion controls to test, in order of preference.
    pub congestion: Vec<String>,
    /// Loss recoveries to test with each congestion control. If empty, congestion controls that the
    /// question names have the standard recovery, and default ones have their default recoveries.
    pub recovery: Vec<String>,
    /// Default congestion controls that are omitted because they would be too expensive on this
    /// path.
    pub left_out: Vec<String>,
    /// Measured duration of each run, after its warm-up. If omitted, [`crate::ranking()`] and
    /// [`crate::Ranking::question`] choose it.
    pub duration: Option<TimeSpan>,
    /// Minimum duration of the warm-up, which is not measured. The warm-up is never shorter than 20
    /// round trips plus one second.
    pub begin: TimeSpan,
    /// Factor by which the simulated path is smaller, see [`Question::scale_for`].
    pub scale: u32,
    /// Random seed.
    pub seed: u64,
}

/// Default profiles: the current RFC.
pub const PROFILES: &[&str] = &["rfc9260"];
/// Default numbers of streams.
pub const STREAMS: &[u16] = &[1, 2, 4, 8];

/// Size of the IPv4 header, the common header and the DATA chunk header, bytes.
const HEADERS: u64 = 20 + 12 + 16;
/// Minimum number of packets of a meaningful queue.
const MIN_QUEUE: u64 = 20;
/// Maximum message size. Larger messages give no additional information about a path.
const MAX_MESSAGE: u64 = 64 << 10;

/// Window in packets above which a path is simulated at a smaller size, so that windows are about
/// [`SMALL_WINDOW`].
const LARGE_WINDOW: f64 = 256.0;
/// Window of a scaled path in packets, see [`Question::scale_for`].
const SMALL_WINDOW: f64 = 64.0;
/// Maximum loss probability of a scaled path.
const SCARCE: f64 = 0.002;

/// Start and end of the measurement in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTimes {
    /// End of the warm-up; measurements start at this time.
    pub begin: TimeSpan,
    /// End of the run and of the measurement.
    pub end: TimeSpan,
}

/// Names of the congestion controls whose parameters are all derived from the path.
fn algorithms() -> Vec<&'static str> {
    let all = registry::all(Protocol::Sctp).into_iter();
    let alone = all.filter(|algorithm| algorithm.needs == Requirement::Nothing);
    alone.map(|algorithm| algorithm.name).collect()
}

/// Congestion controls that are searched by default, each with its loss recoveries. The list is
/// short because each entry makes the search longer; a question can name other congestion controls.
/// The algorithm of the standard has both recoveries, to show the effect of the recovery alone.
/// CUBIC and BBR have only RACK, because they were designed for stacks with RACK-TLP.
const TRIED: &[(&Algorithm, &[&str])] = &[
    (&sctp_newreno::ALGORITHM, &[STANDARD, RACK]),
    (&westwood::ALGORITHM, &[STANDARD]),
    (&binomial::ALGORITHM, &[STANDARD]),
    (&cubic::ALGORITHM, &[RACK]),
    (&bbr::ALGORITHM, &[RACK]),
];

/// Whether the shape of the windows of a congestion control over time is the same on a smaller
/// path. All other congestion controls must be simulated at full size.
fn keeps_its_shape(congestion: &str) -> bool {
    let algorithm = registry::by_name(Protocol::Sctp, congestion);
    !algorithm.is_some_and(|it| it.has(Property::AbsoluteScale))
}
/// Maximum number of packets in the shortest run on a full-size path. With more packets there would
/// be no answer within a minute.
const MAX_PACKETS: f64 = 300_000.0;
/// Minimum measured duration on a satellite path: four intervals of 15 s, because the route may
/// change between intervals.
const SATELLITES_MEASURED: TimeSpan = TimeSpan(60 * SECOND);

/// A setting of a sender, among which the search chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TunedSetting {
    /// Index in [`Question::controls`].
    pub control: usize,
    /// Number of streams.
    pub streams: u16,
    /// Receive buffer, bytes; `None` for no limit.
    pub buffer: Option<u64>,
}

impl Question {
    /// Creates a question about a path; all other fields have their defaults.
    pub fn new(rtt: TimeSpan, rate: Rate, loss: Probability) -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            rtt,
            rate,
            loss,
            share: 0.95,
            mtu: Size(1500),
            message_size: None,
            queue: None,
            qdisc: discipline::DROP_TAIL.to_owned(),
            satellites: None,
            streams: STREAMS.to_vec(),
            profiles: names(PROFILES),
            congestion: TRIED.iter().map(|(it, _)| it.name.to_owned()).collect(),
            recovery: Vec::new(),
            left_out: Vec::new(),
            duration: None,
            begin: TimeSpan(0),
            scale: 1,
            seed: 1,
        }
    }

    /// Creates a question about a satellite path, with its median round-trip time.
    ///
    /// # Errors
    /// The errors of [`Satellites::rtt`].
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

    /// Returns a copy modified by `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Replaces omitted values by defaults, and checks the question.
    ///
    /// # Errors
    /// [`AdviseError::Question`], with the key, the value found, and the values allowed.
    pub fn checked(mut self) -> Result<Self, AdviseError> {
        self.path_makes_sense()?;
        let wrong =
            |key, found: String, allowed| Err(InvalidQuestion::new(key, found, allowed).into());
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
        let qdisc = std::slice::from_ref(&self.qdisc);
        let known: [(_, &[String], &[&str]); 4] = [
            ("profile", &self.profiles, Profile::NAMES),
            ("congestion", &self.congestion, &algorithms()),
            ("recovery", &self.recovery, &recovery::names()),
            ("qdisc", qdisc, &discipline::names()),
        ];
        for (key, names, known) in known {
            if names.is_empty() && key != "recovery" {
                return wrong(key, "none".to_owned(), "one name at least");
            }
            if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
                return Err(InvalidQuestion::unknown(key, name, known).into());
            }
        }
        self.leave_out_what_costs_too_much()?;
        Ok(self)
    }

    /// Omits default congestion controls that need the full-size path, if that is too large to
    /// simulate. If the question names such a congestion control, the question is rejected.
    fn leave_out_what_costs_too_much(&mut self) -> Result<(), InvalidQuestion> {
        let run = self.timing_of(self.least_measured()).end.seconds();
        let packets = run * self.rate.0 as f64 / 8.0 / self.mtu.0 as f64;
        if packets <= MAX_PACKETS {
            return Ok(());
        }
        let allowed = format!(
            "a path whose shortest run, {run:.1} s here, has at most {MAX_PACKETS} packets: what goes by the clock cannot be simulated smaller"
        );
        let path = format!("on a path of {packets:.0} packets in a run");
        if self.qdisc != discipline::DROP_TAIL {
            let found = format!("{:?} {path}", self.qdisc);
            return Err(InvalidQuestion::new("qdisc", found, &allowed));
        }
        let usual = self.is_usual();
        let (kept, left_out) = std::mem::take(&mut self.congestion)
            .into_iter()
            .partition(|name| keeps_its_shape(name));
        (self.congestion, self.left_out) = (kept, left_out);
        match (usual, self.left_out.first()) {
            (false, Some(name)) => Err(InvalidQuestion::new(
                "congestion",
                format!("{name:?} {path}"),
                &allowed,
            )),
            _ => Ok(()),
        }
    }

    /// Whether the congestion controls are the defaults.
    fn is_usual(&self) -> bool {
        let usual = TRIED.iter().map(|(algorithm, _)| algorithm.name);
        self.congestion.iter().eq(usual)
    }

    fn path_makes_sense(&self) -> Result<(), InvalidQuestion> {
        let wrong = |key, found: String, allowed| Err(InvalidQuestion::new(key, found, allowed));
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
        let message = self.message_size;
        if let Some(message) = message.filter(|it| !(1..=MAX_MESSAGE).contains(&it.0)) {
            return wrong("message_size", message.to_string(), "1 B to 64 KiB");
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

    /// Candidates in order of preference: all algorithms of the first profile, then those of the
    /// next.
    pub fn controls(&self) -> Vec<CandidateSender> {
        let mut controls = Vec::new();
        for profile in &self.profiles {
            for congestion in &self.congestion {
                let control = |recovery: String| CandidateSender {
                    profile: profile.clone(),
                    congestion: congestion.clone(),
                    recovery,
                };
                controls.extend(self.recoveries(congestion).into_iter().map(control));
            }
        }
        controls
    }

    /// Loss recoveries with which a congestion control is tested.
    fn recoveries(&self, congestion: &str) -> Vec<String> {
        if !self.recovery.is_empty() {
            let named = self.recovery.iter();
            let beside = named.map(|name| recovery::beside(congestion, name).to_owned());
            let mut all: Vec<String> = beside.collect();
            let mut seen = BTreeSet::new();
            all.retain(|name| seen.insert(name.clone()));
            return all;
        }
        let usual = self.is_usual() || !self.left_out.is_empty();
        let tried = TRIED.iter().find(|(it, _)| usual && it.name == congestion);
        let names = tried.map_or(&[STANDARD][..], |(_, recoveries)| recoveries);
        names.iter().map(|&name| name.to_owned()).collect()
    }

    /// Bandwidth-delay product: rate x round-trip time, bytes.
    pub fn bandwidth_delay(&self) -> u64 {
        let bits = u128::from(self.rate.0) * u128::from(self.rtt.0) / u128::from(SECOND);
        u64::try_from(bits / 8).unwrap_or(u64::MAX)
    }

    /// Time until link and queue are full, if the window starts at zero and grows by one packet per
    /// round trip.
    pub fn filling(&self) -> TimeSpan {
        let bytes = self.bandwidth_delay() + self.queue().bytes(self.mtu.0);
        TimeSpan((bytes / self.mtu.0).saturating_mul(self.rtt.0))
    }

    /// The link properties for queue disciplines.
    pub fn link(&self) -> discipline::LinkProperties {
        discipline::LinkProperties {
            rate: self.rate,
            mtu: self.mtu,
            queue: self.queue(),
        }
    }

    /// Capacity of the queue of the link.
    pub fn queue(&self) -> Capacity {
        self.queue.unwrap_or_else(|| {
            Capacity::Packets(self.bandwidth_delay().div_ceil(self.mtu.0).max(MIN_QUEUE))
        })
    }

    /// Factor by which a path can be scaled down if the window of its sender is about `window`
    /// packets.
    ///
    /// With large windows, the result depends on the change of the window from one round trip to
    /// the next. With additive increase and halving, the shape stays the same if rate, queue,
    /// buffers and windows are divided by k and the loss probability is multiplied by k^2. The
    /// reason is that the mean window of such a sender is proportional to 1/sqrt(p) (Mathis, Semke,
    /// Mahdavi, Ott 1997). A simulated second then has 1/k of the events, and k times as many
    /// losses. Windows stay at about `SMALL_WINDOW` packets and losses below `SCARCE`, so that
    /// timeouts are still rare.
    ///
    /// Only paths with drop-tail are scaled, because other disciplines depend on times, which do
    /// not scale.
    pub fn scale_for(&self, window: f64) -> u32 {
        if window <= LARGE_WINDOW || self.qdisc != discipline::DROP_TAIL {
            return 1;
        }
        let of_loss = match self.loss.0 {
            0.0 => f64::INFINITY,
            loss => (SCARCE / loss).sqrt(),
        };
        (window / SMALL_WINDOW).min(of_loss).max(1.0) as u32
    }

    /// Scale at which a candidate is simulated: that of the question, or 1 if the candidate cannot
    /// be scaled.
    pub fn scale_of(&self, control: &CandidateSender) -> u32 {
        match control.keeps_its_shape() {
            true => self.scale,
            false => 1,
        }
    }

    /// Scale for a single candidate whose window is about `window` packets.
    pub fn scale_alone(&self, control: &CandidateSender, window: f64) -> u32 {
        match control.keeps_its_shape() {
            true => self.scale_for(window),
            false => 1,
        }
    }

    /// Whether the path is deterministic, so that all runs are equal.
    pub fn is_certain(&self) -> bool {
        self.loss.0 == 0.0 && self.qdisc == discipline::DROP_TAIL
    }

    /// Rate of the simulated path.
    pub fn simulated_rate(&self) -> Rate {
        Rate(self.rate.0 / u64::from(self.scale))
    }

    /// Loss probability of the simulated path.
    pub fn simulated_loss(&self) -> Probability {
        Probability(self.loss.0 * f64::from(self.scale).powi(2))
    }

    /// Queue of the simulated path.
    pub fn simulated_queue(&self) -> Capacity {
        match self.queue() {
            Capacity::Packets(packets) => {
                Capacity::Packets((packets / u64::from(self.scale)).max(1))
            }
            other => {
                Capacity::Bytes((other.bytes(self.mtu.0) / u64::from(self.scale)).max(self.mtu.0))
            }
        }
    }

    /// Receive buffer on the simulated path. `None` (unlimited) becomes a buffer that never fills.
    pub fn simulated_buffer(&self, buffer: Option<u64>) -> Size {
        Size(buffer.map_or(grid::UNLIMITED, |buffer| buffer / u64::from(self.scale)))
    }

    /// Buffers to test, in ascending order, bytes.
    pub fn buffers(&self) -> Vec<u64> {
        grid::buffers(self.least_buffer() * u64::from(self.scale))
    }

    /// Size of the user data of a message, bytes.
    pub fn message_size(&self) -> u64 {
        self.message_size
            .map_or(self.mtu.0 - HEADERS, |message| message.0)
    }

    /// Smallest buffer that is tested, bytes: enough for a packet, a whole message, and the minimum
    /// of RFC 9260 §6 for receivers.
    pub fn least_buffer(&self) -> u64 {
        let chunks = self.message_size().div_ceil(self.mtu.0 - HEADERS);
        (self.message_size() + 16 * chunks)
            .max(self.mtu.0)
            .max(1500)
    }

    /// Minimum measured duration of a run: 50 round trips, between 1 s and 5 s. On a satellite path
    /// it is one minute.
    pub fn least_measured(&self) -> TimeSpan {
        match self.satellites {
            Some(_) => SATELLITES_MEASURED,
            None => TimeSpan((50 * self.rtt.0).clamp(SECOND, 5 * SECOND)),
        }
    }

    /// Maximum measured duration of a run without losses: 400 round trips, between 20 s and 400 s.
    pub fn most_measured(&self) -> TimeSpan {
        let most = TimeSpan((400 * self.rtt.0).clamp(20 * SECOND, 400 * SECOND));
        most.max(self.least_measured())
    }

    /// Start and end of the measurement. The warm-up lasts 20 round trips plus one second, for the
    /// handshake and the first slow start, or longer if [`Question::begin`] requires it.
    pub fn timing(&self) -> RunTimes {
        self.timing_of(self.duration.unwrap_or(self.most_measured()))
    }

    fn timing_of(&self, measured: TimeSpan) -> RunTimes {
        let whole = |nanos: u64| nanos.div_ceil(100 * MILLISECOND) * 100 * MILLISECOND;
        let begin = whole((SECOND + 20 * self.rtt.0).max(self.begin.0));
        RunTimes {
            begin: TimeSpan(begin),
            end: TimeSpan(begin + whole(measured.0)),
        }
    }
}

#[cfg(test)]
mod tests;
