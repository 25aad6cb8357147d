//! Invalid specs: exit status 2, and an error with file, line, key, the value found and the values
//! allowed. No file is written.

use crate::schema::faults;
use crate::{SWEEP, anabranch, succeeds, text, with};

/// The output of the command for the valid spec with one part replaced.
fn refused(from: &str, to: &str) -> String {
    assert!(SWEEP.contains(from), "{from:?} is not in the good spec");
    let directory = with("mine.toml", &SWEEP.replacen(from, to, 1));
    let output = anabranch(directory.path(), &["run", "mine.toml", "--out", "results"]);
    let said = text(&output.stderr);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{from:?} -> {to:?}: {said}{}",
        text(&output.stdout)
    );
    assert!(output.stdout.is_empty());
    assert!(
        !directory.path().join("results").exists(),
        "something was written: {said}"
    );
    assert!(said.ends_with("nothing was run\n"), "{said}");
    said
}

/// Each error in a spec, with the words that its message must contain in addition to file and line.
#[test]
fn a_fault_is_said_with_its_line_its_key_and_the_way_out() {
    let cases: &[(&str, &str, &[&str])] = &[
        // Errors in every part of a spec: key, unit, sign, position, count, sweep.
        (
            "delay = \"20 ms\"",
            "dealy = \"20 ms\"",
            &["`link.wire.dealy`", "unknown key", "did you mean `delay`?"],
        ),
        (
            "delay = \"20 ms\"",
            "delay = \"20 msecs\"",
            &[
                "`link.wire.delay`",
                "\"msecs\"",
                "allowed units: s, ms, us, ns, min, h",
            ],
        ),
        (
            "\"2 Mbit/s\"\n",
            "\"-2 Mbit/s\"\n",
            &["\"-2 Mbit/s\"", "cannot be negative"],
        ),
        (
            "between = [\"source\", \"sink\"]",
            "between = [\"source\", \"snik\"]",
            &["`link.wire.between[1]`", "\"snik\"", "did you mean `sink`?"],
        ),
        (
            "name = \"source\"",
            "name = \"source\"\ncount = 0",
            &["`flow.tcp.from`", "\"source\" has 0 members"],
        ),
        (
            "parameter = \"rate\"",
            "parameter = \"ratte\"",
            &["no parameter has this name", "did you mean `rate`?"],
        ),
        (
            "parameter = \"rate\"",
            "parameter = \"delay\"",
            &["a key goes by its path, here `link.wire.delay`"],
        ),
        (
            "parameter = \"rate\"",
            "parameter = \"link.wire.raet\"",
            &["`link.wire.raet`", "did you mean `rate`?"],
        ),
        // Mistakes that beginners make.
        (
            "between = [\"source\", \"sink\"]",
            "between = [\"source\", \"sink\", \"sink\"]",
            &[
                "`link.wire.between`",
                "found a list of 3 values; expected a list of 2 values",
            ],
        ),
        (
            "between = [\"source\", \"sink\"]",
            "between = [\"source\"]",
            &[
                "`link.wire.between`",
                "found a list of 1 value; expected a list of 2 values",
            ],
        ),
        (
            "between = [\"source\", \"sink\"]",
            "between = \"source\"",
            &["`link.wire.between`", "expected a list of 2"],
        ),
        (
            "queue = \"20 packets\"",
            "queue = \"0 packets\"",
            &["`link.wire.queue`", "at least 1 packet"],
        ),
        (
            "queue = \"20 packets\"",
            "queue = { forward = \"0 B\" }",
            &["`link.wire.queue.forward`", "at least 1 packet"],
        ),
        (
            "probability = 0.01",
            "probability = \"1 %\"",
            &["probability`", "found \"1 %\"; expected a number, 0 to 1"],
        ),
        (
            "probability = 0.01",
            "probability = 1.5",
            &["found 1.5", "0 to 1"],
        ),
        (
            "{ protocol = \"sctp\" }",
            "{ protocol = \"sctp\", streams = 70000 }",
            &[
                "streams`",
                "found 70000; expected a whole number, 1 to 65535",
            ],
        ),
        (
            "{ protocol = \"sctp\" }",
            "{ protocol = \"sctp\", streams = \"4\" }",
            &["found \"4\"; expected a whole number"],
        ),
        (
            "{ protocol = \"sctp\" }",
            "{ protocol = \"sctp\", unordered = \"yes\" }",
            &["found \"yes\"; expected true or false"],
        ),
        (
            "name = \"sweep\"",
            "name = \"../sweep\"",
            &["`name`", "letters, digits"],
        ),
        (
            "name = \"sweep\"",
            "name = 7",
            &["`name`", "found 7; expected text in quotes"],
        ),
        (
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\ndown = [[\"5 s\", \"1 s\"]]",
            &["`link.wire.down[0]`", "must begin before it ends"],
        ),
        (
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\ndown = [[\"1 s\", \"5 s\"], [\"3 s\", \"9 s\"]]",
            &["`link.wire.down[1]`", "before the one before it is over"],
        ),
        (
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\nup = { backward = [[\"1 s\", \"1 s\"]] }",
            &["`link.wire.up.backward[0]`", "must begin before it ends"],
        ),
        (
            "delay = \"20 ms\"",
            "delay = \"20 ms\"\ndown = [[\"1 s\", \"5 s\"]]\nup = { forward = [[\"3 s\", \"9 s\"]] }",
            &["`link.wire.up.forward`", "found both `down` and `up`"],
        ),
        (
            "values = [\"1 Mbit/s\", \"2 Mbit/s\"",
            "values = [\"1 Mbit/s\", \"1 Mbit/s\"",
            &["found \"1 Mbit/s\" twice"],
        ),
        (
            "{ kind = \"bulk\" }\ntransport = { protocol = \"sctp\" }",
            "{ kind = \"bulk\", message = \"1 MiB\" }\ntransport = { protocol = \"sctp\" }",
            &[
                "`flow.sctp.workload`",
                "the receive buffer of 64 KiB could never hold it",
            ],
        ),
        (
            "{ kind = \"bulk\" }\ntransport = { protocol = \"sctp\" }",
            "{ kind = \"cbr\", rate = \"1 Mbit/s\", message = \"64 KiB\" }\ntransport = { protocol = \"udp\" }",
            &["`flow.sctp.workload`", "UDP carries at most"],
        ),
        (
            "{ kind = \"bulk\" }\ntransport = { protocol = \"sctp\" }",
            "{ kind = \"trace\", messages = [{ at = \"2 s\", size = \"1 KiB\" }, { at = \"1 s\", size = \"1 KiB\" }] }\ntransport = { protocol = \"sctp\" }",
            &["messages[1].at`", "found \"1 s\" after \"2 s\""],
        ),
        (
            "metric = \"goodput\"\nflow = \"tcp\"",
            "metric = \"goodputt\"\nflow = \"tcp\"",
            &["did you mean `goodput`?"],
        ),
        (
            "name = \"source\"",
            "name = \"source\"\ncount = 11000",
            &["`flow.tcp.from`", "11000 members"],
        ),
    ];
    for (from, to, words) in cases {
        let said = refused(from, to);
        assert!(said.contains(" --> mine.toml:"), "{said}");
        for word in *words {
            assert!(said.contains(word), "{to:?}: {word:?} is not in\n{said}");
        }
    }
}

#[test]
fn more_flows_than_ports_are_refused() {
    let said = refused(
        "name = \"tcp\"\nfrom",
        "name = \"tcp\"\ncount = 11000\nfrom",
    );
    assert!(said.contains("a world holds at most 10000"), "{said}");
}

#[test]
fn every_fault_is_reported_at_once_and_the_text_stays_as_it_is() {
    let spec = SWEEP
        .replace("delay = \"20 ms\"", "delay = \"20 parsecs\"\ncolour = 3")
        .replace("duration = \"20 s\"", "duration = \"-1 s\"")
        .replace("queue = \"20 packets\"", "queue = 20");
    let directory = with("mine.toml", &spec);
    let output = anabranch(directory.path(), &["run", "mine.toml"]);
    assert_eq!(output.status.code(), Some(2));
    insta::assert_snapshot!(text(&output.stderr));
}

/// A closed standard error does not change the exit status.
#[test]
fn a_reader_who_has_gone_changes_no_exit_status() {
    let directory = with("mine.toml", &SWEEP.replace("20 ms", "20 parsecs"));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = crate::command(directory.path(), &["run", "mine.toml"])
        .stderr(writer)
        .status()
        .expect("it starts");
    assert_eq!(status.code(), Some(2));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let status = crate::command(directory.path(), &["papers"])
        .stdout(writer)
        .status()
        .expect("it starts");
    assert_eq!(status.code(), Some(0));
}

/// The schema accepts the same specs as the program: every paper, the example, and the spec of
/// these tests.
#[test]
fn the_schema_validates_the_specs_in_the_repository() {
    let directory = with("sweep.toml", SWEEP);
    let schema: serde_json::Value =
        serde_json::from_str(&succeeds(directory.path(), &["schema"])).expect("JSON");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut specs = vec![directory.path().join("sweep.toml")];
    for folder in ["papers", "examples"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a directory") {
            specs.extend(
                Some(entry.expect("an entry").path())
                    .filter(|path| path.extension().is_some_and(|e| e == "toml")),
            );
        }
    }
    assert!(specs.len() >= 3, "{specs:?}");
    for path in specs {
        let text = std::fs::read_to_string(&path).expect("a spec");
        let spec: serde_json::Value = toml::from_str(&text).expect("TOML");
        assert_eq!(
            faults(&schema, &spec),
            Vec::<String>::new(),
            "{}",
            path.display()
        );
        let mut wrong = spec.clone();
        let mut tables = ["link", "constellation"].into_iter();
        let table = tables.find(|table| wrong.get(table).is_some());
        wrong[table.expect("links")][0]["delai"] = "1 ms".into();
        assert!(
            !faults(&schema, &wrong).is_empty(),
            "an unknown key is not noticed in {}",
            path.display()
        );
    }
}
