//! A path over satellites, which moves and is handed over.

use anabranch_orbit::{Constellation, Pathway, Place, SHELLS, Sky, shell};
use anabranch_settings::{Choice, Entry, Fallback, Kind, Parameters, Refusal, Setting, Variant};
use anabranch_transport::Nanos;

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

const OWN: [Setting; 6] = [
    parameter(
        "shell",
        " The satellites; each of its numbers can be set beside it.",
        Kind::Registered(shells),
        Fallback::Is("starlink-1"),
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
];

/// Its own parameters, then the conventions of the sky, which the shell says where they are left out.
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
    build: |parameters, ()| Ok(Box::new(Satellites::read(parameters)?)),
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

impl Satellites {
    fn read(parameters: &Parameters<'_>) -> Result<Self, Refusal> {
        let name: String = parameters.get("shell")?;
        let known = shell(&name).ok_or_else(|| Refusal::together(format!("no shell {name:?}")))?;
        let mut sky = known.sky();
        for (name, datum) in parameters.all()? {
            if Sky::SETTINGS.iter().any(|setting| setting.name == name) {
                sky.put(name, &datum).map_err(Refusal::together)?;
            }
        }
        let constellation = Constellation::walker(&sky).map_err(Refusal::together)?;
        let gateways: Vec<String> = parameters.list("gateways")?;
        let gateway = |text: &String| {
            text.parse()
                .map_err(|error| Refusal::together(format!("`gateways`: {error}")))
        };
        let gateways: Vec<Place> = gateways.iter().map(gateway).collect::<Result<_, _>>()?;
        let (from, to) = (place(parameters, "from")?, place(parameters, "to")?);
        let handover = parameters.get("handover")?;
        if handover >= sky.interval {
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
