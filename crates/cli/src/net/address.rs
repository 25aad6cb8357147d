//! Parsing of IP addresses and DSCPs on the command line.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// Reads an IP address.
pub fn ip(text: &str) -> Result<IpAddr, String> {
    text.parse()
        .map_err(|_| format!("found {text:?}; write an IP address: 192.0.2.1 or 2001:db8::1"))
}

/// Reads an IP address and a port.
pub fn with_port(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!(
            "found {text:?}; write an IP address and a port: 192.0.2.1:9899 or [2001:db8::1]:9899"
        )
    })
}

/// An IP address with the zone of a link-local one (RFC 4007 §11): `fe80::1%eth0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopedAddr {
    pub address: IpAddr,
    /// The interface index of the zone.
    pub zone: Option<u32>,
}

impl FromStr for ScopedAddr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, zone) = match text.split_once('%') {
            Some((address, zone)) => (address, Some(zone)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(format!(
                "found {text:?}; write an IP address: 192.0.2.1, 2001:db8::1 or fe80::1%eth0"
            ));
        };
        let bare = Self {
            address,
            zone: None,
        };
        let Some(name) = zone else { return Ok(bare) };
        if !bare.is_link_local() {
            return Err(format!(
                "found zone {name:?} at {address}; only link-local addresses (fe80::/10) have a zone"
            ));
        }
        let index = name.parse().ok().filter(|&index| index > 0);
        let index = index.or_else(|| nix::net::if_::if_nametoindex(name).ok());
        match index {
            Some(index) => Ok(Self {
                address,
                zone: Some(index),
            }),
            None => Err(format!(
                "found zone {name:?}; no interface has that name (`ip link` lists them)"
            )),
        }
    }
}

impl ScopedAddr {
    /// Returns true if the address is valid only on one link, so that the interface must be
    /// specified (RFC 4007 §6).
    pub fn is_link_local(&self) -> bool {
        matches!(self.address, IpAddr::V6(v6) if v6.is_unicast_link_local())
    }
}

/// The zone that the local addresses and those of the peer have in common.
///
/// # Errors
/// The addresses have two different zones, or a link-local address has no zone.
pub fn zone(all: impl IntoIterator<Item = ScopedAddr> + Clone) -> Result<Option<u32>, String> {
    let found = one_zone(all.clone())?;
    let lacks = all.into_iter().find(ScopedAddr::is_link_local);
    match (found, lacks) {
        (None, Some(ScopedAddr { address, .. })) => Err(format!(
            "found {address}, which is link-local, without its interface; write it behind the address: {address}%eth0"
        )),
        _ => Ok(found),
    }
}

/// The zone of these addresses, if any has one.
///
/// # Errors
/// The addresses have two different zones.
pub fn one_zone(all: impl IntoIterator<Item = ScopedAddr>) -> Result<Option<u32>, String> {
    let mut found = None;
    for zone in all.into_iter().filter_map(|it| it.zone) {
        if found.is_some_and(|before| before != zone) {
            return Err(
                "found link-local addresses of two interfaces; all must be of the same interface"
                    .to_owned(),
            );
        }
        found = Some(zone);
    }
    Ok(found)
}

/// Names of DSCPs: RFC 2474 §4.2.2, RFC 2597 §6, RFC 3246, RFC 5865, RFC 8622.
const NAMED: &[(&str, u8)] = &[
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("ef", 46),
    ("va", 44),
    ("le", 1),
];

/// Parses a DSCP: a number or a name.
pub fn dscp(text: &str) -> Result<u8, String> {
    let named = NAMED
        .iter()
        .find(|(name, _)| text.eq_ignore_ascii_case(name));
    let number = || text.parse().ok().filter(|&number: &u8| number < 64);
    named
        .map(|&(_, point)| point)
        .or_else(number)
        .ok_or_else(|| {
            format!(
                "found {text:?}; write 0 to 63, or a name: ef, af11 to af43, cs0 to cs7, va, le"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_are_numbers_or_names() {
        assert_eq!(dscp("46"), Ok(46));
        assert_eq!(dscp("EF"), Ok(46));
        assert_eq!(dscp("af41"), Ok(34));
        assert!(dscp("64").is_err() && dscp("af44").is_err() && dscp("").is_err());
    }

    #[test]
    fn a_zone_belongs_to_a_link_local_address() {
        let plain: ScopedAddr = "192.0.2.1".parse().expect("an address");
        assert_eq!((plain.address, plain.zone), ([192, 0, 2, 1].into(), None));
        let zoned: ScopedAddr = "fe80::1%3".parse().expect("an address");
        assert_eq!(zoned.zone, Some(3));
        for text in [
            "fe80::1%",
            "fe80::1%0",
            "fe80::1%no-such-link",
            "192.0.2.1%3",
            "%3",
            "here",
        ] {
            assert!(text.parse::<ScopedAddr>().is_err(), "{text}");
        }
        let other = "fe80::2%4".parse().expect("an address");
        assert_eq!(one_zone([plain, zoned]), Ok(Some(3)));
        assert!(one_zone([zoned, other]).is_err());
        // The zone of one end suffices for both. Without any zone no packet could be sent to a
        // link-local address.
        let bare: ScopedAddr = "fe80::3".parse().expect("an address");
        assert_eq!(zone([bare, zoned]), Ok(Some(3)));
        assert_eq!(zone([plain]), Ok(None));
        let error = zone([plain, bare]).expect_err("no interface");
        assert!(error.contains("fe80::3%eth0"), "{error}");
    }
}
