use super::*;

#[test]
fn a_title_says_the_unit_of_its_column() {
    for (unit, titles) in [
        (
            " s",
            &[
                "time",
                "t",
                "at",
                "",
                "timestamp",
                "t_s",
                "seconds",
                "Time",
                "TIME (S)",
                "elapsed time [sec]",
            ] as &[&str],
        ),
        (
            " ms",
            &[
                "time_ms",
                "Time (ms)",
                "t [msec]",
                "ms",
                "timeMs",
                "TIME_MS",
                "milliseconds",
                "time in millis",
            ],
        ),
        (
            " us",
            &[
                "time_us",
                "time_\u{b5}s",
                "time (\u{3bc}s)",
                "usec",
                "microseconds",
                "time_micros",
            ],
        ),
        (" ns", &["time_ns", "nanoseconds", "t (nsec)"]),
        (" min", &["minutes", "time_min", "t (mins)"]),
        (" h", &["hours", "time_h", "t [hrs]", "hour"]),
    ] {
        for title in titles {
            assert_eq!(TIME.unit(title).as_deref(), Ok(unit), "{title}");
        }
    }
    for (unit, titles) in [
        (
            " bit/s",
            &[
                "rate",
                "bit rate",
                "bps",
                "bit/s",
                "rate_bits_per_second",
                "b/s",
                "bits",
            ] as &[&str],
        ),
        (
            " kbit/s",
            &[
                "kbit",
                "rate_kbps",
                "Kbps",
                "kbit/s",
                "kbits/sec",
                "kilobits per second",
                "KBIT/S",
                "rate (kb/s)",
            ],
        ),
        (
            " Mbit/s",
            &[
                "mbps",
                "rate_mbps",
                "Rate (Mbit/s)",
                "dl Mbps",
                "Mb/s",
                "Mbits/sec",
                "megabits",
                "MBit/s",
                "Mbit",
                "megabits per second",
                "megabit/sec",
                "Mbits/second",
                "rateMbps",
                "rate_Mbit_s",
                "MBITS/SEC",
                "mega bits / s",
                "throughput_mbit_per_s",
                "cell A Mbps",
                "link1_mbps",
                "M bit/s",
            ],
        ),
        (" Gbit/s", &["gbps", "Gbit/s", "gigabits", "Gbits/sec"]),
    ] {
        for title in titles {
            assert_eq!(RATE.unit(title).as_deref(), Ok(unit), "{title}");
        }
    }
    for (unit, titles) in [
        (
            " B",
            &[
                "size",
                "size_bytes",
                "bytes",
                "length (B)",
                "octets",
                "payload_len",
                "sizeBytes",
            ] as &[&str],
        ),
        (" kB", &["size_kB", "KB", "size_kb", "kilobytes"]),
        (" MB", &["MB", "megabytes", "size (MB)", "size_mb"]),
        (" GB", &["GB"]),
        (" KiB", &["KiB", "size_kib", "kibibytes"]),
        (" MiB", &["MiB"]),
    ] {
        for title in titles {
            assert_eq!(SIZE.unit(title).as_deref(), Ok(unit), "{title}");
        }
    }
    for (unit, titles) in [
        (
            " ms",
            &["delay_ms", "min_delay_ms", "one-way delay (ms)", "delayMs"] as &[&str],
        ),
        (" s", &["delay", "owd", "latency_s"]),
    ] {
        for title in titles {
            assert_eq!(DELAY.unit(title).as_deref(), Ok(unit), "{title}");
        }
    }
    assert_eq!(SHARE.unit("loss"), Ok(""));
    assert_eq!(SHARE.unit("packet loss rate"), Ok(""));
    assert_eq!(STREAM.unit("stream_id"), Ok(""));
}

#[test]
fn a_unit_of_something_else_is_refused() {
    for title in [
        "rate_MBps",
        "kB/s",
        "B/s",
        "Bps",
        "MBPS",
        "megabytes per second",
        "rate (ms)",
        "Tbit/s",
        "Mbit/min",
        "bits per millisecond",
        "KiB/s",
        "MiBps",
        "Kibit/s",
        "mb",
        "MB",
        "pps",
        "packets/s",
        "rate (%)",
    ] {
        let error = RATE.unit(title).expect_err(title);
        assert!(error.starts_with("found the title"), "{error}");
        assert!(error.ends_with("bit/s, kbit/s, Mbit/s, Gbit/s"), "{error}");
    }
    for title in [
        "mbps",
        "rate",
        "days",
        "size",
        "time (fortnights)",
        "time_m",
        "epoch day",
    ] {
        let error = TIME.unit(title).expect_err(title);
        assert!(
            error.ends_with("allowed units: s, ms, us, ns, min, h"),
            "{error}"
        );
    }
    for title in [
        "bits",
        "size_bits",
        "Mb",
        "kbit",
        "ms",
        "stream",
        "kB/s",
        "Bps",
    ] {
        assert!(SIZE.unit(title).is_err(), "{title}");
    }
    assert!(SHARE.unit("loss (%)").is_err());
    assert!(SHARE.unit("loss (ms)").is_err());
    assert!(SHARE.unit("percent").is_err());
    assert!(STREAM.unit("size").is_err());
}

/// A word that scales the number, or that names another quantity, must not be ignored.
#[test]
fn a_title_that_is_not_understood_is_refused() {
    for title in [
        "100 kbps",
        "thousands of bit/s",
        "rate x1000",
        "x bit/s",
        "kbps 10",
        "log rate (bps)",
        "ms Mbps",
        "foo",
        "rate_furlongs",
        "10^6 bit/s",
        "1/rate",
    ] {
        assert!(RATE.unit(title).is_err(), "{title}");
    }
    for title in ["rtt", "loss", "delay (ms or s)"] {
        assert!(DELAY.unit(title).is_err(), "{title}");
    }
    assert!(TIME.unit("frame").is_err());
}
