//! Matrix of interoperability tests: this stack with other stacks, in both roles, with each
//! encapsulation, on good and impaired links.
//!
//! `cargo test -p anabranch-interop --test interop --
//! PART-OF-A-NAME` runs part of it. If the environment variable `INTEROP_REPORT=FILE` is set, a
//! table of the results is written to that file.

use std::sync::Mutex;

use anabranch_interop::case::{Case, Condition, Outcome};
use anabranch_interop::extension::Extension;
use anabranch_interop::namespace::{self, Family};
use anabranch_interop::peer::{Stack, Transport};
use anabranch_interop::programs::Programs;
use anabranch_interop::skips::Skips;
use libtest_mimic::{Arguments, Trial};

/// All cases, in the order of the report.
fn cases() -> Vec<Case> {
    use Stack::{Anabranch, Dcsctp, Linux, Pion, Usrsctp};
    use Transport::{Encap, Plain, Raw};
    let mut all = Vec::new();
    use Condition::{Captured, Clean, Impaired, Netem, PathDown};
    use Family::{V4, V6};
    let of_linux = &[Clean, Impaired, Netem, PathDown, Captured][..];
    let of_others = &[Clean, Impaired, Captured][..];
    let peers = [
        (Linux, Encap, V4, of_linux),
        (Linux, Raw, V4, of_linux),
        (Linux, Encap, V6, of_others),
        (Linux, Raw, V6, of_others),
        (Usrsctp, Encap, V4, of_others),
        (Usrsctp, Encap, V6, of_others),
        (Usrsctp, Plain, V4, of_others),
        (Pion, Plain, V4, of_others),
        (Pion, Plain, V6, of_others),
        (Dcsctp, Plain, V4, of_others),
        (Dcsctp, Plain, V6, of_others),
        (Anabranch, Encap, V6, of_others),
        (Anabranch, Raw, V6, of_others),
    ];
    for (stack, transport, family, conditions) in peers {
        for &condition in conditions {
            let ways = [(Anabranch, stack), (stack, Anabranch)];
            let ways = if stack == Anabranch {
                &ways[..1]
            } else {
                &ways
            };
            for &(connecting, accepting) in ways {
                all.push(Case {
                    connecting,
                    accepting,
                    transport,
                    family,
                    condition,
                    extension: Extension::None,
                });
            }
        }
    }
    // Cases between two other stacks. A failure that also occurs in one of these cases is not
    // caused by this stack.
    for (connecting, accepting, transport) in [
        (Usrsctp, Linux, Encap),
        (Pion, Dcsctp, Plain),
        (Dcsctp, Usrsctp, Plain),
    ] {
        for condition in [Clean, Impaired] {
            all.push(Case {
                connecting,
                accepting,
                transport,
                family: V4,
                condition,
                extension: Extension::None,
            });
            all.push(Case {
                connecting: accepting,
                accepting: connecting,
                transport,
                family: V4,
                condition,
                extension: Extension::None,
            });
        }
    }
    all.extend(extended());
    all
}

/// Cases with extensions, for each peer that supports the extension, except those excluded in
/// `docs/INTEROP.md`.
fn extended() -> Vec<Case> {
    use Extension::{Addresses, Authentication, Interleaving, Partial, Resets};
    use Stack::{Anabranch, Dcsctp, Linux, Pion, Usrsctp};
    let mut all = Vec::new();
    for (extension, connecting, accepting) in [
        (Authentication, Anabranch, Linux),
        (Authentication, Linux, Anabranch),
        (Authentication, Anabranch, Usrsctp),
        (Authentication, Usrsctp, Anabranch),
        (Interleaving, Anabranch, Usrsctp),
        (Interleaving, Usrsctp, Anabranch),
        (Interleaving, Pion, Anabranch),
        (Interleaving, Anabranch, Dcsctp),
        (Interleaving, Dcsctp, Anabranch),
        (Partial, Anabranch, Linux),
        (Partial, Linux, Anabranch),
        (Partial, Anabranch, Usrsctp),
        (Partial, Usrsctp, Anabranch),
        (Partial, Pion, Anabranch),
        (Partial, Anabranch, Dcsctp),
        (Partial, Dcsctp, Anabranch),
        (Resets, Anabranch, Linux),
        (Resets, Anabranch, Usrsctp),
        (Resets, Anabranch, Dcsctp),
        (Resets, Dcsctp, Anabranch),
        (Resets, Linux, Anabranch),
        (Resets, Usrsctp, Anabranch),
        (Resets, Pion, Anabranch),
    ] {
        let encap = [Linux, Usrsctp]
            .iter()
            .any(|it| [connecting, accepting].contains(it));
        for condition in [Condition::Clean, Condition::Impaired] {
            all.push(Case {
                connecting,
                accepting,
                transport: if encap {
                    Transport::Encap
                } else {
                    Transport::Plain
                },
                family: Family::V4,
                condition,
                extension,
            });
        }
    }
    for (connecting, accepting) in [(Anabranch, Linux), (Linux, Anabranch)] {
        for transport in [Transport::Encap, Transport::Raw] {
            for condition in [Condition::Clean, Condition::Netem] {
                all.push(Case {
                    connecting,
                    accepting,
                    transport,
                    family: Family::V4,
                    condition,
                    extension: Addresses,
                });
            }
        }
    }
    for (connecting, accepting) in [(Anabranch, Usrsctp), (Usrsctp, Anabranch)] {
        all.push(Case {
            connecting,
            accepting,
            transport: Transport::Encap,
            family: Family::V4,
            condition: Condition::Clean,
            extension: Addresses,
        });
    }
    all
}

/// Maximum number of retries for cases with this stack in a run of the whole matrix. Retries are
/// needed because the peers have rare faults (one in a hundred runs). A fault of this stack that
/// affects many cases still fails the test; a rare one is only printed.
const MAX_RETRIES: usize = 2;

/// Results of all cases, by their index in the matrix.
type Results = Mutex<Vec<Option<Result<Outcome, String>>>>;

fn main() {
    let mut arguments = Arguments::from_args();
    // Three tests run at once, because tests with impaired links mostly wait.
    arguments.test_threads.get_or_insert(3);
    let programs: &Programs = Box::leak(Box::new(Programs::new(
        env!("CARGO_TARGET_TMPDIR"),
        env!("CARGO_BIN_EXE_anabranch-peer"),
        env!("CARGO_BIN_EXE_dcsctp-peer"),
    )));
    let cases = cases();
    let names: Vec<_> = cases.iter().map(Case::to_string).collect();
    let skips: &Skips = match Skips::read(include_str!("../skips.toml"), &names) {
        Ok(skips) => Box::leak(Box::new(skips)),
        Err(error) => panic!("{error}"),
    };
    let results: &Results = Box::leak(Box::new(Mutex::new(vec![None; cases.len()])));
    let again: &Mutex<Vec<String>> = Box::leak(Box::default());
    let allowed = namespace::allowed();
    let trial = |(place, case): (usize, &Case)| {
        let (case, name) = (*case, names[place].clone());
        match allowed.clone().and_then(|()| case.needs(programs)) {
            Err(missing) => {
                eprintln!("skipped: {name}: {missing}");
                Trial::test(name, || Ok(())).with_ignored_flag(true)
            }
            Ok(()) => Trial::test(name.clone(), move || {
                let mut outcome = case.run(programs);
                // Cases between two other stacks may be retried, because a crash of one of them is
                // not a fault of this stack.
                let foreign = ![case.connecting, case.accepting].contains(&Stack::Anabranch);
                // A retry would overwrite the packet capture of the first attempt.
                let tries = match (std::env::var_os("INTEROP_CAPTURE"), foreign) {
                    (Some(_), _) => 0,
                    (None, true) => 2,
                    (None, false) => 1,
                };
                for _ in 0..tries {
                    if outcome.is_ok() {
                        break;
                    }
                    println!("{name}: tried again: {outcome:?}");
                    if !foreign && skips.reason(&name).is_none() {
                        again.lock().unwrap().push(name.clone());
                    }
                    outcome = case.run(programs);
                }
                results.lock().unwrap()[place] = Some(outcome.clone());
                match skips.judge(&name, outcome)? {
                    Some(outcome) => {
                        println!("{name}: {:.1} s {}", outcome.seconds, outcome.remark)
                    }
                    None => println!(
                        "{name}: skipped: {}",
                        skips.reason(&name).unwrap_or_default()
                    ),
                }
                Ok(())
            }),
        }
    };
    let trials = cases.iter().enumerate().map(trial).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if let Ok(file) = std::env::var("INTEROP_REPORT") {
        let table = report(&cases, &results.lock().unwrap(), skips);
        std::fs::write(&file, table).unwrap_or_else(|error| panic!("{file}: {error}"));
    }
    let again = again.lock().unwrap();
    if again.len() > MAX_RETRIES {
        eprintln!(
            "{} cases were tried a second time, {MAX_RETRIES} may be: {}",
            again.len(),
            again.join(", ")
        );
        std::process::exit(101);
    }
    conclusion.exit();
}

/// Formats the matrix as Markdown tables: one table per extension, with a line for each pair of
/// peers and encapsulation.
fn report(cases: &[Case], results: &[Option<Result<Outcome, String>>], skips: &Skips) -> String {
    const COLUMNS: [Condition; 5] = [
        Condition::Clean,
        Condition::Impaired,
        Condition::Netem,
        Condition::PathDown,
        Condition::Captured,
    ];
    let mut text = String::new();
    for extension in Extension::ALL {
        let mut columns = COLUMNS.to_vec();
        if extension != Extension::None {
            let used = |it: &Condition| {
                let mut of_it = cases.iter().filter(|case| case.condition == *it);
                of_it.any(|case| case.extension == extension)
            };
            columns.retain(used);
            text.push_str(&format!("\nWith `{extension}`:\n\n"));
        }
        let names: Vec<_> = columns.iter().map(Condition::to_string).collect();
        let names = names.join(" | ");
        text.push_str(&format!(
            "| connecting | accepting | over | {names} |\n|---|---|---|"
        ));
        text.push_str(&"---|".repeat(columns.len()));
        text.push('\n');
        let mut pairs: Vec<(Stack, Stack, Transport, Family)> = Vec::new();
        for case in cases.iter().filter(|case| case.extension == extension) {
            let pair = (case.connecting, case.accepting, case.transport, case.family);
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        for (connecting, accepting, transport, family) in pairs {
            text.push_str(&format!(
                "| {connecting} | {accepting} | {transport}{family} |"
            ));
            for &condition in &columns {
                let case = Case {
                    connecting,
                    accepting,
                    transport,
                    family,
                    condition,
                    extension,
                };
                let name = case.to_string();
                let place = cases.iter().position(|other| other.to_string() == name);
                let result = place.map(|place| results[place].as_ref());
                let cell = match (result, skips.reason(&name)) {
                    (None, _) => String::new(),
                    (Some(None), _) => "not run".to_owned(),
                    (Some(Some(Ok(outcome))), _) => cell(outcome),
                    (Some(Some(Err(_))), Some(reason)) => format!("skipped: {reason}"),
                    (Some(Some(Err(_))), None) => "**failed**".to_owned(),
                };
                text.push_str(&format!(" {cell} |"));
            }
            text.push('\n');
        }
    }
    text
}

fn cell(outcome: &Outcome) -> String {
    match outcome.remark.is_empty() {
        true => format!("{:.1} s", outcome.seconds),
        false => format!("{:.1} s, {}", outcome.seconds, outcome.remark),
    }
}
