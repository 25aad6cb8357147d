//! Loss recovery variants of a sender: the standard one, and those that settings of this stack
//! enable.

use anabranch_sctp::Config;

/// A loss recovery that a question may name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Recovery {
    /// Name of the variant.
    pub name: &'static str,
    /// Description for the user.
    pub about: &'static str,
    /// Whether RACK-TLP (RFC 8985) and proportional rate reduction (RFC 6937) are used.
    pub rack: bool,
    /// Value of the setting `pacing`.
    pub pacing: Option<f64>,
}

/// The standard recovery, which every stack has.
pub const STANDARD: &str = "standard";
/// Name of the variant with time-based loss detection.
pub const RACK: &str = "rack";

/// All loss recoveries.
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

/// Names of all recoveries.
pub fn names() -> Vec<&'static str> {
    RECOVERIES.iter().map(|it| it.name).collect()
}

/// The recovery with this name, or the standard recovery if there is none.
pub fn by_name(name: &str) -> Recovery {
    let mut all = RECOVERIES.iter();
    *all.find(|it| it.name == name).unwrap_or(&RECOVERIES[0])
}

/// The name of the recovery as it takes effect with a congestion control: for an algorithm that
/// paces itself, `paced` becomes `rack`.
pub fn beside<'a>(congestion: &str, name: &'a str) -> &'a str {
    let mut config = Config::default().with(|it| it.pacing = by_name(name).pacing);
    let is_known = config.set("congestion", congestion).is_ok();
    match is_known && config.check_partners().is_err() {
        true => RACK,
        false => name,
    }
}

/// The settings that enable the recovery, as a user would write them; `None` for the standard
/// recovery.
pub fn settings(name: &str) -> Option<String> {
    let recovery = by_name(name);
    let pacing = recovery
        .pacing
        .map_or(String::new(), |factor| format!(", pacing = {factor}"));
    let rack = "rack = true, proportional_rate_reduction = true";
    recovery
        .rack
        .then(|| format!("{rack}{pacing} at the sender"))
}
