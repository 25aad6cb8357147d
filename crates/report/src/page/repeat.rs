//! Instructions for repeating the runs, in the results directory.

use anabranch_scenario::Experiment;

use crate::outputs::Outputs;

/// Requested number of replications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedReplications {
    /// The number of replications in the spec.
    All,
    /// The smaller number of replications that `--quick` selects.
    Quick,
    /// This number of replications for each experiment.
    Count(u32),
}

fn asked(outputs: &Outputs<'_>) -> RequestedReplications {
    let (manifest, spec) = (&outputs.results.manifest, &outputs.results.spec);
    let made = manifest.replications.iter().filter_map(|(id, made)| {
        let experiment = spec.experiments.iter().find(|it| it.id == *id)?;
        Some((experiment, *made))
    });
    let made: Vec<(&Experiment, u32)> = made.collect();
    let all = |(it, made): &(&Experiment, u32)| it.replications == *made;
    let quick = |(it, made): &(&Experiment, u32)| it.first_look() == *made;
    match made.first() {
        _ if made.iter().all(all) => RequestedReplications::All,
        _ if made.iter().all(quick) => RequestedReplications::Quick,
        Some((_, count)) => RequestedReplications::Count(*count),
        None => RequestedReplications::All,
    }
}

/// The command that repeats the runs. It names the paper if the program finds the paper by name,
/// and otherwise the spec in the results directory, which also contains the files of the spec. If
/// the spec has kinds that another program adds, the runs can only be repeated by that program.
pub(super) fn command(outputs: &Outputs<'_>) -> String {
    let manifest = &outputs.results.manifest;
    if !manifest.added.is_empty() {
        return call(outputs);
    }
    let mut command = match &outputs.paper {
        Some(paper) => format!("anabranch reproduce {}", quoted(paper)),
        None => "anabranch run spec.toml".to_owned(),
    };
    let mut option = |text: String| {
        command.push_str(" --");
        command.push_str(&text);
    };
    option(format!("seed {}", manifest.seed));
    for set in &manifest.overrides {
        option(format!("set {}", quoted(set)));
    }
    if !manifest.only.is_empty() {
        option(format!("only {}", quoted(&manifest.only.join(","))));
    }
    if manifest.record_all {
        option("record-all".to_owned());
    }
    match asked(outputs) {
        RequestedReplications::All => {}
        RequestedReplications::Quick => option("quick".to_owned()),
        RequestedReplications::Count(count) => option(format!("replications {count}")),
    }
    for id in &manifest.live {
        option(format!("live {}", quoted(id)));
    }
    command
}

/// The Python call that repeats the runs, for specs with kinds that are defined in Python.
fn call(outputs: &Outputs<'_>) -> String {
    let manifest = &outputs.results.manifest;
    let mut call = format!("anabranch.run(\"spec.toml\", seed={}", manifest.seed);
    let mut argument = |text: String| {
        call.push_str(", ");
        call.push_str(&text);
    };
    let pairs = manifest
        .overrides
        .iter()
        .filter_map(|it| it.split_once('='));
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{}: {}", literal(key), literal(value)))
        .collect();
    if !pairs.is_empty() {
        argument(format!("set={{{}}}", pairs.join(", ")));
    }
    if !manifest.only.is_empty() {
        let only: Vec<String> = manifest.only.iter().map(|it| literal(it)).collect();
        argument(format!("only=[{}]", only.join(", ")));
    }
    if manifest.record_all {
        argument("record_all=True".to_owned());
    }
    match asked(outputs) {
        RequestedReplications::All => {}
        RequestedReplications::Quick => argument("quick=True".to_owned()),
        RequestedReplications::Count(count) => argument(format!("replications={count}")),
    }
    let kinds: Vec<String> = manifest.added.iter().map(|it| format!("`{it}`")).collect();
    let kinds = kinds.join(", ");
    format!("{call}) in Python, in the program that defines {kinds}")
}

/// The text as a Python string literal.
fn literal(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            c if c.is_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
