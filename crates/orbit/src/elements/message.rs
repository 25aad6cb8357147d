//! An Orbit Mean-Elements Message: its values by keyword, whatever the form of the file, and the
//! elements that follow from them.

use std::collections::BTreeMap;

use super::{Entry, Set};
use crate::date::Date;

/// Values of one message by keyword, without units.
pub(super) type Message = BTreeMap<String, String>;

/// Converts a message at a place in the file to an entry.
pub(super) fn entry(place: String, message: &Message) -> Entry {
    Entry {
        place,
        set: set(message),
    }
}

fn set(message: &Message) -> Result<Set, String> {
    let value = |keyword: &str| {
        let value = message.get(keyword).map(|it| it.trim());
        value.filter(|it| !it.is_empty())
    };
    let needed = |keyword: &str| value(keyword).ok_or_else(|| format!("{keyword} is missing"));
    let number = |keyword: &str| {
        let text = needed(keyword)?;
        let number = text.parse::<f64>().ok().filter(|it| it.is_finite());
        number.ok_or_else(|| format!("{keyword}: found {text:?}; expected a number"))
    };
    // If a keyword is absent, the value that SGP4 requires is assumed.
    for (keyword, allowed) in [
        ("CENTER_NAME", &["EARTH"] as &[&str]),
        ("REF_FRAME", &["TEME"]),
        ("TIME_SYSTEM", &["UTC"]),
        ("MEAN_ELEMENT_THEORY", &["SGP4", "SGP/SGP4"]),
        ("EPHEMERIS_TYPE", &["0", "2"]),
    ] {
        if let Some(found) = value(keyword)
            && !allowed.contains(&found.to_ascii_uppercase().as_str())
        {
            let allowed = allowed.join(", ");
            return Err(format!("{keyword}: found {found:?}; allowed: {allowed}"));
        }
    }
    let catalogue = match value("NORAD_CAT_ID") {
        Some(text) => text
            .parse::<u64>()
            .map_err(|_| format!("NORAD_CAT_ID: found {text:?}; expected a whole number"))?,
        None => 0,
    };
    let epoch = needed("EPOCH")?;
    let epoch: Date = epoch.parse().map_err(|error| format!("EPOCH: {error}"))?;
    let name = value("OBJECT_NAME").filter(|name| *name != "UNKNOWN");
    let name = name.or_else(|| value("OBJECT_ID").filter(|_| catalogue == 0));
    Ok(Set {
        name: name.map(str::to_owned),
        number: catalogue,
        epoch,
        mean_motion: number("MEAN_MOTION")?,
        eccentricity: number("ECCENTRICITY")?,
        inclination: number("INCLINATION")?,
        node: number("RA_OF_ASC_NODE")?,
        perigee: number("ARG_OF_PERICENTER")?,
        anomaly: number("MEAN_ANOMALY")?,
        drag: number("BSTAR")?,
    })
}
