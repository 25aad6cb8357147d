//! Satellite paths: the delay follows the moving satellites, and the path changes at handovers.

use anabranch_orbit::{
    Catalogue, Constellation, Date, OrbitConfig, Pathway, Place, Relay, SHELLS, Taking, shell,
};
use anabranch_settings::{
    Choice, Datum, Fallback, FromParameters, Kind, KindEntry, KindError, KindParameters, Registry,
    Setting, SettingValue, idle_if, kind,
};
use anabranch_transport::Nanos;

use super::jitter::{Distribution, Jitter};
use super::{Propagation, TIME};
use crate::packet::Packet;
use crate::rng::Rng;

const PLACE: Kind = Kind::Text("a place: latitude,longitude in degrees");

kind! {
    /// The parameters of [`SatellitePropagation`].
    struct SatellitesConfig {
        /// Preset of satellite orbits; the other parameters can override its values.
        shell: String = "starlink-1", Kind::Registered(shells);
        /// Real satellites in place of a shell: the text of two-line elements, or of OMM (CCSDS
        /// 502.0-B) as XML, KVN, CSV or JSON. In a spec, `file` names a file with this text.
        /// `relay` must then be "bent-pipe", because elements do not describe links between
        /// satellites, or "isl" if `isls` is given.
        elements: Option<String> = none, Kind::Text("elements of satellites");
        /// File with the elements, relative to the spec.
        file: Option<String> = none, Kind::Text("the name of a file");
        /// Links between the satellites of `elements`: each line has the numbers of two satellites,
        /// counted from 0 in the order of the elements that are used; `relay` must then be "isl".
        /// In a spec, `isls_file` names a file with these lines.
        isls: Option<String> = none, Kind::Text("lines of two numbers");
        /// File with the links between satellites, relative to the spec.
        isls_file: Option<String> = none, Kind::Text("the name of a file");
        /// Date of simulated time 0 in UTC, if elements are given: "2026-03-14T05:00:00". Default:
        /// the latest date of the elements.
        date: Option<String> = none, Kind::Text("a date in UTC");
        /// Also use elements whose epoch is more than 14 days from the date.
        old_elements: bool = false, Kind::Flag;
        /// Place of one end of the path, degrees north and east: "40.7,-74.0".
        from: String, PLACE;
        /// Place of the other end of the path, degrees north and east.
        to: String, PLACE;
        /// Places of gateways, at which the path may leave the satellites and continue by fibre to
        /// the other end.
        gateways: Vec<String> = none, Kind::List(&PLACE);
        /// Duration of the outage after each change to another path, during which packets wait at
        /// the sender.
        handover: Nanos = "0 s", TIME;
        /// Time after the epoch at which the run starts.
        start: Nanos = "0 s", TIME;
        /// Parameter of a random part that is added to the delay of each packet: the maximum of
        /// `uniform`, the mean of `exponential`. Default: none.
        jitter: Option<Nanos> = none, TIME;
        /// Distribution of the random part.
        distribution: Distribution = "uniform", Distribution::KIND;
        sky: Conventions as (&CONVENTIONS);
    }
    idle {
        fibre_speed: |it, ()| it.no_fibre();
        fibre_detour: |it, ()| it.no_fibre();
    }
    /// A path over satellites between two places, computed again after each `interval`. While there
    /// is no path, packets wait at the sender.
    pub(super) static ENTRY: KindEntry<Box<dyn Propagation>> = "satellites", |config, ()| {
        let path = SatellitePropagation::new(&config)?;
        Ok(match config.jitter {
            Some(amount) => Box::new(Jitter::new(path, config.distribution.of(amount))),
            None => Box::new(path),
        })
    };
    /// The constellation alone, without a path.
    static CONSTELLATION: KindEntry<Constellation> = "satellites", |config, ()| config.constellation();
}

/// The settings of orbit conventions, without their defaults, because each shell defines its own.
const CONVENTIONS: [Setting; OrbitConfig::SETTINGS.len()] = {
    let mut all = [OrbitConfig::SETTINGS[0]; OrbitConfig::SETTINGS.len()];
    let mut number = 0;
    while number < all.len() {
        all[number] = Setting {
            fallback: Fallback::Nothing,
            ..OrbitConfig::SETTINGS[number]
        };
        number += 1;
    }
    all
};

/// The conventions that are given explicitly, by name.
struct Conventions(Vec<(&'static str, Datum)>);

impl FromParameters for Conventions {
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        let mut all = parameters.all()?;
        all.retain(|(name, _)| CONVENTIONS.iter().any(|setting| setting.name == *name));
        Ok(Self(all))
    }
}

fn shells() -> Vec<Choice> {
    let choice = |shell: &anabranch_orbit::ShellPreset| Choice {
        name: shell.name,
        about: shell.about,
    };
    SHELLS.iter().map(choice).collect()
}

/// Propagation model of a path over satellites between two places.
pub struct SatellitePropagation {
    pathway: Pathway,
    start: Nanos,
}

fn place(name: &str, text: &str) -> Result<Place, KindError> {
    text.parse()
        .map_err(|error| KindError::together(format!("`{name}`: {error}")))
}

impl SatellitesConfig {
    fn no_fibre(&self) -> Option<String> {
        idle_if(
            self.gateways.is_empty(),
            "without `gateways`, where fibre begins",
        )
    }

    /// Constructs the satellites from the parameters.
    fn constellation(&self) -> Result<Constellation, KindError> {
        let name = &self.shell;
        let known = shell(name).ok_or_else(|| KindError::together(format!("no shell {name:?}")))?;
        let mut sky = known.sky();
        if self.elements.is_some() {
            sky.relay = match self.isls {
                Some(_) => Relay::Isl,
                None => Relay::BentPipe,
            };
        }
        for (name, datum) in &self.sky.0 {
            sky.put(name, datum).map_err(KindError::together)?;
        }
        if let Some(file) = &self.file {
            let message = format!("`file`: {file:?} was not read; give its text as `elements`");
            return Err(KindError::together(message));
        }
        if let Some(file) = &self.isls_file {
            let message = format!("`isls_file`: {file:?} was not read; give its text as `isls`");
            return Err(KindError::together(message));
        }
        if self.elements.is_none() && self.isls.is_some() {
            let message = "`isls` are links of `elements`, and a shell has its own";
            return Err(KindError::together(message));
        }
        let Some(text) = &self.elements else {
            if self.date.is_some() {
                let message = "`date` is one of elements, and a shell has none; `start` is a time after its epoch";
                return Err(KindError::together(message));
            }
            return Constellation::walker(&sky).map_err(KindError::together);
        };
        let date = self.date.as_ref().map(|it| it.parse::<Date>()).transpose();
        let date = date.map_err(|error| KindError::together(format!("`date`: {error}")))?;
        let taking = Taking {
            start: date,
            old: self.old_elements,
        };
        let isls = self.isls.as_deref().unwrap_or_default();
        Constellation::of_linked_catalogue(text, isls, &sky, taking).map_err(KindError::together)
    }
}

/// Dates and ages of the elements that a `satellites` model with the parameters `given` uses.
/// `None` if it uses no elements or the parameters are invalid.
pub fn catalogue(given: &[(String, Datum)]) -> Option<Catalogue> {
    let satellites = Registry::new(&[&CONSTELLATION]);
    let constellation = satellites.build(CONSTELLATION.variant.name, given, ());
    constellation.ok()?.catalogue().cloned()
}

impl SatellitePropagation {
    fn new(config: &SatellitesConfig) -> Result<Self, KindError> {
        let constellation = config.constellation()?;
        let gateways = config.gateways.iter().map(|text| place("gateways", text));
        let gateways: Vec<Place> = gateways.collect::<Result<_, _>>()?;
        let (from, to) = (place("from", &config.from)?, place("to", &config.to)?);
        let (handover, start) = (config.handover, config.start);
        if handover >= constellation.sky().interval {
            return Err(KindError::together(
                "`handover` is not shorter than `interval`: nothing would pass",
            ));
        }
        let mut pathway = Pathway::new(&constellation, from, to, &gateways, handover);
        if pathway.delay(start).is_none() {
            return Err(KindError::together(format!(
                "no path from {from} to {to} in the first hour"
            )));
        }
        Ok(Self { pathway, start })
    }
}

impl std::fmt::Debug for SatellitePropagation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Satellites").finish_non_exhaustive()
    }
}

impl Propagation for SatellitePropagation {
    fn delay(&mut self, at: Nanos, _packet: &Packet, _rng: &mut Rng) -> Nanos {
        // While there is no path, the delay is longer than the timeouts of any transport.
        self.pathway
            .delay(self.start.saturating_add(at))
            .unwrap_or(Pathway::MAX_WAIT)
    }

    fn least_delay(&self, _from: Nanos, _until: Nanos) -> Nanos {
        self.pathway.least_delay()
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
            receiver: 0,
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

    fn built(more: &[(&str, Datum)]) -> Result<Box<dyn Propagation>, KindError> {
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

    /// A random component is added to the delay of the path.
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
