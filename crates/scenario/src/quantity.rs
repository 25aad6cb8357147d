//! Values with units (`"2 Mbit/s"`, `"250 ms"`, `"64 KiB"`, `"10 packets"`), and plain numbers with
//! bounds.

use std::borrow::Cow;
use std::fmt;

use anabranch_settings::counted;
use anabranch_settings::quantity::{parse, whole};
use anabranch_settings::units::{
    self, FREQUENCY, LENGTH, PACKETS, POWER, RATE, SEGMENTS, SIZE, TIME, pattern,
};
use anabranch_transport::{Nanos, time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// Implements deserialization from text by a function `fn(&str) -> Result<Self, String>`.
macro_rules! from_text {
    ($name:ident, $what:literal, $example:literal, $units:expr) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str(concat!($what, " with its unit, such as \"", $example, "\""))
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$name, E> {
                        $name::parse(text).map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": concat!($what, " with its unit"), "examples": [$example], "pattern": pattern($units) })
            }
        }

        impl std::str::FromStr for $name {
            type Err = String;
            fn from_str(text: &str) -> Result<Self, String> {
                $name::parse(text)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}

/// A time, or a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeSpan(
    /// The time, nanoseconds.
    pub Nanos,
);

impl TimeSpan {
    fn parse(text: &str) -> Result<Self, String> {
        whole(text, "a time", "250 ms", &[TIME]).map(|ns| TimeSpan(ns.number))
    }

    /// The time in seconds.
    pub fn seconds(self) -> f64 {
        time::seconds(self.0)
    }
}

impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&units::show_time(self.0))
    }
}

from_text!(TimeSpan, "a time", "250 ms", &[TIME]);

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(
    /// The rate, bits per second, above 0.
    pub u64,
);

impl Rate {
    fn parse(text: &str) -> Result<Self, String> {
        let bits = whole(text, "a rate", "2 Mbit/s", &[RATE])?.number;
        if bits < 1 {
            return Err(format!("found {text:?}; a rate must be above 0"));
        }
        Ok(Rate(bits))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bits if bits % 1_000_000 == 0 => write!(f, "{} Mbit/s", bits / 1_000_000),
            bits if bits % 1_000 == 0 => write!(f, "{} kbit/s", bits / 1_000),
            bits => write!(f, "{bits} bit/s"),
        }
    }
}

from_text!(Rate, "a rate", "2 Mbit/s", &[RATE]);

/// A size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(
    /// The size, bytes.
    pub u64,
);

impl Size {
    fn parse(text: &str) -> Result<Self, String> {
        whole(text, "a size", "1448 B", &[SIZE]).map(|bytes| Size(bytes.number))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes > 0 && bytes % 1024 == 0 => write!(f, "{} KiB", bytes / 1024),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

from_text!(Size, "a size", "1448 B", &[SIZE]);

/// Capacity of a queue or a window, in packets, segments or bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// A number of packets of any size.
    Packets(u64),
    /// A number of full segments (or chunks) of the flow.
    Segments(u64),
    /// A number of bytes.
    Bytes(u64),
}

impl Capacity {
    fn parse(text: &str) -> Result<Self, String> {
        let found = whole(text, "an amount", "10 packets", &[PACKETS, SEGMENTS, SIZE])?;
        if !found.exact {
            return Err(format!(
                "found {text:?}; only a whole number of {} makes sense",
                found.unit
            ));
        }
        Ok(match found.unit.chars().next() {
            Some('p') => Capacity::Packets(found.number),
            Some('s') => Capacity::Segments(found.number),
            _ => Capacity::Bytes(found.number),
        })
    }

    /// The amount in bytes, for segments of `segment` bytes.
    pub fn bytes(self, segment: u64) -> u64 {
        match self {
            Capacity::Packets(n) | Capacity::Segments(n) => n.saturating_mul(segment),
            Capacity::Bytes(n) => n,
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Capacity::Packets(n) => f.write_str(&counted(*n, "packet")),
            Capacity::Segments(n) => f.write_str(&counted(*n, "segment")),
            Capacity::Bytes(n) => Size(*n).fmt(f),
        }
    }
}

from_text!(
    Capacity,
    "an amount",
    "10 packets",
    &[PACKETS, SEGMENTS, SIZE]
);

/// Implements a quantity that is a non-negative real number and is written in its base unit.
macro_rules! real_quantity {
    ($(#[doc = $doc:literal])+ $name:ident, $base:literal, $what:literal, $example:literal, $units:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $name(
            #[doc = concat!("In ", $base, ", not negative.")]
            pub f64,
        );

        impl $name {
            fn parse(text: &str) -> Result<Self, String> {
                parse(text, $what, $example, &[$units]).map(|(number, _)| $name(number))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{:e} ", $base), self.0)
            }
        }

        from_text!($name, $what, $example, &[$units]);
    };
}

real_quantity!(
    /// A length in metres.
    Length, "m", "a length", "80 m", LENGTH
);
real_quantity!(
    /// A power in watts.
    Power, "W", "a power", "100 mW", POWER
);
real_quantity!(
    /// A frequency in hertz.
    Frequency, "Hz", "a frequency", "2.437 GHz", FREQUENCY
);

/// A probability, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Probability(#[schemars(range(min = 0.0, max = 1.0))] pub f64);

impl Probability {
    /// The probability 1.
    pub fn certain() -> Self {
        Probability(1.0)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if !(0.0..=1.0).contains(&value) {
            return Err(de::Error::custom(format!(
                "found {value}; a probability lies between 0 and 1"
            )));
        }
        Ok(Probability(value))
    }
}

/// Number of members of a group. Default: 1; 0 switches the group off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct GroupSize(#[schemars(range(min = 0))] pub u32);

impl GroupSize {
    /// Maximum number, because a larger one is more likely a mistake.
    const MAX: i64 = 100_000;
}

impl Default for GroupSize {
    fn default() -> Self {
        GroupSize(1)
    }
}

impl<'de> Deserialize<'de> for GroupSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = i64::deserialize(deserializer)?;
        if !(0..=Self::MAX).contains(&value) {
            return Err(de::Error::custom(format!(
                "found {value}; a count lies between 0 and {}",
                Self::MAX
            )));
        }
        Ok(GroupSize(value as u32))
    }
}

/// A part of the run, which includes its start and excludes its end: `["50 s", "150 s"]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Window(
    /// Start and end of the window.
    pub [TimeSpan; 2],
);

impl Window {
    /// Whether a time in nanoseconds is inside the window.
    pub fn contains(self, at: Nanos) -> bool {
        self.0[0].0 <= at && at < self.0[1].0
    }

    /// Length of the window, nanoseconds.
    pub fn length(self) -> Nanos {
        self.0[1].0 - self.0[0].0
    }
}

impl<'de> Deserialize<'de> for Window {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let [begin, end] = <[TimeSpan; 2]>::deserialize(deserializer)?;
        if begin >= end {
            return Err(de::Error::custom(format!(
                "found [\"{begin}\", \"{end}\"]; a window must begin before it ends"
            )));
        }
        Ok(Window([begin, end]))
    }
}
