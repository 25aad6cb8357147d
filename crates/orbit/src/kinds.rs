//! Kinds of satellite shells, by their names in specs.

use anabranch_settings::{
    Choice, Datum, Fallback, FromParameters, Kind, KindEntry, KindError, KindParameters, Registry,
    Setting, kind,
};

use crate::constellation::Constellation;
use crate::conventions::{OrbitConfig, Relay, Stagger};
use crate::date::Date;
use crate::elements::Taking;
use crate::presets::{SHELLS, shell};

/// All kinds of shells that a spec can name.
pub const KINDS: &[&KindEntry<Constellation>] = &[&WALKER, &ELEMENTS];

/// The registry of [`KINDS`], to which a program may add its own kinds.
pub fn kinds() -> Registry<Constellation> {
    Registry::new(KINDS)
}

fn presets() -> Vec<Choice> {
    let choice = |shell: &crate::presets::ShellPreset| Choice {
        name: shell.name,
        about: shell.about,
    };
    SHELLS.iter().map(choice).collect()
}

const fn is(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while one.len() == other.len() && index < one.len() {
        if one[index] != other[index] {
            return false;
        }
        index += 1;
    }
    one.len() == other.len()
}

/// Conventions of single paths. Networks do not use them, because a network has routes, access
/// policies and links instead.
const OF_PATHS: [&str; 4] = ["access", "interval", "fibre_speed", "fibre_detour"];
/// Conventions that also apply to satellites from files of elements.
const OF_FILES: [&str; 4] = ["min_elevation", "max_range", "earth", "isl_clearance"];

/// Settings of the conventions in `names` if `named` is true, and otherwise of all other
/// conventions. The shell defines the default of each.
const fn conventions<const COUNT: usize>(names: [&str; 4], named: bool) -> [Setting; COUNT] {
    let mut all = [OrbitConfig::SETTINGS[0]; COUNT];
    let (mut count, mut index) = (0, 0);
    while index < OrbitConfig::SETTINGS.len() {
        let setting = OrbitConfig::SETTINGS[index];
        let (mut found, mut name) = (false, 0);
        while name < names.len() {
            found = found || is(setting.name, names[name]);
            name += 1;
        }
        if found == named {
            all[count] = Setting {
                fallback: Fallback::Nothing,
                ..setting
            };
            count += 1;
        }
        index += 1;
    }
    all
}

const OF_SHELLS: [Setting; OrbitConfig::SETTINGS.len() - OF_PATHS.len()] =
    conventions(OF_PATHS, false);
const OF_ELEMENTS: [Setting; OF_FILES.len()] = conventions(OF_FILES, true);

/// Conventions that are set, with their values.
struct Conventions(Vec<(&'static str, Datum)>);

impl FromParameters for Conventions {
    fn read(parameters: &KindParameters<'_>) -> Result<Self, KindError> {
        let mut all = parameters.all()?;
        all.retain(|(name, _)| {
            OrbitConfig::SETTINGS
                .iter()
                .any(|setting| setting.name == *name)
        });
        Ok(Self(all))
    }
}

impl Conventions {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| *given == name)
    }

    fn put(&self, sky: &mut OrbitConfig) -> Result<(), KindError> {
        let mut all = self.0.iter();
        all.try_for_each(|(name, datum)| sky.put(name, datum).map_err(KindError::together))
    }
}

kind! {
    /// Parameters of a shell whose orbits are computed.
    struct WalkerConfig {
        /// Preset that is often modelled; the other parameters can replace each of its numbers.
        shell: String = "starlink-1", Kind::Registered(presets);
        sky: Conventions as (&OF_SHELLS);
    }
    /// Circular orbits in evenly distributed planes.
    static WALKER: KindEntry<Constellation> = "walker", |config, ()| config.constellation();
}

impl WalkerConfig {
    fn constellation(&self) -> Result<Constellation, KindError> {
        let name = &self.shell;
        let preset = shell(name);
        let preset = preset.ok_or_else(|| KindError::together(format!("no shell {name:?}")))?;
        let mut sky = preset.sky();
        self.sky.put(&mut sky)?;
        let has = |name: &str| self.sky.has(name);
        let idle = match () {
            () if has("altitude") && sky.mean_motion.is_some() => Some(
                "`altitude` has no effect with `mean_motion`, which determines it; leave one out, or set `mean_motion` to \"off\"",
            ),
            () if has("phasing") && sky.stagger == Stagger::Alternating => {
                Some("`phasing` has no effect where `stagger` is \"alternating\"; leave it out")
            }
            () => None,
        };
        match idle {
            Some(message) => Err(KindError::together(message)),
            None => Constellation::walker(&sky).map_err(KindError::together),
        }
    }
}

kind! {
    /// Parameters of satellites from a file.
    struct ElementsConfig {
        /// Text of two-line elements, or of OMM (CCSDS 502.0-B) as XML, KVN, CSV or JSON. In a
        /// spec, `file` names a file with this text.
        elements: String, Kind::Text("elements of satellites");
        /// File with the elements, relative to the spec.
        file: Option<String> = none, Kind::Text("the name of a file");
        /// Links between satellites: each line has the numbers of two satellites, counted from 0 in
        /// the order of the elements that are used. Default: no links. In a spec, `isls_file` names
        /// a file with these lines.
        isls: Option<String> = none, Kind::Text("lines of two numbers");
        /// File with the links, relative to the spec.
        isls_file: Option<String> = none, Kind::Text("the name of a file");
        /// Date of time 0, UTC: "2026-03-14T05:00:00". Default: the latest date of the elements.
        date: Option<String> = none, Kind::Text("a date in UTC");
        /// Also use elements whose epoch is more than 14 days from the date.
        old_elements: bool = false, Kind::Flag;
        sky: Conventions as (&OF_ELEMENTS);
    }
    /// Real satellites, whose positions SGP4 computes from elements.
    static ELEMENTS: KindEntry<Constellation> = "elements", |config, ()| config.constellation();
}

impl ElementsConfig {
    fn constellation(&self) -> Result<Constellation, KindError> {
        for (key, file) in [("file", &self.file), ("isls_file", &self.isls_file)] {
            if let Some(file) = file {
                let message = format!("`{key}`: {file:?} was not read; give its text instead");
                return Err(KindError::together(message));
            }
        }
        let mut sky = OrbitConfig {
            relay: match self.isls {
                Some(_) => Relay::Isl,
                None => Relay::BentPipe,
            },
            ..OrbitConfig::default()
        };
        self.sky.put(&mut sky)?;
        let date = self.date.as_ref().map(|it| it.parse::<Date>()).transpose();
        let date = date.map_err(|error| KindError::together(format!("`date`: {error}")))?;
        let taking = Taking {
            start: date,
            old: self.old_elements,
        };
        let isls = self.isls.as_deref().unwrap_or_default();
        let read = Constellation::of_linked_catalogue(&self.elements, isls, &sky, taking);
        read.map_err(KindError::together)
    }
}
