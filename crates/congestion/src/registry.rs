//! The algorithms that a sender can run, by name, for SCTP and TCP alike.
//!
//! A new one is one new file, which declares an [`Algorithm`] beside its code, and one line in [`KINDS`]. A program adds its own
//! with [`add`], or hands it to a configuration directly.

use std::sync::{PoisonError, RwLock};

use anabranch_settings::{Choice, Datum, Kind, Value};

use crate::algorithm::{Algorithm, Protocol};
use crate::{
    bbr, bbr1, binomial, cmt_rp, cubic, dctcp, hybla, illinois, lia, olia, rsctp, sctp_newreno,
    tcp_newreno, vegas, veno, westwood,
};

/// Every algorithm, a protocol's own before those that build on it: one line for each.
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
];

/// What programs added.
static ADDED: RwLock<Vec<&'static Algorithm>> = RwLock::new(Vec::new());

/// Adds an algorithm of a program's own, for the whole process: specs and command lines that are read from now on can name
/// it. It takes the place of one of the same name.
pub fn add(algorithm: &'static Algorithm) {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    added.retain(|known| known.name != algorithm.name);
    added.push(algorithm);
}

/// The algorithms for a protocol, its own first.
pub fn all(protocol: Protocol) -> Vec<&'static Algorithm> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    let standing = KINDS
        .iter()
        .filter(|known| added.iter().all(|other| other.name != known.name));
    let fits = |known: &&Algorithm| known.only.is_none_or(|only| only == protocol);
    standing.chain(added.iter()).copied().filter(fits).collect()
}

/// The algorithm of that name for a protocol.
pub fn by_name(protocol: Protocol, name: &str) -> Option<&'static Algorithm> {
    all(protocol).into_iter().find(|known| known.name == name)
}

fn choices(protocol: Protocol) -> Vec<Choice> {
    let choice = |algorithm: &Algorithm| Choice {
        name: algorithm.name,
        about: algorithm.about,
    };
    all(protocol).into_iter().map(choice).collect()
}

/// The setting `congestion` of SCTP.
pub const SCTP: Kind = Kind::Registered(|| choices(Protocol::Sctp));
/// The setting `congestion` of TCP.
pub const TCP: Kind = Kind::Registered(|| choices(Protocol::Tcp));

impl Value for &'static Algorithm {
    /// A protocol's declaration says which of them it takes: [`SCTP`], [`TCP`].
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
        // A program may use what no registry has.
        matches!(kind, Kind::Registered(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Base, Needs};
    use crate::sctp_newreno::{SctpNewReno, SctpParameters};
    use crate::tcp_newreno::{Growth, HalvingBasis, TcpNewReno, TcpNewRenoConfig};
    use crate::tuning::Tuning;

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
                let made = (algorithm.make)(base, &Tuning::default());
                assert_eq!((made.name(), made.cwnd()), (algorithm.name, window));
                assert!(!algorithm.about.is_empty());
            }
        }
    }

    #[test]
    fn a_program_adds_its_own_for_both_protocols() {
        static OWN: Algorithm = Algorithm {
            name: "own",
            about: "the protocol's, under another name",
            only: None,
            needs: Needs::Nothing,
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
    }
}
