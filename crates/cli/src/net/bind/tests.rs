//! Tests of the settings that result from the command line.

use super::*;

/// Each association has its own port: consecutive ports, or random ones.
#[test]
fn own_ports_follow_the_first() {
    let ports = |first, count| own_ports(first, count).map_err(|error| error.to_string());
    assert_eq!(ports(Some(7001), 3), Ok(vec![7001, 7002, 7003]));
    assert_eq!(ports(Some(65_535), 1), Ok(vec![65_535]));
    assert_eq!(ports(None, 2), Ok(vec![0, 0]));
    assert!(ports(Some(65_535), 2).is_err());
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    wire: NetOptions,
}

/// Packets are filled by default, unless an option disables it or chunks are not bundled.
#[test]
fn packets_are_filled_unless_the_line_says_otherwise() {
    for (set, filled) in [
        (None, true),
        (Some("pack_messages=false"), false),
        (Some("bundling=false"), false),
    ] {
        let words = set.iter().flat_map(|set| ["--set", set]);
        let line = <Line as clap::Parser>::parse_from(["perf"].into_iter().chain(words));
        let (sctp, _) = line.wire.sctp().expect("sound settings");
        assert_eq!(sctp.config.pack_messages, filled, "{set:?}");
    }
}

/// The default of an option does not replace a setting of `--set`, and an option is refused if
/// `--set` sets the same setting.
#[test]
fn a_key_of_set_is_kept_where_an_option_has_the_same() {
    let line = |words: &[&str]| {
        let words = ["perf"].iter().chain(words);
        <Line as clap::Parser>::parse_from(words)
            .wire
            .sctp()
            .map(|(sctp, _)| sctp)
    };
    let config = |set: &str| line(&["--set", set]).expect("sound settings").config;
    assert!(config("minimal_init=true").minimal_init);
    assert!(!config("path_mtu_discovery=false").path_mtu_discovery);
    assert_eq!(config("send_buffer=64 KiB").send_buffer, 64 << 10);
    assert_eq!(config("mtu=1400 B").mtu, 1400);
    for (option, set) in [
        (&["--minimal-init"][..], "minimal_init=false"),
        (&["--send-buffer", "1M"], "send_buffer=64 KiB"),
        (&["--pmtu", "1400 B"], "mtu=1300 B"),
        (&["--profile", "rfc4960"], "profile=rfc9260"),
        (&["--congestion", "cubic"], "congestion=vegas"),
    ] {
        let words: Vec<&str> = option.iter().copied().chain(["--set", set]).collect();
        let error = line(&words).map(drop).expect_err(set);
        assert!(error.to_string().contains("use one of them"), "{error}");
    }
}
