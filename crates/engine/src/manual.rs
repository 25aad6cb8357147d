//! The manual's page of settings, and help, made from the tables.

use anabranch_scenario::chosen::Family;
use anabranch_scenario::families::{LossModel, PropagationModel, QueueDiscipline};
use anabranch_scenario::transport::TransportKind;
use anabranch_settings::{Kind, Section, Setting, Variant};

use crate::kinds::Standard;
use crate::transport::Transports;
use crate::transport::sctp::Application;

/// What stands above the tables.
const ABOUT: &str = "# Settings of transports and links

Made by `anabranch settings`; do not edit. Each row is one declaration in the code, which also gives parsing, range errors,
JSON Schema (`anabranch schema`) and help.

A spec sets them in `[flow.transport]`, `--set flow.NAME.transport.KEY=VALUE` changes one, and the commands on real sockets take
`--set KEY=VALUE`. Switches choose among texts and implementations; they may stand among the other keys, or in a table
`switches`. Values with a unit are text: `\"250 ms\"`, `\"64 KiB\"`, `\"10 segments\"`. Where profiles differ, the default is that of
the first profile, then those of the others by name.

A spec can name settings and switches once, and use them in any number of flows:

```toml
[profiles.era]
base = \"rfc2960\"
missing_reports = 4

[flow.transport]
protocol = \"sctp\"
profile = \"era\"
```

`--set profiles.era.missing_reports=3` then reaches all of them. What a flow sets itself stays.
";

/// The page: every transport with its settings, its switches, and the parameters of its tables.
pub fn page() -> String {
    let mut page = ABOUT.to_owned();
    let kinds = Standard::default();
    let transports = kinds.transports.kinds().into_iter();
    for kind in transports.filter(|kind| kind.own().next().is_some()) {
        page.push('\n');
        page.push_str(&of(kind));
    }
    let losses = kinds.losses.variants();
    page.push_str(&family::<LossModel>("loss", &losses));
    page.push_str(&family::<QueueDiscipline>(
        "queue",
        &kinds.queues.variants(),
    ));
    let propagations = kinds.propagations.variants();
    page.push_str(&family::<PropagationModel>("delay", &propagations));
    page
}

/// The part of the page about the kinds that a key of a link may be.
fn family<F: Family>(key: &str, variants: &[Variant]) -> String {
    let part = |variant: &Variant| {
        let title = format!("Link: `{key} = {{ {} = \"{}\" }}`", F::TAG, variant.name);
        let about = variant.text();
        let settings = [variant.parameters, F::SHARED].concat();
        let section = Section {
            title: &title,
            about: &about,
            settings: &settings,
            profiles: &[],
            fallback: &|_, _| None,
        };
        format!("\n{}", section.markdown())
    };
    variants.iter().map(part).collect()
}

/// The part of the page about one transport.
pub fn of(kind: &TransportKind) -> String {
    let name = kind.name.to_uppercase();
    let profiles: Vec<String> = kind
        .profiles
        .iter()
        .map(|name| format!("`{name}`"))
        .collect();
    let about = match &profiles[..] {
        [] => kind.about.to_owned(),
        _ => format!("{} Profiles: {}.", kind.about, profiles.join(", ")),
    };
    let title = format!("{name}: settings");
    let own: Vec<Setting> = kind.own().copied().collect();
    let mut text = kind.section(&title, &about, &own).markdown();
    for setting in &own {
        if let Kind::Variant(variants) = setting.kind {
            text.push('\n');
            text.push_str(&tables(&name, setting, &variants()));
        }
    }
    if kind.switches.is_empty() {
        return text;
    }
    let title = format!("{name}: switches");
    let about = "Choices among texts and implementations. A profile sets all of them.";
    text.push('\n');
    text.push_str(&kind.section(&title, about, kind.switches).markdown());
    text
}

/// The tables that a setting may be.
fn tables(transport: &str, setting: &Setting, variants: &[Variant]) -> String {
    let part = |variant: &Variant| {
        let title = format!(
            "{transport}: `{} = {{ kind = \"{}\" }}`",
            setting.name, variant.name
        );
        let about = variant.text();
        let section = Section {
            title: &title,
            about: &about,
            settings: variant.parameters,
            profiles: &[],
            fallback: &|_, _| None,
        };
        section.markdown()
    };
    let parts: Vec<String> = variants.iter().map(part).collect();
    parts.join("\n")
}

/// Help about the settings of a transport that commands on real sockets take, for a terminal; empty for one that there is not.
pub fn help(transport: &str) -> String {
    let mut kinds = Transports::default().kinds().into_iter();
    let Some(kind) = kinds.find(|kind| kind.name == transport) else {
        return String::new();
    };
    let title = format!("Settings of {} (--set KEY=VALUE)", kind.name.to_uppercase());
    let is_flows = |name: &str| Application::SETTINGS.iter().any(|own| own.name == name);
    let own = kind.own().filter(|setting| !is_flows(setting.name));
    let own: Vec<Setting> = own.copied().collect();
    let settings = kind.section(&title, "", &own).help(88);
    format!(
        "{settings}\nSwitches of the profile are settings, too: see `anabranch settings {transport}`."
    )
}
