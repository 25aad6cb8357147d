//! How a sender finds and repairs losses: beside the standard's way, switches that this stack has.

use anabranch_sctp::Config;

/// A loss recovery that a question can name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937).
    pub rack: bool,
    /// The factor of the setting `pacing`.
    pub pacing: Option<f64>,
}

/// What the standard says, which every stack has.
pub const STANDARD: &str = "standard";
/// Losses found by time.
const RACK: &str = "rack";

/// Every loss recovery: one line for each.
pub const RECOVERIES: &[Recovery] = &[
    Recovery {
        name: STANDARD,
        about: "fast retransmit and timeout of RFC 9260",
        rack: false,
        pacing: None,
    },
    Recovery {
        name: RACK,
        about: "RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937)",
        rack: true,
        pacing: None,
    },
    Recovery {
        name: "paced",
        about: "the same, and packets paced at 1.25 times cwnd per round trip (RFC 9002 §7.7)",
        rack: true,
        pacing: Some(1.25),
    },
];

/// Their names.
pub fn names() -> Vec<&'static str> {
    RECOVERIES.iter().map(|it| it.name).collect()
}

/// The one of that name; the standard's where there is none.
pub fn by_name(name: &str) -> Recovery {
    let mut all = RECOVERIES.iter();
    *all.find(|it| it.name == name).unwrap_or(&RECOVERIES[0])
}

/// The recovery of that name beside a congestion control: one that has a pace of its own leaves nothing of `paced` but the rest.
pub fn beside<'a>(congestion: &str, name: &'a str) -> &'a str {
    let mut config = Config::default().with(|it| it.pacing = by_name(name).pacing);
    let is_known = config.set("congestion", congestion).is_ok();
    match is_known && config.check_partners().is_err() {
        true => RACK,
        false => name,
    }
}

/// With which recoveries a congestion control is tried where a question names neither. The standard's own has both kinds, which shows
/// what the recovery alone brings; CUBIC and BBR were made for stacks that have RACK-TLP.
pub fn usual(congestion: &str) -> &'static [&'static str] {
    match congestion {
        "sctp" => &[STANDARD, RACK],
        "cubic" | "bbr" => &[RACK],
        _ => &[STANDARD],
    }
}

/// Its settings as a user writes them; none for the standard's.
pub fn knobs(name: &str) -> Option<String> {
    let recovery = by_name(name);
    let pacing = recovery
        .pacing
        .map_or(String::new(), |factor| format!(", pacing = {factor}"));
    let rack = "rack = true, proportional_rate_reduction = true";
    recovery
        .rack
        .then(|| format!("{rack}{pacing} at the sender"))
}
