//! Addresses with a time: `192.0.2.1@5s`.

use std::net::IpAddr;
use std::str::FromStr;

use anabranch_scenario::quantity::TimeSpan;

/// An address of the host, and the time at which it is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedAddress {
    pub address: IpAddr,
    /// Time after the establishment of the association.
    pub at: TimeSpan,
}

impl FromStr for TimedAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, at) = text.split_once('@').unwrap_or((text, "0"));
        let Ok(address) = address.parse() else {
            return Err(format!(
                "found {address:?}; write an IP address, and a time if it is not at once: 192.0.2.1 or 192.0.2.1@5s"
            ));
        };
        let at = seconds_or_none(at)?;
        Ok(Self { address, at })
    }
}

/// Parses a time, which may be 0; a number without a unit is in seconds.
pub(super) fn seconds_or_none(text: &str) -> Result<TimeSpan, String> {
    let bare = text.trim().parse::<f64>().is_ok();
    let span: TimeSpan = if bare {
        format!("{} s", text.trim()).parse()?
    } else {
        text.parse()?
    };
    Ok(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_time_or_none() {
        let address = [192, 0, 2, 1].into();
        let at = |text: &str| text.parse::<TimedAddress>().map(|it| (it.address, it.at));
        assert_eq!(at("192.0.2.1"), Ok((address, TimeSpan(0))));
        assert_eq!(at("192.0.2.1@5"), Ok((address, TimeSpan(5_000_000_000))));
        assert_eq!(at("192.0.2.1@20 ms"), Ok((address, TimeSpan(20_000_000))));
        for wrong in [
            "",
            "host",
            "192.0.2.1@",
            "192.0.2.1@soon",
            "@5",
            "192.0.2.1:5001",
        ] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }
}
