//! Tests of help, completions, man pages and the version.

use std::fs;

use super::{anabranch, command, status, text};

#[test]
fn completions_and_man_pages_know_every_command() {
    let here = tempfile::tempdir().expect("a directory");
    let help = anabranch(here.path(), &["--help"]);
    let help = text(&help.stdout);
    assert!(help.contains("Exit status: 0 done;"), "{help}");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(
        commands.contains(&"reproduce") && commands.contains(&"man"),
        "{commands:?}"
    );
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let printed = anabranch(here.path(), &["completions", shell]);
        let script = text(&printed.stdout);
        assert_eq!(status(&printed), 0);
        assert!(commands.iter().all(|name| script.contains(name)), "{shell}");
    }
    let written = anabranch(here.path(), &["man", "--out", "man1"]);
    assert_eq!(
        (status(&written), text(&written.stderr)),
        (0, String::new())
    );
    let page = |name: &str| fs::read_to_string(here.path().join("man1").join(name));
    let whole = page("anabranch.1").expect("the page of all");
    for name in &commands {
        let page = page(&format!("anabranch-{name}.1")).expect(name);
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
        let name = name.replace('-', "\\-");
        assert!(whole.contains(&format!("anabranch\\-{name}(1)")), "{name}");
    }
    let one = anabranch(here.path(), &["man", "perf"]);
    let written = page("anabranch-perf.1").expect("a page");
    let body = |page: &str| page.split_once(".SH NAME").map(|it| it.1.to_owned());
    assert_eq!(body(&text(&one.stdout)), body(&written));
    let wrong = anabranch(here.path(), &["man", "prefs"]);
    assert_eq!(status(&wrong), 2);
    assert!(text(&wrong.stderr).contains("COMMAND: found \"prefs\"; allowed: papers"));
}

#[test]
fn help_is_help_however_it_is_asked_for_and_fails_where_it_cannot_be_written() {
    let here = tempfile::tempdir().expect("a directory");
    let whole = anabranch(here.path(), &["help"]);
    for arguments in [["help", "--help"], ["help", "-h"]] {
        let asked = anabranch(here.path(), &arguments);
        assert_eq!((status(&asked), &asked.stdout), (0, &whole.stdout));
    }
    for arguments in [&["--help"][..], &["--version"], &["help", "run"]] {
        let full = fs::File::options().write(true).open("/dev/full");
        let mut asked = command(here.path(), arguments);
        let asked = asked.stdout(full.expect("a device")).output();
        let asked = asked.expect("the command starts");
        assert_eq!(status(&asked), 1, "{arguments:?}");
        let told = text(&asked.stderr);
        assert!(told.contains("cannot write to standard output"), "{told}");
    }
}

#[test]
fn the_version_distinguishes_builds() {
    let here = tempfile::tempdir().expect("a directory");
    let short = text(&anabranch(here.path(), &["-V"]).stdout);
    assert!(
        short.starts_with("anabranch 0.") && short.lines().count() == 1,
        "{short}"
    );
    let long = text(&anabranch(here.path(), &["--version"]).stdout);
    for part in [
        "\ncommit ",
        "\ncode ",
        "\nfeatures\n",
        "carriers    encapsulated, udp, ip\n",
        "transports  tcp, sctp",
    ] {
        assert!(long.contains(part), "{long}");
    }
}
