//! A path over satellites, which moves and is handed over.

use anabranch_orbit::{
    Catalogue, Constellation, Date, Pathway, Place, Relay, SHELLS, Sky, Taking, shell,
};
use anabranch_settings::{
    Choice, Datum, Entry, Fallback, Kind, Parameters, Refusal, Registry, Setting, Value, Variant,
};
use anabranch_transport::Nanos;

use super::jitter::{Distribution, Jitter};
use super::{Propagation, TIME};
use crate::packet::Packet;
use crate::rng::Rng;

/// A parameter that every spec gives, or leaves at `fallback`.
const fn parameter(
    name: &'static str,
    about: &'static str,
    kind: Kind,
    fallback: Fallback,
) -> Setting {
    Setting {
        name,
        about,
        clause: "",
        kind,
        fallback,
    }
}

const PLACE: Kind = Kind::Text("a place: latitude,longitude in degrees");

const OWN: [Setting; 12] = [
    parameter(
        "shell",
        " The satellites; each of its numbers can be set beside it.",
        Kind::Registered(shells),
        Fallback::Is("starlink-1"),
    ),
    parameter(
        "elements",
        " Real satellites instead: the text of two-line elements, or of OMM (CCSDS 502.0-B) as XML, KVN, CSV or JSON. A spec \
         names a `file` instead. `relay` is \"bent-pipe\" then, since elements do not say which satellites have links.",
        Kind::Text("elements of satellites"),
        Fallback::Nothing,
    ),
    parameter(
        "file",
        " The file of the elements, beside the spec.",
        Kind::Text("the name of a file"),
        Fallback::Nothing,
    ),
    parameter(
        "date",
        " Date from which the times of elements count, UTC: \"2026-03-14T05:00:00\". The latest date of the elements if left out.",
        Kind::Text("a date in UTC"),
        Fallback::Nothing,
    ),
    parameter(
        "old_elements",
        " Elements more than 14 days from the date are used as well.",
        Kind::Flag,
        Fallback::Is("false"),
    ),
    parameter(
        "from",
        " One end, degrees north and east: \"40.7,-74.0\".",
        PLACE,
        Fallback::Required,
    ),
    parameter("to", " The other end.", PLACE, Fallback::Required),
    parameter(
        "gateways",
        " Gateways: places where the path may come down, to continue by fibre to the other end.",
        Kind::List(&PLACE),
        Fallback::Nothing,
    ),
    parameter(
        "handover",
        " Outage after each change to another path. Packets wait at the sender.",
        TIME,
        Fallback::Is("0 s"),
    ),
    parameter(
        "start",
        " Time after the epoch at which the run begins.",
        TIME,
        Fallback::Is("0 s"),
    ),
    parameter(
        "jitter",
        " A random part of the delay for each packet: its maximum if `uniform`, its mean if `exponential`. None if left out.",
        TIME,
        Fallback::Nothing,
    ),
    parameter(
        "distribution",
        " Distribution of the random part.",
        Distribution::KIND,
        Fallback::Is("uniform"),
    ),
];

/// Its own parameters, then the conventions of the sky, which the shell says where they are left
/// out.
static PARAMETERS: [Setting; OWN.len() + Sky::SETTINGS.len()] = {
    let mut all = [OWN[0]; OWN.len() + Sky::SETTINGS.len()];
    let mut number = 0;
    while number < all.len() {
        all[number] = if number < OWN.len() {
            OWN[number]
        } else {
            let setting = Sky::SETTINGS[number - OWN.len()];
            Setting {
                fallback: Fallback::Nothing,
                ..setting
            }
        };
        number += 1;
    }
    all
};

fn shells() -> Vec<Choice> {
    let choice = |shell: &anabranch_orbit::Shell| Choice {
        name: shell.name,
        about: shell.about,
    };
    SHELLS.iter().map(choice).collect()
}

/// How specs name it.
pub(super) static ENTRY: Entry<Box<dyn Propagation>> = Entry {
    variant: Variant {
        name: "satellites",
        about: " A path over satellites between two places, computed anew in each `interval`. Packets wait while there is no path.",
        parameters: &PARAMETERS,
    },
    build: |parameters, ()| {
        let path = Satellites::read(parameters)?;
        let distribution: Distribution = parameters.get("distribution")?;
        Ok(match parameters.optional("jitter")? {
            Some(amount) => Box::new(Jitter::new(path, distribution.of(amount))),
            None => Box::new(path),
        })
    },
};

/// A path over satellites.
pub struct Satellites {
    pathway: Pathway,
    start: Nanos,
}

fn place(parameters: &Parameters<'_>, name: &str) -> Result<Place, Refusal> {
    let text: String = parameters.get(name)?;
    text.parse()
        .map_err(|error| Refusal::together(format!("`{name}`: {error}")))
}

/// The satellites that the parameters name.
fn constellation(parameters: &Parameters<'_>) -> Result<Constellation, Refusal> {
    let name: String = parameters.get("shell")?;
    let known = shell(&name).ok_or_else(|| Refusal::together(format!("no shell {name:?}")))?;
    let mut sky = known.sky();
    let elements: Option<String> = parameters.optional("elements")?;
    if elements.is_some() {
        sky.relay = Relay::BentPipe;
    }
    for (name, datum) in parameters.all()? {
        if Sky::SETTINGS.iter().any(|setting| setting.name == name) {
            sky.put(name, &datum).map_err(Refusal::together)?;
        }
    }
    if let Some(file) = parameters.optional::<String>("file")? {
        let message = format!("`file`: {file:?} was not read; give its text as `elements`");
        return Err(Refusal::together(message));
    }
    let date: Option<String> = parameters.optional("date")?;
    let Some(text) = elements else {
        if date.is_some() {
            let message = "`date` is one of elements, and a shell has none; `start` is a time after its epoch";
            return Err(Refusal::together(message));
        }
        return Constellation::walker(&sky).map_err(Refusal::together);
    };
    let date = date.map(|it| it.parse::<Date>()).transpose();
    let date = date.map_err(|error| Refusal::together(format!("`date`: {error}")))?;
    let taking = Taking {
        start: date,
        old: parameters.get("old_elements")?,
    };
    Constellation::of_catalogue(&text, &sky, taking).map_err(Refusal::together)
}

/// The satellites alone.
static CONSTELLATION: Entry<Constellation> = Entry {
    variant: ENTRY.variant,
    build: |parameters, ()| constellation(parameters),
};

/// Dates and ages of the elements that `satellites` with these parameters has, if it has any and
/// they can be used.
pub fn catalogue(given: &[(String, Datum)]) -> Option<Catalogue> {
    let satellites = Registry::new(&[&CONSTELLATION]);
    let constellation = satellites.build(CONSTELLATION.variant.name, given, ());
    constellation.ok()?.catalogue().cloned()
}

impl Satellites {
    fn read(parameters: &Parameters<'_>) -> Result<Self, Refusal> {
        let constellation = constellation(parameters)?;
        let gateways: Vec<String> = parameters.list("gateways")?;
        let gateway = |text: &String| {
            text.parse()
                .map_err(|error| Refusal::together(format!("`gateways`: {error}")))
        };
        let gateways: Vec<Place> = gateways.iter().map(gateway).collect::<Result<_, _>>()?;
        let (from, to) = (place(parameters, "from")?, place(parameters, "to")?);
        let handover = parameters.get("handover")?;
        if handover >= constellation.sky().interval {
            return Err(Refusal::together(
                "`handover` is not shorter than `interval`: nothing would pass",
            ));
        }
        let start = parameters.get("start")?;
        let mut pathway = Pathway::new(&constellation, from, to, &gateways, handover);
        if pathway.delay(start).is_none() {
            return Err(Refusal::together(format!(
                "no path from {from} to {to} in the first hour"
            )));
        }
        Ok(Self { pathway, start })
    }
}

impl std::fmt::Debug for Satellites {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Satellites").finish_non_exhaustive()
    }
}

impl Propagation for Satellites {
    fn delay(&mut self, at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        // No path for so long: longer than any transport waits.
        self.pathway
            .delay(self.start.saturating_add(at))
            .unwrap_or(Pathway::PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::propagation::kinds;
    use crate::rng::Seed;
    use std::net::{IpAddr, Ipv4Addr};

    use anabranch_transport::Ecn;
    use anabranch_transport::time::MILLISECOND;
    use bytes::Bytes;

    fn packet() -> Packet {
        Packet {
            bytes: Bytes::new(),
            id: 0,
            source: IpAddr::V4(Ipv4Addr::LOCALHOST),
            destination: IpAddr::V4(Ipv4Addr::LOCALHOST),
            target: 0,
            sent: 0,
            departed: 0,
            added: 0,
            ecn: Ecn::NotEct,
            may_fragment: false,
            fragment: 0,
            header: 0,
            protocol: 17,
            hops_left: 64,
        }
    }

    fn built(more: &[(&str, Datum)]) -> Result<Box<dyn Propagation>, Refusal> {
        let text = |text: &str| Datum::word(text);
        let mut given = vec![
            ("from".to_owned(), text("40.7,-74.0")),
            ("to".to_owned(), text("51.5,-0.1")),
        ];
        given.extend(
            more.iter()
                .map(|(name, datum)| ((*name).to_owned(), datum.clone())),
        );
        kinds().build("satellites", &given, ())
    }

    /// The same path, and on top of it a random part.
    #[test]
    fn jitter_is_added_to_the_path() {
        let amount = 2 * MILLISECOND;
        let jitter = [("jitter", Datum::Whole(amount))];
        let mean = [
            jitter[0].clone(),
            ("distribution", Datum::word("exponential")),
        ];
        let [mut plain, mut uniform, mut exponential] =
            [&[][..], &jitter, &mean].map(|more| built(more).expect("a path"));
        let packet = packet();
        let mut rng = Seed::default().stream("test");
        let mut over = [(0, 0); 2];
        for number in 0..1000 {
            let at = number * MILLISECOND;
            let base = plain.delay(at, &packet, &mut rng);
            for (propagation, (sum, most)) in
                [&mut uniform, &mut exponential].into_iter().zip(&mut over)
            {
                let more = propagation.delay(at, &packet, &mut rng) - base;
                *sum += more;
                *most = (*most).max(more);
            }
        }
        let [(uniform, most), (exponential, longest)] = over;
        assert!(most < amount && longest > amount, "{most} {longest}");
        assert!(uniform.abs_diff(500 * amount) < 50 * amount, "{uniform}");
        assert!(
            exponential.abs_diff(1000 * amount) < 150 * amount,
            "{exponential}"
        );
    }

    #[test]
    fn a_shell_has_no_date() {
        let date = ("date", Datum::word("2026-03-14"));
        let error = built(&[date]).err().expect("no elements");
        assert!(
            error
                .to_string()
                .contains("`start` is a time after its epoch"),
            "{error}"
        );
    }
}
