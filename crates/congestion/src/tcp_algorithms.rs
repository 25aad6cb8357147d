//! The algorithms a TCP connection can run, by name. A new one is one new file and one line in [`ALGORITHMS`].

use anabranch_settings::{Choice, Datum, Kind, Value};

use crate::CongestionControl;
use crate::binomial::Binomial;
use crate::tcp_newreno::{TcpNewReno, TcpNewRenoConfig};
use crate::tuning::Tuning;
use crate::westwood::Westwood;

/// Makes a controller for a new connection.
pub type Factory = fn(&TcpNewRenoConfig, &Tuning) -> Box<dyn CongestionControl>;

/// Name in specs, one line of what it is, and how to make it.
#[derive(Clone, Copy, Debug)]
pub struct Algorithm {
    /// The name in specs and reports.
    pub name: &'static str,
    /// What it is and where it comes from.
    pub about: &'static str,
    /// Makes a controller.
    pub make: Factory,
}

impl PartialEq for Algorithm {
    /// Names are unique.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Every algorithm that a TCP connection can run.
pub const ALGORITHMS: &[Algorithm] = &[
    Algorithm {
        name: "newreno",
        about: "slow start, congestion avoidance and halving (RFC 5681)",
        make: |config, _| Box::new(TcpNewReno::new(*config)),
    },
    Algorithm {
        name: "westwood",
        about: "growth as `newreno`; a loss sets ssthresh to rate x RTTmin (Westwood+, Grieco and Mascolo 2004)",
        make: |config, tuning| {
            Box::new(Westwood::new(
                TcpNewReno::new(*config),
                tuning.westwood_rate,
            ))
        },
    },
    Algorithm {
        name: "binomial",
        about: "+alpha/cwnd^k a round trip, -beta cwnd^l a loss (Bansal and Balakrishnan 2001)",
        make: |config, tuning| Box::new(Binomial::new(TcpNewReno::new(*config), tuning.binomial)),
    },
];

/// The algorithm of that name.
pub fn by_name(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
}

/// The names and lines of [`ALGORITHMS`], for settings.
fn choices() -> Vec<Choice> {
    let choice = |algorithm: &Algorithm| Choice {
        name: algorithm.name,
        about: algorithm.about,
    };
    ALGORITHMS.iter().map(choice).collect()
}

impl Value for &'static Algorithm {
    const KIND: Kind = Kind::Registered(choices);

    fn from_datum(datum: &Datum) -> Option<Self> {
        by_name(datum.text()?)
    }

    fn to_datum(&self) -> Datum {
        Datum::word(self.name)
    }
}
