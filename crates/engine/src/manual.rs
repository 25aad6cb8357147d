//! The manual's page of settings, and help, made from the tables.

use std::fmt::Write;

use anabranch_scenario::chosen::Family;
use anabranch_scenario::families::{LossModel, PropagationModel, QueueDiscipline, Workloads};
use anabranch_scenario::measure::{LINK_PROBES, Metrics};
use anabranch_scenario::transport::TransportKind;
use anabranch_settings::{Kind, Section, Setting, Variant};
use anabranch_transport::Probe;

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
    let families = [
        family::<LossModel>("Link: `loss", &kinds.losses.variants()),
        family::<QueueDiscipline>("Link: `queue", &kinds.queues.variants()),
        family::<PropagationModel>("Link: `delay", &kinds.propagations.variants()),
        family::<Workloads>("Flow: `workload", &kinds.workloads.variants()),
    ];
    page + &families.concat()
}

/// What stands above the metrics and probes.
const ABOUT_METRICS: &str = "# Metrics and probes

This page is generated from the code (`REFERENCE=write cargo test -p anabranch-engine --test reference`). Do not edit it.

A **metric** is one number for each run. A spec asks for it in `[[measure]]`, or in the `measure` of one experiment; tables and sweep
figures show it. A **probe** is a series of samples over time. A spec asks for it in `[[experiment.record]]`; time figures show it, and
the metrics `probe` and `percentiles` reduce it to numbers.

```toml
[[measure]]
metric = \"goodput\"
flow = \"upload\"
window = [\"10 s\", \"60 s\"]

[[experiment]]
id = \"window\"
record = [{ flow = \"upload\", probes = [\"cwnd\", \"srtt\"] }, { link = \"satellite\", probes = [\"queue\"] }]
```

A file of samples (`series/*.parquet`) has the same names.
";

/// The page of what can be measured: every probe, and every metric with its parameters.
pub fn metrics() -> String {
    let kinds = Standard::default();
    let mut page = ABOUT_METRICS.to_owned();
    let row = |page: &mut String, name: &str, about: &str| {
        let words: Vec<&str> = about.split_whitespace().collect();
        let _ = writeln!(page, "| `{name}` | {} |", words.join(" "));
    };
    page.push_str("\n## Probes of a flow\n\n| probe | what is recorded |\n|---|---|\n");
    for probe in Probe::ALL {
        row(&mut page, probe.name(), probe.about());
    }
    for probe in &kinds.probes {
        row(&mut page, probe.name, probe.about);
    }
    page.push_str("\n## Probes of a link\n\n| probe | what is recorded |\n|---|---|\n");
    for (name, about) in LINK_PROBES {
        row(&mut page, name, about);
    }
    page + &family::<Metrics>("Metric: `", &kinds.metrics.variants())
}

/// The part of a page about the kinds that a key of a spec may be; `title` is the begin of their titles.
fn family<F: Family>(title: &str, variants: &[Variant]) -> String {
    let part = |variant: &Variant| {
        let title = match title.ends_with('`') {
            true => format!("{title}{}`", variant.name),
            false => format!("{title} = {{ {} = \"{}\" }}`", F::TAG, variant.name),
        };
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
