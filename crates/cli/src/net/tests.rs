//! Tests of parsing values on the command line.

use super::*;

#[test]
fn sizes_are_read_as_iperf3_does_and_as_specs_do() {
    for (text, bytes) in [
        ("1024", 1_024),
        ("1K", 1_024),
        ("64k", 65_536),
        ("1.5M", 1_572_864),
        ("2G", 2 << 30),
        ("1 KiB", 1_024),
        ("5000 B", 5_000),
        ("3 MB", 3_000_000),
        ("64KiB", 65_536),
    ] {
        assert_eq!(size(text), Ok(Size(bytes)), "{text}");
    }
    for text in ["", "K", "-1", "-1K", "1KK", "1X", "nan", "inf", "1e30G"] {
        assert!(size(text).is_err(), "{text}");
    }
    assert!(amount("0").is_err() && message_size("0").is_err());
    assert!(message_size("16M").is_ok() && message_size("16385K").is_err());
}
