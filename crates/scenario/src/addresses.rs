//! Interface addresses in a spec, and the IP version of a flow.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// IP version of a flow's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IpVersion {
    /// IPv4, with a header of 20 bytes.
    #[default]
    Ipv4,
    /// IPv6, with a header of 40 bytes.
    Ipv6,
}

/// Addresses of an interface: at least one, and at most one of each IP version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address.
    pub v6: Option<Ipv6Addr>,
}

impl Addresses {
    /// The addresses that are set, IPv4 first.
    pub fn iter(self) -> impl Iterator<Item = IpAddr> {
        let v4 = self.v4.map(IpAddr::from);
        v4.into_iter().chain(self.v6.map(IpAddr::from))
    }
}

impl FromStr for Addresses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut addresses = Self { v4: None, v6: None };
        for part in text.split(',') {
            let address: IpAddr = part.trim().parse().map_err(|_| {
                format!(
                    "found {text:?}; write an address as \"192.0.2.1\" or \"2001:db8::1\", or one of each with a comma between"
                )
            })?;
            if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
                return Err(format!("found {address}, which no interface can have"));
            }
            let second = match address {
                IpAddr::V4(address) => addresses.v4.replace(address).is_some(),
                IpAddr::V6(address) => addresses.v6.replace(address).is_some(),
            };
            if second {
                return Err(format!(
                    "found {text:?}; an interface has one address of each IP version"
                ));
            }
        }
        Ok(addresses)
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, address) in self.iter().enumerate() {
            write!(f, "{}{address}", if place == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Addresses {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Addresses;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an address in quotes, such as \"192.0.2.1\" or \"2001:db8::1\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Addresses, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl Serialize for Addresses {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Addresses {
    fn schema_name() -> Cow<'static, str> {
        "Addresses".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "an IPv4 address, an IPv6 address, or one of each with a comma between",
            "examples": ["192.0.2.1", "2001:db8::1", "192.0.2.1, 2001:db8::1"],
            "pattern": "^[0-9a-fA-F.:]+( *, *[0-9a-fA-F.:]+)?$"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_has_an_address_of_each_version_at_most() {
        let read = |text: &str| text.parse::<Addresses>();
        for (text, shown) in [
            ("192.0.2.1", "192.0.2.1"),
            ("2001:DB8::1", "2001:db8::1"),
            ("2001:db8::1,192.0.2.1", "192.0.2.1, 2001:db8::1"),
        ] {
            assert_eq!(
                read(text).map(|read| read.to_string()),
                Ok(shown.to_owned())
            );
        }
        for wrong in ["", "192.0.2", "192.0.2.1/24", "192.0.2.1 192.0.2.2", "wire"] {
            assert!(
                read(wrong).is_err_and(|message| message.contains("write an address")),
                "{wrong}"
            );
        }
        for wrong in ["0.0.0.0", "::", "224.0.0.1", "::1", "192.0.2.1, 192.0.2.2"] {
            assert!(
                read(wrong).is_err_and(|message| message.contains("interface")),
                "{wrong}"
            );
        }
    }
}
