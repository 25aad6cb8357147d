//! Transport of a flow: a protocol, and its settings as written. The vocabulary provides the
//! available settings.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use anabranch_settings::{Datum, Setting};
use anabranch_transport::Probe;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::checker::Checker;

/// Key of the protocol.
const PROTOCOL: &str = "protocol";
/// Key of an implementation other than that of this project.
const STACK: &str = "stack";
/// Key of the profile.
const PROFILE: &str = "profile";
/// Key of the table of switches.
pub const SWITCHES: &str = "switches";

/// A protocol and its settings, as written in a spec.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Transport {
    /// Name of the protocol: `sctp`, `tcp`, `udp`.
    pub protocol: String,
    /// All other keys as written; switches may be in the table [`SWITCHES`].
    #[serde(flatten)]
    pub settings: BTreeMap<String, Value>,
}

/// A transport that a spec can name, with its settings and other properties.
#[derive(Clone, Debug)]
pub struct TransportKind {
    /// Name of the transport in specs, which is that of the protocol or of the stack.
    pub name: &'static str,
    /// Name of the protocol, if the transport is another implementation of it, which specs select
    /// by `stack`.
    pub stack_of: Option<&'static str>,
    /// Description, one line.
    pub about: &'static str,
    /// Profiles, with the default profile first; empty if the transport has none.
    pub profiles: &'static [&'static str],
    /// Settings without the switches, in groups.
    pub settings: &'static [&'static [Setting]],
    /// Switches, whose defaults depend on the profile. They may be written among the settings, or
    /// in the table [`SWITCHES`].
    pub switches: &'static [Setting],
    /// Returns the default of a setting or switch in a profile.
    pub fallback: fn(profile: &str, setting: &str) -> Option<String>,
    /// Whether the transport preserves the boundaries of messages, up to the size of the receive
    /// buffer. Otherwise it delivers a byte stream.
    pub messages: bool,
    /// Whether the transport has only one stream, so that a workload cannot choose a stream.
    pub one_stream: bool,
    /// Whether a flow may use several paths at the same time.
    pub multihoming: bool,
    /// Whether the transport has a window, which limits a bulk workload.
    pub window: bool,
    /// Whether the receiver can answer requests.
    pub answers: bool,
    /// Maximum size of a message in bytes; `None` if it is unlimited.
    pub largest_message: Option<u64>,
    /// Whether packets show if they carry data.
    pub shows_data: bool,
    /// Probes that the transport records, if known; a record of another probe would be empty.
    pub probes: Option<&'static [Probe]>,
    /// Feature that the transport requires and that this build does not have.
    pub absent: Option<&'static str>,
}

/// Error message for a transport that this build does not include.
pub fn not_compiled(name: &str, feature: &str) -> String {
    format!(
        "found {name:?}, which is not compiled in; it needs the feature `{feature}` of anabranch-engine or anabranch-cli: cargo install --locked --path crates/cli --features {feature}"
    )
}

impl TransportKind {
    /// Creates a transport without settings, which sends datagrams without a window. Other
    /// properties are set by struct update.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            stack_of: None,
            about,
            profiles: &[],
            settings: &[],
            switches: &[],
            fallback: |_, _| None,
            messages: true,
            one_stream: false,
            multihoming: false,
            window: false,
            answers: false,
            largest_message: None,
            shows_data: true,
            probes: None,
            absent: None,
        }
    }

    /// Title of the transport, which is also used as the subject of sentences in messages.
    pub fn title(&self) -> String {
        match self.stack_of {
            Some(_) => self.name.to_owned(),
            None => self.name.to_uppercase(),
        }
    }

    /// Reason why the transport does not record the probe; `None` if it does.
    pub fn refuses(&self, probe: Probe) -> Option<String> {
        let told = self.probes.filter(|told| !told.contains(&probe))?;
        let told: Vec<String> = told.iter().map(|it| format!("`{}`", it.name())).collect();
        Some(format!(
            "{} does not tell `{}`; what can be seen of it is {}",
            self.title(),
            probe.name(),
            told.join(", ")
        ))
    }

    /// Whether a transport in a spec is of this kind.
    pub fn is_of(&self, written: &Transport) -> bool {
        match self.stack_of {
            Some(protocol) => written.protocol == protocol && written.stack() == Some(self.name),
            None => written.protocol == self.name && !written.settings.contains_key(STACK),
        }
    }

    /// All settings without the switches.
    pub fn own(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.settings.iter().copied().flatten()
    }

    /// All settings, followed by all switches.
    pub fn all(&self) -> impl Iterator<Item = &'static Setting> + use<> {
        self.own().chain(self.switches)
    }

    /// The setting or switch named `name`.
    pub fn setting(&self, name: &str) -> Option<&'static Setting> {
        self.all().find(|setting| setting.name == name)
    }

    /// JSON Schema of the transport's table.
    pub fn json_schema(&self) -> Value {
        let mut properties = Map::new();
        let protocol = self.stack_of.unwrap_or(self.name);
        properties.insert(PROTOCOL.to_owned(), json!({ "const": protocol }));
        let mut required = vec![PROTOCOL];
        if self.stack_of.is_some() {
            properties.insert(STACK.to_owned(), json!({ "const": self.name }));
            required.push(STACK);
        }
        if let Some(standard) = self.profiles.first() {
            let profile = json!({
                "description": format!("Which text is followed: a profile of the protocol, or one of `[profiles]`. Default: {standard}."),
                "anyOf": [{ "enum": self.profiles }, { "type": "string" }],
            });
            properties.insert(PROFILE.to_owned(), profile);
        }
        let described = |setting: &Setting| {
            let fallback = self.fallback_text(setting);
            (
                setting.name.to_owned(),
                setting.json_schema(fallback.as_deref()),
            )
        };
        properties.extend(self.all().map(described));
        if !self.switches.is_empty() {
            let switches: Map<String, Value> = self.switches.iter().map(described).collect();
            let table = json!({
                "type": "object",
                "description": "Switches of the profile, by name.",
                "properties": switches,
                "additionalProperties": false,
            });
            properties.insert(SWITCHES.to_owned(), table);
        }
        json!({
            "type": "object",
            "description": self.about,
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        })
    }

    /// Default of a setting in words. If profiles have different defaults, the text has the default
    /// of each profile.
    pub fn fallback_text(&self, setting: &Setting) -> Option<String> {
        let section = self.section("", "", &[]);
        Some(section.default_of(setting)).filter(|text| !text.is_empty())
    }

    /// A section of the manual about some of the settings.
    pub fn section<'a>(
        &'a self,
        title: &'a str,
        about: &'a str,
        settings: &'a [Setting],
    ) -> anabranch_settings::Section<'a> {
        anabranch_settings::Section {
            title,
            about,
            settings,
            profiles: if self.profiles.is_empty() {
                &[""]
            } else {
                self.profiles
            },
            fallback: &self.fallback,
        }
    }
}

impl Transport {
    /// Name of the profile, if the spec contains one.
    pub fn profile(&self) -> Option<&str> {
        self.settings.get(PROFILE).and_then(Value::as_str)
    }

    /// Name of the stack, if the spec contains one.
    pub fn stack(&self) -> Option<&str> {
        self.settings.get(STACK).and_then(Value::as_str)
    }

    /// Settings and switches as written: key below the transport, name, and value.
    fn given(&self) -> impl Iterator<Item = (String, &str, &Value)> {
        let switches = self.settings.get(SWITCHES).and_then(Value::as_object);
        let switches = switches.into_iter().flatten();
        let own = self
            .settings
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), STACK | PROFILE | SWITCHES));
        own.map(|(key, value)| (key.clone(), key.as_str(), value))
            .chain(switches.map(|(key, value)| (format!("{SWITCHES}.{key}"), key.as_str(), value)))
    }

    /// Settings and switches of a checked transport, with their values.
    pub fn values<'a>(
        &'a self,
        kind: &'a TransportKind,
    ) -> impl Iterator<Item = (&'static Setting, Datum)> + use<'a> {
        self.given().filter_map(|(_, name, value)| {
            let setting = kind.setting(name)?;
            Some((setting, setting.kind.read(value).ok()?))
        })
    }

    /// Key of a setting or switch below the transport, as written.
    pub fn key_of(&self, name: &str) -> String {
        let mut given = self.given();
        let found = given.find(|(_, known, _)| *known == name);
        found.map_or_else(|| name.to_owned(), |(key, ..)| key)
    }

    /// Checks the names and values of a transport at `path`, each independently of the others.
    pub fn check(&self, c: &mut Checker<'_>, kinds: &[&'static TransportKind], path: &str) {
        let Some(kind) = kinds.iter().find(|kind| kind.is_of(self)) else {
            self.check_name(c, kinds, path);
            return;
        };
        if let Some(feature) = kind.absent {
            c.problem(
                &format!("{path}.{PROTOCOL}"),
                not_compiled(kind.name, feature),
            );
            return;
        }
        self.check_profile(c, kind, path);
        if self
            .settings
            .get(SWITCHES)
            .is_some_and(|table| !table.is_object())
        {
            c.problem(
                &format!("{path}.{SWITCHES}"),
                "expected a table of switches",
            );
        }
        for (key, name, value) in self.given() {
            let path = format!("{path}.{key}");
            match self.setting_at(kind, &key, name) {
                Ok(setting) => {
                    if let Err(invalid_value) = setting.kind.read(value) {
                        c.invalid_value(&path, &invalid_value);
                    }
                }
                Err(known) if key == name => c.unknown_key(&path, name, known),
                Err(known) => {
                    c.not_among(&path, &format!("unknown switch `{name}`"), name, known);
                }
            }
            if key != name && self.settings.contains_key(name) {
                c.problem(
                    &path,
                    format!("found `{name}` twice, here and as a key of the transport"),
                );
            }
        }
    }

    /// Reports an error in the name of the protocol or of the stack.
    fn check_name(&self, c: &mut Checker<'_>, kinds: &[&'static TransportKind], path: &str) {
        let mut protocols = kinds.iter().filter(|kind| kind.stack_of.is_none());
        if !protocols.clone().any(|kind| kind.name == self.protocol) {
            let message = format!("found {:?}, which is unknown", self.protocol);
            let names = protocols.map(|kind| kind.name);
            let path = format!("{path}.{PROTOCOL}");
            c.not_among(&path, &message, &self.protocol, names);
            return;
        }
        let of_this = |kind: &&&TransportKind| kind.stack_of == Some(&self.protocol);
        let stacks: Vec<&str> = kinds.iter().filter(of_this).map(|kind| kind.name).collect();
        let path = format!("{path}.{STACK}");
        let found = self.settings.get(STACK).unwrap_or(&Value::Null);
        if stacks.is_empty() {
            let of_all =
                protocols.find(|kind| kinds.iter().any(|it| it.stack_of == Some(kind.name)));
            let only = of_all.map_or("none", |kind| kind.name);
            let message = format!("found {found}; only {only} has other stacks than its own");
            c.problem(&path, message);
            return;
        }
        let message = format!("found {found}, which is no stack");
        let name = found.as_str().unwrap_or_default();
        c.not_among(&path, &message, name, stacks);
    }

    /// Returns the setting `name` of this kind. If there is none, returns the names that are
    /// allowed for the key.
    fn setting_at(
        &self,
        kind: &TransportKind,
        key: &str,
        name: &str,
    ) -> Result<&'static Setting, Vec<&'static str>> {
        let is_switch = key != name;
        let known = if is_switch {
            kind.switches.iter().find(|setting| setting.name == name)
        } else {
            kind.setting(name)
        };
        known.ok_or_else(|| {
            let switches = kind.switches.iter().map(|setting| setting.name);
            if is_switch {
                return switches.collect();
            }
            let own = kind.own().map(|setting| setting.name);
            let profile = (!kind.profiles.is_empty()).then_some([PROFILE, SWITCHES]);
            let stack = kind.stack_of.map(|_| STACK);
            own.chain(profile.into_iter().flatten())
                .chain([PROTOCOL])
                .chain(stack)
                .chain(switches)
                .collect()
        })
    }

    fn check_profile(&self, c: &mut Checker<'_>, kind: &TransportKind, path: &str) {
        let Some(value) = self.settings.get(PROFILE) else {
            return;
        };
        let name = value.as_str().unwrap_or_default();
        if kind.profiles.is_empty() {
            let message = format!("found {value}, but {} has no profiles", kind.title());
            c.problem(&format!("{path}.{PROFILE}"), message);
        } else if !kind.profiles.contains(&name) {
            let message = format!("found {value}, but no profile has this name");
            let profiles = kind.profiles.iter().copied();
            c.not_among(&format!("{path}.{PROFILE}"), &message, name, profiles);
        }
    }
}

impl<'de> Deserialize<'de> for Transport {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Transport;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, such as { protocol = \"sctp\" }")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Transport, A::Error> {
                let map = MapAccessDeserializer::new(map);
                let mut settings = BTreeMap::<String, Value>::deserialize(map)?;
                match settings.remove(PROTOCOL) {
                    Some(Value::String(protocol)) => Ok(Transport { protocol, settings }),
                    Some(other) => Err(de::Error::custom(format!(
                        "found {other} as the protocol; expected a name in quotes"
                    ))),
                    None => Err(de::Error::missing_field(PROTOCOL)),
                }
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl JsonSchema for Transport {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    /// Schema without settings, which [`crate::schema::json_schema`] adds from the vocabulary.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "required": [PROTOCOL] })
    }
}
