//! Rate of a link: constant, or a function of time.

use std::borrow::Cow;
use std::fmt;

use anabranch_settings::{Datum, Kind};
use anabranch_transport::{Nanos, time};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::quantity::Rate;

/// Kind of the values that are a rate over time.
const KIND: Kind = Kind::StepFunction(&Kind::Rate {
    least: 0,
    most: 1_000_000_000_000_000,
});

/// The rate of a link: `"2 Mbit/s"`, or `{ steps = [["0 s", "2 Mbit/s"], ["10 s", "0 bit/s"]],
/// repeat = "20 s" }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateOverTime {
    /// Rates in bits per second, each with the time in nanoseconds from which it applies; the first
    /// time is 0.
    steps: Vec<(Nanos, u64)>,
    repeat: Option<Nanos>,
}

impl From<u64> for RateOverTime {
    /// Creates a constant rate, bits per second.
    fn from(rate: u64) -> Self {
        Self {
            steps: vec![(0, rate)],
            repeat: None,
        }
    }
}

impl RateOverTime {
    /// The rate in bits per second, if it never changes.
    pub fn as_constant(&self) -> Option<u64> {
        match self.steps[..] {
            [(_, rate)] => Some(rate),
            _ => None,
        }
    }

    /// Rates in bits per second, each with the time in nanoseconds from which it applies; the first
    /// time is 0.
    pub fn steps(&self) -> &[(Nanos, u64)] {
        &self.steps
    }

    /// Period in nanoseconds after which the steps repeat; `None` if they do not repeat.
    pub fn repeat(&self) -> Option<Nanos> {
        self.repeat
    }

    /// Mean rate from `begin` to `end`, bits per second.
    pub fn mean(&self, begin: Nanos, end: Nanos) -> f64 {
        if let Some(rate) = self.as_constant() {
            return rate as f64;
        }
        (self.carried(end) - self.carried(begin)) as f64 / (end - begin) as f64
    }

    /// Amount of data that can be sent from 0 to `until`, in bits per second times nanoseconds.
    fn carried(&self, until: Nanos) -> u128 {
        let once = |until: Nanos| -> u128 {
            let ends = self.steps.iter().skip(1).map(|step| step.0);
            let ends = ends.chain([Nanos::MAX]);
            let parts = self.steps.iter().zip(ends);
            parts
                .map(|((from, rate), end)| {
                    let span = end.min(until).saturating_sub(*from);
                    u128::from(*rate) * u128::from(span)
                })
                .sum()
        };
        match self.repeat {
            Some(period) => u128::from(until / period) * once(period) + once(until % period),
            None => once(until),
        }
    }

    fn from_datum(datum: &Datum) -> Option<Self> {
        let pair = |step: &Datum| match step.items() {
            [at, rate] => Some((at.whole()?, rate.whole()?)),
            _ => None,
        };
        let steps = datum.key("steps")?.items().iter().map(pair);
        Some(Self {
            steps: steps.collect::<Option<_>>()?,
            repeat: datum.key("repeat").and_then(Datum::whole),
        })
    }

    fn to_datum(&self) -> Datum {
        if let Some(rate) = self.as_constant() {
            return Datum::Whole(rate);
        }
        let steps = self.steps.iter();
        let steps =
            steps.map(|(at, rate)| Datum::List(vec![Datum::Whole(*at), Datum::Whole(*rate)]));
        let mut table = vec![("steps".to_owned(), Datum::List(steps.collect()))];
        table.extend(
            self.repeat
                .map(|repeat| ("repeat".to_owned(), Datum::Whole(repeat))),
        );
        Datum::Table(table)
    }
}

impl fmt::Display for RateOverTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_constant() {
            Some(rate) => Rate(rate).fmt(f),
            None => {
                let last = self.steps.last().map_or(0, |step| step.0);
                let span = self.repeat.unwrap_or(last);
                write!(f, "{} steps in {} s", self.steps.len(), time::seconds(span))
            }
        }
    }
}

impl<'de> Deserialize<'de> for RateOverTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = RateOverTime;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit, such as \"2 Mbit/s\", or { steps = [...] }")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RateOverTime, E> {
                let rate: Rate = text.parse().map_err(E::custom)?;
                Ok(rate.0.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RateOverTime, A::Error> {
                let map = MapAccessDeserializer::new(map);
                let table = serde_json::Map::deserialize(map)?;
                let read = KIND.read(&table.into()).map_err(|invalid_value| {
                    let at = invalid_value.parameter.as_deref().unwrap_or_default();
                    de::Error::custom(format!("`{at}`: {invalid_value}"))
                })?;
                let rate = RateOverTime::from_datum(&read);
                let rate = rate.ok_or_else(|| de::Error::missing_field("steps"))?;
                if rate.steps.iter().all(|step| step.1 == 0) {
                    return Err(de::Error::custom("a rate must be above 0 at some time"));
                }
                Ok(rate)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Serialize for RateOverTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        KIND.to_json(&self.to_datum()).serialize(serializer)
    }
}

impl JsonSchema for RateOverTime {
    fn schema_name() -> Cow<'static, str> {
        "RateOverTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut schema = KIND.json_schema();
        if let Some(forms) = schema["anyOf"].as_array_mut() {
            forms.push(serde_json::json!({
                "type": "object",
                "description": "a file in the format of mahimahi, with the millisecond at which each packet can leave.",
                "properties": {
                    "opportunities": { "type": "string", "description": "Name of the file." },
                    "packet": { "type": "string", "description": "Size of the packet that leaves at each time. Default: 1500 B." },
                },
                "required": ["opportunities"],
                "additionalProperties": false,
            }));
        }
        Schema::try_from(schema).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Nanos = 1_000_000_000;

    fn read(text: &str) -> Result<RateOverTime, String> {
        let json: serde_json::Value = serde_json::from_str(text).expect("JSON");
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    #[test]
    fn the_mean_weighs_each_rate_by_its_time() {
        // 2 Mbit/s for 1 s, then 0 for 3 s; repeated.
        let text = r#"{"steps": [["0 s", "2 Mbit/s"], ["1 s", "0 bit/s"]], "repeat": "4 s"}"#;
        let rate = read(text).unwrap();
        assert_eq!(rate.mean(0, 4 * SECOND), 500_000.0);
        assert_eq!(rate.mean(0, 40 * SECOND), 500_000.0);
        assert_eq!(rate.mean(4 * SECOND, 5 * SECOND), 2_000_000.0);
        // From 8.5 s to 10.5 s the rate is 2 Mbit/s for half a second, and otherwise 0.
        assert_eq!(rate.mean(8_500_000_000, 10_500_000_000), 500_000.0);
        assert_eq!(rate.mean(9 * SECOND, 12 * SECOND), 0.0);
        let once = read(r#"{"steps": [["0 s", "2 Mbit/s"], ["1 s", "1 Mbit/s"]]}"#).unwrap();
        assert_eq!(once.mean(0, 4 * SECOND), 1_250_000.0);
        assert_eq!(read(r#""3 Mbit/s""#).unwrap().mean(7, 7), 3_000_000.0);
    }

    #[test]
    fn written_rates_are_read_back() {
        for text in [
            r#""7 kbit/s""#,
            r#"{"steps": [["0 s", "2 Mbit/s"], ["1 s", "0 bit/s"]], "repeat": "4 s"}"#,
            r#"{"steps": [["0 s", "1 bit/s"], ["1 ns", "9 Gbit/s"]]}"#,
        ] {
            let rate = read(text).unwrap();
            let json = serde_json::to_string(&rate).unwrap();
            assert_eq!(read(&json).unwrap(), rate, "{json}");
        }
    }

    #[test]
    fn wrong_steps_say_what_is_wrong() {
        for (text, words) in [
            (r#"{"steps": []}"#, "found no steps"),
            (
                r#"{"steps": [["1 s", "2 Mbit/s"]]}"#,
                "a first step at \"1 s\"",
            ),
            (
                r#"{"steps": [["0 s", "2 Mbit/s"], ["0 s", "1 Mbit/s"]]}"#,
                "found \"0 s\" after \"0 s\"; expected times that rise",
            ),
            (
                r#"{"steps": [["0 s", "2 Mbit"]]}"#,
                "`steps.0.1`: found \"2 Mbit\"",
            ),
            (r#"{"steps": [["0 s"]]}"#, "`steps.0`: found [\"0 s\"]"),
            (
                r#"{"steps": [["0 s", "2 Mbit/s"], ["3 s", "1 Mbit/s"]], "repeat": "3 s"}"#,
                "`repeat`: found \"3 s\"; expected a time after the last step",
            ),
            (r#"{"steps": [["0 s", "0 bit/s"]]}"#, "above 0"),
            (r#"{"stips": [["0 s", "1 bit/s"]]}"#, "the key `stips`"),
            (r#""0 bit/s""#, "above 0"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
