//! Former names of keys, kinds, metrics, probes, drop reasons, flags and commands. A former name
//! causes an error that states the present name.

/// Namespace of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameCategory {
    /// A key in the described table of a spec.
    Key(&'static str),
    /// A kind of the value of the given key.
    Kind(&'static str),
    /// A metric of `[[measure]]`.
    Metric,
    /// A probe of `[[record]]`.
    Probe,
    /// A reason for which SCTP drops a packet, as named in statistics.
    DropReason,
    /// A flag of the given commands.
    Flag(&'static [&'static str]),
    /// A command.
    Command,
}

/// A name that has changed.
#[derive(Clone, Copy, Debug)]
pub struct Renamed {
    /// Former name.
    pub old: &'static str,
    /// Present name.
    pub new: &'static str,
    /// Namespace of both names.
    pub family: NameCategory,
}

const fn key(table: &'static str, old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::Key(table);
    Renamed { old, new, family }
}

const fn kind(key: &'static str, old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::Kind(key);
    Renamed { old, new, family }
}

const fn metric(old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::Metric;
    Renamed { old, new, family }
}

const fn probe(old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::Probe;
    Renamed { old, new, family }
}

const fn reason(old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::DropReason;
    Renamed { old, new, family }
}

const fn flag(commands: &'static [&'static str], old: &'static str, new: &'static str) -> Renamed {
    let family = NameCategory::Flag(commands);
    Renamed { old, new, family }
}

/// All names that have changed.
pub const RENAMED: &[Renamed] = &[
    key("tcp", "segment", "mss"),
    key("tcp", "receive_window", "receive_buffer"),
    key("tcp", "growth", "window_increase"),
    key("tcp", "halving", "loss_reduction_base"),
    key("tcp", "clock_tick", "rtt_granularity"),
    key("sctp", "allocation", "stream_allocation"),
    key("stream_allocation", "round_trip", "rtt_source"),
    key("stream_allocation", "quiet", "quiet_period"),
    key("sctp", "withdrawn_at_once", "reneged_at_once"),
    key("sctp", "unfilled_credit", "pba_when_underused"),
    key(
        "sctp",
        "primary_switch_max_retrans",
        "primary_switchover_max_retrans",
    ),
    key("sctp", "when_full", "receive_buffer_full"),
    key("sctp", "window_probe_waits", "zero_window_probe_delay"),
    key("sctp", "slow_start_limit", "abc_limit"),
    key("sctp", "fill_packets", "pack_messages"),
    key("sctp", "bare_init", "minimal_init"),
    key("sctp", "reading_rate", "application_read_rate"),
    key("sctp", "follow_links", "asconf_on_link_change"),
    key("loss", "place", "position"),
    key("jitter", "overtaking", "allow_reordering"),
    key("red", "min", "min_th"),
    key("red", "max", "max_th"),
    key("red", "probability", "max_p"),
    key("red", "weight", "w_q"),
    key("dualpi2", "ramp_from", "l4s_min_th"),
    key("dualpi2", "ramp_to", "l4s_max_th"),
    key("walker", "turns", "earth_rotates"),
    key("pareto", "least", "min"),
    key("pareto", "most", "max"),
    key("lognormal", "most", "max"),
    key("empirical", "between", "interpolate"),
    key("experiment", "common_losses", "common_random_numbers"),
    key("proxy", "asked", "upstream"),
    key("proxy", "asking", "downstream"),
    key("flow", "lasts", "duration"),
    key("curve", "given", "constant"),
    key("table", "less", "subtract"),
    key("table", "beside", "baseline"),
    key("row", "beside", "baseline"),
    key("row", "reads", "read_probe"),
    key("row", "bounded", "near_bound"),
    key("claim", "than", "reference"),
    key("measure", "take", "statistic"),
    kind("size", "listed", "empirical"),
    metric("most_held", "max_receive_buffer_used"),
    metric("blocked_by_rwnd", "rwnd_limited_share"),
    metric("mark_reductions", "ecn_reductions"),
    metric("repeated_messages", "duplicate_messages"),
    metric("missing_messages", "lost_messages"),
    metric("longest_silence", "max_delivery_gap"),
    metric("time_to_resume", "recovery_time"),
    metric("message_age", "message_latency"),
    probe("head_of_line_wait", "hol_blocking_delay"),
    probe("mark_answered", "ecn_response"),
    probe("buffered", "receive_buffer_used"),
    probe("data_path", "active_path"),
    reason("blind_end", "bad_tag_abort"),
    reason("outrun", "superseded_attempt"),
    reason("forged_cookie", "invalid_cookie"),
    reason("icmp_stranger", "icmp_no_association"),
    reason("unexpected", "wrong_state"),
    reason("overload", "rate_limited"),
    flag(&["shell"], "--print", "--dry-run"),
    flag(&["wrap", "emulate"], "--ip", "--carrier ip"),
    flag(&["perf", "emulate"], "--time", "--duration"),
    flag(
        &["serve", "perf", "cat", "advise"],
        "--message",
        "--message-size",
    ),
    flag(&["serve"], "--associations", "--max-associations"),
    flag(&["serve"], "--at-once", "--send-first"),
    flag(&["serve", "perf", "cat"], "--bare-init", "--minimal-init"),
    flag(&["wrap"], "--unwatched", "--no-seccomp"),
    flag(&["emulate"], "--bare", "--no-udp-header"),
    flag(&["advise"], "--discipline", "--qdisc"),
    Renamed {
        old: "path",
        new: "satellite-path",
        family: NameCategory::Command,
    },
];

/// Present name for `found`, if `found` is a former name of one of `candidates`.
pub fn renamed<'a>(found: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut such = RENAMED.iter().filter(|it| it.old == found).peekable();
    such.peek()?;
    let such: Vec<&str> = such.map(|it| it.new).collect();
    candidates.into_iter().find(|known| such.contains(known))
}

/// Hint that suggests the allowed name `meant` for `found`.
pub fn hint(found: &str, meant: &str) -> String {
    match renamed(found, [meant]) {
        Some(new) => format!("renamed to `{new}`"),
        None => format!("did you mean `{meant}`?"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_former_name_leads_to_the_name_that_is_allowed_there() {
        assert_eq!(renamed("most", ["shape", "max"]), Some("max"));
        assert_eq!(renamed("min", ["min_th", "max_th"]), Some("min_th"));
        assert_eq!(renamed("beside", ["baseline", "rows"]), Some("baseline"));
        // For QUIC, `receive_window` is no former name but a current one.
        assert_eq!(renamed("receive_window", ["receive_windows"]), None);
        assert_eq!(renamed("max", ["min_th"]), None);
        assert_eq!(hint("segment", "mss"), "renamed to `mss`");
        assert_eq!(hint("segmen", "segments"), "did you mean `segments`?");
    }

    #[test]
    fn each_former_name_of_a_namespace_has_one_present_name() {
        for (at, it) in RENAMED.iter().enumerate() {
            let same = |other: &&Renamed| other.old == it.old && other.family == it.family;
            assert!(
                !RENAMED[..at].iter().any(|other| same(&other)),
                "{}",
                it.old
            );
            assert_ne!(it.old, it.new);
        }
    }
}
