//! Registry of the congestion control algorithms for SCTP and TCP, by name.
//!
//! To add an algorithm, write one file that declares an [`Algorithm`], and add one line to
//! [`KINDS`]. A program adds algorithms with [`add`], or passes them to a configuration directly.

use std::sync::OnceLock;

use anabranch_settings::{Choice, Datum, Kind, SettingValue};

use crate::algorithm::{Algorithm, Property, Protocol};
use crate::{
    bbr, bbr1, binomial, cmt_rp, cubic, dctcp, hybla, illinois, lia, olia, prague, rsctp,
    sctp_newreno, tcp_newreno, vegas, veno, westwood,
};

/// All algorithms of this project. Those of the protocols are before those that build on them.
pub const KINDS: &[&Algorithm] = &[
    &sctp_newreno::ALGORITHM,
    &tcp_newreno::ALGORITHM,
    &cubic::ALGORITHM,
    &bbr::ALGORITHM,
    &bbr1::ALGORITHM,
    &vegas::ALGORITHM,
    &veno::ALGORITHM,
    &hybla::ALGORITHM,
    &illinois::ALGORITHM,
    &westwood::ALGORITHM,
    &binomial::ALGORITHM,
    &rsctp::ALGORITHM,
    &cmt_rp::ALGORITHM,
    &lia::ALGORITHM,
    &olia::ALGORITHM,
    &dctcp::ALGORITHM,
    &prague::ALGORITHM,
];

/// Algorithms added by programs, in a linked list that only grows, so that readers need no lock.
static ADDED: OnceLock<Box<Added>> = OnceLock::new();

#[derive(Debug)]
struct Added {
    algorithm: &'static Algorithm,
    next: OnceLock<Box<Self>>,
}

/// The added algorithms, without those that a later one with the same name replaces.
fn added() -> Vec<&'static Algorithm> {
    let mut all: Vec<&'static Algorithm> = Vec::new();
    let mut place = &ADDED;
    while let Some(added) = place.get() {
        all.retain(|known| known.name != added.algorithm.name);
        all.push(added.algorithm);
        place = &added.next;
    }
    all
}

/// Adds an algorithm of a program for the whole process. Specs and command lines that are read
/// later can name it. It replaces an algorithm with the same name. Adding the same algorithm again
/// has no effect.
pub fn add(algorithm: &'static Algorithm) {
    // Entries are never removed, and a program may add its algorithm before each run, so duplicates
    // are not added.
    if added().iter().any(|known| std::ptr::eq(*known, algorithm)) {
        return;
    }
    let next = OnceLock::new();
    let mut last = Box::new(Added { algorithm, next });
    let mut place = &ADDED;
    // If another thread has added an algorithm at the same time, the new entry is appended after
    // that one.
    while let Err(refused) = place.set(last) {
        last = refused;
        match place.get() {
            Some(added) => place = &added.next,
            None => return,
        }
    }
}

/// All algorithms for a protocol, with the protocol's own first.
pub fn all(protocol: Protocol) -> Vec<&'static Algorithm> {
    let added = added();
    let standing = KINDS
        .iter()
        .filter(|known| added.iter().all(|other| other.name != known.name));
    let fits = |known: &&Algorithm| known.only.is_none_or(|only| only == protocol);
    standing
        .copied()
        .chain(added.iter().copied())
        .filter(fits)
        .collect()
}

/// The algorithm named `name` for a protocol.
pub fn by_name(protocol: Protocol, name: &str) -> Option<&'static Algorithm> {
    all(protocol).into_iter().find(|known| known.name == name)
}

/// Names of the algorithms of any protocol that have one of these properties. Those with the first
/// property are first.
fn with_any(properties: &[Property]) -> Vec<&'static str> {
    let algorithms = || [Protocol::Sctp, Protocol::Tcp].into_iter().flat_map(all);
    let mut names: Vec<&str> = Vec::new();
    for property in properties {
        for algorithm in algorithms().filter(|it| it.has(*property)) {
            if !names.contains(&algorithm.name) {
                names.push(algorithm.name);
            }
        }
    }
    names
}

/// Declares the lists of algorithms that settings require, or with which settings have no effect.
macro_rules! lists {
    ($($(#[$doc:meta])+ $name:ident: $($property:ident)|+;)+) => {$(
        $(#[$doc])+
        pub fn $name() -> Vec<&'static str> {
            with_any(&[$(Property::$property),+])
        }
    )+};
}

lists! {
    /// Algorithms that compute a pacing rate.
    paces_itself: PacesItself;
    /// Algorithms that need rate samples.
    needs_rate_samples: NeedsRateSamples;
    /// Algorithms that determine the window without the protocol's rules.
    own_window: OwnWindow;
    /// Algorithms with a separate rule for the end of slow start.
    own_slow_start_exit: OwnSlowStartExit | OwnWindow;
    /// Algorithms that do not use the byte counter for the increase in congestion avoidance.
    own_increase: OwnIncrease | OwnWindow;
    /// Algorithms whose response to a loss includes a separate minimum window.
    own_floor: OwnFloor | OwnWindow;
    /// Algorithms with a separate rule for a window that is not fully used.
    own_unused_window: OwnWindow | OwnUnusedWindow;
}

fn choices(protocol: Protocol) -> Vec<Choice> {
    let choice = |algorithm: &Algorithm| Choice {
        name: algorithm.name,
        about: algorithm.about,
    };
    all(protocol).into_iter().map(choice).collect()
}

/// Value kind of the setting `congestion` of SCTP.
pub const SCTP: Kind = Kind::Registered(|| choices(Protocol::Sctp));
/// Value kind of the setting `congestion` of TCP.
pub const TCP: Kind = Kind::Registered(|| choices(Protocol::Tcp));

impl SettingValue for &'static Algorithm {
    /// A placeholder: the declaration of each protocol specifies [`SCTP`] or [`TCP`].
    const KIND: Kind = Kind::Registered(|| choices(Protocol::Sctp));

    fn from_datum(datum: &Datum) -> Option<Self> {
        let name = datum.text()?;
        by_name(Protocol::Sctp, name).or_else(|| by_name(Protocol::Tcp, name))
    }

    fn to_datum(&self) -> Datum {
        Datum::word(self.name)
    }

    #[inline]
    fn plainly_fits(&self, kind: &Kind) -> bool {
        // Accepted even if it is not in the registry, because a program may use its own algorithm.
        matches!(kind, Kind::Registered(_))
    }
}

#[cfg(test)]
mod tests {
    use anabranch_transport::Nanos;
    use anabranch_transport::time::SECOND;

    use super::*;
    use crate::algorithm::{Base, Requirement};
    use crate::parameters::AlgorithmParameters;
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};
    use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};
    use crate::{AckSample, CongestionControl, LossCause, RateSample};

    const CONFIG: TcpNewRenoConfig = TcpNewRenoConfig {
        segment: 1460,
        initial_window: 3.0,
        initial_ssthresh: f64::INFINITY,
        restart_window: None,
        growth: Growth::PerAck,
        halving_basis: HalvingBasis::FlightSize,
        integer_halving: false,
        cwnd_floor: true,
        whole_segments: false,
    };

    fn names(protocol: Protocol) -> Vec<&'static str> {
        all(protocol).iter().map(|known| known.name).collect()
    }

    #[test]
    fn each_protocol_begins_with_its_own() {
        assert_eq!(names(Protocol::Sctp)[..2], ["sctp", "cubic"]);
        assert_eq!(names(Protocol::Tcp)[..2], ["newreno", "cubic"]);
    }

    #[test]
    fn every_algorithm_is_made_under_its_own_name() {
        for protocol in [Protocol::Sctp, Protocol::Tcp] {
            let fits = |known: &&&Algorithm| known.only.is_none_or(|only| only == protocol);
            for algorithm in KINDS.iter().filter(fits) {
                let base: Base = match protocol {
                    Protocol::Sctp => Box::new(SctpNewReno::new(SctpParameters::default())),
                    Protocol::Tcp => Box::new(TcpNewReno::new(CONFIG)),
                };
                let window = base.cwnd();
                let made = (algorithm.make)(base, &AlgorithmParameters::default());
                assert_eq!((made.name(), made.cwnd()), (algorithm.name, window));
                assert!(!algorithm.about.is_empty());
            }
        }
    }

    /// Checks that the declared properties match the behaviour of the controllers.
    #[test]
    fn properties_are_those_of_the_controllers() {
        for algorithm in KINDS {
            let base: Base = match algorithm.only {
                Some(Protocol::Tcp) => Box::new(TcpNewReno::new(CONFIG)),
                _ => Box::new(SctpNewReno::new(SctpParameters::default())),
            };
            let mut control = (algorithm.make)(base, &AlgorithmParameters::default());
            let samples = control.wants_rate_samples();
            assert_eq!(
                samples,
                algorithm.has(Property::NeedsRateSamples),
                "{algorithm:?}"
            );
            let mut state = 7_u64;
            let mut draw = |below: u64| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 33) % below
            };
            for step in 1..100 {
                happen(&mut *control, step * SECOND / 10, &mut draw);
            }
            let paces = control.pacing_rate().is_some();
            assert_eq!(paces, algorithm.has(Property::PacesItself), "{algorithm:?}");
        }
        assert_eq!(paces_itself(), ["bbr", "bbr1"]);
        let floors = ["cubic", "illinois", "binomial", "bbr", "bbr1"];
        assert_eq!(own_floor(), floors);
    }

    /// Calls the controller with a random event, often with few or no bytes in flight.
    fn happen(control: &mut dyn CongestionControl, now: Nanos, draw: &mut impl FnMut(u64) -> u64) {
        let flight = [0, 1, draw(3_000), draw(100_000)][draw(4) as usize];
        let acked = 1 + draw(20_000);
        let cause = match draw(2) {
            0 => LossCause::Timeout,
            _ => LossCause::FastRetransmit,
        };
        match draw(8) {
            0 => control.on_loss(now, cause, flight),
            1 => control.on_ecn(now, flight),
            2 => control.on_idle(now, draw(100) * SECOND, SECOND),
            3 => control.on_mtu(500 + draw(9_000)),
            4 => control.on_sent(now, acked, flight + acked),
            _ => control.on_ack(&AckSample {
                now,
                bytes_acked: acked,
                segments_acked: 1 + draw(3) as u32,
                cumulative_advanced: draw(2) == 0,
                flightsize_before: flight + acked,
                flightsize_after: flight,
                in_recovery: draw(4) == 0,
                rtt: (draw(2) == 0).then(|| 1 + draw(SECOND)),
                latest_rtt: (draw(2) == 0).then(|| 1 + draw(SECOND)),
                srtt: (draw(4) > 0).then(|| 1 + draw(SECOND)),
                rate: control.wants_rate_samples().then(|| RateSample {
                    rate: draw(10_000) as f64,
                    delivered: acked,
                    total_delivered: acked,
                    tx_in_flight: flight,
                    newly_acked: acked,
                    ..RateSample::default()
                }),
                ..AckSample::default()
            }),
        }
    }

    /// The window and the pacing rate must never be 0, because the sender would then never send
    /// again.
    #[test]
    fn no_window_and_no_pace_ever_closes() {
        for protocol in [Protocol::Sctp, Protocol::Tcp] {
            let fits = |known: &&&Algorithm| known.only.is_none_or(|only| only == protocol);
            for (algorithm, seed) in KINDS
                .iter()
                .filter(fits)
                .flat_map(|it| (0..200).map(move |seed| (it, seed)))
            {
                let base: Base = match protocol {
                    Protocol::Sctp => Box::new(SctpNewReno::new(SctpParameters::default())),
                    Protocol::Tcp => Box::new(TcpNewReno::new(CONFIG)),
                };
                let mut control = (algorithm.make)(base, &AlgorithmParameters::default());
                let mut state: u64 = seed ^ 0x9E37_79B9_7F4A_7C15;
                let mut draw = |below: u64| {
                    state = state
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    (state >> 33) % below
                };
                for step in 1..200 {
                    happen(&mut *control, step * SECOND / 10, &mut draw);
                    let (name, cwnd, rate) =
                        (algorithm.name, control.cwnd(), control.pacing_rate());
                    assert!(cwnd > 0, "{name}: no window, seed {seed}, step {step}");
                    assert!(
                        rate.is_none_or(|it| it > 0.0),
                        "{name}: no pace, seed {seed}, step {step}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_program_adds_its_own_for_both_protocols() {
        static OWN: Algorithm = Algorithm {
            name: "own",
            about: "the protocol's, under another name",
            only: None,
            needs: Requirement::Nothing,
            properties: &[],
            make: &|base, _| base,
        };
        add(&OWN);
        add(&OWN);
        for protocol in [Protocol::Sctp, Protocol::Tcp] {
            assert_eq!(by_name(protocol, "own"), Some(&OWN));
            let count = names(protocol)
                .iter()
                .filter(|&&name| name == "own")
                .count();
            assert_eq!(count, 1);
        }
        assert_eq!(by_name(Protocol::Tcp, "rsctp"), None);
        let (mut entries, mut place) = (0, &ADDED);
        while let Some(entry) = place.get() {
            entries += usize::from(entry.algorithm.name == "own");
            place = &entry.next;
        }
        assert_eq!(entries, 1, "the list does not grow");
    }
}
