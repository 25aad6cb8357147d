//! Parsing of a single transport from `key=value` arguments, for commands that run on real sockets
//! without a spec. Keys, values and errors are the same as for `[flow.transport]`.

use anabranch_scenario::addresses::IpVersion;
use anabranch_scenario::checker::Checker;
use anabranch_scenario::decode::decode;
use anabranch_scenario::diagnostic::{Diagnostic, SpecError};
use anabranch_scenario::source_span::SourceSpan;
use anabranch_scenario::sweep::Assignment;
use anabranch_scenario::transport::Transport;
use anabranch_scenario::tree::{NodeValue, SpecNode, TableEntry};
use anabranch_sctp::Config;

use crate::transport::Transports;
use crate::transport::sctp::{self, Application};

/// An SCTP transport with its configuration.
#[derive(Clone, Debug)]
pub struct Sctp {
    /// The transport as in a spec.
    pub transport: Transport,
    /// The configuration of the protocol implementation.
    pub config: Config,
}

/// Parses settings such as `profile=rfc4960`, `receive_buffer=1 MiB` or
/// `stream_allocation.kind=adaptive`.
///
/// # Errors
/// All errors, with the argument in which each was found.
pub fn sctp(settings: &[String]) -> Result<Sctp, SpecError> {
    let failed = |problems| SpecError::new("command line", "", settings, problems);
    let mut root = table(SourceSpan::Argument(0));
    let protocol = SpecNode {
        place: SourceSpan::Argument(0),
        value: NodeValue::Text("sctp".to_owned()),
    };
    insert(&mut root, &["protocol"], protocol, SourceSpan::Argument(0));
    let mut problems = Vec::new();
    for (number, argument) in settings.iter().enumerate() {
        match Assignment::parse(argument, number) {
            Ok(setting) => {
                let path: Vec<&str> = setting.key.split('.').collect();
                let place = setting.key_place.clone();
                if !insert(&mut root, &path, setting.node.clone(), place.clone()) {
                    let message = format!("`{}` is set twice, or lies within a value", setting.key);
                    problems.push(Diagnostic::new(place, setting.key.clone(), message));
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(failed(problems));
    }
    let transport: Transport = decode(&root, "").map_err(failed)?;
    let mut checker = Checker::new(&root);
    let transports = Transports::default();
    transport.check(&mut checker, &transports.kinds(), "");
    if let Some(name) = transport.stack() {
        let message = format!("found \"{name}\"; other stacks are simulated only");
        checker.problem("stack", message);
    }
    for setting in Application::SETTINGS {
        if transport.settings.contains_key(setting.name) {
            let message = format!(
                "`{}` is a flow's in a spec; here it would do nothing",
                setting.name
            );
            checker.problem(setting.name, message);
        }
    }
    if checker.is_content() {
        let made = transports.build(&mut checker, &transport, IpVersion::default(), "");
        // Checks the settings as for a real peer, because some settings have an effect with a real
        // peer but none in a simulated world.
        let idle = made.and_then(|_| sctp::config(&transport).check_effects().err());
        if let Some(idle) = idle {
            checker.problem(&transport.key_of(idle.setting()), idle.what());
        }
    }
    let problems = checker.into_problems();
    if !problems.is_empty() {
        return Err(failed(problems));
    }
    let config = sctp::config(&transport);
    Ok(Sctp { transport, config })
}

fn table(place: SourceSpan) -> SpecNode {
    SpecNode {
        place,
        value: NodeValue::Table(Vec::new()),
    }
}

/// Inserts a value at `path` and creates missing tables. Returns false if a value on the path is
/// not a table.
fn insert(node: &mut SpecNode, path: &[&str], value: SpecNode, place: SourceSpan) -> bool {
    let (Some((&key, rest)), NodeValue::Table(entries)) = (path.split_first(), &mut node.value)
    else {
        return false;
    };
    let known = entries.iter().position(|entry| entry.key == key);
    if rest.is_empty() {
        if known.is_none() {
            entries.push(TableEntry {
                key: key.to_owned(),
                key_place: place,
                node: value,
            });
        }
        return known.is_none();
    }
    let at = known.unwrap_or_else(|| {
        entries.push(TableEntry {
            key: key.to_owned(),
            key_place: place.clone(),
            node: table(place.clone()),
        });
        entries.len() - 1
    });
    insert(&mut entries[at].node, rest, value, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[&str]) -> Result<Sctp, SpecError> {
        sctp(
            &settings
                .iter()
                .map(|&text| text.to_owned())
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn settings_are_those_of_a_spec() {
        let read = read(&[
            "profile=rfc4960",
            "streams=4",
            "receive_buffer=1 MiB",
            "switches.missing_reports=4",
            "stream_allocation.kind=adaptive",
            "stream_allocation.quiet_period=2 s",
        ])
        .expect("all are known");
        assert_eq!(read.config.outbound_streams, 4);
        assert_eq!(read.config.receive_buffer, 1 << 20);
        assert_eq!(read.config.profile.missing_reports, 4);
        assert_eq!(
            read.transport.settings["stream_allocation"]["quiet_period"],
            "2 s"
        );
    }

    #[test]
    fn a_mistake_names_the_argument_and_the_nearest_spelling() {
        for (settings, words) in [
            (
                &["profle=rfc4960"][..],
                &["profle", "did you mean `profile`"][..],
            ),
            (&["profile=rfc4961"], &["--set profile=rfc4961", "rfc4960"]),
            (&["receive_buffer=1 KiB"], &["1500 B"]),
            (&["streams=1", "streams=2"], &["twice"]),
            (&["streams"], &["key=value"]),
            (&["unordered=true"], &["would do nothing"]),
            (
                &["lifetime=50 ms"],
                &["lifetime=50 ms", "without `partial_reliability`"],
            ),
            (&["stack=dcsctp"], &["stack", "simulated only"]),
            (
                &["switches.missing_report=3"],
                &["did you mean `missing_reports`"],
            ),
        ] {
            let error = read(settings).map(drop).expect_err("a mistake").to_string();
            for word in words {
                assert!(error.contains(word), "{settings:?}: {error}");
            }
        }
    }
}
