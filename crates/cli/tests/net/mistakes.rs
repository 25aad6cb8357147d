//! Tests of wrong command lines.

use std::fs;

use crate::common::{run, text};

#[test]
fn mistakes_are_reported_before_anything_is_sent() {
    let directory = tempfile::tempdir().expect("a directory");
    let here = directory.path();
    fs::write(
        here.join("wrong.toml"),
        "anabranch = 1\n[[node]]\nnme = \"a\"\n",
    )
    .expect("a file");
    let link = "anabranch = 1\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
    fs::write(here.join("link.toml"), link).expect("a file");
    let lone = format!("{link}[[node]]\nname = \"c\"\n");
    fs::write(here.join("lone.toml"), lone).expect("a file");
    for (arguments, words) in [
        (
            &["perf", "127.0.0.1", "--profile", "rfc4961"][..],
            &["rfc4961", "rfc4960"][..],
        ),
        (
            &["perf", "127.0.0.1", "--set", "mtuu=1500 B"],
            &["mtuu", "did you mean `mtu`"],
        ),
        (&["perf", "127.0.0.1:99999"], &["99999", "1 to 65535"]),
        (&["perf", "127.0.0.1", "-l", "17 MiB"], &["16384 KiB"]),
        (&["perf", "127.0.0.1", "-l", "1x"], &["1x"]),
        (&["perf", "127.0.0.1", "-n", "0"], &["more"]),
        (
            &["serve", "sink", "-p", "7", "-p", "7"],
            &["port 7 is taken"],
        ),
        (&["perf", "127.0.0.1", "-t", "soon"], &["soon"]),
        (
            &["perf", "127.0.0.1", "-P", "2", "--local-port", "65535"],
            &["--local-port", "65535 with 2 associations"],
        ),
        (&["serve", "ecko"], &["ecko", "echo"]),
        (&["cat"], &["HOST"]),
        (&["emulate", "nowhere.toml"], &["nowhere.toml"]),
        (&["emulate", "wrong.toml"], &["nme", "wrong.toml:3"]),
        (
            &["emulate", "link.toml", "--between", "a,c"],
            &["no node \"c\"", "a, b"],
        ),
        (&["emulate", "link.toml", "--between", "a"], &["near,far"]),
        (
            &["emulate", "link.toml", "--listen", "here"],
            &["192.0.2.1:9899"],
        ),
        (&["emulate", "link.toml", "--carrier=ip"], &["--from"]),
        (
            &[
                "emulate",
                "link.toml",
                "--carrier=ip",
                "--listen",
                "127.0.0.1",
                "--from",
                "127.0.0.1",
                "--to",
                "127.0.0.2",
            ],
            &["two different ones"],
        ),
    ] {
        let output = run(here, arguments);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    }
}
